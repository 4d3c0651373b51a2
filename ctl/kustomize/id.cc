// SPDX-License-Identifier: Apache-2.0
// See id.h. The table has the kinds of Kubernetes 1.21, since kustomize's schema has these: for a newer kind it does not know
// whether its objects are in a namespace, and assumes that they are.
#include "ctl/kustomize/id.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

struct ScopeRow {
  std::string_view api_version;
  bool namespaced;
  std::string_view kinds;
};

constexpr ScopeRow kScopes[] = {
    {"admissionregistration.k8s.io/v1", false, "MutatingWebhookConfiguration ValidatingWebhookConfiguration"},
    {"admissionregistration.k8s.io/v1beta1", false, "MutatingWebhookConfiguration ValidatingWebhookConfiguration"},
    {"apiextensions.k8s.io/v1", false, "CustomResourceDefinition"},
    {"apiextensions.k8s.io/v1beta1", false, "CustomResourceDefinition"},
    {"apiregistration.k8s.io/v1", false, "APIService"},
    {"apiregistration.k8s.io/v1beta1", false, "APIService"},
    {"apps/v1", true, "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"},
    {"autoscaling/v1", true, "HorizontalPodAutoscaler Scale"},
    {"autoscaling/v2beta1", true, "HorizontalPodAutoscaler"},
    {"autoscaling/v2beta2", true, "HorizontalPodAutoscaler"},
    {"batch/v1", true, "CronJob Job"},
    {"batch/v1beta1", true, "CronJob"},
    {"certificates.k8s.io/v1", false, "CertificateSigningRequest"},
    {"certificates.k8s.io/v1beta1", false, "CertificateSigningRequest"},
    {"coordination.k8s.io/v1", true, "Lease"},
    {"coordination.k8s.io/v1beta1", true, "Lease"},
    {"discovery.k8s.io/v1", true, "EndpointSlice"},
    {"discovery.k8s.io/v1beta1", true, "EndpointSlice"},
    {"events.k8s.io/v1", true, "Event"},
    {"events.k8s.io/v1beta1", true, "Event"},
    {"extensions/v1beta1", true, "Ingress"},
    {"flowcontrol.apiserver.k8s.io/v1beta1", false, "FlowSchema PriorityLevelConfiguration"},
    {"networking.k8s.io/v1", true, "Ingress NetworkPolicy"},
    {"networking.k8s.io/v1", false, "IngressClass"},
    {"networking.k8s.io/v1beta1", true, "Ingress"},
    {"networking.k8s.io/v1beta1", false, "IngressClass"},
    {"node.k8s.io/v1", false, "RuntimeClass"},
    {"node.k8s.io/v1beta1", false, "RuntimeClass"},
    {"policy/v1", true, "PodDisruptionBudget"},
    {"policy/v1beta1", true, "PodDisruptionBudget"},
    {"policy/v1beta1", false, "PodSecurityPolicy"},
    {"rbac.authorization.k8s.io/v1", false, "ClusterRole ClusterRoleBinding"},
    {"rbac.authorization.k8s.io/v1", true, "Role RoleBinding"},
    {"rbac.authorization.k8s.io/v1beta1", false, "ClusterRole ClusterRoleBinding"},
    {"rbac.authorization.k8s.io/v1beta1", true, "Role RoleBinding"},
    {"scheduling.k8s.io/v1", false, "PriorityClass"},
    {"scheduling.k8s.io/v1beta1", false, "PriorityClass"},
    {"storage.k8s.io/v1", false, "CSIDriver CSINode StorageClass VolumeAttachment"},
    {"storage.k8s.io/v1beta1", false, "CSIDriver CSINode StorageClass VolumeAttachment"},
    {"storage.k8s.io/v1beta1", true, "CSIStorageCapacity"},
    {"v1", false, "ComponentStatus Namespace Node NodeProxyOptions PersistentVolume"},
    {"v1", true,
     "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodAttachOptions PodExecOptions PodPortForwardOptions "
     "PodProxyOptions PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount ServiceProxyOptions"},
};

