// SPDX-License-Identifier: Apache-2.0
// NodeRestriction: limits a node (user system:node:NAME in the group system:nodes) to its own Node object and its pods, without
// changes that would attract other pods. Source: Kubernetes plugin/pkg/admission/noderestriction.
#include <array>
#include <set>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::admission {
namespace {

constexpr std::string_view kNodesGroup = "system:nodes", kNodePrefix = "system:node:";
constexpr Kind kCSIDrivers{"storage.k8s.io", "v1", "CSIDriver", "csidrivers", false};
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
    return std::string(get_string(*request_.object, "metadata.name"));
  }
  const json::value& object() const { return *request_.object; }
  const json::value& old() const { return request_.old->json(); }
  static const json::value& part(const json::value& root, std::string_view path) {
    static const json::value none;
    const json::value* found = find(root, path);
    return found ? *found : none;
  }
  std::string unexpected(bool quotes) const {
    std::string verb = verb_of(request_.operation);
    return "unexpected operation " + (quotes ? coracle::quoted(verb) : verb);
  }

  Result<void> pod() const {
    if (request_.operation == Operation::create) return new_pod();
    if (request_.operation == Operation::update)
      return refuse(request_, unexpected(true) + ", " + by_ + " can only create and delete mirror pods");
    if (get_string(old(), "spec.nodeName") != node_)
      return refuse(request_, by_ + " can only delete pods with spec.nodeName set to itself");
    return {};
  }

  Result<void> new_pod() const {
    if (!is_mirror(view::Pod(object())))
      return refuse(request_, "pod does not have " + coracle::quoted(kMirrorAnnotation) + " annotation, " + by_ +
                                  " can only create mirror pods");
    if (get_string(object(), "spec.nodeName") != node_)
      return refuse(request_, by_ + " can only create pods with spec.nodeName set to itself");
    TRY(owner());
    return references();
  }

  Result<void> owner() const {
    const json::array& owners = get_array(object(), "metadata.ownerReferences");
    if (owners.size() > 1) return refuse(request_, by_ + " can only create pods with a single owner reference set to itself");
    bool ours = owners.size() == 1 && get_string(owners[0], "apiVersion") == "v1" && get_string(owners[0], "kind") == "Node" &&
                get_string(owners[0], "name") == node_;
    if (!ours) return refuse(request_, by_ + " can only create pods with an owner reference set to itself");
    if (!get_bool(owners[0], "controller"))
      return refuse(request_, by_ + " can only create pods with a controller owner reference set to itself");
    if (get_bool(owners[0], "blockOwnerDeletion"))
      return refuse(request_, by_ + " must not set blockOwnerDeletion on an owner reference");
    ObjectPtr node = cluster_.get(kNode, {"", node_});
    if (!node) return not_found(kNode, node_);
    std::string uid(get_string(owners[0], "uid"));
    if (uid != node->uid()) return refuse(request_, "node " + node_ + " UID mismatch: expected " + uid + " got " + node->uid());
    return {};
  }

  // Objects that a node's own pods (mirror pods) may not refer to.
  Result<void> references() const {
    auto cannot = [&](const char* what) { return refuse(request_, by_ + " can not create pods that reference " + what); };
    if (!get_string(object(), "spec.serviceAccountName").empty()) return cannot("a service account");
    bool secrets = false, config_maps = false;
    const json::value& spec = *find(object(), "spec");
    visit_secrets(spec, [&](std::string_view) { secrets = true; });
    visit_config_maps(spec, [&](std::string_view) { config_maps = true; });
    if (secrets) return cannot("secrets");
    if (config_maps) return cannot("configmaps");
    for (const json::value& volume : get_array(spec, "volumes"))
      for (const json::value& source : get_array(volume, "projected.sources"))
        if (find(source, "clusterTrustBundle")) return cannot("clustertrustbundles");
    for (const json::value& volume : get_array(spec, "volumes"))
      if (find(volume, "persistentVolumeClaim")) return cannot("persistentvolumeclaims");
    if (!get_array(spec, "resourceClaims").empty()) return cannot("resourceclaims");
    return {};
  }

  Result<void> pod_status() const {
    if (request_.operation != Operation::update) return refuse(request_, unexpected(true));
    if (get_string(old(), "spec.nodeName") != node_)
      return refuse(request_, by_ + " can only update pod status for pods with spec.nodeName set to itself");
    if (get_object(old(), "metadata.labels") != get_object(object(), "metadata.labels"))
      return refuse(request_, by_ + " cannot update labels through pod status");
    if (get_array(old(), "status.resourceClaimStatuses") != get_array(object(), "status.resourceClaimStatuses"))
      return refuse(request_, by_ + " cannot update resource claim statues");
    if (part(old(), "status.extendedResourceClaimStatus") != part(object(), "status.extendedResourceClaimStatus"))
      return refuse(request_, by_ + " cannot update extended resource claim status");
    return {};
  }

  Result<void> eviction() const {
    if (request_.operation != Operation::create) return refuse(request_, unexpected(false));
    ObjectPtr pod = cluster_.get(kPod, request_.key);
    if (!pod) return not_found(kPod, request_.key.name);
    if (get_string(pod->json(), "spec.nodeName") != node_)
      return refuse(request_, "node " + node_ + " can only evict pods with spec.nodeName set to itself");
    return {};
  }

  Result<void> node() const {
    if (name() != node_) return refuse(request_, by_ + " is not allowed to modify node " + coracle::quoted(name()));
    static const json::object none;
    if (request_.operation == Operation::create) {
      if (find(object(), "spec.configSource"))
        return refuse(request_, by_ + " is not allowed to create pods with a non-nil configSource");
      std::string labels = forbidden_changes(get_object(object(), "metadata.labels"), none);
      if (!labels.empty()) return refuse(request_, by_ + " is not allowed to set the following labels: " + labels);
      if (!get_array(object(), "metadata.ownerReferences").empty())
        return refuse(request_, by_ + " is not allowed to set ownerReferences");
    }
    if (request_.operation != Operation::update) return {};
    if (find(object(), "spec.configSource") &&
        *find(object(), "spec.configSource") !=
            (find(old(), "spec.configSource") ? *find(old(), "spec.configSource") : json::value()))
      return refuse(request_, by_ + " is not allowed to update configSource to a new non-nil configSource");
    if (get_array(object(), "spec.taints") != get_array(old(), "spec.taints"))
      return refuse(request_, by_ + " is not allowed to modify taints");
    std::string labels = forbidden_changes(get_object(object(), "metadata.labels"), get_object(old(), "metadata.labels"));
    if (!labels.empty()) return refuse(request_, "is not allowed to modify labels: " + labels);
    // Owner references are rejected: with a missing owner the garbage collector would delete the Node, which could then register
    // again without its taints.
    if (get_array(object(), "metadata.ownerReferences") != get_array(old(), "metadata.ownerReferences"))
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
    if (rest(old()) != rest(object()))
      return refuse(request_, by_ + " is not allowed to update fields other than status.capacity and status.conditions");
    return {};
  }

  Result<void> token() const {
    if (request_.operation != Operation::create || request_.subresource != "token") return {};
    const json::value* reference = find(object(), "spec.boundObjectRef");
    bool to_pod = reference && get_string(*reference, "apiVersion") == "v1" && get_string(*reference, "kind") == "Pod" &&
                  !get_string(*reference, "name").empty();
    if (!to_pod) return refuse(request_, "node requested token not bound to a pod");
    std::string uid(get_string(*reference, "uid")), pod_name(get_string(*reference, "name"));
    if (uid.empty()) return refuse(request_, "node requested token with a pod binding without a uid");
    ObjectPtr pod = cluster_.get(kPod, {request_.key.ns, pod_name});
    if (!pod) return not_found(kPod, pod_name);
    if (uid != pod->uid())
      return refuse(request_, "the UID in the bound object reference (" + uid +
                                  ") does not match the UID in record. The object might have been deleted and then recreated");
    if (get_string(pod->json(), "spec.nodeName") != node_)
      return refuse(request_, "node requested token bound to a pod scheduled on a different node");
    return audience(*pod);
  }

  // A node may request tokens for audiences that a pod on it needs: in a projected volume, or for a CSI driver.
  Result<void> audience(const Object& pod) const {
    const json::array& audiences = get_array(object(), "spec.audiences");
    if (audiences.size() > 1) return refuse(request_, "node may only request 0 or 1 audiences");
    json::value wanted = audiences.empty() ? json::value("") : audiences[0];
    std::string asked(wanted.is_string() ? std::string_view(wanted.get_string()) : std::string_view());
    for (const json::value& volume : get_array(pod.json(), "spec.volumes")) {
      for (const json::value& source : get_array(volume, "projected.sources"))
        if (find(source, "serviceAccountToken") && get_string(source, "serviceAccountToken.audience") == asked) return {};
      const json::value driver = driver_of(pod, volume);
      for (const json::value& request : get_array(driver, "spec.tokenRequests"))
        if (get_string(request, "audience") == asked) return {};
    }
    return refuse(request_, "audience " + coracle::quoted(asked) + " not found in pod spec volume");
  }

  // The CSIDriver of a pod's volume; null if there is none.
  json::value driver_of(const Object& pod, const json::value& volume) const {
    std::string name(get_string(volume, "csi.driver")), claim(get_string(volume, "persistentVolumeClaim.claimName"));
    if (find(volume, "ephemeral")) claim = pod.name() + "-" + std::string(get_string(volume, "name"));
    ObjectPtr bound = claim.empty() ? nullptr : cluster_.get(kPersistentVolumeClaim, {request_.key.ns, claim});
    std::string volume_name(bound ? get_string(bound->json(), "spec.volumeName") : std::string_view());
    ObjectPtr persistent = volume_name.empty() ? nullptr : cluster_.get(kPersistentVolume, {"", volume_name});
    if (persistent) name = get_string(persistent->json(), "spec.csi.driver");
    ObjectPtr driver = name.empty() ? nullptr : cluster_.get(kCSIDrivers, {"", name});
    return driver ? driver->json() : json::value();
  }

  Result<void> resource_slice() const {
    if (request_.operation == Operation::update) return {};  // its node name is immutable
    bool creates = request_.operation == Operation::create;
    const json::value& slice = creates ? object() : old();
    if (get_string(slice, "spec.nodeName") == node_) return {};
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
