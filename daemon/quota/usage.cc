// SPDX-License-Identifier: Apache-2.0
// See usage.h.
#include "daemon/quota/usage.h"

#include <algorithm>
#include <array>
#include <set>

#include "store/kinds/pod/pod_state.h"

namespace coracle::quota {
namespace {

constexpr std::string_view kByClass = ".storageclass.storage.k8s.io/";
constexpr std::string_view kClassAnnotation = "volume.beta.kubernetes.io/storage-class";
constexpr std::string_view kRequests = "requests.", kRequestsHugePages = "requests.hugepages-";

constexpr std::array kPodNames = {"count/pods",
                                  "pods",
                                  "cpu",
                                  "memory",
                                  "ephemeral-storage",
                                  "requests.cpu",
                                  "requests.memory",
                                  "requests.ephemeral-storage",
                                  "limits.cpu",
                                  "limits.memory",
                                  "limits.ephemeral-storage"};
constexpr std::array kServiceNames = {"count/services", "services", "services.nodeports", "services.loadbalancers"};
constexpr std::array kClaimNames = {"persistentvolumeclaims", "requests.storage"};

bool is_pod(const Kind& kind) { return kind.group.empty() && kind.resource == "pods"; }
bool is_service(const Kind& kind) { return kind.group.empty() && kind.resource == "services"; }
bool is_claim(const Kind& kind) { return kind.group.empty() && kind.resource == "persistentvolumeclaims"; }

std::string count_name(const Kind& kind) { return "count/" + kind.qualified_resource(); }

// The kinds that quotas counted by name before count/ existed.
bool has_plain_name(const Kind& kind) {
  static constexpr std::array kPlain = {"configmaps", "resourcequotas", "replicationcontrollers", "secrets"};
  return kind.group.empty() && std::find(kPlain.begin(), kPlain.end(), kind.resource) != kPlain.end();
}

template <typename List>
bool among(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Whether the name has a domain other than Kubernetes' own, as those of device plugins.
bool is_extended(std::string_view name) {
  bool native = name.find('/') == name.npos || name.find("kubernetes.io/") != name.npos;
  return !native && !name.starts_with(kRequests);
}

bool is_extended_quota(std::string_view name) {
  bool native = name.find('/') == name.npos || name.find("kubernetes.io/") != name.npos;
  return !native && name.starts_with(kRequests);
}

// ---- pods ----

bool pod_counts(view::Pod pod, WallTime now) {
  if (is_terminal(pod)) return false;
  view::ObjectMeta metadata = pod.metadata();
  auto deleted = parse_time(metadata.deletion_timestamp());
  if (!deleted || !metadata.has_deletion_grace_period_seconds()) return true;
  return now <= *deleted + bounded_seconds(metadata.deletion_grace_period_seconds());
}

Amounts pod_usage(view::Pod pod, WallTime now) {
  Amounts out{{"count/pods", Quantity::of_count(1)}};
  if (!pod_counts(pod, now)) return out;
  out["pods"] = Quantity::of_count(1);
  Amounts requests = pod_requests(pod, true), limits = pod_limits(pod, true);
  for (const char* name : {"cpu", "memory", "ephemeral-storage"}) {
    if (auto found = requests.find(name); found != requests.end())
      out[name] = out["requests." + std::string(name)] = found->second;
    if (auto found = limits.find(name); found != limits.end()) out["limits." + std::string(name)] = found->second;
  }
  for (const auto& [name, amount] : requests) {
    if (name.starts_with(kHugePages)) out[name] = out["requests." + name] = amount;
    if (is_extended(name)) out["requests." + name] = amount;
  }
  return out;
}

bool best_effort(view::PodSpec pod) {
  auto asks = [](view::ResourceRequirements resources) {
    for (const json::object* list : {&resources.requests(), &resources.limits()})
      for (const char* name : {"cpu", "memory"}) {
        Amounts amounts = amounts_of(*list);
        if (auto found = amounts.find(name); found != amounts.end() && !found->second.is_zero()) return true;
      }
    return false;
  };
  if (asks(pod.resources())) return false;
  for (auto containers : {pod.containers(), pod.init_containers()})
    for (view::Container container : containers)
      if (asks(container.resources())) return false;
  return true;
}

template <typename Terms>  // of PodAffinity or PodAntiAffinity
bool crosses_namespaces(Terms terms) {
  auto crosses = [](view::PodAffinityTerm term) { return !term.namespaces().empty() || term.has_namespace_selector(); };
  for (view::PodAffinityTerm term : terms.required_during_scheduling_ignored_during_execution())
    if (crosses(term)) return true;
  for (view::WeightedPodAffinityTerm weighted : terms.preferred_during_scheduling_ignored_during_execution())
    if (crosses(weighted.pod_affinity_term())) return true;
  return false;
}

// ---- scopes ----

struct Scope {
  std::string_view name, op;
  view::Range<std::string_view> values;
};

// `values`: the object's values for the scope; empty: it has none.
bool selected(const Scope& scope, const std::set<std::string_view>& values) {
  auto listed = [&](std::string_view value) {
    return std::find(scope.values.begin(), scope.values.end(), value) != scope.values.end();
  };
  if (scope.op == "Exists") return !values.empty();
  if (scope.op == "DoesNotExist") return values.empty();
  if (scope.op == "In") return std::any_of(values.begin(), values.end(), listed);
  if (scope.op == "NotIn") return values.empty() || !std::all_of(values.begin(), values.end(), listed);
  return false;
}

std::set<std::string_view> of_strings(std::initializer_list<std::string_view> all) {
  std::set<std::string_view> out;
  for (std::string_view one : all)
    if (!one.empty()) out.insert(one);
  return out;
}

bool in_scope(const Kind& kind, const Scope& scope, const json::value& object) {
  if (is_claim(kind)) {
    if (scope.name != "VolumeAttributesClass") return false;
    view::PersistentVolumeClaim claim(object);
    view::PersistentVolumeClaimStatus status = claim.status();
    return selected(scope, of_strings({claim.spec().volume_attributes_class_name(), status.current_volume_attributes_class_name(),
                                       status.modify_volume_status().target_volume_attributes_class_name()}));
  }
  if (!is_pod(kind)) return false;
  view::PodSpec pod = view::Pod(object).spec();
  bool terminating = pod.has_active_deadline_seconds() && pod.active_deadline_seconds() >= 0;
  if (scope.name == "Terminating") return terminating;
  if (scope.name == "NotTerminating") return !terminating;
  if (scope.name == "BestEffort") return best_effort(pod);
  if (scope.name == "NotBestEffort") return !best_effort(pod);
  if (scope.name == "PriorityClass") return selected(scope, of_strings({pod.priority_class_name()}));
  if (scope.name == "CrossNamespacePodAffinity")
    return crosses_namespaces(pod.affinity().pod_affinity()) || crosses_namespaces(pod.affinity().pod_anti_affinity());
  return false;
}

// ---- others ----

Amounts service_usage(view::ServiceSpec service) {
  auto ports = service.ports();
  std::string_view type = service.type();
  int64_t node_ports = 0;
  if (type == "NodePort" || type == "LoadBalancer") node_ports = int64_t(ports.size());
  bool only_given = service.has_allocate_load_balancer_node_ports() && !service.allocate_load_balancer_node_ports();
  if (type == "LoadBalancer" && only_given)
    node_ports = std::count_if(ports.begin(), ports.end(), [](view::ServicePort port) { return port.node_port() != 0; });
  return {{"count/services", Quantity::of_count(1)},
          {"services", Quantity::of_count(1)},
          {"services.nodeports", Quantity::of_count(node_ports)},
          {"services.loadbalancers", Quantity::of_count(type == "LoadBalancer" ? 1 : 0)}};
}

Amounts claim_usage(const json::value& claim) {
  Quantity one = Quantity::of_count(1);
  Amounts out{{"count/persistentvolumeclaims", one}, {"persistentvolumeclaims", one}};
  std::string storage_class = storage_class_of(claim);
  if (!storage_class.empty()) out[storage_class + std::string(kByClass) + "persistentvolumeclaims"] = one;
  view::PersistentVolumeClaim typed(claim);
  Amounts asked = amounts_of(typed.spec().resources().requests()), given = amounts_of(typed.status().allocated_resources());
  auto storage = asked.find("storage");
  if (storage == asked.end()) return out;
  if (auto more = given.find("storage"); more != given.end() && storage->second < more->second) storage->second = more->second;
  out["requests.storage"] = storage->second;
  if (!storage_class.empty()) out[storage_class + std::string(kByClass) + "requests.storage"] = storage->second;
  return out;
}

}  // namespace

bool counted(const schema::KindInfo& info) { return info.kind.namespaced && !info.traits.uncounted; }

std::string storage_class_of(const json::value& claim) {
  view::PersistentVolumeClaim typed(claim);
  if (const json::value* beta = typed.metadata().annotations().if_contains(kClassAnnotation); beta && beta->is_string())
    return std::string(beta->get_string());
  return std::string(typed.spec().storage_class_name());
}

std::vector<std::string> tracked(const Kind& kind, const json::object& limits) {
  std::vector<std::string> out;
  auto take = [&](std::string_view name) {
    if (limits.contains(name)) out.emplace_back(name);
  };
  auto take_those = [&](auto is_used) {
    for (const auto& entry : limits)
      if (is_used(std::string_view(entry.key()))) out.emplace_back(entry.key());
  };
  if (is_pod(kind)) {
    std::ranges::for_each(kPodNames, take);
    take_those([](std::string_view name) {
      return name.starts_with(kHugePages) || name.starts_with(kRequestsHugePages) || is_extended_quota(name);
    });
  } else if (is_service(kind)) {
    std::ranges::for_each(kServiceNames, take);
  } else {
    take(count_name(kind));
    if (has_plain_name(kind)) take(kind.resource);
    if (is_claim(kind)) {
      std::ranges::for_each(kClaimNames, take);
      take_those([](std::string_view name) {
        size_t by_class = name.find(kByClass);
        return by_class != name.npos && among(kClaimNames, name.substr(by_class + kByClass.size()));
      });
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Amounts usage_of(const Kind& kind, const json::value& object, WallTime now) {
  if (is_pod(kind)) return pod_usage(view::Pod(object), now);
  if (is_service(kind)) return service_usage(view::Service(object).spec());
  if (is_claim(kind)) return claim_usage(object);
  Amounts out{{count_name(kind), Quantity::of_count(1)}};
  if (has_plain_name(kind)) out[std::string(kind.resource)] = Quantity::of_count(1);
  return out;
}

bool in_scopes(const Kind& kind, const json::value& quota, const json::value& object) {
  view::ResourceQuotaSpec spec = view::ResourceQuota(quota).spec();
  for (std::string_view scope : spec.scopes())
    if (!in_scope(kind, {scope, "Exists", {}}, object)) return false;
  for (view::ScopedResourceSelectorRequirement term : spec.scope_selector().match_expressions())
    if (!in_scope(kind, {term.scope_name(), term.operator_(), term.values()}, object)) return false;
  return true;
}

bool matches(const Kind& kind, const json::value& quota, const json::value& object) {
  return !tracked(kind, view::ResourceQuota(quota).status().hard()).empty() && in_scopes(kind, quota, object);
}

}  // namespace coracle::quota
