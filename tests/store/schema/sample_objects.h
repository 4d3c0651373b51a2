// SPDX-License-Identifier: Apache-2.0
// One valid object of every kind that can be created, by apiVersion and kind, for tests over all kinds. They fail if a kind of
// the catalog is missing here: add an object for each new kind. Namespaced objects are in "default".
#pragma once

#include <map>
#include <string>

namespace coracle {

inline const std::map<std::string, std::string>& sample_objects() {
  static const std::string kPodSpec = R"({"containers":[{"name":"main","image":"example.com/i:1"}]})";
  static const std::string kTemplate = R"({"metadata":{"labels":{"app":"x"}},"spec":)" + kPodSpec + "}";
  static const std::string kJobTemplate =
      R"({"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"example.com/i:1"}]}})";
  static const std::string kSelector = R"({"matchLabels":{"app":"x"}})";
  static const std::string kHook = R"({"name":"a.example.com","sideEffects":"None","admissionReviewVersions":["v1"],)"
                                   R"("clientConfig":{"url":"https://example.com/hook"},"rules":[{"operations":["CREATE"],)"
                                   R"("apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"]}]})";
  static const std::string kRules = R"({"resourceRules":[{"operations":["CREATE"],"apiGroups":["apps"],"apiVersions":["v1"],)"
                                    R"("resources":["deployments"]}]})";
  static const std::string kDevices =
      R"({"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com"}}]}})";
  static const std::string kAccess = R"("subjects":[{"kind":"User","name":"jane","apiGroup":"rbac.authorization.k8s.io"}])";
  auto object = [](const std::string& more) {
    return R"({"metadata":{"name":"sample","labels":{"tier":"test"}})" + (more.empty() ? "" : "," + more) + "}";
  };
  auto named = [](const std::string& name, const std::string& more) {
    return R"({"metadata":{"name":")" + name + R"(","labels":{"tier":"test"}},)" + more + "}";
  };
  static const std::map<std::string, std::string> all = {
      {"v1/Namespace", object("")},
      {"v1/Node", object("")},
      {"v1/Pod", object("\"spec\":" + kPodSpec)},
      {"v1/Service", object(R"("spec":{"selector":{"app":"x"},"ports":[{"port":80}]})")},
      {"v1/Endpoints", object(R"("subsets":[{"addresses":[{"ip":"10.1.2.3"}],"ports":[{"port":80}]}])")},
      {"v1/ConfigMap", object(R"("data":{"a":"b"})")},
      {"v1/Secret", object(R"("data":{"a":"Yg=="})")},
      {"v1/ServiceAccount", object("")},
      {"v1/Event",
       object(
           R"("involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"Tested","message":"m","type":"Normal")")},
      {"v1/PersistentVolume",
       object(R"("spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/data"}})")},
      {"v1/PersistentVolumeClaim",
       object(R"("spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}})")},
      {"v1/LimitRange", object(R"("spec":{"limits":[{"type":"Container","max":{"cpu":"64"}}]})")},
      {"v1/ResourceQuota", object(R"("spec":{"hard":{"configmaps":"1000"}})")},
      {"v1/ReplicationController", object(R"("spec":{"replicas":0,"selector":{"app":"x"},"template":)" + kTemplate + "}")},
      {"v1/PodTemplate", object("\"template\":" + kTemplate)},
      {"apiregistration.k8s.io/v1/APIService",
       named("v1.example.com",
             R"("spec":{"group":"example.com","version":"v1","groupPriorityMinimum":1000,"versionPriority":15})")},
      {"apps/v1/ReplicaSet", object("\"spec\":{\"replicas\":0,\"selector\":" + kSelector + ",\"template\":" + kTemplate + "}")},
      {"apps/v1/Deployment", object("\"spec\":{\"replicas\":0,\"selector\":" + kSelector + ",\"template\":" + kTemplate + "}")},
      {"apps/v1/DaemonSet", object("\"spec\":{\"selector\":" + kSelector + ",\"template\":" + kTemplate + "}")},
      {"apps/v1/StatefulSet",
       object("\"spec\":{\"replicas\":0,\"serviceName\":\"x\",\"selector\":" + kSelector + ",\"template\":" + kTemplate + "}")},
      {"apps/v1/ControllerRevision", object(R"("revision":1,"data":{"a":"b"})")},
      {"autoscaling/v1/HorizontalPodAutoscaler",
       object(
           R"("spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"targetCPUUtilizationPercentage":50})")},
      {"autoscaling/v2/HorizontalPodAutoscaler",
       object(
           R"("spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},)"
           R"("metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"100Mi"}}}]})")},
      {"batch/v1/Job", object("\"spec\":{\"template\":" + kJobTemplate + "}")},
      {"batch/v1/CronJob", object(R"("spec":{"schedule":"0 0 * * *","jobTemplate":{"spec":{"template":)" + kJobTemplate + "}}}")},
      {"certificates.k8s.io/v1/CertificateSigningRequest", ""},  // it must be generated; its own test does that
      {"coordination.k8s.io/v1/Lease", object(R"("spec":{"holderIdentity":"me","leaseDurationSeconds":15})")},
      {"discovery.k8s.io/v1/EndpointSlice",
       object(R"("addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"]}],"ports":[{"port":80}])")},
      {"events.k8s.io/v1/Event",
       object(
           R"("eventTime":"2026-01-02T03:04:05.000006Z","regarding":{"kind":"Pod","namespace":"default","name":"p"},"reason":"Tested",)"
           R"("action":"Test","note":"m","type":"Normal","reportingController":"example.com/tester","reportingInstance":"t1")")},
      {"networking.k8s.io/v1/NetworkPolicy", object(R"("spec":{"podSelector":{},"policyTypes":["Ingress"]})")},
      {"networking.k8s.io/v1/Ingress", object(R"("spec":{"defaultBackend":{"service":{"name":"x","port":{"number":80}}}})")},
      {"networking.k8s.io/v1/IngressClass", object(R"("spec":{"controller":"example.com/ingress"})")},
      {"networking.k8s.io/v1/ServiceCIDR", object(R"("spec":{"cidrs":["10.96.0.0/24"]})")},
      {"networking.k8s.io/v1/IPAddress",
       named("10.96.0.9", R"("spec":{"parentRef":{"resource":"services","namespace":"default","name":"x"}})")},
      {"node.k8s.io/v1/RuntimeClass", object(R"("handler":"sample")")},
      {"policy/v1/PodDisruptionBudget", object("\"spec\":{\"minAvailable\":1,\"selector\":" + kSelector + "}")},
      {"rbac.authorization.k8s.io/v1/Role", object(R"("rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}])")},
      {"rbac.authorization.k8s.io/v1/ClusterRole",
       object(R"("rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}])")},
      {"rbac.authorization.k8s.io/v1/RoleBinding",
       object(R"("roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},)" + kAccess)},
      {"rbac.authorization.k8s.io/v1/ClusterRoleBinding",
       object(R"("roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},)" + kAccess)},
      {"storage.k8s.io/v1/StorageClass", object(R"("provisioner":"example.com/disk","parameters":{"type":"fast"})")},
      {"storage.k8s.io/v1/CSIDriver", named("disk.example.com", R"("spec":{"attachRequired":false})")},
      {"storage.k8s.io/v1/CSINode",
       object(R"("spec":{"drivers":[{"name":"disk.example.com","nodeID":"n1","topologyKeys":["example.com/zone"]}]})")},
      {"storage.k8s.io/v1/CSIStorageCapacity", object(R"("storageClassName":"fast","capacity":"10Gi")")},
      {"storage.k8s.io/v1/VolumeAttachment",
       object(R"("spec":{"attacher":"disk.example.com","nodeName":"n1","source":{"persistentVolumeName":"v1"}})")},
      {"storage.k8s.io/v1/VolumeAttributesClass", object(R"("driverName":"disk.example.com","parameters":{"iops":"100"})")},
      {"admissionregistration.k8s.io/v1/MutatingWebhookConfiguration", object("\"webhooks\":[" + kHook + "]")},
      {"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", object("\"webhooks\":[" + kHook + "]")},
      {"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
       object("\"spec\":{\"matchConstraints\":" + kRules + R"(,"validations":[{"expression":"object.spec.replicas < 5"}]})")},
      {"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding",
       object(R"("spec":{"policyName":"sample","validationActions":["Deny"]})")},
      {"admissionregistration.k8s.io/v1/MutatingAdmissionPolicy",
       object("\"spec\":{\"matchConstraints\":" + kRules +
              R"(,"reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[]"}}]})")},
      {"admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding", object(R"("spec":{"policyName":"sample"})")},
      {"apiextensions.k8s.io/v1/CustomResourceDefinition",
       named(
           "widgets.example.com",
           R"("spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1",)"
           R"("served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{)"
           R"("size":{"type":"integer","maximum":10.5},"tags":{"type":"object","additionalProperties":{"type":"string"}},)"
           R"("rest":{"type":"array","items":{"type":"string","enum":["a",null]}}}}}}}}]})")},
      {"scheduling.k8s.io/v1/PriorityClass", object(R"("value":100)")},
      {"flowcontrol.apiserver.k8s.io/v1/FlowSchema",
       object(
           R"("spec":{"matchingPrecedence":700,"priorityLevelConfiguration":{"name":"sample"},"rules":[{"subjects":[{"kind":"User","user":{"name":"jane"}}],)"
           R"("nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/version"]}]}]})")},
      {"flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration",
       object(R"("spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}})")},
      {"resource.k8s.io/v1/DeviceClass",
       object(R"("spec":{"selectors":[{"cel":{"expression":"device.driver == \"gpu.example.com\""}}]})")},
      {"resource.k8s.io/v1/ResourceClaim", object("\"spec\":" + kDevices)},
      {"resource.k8s.io/v1/ResourceClaimTemplate", object("\"spec\":{\"spec\":" + kDevices + "}")},
      {"resource.k8s.io/v1/ResourceSlice",
       object(
           R"("spec":{"driver":"gpu.example.com","nodeName":"n1","pool":{"name":"n1","generation":1,"resourceSliceCount":1},)"
           R"("devices":[{"name":"gpu-0","attributes":{"model":{"string":"x"},"cores":{"int":8}},"capacity":{"memory":{"value":"8Gi"}}}]})")},
  };
  return all;
}

}  // namespace coracle
