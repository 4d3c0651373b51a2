// SPDX-License-Identifier: Apache-2.0
// Kind and Key: the names of an object. A Kind has no schema; that is in store/schema.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace coracle {

// Kinds are created once (the constants below, or in the schema's catalog) and live as long as the process: code may keep `const
// Kind&` or `const Kind*`. Two kinds are equal if group and resource are.
struct Kind {
  std::string_view group;     // "" for the core group, "apps"
  std::string_view version;   // "v1"
  std::string_view kind;      // "Deployment"
  std::string_view resource;  // plural, lower case: "deployments"
  bool namespaced = true;

  std::string api_version() const {
    return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
  }
  // The form in errors: "pods", "deployments.apps".
  std::string qualified_resource() const {
    return group.empty() ? std::string(resource) : std::string(resource) + "." + std::string(group);
  }
  bool operator==(const Kind& other) const { return resource == other.resource && group == other.group; }
};

// The kinds that C++ code uses by name. A test compares them with the schema.
inline constexpr Kind kNamespace{"", "v1", "Namespace", "namespaces", false};
inline constexpr Kind kNode{"", "v1", "Node", "nodes", false};
inline constexpr Kind kPod{"", "v1", "Pod", "pods"};
inline constexpr Kind kService{"", "v1", "Service", "services"};
inline constexpr Kind kEndpoints{"", "v1", "Endpoints", "endpoints"};
inline constexpr Kind kConfigMap{"", "v1", "ConfigMap", "configmaps"};
inline constexpr Kind kSecret{"", "v1", "Secret", "secrets"};
inline constexpr Kind kServiceAccount{"", "v1", "ServiceAccount", "serviceaccounts"};
inline constexpr Kind kEvent{"", "v1", "Event", "events"};
inline constexpr Kind kLimitRange{"", "v1", "LimitRange", "limitranges"};
inline constexpr Kind kPersistentVolume{"", "v1", "PersistentVolume", "persistentvolumes", false};
inline constexpr Kind kPersistentVolumeClaim{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"};
inline constexpr Kind kComponentStatus{"", "v1", "ComponentStatus", "componentstatuses", false};
inline constexpr Kind kReplicationController{"", "v1", "ReplicationController", "replicationcontrollers"};
inline constexpr Kind kResourceQuota{"", "v1", "ResourceQuota", "resourcequotas"};
inline constexpr Kind kReplicaSet{"apps", "v1", "ReplicaSet", "replicasets"};
inline constexpr Kind kDeployment{"apps", "v1", "Deployment", "deployments"};
inline constexpr Kind kControllerRevision{"apps", "v1", "ControllerRevision", "controllerrevisions"};
inline constexpr Kind kDaemonSet{"apps", "v1", "DaemonSet", "daemonsets"};
inline constexpr Kind kStatefulSet{"apps", "v1", "StatefulSet", "statefulsets"};
inline constexpr Kind kHorizontalPodAutoscaler{"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"};
inline constexpr Kind kApiService{"apiregistration.k8s.io", "v1", "APIService", "apiservices", false};
inline constexpr Kind kCustomResourceDefinition{"apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                                                "customresourcedefinitions", false};
inline constexpr Kind kCronJob{"batch", "v1", "CronJob", "cronjobs"};
inline constexpr Kind kJob{"batch", "v1", "Job", "jobs"};
inline constexpr Kind kCertificateSigningRequest{"certificates.k8s.io", "v1", "CertificateSigningRequest",
                                                 "certificatesigningrequests", false};
inline constexpr Kind kLease{"coordination.k8s.io", "v1", "Lease", "leases"};
inline constexpr Kind kEndpointSlice{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"};
inline constexpr Kind kFlowSchema{"flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", false};
inline constexpr Kind kPriorityLevelConfiguration{"flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
                                                  "prioritylevelconfigurations", false};
inline constexpr Kind kNodeMetrics{"metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", false};
inline constexpr Kind kPodMetrics{"metrics.k8s.io", "v1beta1", "PodMetrics", "pods"};
inline constexpr Kind kIngress{"networking.k8s.io", "v1", "Ingress", "ingresses"};
inline constexpr Kind kIngressClass{"networking.k8s.io", "v1", "IngressClass", "ingressclasses", false};
inline constexpr Kind kServiceCIDR{"networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", false};
inline constexpr Kind kRuntimeClass{"node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", false};
inline constexpr Kind kPodDisruptionBudget{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"};
inline constexpr Kind kRole{"rbac.authorization.k8s.io", "v1", "Role", "roles"};
inline constexpr Kind kRoleBinding{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"};
inline constexpr Kind kClusterRole{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false};
inline constexpr Kind kClusterRoleBinding{"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false};
inline constexpr Kind kResourceSlice{"resource.k8s.io", "v1", "ResourceSlice", "resourceslices", false};
inline constexpr Kind kPriorityClass{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false};
inline constexpr Kind kCSIDriver{"storage.k8s.io", "v1", "CSIDriver", "csidrivers", false};
inline constexpr Kind kCSINode{"storage.k8s.io", "v1", "CSINode", "csinodes", false};
inline constexpr Kind kCSIStorageCapacity{"storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities"};
inline constexpr Kind kStorageClass{"storage.k8s.io", "v1", "StorageClass", "storageclasses", false};
inline constexpr Kind kVolumeAttachment{"storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", false};
inline constexpr Kind kVolumeAttributesClass{"storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", false};

struct Key {       // of an object within its kind
  std::string ns;  // "" for a cluster-scoped object
  std::string name;
  auto operator<=>(const Key&) const = default;
  std::string text() const { return ns.empty() ? name : ns + "/" + name; }
};

struct KeyView {  // of a Key, or of the key inside an object
  std::string_view ns, name;
  KeyView(std::string_view ns, std::string_view name) : ns(ns), name(name) {}
  KeyView(const Key& key) : ns(key.ns), name(key.name) {}
  explicit operator Key() const { return {std::string(ns), std::string(name)}; }
  auto operator<=>(const KeyView&) const = default;
};

}  // namespace coracle
