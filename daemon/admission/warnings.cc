// SPDX-License-Identifier: Apache-2.0
// Warnings: about accepted objects that are probably mistakes or use deprecated features, with Kubernetes' texts. Source:
// kube-apiserver, WarningsOnCreate and WarningsOnUpdate of its strategies; pkg/api/pod/warnings.go, pkg/api/node/util.go,
// pkg/api/service/warnings.go, pkg/api/persistentvolume/util.go, pkg/api/persistentvolumeclaim/util.go, pkg/api/storage/util.go.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/profile_annotation.h"
#include "store/object/object.h"
#include "store/object/quantity.h"

namespace coracle::admission {
namespace {

using Texts = std::vector<std::string>;
using Pair = std::pair<std::string_view, std::string_view>;

constexpr Pair kNodeLabels[] = {
    {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
    {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
    {"failure-domain.beta.kubernetes.io/region", "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
    {"failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
    {"beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
    {"app.kubernetes.io/created-by", "deprecated since v1.9"},
    {"scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"},
    {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"},
};
constexpr Pair kAnnotations[] = {
    {"scheduler.alpha.kubernetes.io/critical-pod", "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
    {"security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"},
    {"security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"},
};
constexpr Pair kVolumes[] = {
    {"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
    {"gitRepo", "deprecated in v1.11"},
    {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
    {"flocker", "deprecated in v1.22, non-functional in v1.25+"},
    {"storageos", "deprecated in v1.22, non-functional in v1.25+"},
    {"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
    {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
    {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
    {"rbd", "deprecated in v1.28, non-functional in v1.31+"},
};
constexpr Pair kStorageAnnotations[] = {
    {"volume.beta.kubernetes.io/storage-class", "deprecated since v1.8; use \"storageClassName\" attribute instead"},
    {"volume.beta.kubernetes.io/mount-options", "deprecated since v1.31; use \"mountOptions\" attribute instead"},
};
constexpr std::string_view kPersistentVolumes[] = {"cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"};
constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompContainer = "container.seccomp.security.alpha.kubernetes.io/";
constexpr std::string_view kAppArmor = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
constexpr std::string_view kNullSelector = "a null labelSelector results in matching no pod";

std::string_view meaning_of(std::string_view key, std::span<const Pair> table) {
  auto found = std::ranges::find(table, key, &Pair::first);
  return found == table.end() ? std::string_view() : found->second;
}
std::string keyed(std::string_view path, std::string_view key) { return std::string(path).append("[").append(key).append("]"); }
std::string indexed(std::string_view path, size_t index) { return keyed(path, std::to_string(index)); }

// "path[index]", made when it is asked for: lists may be long, and most items have nothing to be said about.
struct ItemPath {
  const std::string& list;
  size_t index;
  operator std::string() const { return indexed(list, index); }
};
std::string operator+(const ItemPath& item, std::string_view more) { return indexed(item.list, item.index).append(more); }

// Visits each item of the list with its path; `path`: of the list.
template <typename T, typename F>
void each_item(view::Range<T> items, const std::string& path, F&& visit) {
  for (size_t i = 0; i < items.size(); ++i) visit(items[i], ItemPath{path, i});
}

// ---- pods ----

void check_terms(view::NodeSelectorTerm term, const std::string& path, Texts& out) {
  each_item(term.match_expressions(), path + ".matchExpressions",
            [&](view::NodeSelectorRequirement expression, const ItemPath& at) {
              std::string_view key = expression.key(), says = meaning_of(key, kNodeLabels);
              if (!says.empty()) out.push_back(at + ".key: " + std::string(key) + " is " + std::string(says));
            });
}

void check_places(view::PodSpec spec, const std::string& path, Texts& out) {
  for (const auto& pair : spec.node_selector())
    if (std::string_view says = meaning_of(pair.key(), kNodeLabels); !says.empty())
      out.push_back(keyed(path + "nodeSelector", pair.key()) + ": " + std::string(says));
  view::NodeAffinity affinity = spec.affinity().node_affinity();
  each_item(affinity.required_during_scheduling_ignored_during_execution().node_selector_terms(),
            path + "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            [&](view::NodeSelectorTerm term, const ItemPath& at) { check_terms(term, at, out); });
  each_item(
      affinity.preferred_during_scheduling_ignored_during_execution(),
      path + "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
      [&](view::PreferredSchedulingTerm term, const ItemPath& at) { check_terms(term.preference(), at + ".preference", out); });
  each_item(spec.topology_spread_constraints(), path + "topologySpreadConstraints",
            [&](view::TopologySpreadConstraint constraint, const ItemPath& at) {
              std::string_view key = constraint.topology_key(), says = meaning_of(key, kNodeLabels);
              if (!says.empty()) out.push_back(at + ".topologyKey: " + std::string(key) + " is " + std::string(says));
              if (!constraint.has_label_selector()) out.push_back(at + ".labelSelector: " + std::string(kNullSelector));
            });
}

template <typename Terms>  // a PodAffinity or a PodAntiAffinity
void check_pod_terms(Terms terms, const std::string& path, Texts& out) {
  each_item(terms.required_during_scheduling_ignored_during_execution(), path + ".requiredDuringSchedulingIgnoredDuringExecution",
            [&](view::PodAffinityTerm term, const ItemPath& at) {
              if (!term.has_label_selector()) out.push_back(at + ".labelSelector: " + std::string(kNullSelector));
            });
  each_item(terms.preferred_during_scheduling_ignored_during_execution(),
            path + ".preferredDuringSchedulingIgnoredDuringExecution",
            [&](view::WeightedPodAffinityTerm term, const ItemPath& at) {
              if (!term.pod_affinity_term().has_label_selector())
                out.push_back(at + ".podAffinityTerm.labelSelector: " + std::string(kNullSelector));
            });
}

void check_pod_affinity(view::PodSpec spec, const std::string& path, Texts& out) {
  check_pod_terms(spec.affinity().pod_affinity(), path + "affinity.podAffinity", out);
  check_pod_terms(spec.affinity().pod_anti_affinity(), path + "affinity.podAntiAffinity", out);
}

// 64m of memory is a fraction of a byte; 64M was probably meant.
void check_bytes(const json::object& amounts, const std::string& path, Texts& out) {
  for (std::string_view resource : {"memory", "ephemeral-storage", "storage"}) {
    const json::value* given = amounts.if_contains(resource);
    auto amount = given ? Quantity::from_json(*given) : Result<Quantity>(Quantity());
    if (amount && Quantity::of_count(amount->value()) != amount->rounded_to_milli())
      out.push_back(keyed(path, resource) + ": fractional byte value " + quoted(amount->text()) +
                    " is invalid, must be an integer");
  }
}

void check_claim_bytes(view::PersistentVolumeClaimSpec spec, const std::string& path, Texts& out) {
  check_bytes(spec.resources().requests(), path + ".resources.requests", out);
  check_bytes(spec.resources().limits(), path + ".resources.limits", out);
}

void check_volumes(view::PodSpec spec, const std::string& path, Texts& out) {
  std::set<std::string_view> tokens;
  each_item(spec.volumes(), path + "volumes", [&](view::Volume volume, const ItemPath& at) {
    for (const auto& [kind, says] : kVolumes)
      if (volume.members().contains(kind))
        out.push_back(at + "." + (kind == "storageos" ? "storageOS" : std::string(kind)) + ": " + std::string(says));
    if (volume.has_ephemeral())
      check_claim_bytes(volume.ephemeral().volume_claim_template().spec(), at + ".ephemeral.volumeClaimTemplate.spec", out);
    for (view::VolumeProjection source : volume.projected().sources())
      if (source.has_service_account_token()) tokens.insert(source.service_account_token().path());
  });
  if (tokens.empty()) return;
  each_item(spec.volumes(), path + "volumes", [&](view::Volume volume, const ItemPath& at) {
    auto twice = [&](std::string_view file, const std::string& where) {
      if (tokens.contains(file))
        out.push_back(at + ".projected.sources." + where + ": has duplicated path with ServiceAccountToken " + quoted(file));
    };
    auto items_twice = [&](auto items, std::string_view named) {
      for (size_t i = 0; i < items.size(); ++i) twice(items[i].path(), indexed(named, i));
    };
    for (view::VolumeProjection source : volume.projected().sources()) {
      items_twice(source.config_map().items(), "configMap");
      items_twice(source.secret().items(), "secrets");
      items_twice(source.downward_api().items(), "downwardAPI");
      if (source.has_cluster_trust_bundle()) twice(source.cluster_trust_bundle().path(), "ClusterTrustBundle");
    }
  });
}

void check_lists(view::PodSpec spec, const std::string& path, Texts& out) {
  std::set<std::string_view> addresses, secrets;
  each_item(spec.host_aliases(), path + "hostAliases", [&](view::HostAlias alias, const ItemPath& at) {
    std::string_view ip = alias.ip();
    if (!addresses.insert(ip).second) out.push_back(at + ".ip: duplicate ip " + quoted(ip));
  });
  each_item(spec.image_pull_secrets(), path + "imagePullSecrets", [&](view::LocalObjectReference secret, const ItemPath& at) {
    std::string_view name = secret.name();
    if (!secrets.insert(name).second) out.push_back(at + ".name: duplicate name " + quoted(name));
  });
  each_item(spec.image_pull_secrets(), path + "imagePullSecrets", [&](view::LocalObjectReference secret, const ItemPath& at) {
    if (secret.name().empty()) out.push_back(at + ".name: invalid empty name \"\"");
  });
}

void check_environment(view::Container container, const std::string& path, Texts& out) {
  std::set<std::string_view> names;
  each_item(container.env(), path + ".env", [&](view::EnvVar variable, const ItemPath& at) {
    std::string_view name = variable.name();
    if (names.insert(name).second) return;
    std::string reference = "$(" + std::string(name) + ")";
    std::string_view value = variable.value();
    // memmem(3) is linear in both lengths, find() takes their product.
    bool adds_to_it = !variable.has_value_from() && value != reference &&
                      ::memmem(value.data(), value.size(), reference.data(), reference.size()) != nullptr;
    if (!adds_to_it)
      out.push_back(at + ": hides previous definition of " + quoted(name) + ", which may be dropped when using apply");
  });
}

struct Port {
  std::string path;
  int64_t host_port;
  std::string_view host_ip;
};
struct Ports {
  std::map<std::pair<int64_t, std::string_view>, std::vector<Port>> of;  // of all containers, by number and protocol
  size_t compared = 0;
};
constexpr size_t kPortPairsMax = 1'000'000, kPortWarningsMax = 200;  // further warnings would be truncated anyway

void check_ports(view::Container container, const std::string& path, Ports& all, Texts& out) {
  each_item(container.ports(), path + ".ports", [&](view::ContainerPort declared, const ItemPath& at) {
    Port port{at, declared.host_port(), declared.host_ip()};
    int64_t number = declared.container_port();
    std::string_view protocol = declared.protocol();
    if (!port.host_ip.empty() && port.host_port == 0)
      out.push_back(at + ": hostIP set without hostPort: {Name:" + std::string(declared.name()) + " HostPort:0 ContainerPort:" +
                    std::to_string(number) + " Protocol:" + std::string(protocol) + " HostIP:" + std::string(port.host_ip) + "}");
    std::vector<Port>& others = all.of[{number, protocol}];
    for (const Port& other : others) {
      if (++all.compared > kPortPairsMax || out.size() >= kPortWarningsMax) return;
      bool same_port = port.host_port == other.host_port, one_is_free = port.host_port == 0 || other.host_port == 0;
      if (same_port && port.host_ip == other.host_ip) out.push_back(at + ": duplicate port definition with " + other.path);
      else if (one_is_free) out.push_back(at + ": overlapping port definition with " + other.path);
      else if (same_port && port.host_ip.empty() != other.host_ip.empty())
        out.push_back(at + ": dangerously ambiguous port definition with " + other.path);
    }
    others.push_back(std::move(port));
  });
}

// `at`: path of the template; "" for a pod.
void check_pod(view::PodTemplateSpec pod, const std::string& at, Texts& out) {
  const std::string prefix = at.empty() ? "" : at + ".", path = prefix + "spec.";
  view::PodSpec spec = pod.spec();
  if (!spec) return;
  const json::object& annotations = pod.metadata().annotations();
  auto has_annotation = [&](std::string_view key) { return annotations.contains(key); };
  auto annotation = [&](std::string_view key, std::string_view says) {
    out.push_back(keyed(prefix + "metadata.annotations", key) + ": " + std::string(says));
  };
  check_places(spec, path, out);
  for (const auto& [key, says] : kAnnotations)
    if (has_annotation(key)) annotation(key, says);
  check_volumes(spec, path, out);
  check_lists(spec, path, out);
  check_bytes(spec.overhead(), path + "overhead", out);
  constexpr std::string_view kSeccomp = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
  if (has_annotation(kSeccompPod) && !spec.security_context().has_seccomp_profile()) annotation(kSeccompPod, kSeccomp);
  Ports ports;
  Texts of_ports;
  visit_containers(spec, [&](view::Container container, std::string_view list, size_t index) {
    const std::string where = indexed(path + std::string(list), index);
    std::string name(container.name());
    if (std::string key = std::string(kSeccompContainer) + name;
        has_annotation(key) && !container.security_context().has_seccomp_profile())
      annotation(key, kSeccomp);
    bool has_profile = spec.security_context().has_app_armor_profile() || container.security_context().has_app_armor_profile();
    if (std::string key = std::string(kAppArmorAnnotation) + name; !at.empty() && has_annotation(key) && !has_profile)
      annotation(key, kAppArmor);
    check_bytes(container.resources().limits(), where + ".resources.limits", out);
    check_bytes(container.resources().requests(), where + ".resources.requests", out);
    check_environment(container, where, out);
    check_ports(container, where, ports, of_ports);
  });
  std::ranges::move(of_ports, std::back_inserter(out));
  if (spec.termination_grace_period_seconds() < 0)
    out.push_back(path + "terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1");
  check_pod_affinity(spec, path, out);
}

// ---- other kinds ----

void check_service(view::Service service, Texts& out) {
  view::ServiceSpec spec = service.spec();
  std::string_view type = spec.type();
  bool headless = type == "ClusterIP" && spec.cluster_ip() == "None", external = type == "ExternalName";
  bool has_addresses = !spec.external_ips().empty();
  constexpr std::string_view kHints = "service.kubernetes.io/topology-aware-hints";
  if (service.metadata().annotations().contains(kHints))
    out.push_back("annotation " + std::string(kHints) + " is deprecated, please use service.kubernetes.io/topology-mode instead");
  if (headless) {
    if (!spec.load_balancer_ip().empty()) out.push_back("spec.loadBalancerIP is ignored for headless services");
    if (has_addresses) out.push_back("spec.externalIPs is ignored for headless services");
    if (spec.session_affinity() != "None") out.push_back("spec.SessionAffinity is ignored for headless services");
  }
  if (has_addresses && !headless && !external)
    out.push_back("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  if (external && has_addresses) out.push_back("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  if (!external && !spec.external_name().empty())
    out.push_back("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  if (spec.traffic_distribution() == "PreferClose")
    out.push_back("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
}

// The name becomes part of pod and host names. It is a DNS subdomain, or was rejected.
void check_name(const Request& request, const std::string& name, Texts& out) {
  constexpr size_t kLabelMax = 63;
  std::vector<std::string> why;
  if (name.size() > kLabelMax) why.push_back("must be no more than 63 characters");
  if (name.find('.') != name.npos) why.push_back("must not contain dots");
  if (why.empty()) return;
  out.push_back(std::string("metadata.name: this is used in ") +
                (request.kind == kPod ? "the Pod's hostname" : "Pod names and hostnames") +
                ", which can result in surprising behavior; a DNS label is recommended: [" + join(why, " ") + "]");
}

// ---- storage ----

void check_storage_annotations(const json::value& object, std::span<const Pair> table, Texts& out) {
  const json::object& annotations = metadata_of(object).annotations();
  for (const auto& [key, says] : table)
    if (annotations.contains(key)) out.push_back(keyed("metadata.annotations", key) + ": " + std::string(says));
}

void warn_of_claim(const json::value& claim, Texts& out) {
  check_storage_annotations(claim, std::span(kStorageAnnotations).first(1), out);
  check_claim_bytes(view::PersistentVolumeClaim(claim).spec(), "spec", out);
}

void warn_of_volume(const json::value& volume, Texts& out) {
  view::PersistentVolumeSpec spec = view::PersistentVolume(volume).spec();
  check_storage_annotations(volume, kStorageAnnotations, out);
  if (spec.persistent_volume_reclaim_policy() == "Recycle")
    out.push_back(
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to "
        "use dynamic provisioning.");
  each_item(spec.node_affinity().required().node_selector_terms(), "spec.nodeAffinity.required.nodeSelectorTerms",
            [&](view::NodeSelectorTerm term, const ItemPath& at) { check_terms(term, at, out); });
  for (std::string_view kind : kPersistentVolumes)
    if (spec.members().contains(kind))
      out.push_back("spec." + (kind == "storageos" ? "storageOS" : std::string(kind)) + ": " +
                    std::string(meaning_of(kind, kVolumes)));
}

void warn_of_class(view::StorageClass storage_class, Texts& out) {
  each_item(storage_class.allowed_topologies(), "allowedTopologies", [&](view::TopologySelectorTerm term, const ItemPath& at) {
    each_item(term.match_label_expressions(), at + ".matchLabelExpressions",
              [&](view::TopologySelectorLabelRequirement one, const std::string& place) {
                std::string_view says = meaning_of(one.key(), kNodeLabels);
                if (!says.empty()) out.push_back(place + ".key: " + std::string(says));
              });
  });
}

void warn_of_stateful_set(view::StatefulSetSpec spec, Texts& out) {
  each_item(spec.volume_claim_templates(), "spec.volumeClaimTemplates",
            [&](view::PersistentVolumeClaim one, const ItemPath& at) { check_claim_bytes(one.spec(), at, out); });
  if (spec.revision_history_limit() < 0)
    out.push_back("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended");
}

class Warnings : public Plugin {
 public:
  std::string_view name() const override { return "Warnings"; }

  // Before the fields are set that annotations of a pod stand for.
  Result<void> admit(Request& request, const ClusterState&) const override {
    if (!request.creates(kPod) || !request.warnings) return {};
    view::Pod pod(*request.object);
    visit_containers(pod.spec(), [&](view::Container container, std::string_view, size_t) {
      if (!app_armor_by_annotation(pod, container)) return;
      std::string key = std::string(kAppArmorAnnotation).append(container.name());
      request.warn(keyed("metadata.annotations", key) + ": " + std::string(kAppArmor));
    });
    return {};
  }

  // People rarely change pods themselves, and what does so often should not pay for warnings. Source: pod strategy of
  // kube-apiserver
  Result<void> validate(const Request& request, const ClusterState&) const override {
    if (request.operation == Operation::remove || !request.subresource.empty() || !request.warnings) return {};
    if (request.kind == kPod && request.operation == Operation::update) return {};
    const json::value& object = *request.object;
    Texts out;
    if (request.operation == Operation::create && request.info.traits.names_pods)
      check_name(request, std::string(metadata_of(object).name()), out);
    if (view::PodTemplateSpec pod = pod_of(request.info, object)) {
      auto before = request.old ? pod_of(request.info, request.old->json()) : view::PodTemplateSpec();
      if (!same_json(before.raw(), pod.raw()))
        check_pod(pod, request.kind == kPod ? std::string() : std::string(request.info.traits.pod_template), out);
    }
    if (request.kind == kService) check_service(view::Service(object), out);
    if (request.creates(kIngress) && !view::Ingress(object).spec().has_ingress_class_name() &&
        metadata_of(object).annotations().contains("kubernetes.io/ingress.class"))
      out.push_back("annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead");
    if (request.kind == kStatefulSet) warn_of_stateful_set(view::StatefulSet(object).spec(), out);
    if (request.kind == kPersistentVolumeClaim) warn_of_claim(object, out);
    if (request.kind == kPersistentVolume) warn_of_volume(object, out);
    if (request.kind == kStorageClass) warn_of_class(view::StorageClass(object), out);
    for (std::string& text : out) request.warn(std::move(text));
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_warnings() { return std::make_unique<Warnings>(); }

}  // namespace coracle::admission
