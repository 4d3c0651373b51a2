// SPDX-License-Identifier: Apache-2.0
// NodeRestriction: limits a node (user system:node:NAME in the group system:nodes) to its own Node object and its pods, without
// changes that would attract other pods. Source: Kubernetes plugin/pkg/admission/noderestriction.
#include <array>
#include <set>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::admission {
namespace {

constexpr std::string_view kNodesGroup = "system:nodes", kNodePrefix = "system:node:";
constexpr std::string_view kRestrictedDomain = "node-restriction.kubernetes.io";

// The labels in Kubernetes' domains that a node may set on itself. Source: kubelet/pkg/apis well_known_labels.go.
constexpr std::array kKubeletLabels = {"kubernetes.io/hostname",
                                       "topology.kubernetes.io/zone",
                                       "topology.kubernetes.io/region",
                                       "failure-domain.beta.kubernetes.io/zone",
                                       "failure-domain.beta.kubernetes.io/region",
                                       "node.kubernetes.io/instance-type",
                                       "beta.kubernetes.io/instance-type",
                                       "kubernetes.io/os",
                                       "kubernetes.io/arch",
                                       "beta.kubernetes.io/os",
                                       "beta.kubernetes.io/arch",
                                       "node.kubernetes.io/windows-build"};
constexpr std::array kKubeletDomains = {"kubelet.kubernetes.io", "node.kubernetes.io"};

bool in_domain(std::string_view name, std::string_view domain) {
  return name == domain ||
         (name.size() > domain.size() && name.ends_with(domain) && name[name.size() - domain.size() - 1] == '.');
}

bool is_kubelets(std::string_view label, std::string_view domain) {
  for (const char* known : kKubeletLabels)
    if (label == known) return true;
  for (const char* known : kKubeletDomains)
    if (in_domain(domain, known)) return true;
  return false;
}

bool is_forbidden(std::string_view label) {
  size_t slash = label.find('/');
  std::string_view domain = slash == label.npos ? std::string_view() : label.substr(0, slash);
  if (in_domain(domain, kRestrictedDomain)) return true;
  return (in_domain(domain, "kubernetes.io") || in_domain(domain, "k8s.io")) && !is_kubelets(label, domain);
}

// The changed labels that a node may not change, sorted, separated by commas; "" if there are none.
std::string forbidden_changes(const json::object& now, const json::object& before) {
  std::set<std::string> changed;
  auto differ = [&](const json::object& a, const json::object& b) {
    for (const auto& label : a)
      if (const json::value* other = b.if_contains(label.key()); !other || *other != label.value()) changed.emplace(label.key());
  };
  differ(now, before), differ(before, now);
  std::vector<std::string> out;
  for (const std::string& label : changed)
    if (is_forbidden(label)) out.push_back(label);
  return join(out, ", ");
}

const char* verb_of(Operation operation) {
  switch (operation) {
    case Operation::create: return "CREATE";
    case Operation::update: return "UPDATE";
    case Operation::remove: return "DELETE";
  }
  return "";
}

class Restriction {  // checks one request of one node
 public:
  Restriction(const Request& request, const ClusterState& cluster, std::string node)
      : request_(request), cluster_(cluster), node_(std::move(node)), by_("node " + coracle::quoted(node_)) {}

  Result<void> check() const {
    const Kind& kind = request_.kind;
    if (kind == kPod) {
      if (request_.subresource.empty()) return pod();
      if (request_.subresource == "status") return pod_status();
      if (request_.subresource == "eviction") return eviction();
      return refuse(request_, "unexpected pod subresource " + coracle::quoted(request_.subresource) +
                                  ", only 'status' and 'eviction' are allowed");
    }
    if (kind == kNode) return node();
    if (kind == kPersistentVolumeClaim)
      return request_.subresource == "status" ? claim_status() : refuse(request_, "may only update PVC status");
    if (kind == kServiceAccount) return token();
    if (kind == kLease) return lease();
    if (kind == kCSINode && name() != node_)
      return refuse(request_, "can only access CSINode with the same name as the requesting node");
    if (kind == kResourceSlice) return resource_slice();
    return {};
  }

 private:
  std::string name() const {
    if (!request_.key.name.empty() || !request_.object) return request_.key.name;
    return std::string(metadata_of(*request_.object).name());
  }
  const json::value& object() const { return *request_.object; }
  const json::value& old() const { return request_.old->json(); }
  std::string_view node_of_pod() const { return view::Pod(old()).spec().node_name(); }
  std::string unexpected(bool quotes) const {
    std::string verb = verb_of(request_.operation);
    return "unexpected operation " + (quotes ? coracle::quoted(verb) : verb);
  }

  Result<void> pod() const {
    if (request_.operation == Operation::create) return new_pod();
    if (request_.operation == Operation::update)
      return refuse(request_, unexpected(true) + ", " + by_ + " can only create and delete mirror pods");
    if (node_of_pod() != node_) return refuse(request_, by_ + " can only delete pods with spec.nodeName set to itself");
    return {};
  }

