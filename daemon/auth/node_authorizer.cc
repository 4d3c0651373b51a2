// SPDX-License-Identifier: Apache-2.0
// See node_authorizer.h.
#include "daemon/auth/node_authorizer.h"

#include <algorithm>

#include "daemon/auth/default_roles.h"
#include "runtime/base/text.h"
#include "store/kinds/pod/pod_references.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/object.h"
#include "store/object/selector.h"
#include "store/schema/views.h"

namespace coracle::auth {
namespace {

constexpr std::string_view kPrefix = "system:node:", kNodes = "system:nodes", kLeases = "kube-node-lease";

bool one_of(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

NodeDecision no(std::string reason = {}) { return {false, std::move(reason)}; }
NodeDecision unrelated(const std::string& node) {
  return no("no relationship found between node '" + node + "' and this object");
}
const NodeDecision kAllowed{true, {}};

// By the permissions that do not depend on the node's pods.
NodeDecision by_rules(const Attributes& asked) {
  for (const Rule& rule : node_rules())
    if (allows(rule, asked)) return kAllowed;
  return no();
}

bool selects(const Attributes& asked, std::string_view field, const std::string& value) {
  auto selector = FieldSelector::parse(asked.field_selector);
  return selector && selector->required(field) == std::optional<std::string_view>(value);
}

bool refers_to_secret(view::PodSpec pod, std::string_view name) {
  bool any = false;
  visit_secrets(pod, [&](std::string_view one) { any |= one == name; });
  return any;
}

bool refers_to_config_map(view::PodSpec pod, std::string_view name) {
  bool any = false;
  visit_config_maps(pod, [&](std::string_view one) { any |= one == name; });
  return any;
}

bool refers_to_claim(view::Pod pod, std::string_view name) {
  for (view::Volume volume : pod.spec().volumes()) {
    if (volume.persistent_volume_claim().claim_name() == name) return true;
    std::string own = std::string(pod.metadata().name()) + "-" + std::string(volume.name());
    if (volume.has_ephemeral() && own == name) return true;
  }
  return false;
}

bool refers_to_resource_claim(view::Pod pod, std::string_view name) {
  for (view::PodResourceClaim claim : pod.spec().resource_claims())
    if (claim.resource_claim_name() == name) return true;
  for (view::PodResourceClaimStatus claim : pod.status().resource_claim_statuses())
    if (claim.resource_claim_name() == name) return true;
  return false;
}

}  // namespace

std::optional<std::string> node_identity(const User& user) {
  if (!user.name.starts_with(kPrefix) || !user.in(kNodes)) return {};
  return user.name.substr(kPrefix.size());
}

// Whether a pod on the node, other than those that the node itself created, refers to the object.
bool NodeAuthorizer::related(const std::string& node, const Attributes& asked) const {
  registry::ListRequest request;
  request.options.ns = asked.resource == "persistentvolumes" || asked.resource == "volumeattachments" ? "" : asked.ns;
  request.options.field_selector = "spec.nodeName=" + node;
  auto page = registry_.list(kPod, request);
  if (!page) return false;
  for (const ObjectPtr& object : page->items) {
    view::Pod pod(*object);
    if (asked.resource == "pods" && object->name() == asked.name) return true;
    if (is_mirror(pod)) continue;
    if (asked.resource == "secrets" && refers_to_secret(pod.spec(), asked.name)) return true;
    if (asked.resource == "configmaps" && refers_to_config_map(pod.spec(), asked.name)) return true;
    if (asked.resource == "persistentvolumeclaims" && refers_to_claim(pod, asked.name)) return true;
    if (asked.resource == "resourceclaims" && refers_to_resource_claim(pod, asked.name)) return true;
    if (asked.resource == "serviceaccounts" && pod.spec().service_account_name() == asked.name) return true;
    if (asked.resource != "persistentvolumes") continue;
    for (view::Volume volume : pod.spec().volumes()) {
      std::string name(volume.persistent_volume_claim().claim_name());
      if (name.empty()) continue;
      auto claim = registry_.get(kPersistentVolumeClaim, {object->ns(), name});
      if (claim && view::PersistentVolumeClaim(**claim).spec().volume_name() == asked.name) return true;
    }
  }
  return false;
}

NodeDecision NodeAuthorizer::if_related(const std::string& node, const Attributes& asked) const {
  if (asked.name.empty()) return no("No Object name found");
  if (related(node, asked)) return kAllowed;
  return unrelated(node);
}

NodeDecision NodeAuthorizer::get_if_related(const std::string& node, const Attributes& asked) const {
  if (asked.verb != "get") return no("can only get individual resources of this type");
  if (!asked.subresource.empty()) return no("cannot get subresource");
  return if_related(node, asked);
}

// Secrets and ConfigMaps.
NodeDecision NodeAuthorizer::read_if_related(const std::string& node, const Attributes& asked) const {
  if (!one_of(asked.verb, {"get", "list", "watch"})) return no("can only read resources of this type");
  if (!asked.subresource.empty()) return no("cannot read subresource");
  if (asked.ns.empty()) return no("can only read namespaced object of this type");
  return if_related(node, asked);
}

NodeDecision NodeAuthorizer::of_claim(const std::string& node, const Attributes& asked) const {
  if (asked.subresource != "status") return get_if_related(node, asked);
  if (!one_of(asked.verb, {"update", "patch"})) return no("can only get/update/patch this type");
  return if_related(node, asked);
}

NodeDecision NodeAuthorizer::of_attachment(const std::string& node, const Attributes& asked) const {
  if (asked.verb != "get") return no("can only get individual resources of this type");
  if (!asked.subresource.empty()) return no("cannot get subresource");
  auto found = registry_.get(kVolumeAttachment, {"", asked.name});
  if (found && view::VolumeAttachment(**found).spec().node_name() == node) return kAllowed;
  return unrelated(node);
}

NodeDecision NodeAuthorizer::of_account(const std::string& node, const Attributes& asked) const {
  if (asked.verb != "create" || asked.subresource != "token") return no("can only create tokens for individual service accounts");
  return if_related(node, asked);
}

NodeDecision NodeAuthorizer::of_lease(const std::string& node, const Attributes& asked) const {
  if (!one_of(asked.verb, {"get", "create", "update", "patch", "delete"}))
    return no("can only get, create, update, patch, or delete a node lease");
  if (asked.ns != kLeases) return no("can only access leases in the \"" + std::string(kLeases) + "\" system namespace");
  if (asked.verb != "create" && asked.name != node)
    return no("can only access node lease with the same name as the requesting node");
  return kAllowed;
}

NodeDecision NodeAuthorizer::of_csi_node(const std::string& node, const Attributes& asked) const {
  if (!one_of(asked.verb, {"get", "create", "update", "patch", "delete"}))
    return no("can only get, create, update, patch, or delete a CSINode");
  if (!asked.subresource.empty()) return no("cannot authorize CSINode subresources");
  if (asked.verb != "create" && asked.name != node)
    return no("can only access CSINode with the same name as the requesting node");
  return kAllowed;
}

NodeDecision NodeAuthorizer::of_resource_slice(const std::string& node, const Attributes& asked) const {
  if (!asked.subresource.empty()) return no("cannot authorize ResourceSlice subresources");
  if (asked.verb == "create") return kAllowed;
  if (one_of(asked.verb, {"list", "watch", "deletecollection"}))
    return selects(asked, "spec.nodeName", node)
               ? kAllowed
               : no("can only list/watch/deletecollection resourceslices with spec.nodeName field selector");
  auto found = registry_.get(kResourceSlice, {"", asked.name});
  if (found && view::ResourceSlice(**found).spec().node_name() == node) return kAllowed;
  return unrelated(node);
}

NodeDecision NodeAuthorizer::of_node(const std::string& node, const Attributes& asked) const {
  if (asked.subresource == "status" && one_of(asked.verb, {"update", "patch"})) return kAllowed;
  if (!asked.subresource.empty()) return no();
  if (one_of(asked.verb, {"create", "update", "patch"})) return kAllowed;
  if (!one_of(asked.verb, {"get", "list", "watch"})) return no();
  if (asked.name == node || (asked.name.empty() && selects(asked, "metadata.name", node))) return kAllowed;
  return no("node '" + node + "' cannot read '" + asked.name + "', only its own Node object");
}

NodeDecision NodeAuthorizer::of_pod(const std::string& node, const Attributes& asked) const {
  if (asked.subresource == "status" && one_of(asked.verb, {"update", "patch"})) return kAllowed;
  if (asked.subresource == "eviction" && asked.verb == "create") return kAllowed;
  if (!asked.subresource.empty()) return no();
  if (asked.verb == "get") return if_related(node, asked);
  if (one_of(asked.verb, {"create", "delete"})) return kAllowed;
  if (one_of(asked.verb, {"list", "watch"}))
    return selects(asked, "spec.nodeName", node) ? kAllowed : no("can only list/watch pods with spec.nodeName field selector");
  return no();
}

NodeDecision NodeAuthorizer::of_resource(const std::string& node, const Attributes& asked) const {
  struct Row {
    std::string_view group, resource;
    NodeDecision (NodeAuthorizer::*decide)(const std::string& node, const Attributes& asked) const;
  };
  static constexpr Row kTable[] = {
      {"", "secrets", &NodeAuthorizer::read_if_related},
      {"", "configmaps", &NodeAuthorizer::read_if_related},
      {"", "persistentvolumeclaims", &NodeAuthorizer::of_claim},
      {"", "persistentvolumes", &NodeAuthorizer::get_if_related},
      {"resource.k8s.io", "resourceclaims", &NodeAuthorizer::get_if_related},
      {"storage.k8s.io", "volumeattachments", &NodeAuthorizer::of_attachment},
      {"", "serviceaccounts", &NodeAuthorizer::of_account},
      {"coordination.k8s.io", "leases", &NodeAuthorizer::of_lease},
      {"storage.k8s.io", "csinodes", &NodeAuthorizer::of_csi_node},
      {"resource.k8s.io", "resourceslices", &NodeAuthorizer::of_resource_slice},
      {"", "nodes", &NodeAuthorizer::of_node},
      {"", "pods", &NodeAuthorizer::of_pod},
  };
  for (const Row& row : kTable)
    if (asked.group == row.group && asked.resource == row.resource) return (this->*row.decide)(node, asked);
  return by_rules(asked);
}

std::optional<NodeDecision> NodeAuthorizer::authorize(const User& user, const Attributes& asked) const {
  auto node = node_identity(user);
  if (!node) return {};
  if (node->empty()) return no("unknown node for user " + coracle::quoted(std::string_view(user.name)));
  return asked.is_resource ? of_resource(*node, asked) : by_rules(asked);
}

}  // namespace coracle::auth
