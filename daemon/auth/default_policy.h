// SPDX-License-Identifier: Apache-2.0
// The default roles and bindings as text, in the order of their creation. A line without indentation begins an object:
//   clusterrole NAME [to=ROLE]   to: its rules are aggregated to the ClusterRole ROLE; that one has `aggregate` instead of rules
//   role NAMESPACE NAME
//   bind NAME [SUBJECT]...       a ClusterRoleBinding to the ClusterRole NAME; SUBJECT is kind:name, ServiceAccount:ns/name
//   bind NAMESPACE NAME ROLE SUBJECT...
// An indented line is a rule: VERBS | GROUPS | RESOURCES [| NAMES], or VERBS | URL... ; "core" is the group "". A line with more
// indentation continues the line before. Source: Kubernetes 1.36, rbac/bootstrappolicy, which sorts the resources of a rule.
// system:aggregated-metrics-reader is not Kubernetes' own: metrics-server's manifest has it, with its resources in this order.
// A server-side apply of that manifest would conflict with another order.
#pragma once

#include <string_view>

namespace coracle::auth {

inline constexpr std::string_view kDefaultPolicy = R"(
clusterrole cluster-admin
  * | * | *
  * | *
clusterrole system:discovery
  get | /livez,/readyz,/healthz,/version,/version/,/openapi,/openapi/*,/api,/api/*,/apis,/apis/*
clusterrole system:monitoring
  get | /metrics,/metrics/slis,/livez,/readyz,/healthz,/livez/*,/readyz/*,/healthz/*
clusterrole system:basic-user
  create | authorization.k8s.io | selfsubjectaccessreviews,selfsubjectrulesreviews
  create | authentication.k8s.io | selfsubjectreviews
clusterrole system:public-info-viewer
  get | /livez,/readyz,/healthz,/version,/version/
clusterrole admin
  aggregate
clusterrole edit to=admin
  aggregate
clusterrole view to=edit
  aggregate
clusterrole system:aggregate-to-admin to=admin
  create | authorization.k8s.io | localsubjectaccessreviews
  READWRITE | rbac.authorization.k8s.io | rolebindings,roles
clusterrole system:aggregate-to-edit to=edit
  READ | core | pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy
  impersonate | core | serviceaccounts
  WRITE | core | pods,pods/attach,pods/exec,pods/portforward,pods/proxy
  create | core | pods/eviction
  WRITE | core | configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,
      serviceaccounts,services,services/proxy
  create | core | serviceaccounts/token
  WRITE | apps | daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,
      statefulsets/scale
  WRITE | autoscaling | horizontalpodautoscalers
  WRITE | batch | cronjobs,jobs
  WRITE | extensions | daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,
      replicasets/scale,replicationcontrollers/scale
  WRITE | policy | poddisruptionbudgets
  WRITE | networking.k8s.io | ingresses,networkpolicies
  READWRITE | coordination.k8s.io | leases
  WRITE | resource.k8s.io | resourceclaims,resourceclaimtemplates
clusterrole system:aggregate-to-view to=view
  READ | core | configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,
      replicationcontrollers/scale,serviceaccounts,services,services/status
  READ | core | bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,
      resourcequotas/status
  READ | core | namespaces
  READ | discovery.k8s.io | endpointslices
  READ | apps | controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,
      replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status
  READ | autoscaling | horizontalpodautoscalers,horizontalpodautoscalers/status
  READ | batch | cronjobs,cronjobs/status,jobs,jobs/status
  READ | extensions | daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,
      networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale
  READ | policy | poddisruptionbudgets,poddisruptionbudgets/status
  READ | networking.k8s.io | ingresses,ingresses/status,networkpolicies
  READ | resource.k8s.io | resourceclaims,resourceclaims/status,resourceclaimtemplates
clusterrole system:aggregated-metrics-reader to=view
  READ | metrics.k8s.io | pods,nodes
clusterrole system:heapster
  READ | core | events,namespaces,nodes,pods
  READ | extensions | deployments
clusterrole system:node
  create | authentication.k8s.io | tokenreviews
  create | authorization.k8s.io | localsubjectaccessreviews,subjectaccessreviews
  READ | core | services
  create,get,list,watch | core | nodes
  update,patch | core | nodes/status
  update,patch | core | nodes
  create,update,patch | core,events.k8s.io | events
  READ | core | pods
  create,delete | core | pods
  update,patch | core | pods/status
  create | core | pods/eviction
  READ | core | configmaps,secrets
  get | core | persistentvolumeclaims,persistentvolumes
  get | core | endpoints
  create,get,list,watch | certificates.k8s.io | certificatesigningrequests
  get,create,update,patch,delete | coordination.k8s.io | leases
  get | storage.k8s.io | volumeattachments
  get,update,patch | core | persistentvolumeclaims/status
  create | core | serviceaccounts/token
  READ | storage.k8s.io | csidrivers
  get,create,update,patch,delete | storage.k8s.io | csinodes
  READ | node.k8s.io | runtimeclasses
  get | resource.k8s.io | resourceclaims
  deletecollection,create,get,list,watch,update,patch,delete | resource.k8s.io | resourceslices
clusterrole system:node-problem-detector
  get | core | nodes
  patch | core | nodes/status
  create,update,patch | core,events.k8s.io | events
clusterrole system:kubelet-api-admin
  READ | core | nodes
  proxy | core | nodes
  * | core | nodes/checkpoint,nodes/configz,nodes/healthz,nodes/log,nodes/metrics,nodes/pods,nodes/proxy,nodes/stats
clusterrole system:node-bootstrapper
  create,get,list,watch | certificates.k8s.io | certificatesigningrequests
clusterrole system:auth-delegator
  create | authentication.k8s.io | tokenreviews
  create | authorization.k8s.io | subjectaccessreviews
clusterrole system:kube-aggregator
  READ | core | endpoints,services
clusterrole system:kube-controller-manager
  create,update,patch | core,events.k8s.io | events
  create | coordination.k8s.io | leases
  get,update | coordination.k8s.io | leases | kube-controller-manager
  create | core | secrets,serviceaccounts
  delete | core | secrets
  get | core | configmaps,namespaces,secrets,serviceaccounts
  update | core | secrets,serviceaccounts
  create | authentication.k8s.io | tokenreviews
  create | authorization.k8s.io | subjectaccessreviews
  list,watch | * | *
  create | core | serviceaccounts/token
clusterrole system:kube-dns
  list,watch | core | endpoints,services
clusterrole system:persistent-volume-provisioner
  get,list,watch,create,delete | core | persistentvolumes
  get,list,watch,update | core | persistentvolumeclaims
  READ | storage.k8s.io | storageclasses
  watch | core | events
  create,update,patch | core,events.k8s.io | events
clusterrole system:certificates.k8s.io:certificatesigningrequests:nodeclient
  create | certificates.k8s.io | certificatesigningrequests/nodeclient
clusterrole system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
  create | certificates.k8s.io | certificatesigningrequests/selfnodeclient
clusterrole system:volume-scheduler
  READUPDATE | core | persistentvolumes
  READ | storage.k8s.io | storageclasses
  READUPDATE | core | persistentvolumeclaims
clusterrole system:certificates.k8s.io:legacy-unknown-approver
  approve | certificates.k8s.io | signers | kubernetes.io/legacy-unknown
clusterrole system:certificates.k8s.io:kubelet-serving-approver
  approve | certificates.k8s.io | signers | kubernetes.io/kubelet-serving
clusterrole system:certificates.k8s.io:kube-apiserver-client-approver
  approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client
clusterrole system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
  approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet
clusterrole system:service-account-issuer-discovery
  get | /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/
clusterrole system:node-proxier
  list,watch | core | services
  list,watch | discovery.k8s.io | endpointslices
  get,list,watch | core | nodes
  create,update,patch | core,events.k8s.io | events
  list,watch | networking.k8s.io | servicecidrs
clusterrole system:kube-scheduler
  create,update,patch | core,events.k8s.io | events
  create | coordination.k8s.io | leases
  get,list,watch,update,patch | coordination.k8s.io | leases | kube-scheduler
  READ | core | nodes
  get,list,watch,delete | core | pods
  create | core | bindings,pods/binding
  patch,update | core | pods/status
  READ | core | replicationcontrollers,services
  READ | apps,extensions | replicasets
  READ | apps | statefulsets
  READ | policy | poddisruptionbudgets
  READ | core | persistentvolumeclaims,persistentvolumes
  create | authentication.k8s.io | tokenreviews
  create | authorization.k8s.io | subjectaccessreviews
  READ | storage.k8s.io | csinodes
  READ | core | namespaces
  READ | storage.k8s.io | csidrivers
  READ | storage.k8s.io | csistoragecapacities
  READ | resource.k8s.io | deviceclasses,resourceslices
  READUPDATE | resource.k8s.io | resourceclaims
  update,patch | resource.k8s.io | resourceclaims/status
  READ | storage.k8s.io | volumeattachments
bind cluster-admin Group:system:masters
bind system:monitoring Group:system:monitoring
bind system:discovery Group:system:authenticated
bind system:basic-user Group:system:authenticated
bind system:public-info-viewer Group:system:authenticated Group:system:unauthenticated
bind system:node-proxier User:system:kube-proxy
bind system:kube-controller-manager User:system:kube-controller-manager
bind system:kube-dns ServiceAccount:kube-system/kube-dns
bind system:kube-scheduler User:system:kube-scheduler
bind system:volume-scheduler User:system:kube-scheduler
bind system:node
bind system:service-account-issuer-discovery Group:system:serviceaccounts
role kube-system extension-apiserver-authentication-reader
  get,list,watch | core | configmaps | extension-apiserver-authentication
role kube-system system:controller:bootstrap-signer
  READ | core | secrets
role kube-system system:controller:cloud-provider
  create,get,list,watch | core | configmaps
role kube-system system:controller:token-cleaner
  get,list,watch,delete | core | secrets
  create,update,patch | core,events.k8s.io | events
role kube-system system::leader-locking-kube-controller-manager
  watch | core | configmaps
  get,update | core | configmaps | kube-controller-manager
role kube-system system::leader-locking-kube-scheduler
  watch | core | configmaps
  get,update | core | configmaps | kube-scheduler
role kube-public system:controller:bootstrap-signer
  READ | core | configmaps
  update | core | configmaps | cluster-info
  create,update,patch | core,events.k8s.io | events
bind kube-system system::extension-apiserver-authentication-reader extension-apiserver-authentication-reader
      User:system:kube-controller-manager User:system:kube-scheduler
bind kube-system system::leader-locking-kube-controller-manager system::leader-locking-kube-controller-manager
      User:system:kube-controller-manager ServiceAccount:kube-system/kube-controller-manager
bind kube-system system::leader-locking-kube-scheduler system::leader-locking-kube-scheduler User:system:kube-scheduler
      ServiceAccount:kube-system/kube-scheduler
bind kube-system system:controller:bootstrap-signer system:controller:bootstrap-signer ServiceAccount:kube-system/bootstrap-signer
bind kube-system system:controller:cloud-provider system:controller:cloud-provider ServiceAccount:kube-system/cloud-provider
bind kube-system system:controller:token-cleaner system:controller:token-cleaner ServiceAccount:kube-system/token-cleaner
bind kube-public system:controller:bootstrap-signer system:controller:bootstrap-signer ServiceAccount:kube-system/bootstrap-signer
)";

}  // namespace coracle::auth
