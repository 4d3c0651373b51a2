// SPDX-License-Identifier: Apache-2.0
// See node_authorizer.h.
#include "daemon/auth/node_authorizer.h"

#include <algorithm>

#include "daemon/auth/default_roles.h"
#include "runtime/base/text.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/object.h"
#include "store/object/selector.h"

namespace coracle::auth {
namespace {

constexpr std::string_view kPrefix = "system:node:", kNodes = "system:nodes", kLeases = "kube-node-lease";

bool one_of(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

NodeDecision no(std::string reason = {}) { return {false, std::move(reason)}; }
const NodeDecision kAllowed{true, {}};

bool selects(const Attributes& asked, std::string_view field, const std::string& value) {
  auto selector = FieldSelector::parse(asked.field_selector);
  return selector && selector->required(field) == std::optional<std::string_view>(value);
}

bool names_it(const json::value& object, std::string_view path, const std::string& name) {
  return get_string(object, path) == name;
}

bool container_refers(const json::value& container, std::string_view from_key, std::string_view from_source,
                      const std::string& name) {
  for (const json::value& variable : get_array(container, "env"))
    if (names_it(variable, "valueFrom." + std::string(from_key) + ".name", name)) return true;
  for (const json::value& source : get_array(container, "envFrom"))
    if (names_it(source, std::string(from_source) + ".name", name)) return true;
  return false;
}

bool any_container_refers(const json::value& pod, std::string_view from_key, std::string_view from_source,
                          const std::string& name) {
  for (std::string_view list : {"spec.containers", "spec.initContainers", "spec.ephemeralContainers"})
    for (const json::value& container : get_array(pod, list))
      if (container_refers(container, from_key, from_source, name)) return true;
  return false;
}

bool refers_to_secret(const json::value& pod, const std::string& name) {
  for (const json::value& pull : get_array(pod, "spec.imagePullSecrets"))
    if (names_it(pull, "name", name)) return true;
  for (const json::value& volume : get_array(pod, "spec.volumes")) {
    if (names_it(volume, "secret.secretName", name)) return true;
    for (std::string_view driver : {"azureFile.secretName", "cephfs.secretRef.name", "cinder.secretRef.name",
                                    "flexVolume.secretRef.name", "rbd.secretRef.name", "scaleIO.secretRef.name",
                                    "iscsi.secretRef.name", "storageos.secretRef.name", "csi.nodePublishSecretRef.name"})
      if (names_it(volume, driver, name)) return true;
    for (const json::value& source : get_array(volume, "projected.sources"))
      if (names_it(source, "secret.name", name)) return true;
  }
  return any_container_refers(pod, "secretKeyRef", "secretRef", name);
}

bool refers_to_config_map(const json::value& pod, const std::string& name) {
  for (const json::value& volume : get_array(pod, "spec.volumes")) {
    if (names_it(volume, "configMap.name", name)) return true;
    for (const json::value& source : get_array(volume, "projected.sources"))
      if (names_it(source, "configMap.name", name)) return true;
  }
  return any_container_refers(pod, "configMapKeyRef", "configMapRef", name);
}

bool refers_to_claim(const json::value& pod, const std::string& name) {
  for (const json::value& volume : get_array(pod, "spec.volumes")) {
    if (names_it(volume, "persistentVolumeClaim.claimName", name)) return true;
    std::string own = std::string(get_string(pod, "metadata.name")) + "-" + std::string(get_string(volume, "name"));
    if (volume.is_object() && volume.get_object().contains("ephemeral") && own == name) return true;
  }
  return false;
}

bool refers_to_resource_claim(const json::value& pod, const std::string& name) {
  for (const json::value& claim : get_array(pod, "spec.resourceClaims"))
    if (names_it(claim, "resourceClaimName", name)) return true;
  for (const json::value& claim : get_array(pod, "status.resourceClaimStatuses"))
    if (names_it(claim, "resourceClaimName", name)) return true;
  return false;
}

bool runs_as(const json::value& pod, const std::string& account) {
  std::string_view named = get_string(pod, "spec.serviceAccountName");
  return named == account;
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
  for (const ObjectPtr& pod : page->items) {
    const json::value& body = pod->json();
    if (asked.resource == "pods" && pod->name() == asked.name) return true;
    if (is_mirror(view::Pod(body))) continue;
    if (asked.resource == "secrets" && refers_to_secret(body, asked.name)) return true;
    if (asked.resource == "configmaps" && refers_to_config_map(body, asked.name)) return true;
    if (asked.resource == "persistentvolumeclaims" && refers_to_claim(body, asked.name)) return true;
    if (asked.resource == "resourceclaims" && refers_to_resource_claim(body, asked.name)) return true;
    if (asked.resource == "serviceaccounts" && runs_as(body, asked.name)) return true;
    if (asked.resource != "persistentvolumes") continue;
    for (const json::value& volume : get_array(body, "spec.volumes")) {
      std::string name(get_string(volume, "persistentVolumeClaim.claimName"));
      if (name.empty()) continue;
      auto claim = registry_.get(kPersistentVolumeClaim, {pod->ns(), name});
      if (claim && names_it((*claim)->json(), "spec.volumeName", asked.name)) return true;
    }
  }
  return false;
}

NodeDecision NodeAuthorizer::of_resource(const std::string& node, const Attributes& asked) const {
  auto by_relation = [&]() -> NodeDecision {
    if (asked.name.empty()) return no("No Object name found");
    if (related(node, asked)) return kAllowed;
    return no("no relationship found between node '" + node + "' and this object");
  };
  auto get_only = [&]() -> NodeDecision {
    if (asked.verb != "get") return no("can only get individual resources of this type");
    if (!asked.subresource.empty()) return no("cannot get subresource");
    return by_relation();
  };
  const std::string& resource = asked.resource;
  if (asked.group.empty() && (resource == "secrets" || resource == "configmaps")) {
    if (!one_of(asked.verb, {"get", "list", "watch"})) return no("can only read resources of this type");
    if (!asked.subresource.empty()) return no("cannot read subresource");
    if (asked.ns.empty()) return no("can only read namespaced object of this type");
    return by_relation();
  }
  if (asked.group.empty() && resource == "persistentvolumeclaims" && asked.subresource == "status") {
    if (!one_of(asked.verb, {"update", "patch"})) return no("can only get/update/patch this type");
    return by_relation();
  }
  bool read_alone = (asked.group.empty() && (resource == "persistentvolumeclaims" || resource == "persistentvolumes")) ||
                    (asked.group == "resource.k8s.io" && resource == "resourceclaims");
  if (read_alone) return get_only();
  if (asked.group == "storage.k8s.io" && resource == "volumeattachments") {
    if (asked.verb != "get") return no("can only get individual resources of this type");
    if (!asked.subresource.empty()) return no("cannot get subresource");
    auto found = registry_.get(kVolumeAttachment, {"", asked.name});
    if (found && names_it((*found)->json(), "spec.nodeName", node)) return kAllowed;
    return no("no relationship found between node '" + node + "' and this object");
  }
  if (asked.group.empty() && resource == "serviceaccounts") {
    if (asked.verb != "create" || asked.subresource != "token")
      return no("can only create tokens for individual service accounts");
    return by_relation();
  }
  if (asked.group == "coordination.k8s.io" && resource == "leases") {
    if (!one_of(asked.verb, {"get", "create", "update", "patch", "delete"}))
      return no("can only get, create, update, patch, or delete a node lease");
    if (asked.ns != kLeases) return no("can only access leases in the \"" + std::string(kLeases) + "\" system namespace");
    if (asked.verb != "create" && asked.name != node)
      return no("can only access node lease with the same name as the requesting node");
    return kAllowed;
  }
  if (asked.group == "storage.k8s.io" && resource == "csinodes") {
    if (!one_of(asked.verb, {"get", "create", "update", "patch", "delete"}))
      return no("can only get, create, update, patch, or delete a CSINode");
    if (!asked.subresource.empty()) return no("cannot authorize CSINode subresources");
    if (asked.verb != "create" && asked.name != node)
      return no("can only access CSINode with the same name as the requesting node");
    return kAllowed;
  }
  if (asked.group == "resource.k8s.io" && resource == "resourceslices") {
    if (!asked.subresource.empty()) return no("cannot authorize ResourceSlice subresources");
    if (asked.verb == "create") return kAllowed;
    if (one_of(asked.verb, {"list", "watch", "deletecollection"}))
      return selects(asked, "spec.nodeName", node)
                 ? kAllowed
                 : no("can only list/watch/deletecollection resourceslices with spec.nodeName field selector");
    auto found = registry_.get(kResourceSlice, {"", asked.name});
    if (found && names_it((*found)->json(), "spec.nodeName", node)) return kAllowed;
    return no("no relationship found between node '" + node + "' and this object");
  }
  if (asked.group.empty() && resource == "nodes") {
    if (asked.subresource == "status" && one_of(asked.verb, {"update", "patch"})) return kAllowed;
    if (!asked.subresource.empty()) return no();
    if (one_of(asked.verb, {"create", "update", "patch"})) return kAllowed;
    if (!one_of(asked.verb, {"get", "list", "watch"})) return no();
    if (asked.name == node || (asked.name.empty() && selects(asked, "metadata.name", node))) return kAllowed;
    return no("node '" + node + "' cannot read '" + asked.name + "', only its own Node object");
  }
  if (asked.group.empty() && resource == "pods") {
    if (asked.subresource == "status" && one_of(asked.verb, {"update", "patch"})) return kAllowed;
    if (asked.subresource == "eviction" && asked.verb == "create") return kAllowed;
    if (!asked.subresource.empty()) return no();
    if (asked.verb == "get") return by_relation();
    if (one_of(asked.verb, {"create", "delete"})) return kAllowed;
    if (one_of(asked.verb, {"list", "watch"}))
      return selects(asked, "spec.nodeName", node) ? kAllowed : no("can only list/watch pods with spec.nodeName field selector");
    return no();
  }
  for (const Rule& rule : node_rules())
    if (allows(rule, asked)) return kAllowed;
  return no();
}

std::optional<NodeDecision> NodeAuthorizer::authorize(const User& user, const Attributes& asked) const {
  auto node = node_identity(user);
  if (!node) return {};
  if (node->empty()) return no("unknown node for user " + coracle::quoted(std::string_view(user.name)));
  if (asked.is_resource) return of_resource(*node, asked);
  for (const Rule& rule : node_rules())
    if (allows(rule, asked)) return kAllowed;
  return no();
}

}  // namespace coracle::auth
