// SPDX-License-Identifier: Apache-2.0
// The roles of Kubernetes' controllers, in the format of default_policy.h: `controller NAME` defines the ClusterRole
// system:controller:NAME and its binding to the service account NAME in kube-system. The built-in controllers do not need them;
// they exist for anyone who also runs a controller of Kubernetes. Source: Kubernetes 1.36, rbac/bootstrappolicy.
#pragma once

#include <string_view>

namespace coracle::auth {

inline constexpr std::string_view kControllerPolicy = R"(
controller attachdetach-controller
  list,watch | core | persistentvolumeclaims,persistentvolumes
  READ | core | nodes
  patch,update | core | nodes/status
  list,watch | core | pods
  create,update,patch | core,events.k8s.io | events
  get,create,delete,list,watch | storage.k8s.io | volumeattachments
  get,watch,list | storage.k8s.io | csidrivers
  get,watch,list | storage.k8s.io | csinodes
controller clusterrole-aggregation-controller
  escalate,get,list,watch,update,patch | rbac.authorization.k8s.io | clusterroles
controller cronjob-controller
  get,list,watch,update | batch | cronjobs
  get,list,watch,create,update,delete,patch | batch | jobs
  update | batch | cronjobs/status
  update | batch | cronjobs/finalizers
  list,watch,delete | core | pods
  create,update,patch | core,events.k8s.io | events
controller daemon-set-controller
  READ | extensions,apps | daemonsets
  update | extensions,apps | daemonsets/status
  update | extensions,apps | daemonsets/finalizers
  list,watch | core | nodes
  list,watch,create,delete,patch | core | pods
  create | core | pods/binding
  get,list,watch,create,delete,update,patch | apps | controllerrevisions
  create,update,patch | core,events.k8s.io | events
controller deployment-controller
  get,list,watch,update | extensions,apps | deployments
  update | extensions,apps | deployments/status
  update | extensions,apps | deployments/finalizers
  get,list,watch,create,update,patch,delete | apps,extensions | replicasets
  get,list,watch,update | core | pods
  create,update,patch | core,events.k8s.io | events
controller disruption-controller
  READ | extensions,apps | deployments
  READ | apps,extensions | replicasets
  READ | core | replicationcontrollers
  READ | policy | poddisruptionbudgets
  READ | apps | statefulsets
  update | policy | poddisruptionbudgets/status
  patch,update | core | pods/status
  get | * | */scale
  create,update,patch | core,events.k8s.io | events
controller endpoint-controller
  READ | core | pods,services
  get,list,watch,create,update,delete | core | endpoints
  create | core | endpoints/restricted
  create,update,patch | core,events.k8s.io | events
controller endpointslice-controller
  READ | core | nodes,pods,services
  update | core | services/finalizers
  get,list,watch,create,update,delete | discovery.k8s.io | endpointslices
  create,update,patch | core,events.k8s.io | events
controller endpointslicemirroring-controller
  READ | core | endpoints,services
  update | core | services/finalizers
  update | core | endpoints/finalizers
  get,list,watch,create,update,delete | discovery.k8s.io | endpointslices
  create,update,patch | core,events.k8s.io | events
controller expand-controller
  READUPDATE | core | persistentvolumes
  update,patch | core | persistentvolumeclaims/status
  READ | core | persistentvolumeclaims
  create,update,patch | core,events.k8s.io | events
  get | core | services
controller ephemeral-volume-controller
  READ | core | pods
  update | core | pods/finalizers
  get,list,watch,create | core | persistentvolumeclaims
  create,update,patch | core,events.k8s.io | events
controller resource-claim-controller
  READ | core | pods
  update | core | pods/finalizers
  get,list,watch,create,delete | resource.k8s.io | resourceclaims
  update,patch | resource.k8s.io | resourceclaims,resourceclaims/status
  update,patch | core | pods/status
  create,update,patch | core,events.k8s.io | events
controller generic-garbage-collector
  get,list,watch,patch,update,delete | * | *
  create,update,patch | core,events.k8s.io | events
controller horizontal-pod-autoscaler
  READ | autoscaling | horizontalpodautoscalers
  update | autoscaling | horizontalpodautoscalers/status
  get,update | * | */scale
  list,watch | core | pods
  list,watch | metrics.k8s.io | pods
  READ | custom.metrics.k8s.io | *
  READ | external.metrics.k8s.io | *
  create,update,patch | core,events.k8s.io | events
controller job-controller
  READUPDATE | batch | jobs
  update | batch | jobs/status
  update | batch | jobs/finalizers
  list,watch,create,delete,patch | core | pods
  create,update,patch | core,events.k8s.io | events
controller namespace-controller
  get,list,watch,delete | core | namespaces
  update | core | namespaces/finalize,namespaces/status
  get,list,watch,delete,deletecollection | * | *
controller node-controller
  get,list,watch,update,delete,patch | core | nodes
  patch,update | core | nodes/status
  patch,update | core | pods/status
  list,watch,get,delete | core | pods
  create,update,patch | core,events.k8s.io | events
controller persistent-volume-binder
  get,list,watch,update,create,delete | core | persistentvolumes
  update | core | persistentvolumes/status
  get,list,watch,update | core | persistentvolumeclaims
  update | core | persistentvolumeclaims/status
  list,watch,get,create,delete | core | pods
  READ | storage.k8s.io | storageclasses
  list,watch | core | nodes
  create,update,patch | core,events.k8s.io | events
  watch | core | events
  get | core | services
controller pod-garbage-collector
  list,watch,delete | core | pods
  READ | core | nodes
  patch | core | pods/status
controller replicaset-controller
  get,list,watch,update | apps,extensions | replicasets
  update | apps,extensions | replicasets/status
  update | apps,extensions | replicasets/finalizers
  list,watch,patch,create,delete | core | pods
  create,update,patch | core,events.k8s.io | events
controller replication-controller
  get,list,watch,update | core | replicationcontrollers
  update | core | replicationcontrollers/status
  update | core | replicationcontrollers/finalizers
  list,watch,patch,create,delete | core | pods
  create,update,patch | core,events.k8s.io | events
controller resourcequota-controller
  list,watch | * | *
  update | core | resourcequotas/status
  create,update,patch | core,events.k8s.io | events
controller route-controller
  list,watch | core | nodes
  patch | core | nodes/status
  create,update,patch | core,events.k8s.io | events
controller service-account-controller
  create | core | serviceaccounts
  create,update,patch | core,events.k8s.io | events
controller service-controller
  READ | core | services
  patch,update | core | services/status
  list,watch | core | nodes
  create,update,patch | core,events.k8s.io | events
controller service-cidrs-controller
  get,list,watch,patch,update | networking.k8s.io | servicecidrs
  patch,update | networking.k8s.io | servicecidrs/finalizers
  patch,update | networking.k8s.io | servicecidrs/status
  READ | networking.k8s.io | ipaddresses
  create,update,patch | core,events.k8s.io | events
controller statefulset-controller
  list,watch | core | pods
  READ | apps | statefulsets
  update | apps | statefulsets/status
  update | apps | statefulsets/finalizers
  get,create,delete,update,patch | core | pods
  get,create,delete,update,patch,list,watch | apps | controllerrevisions
  get,create,list,watch | core | persistentvolumeclaims
  update,delete | core | persistentvolumeclaims
  update | core | pods/finalizers
  create,update,patch | core,events.k8s.io | events
controller ttl-controller
  update,patch,list,watch | core | nodes
  create,update,patch | core,events.k8s.io | events
controller certificate-controller
  get,list,watch,delete | certificates.k8s.io | certificatesigningrequests
  update | certificates.k8s.io | certificatesigningrequests/approval,certificatesigningrequests/status
  approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet
  sign | certificates.k8s.io | signers | kubernetes.io/legacy-unknown,kubernetes.io/kube-apiserver-client,
      kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving
  create | authorization.k8s.io | subjectaccessreviews
  create,update,patch | core,events.k8s.io | events
controller pvc-protection-controller
  get,list,watch,update | core | persistentvolumeclaims
  list,watch,get | core | pods
  create,update,patch | core,events.k8s.io | events
controller pv-protection-controller
  get,list,watch,update | core | persistentvolumes
  create,update,patch | core,events.k8s.io | events
controller volumeattributesclass-protection-controller
  list,watch,get | core | persistentvolumeclaims
  list,watch,get | core | persistentvolumes
  get,list,watch,update | storage.k8s.io | volumeattributesclasses
  create,update,patch | core,events.k8s.io | events
controller ttl-after-finished-controller
  get,list,watch,delete | batch | jobs
  create,update,patch | core,events.k8s.io | events
controller root-ca-cert-publisher
  create,update | core | configmaps
  create,update,patch | core,events.k8s.io | events
controller validatingadmissionpolicy-status-controller
  READ | admissionregistration.k8s.io | validatingadmissionpolicies
  get,patch,update | admissionregistration.k8s.io | validatingadmissionpolicies/status
  create,update,patch | core,events.k8s.io | events
controller legacy-service-account-token-cleaner
  get | core | configmaps | kube-apiserver-legacy-service-account-token-tracking
  patch,delete | core | secrets
)";

}  // namespace coracle::auth