  Result<void> new_pod() const {
    view::Pod pod(object());
    if (!is_mirror(pod))
      return refuse(request_, "pod does not have " + coracle::quoted(kMirrorAnnotation) + " annotation, " + by_ +
                                  " can only create mirror pods");
    if (pod.spec().node_name() != node_) return refuse(request_, by_ + " can only create pods with spec.nodeName set to itself");
    TRY(owner(pod.metadata().owner_references()));
    return references(pod.spec());
  }

  Result<void> owner(view::Range<view::OwnerReference> owners) const {
    if (owners.size() > 1) return refuse(request_, by_ + " can only create pods with a single owner reference set to itself");
    bool ours = owners.size() == 1 && owners[0].api_version() == "v1" && owners[0].kind() == "Node" && owners[0].name() == node_;
    if (!ours) return refuse(request_, by_ + " can only create pods with an owner reference set to itself");
    if (!owners[0].controller())
      return refuse(request_, by_ + " can only create pods with a controller owner reference set to itself");
    if (owners[0].block_owner_deletion()) return refuse(request_, by_ + " must not set blockOwnerDeletion on an owner reference");
    ObjectPtr node = cluster_.get(kNode, {"", node_});
    if (!node) return not_found(kNode, node_);
    std::string uid(owners[0].uid());
    if (uid != node->uid()) return refuse(request_, "node " + node_ + " UID mismatch: expected " + uid + " got " + node->uid());
    return {};
  }

  // Objects that a node's own pods (mirror pods) may not refer to.
  Result<void> references(view::PodSpec spec) const {
    auto cannot = [&](const char* what) { return refuse(request_, by_ + " can not create pods that reference " + what); };
    if (!spec.service_account_name().empty()) return cannot("a service account");
    bool secrets = false, config_maps = false;
    visit_secrets(spec, [&](std::string_view) { secrets = true; });
    visit_config_maps(spec, [&](std::string_view) { config_maps = true; });
    if (secrets) return cannot("secrets");
    if (config_maps) return cannot("configmaps");
    for (view::Volume volume : spec.volumes())
      for (view::VolumeProjection source : volume.projected().sources())
        if (source.has_cluster_trust_bundle()) return cannot("clustertrustbundles");
    for (view::Volume volume : spec.volumes())
      if (volume.has_persistent_volume_claim()) return cannot("persistentvolumeclaims");
    if (!spec.resource_claims().empty()) return cannot("resourceclaims");
    return {};
  }

  Result<void> pod_status() const {
    if (request_.operation != Operation::update) return refuse(request_, unexpected(true));
    if (node_of_pod() != node_)
      return refuse(request_, by_ + " can only update pod status for pods with spec.nodeName set to itself");
    view::Pod before(old()), now(object());
    if (!same_json(before.metadata().labels(), now.metadata().labels()))
      return refuse(request_, by_ + " cannot update labels through pod status");
    if (!same_json(before.status().resource_claim_statuses().raw(), now.status().resource_claim_statuses().raw()))
      return refuse(request_, by_ + " cannot update resource claim statues");
    if (!same_json(before.status().extended_resource_claim_status().raw(), now.status().extended_resource_claim_status().raw()))
      return refuse(request_, by_ + " cannot update extended resource claim status");
    return {};
  }

  Result<void> eviction() const {
    if (request_.operation != Operation::create) return refuse(request_, unexpected(false));
    ObjectPtr pod = cluster_.get(kPod, request_.key);
    if (!pod) return not_found(kPod, request_.key.name);
    if (view::Pod(*pod).spec().node_name() != node_)
      return refuse(request_, "node " + node_ + " can only evict pods with spec.nodeName set to itself");
    return {};
  }

  Result<void> node() const {
    if (name() != node_) return refuse(request_, by_ + " is not allowed to modify node " + coracle::quoted(name()));
    static const json::object none;
    view::Node now(request_.object), before(request_.old ? &old() : nullptr);
    if (request_.operation == Operation::create) {
      if (now.spec().has_config_source())
        return refuse(request_, by_ + " is not allowed to create pods with a non-nil configSource");
      std::string labels = forbidden_changes(now.metadata().labels(), none);
      if (!labels.empty()) return refuse(request_, by_ + " is not allowed to set the following labels: " + labels);
      if (!now.metadata().owner_references().empty()) return refuse(request_, by_ + " is not allowed to set ownerReferences");
    }
    if (request_.operation != Operation::update) return {};
    if (now.spec().has_config_source() && !same_json(now.spec().config_source().raw(), before.spec().config_source().raw()))
      return refuse(request_, by_ + " is not allowed to update configSource to a new non-nil configSource");
    if (!same_json(now.spec().taints().raw(), before.spec().taints().raw()))
      return refuse(request_, by_ + " is not allowed to modify taints");
    std::string labels = forbidden_changes(now.metadata().labels(), before.metadata().labels());
    if (!labels.empty()) return refuse(request_, "is not allowed to modify labels: " + labels);
    // Owner references are rejected: with a missing owner the garbage collector would delete the Node, which could then register
    // again without its taints.
    if (!same_json(now.metadata().owner_references().raw(), before.metadata().owner_references().raw()))
      return refuse(request_, by_ + " is not allowed to modify ownerReferences");
    return {};
  }