const ScopeRow* scope_of(const Gvk& gvk) {
  std::string api_version = gvk.api_version();
  for (const ScopeRow& row : kScopes) {
    if (row.api_version != api_version) continue;
    std::vector<std::string_view> kinds = split(row.kinds, ' ');
    if (std::find(kinds.begin(), kinds.end(), gvk.kind) != kinds.end()) return &row;
  }
  return nullptr;
}

constexpr std::string_view kFirst[] = {"Namespace",
                                       "ResourceQuota",
                                       "StorageClass",
                                       "CustomResourceDefinition",
                                       "ServiceAccount",
                                       "PodSecurityPolicy",
                                       "Role",
                                       "ClusterRole",
                                       "RoleBinding",
                                       "ClusterRoleBinding",
                                       "ConfigMap",
                                       "Secret",
                                       "Endpoints",
                                       "Service",
                                       "LimitRange",
                                       "PriorityClass",
                                       "PersistentVolume",
                                       "PersistentVolumeClaim",
                                       "Deployment",
                                       "StatefulSet",
                                       "CronJob",
                                       "PodDisruptionBudget"};
constexpr std::string_view kLast[] = {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"};

std::string sort_text(const Gvk& gvk) {
  auto or_else = [](const std::string& text, const char* absent) { return text.empty() ? std::string(absent) : text; };
  return or_else(gvk.group, "~G") + "_" + or_else(gvk.version, "~V") + "_" + or_else(gvk.kind, "~K");
}

}  // namespace

int default_rank(std::string_view kind) {
  const auto* first = std::find(std::begin(kFirst), std::end(kFirst), kind);
  if (first != std::end(kFirst)) return int(first - std::end(kFirst));
  const auto* last = std::find(std::begin(kLast), std::end(kLast), kind);
  return last == std::end(kLast) ? 0 : 1 + int(last - std::begin(kLast));
}

void split_group_version(std::string_view api_version, std::string& group, std::string& version) {
  size_t slash = api_version.find('/');
  group = slash == api_version.npos ? std::string_view() : api_version.substr(0, slash);
  version = slash == api_version.npos ? api_version : api_version.substr(slash + 1);
}

Gvk Gvk::of(const Node& object) {
  Gvk gvk;
  if (const Node* api_version = object.find("apiVersion")) split_group_version(api_version->value(), gvk.group, gvk.version);
  if (const Node* kind = object.find("kind")) gvk.kind = kind->value();
  return gvk;
}

bool Gvk::is_selected(const Gvk& selector) const {
  return (selector.group.empty() || group == selector.group) && (selector.version.empty() || version == selector.version) &&
         (selector.kind.empty() || kind == selector.kind);
}

std::string Gvk::text() const {
  return (kind.empty() ? "[noKind]" : kind) + "." + (version.empty() ? "[noVer]" : version) + "." +
         (group.empty() ? "[noGrp]" : group);
}

bool Gvk::is_cluster_scoped() const {
  const ScopeRow* row = scope_of(*this);
  return row && !row->namespaced;
}

bool Gvk::is_known() const { return scope_of(*this) != nullptr; }

bool precedes(const Gvk& left, const Gvk& right) {
  int left_rank = default_rank(left.kind), right_rank = default_rank(right.kind);
  return left_rank != right_rank ? left_rank < right_rank : sort_text(left) < sort_text(right);
}

std::string ResId::effective_ns() const {
  if (gvk.is_cluster_scoped()) return std::string(kNoNamespace);
  return ns.empty() ? "default" : ns;
}

bool ResId::is_selected_by(const ResId& selector) const {
  return (selector.name.empty() || selector.name == name) && (selector.ns.empty() || selector.same_ns(*this)) &&
         gvk.is_selected(selector.gvk);
}

std::string ResId::text() const {
  return gvk.text() + "/" + (name.empty() ? "[noName]" : name) + "." + (ns.empty() ? "[noNs]" : ns);
}

}  // namespace coracle::kustomize