  Result<void> claim_status() const {
    if (request_.operation != Operation::update) return refuse(request_, unexpected(true));
    auto rest = [](json::value claim) {
      claim.get_object()["metadata"].get_object().erase("resourceVersion");
      claim.get_object()["metadata"].get_object().erase("managedFields");
      if (json::value* status = claim.get_object().if_contains("status"); status && status->is_object()) {
        for (const char* own : {"capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"})
          status->get_object().erase(own);
        if (status->get_object().empty()) claim.get_object().erase("status");
      }
      return claim;
    };
    if (!same_json(rest(old()), rest(object())))
      return refuse(request_, by_ + " is not allowed to update fields other than status.capacity and status.conditions");
    return {};
  }

  Result<void> token() const {
    if (request_.operation != Operation::create || request_.subresource != "token") return {};
    view::TokenRequestSpec wanted = view::TokenRequest(object()).spec();
    view::BoundObjectReference reference = wanted.bound_object_ref();
    bool to_pod = reference.api_version() == "v1" && reference.kind() == "Pod" && !reference.name().empty();
    if (!to_pod) return refuse(request_, "node requested token not bound to a pod");
    std::string uid(reference.uid()), pod_name(reference.name());
    if (uid.empty()) return refuse(request_, "node requested token with a pod binding without a uid");
    ObjectPtr pod = cluster_.get(kPod, {request_.key.ns, pod_name});
    if (!pod) return not_found(kPod, pod_name);
    if (uid != pod->uid())
      return refuse(request_, "the UID in the bound object reference (" + uid +
                                  ") does not match the UID in record. The object might have been deleted and then recreated");
    if (view::Pod(*pod).spec().node_name() != node_)
      return refuse(request_, "node requested token bound to a pod scheduled on a different node");
    return audience(wanted.audiences(), *pod);
  }

  // A node may request tokens for audiences that a pod on it needs: in a projected volume, or for a CSI driver.
  Result<void> audience(view::Range<std::string_view> audiences, const Object& pod) const {
    if (audiences.size() > 1) return refuse(request_, "node may only request 0 or 1 audiences");
    std::string asked(audiences.empty() ? std::string_view() : audiences[0]);
    for (view::Volume volume : view::Pod(pod).spec().volumes()) {
      for (view::VolumeProjection source : volume.projected().sources())
        if (source.has_service_account_token() && source.service_account_token().audience() == asked) return {};
      ObjectPtr driver = driver_of(pod, volume);
      if (!driver) continue;
      for (view::StorageTokenRequest request : view::CSIDriver(*driver).spec().token_requests())
        if (request.audience() == asked) return {};
    }
    return refuse(request_, "audience " + coracle::quoted(asked) + " not found in pod spec volume");
  }

  // The CSIDriver of a pod's volume; null if there is none.
  ObjectPtr driver_of(const Object& pod, view::Volume volume) const {
    std::string name(volume.csi().driver()), claim(volume.persistent_volume_claim().claim_name());
    if (volume.has_ephemeral()) claim = pod.name() + "-" + std::string(volume.name());
    ObjectPtr bound = claim.empty() ? nullptr : cluster_.get(kPersistentVolumeClaim, {request_.key.ns, claim});
    std::string volume_name(bound ? view::PersistentVolumeClaim(*bound).spec().volume_name() : std::string_view());
    ObjectPtr persistent = volume_name.empty() ? nullptr : cluster_.get(kPersistentVolume, {"", volume_name});
    if (persistent) name = view::PersistentVolume(*persistent).spec().csi().driver();
    return name.empty() ? nullptr : cluster_.get(kCSIDriver, {"", name});
  }

  Result<void> resource_slice() const {
    if (request_.operation == Operation::update) return {};  // its node name is immutable
    bool creates = request_.operation == Operation::create;
    const json::value& slice = creates ? object() : old();
    if (view::ResourceSlice(slice).spec().node_name() == node_) return {};
    return refuse(request_, std::string("can only ") + (creates ? "create" : "delete") +
                                " ResourceSlice with the same NodeName as the requesting node");
  }

  Result<void> lease() const {
    if (request_.key.ns != "kube-node-lease")
      return refuse(request_, "can only access leases in the \"kube-node-lease\" system namespace");
    if (name() != node_) return refuse(request_, "can only access node lease with the same name as the requesting node");
    return {};
  }

  const Request& request_;
  const ClusterState& cluster_;
  const std::string node_, by_;
};

class NodeRestriction : public Plugin {
 public:
  std::string_view name() const override { return "NodeRestriction"; }

  Result<void> admit(Request& request, const ClusterState& cluster) const override {
    const User& user = request.user;
    if (!user.in(kNodesGroup) || !user.name.starts_with(kNodePrefix)) return {};
    std::string node = user.name.substr(kNodePrefix.size());
    if (node.empty()) return refuse(request, "could not determine node from user " + coracle::quoted(user.name));
    return Restriction(request, cluster, std::move(node)).check();
  }
};

}  // namespace

std::unique_ptr<Plugin> make_node_restriction() { return std::make_unique<NodeRestriction>(); }

}  // namespace coracle::admission
