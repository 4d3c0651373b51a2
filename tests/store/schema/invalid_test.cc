// SPDX-License-Identifier: Apache-2.0
// Validation errors of each kind: a valid object, a change to it, and the resulting error: field, reason and message.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/base/text.h"
#include "store/object/patch.h"
#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/validate.h"

namespace coracle::schema {
namespace {

const std::string kPodTemplate = R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}})";
const std::string kOnce =
    R"({"metadata":{"labels":{"a":"b","controller-uid":"u","job-name":"x","batch.kubernetes.io/controller-uid":"u",
  "batch.kubernetes.io/job-name":"x"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}})";

// A valid object of each kind, by resource and group, without the common metadata.
const std::map<std::string, std::string>& valid_objects() {
  static const std::map<std::string, std::string> all = {
      {"pods", R"({"spec":{"containers":[{"name":"c","image":"i"}]}})"},
      {"services", R"({"spec":{"ports":[{"port":80}]}})"},
      {"endpoints", R"({"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}]}]})"},
      {"configmaps", R"({"data":{"k":"v"}})"},
      {"secrets", R"({"data":{"k":"AA=="}})"},
      {"serviceaccounts", "{}"},
      {"namespaces", "{}"},
      {"nodes", "{}"},
      {"events", R"({"involvedObject":{"namespace":"d"}})"},
      {"replicationcontrollers", R"({"spec":{"selector":{"a":"b"},"template":)" + kPodTemplate + "}}"},
      {"podtemplates", R"({"template":)" + kPodTemplate + "}"},
      {"limitranges", R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"2"}}]}})"},
      {"resourcequotas", R"({"spec":{"hard":{"pods":"10"}}})"},
      {"persistentvolumes",
       R"({"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/a"}}})"},
      {"persistentvolumeclaims", R"({"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})"},
      {"deployments.apps", R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"template":)" + kPodTemplate + "}}"},
      {"replicasets.apps", R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"template":)" + kPodTemplate + "}}"},
      {"statefulsets.apps",
       R"({"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b"}},"template":)" + kPodTemplate + "}}"},
      {"daemonsets.apps", R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"template":)" + kPodTemplate + "}}"},
      {"controllerrevisions.apps", R"({"data":{"x":1},"revision":1})"},
      {"jobs.batch",
       R"({"metadata":{"uid":"u"},"spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}},"template":)" +
           kOnce + "}}"},
      {"cronjobs.batch", R"({"spec":{"schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":)" + kOnce + "}}}}"},
      {"horizontalpodautoscalers.autoscaling",
       R"({"spec":{"scaleTargetRef":{"kind":"Deployment","name":"x","apiVersion":"apps/v1"},"maxReplicas":3}})"},
      {"poddisruptionbudgets.policy", R"({"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}})"},
      {"networkpolicies.networking.k8s.io", R"({"spec":{"podSelector":{}}})"},
      {"ingresses.networking.k8s.io", R"({"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})"},
      {"ingressclasses.networking.k8s.io", R"({"spec":{"controller":"example.com/c"}})"},
      {"ipaddresses.networking.k8s.io",
       R"({"metadata":{"name":"10.0.0.1"},"spec":{"parentRef":{"resource":"services","name":"s","namespace":"d"}}})"},
      {"servicecidrs.networking.k8s.io", R"({"spec":{"cidrs":["10.0.0.0/16"]}})"},
      {"priorityclasses.scheduling.k8s.io", R"({"value":5})"},
      {"runtimeclasses.node.k8s.io", R"({"handler":"h"})"},
      {"leases.coordination.k8s.io", R"({"spec":{"leaseDurationSeconds":5}})"},
      {"endpointslices.discovery.k8s.io", R"({"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}]})"},
  };
  return all;
}

const KindInfo& info_by_resource(const std::string& name) {
  size_t dot = name.find('.');
  std::string group = dot == name.npos ? "" : name.substr(dot + 1);
  for (const KindInfo& info : catalog().kinds()) {
    if (info.kind.resource == name.substr(0, dot) && info.kind.group == group && info.has_verb("create")) return info;
  }
  ADD_FAILURE() << "no kind " << name;
  return catalog().of(kPod);
}

json::value made(const std::string& name, std::string_view patch) {
  const KindInfo& info = info_by_resource(name);
  json::value object = json::object{{"metadata", json::object{{"name", "x"}}}};
  if (info.kind.namespaced) make(object, "metadata.namespace") = "d";
  apply_merge_patch(object, MUST(parse_json(valid_objects().at(name))));
  apply_merge_patch(object, MUST(parse_json(patch)));
  json::value value = MUST(decode(info.type(), std::move(object))).value;
  apply_defaults(info, value);
  return MUST(decode(info.type(), std::move(value))).value;
}

std::string_view cause_reason(std::string_view message) {
  static constexpr std::pair<std::string_view, std::string_view> kReasons[] = {{"Required value", "FieldValueRequired"},
                                                                               {"Invalid value", "FieldValueInvalid"},
                                                                               {"Unsupported value", "FieldValueNotSupported"},
                                                                               {"Forbidden", "FieldValueForbidden"},
                                                                               {"Duplicate value", "FieldValueDuplicate"},
                                                                               {"Too many", "FieldValueTooMany"},
                                                                               {"Too long", "FieldValueTooLong"},
                                                                               {"Not found", "FieldValueNotFound"}};
  for (auto [words, reason] : kReasons) {
    if (message.starts_with(words)) return reason;
  }
  return "";
}

struct InvalidRow {
  const char* kind;
  const char* patch;
  const char* want;  // "field: message"
};

void expect_cause(const std::vector<Cause>& causes, const InvalidRow& row) {
  std::string all, want = row.want;
  bool found = false;
  for (const Cause& cause : causes) {
    std::string line = cause.field + ": " + cause.message;
    all += line + "\n";
    if (line != want) continue;
    found = true;
    EXPECT_EQ(cause.reason, cause_reason(cause.message)) << line;
  }
  EXPECT_TRUE(found) << row.kind << " " << row.patch << "\nwant " << want << "\ngot  " << all;
}

const InvalidRow kInvalid[] = {
    {"pods", R"({"spec":{"containers":[]}})", "spec.containers: Required value"},
    {"pods", R"({"spec":{"containers":[{"name":"c"}]}})", "spec.containers[0].image: Required value"},
    {"pods", R"({"spec":{"containers":[{"name":"C","image":"i"}]}})",
     "spec.containers[0].name: Invalid value: \"C\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
     "characters or '-', and "
     "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"pods", R"({"spec":{"restartPolicy":"Maybe"}})",
     "spec.restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"Never\", \"OnFailure\""},
    {"pods", R"({"spec":{"volumes":[{"name":"v","emptyDir":{}},{"name":"v","emptyDir":{}}]}})",
     "spec.volumes[1].name: Duplicate value: \"v\""},
    {"pods", R"({"spec":{"topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"","whenUnsatisfiable":"DoNotSchedule"}]}})",
     "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"},
    {"pods", R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}]}})",
     "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty"},
    {"pods",
     R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"ScheduleAnyway","minDomains":2}]}})",
     "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
     "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"},
    {"pods",
     R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"},{"maxSkew":2,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}]}})",
     "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{z, DoNotSchedule}\""},
    {"pods",
     R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}}})",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at "
     "least one node "
     "selector term"},
    {"pods",
     R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"spec.x","operator":"In","values":["n"]}]}]}}}}})",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Invalid "
     "value: "
     "\"spec.x\": not a valid field selector key"},
    {"pods",
     R"({"spec":{"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":101,"podAffinityTerm":{"topologyKey":"z"}}]}}}})",
     "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the "
     "range 1-100"},
    {"pods", R"({"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{}]}}}})",
     "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be "
     "empty"},
    {"pods",
     R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"NotIn","values":["v","a b"]}]}]}}}}})",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values["
     "1]: Invalid value: \"a b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
     "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
    {"pods",
     R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"ScheduleAnyway","matchLabelKeys":["j","k"],"labelSelector":{"matchLabels":{"k":"v"},"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}}]}})",
     "spec.topologySpreadConstraints[0][1]: Invalid value: \"k\": exists in both matchLabelKeys and labelSelector"},
    {"pods",
     R"({"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z","matchLabelKeys":["k"],"labelSelector":{"matchExpressions":[{"key":"k","operator":"Exists"},{"key":"k","operator":"In","values":["v"]}]}}]}}}})",
     "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][0]: Invalid value: \"k\": exists in both "
     "matchLabelKeys and labelSelector"},
    {"pods",
     R"({"spec":{"terminationGracePeriodSeconds":-1,"containers":[{"name":"c","image":"i","livenessProbe":{"terminationGracePeriodSeconds":-1,"tcpSocket":{"port":1}}}]}})",
     "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: -1: must be greater than 0"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":" i"}]}})",
     "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace"},
    {"pods", R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/d":"unconfined"}}})",
     "metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: \"d\": container not found"},
    {"pods", R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"none"}}})",
     "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: \"none\": invalid AppArmor profile "
     "name: \"none\""},
    {"pods",
     R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"localhost/a"}},"spec":{"securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"b"}}}})",
     "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field "
     "must match"},
    {"pods",
     R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}},"spec":{"containers":[{"name":"c","image":"i","securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}]}})",
     "spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match"},
    {"pods", R"({"metadata":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"mine"}}})",
     "metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: \"mine\": must be a valid seccomp profile"},
    {"pods", R"({"metadata":{"annotations":{"container.seccomp.security.alpha.kubernetes.io/c":"localhost/../x"}}})",
     "metadata.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: \"../x\": must not contain '..'"},
    {"pods",
     R"({"metadata":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}},"spec":{"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}})",
     "spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"},
    {"deployments.apps",
     R"({"spec":{"template":{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}},"spec":{"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}}}})",
     "spec.template.spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field "
     "must "
     "match"},
    {"deployments.apps",
     R"({"spec":{"template":{"metadata":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"localhost//x"}}}}})",
     "spec.template.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: \"/x\": must be a relative path"},
    {"deployments.apps", R"({"spec":{"template":{"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}}}})",
     "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"configMapKeyRef":{"name":"A","key":"k"}}}]}]}})",
     "spec.containers[0].env[0].valueFrom.configMapKeyRef.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must "
     "consist of lower case "
     "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
     "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"secretKeyRef":{"key":"k"}}}]}]}})",
     "spec.containers[0].env[0].valueFrom.secretKeyRef.name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of "
     "lower case "
     "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
     "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":"A"}}]}]}})",
     "spec.containers[0].envFrom[0].secretRef.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower "
     "case "
     "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
     "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['A B']"}}}]}]}})",
     "spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, "
     "'-', "
     "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
     "for "
     "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels[']"}}}]}]}})",
     "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels[']\": error converting fieldPath: "
     "field "
     "label not supported: metadata.labels[']"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"claims":[{"name":"r"}]}}]}})",
     "spec.containers[0].resources.claims[0]: Not found: \"r\""},
    {"pods",
     R"({"spec":{"resourceClaims":[{"name":"r","resourceClaimName":"x"}],"containers":[{"name":"c","image":"i","resources":{"claims":[{"name":"r","request":"a"},{"name":"r"}]}}]}})",
     "spec.containers[0].resources.claims[1]: Duplicate value: \"r\""},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{"labels":{"a":"b"},"name":"mine"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}}]}})",
     "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{"labels":{"a b":"c"}},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}}]}})",
     "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: \"a b\": name part must consist of "
     "alphanumeric "
     "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
     "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"pods",
     R"({"metadata":{"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"},"spec":{"volumes":[{"name":"vv","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}}]}})",
     "spec.volumes[0].name: Invalid value: \"vv\": PVC name "
     "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb."
     "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc."
     "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd-vv\": must be no more than 253 characters"},
    {"pods",
     R"({"spec":{"serviceAccountName":"a","volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":4294967297}}]}}]}})",
     "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a "
     "duration larger than 2^32 seconds"},
    {"secrets", R"({"type":"kubernetes.io/ssh-auth","data":{"ssh-privatekey":""}})", "data[ssh-privatekey]: Required value"},
    {"secrets", R"({"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":"W10="}})",
     "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": json: cannot unmarshal array into Go value of type "
     "map[string]interface {}"},
    {"secrets", R"({"type":"kubernetes.io/dockercfg","data":{".dockercfg":"MQ=="}})",
     "data[.dockercfg]: Invalid value: \"<secret contents redacted>\": json: cannot unmarshal number into Go value of type "
     "map[string]interface {}"},
    {"pods", R"({"spec":{"schedulingGates":[{"name":"a/b"},{"name":"a/b"}]}})",
     "spec.schedulingGates[1]: Duplicate value: \"a/b\""},
    {"pods", R"({"spec":{"nodeName":"n","schedulingGates":[{"name":"a/b"}]}})",
     "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
    {"pods", R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}})",
     "spec.ephemeralContainers: Forbidden: cannot be set on create"},
    {"pods", R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i","ports":[{"containerPort":80}]}]}})",
     "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container"},
    {"pods", R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i","targetContainerName":"x"}]}})",
     "spec.ephemeralContainers[0].targetContainerName: Not found: \"x\""},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","volumeDevices":[{"name":"v","devicePath":"/d"}]}]}})",
     "spec.containers[0].volumeDevices[0].name: Not found: \"v\""},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/p"}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/p","mountPropagation":"Bidirectional"}]}]}})",
     "spec.containers[0].volumeMounts[0].mountPropagation: Forbidden: Bidirectional mount propagation is available only to "
     "privileged containers"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","projected":{"sources":[{"configMap":{"name":"m","items":[{"key":"a","path":"p"}]}},{"secret":{"name":"s","items":[{"key":"a","path":"p"}]}}]}}]}})",
     "spec.volumes[0].projected: Invalid value: \"s\": conflicting duplicate paths"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","projected":{"sources":[{"downwardAPI":{"items":[{"path":"p","fieldRef":{"fieldPath":"metadata.name"}},{"path":"p","fieldRef":{"fieldPath":"metadata.uid"}}]}}]}}]}})",
     "spec.volumes[0].projected: Invalid value: \"p\": conflicting duplicate paths"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","lifecycle":{"preStop":{"sleep":{"seconds":31}}}}]}})",
     "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than "
     "terminationGracePeriodSeconds (30)"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","lifecycle":{"stopSignal":"SIGUSR1"}}]}})",
     "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`"},
    {"pods",
     R"({"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i","resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]}]}})",
     "spec.containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when `restartPolicy` is "
     "'Never'"},
    {"pods", R"({"spec":{"securityContext":{"sysctls":[{"name":"Net.x","value":"1"}]}}})",
     "spec.securityContext.sysctls[0].name: Invalid value: \"Net.x\": must have at most 253 characters and match regex "
     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"},
    {"pods", R"({"spec":{"hostNetwork":true,"securityContext":{"sysctls":[{"name":"net.core.somaxconn","value":"1"}]}}})",
     "spec.securityContext.sysctls[0].name: Invalid value: \"net.core.somaxconn\": may not be specified when 'hostNetwork' is "
     "true"},
    {"pods", R"({"spec":{"resourceClaims":[{"name":"r"}]}})",
     "spec.resourceClaims[0]: Invalid value: {\"name\":\"r\"}: must specify one of: `resourceClaimName`, "
     "`resourceClaimTemplateName`"},
    {"pods", R"({"spec":{"os":{"name":"plan9"}}})",
     "spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\""},
    {"pods", R"({"spec":{"os":{"name":"windows"},"hostPID":true}})", "spec.hostPID: Forbidden: cannot be set for a windows pod"},
    {"pods", R"({"spec":{"os":{"name":"windows"},"hostIPC":true}})", "spec.hostIPC: Forbidden: cannot be set for a windows pod"},
    {"pods", R"({"spec":{"os":{"name":"windows"},"hostUsers":true}})",
     "spec.hostUsers: Forbidden: cannot be set for a windows pod"},
    {"pods", R"({"spec":{"os":{"name":"windows"},"shareProcessNamespace":false}})",
     "spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod"},
    {"pods", R"({"spec":{"os":{"name":"windows"},"resources":{"limits":{"cpu":"1"}}}})",
     "spec.resources: Forbidden: cannot be set for a windows pod"},
    {"pods", R"({"spec":{"os":{"name":"windows"},"securityContext":{"runAsUser":0}}})",
     "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod"},
    {"pods", R"({"spec":{"os":{"name":"windows"},"securityContext":{"supplementalGroups":[0]}}})",
     "spec.securityContext.supplementalGroups: Forbidden: cannot be set for a windows pod"},
    {"pods", R"({"spec":{"os":{"name":"windows"},"securityContext":{"seccompProfile":{"type":"Unconfined"}}}})",
     "spec.securityContext.seccompProfile: Forbidden: cannot be set for a windows pod"},
    {"pods",
     R"({"spec":{"os":{"name":"windows"},"containers":[{"name":"c","image":"i","securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}]}})",
     "spec.containers[0].securityContext.capabilities: Forbidden: cannot be set for a windows pod"},
    {"pods",
     R"({"spec":{"os":{"name":"windows"},"initContainers":[{"name":"b","image":"i","securityContext":{"privileged":true}}]}})",
     "spec.initContainers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod"},
    {"pods",
     R"({"spec":{"os":{"name":"windows"},"ephemeralContainers":[{"name":"b","image":"i","securityContext":{"runAsUser":0}}]}})",
     "spec.ephemeralContainers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod"},
    {"deployments.apps",
     R"({"spec":{"template":{"spec":{"os":{"name":"windows"},"containers":[{"name":"c","image":"i","securityContext":{"allowPrivilegeEscalation":true}}]}}}})",
     "spec.template.spec.containers[0].securityContext.allowPrivilegeEscalation: Forbidden: cannot be set for a windows pod"},
    {"pods",
     R"({"spec":{"os":{"name":"linux"},"containers":[{"name":"c","image":"i","securityContext":{"windowsOptions":{"hostProcess":true}}}]}})",
     "spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","securityContext":{"allowPrivilegeEscalation":false,"privileged":true}}]}})",
     "spec.containers[0].securityContext: Invalid value: {\"privileged\":true,\"allowPrivilegeEscalation\":false}: cannot set "
     "`allowPrivilegeEscalation` to false and `privileged` to true"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"add":["CAP_SYS_ADMIN"]}}}]}})",
     "spec.containers[0].securityContext: Invalid value: {\"capabilities\":{\"add\":[\"CAP_SYS_ADMIN\"]},"
     "\"allowPrivilegeEscalation\":false}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/a:b"}]}]}})",
     "spec.containers[0].volumeMounts[0].mountPath: Invalid value: \"/a:b\": must not contain ':'"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"d","mountPath":"C:\\a:b"},{"name":"d","mountPath":"d:/ok"}]}],"volumes":[{"name":"d","emptyDir":{}}]}})",
     "spec.containers[0].volumeMounts[0].mountPath: Invalid value: \"C:\\\\a:b\": must not contain ':'"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/a","subPath":"a/../b"}]}]}})",
     "spec.containers[0].volumeMounts[0].subPath: Invalid value: \"a/../b\": must not contain '..'"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/a","subPathExpr":"$(A)/.."}]}]}})",
     "spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: \"$(A)/..\": must not contain '..'"},
    {"pods", R"({"spec":{"resources":{"claims":[{"name":"d"}]}}})",
     "spec.resources.claims: Forbidden: claims cannot be set for Resources at pod-level"},
    {"pods", R"({"spec":{"resources":{"limits":{"ephemeral-storage":"1Gi"}}}})",
     "spec.resources.limits[ephemeral-storage]: Unsupported value: \"ephemeral-storage\": supported values: \"cpu\", "
     "\"hugepages-\", \"memory\""},
    {"pods",
     R"({"spec":{"resources":{"requests":{"cpu":"1"}},"initContainers":[{"name":"s","image":"i","restartPolicy":"Always","resources":{"requests":{"cpu":"500m"}}},{"name":"b","image":"i","resources":{"requests":{"cpu":"600m"}}}]}})",
     "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of "
     "1100m"},
    {"pods",
     R"({"spec":{"resources":{"limits":{"cpu":"1"}},"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"2"}}}]}})",
     "spec.resources.containers[0][cpu].limits: Invalid value: \"2\": must be less than or equal to pod limits of 1"},
    {"pods", R"({"spec":{"hostAliases":[{"ip":"::ffff:1.2.3.4"}]}})",
     "spec.hostAliases[0].ip: Invalid value: \"::ffff:1.2.3.4\": must not be an IPv4-mapped IPv6 address"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1k"}}}]}]}})",
     "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and "
     "1 "
     "are supported with the cpu resource"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","downwardAPI":{"items":[{"path":"a","resourceFieldRef":{"resource":"limits.cpu"}}]}}]}})",
     "spec.volumes[0].downwardAPI.items[0].resourceFieldRef.containerName: Required value"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","downwardAPI":{"items":[{"path":"a","fieldRef":{"fieldPath":"spec.nodeName"}}]}}]}})",
     "spec.volumes[0].downwardAPI.items[0].fieldRef.fieldPath: Unsupported value: \"spec.nodeName\": supported values: "
     "\"metadata.annotations\", \"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\""},
    {"pods", R"({"spec":{"overhead":{"pods":"1"}}})",
     "spec.overhead.limits[pods]: Invalid value: \"pods\": must be a standard resource for containers"},
    {"pods", R"({"spec":{"dnsPolicy":"None"}})",
     "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"},
    {"pods", R"({"spec":{"dnsConfig":{"searches":["A"]}}})",
     "spec.dnsConfig.searches[0]: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
     "validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"},
    {"pods", R"({"spec":{"hostNetwork":true,"hostnameOverride":"a.b"}})",
     "spec.hostNetwork: Invalid value: true: must not be true when `hostnameOverride` is set"},
    {"pods", R"({"spec":{"setHostnameAsFQDN":true,"hostnameOverride":"a.b"}})",
     "spec.setHostnameAsFQDN: Invalid value: true: must not be true when `hostnameOverride` is set"},
    {"pods", R"({"spec":{"hostnameOverride":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbb"}})",
     "spec.hostnameOverride: Too long: may not be more than 64 bytes"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","restartPolicyRules":[{"action":"Restart"}]}]}})",
     "spec.containers[0].restartPolicy: Required value: must be set when `restartPolicyRules` are"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","restartPolicy":"Never","restartPolicyRules":[{"action":"Restart"}]}]}})",
     "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","restartPolicy":"Never","restartPolicyRules":[{"action":"Stop","exitCodes":{"operator":"In","values":[1]}}]}]}})",
     "spec.containers[0].restartPolicyRules[0].action: Unsupported value: \"Stop\": supported values: \"Restart\", "
     "\"RestartAllContainers\""},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/a","recursiveReadOnly":"Enabled"}]}]}})",
     "spec.containers[0].volumeMounts[0].recursiveReadOnly: Forbidden: may only be specified when readOnly is true"},
    {"pods", R"({"spec":{"tolerations":[{"key":"k","operator":"Gt","value":"many"}]}})",
     "spec.tolerations[0].value: Invalid value: \"many\": must be a whole number when `operator` is 'Lt' or 'Gt'"},
    {"pods", R"({"spec":{"tolerations":[{"key":"k","operator":"Exists","value":"v"}]}})",
     "spec.tolerations[0].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]}})",
     "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not "
     "set"},
    {"pods", R"({"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"much"}}})",
     "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"much\": must be a 32bit integer"},
    {"pods", R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}}})",
     "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set spec.nodeName if mirror pod annotation "
     "is "
     "set"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"configMapKeyRef":{"name":"m","key":"a/b"}}}]}]}})",
     "spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Invalid value: \"a/b\": a valid config key must consist of "
     "alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
     "'[-._a-zA-Z0-9]+')"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"../x","key":"K"}}}]}]}})",
     "spec.containers[0].env[0].valueFrom.fileKeyRef.path: Invalid value: \"../x\": must not contain '..'"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","livenessProbe":{"httpGet":{"port":80,"httpHeaders":[{"name":"a b","value":"x"}]}}}]}})",
     "spec.containers[0].livenessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of "
     "alphanumeric characters or "
     "'-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"hugepages-2Mi":"2Mi"}}}]}})",
     "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"example.com/gpu":"1"}}}]}})",
     "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","securityContext":{"appArmorProfile":{"type":"Localhost"}}}]}})",
     "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is "
     "Localhost"},
    {"pods", R"({"spec":{"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"/x"}}}})",
     "spec.securityContext.seccompProfile.localhostProfile: Invalid value: \"/x\": must be a relative path"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","image":{"pullPolicy":"Always"}}]}})",
     "spec.volumes[0].image.reference: Required value"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","nfs":{"server":"s","path":"p"}}]}})",
     "spec.volumes[0].nfs.path: Invalid value: \"p\": must be an absolute path"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","flocker":{}}]}})",
     "spec.volumes[0].flocker: Required value: one of datasetName and datasetUUID is required"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","flocker":{"datasetName":"a","datasetUUID":"b"}}]}})",
     "spec.volumes[0].flocker: Invalid value: \"resource\": datasetName and datasetUUID can not be specified simultaneously"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","flocker":{"datasetName":"a/b"}}]}})",
     "spec.volumes[0].flocker.datasetName: Invalid value: \"a/b\": must not contain '/'"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","gitRepo":{"repository":"r","directory":"a/../../b"}}]}})",
     "spec.volumes[0].gitRepo.directory: Invalid value: \"a/../../b\": must not contain '..'"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","gitRepo":{"repository":"r","directory":"/b"}}]}})",
     "spec.volumes[0].gitRepo.directory: Invalid value: \"/b\": must be a relative path"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","gcePersistentDisk":{"pdName":"p","partition":256}}]}})",
     "spec.volumes[0].gcePersistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive"},
    {"persistentvolumes", R"({"spec":{"hostPath":null,"awsElasticBlockStore":{"volumeID":"v","partition":-1}}})",
     "spec.awsElasticBlockStore.partition: Invalid value: -1: must be between 1 and 255, inclusive"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","iscsi":{"targetPortal":"t","iqn":"x","lun":1}}]}})",
     "spec.volumes[0].iscsi.iqn: Invalid value: \"x\": must be valid format starting with iqn, eui, or naa"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","fc":{"lun":1}}]}})",
     "spec.volumes[0].fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","ephemeral":{}}]}})",
     "spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"},
    {"services", R"({"spec":{"loadBalancerSourceRanges":["10.0.0.0/8"]}})",
     "spec.loadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"},
    {"services",
     R"({"metadata":{"annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":"10.0.0.0/8, 10.0.0.0/33"}},
         "spec":{"type":"LoadBalancer"}})",
     "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: \"10.0.0.0/33\": must be a "
     "valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
    {"services",
     R"({"metadata":{"annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":"10.0.0.0/8,"}},
         "spec":{"type":"LoadBalancer"}})",
     "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: \"\": must be a valid CIDR "
     "value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
    {"services", R"({"metadata":{"annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":""}}})",
     "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Forbidden: may only be used when `type` is "
     "'LoadBalancer'"},
    {"services", R"({"spec":{"loadBalancerClass":"a/b"}})",
     "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"},
    {"services", R"({"spec":{"healthCheckNodePort":30000}})",
     "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` "
     "is 'Local'"},
    {"services", R"({"spec":{"trafficDistribution":"Near"}})",
     "spec.trafficDistribution: Unsupported value: \"Near\": supported values: \"PreferClose\", \"PreferSameZone\", "
     "\"PreferSameNode\""},
    {"services", R"({"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":80}]}})",
     "spec.ports[1]: Duplicate value: "
     "{\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}"},
    {"services", R"({"spec":{"ports":[]}})", "spec.ports: Required value"},
    {"services", R"({"spec":{"ports":[{"port":0}]}})",
     "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"},
    {"services", R"({"spec":{"type":"Both"}})",
     "spec.type: Unsupported value: \"Both\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\""},
    {"services", R"({"spec":{"ports":[{"port":80},{"port":81}]}})", "spec.ports[0].name: Required value"},
    {"services", R"({"spec":{"type":"ExternalName"}})", "spec.externalName: Required value"},
    {"services", R"({"spec":{"type":"ExternalName","externalName":"a.b","clusterIP":"10.43.0.9"}})",
     "spec.clusterIPs: Forbidden: may not be set for ExternalName services"},
    {"services", R"({"spec":{"type":"ExternalName","externalName":"a.b","clusterIP":"None"}})",
     "spec.clusterIPs: Forbidden: may not be set for ExternalName services"},
    {"services", R"({"spec":{"type":"ExternalName","externalName":"a.b","ipFamilies":["IPv4"]}})",
     "spec.ipFamilies: Forbidden: may not be set for ExternalName services"},
    {"services", R"({"spec":{"type":"ExternalName","externalName":"a.b","ipFamilyPolicy":"SingleStack"}})",
     "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services"},
    {"services", R"({"spec":{"externalIPs":["127.0.0.1"]}})",
     "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)"},
    {"services", R"({"spec":{"externalIPs":["::ffff:127.0.0.1"]}})",
     "spec.externalIPs[0]: Invalid value: \"::ffff:127.0.0.1\": must not be an IPv4-mapped IPv6 address"},
    {"services", R"({"spec":{"externalIPs":["192.0.02.1"]}})",
     "spec.externalIPs[0]: Invalid value: \"192.0.02.1\": must not have leading 0s"},
    {"services", R"({"spec":{"externalIPs":["192.0.2.1","0.0.0.0"]}})",
     "spec.externalIPs[1]: Invalid value: \"0.0.0.0\": may not be unspecified (0.0.0.0)"},
    {"services", R"({"spec":{"externalIPs":["169.254.1.1"]}})",
     "spec.externalIPs[0]: Invalid value: \"169.254.1.1\": may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
    {"services", R"({"spec":{"externalIPs":["febf::1"]}})",
     "spec.externalIPs[0]: Invalid value: \"febf::1\": may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
    {"services", R"({"spec":{"externalIPs":["224.0.0.5"]}})",
     "spec.externalIPs[0]: Invalid value: \"224.0.0.5\": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
    {"services", R"({"spec":{"externalIPs":["239.1.2.3"]}})",
     "spec.externalIPs[0]: Invalid value: \"239.1.2.3\": may not be a multicast address (224.0.0.0/4, ff00::/8)"},
    {"services", R"({"spec":{"externalIPs":["255.255.255.255"]}})",
     "spec.externalIPs[0]: Invalid value: \"255.255.255.255\": may not be the broadcast address"},
    {"services", R"({"spec":{"type":"LoadBalancer","loadBalancerIP":"::1"}})",
     "spec.loadBalancerIP: Invalid value: \"::1\": may not be in the loopback range (127.0.0.0/8, ::1/128)"},
    {"services", R"({"spec":{"ipFamilies":["IPv4","IPv4"]}})", "spec.ipFamilies[1]: Duplicate value: \"IPv4\""},
    {"endpoints", R"({"subsets":[{"addresses":[{"ip":"x"}]}]})",
     "subsets[0].addresses[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
    {"endpoints", R"({"subsets":[{"addresses":[{"ip":"127.0.0.1"}]}]})",
     "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)"},
    {"endpoints", R"({"subsets":[{"ports":[{"port":80}]}]})",
     "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"},
    {"endpoints", R"({"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":0}]}]})",
     "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"},
    {"endpoints", R"({"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":1,"protocol":"IP"}]}]})",
     "subsets[0].ports[0].protocol: Unsupported value: \"IP\": supported values: \"SCTP\", \"TCP\", \"UDP\""},
    {"configmaps", R"({"data":{"a/b":"x"}})",
     "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
     "'key.name',  or "
     "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"},
    {"configmaps", R"({"binaryData":{"k":"AA=="}})", "data[k]: Invalid value: \"k\": duplicate of key present in binaryData"},
    {"configmaps", R"({"data":{"..":"x"}})", "data[..]: Invalid value: \"..\": must not be '..'"},
    {"configmaps", R"({"metadata":{"namespace":null}})", "metadata.namespace: Required value"},
    {"configmaps", R"({"metadata":{"labels":{"k":"a b"}}})",
     "metadata.labels: Invalid value: \"a b\": a valid label must be an empty string or consist of alphanumeric characters, '-', "
     "'_' or '.', and "
     "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
     "is "
     "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
    {"secrets", R"({"type":"kubernetes.io/tls"})", "data[tls.crt]: Required value"},
    {"secrets", R"({"type":"kubernetes.io/dockerconfigjson"})", "data[.dockerconfigjson]: Required value"},
    {"secrets", R"({"type":"kubernetes.io/basic-auth"})", "data[username]: Required value"},
    {"secrets", R"({"type":"kubernetes.io/ssh-auth"})", "data[ssh-privatekey]: Required value"},
    {"secrets", R"({"type":"kubernetes.io/service-account-token"})",
     "metadata.annotations[kubernetes.io/service-account.name]: Required value"},
    {"serviceaccounts", R"({"metadata":{"name":"-"}})",
     "metadata.name: Invalid value: \"-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
     "'-' or '.', and must "
     "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"serviceaccounts", R"({"metadata":{"name":null}})", "metadata.name: Required value: name or generateName is required"},
    {"serviceaccounts", R"({"metadata":{"generateName":"-"}})",
     "metadata.generateName: Invalid value: \"-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
     "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"serviceaccounts", R"({"metadata":{"ownerReferences":[{"kind":"K","name":"n","uid":"u"}]}})",
     "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty"},
    {"serviceaccounts", R"({"metadata":{"annotations":{"/x":""}}})",
     "metadata.annotations: Invalid value: \"/x\": prefix part must be non-empty"},
    {"serviceaccounts", R"({"metadata":{"generation":-1}})",
     "metadata.generation: Invalid value: -1: must be greater than or equal to 0"},
    {"namespaces", R"({"metadata":{"namespace":"d"}})", "metadata.namespace: Forbidden: not allowed on this type"},
    {"namespaces", R"({"metadata":{"name":"a.b"}})",
     "metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
     "'-', and must start "
     "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"namespaces", R"({"metadata":{"name":null}})", "metadata.name: Required value: name or generateName is required"},
    {"namespaces", R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}]}})",
     "metadata.ownerReferences: Invalid value: {\"kind\":\"Event\",\"name\":\"n\",\"uid\":\"u\",\"apiVersion\":\"v1\"}: /v1, "
     "Kind=Event is "
     "disallowed from being an owner"},
    {"namespaces", R"({"metadata":{"labels":{"a/b/c":"x"}}})",
     "metadata.labels: Invalid value: \"a/b/c\": a qualified name must consist of alphanumeric characters, '-', '_' or '.', and "
     "must start and end "
     "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
     "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"},
    {"nodes", R"({"spec":{"taints":[{"key":"k","effect":"Never"}]}})",
     "spec.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoExecute\", \"NoSchedule\", "
     "\"PreferNoSchedule\""},
    {"nodes", R"({"spec":{"taints":[{"effect":"NoSchedule"}]}})", "spec.taints[0].key: Required value"},
    {"nodes", R"({"metadata":{"namespace":"d"}})", "metadata.namespace: Forbidden: not allowed on this type"},
    {"nodes", R"({"metadata":{"labels":{"":"x"}}})", "metadata.labels: Invalid value: \"\": name part must be non-empty"},
    {"nodes", R"({"spec":{"podCIDRs":["x"]}})",
     "spec.podCIDRs[0]: Invalid value: \"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
    {"events", R"({"involvedObject":{"namespace":"e"}})",
     "involvedObject.namespace: Invalid value: \"e\": does not match event.namespace"},
    {"events", R"({"metadata":{"namespace":null}})", "metadata.namespace: Required value"},
    {"events", R"({"metadata":{"name":"A"}})",
     "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
     "'-' or '.', and must "
     "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"events", R"({"metadata":{"finalizers":["a b"]}})",
     "metadata.finalizers: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and "
     "must start and end "
     "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
     "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"events", R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n"}]}})",
     "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"},
    {"events", R"({"metadata":{"ownerReferences":[{"apiVersion":"a/b/c","kind":"K","name":"n","uid":"u"}]}})",
     "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty"},
    {"events", R"({"metadata":{"ownerReferences":[{"apiVersion":"apps/","kind":"K","name":"n","uid":"u"}]}})",
     "metadata.ownerReferences.apiVersion: Invalid value: \"apps/\": version must not be empty"},
    {"events", R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","name":"n","uid":"u"}]}})",
     "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty"},
    {"configmaps",
     R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":true},{"apiVersion":"v1","kind":"L","name":"o","uid":"v","controller":true}]}})",
     "metadata.ownerReferences: Invalid value: "
     "[{\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\",\"apiVersion\":\"v1\",\"controller\":true},"
     "{\"kind\":\"L\",\"name\":\"o\",\"uid\":\"v\",\"apiVersion\":\"v1\",\"controller\":true}]: Only one reference can have "
     "Controller set to true. Found \"true\" in references for K/n and L/o"},
    {"configmaps", R"({"metadata":{"finalizers":["orphan","foregroundDeletion"]}})",
     "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be "
     "both set"},
    {"configmaps", R"({"metadata":{"finalizers":["orphan","mine"]}})",
     "metadata.finalizers[1]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified"},
    {"replicationcontrollers", R"({"spec":{"template":null}})", "spec.template: Required value"},
    {"replicationcontrollers", R"({"spec":{"replicas":-1}})",
     "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
    {"replicationcontrollers", R"({"spec":{"minReadySeconds":-1}})",
     "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
    {"replicationcontrollers", R"({"spec":{"selector":{"a":"c"}}})",
     "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
    {"replicationcontrollers", R"({"spec":{"template":{"spec":{"restartPolicy":"Never"}}}})",
     "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""},
    {"podtemplates", R"({"template":{"spec":{"containers":[]}}})", "template.spec.containers: Required value"},
    {"podtemplates", R"({"template":{"spec":{"containers":[{"name":"c"}]}}})",
     "template.spec.containers[0].image: Required value"},
    {"podtemplates", R"({"template":{"spec":{"dnsPolicy":"Mine"}}})",
     "template.spec.dnsPolicy: Unsupported value: \"Mine\": supported values: \"ClusterFirst\", \"ClusterFirstWithHostNet\", "
     "\"Default\", \"None\""},
    {"podtemplates", R"({"template":{"metadata":{"labels":{"a b":"c"}}}})",
     "template.metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and "
     "must start and end "
     "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
     "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"podtemplates", R"({"template":{"spec":{"activeDeadlineSeconds":0}}})",
     "template.spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"},
    {"limitranges", R"({"spec":{"limits":[{"type":"Container","min":{"cpu":"3"},"max":{"cpu":"2"}}]}})",
     "spec.limits[0].min[cpu]: Invalid value: \"3\": min value 3 is greater than max value 2"},
    {"limitranges", R"({"spec":{"limits":[{"type":"Pod","default":{"cpu":"1"}}]}})",
     "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"},
    {"limitranges", R"({"spec":{"limits":[{"type":"Thing"}]}})",
     "spec.limits[0].type: Invalid value: \"Thing\": must be a standard limit type or fully qualified"},
    {"limitranges", R"({"spec":{"limits":[{"type":"Pod"},{"type":"Pod"}]}})", "spec.limits[1].type: Duplicate value: \"Pod\""},
    {"limitranges", R"({"spec":{"limits":[{"type":"PersistentVolumeClaim"}]}})",
     "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided"},
    {"limitranges", R"({"spec":{"limits":[{"type":"Container","max":{"pods":"2"}}]}})",
     "spec.limits[0].max[pods]: Invalid value: \"pods\": must be a standard resource for containers"},
    {"limitranges", R"({"spec":{"limits":[{"type":"Container","maxLimitRequestRatio":{"cpu":"500m"}}]}})",
     "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is less than 1"},
    {"resourcequotas", R"({"spec":{"hard":{"pods":"-1"}}})",
     "spec.hard[pods]: Invalid value: \"-1\": must be greater than or equal to 0"},
    {"resourcequotas", R"({"spec":{"hard":{"pods":"1500m"}}})", "spec.hard[pods]: Invalid value: \"1500m\": must be an integer"},
    {"resourcequotas", R"({"spec":{"hard":{"things":"1"}}})",
     "spec.hard[things]: Invalid value: \"things\": must be a standard resource type or fully qualified"},
    {"resourcequotas", R"({"spec":{"hard":{"storage":"1"}}})",
     "spec.hard[storage]: Invalid value: \"storage\": must be a standard resource for quota"},
    {"resourcequotas", R"({"spec":{"scopes":["Never"]}})", "spec.scopes: Invalid value: [\"Never\"]: unsupported scope"},
    {"resourcequotas", R"({"spec":{"scopes":["BestEffort","NotBestEffort"]}})",
     "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes"},
    {"resourcequotas", R"({"spec":{"hard":{"pods":null,"cpu":"1"},"scopes":["BestEffort"]}})",
     "spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"},
    {"resourcequotas", R"({"spec":{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In"}]}}})",
     "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' "
     "for scope selector"},
    {"persistentvolumes", R"({"metadata":{"annotations":{"volume.beta.kubernetes.io/mount-options":"ro"}}})",
     "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount options for this volume "
     "type"},
    {"persistentvolumes", R"({"spec":{"capacity":null}})", "spec.capacity: Required value"},
    {"persistentvolumes", R"({"spec":{"accessModes":[]}})", "spec.accessModes: Required value"},
    {"persistentvolumes", R"({"spec":{"hostPath":null}})", "spec: Required value: must specify a volume type"},
    {"persistentvolumes", R"({"spec":{"nfs":{"server":"s","path":"/p"}}})",
     "spec.nfs: Forbidden: may not specify more than 1 volume type"},
    {"persistentvolumes", R"({"spec":{"accessModes":["Always"]}})",
     "spec.accessModes: Unsupported value: \"Always\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", "
     "\"ReadWriteOncePod\""},
    {"persistentvolumes", R"({"spec":{"hostPath":null,"local":{"path":"/p"}}})",
     "spec.nodeAffinity: Required value: Local volume requires node affinity"},
    {"persistentvolumes", R"({"spec":{"hostPath":{"path":"/"},"persistentVolumeReclaimPolicy":"Recycle"}})",
     "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"},
    {"persistentvolumes", R"({"spec":{"capacity":{"storage":"0"}}})",
     "spec.capacity[storage]: Invalid value: \"0\": must be greater than zero"},
    {"persistentvolumeclaims", R"({"spec":{"accessModes":[]}})",
     "spec.accessModes: Required value: at least 1 access mode is required"},
    {"persistentvolumeclaims", R"({"spec":{"resources":null}})", "spec.resources[storage]: Required value"},
    {"persistentvolumeclaims", R"({"spec":{"resources":{"requests":{"storage":"-1"}}}})",
     "spec.resources[storage]: Invalid value: \"-1\": must be greater than zero"},
    {"persistentvolumeclaims", R"({"spec":{"accessModes":["ReadWriteOncePod","ReadWriteMany"]}})",
     "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
    {"persistentvolumeclaims", R"({"spec":{"volumeMode":"Tape"}})",
     "spec.volumeMode: Unsupported value: \"Tape\": supported values: \"Block\", \"Filesystem\""},
    {"persistentvolumeclaims", R"({"spec":{"dataSource":{"kind":"Secret","name":"s"}}})",
     "spec.dataSource: Invalid value: \"Secret\": must be 'PersistentVolumeClaim' when referencing the default apiGroup"},
    {"deployments.apps", R"({"spec":{"selector":null}})", "spec.selector: Required value"},
    {"deployments.apps", R"({"spec":{"replicas":-1}})", "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
    {"deployments.apps", R"({"spec":{"strategy":{"type":"Hope"}}})",
     "spec.strategy: Unsupported value: {\"Type\":\"Hope\",\"RollingUpdate\":null}: supported values: \"Recreate\", "
     "\"RollingUpdate\""},
    {"deployments.apps", R"({"spec":{"strategy":{"type":"Recreate","rollingUpdate":{}}}})",
     "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"},
    {"deployments.apps", R"({"spec":{"progressDeadlineSeconds":5,"minReadySeconds":5}})",
     "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"},
    {"replicasets.apps", R"({"spec":{"selector":{"matchLabels":null}}})",
     "spec.selector: Invalid value: {}: empty selector is invalid for deployment"},
    {"replicasets.apps", R"({"spec":{"selector":{"matchLabels":{"a":"c"}}}})",
     "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
    {"replicasets.apps", R"({"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"In"}]}}})",
     "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
    {"replicasets.apps", R"({"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"In"}]}}})",
     "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}: "
     "invalid label selector"},
    {"statefulsets.apps", R"({"spec":{"selector":{"matchLabels":null,"matchExpressions":[{"key":"a","operator":"In"}]}}})",
     "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}"},
    {"replicasets.apps", R"({"spec":{"minReadySeconds":-1}})",
     "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
    {"replicasets.apps", R"({"spec":{"template":{"spec":{"activeDeadlineSeconds":5}}}})",
     "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"},
    {"statefulsets.apps", R"({"spec":{"selector":null}})", "spec.selector: Required value"},
    {"statefulsets.apps", R"({"metadata":{"name":"a.b"}})",
     "metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
     "'-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"statefulsets.apps", R"({"spec":{"podManagementPolicy":"Random"}})",
     "spec.podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or 'Parallel'"},
    {"statefulsets.apps", R"({"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"partition":1}}}})",
     "spec.updateStrategy.rollingUpdate: Invalid value: {\"partition\":1}: only allowed for updateStrategy 'RollingUpdate'"},
    {"statefulsets.apps", R"({"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":-1}}}})",
     "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0"},
    {"statefulsets.apps", R"({"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"0%"}}}})",
     "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": cannot be 0"},
    {"statefulsets.apps", R"({"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Keep"}}})",
     "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: \"Keep\": supported values: \"Retain\", "
     "\"Delete\""},
    {"statefulsets.apps", R"({"spec":{"ordinals":{"start":-1}}})",
     "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"},
    {"daemonsets.apps", R"({"spec":{"selector":null}})",
     "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
    {"daemonsets.apps", R"({"spec":{"selector":{"matchLabels":{"a":"c"}}}})",
     "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
    {"daemonsets.apps", R"({"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}})",
     "spec.template.spec.restartPolicy: Unsupported value: \"OnFailure\": supported values: \"Always\""},
    {"daemonsets.apps", R"({"spec":{"updateStrategy":{"type":"Hope"}}})",
     "spec.updateStrategy: Unsupported value: {\"Type\":\"Hope\",\"RollingUpdate\":null}: supported values: \"RollingUpdate\", "
     "\"OnDelete\""},
    {"daemonsets.apps", R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}})",
     "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
    {"daemonsets.apps", R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1,"maxSurge":1}}}})",
     "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"},
    {"daemonsets.apps", R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"101%"}}}})",
     "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"},
    {"controllerrevisions.apps", R"({"data":null})", "data: Required value: data is mandatory"},
    {"controllerrevisions.apps", R"({"revision":-1})", "revision: Invalid value: -1: must be greater than or equal to 0"},
    {"controllerrevisions.apps", R"({"metadata":{"name":null}})",
     "metadata.name: Required value: name or generateName is required"},
    {"controllerrevisions.apps", R"({"metadata":{"namespace":null}})", "metadata.namespace: Required value"},
    {"controllerrevisions.apps", R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"K","uid":"u"}]}})",
     "metadata.ownerReferences.name: Invalid value: \"\": must not be empty"},
    {"jobs.batch", R"({"spec":{"selector":null}})", "spec.selector: Required value"},
    {"jobs.batch", R"({"spec":{"parallelism":-1}})", "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"},
    {"jobs.batch", R"({"spec":{"template":{"spec":{"restartPolicy":"Always"}}}})",
     "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""},
    {"jobs.batch", R"({"spec":{"completionMode":"Indexed","parallelism":2}})",
     "spec.completions: Required value: when completion mode is Indexed"},
    {"jobs.batch", R"({"spec":{"backoffLimitPerIndex":1}})",
     "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"},
    {"jobs.batch", R"({"spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"v"}}}})",
     "spec.selector: Invalid value: {\"matchLabels\":{\"batch.kubernetes.io/controller-uid\":\"v\"}}: `selector` not "
     "auto-generated"},
    {"jobs.batch", R"({"spec":{"template":{"metadata":{"labels":{"job-name":null}}}}})",
     "spec.template.metadata.labels[job-name]: Required value: must be 'x'"},
    {"jobs.batch", R"({"spec":{"managedBy":"me"}})",
     "spec.managedBy: Invalid value: \"me\": must be a domain-prefixed path (such as \"acme.io/foo\")"},
    {"jobs.batch", R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Ignore"}]}}})",
     "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"},
    {"jobs.batch",
     R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Count","onExitCodes":{"operator":"In","values":[3,0,3]}}]}}})",
     "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator"},
    {"jobs.batch",
     R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Count","onExitCodes":{"operator":"In","values":[3,0,3]}}]}}})",
     "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered"},
    {"jobs.batch",
     R"({"spec":{"completionMode":"Indexed","completions":3,"successPolicy":{"rules":[{"succeededIndexes":"0-5"}]}}})",
     "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"0-5\": error parsing succeededIndexes: too large index: "
     "\"5\""},
    {"cronjobs.batch", R"({"spec":{"schedule":""}})", "spec.schedule: Required value"},
    {"cronjobs.batch", R"({"spec":{"schedule":"* * * *"}})",
     "spec.schedule: Invalid value: \"* * * *\": expected exactly 5 fields, found 4: [* * * *]"},
    {"cronjobs.batch", R"({"spec":{"schedule":"61 * * * *"}})",
     "spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61"},
    {"cronjobs.batch", R"({"spec":{"schedule":"x * * * *"}})",
     "spec.schedule: Invalid value: \"x * * * *\": failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"},
    {"cronjobs.batch", R"({"spec":{"schedule":"@sometimes"}})",
     "spec.schedule: Invalid value: \"@sometimes\": unrecognized descriptor: @sometimes"},
    {"cronjobs.batch", R"({"spec":{"schedule":"TZ=UTC 0 * * * *"}})",
     "spec.schedule: Invalid value: \"TZ=UTC 0 * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead"},
    {"cronjobs.batch", R"({"spec":{"concurrencyPolicy":"Queue"}})",
     "spec.concurrencyPolicy: Unsupported value: \"Queue\": supported values: \"Allow\", \"Forbid\", \"Replace\""},
    {"cronjobs.batch", R"({"spec":{"timeZone":"-x"}})", "spec.timeZone: Invalid value: \"-x\": unknown time zone -x"},
    {"cronjobs.batch", R"({"spec":{"timeZone":"Mars/Olympus"}})",
     "spec.timeZone: Invalid value: \"Mars/Olympus\": unknown time zone Mars/Olympus"},
    {"cronjobs.batch", R"({"spec":{"startingDeadlineSeconds":-1}})",
     "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"},
    {"cronjobs.batch", R"({"metadata":{"name":"a234567890123456789012345678901234567890123456789012x"}})",
     "metadata.name: Invalid value: \"a234567890123456789012345678901234567890123456789012x\": must be no more than 52 "
     "characters"},
    {"cronjobs.batch", R"({"spec":{"jobTemplate":{"spec":{"manualSelector":true}}}})",
     "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: \"nil\", \"false\""},
    {"horizontalpodautoscalers.autoscaling", R"({"spec":{"maxReplicas":0}})",
     "spec.maxReplicas: Invalid value: 0: must be greater than 0"},
    {"horizontalpodautoscalers.autoscaling", R"({"spec":{"minReplicas":5}})",
     "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"},
    {"horizontalpodautoscalers.autoscaling", R"({"spec":{"minReplicas":0}})",
     "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"},
    {"horizontalpodautoscalers.autoscaling", R"({"spec":{"scaleTargetRef":{"name":""}}})",
     "spec.scaleTargetRef.name: Required value"},
    {"horizontalpodautoscalers.autoscaling", R"({"spec":{"scaleTargetRef":{"kind":"a/b"}}})",
     "spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'"},
    {"horizontalpodautoscalers.autoscaling", R"({"spec":{"metrics":[{"type":"Resource"}]}})",
     "spec.metrics[0].resource: Required value: must populate information for the given metric source"},
    {"horizontalpodautoscalers.autoscaling",
     R"({"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Value"}}}]}})",
     "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target "
     "utilization"},
    {"horizontalpodautoscalers.autoscaling", R"({"spec":{"behavior":{"scaleUp":{"stabilizationWindowSeconds":3601}}}})",
     "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"},
    {"horizontalpodautoscalers.autoscaling",
     R"({"spec":{"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":0,"periodSeconds":1}]}}}})",
     "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero"},
    {"poddisruptionbudgets.policy", R"({"spec":{"minAvailable":-1}})",
     "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"},
    {"poddisruptionbudgets.policy", R"({"spec":{"minAvailable":"101%"}})",
     "spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"},
    {"poddisruptionbudgets.policy", R"({"spec":{"minAvailable":"few"}})",
     "spec.minAvailable: Invalid value: \"few\": a valid percent string must be a numeric string followed by an ending '%' (e.g. "
     "'1%',  or '93%', "
     "regex used for validation is '[0-9]+%')"},
    {"poddisruptionbudgets.policy", R"({"spec":{"maxUnavailable":1,"selector":null}})",
     "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: "
     "minAvailable and "
     "maxUnavailable cannot be both set"},
    {"poddisruptionbudgets.policy", R"({"spec":{"unhealthyPodEvictionPolicy":"Ask"}})",
     "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Ask\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\""},
    {"networkpolicies.networking.k8s.io", R"({"spec":{"policyTypes":["Both"]}})",
     "spec.policyTypes[0]: Unsupported value: \"Both\": supported values: \"Egress\", \"Ingress\""},
    {"networkpolicies.networking.k8s.io", R"({"spec":{"ingress":[{"from":[{}]}]}})",
     "spec.ingress[0].from[0]: Required value: must specify a peer"},
    {"networkpolicies.networking.k8s.io",
     R"({"spec":{"ingress":[{"from":[{"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}}]}]}})",
     "spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer"},
    {"networkpolicies.networking.k8s.io",
     R"({"spec":{"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["11.0.0.0/16"]}}]}]}})",
     "spec.egress[0].to[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`"},
    {"networkpolicies.networking.k8s.io", R"({"spec":{"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.1"}}]}]}})",
     "spec.egress[0].to[0].ipBlock.cidr: Invalid value: \"10.0.0.1\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or "
     "2001:db8::/64)"},
    {"networkpolicies.networking.k8s.io", R"({"spec":{"ingress":[{"ports":[{"port":"http","endPort":90}]}]}})",
     "spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is non-numeric"},
    {"networkpolicies.networking.k8s.io", R"({"spec":{"ingress":[{"ports":[{"port":0}]}]}})",
     "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"},
    {"ingresses.networking.k8s.io", R"({"spec":{"defaultBackend":null}})",
     "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"},
    {"ingresses.networking.k8s.io", R"({"spec":{"rules":[{"host":"10.0.0.1"}]}})",
     "spec.rules[0].host: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address"},
    {"ingresses.networking.k8s.io", R"({"spec":{"rules":[{"http":{"paths":[{"path":"x","pathType":"Exact","backend":{}}]}}]}})",
     "spec.rules[0].http.paths[0].path: Invalid value: \"x\": must be an absolute path"},
    {"ingresses.networking.k8s.io", R"({"spec":{"rules":[{"http":{"paths":[{"path":"/x","backend":{}}]}}]}})",
     "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"},
    {"ingresses.networking.k8s.io", R"({"spec":{"rules":[{"http":{"paths":[]}}]}})", "spec.rules[0].http.paths: Required value"},
    {"ingresses.networking.k8s.io", R"({"spec":{"defaultBackend":{"service":{"port":{"number":null}}}}})",
     "spec.defaultBackend: Required value: port name or number is required"},
    {"ingresses.networking.k8s.io", R"({"spec":{"defaultBackend":{"service":null}}})",
     "spec.defaultBackend: Invalid value: \"\": resource or service backend is required"},
    {"ingressclasses.networking.k8s.io", R"({"spec":{"controller":""}})", "spec.controller: Required value"},
    {"ingressclasses.networking.k8s.io", R"({"spec":{"controller":"c"}})",
     "spec.controller: Invalid value: \"c\": must be a domain-prefixed path (such as \"acme.io/foo\")"},
    {"ingressclasses.networking.k8s.io", R"({"spec":{"parameters":{"name":"n"}}})",
     "spec.parameters.kind: Required value: kind is required"},
    {"ingressclasses.networking.k8s.io", R"({"spec":{"parameters":{"kind":"K","name":"n","namespace":"d"}}})",
     "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"},
    {"ingressclasses.networking.k8s.io", R"({"spec":{"parameters":{"kind":"K","name":"n","scope":"Namespace"}}})",
     "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"},
    {"ingressclasses.networking.k8s.io", R"({"spec":{"parameters":{"kind":"K","name":"n","scope":"World"}}})",
     "spec.parameters.scope: Unsupported value: \"World\": supported values: \"Cluster\", \"Namespace\""},
    {"ipaddresses.networking.k8s.io", R"({"metadata":{"name":"x"}})",
     "metadata.name: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
    {"ipaddresses.networking.k8s.io", R"({"metadata":{"name":"2001:DB8::1"}})",
     "metadata.name: Invalid value: \"2001:DB8::1\": must be in canonical form (\"2001:db8::1\")"},
    {"ipaddresses.networking.k8s.io", R"({"spec":{"parentRef":null}})", "spec.parentRef: Required value"},
    {"ipaddresses.networking.k8s.io", R"({"spec":{"parentRef":{"resource":null}}})", "spec.parentRef.resource: Required value"},
    {"ipaddresses.networking.k8s.io", R"({"spec":{"parentRef":{"name":"a/b"}}})",
     "spec.parentRef.name: Invalid value: \"a/b\": may not contain '/'"},
    {"ipaddresses.networking.k8s.io", R"({"metadata":{"name":"010.0.0.1"}})",
     "metadata.name: Invalid value: \"010.0.0.1\": must not have leading 0s"},
    {"servicecidrs.networking.k8s.io", R"({"spec":{"cidrs":null}})", "spec.cidrs: Required value: at least one CIDR required"},
    {"servicecidrs.networking.k8s.io", R"({"spec":{"cidrs":["x"]}})",
     "spec.cidrs[0]: Invalid value: \"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
    {"servicecidrs.networking.k8s.io", R"({"spec":{"cidrs":["10.0.0.1/16"]}})",
     "spec.cidrs[0]: Invalid value: \"10.0.0.1/16\": must not have bits set beyond the prefix length"},
    {"servicecidrs.networking.k8s.io", R"({"spec":{"cidrs":["10.0.0.0/16","11.0.0.0/16"]}})",
     "spec.cidrs: Invalid value: {\"CIDRs\":[\"10.0.0.0/16\",\"11.0.0.0/16\"]}: may specify no more than one IP for each IP "
     "family, i.e "
     "192.168.0.0/24 and 2001:db8::/64"},
    {"servicecidrs.networking.k8s.io", R"({"spec":{"cidrs":["10.0.0.0/16","::/64","::/96"]}})",
     "spec.cidrs: Invalid value: {\"CIDRs\":[\"10.0.0.0/16\",\"::/64\",\"::/96\"]}: may only hold up to 2 values"},
    {"priorityclasses.scheduling.k8s.io", R"({"value":1000000001})",
     "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
    {"priorityclasses.scheduling.k8s.io", R"({"metadata":{"name":"system-mine"}})",
     "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine "
     "is not a known "
     "system priority class"},
    {"priorityclasses.scheduling.k8s.io", R"({"metadata":{"name":"system-node-critical"}})",
     "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of "
     "system-node-critical "
     "PriorityClass must be 2000001000"},
    {"priorityclasses.scheduling.k8s.io", R"({"preemptionPolicy":"Always"})",
     "preemptionPolicy: Unsupported value: \"Always\": supported values: \"Never\", \"PreemptLowerPriority\""},
    {"priorityclasses.scheduling.k8s.io", R"({"metadata":{"namespace":"d"}})",
     "metadata.namespace: Forbidden: not allowed on this type"},
    {"runtimeclasses.node.k8s.io", R"({"handler":"H"})",
     "handler: Invalid value: \"H\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
     "must start and end "
     "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"runtimeclasses.node.k8s.io", R"({"overhead":{"podFixed":{"cpu":"-1"}}})",
     "overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"},
    {"runtimeclasses.node.k8s.io", R"({"overhead":{"podFixed":{"pods":"1"}}})",
     "overhead.limits[pods]: Invalid value: \"pods\": must be a standard resource for containers"},
    {"runtimeclasses.node.k8s.io", R"({"scheduling":{"nodeSelector":{"a/b/c":"x"}}})",
     "scheduling.nodeSelector: Invalid value: \"a/b/c\": a qualified name must consist of alphanumeric characters, '-', '_' or "
     "'.', and must start "
     "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
     "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"},
    {"runtimeclasses.node.k8s.io",
     R"({"scheduling":{"tolerations":[{"key":"k","operator":"Exists"},{"key":"k","operator":"Exists"}]}})",
     "scheduling.tolerations[1]: Duplicate value: {\"key\":\"k\",\"operator\":\"Exists\"}"},
    {"runtimeclasses.node.k8s.io", R"({"scheduling":{"tolerations":[{"operator":"Equal"}]}})",
     "scheduling.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means "
     "\"match all values and "
     "all keys\""},
    {"leases.coordination.k8s.io", R"({"spec":{"leaseDurationSeconds":0}})",
     "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"},
    {"leases.coordination.k8s.io", R"({"spec":{"leaseTransitions":-1}})",
     "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"},
    {"leases.coordination.k8s.io", R"({"metadata":{"namespace":null}})", "metadata.namespace: Required value"},
    {"leases.coordination.k8s.io", R"({"metadata":{"name":null}})",
     "metadata.name: Required value: name or generateName is required"},
    {"leases.coordination.k8s.io", R"({"metadata":{"annotations":{"a/":""}}})",
     "metadata.annotations: Invalid value: \"a/\": name part must be non-empty"},
    {"endpointslices.discovery.k8s.io", R"({"addressType":""})", "addressType: Required value"},
    {"endpointslices.discovery.k8s.io", R"({"addressType":"IPX"})",
     "addressType: Unsupported value: \"IPX\": supported values: \"FQDN\", \"IPv4\", \"IPv6\""},
    {"endpointslices.discovery.k8s.io", R"({"endpoints":[{"addresses":[]}]})", "endpoints[0].addresses: Required value"},
    {"endpointslices.discovery.k8s.io", R"({"endpoints":[{"addresses":["::1"]}]})",
     "endpoints[0].addresses[0]: Invalid value: \"::1\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
    {"endpointslices.discovery.k8s.io", R"({"endpoints":[{"addresses":["10.0.0.1"],"hostname":"A"}]})",
     "endpoints[0].hostname: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
     "or '-', and must "
     "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
};

TEST(Invalid, the_samples_are_valid) {
  for (const auto& [name, object] : valid_objects()) {
    std::vector<Cause> causes = validate_create(info_by_resource(name), made(name, "{}"));
    EXPECT_TRUE(causes.empty()) << name << ": " << causes.front().field << ": " << causes.front().message;
  }
}

struct ValidRow {
  const char* kind;
  const char* patch;
};

// Input that Kubernetes accepts and manifests use, although the documentation suggests otherwise.
const ValidRow kAccepted[] = {
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"add":["SYS_ADMIN"]}}}]}})"},
    {"pods",
     R"({"spec":{"os":{"name":"windows"},"hostNetwork":true,"securityContext":{"runAsNonRoot":true,"windowsOptions":{"runAsUserName":"u"}},"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"C:\\data"},{"name":"v","mountPath":"D:"}]}]}})"},
    {"pods", R"({"spec":{"os":{"name":"linux"},"securityContext":{"runAsUser":5}}})"},
    {"services", R"({"spec":{"type":"ExternalName","externalName":"a.b."}})"},
    {"services", R"({"metadata":{"name":"1-web"}})"},
    {"configmaps", R"({"metadata":{"finalizers":["orphan","kubernetes","a/b"]}})"},
    {"configmaps", R"({"metadata":{"finalizers":["foregroundDeletion"]}})"},
    {"configmaps", R"({"metadata":{"generateName":"a.-"}})"},  // the name that is made of it would be none
    {"configmaps",
     R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":true},{"apiVersion":"v1","kind":"K","name":"o","uid":"v","controller":false}]}})"},
    {"ingresses.networking.k8s.io", R"({"spec":{"defaultBackend":{"service":{"name":"1-web","port":{"number":80}}}}})"},
    {"pods", R"({"spec":{"dnsConfig":{"searches":[".","_sip._tcp.a_b.example.com","example.com."]}}})"},
    {"pods", R"({"spec":{"hostname":"h","hostnameOverride":"db.example.com"}})"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","restartPolicy":"Never","restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]}]}})"},
    {"pods", R"({"spec":{"tolerations":[{"key":"k","operator":"Lt","value":"-5"}]}})"},
    {"pods", R"({"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-10"}}})"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"a.b-c d","value":"x"}]}]}})"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","lifecycle":{"preStop":{"sleep":{"seconds":0}}}}]}})"},
    {"pods",
     R"({"spec":{"volumes":[{"name":"v","image":{"reference":"i"}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/a","subPath":"b"}]}]}})"},
    {"deployments.apps", R"({"spec":{"template":{"spec":{"volumes":[{"name":"v","image":{"pullPolicy":"Always"}}]}}}})"},
    {"services", R"({"spec":{"trafficDistribution":"PreferSameNode"}})"},
    {"pods", R"({"spec":{"terminationGracePeriodSeconds":-1}})"},
    {"deployments.apps", R"({"spec":{"template":{"spec":{"terminationGracePeriodSeconds":-9223372036854775808}}}})"},
    // A key that the server itself has added to the selector, and one in a template, where it adds none.
    {"pods",
     R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"ScheduleAnyway","matchLabelKeys":["k"],"labelSelector":{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}}]}})"},
    {"deployments.apps",
     R"({"spec":{"template":{"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"ScheduleAnyway","matchLabelKeys":["k"],"labelSelector":{"matchLabels":{"k":"v"}}}]}}}})"},
    {"pods",
     R"({"spec":{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"k","operator":"In","values":["-v"]}]}}]}}}})"},
    {"deployments.apps", R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":" i "}]}}}})"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":"a-"}}],"env":[{"name":"E","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a.b/C']"}}}]}]}})"},
    {"deployments.apps",
     R"({"spec":{"template":{"spec":{"hostNetwork":true,"initContainers":[{"name":"b","image":"i","ports":[{"containerPort":1,"hostPort":2}]}]}}}})"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","projected":{"sources":[{},{"configMap":{"name":"m"}}]}}]}})"},
    {"pods", R"({"spec":{"volumes":[{"name":"v","projected":{}},{"name":"w"}]}})"},
};

TEST(Invalid, what_kubernetes_accepts_is_valid) {
  for (const ValidRow& row : kAccepted) {
    std::vector<Cause> causes = validate_create(info_by_resource(row.kind), made(row.kind, row.patch));
    EXPECT_TRUE(causes.empty()) << row.kind << " " << row.patch << ": " << causes.front().field << ": " << causes.front().message;
  }
}

// Keys do not count, and of a Secret its decoded bytes do.
TEST(Invalid, a_mebibyte_of_values_is_not_too_much) {
  constexpr size_t kMost = 1 << 20;
  for (std::string kind : {"configmaps", "secrets"})
    for (size_t more : {0, 1}) {
      json::value object = made(kind, "{}");
      std::string text(kMost + more, 'a');
      make(object, "data") = json::object{{"a-key", kind == "secrets" ? base64_encode(text) : text}};
      std::vector<Cause> causes = validate_create(info_by_resource(kind), object);
      EXPECT_EQ(causes.size(), more) << kind;
      for (const Cause& cause : causes) EXPECT_EQ(cause.reason, "FieldValueTooLong");
    }
}

TEST(Invalid, each_kind_says_what_is_wrong_where_and_why) {
  std::map<std::string, size_t> seen;
  for (const InvalidRow& row : kInvalid) {
    ++seen[row.kind];
    expect_cause(validate_create(info_by_resource(row.kind), made(row.kind, row.patch)), row);
  }
  for (const auto& [name, object] : valid_objects()) EXPECT_GE(seen[name], 5u) << name;
}

struct Change {
  const char* kind;
  const char* before;
  const char* now;
  const char* subresource;
  const char* want;  // "" = valid
};

const Change kChanges[] = {
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"},"limits":{"memory":"2Gi"}}}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})", "resize",
     "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"},"limits":{"memory":"2Gi"}}}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"memory":"2Gi"}}}]}})", "resize",
     "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"},
    {"pods", "{}", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})", "resize",
     "spec: Invalid value: \"BestEffort\": Pod QOS Class may not change as a result of resizing"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2"}}}]}})",
     "resize", ""},
    {"pods",
     R"({"spec":{"resourceClaims":[{"name":"g","resourceClaimName":"x"}],"containers":[{"name":"c","image":"i","resources":{"claims":[{"name":"g"}],"requests":{"cpu":"1"}}}]}})",
     R"({"spec":{"resourceClaims":[{"name":"g","resourceClaimName":"x"}],"containers":[{"name":"c","image":"i","resources":{"claims":[{"name":"g"}],"requests":{"cpu":"2"}}}]}})",
     "resize", ""},
    {"pods",
     R"({"spec":{"resourceClaims":[{"name":"g","resourceClaimName":"x"}],"containers":[{"name":"c","image":"i","resources":{"claims":[{"name":"g"}],"requests":{"cpu":"1"}}}]}})",
     R"({"spec":{"resourceClaims":[{"name":"g","resourceClaimName":"x"}],"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]}})",
     "resize", "spec: Forbidden: only cpu and memory resources are mutable"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"},"limits":{"example.com/x":"1"}}}]}})",
     "resize", "spec: Forbidden: only cpu and memory resources are mutable"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i","resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}],"resources":{"requests":{"cpu":"1"}}}]}})",
     "resize", "spec: Forbidden: only cpu and memory resources are mutable"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1","ephemeral-storage":"1"}}}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})", "resize",
     "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i"}]}})", "resize",
     "spec.containers: Forbidden: containers may not be added or removed on resize"},
    {"pods", R"({"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}})",
     R"({"spec":{"containers":[{"name":"d","image":"i"},{"name":"c","image":"i"}]}})", "resize",
     "spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize"},
    {"pods", "{}", R"({"spec":{"initContainers":[{"name":"b","image":"i"}]}})", "resize",
     "spec.initContainers: Forbidden: initContainers may not be added or removed on resize"},
    {"pods", R"({"spec":{"initContainers":[{"name":"b","image":"i","resources":{"requests":{"cpu":"1"}}}]}})",
     R"({"spec":{"initContainers":[{"name":"b","image":"i","resources":{"requests":{"cpu":"2"}}}]}})", "resize", ""},
    {"pods", R"({"spec":{"initContainers":[{"name":"b","image":"i","resources":{"requests":{"cpu":"1"}}}]}})",
     R"({"spec":{"initContainers":[{"name":"b","image":"i","resources":{"requests":{"cpu":"1","ephemeral-storage":"1"}}}]}})",
     "resize", "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are mutable"},
    {"pods", R"({"spec":{"resources":{"requests":{"cpu":"1"}}}})", R"({"spec":{"resources":{"requests":{"cpu":"2"}}}})", "resize",
     ""},
    {"pods", R"({"spec":{"resources":{"requests":{"cpu":"1"}}}})", R"({"spec":{}})", "resize",
     "spec.resources: Forbidden: pod-level resources cannot be removed"},
    {"pods", R"({"spec":{"resources":{"requests":{"cpu":"1","memory":"1Mi"}}}})",
     R"({"spec":{"resources":{"requests":{"cpu":"1"}}}})", "resize",
     "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed"},
    {"pods", R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"u"}},"spec":{"nodeName":"n"}})",
     R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"u"}},"spec":{"nodeName":"n"}})", "resize",
     ": Forbidden: static pods cannot be resized"},
    {"pods", R"({"spec":{"os":{"name":"windows"}}})", R"({"spec":{"os":{"name":"windows"}}})", "resize",
     ": Forbidden: windows pods cannot be resized"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]}})", "resize",
     "spec: Forbidden: Pod running on node without support for resize"},
    {"pods",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]},"status":{"containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"1"}},"state":{"running":{}}}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]}})", "resize", ""},
    {"statefulsets.apps", R"({"metadata":{"name":"a.b"}})", R"({"metadata":{"name":"a.b","labels":{"c":"d"}}})", "", ""},
    {"configmaps", R"({"metadata":{"finalizers":["mine"]}})", R"({"metadata":{"finalizers":["mine","a/b"]}})", "", ""},
    {"configmaps", R"({"metadata":{"finalizers":["orphan"]}})", R"({"metadata":{"finalizers":["orphan","foregroundDeletion"]}})",
     "",
     "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be "
     "both set"},
    {"configmaps", "{}", R"({"metadata":{"finalizers":["mine"]}})", "",
     "metadata.finalizers[0]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified"},
    {"pods", R"({"spec":{"schedulingGates":[{"name":"a/b"}]}})", R"({"spec":{"schedulingGates":[]}})", "", ""},
    {"pods", R"({"spec":{"schedulingGates":[{"name":"a/b"}]}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"nodeSelector":{"k":"v"}}})", "", ""},
    {"pods", R"({"spec":{"schedulingGates":[{"name":"a/b"}]}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}})",
     "", ""},
    {"pods",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]},{"key":"l","operator":"Exists"}]}]}}}}})",
     "", ""},
    {"pods",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]},"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"l","operator":"Exists"}]}}]}}}})",
     "", ""},
    {"pods",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"l","operator":"Exists"}]}]}}}}})",
     "",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid value: "
     "{\"matchExpressions\":[{\"key\":\"l\",\"operator\":\"Exists\"}]}: only additions are allowed (no mutations or deletions)"},
    {"pods",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]},{"matchExpressions":[{"key":"l","operator":"Exists"}]}]}}}}})",
     "",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid value: "
     "[{\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\",\"values\":[\"v\"]}]},{\"matchExpressions\":[{\"key\":\"l\","
     "\"operator\":"
     "\"Exists\"}]}]: no additions/deletions to non-empty NodeSelectorTerms list are allowed"},
    {"pods",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":null}})", "",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid value: []: no "
     "additions/deletions to non-empty NodeSelectorTerms list are allowed"},
    {"pods", R"({"spec":{"schedulingGates":[{"name":"a/b"}]}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}},"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z"}]}}}})",
     "",
     "spec: Forbidden: pod updates may not change fields other than "
     "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec."
     "activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
     "(allow "
     "it to be set to 1 if it was previously negative)\nchanged: spec.affinity"},
    {"pods", R"({"spec":{}})",
     R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}}}})",
     "",
     "spec: Forbidden: pod updates may not change fields other than "
     "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec."
     "activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
     "(allow "
     "it to be set to 1 if it was previously negative)\nchanged: spec.affinity"},
    // What was allowed once stays; what is new is held to the rules.
    {"pods",
     R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["a b"]}]}]}}}}})",
     R"({"metadata":{"labels":{"c":"d"}},"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["a b"]}]}]}}}}})",
     "", ""},
    {"deployments.apps",
     R"({"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["a b"]}]}]}}}}}}})",
     R"({"spec":{"replicas":2,"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["a b"]}]}]}}}}}}})",
     "", ""},
    {"pods", R"({"spec":{"terminationGracePeriodSeconds":-1}})", R"({"spec":{"terminationGracePeriodSeconds":1}})", "", ""},
    {"pods", R"({"spec":{"terminationGracePeriodSeconds":-1}})",
     R"({"metadata":{"labels":{"c":"d"}},"spec":{"terminationGracePeriodSeconds":-1}})", "", ""},
    {"pods", "{}", R"({"spec":{"containers":[{"name":"c","image":"i "}]}})", "",
     "spec.containers[0].image: Invalid value: \"i \": must not have leading or trailing whitespace"},
    {"pods", "{}", R"({"spec":{"schedulingGates":[{"name":"a/b"}]}})", "",
     "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a/b'"},
    {"pods", R"({"spec":{"schedulingGates":[{"name":"a/b"}],"nodeSelector":{"k":"v"}}})",
     R"({"spec":{"schedulingGates":[{"name":"a/b"}],"nodeSelector":{"k":"w"}}})", "",
     "spec.nodeSelector: Invalid value: {\"k\":\"w\"}: only additions to spec.nodeSelector are allowed (no mutations or "
     "deletions)"},
    {"pods",
     R"({"spec":{"restartPolicy":"Never"},"status":{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":0}}}]}})",
     R"({"spec":{"restartPolicy":"Never"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}})", "status",
     "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"},
    {"pods", "{}", R"({"status":{"podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}})", "status",
     "status.podIPs: Invalid value: [{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\"}]: may specify no more than one IP for each IP "
     "family"},
    {"pods", "{}", R"({"status":{"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.2"}]}})", "status",
     "status.hostIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `hostIP`"},
    {"pods", R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}})",
     R"({"spec":{"ephemeralContainers":[{"name":"d","image":"j"}]}})", "ephemeralcontainers",
     "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be changed\n"},
    {"pods", "{}", R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}}})", "",
     "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation"},
    {"pods", R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"runtime/default"}}})",
     R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}}})", "",
     "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not remove or update AppArmor "
     "annotations"},
    {"services", R"({"spec":{"type":"LoadBalancer","loadBalancerClass":"a/b"}})",
     R"({"spec":{"type":"LoadBalancer","loadBalancerClass":"a/c"}})", "",
     "spec.loadBalancerClass: Invalid value: \"a/c\": may not change once set"},
    {"services", R"({"spec":{"type":"LoadBalancer","loadBalancerClass":"a/b"}})",
     R"({"spec":{"type":"LoadBalancer","loadBalancerClass":"a/b"},"status":{"loadBalancer":{"ingress":[{"ip":"127.0.0.1"}]}}})",
     "status",
     "status.loadBalancer.ingress[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)"},
    {"services", R"({"spec":{"type":"LoadBalancer","loadBalancerClass":"a/b"}})",
     R"({"spec":{"type":"LoadBalancer","loadBalancerClass":"a/b"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}})",
     "status", ""},
    {"services", "{}", R"({"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}})", "status",
     "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is LoadBalancer"},
    {"services", R"({"spec":{"type":"LoadBalancer"}})",
     R"({"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"hostname":"10.0.0.1"}]}}})", "status",
     "status.loadBalancer.ingress[0].hostname: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address"},
    {"statefulsets.apps", "{}", R"({"spec":{"replicas":5,"revisionHistoryLimit":2,"minReadySeconds":1}})", "", ""},
    {"statefulsets.apps", "{}", R"({"spec":{"serviceName":"t"}})", "",
     "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
     "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"},
    {"statefulsets.apps", "{}", R"({"status":{"replicas":1,"readyReplicas":2}})", "status",
     "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"},
    {"daemonsets.apps", R"({"spec":{"template":{"metadata":{"labels":{"c":"d"}}}}})",
     R"({"spec":{"selector":{"matchLabels":{"c":"d"}},"template":{"metadata":{"labels":{"c":"d"}}}}})", "",
     "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"c\":\"d\"}}: field is immutable"},
    {"daemonsets.apps", "{}", R"({"status":{"numberReady":-1}})", "status",
     "status.numberReady: Invalid value: -1: must be greater than or equal to 0"},
    {"deployments.apps", R"({"status":{"collisionCount":2}})", R"({"status":{"collisionCount":1}})", "status",
     "status.collisionCount: Invalid value: 1: cannot be decremented"},
    {"controllerrevisions.apps", "{}", R"({"data":{"x":2}})", "", "data: Invalid value: {\"x\":2}: field is immutable"},
    {"jobs.batch", R"({"spec":{"completions":1}})", R"({"spec":{"completions":1,"parallelism":5,"suspend":true}})", "", ""},
    {"jobs.batch", "{}", R"({"spec":{"completions":5}})", "", "spec.completions: Invalid value: 5: field is immutable"},
    {"jobs.batch", R"({"spec":{"completionMode":"Indexed","completions":3,"parallelism":3}})",
     R"({"spec":{"completionMode":"Indexed","completions":4,"parallelism":4}})", "", ""},
    {"jobs.batch", R"({"spec":{"completionMode":"Indexed","completions":3,"parallelism":3}})",
     R"({"spec":{"completionMode":"Indexed","completions":4,"parallelism":3}})", "",
     "spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"},
    {"jobs.batch", R"({"spec":{"suspend":true}})", R"({"spec":{"suspend":true,"template":{"spec":{"nodeSelector":{"a":"b"}}}}})",
     "", ""},
    {"jobs.batch", R"({"spec":{"managedBy":"a.b/c"}})", R"({"spec":{"managedBy":"a.b/d"}})", "",
     "spec.managedBy: Invalid value: \"a.b/d\": field is immutable"},
    {"jobs.batch", "{}", R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})", "status",
     "status.completionTime: Required value: completionTime is required for Complete jobs"},
    {"jobs.batch", R"({"status":{"failed":2}})", R"({"status":{"failed":1}})", "status",
     "status.failed: Invalid value: 1: cannot decrease the failed counter"},
    {"jobs.batch",
     R"({"spec":{"completionMode":"Indexed","completions":3,"parallelism":4},"status":{"succeeded":2,"completedIndexes":"0,2"}})",
     R"({"spec":{"completionMode":"Indexed","completions":3,"parallelism":4},"status":{"succeeded":1,"completedIndexes":"0"}})",
     "status", "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter"},
    {"jobs.batch",
     R"({"spec":{"completionMode":"Indexed","completions":1,"parallelism":4},"status":{"succeeded":2,"completedIndexes":"0,2"}})",
     R"({"spec":{"completionMode":"Indexed","completions":1,"parallelism":4},"status":{"succeeded":1,"completedIndexes":"0"}})",
     "status", ""},
    {"jobs.batch", R"({"status":{"startTime":"2024-01-01T00:00:00Z"}})", R"({"status":{"startTime":"2024-01-01T00:00:01Z"}})",
     "status", "status.startTime: Required value: startTime cannot be removed for unsuspended job"},
    {"jobs.batch", R"({"status":{"startTime":"2024-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"True"}]}})",
     R"({"status":{"startTime":"2024-01-01T00:00:01Z","conditions":[{"type":"Suspended","status":"False"}]}})", "status", ""},
    {"jobs.batch", R"({"spec":{"suspend":true},"status":{"startTime":"2024-01-01T00:00:00Z"}})",
     R"({"spec":{"suspend":true},"status":{"startTime":null}})", "status", ""},
    {"jobs.batch", "{}", R"({"status":{"ready":2,"active":1}})", "status",
     "status.ready: Invalid value: 2: cannot set more ready pods than active"},
    {"persistentvolumes", "{}", R"({"spec":{"capacity":{"storage":"2Gi"}}})", "", ""},
    {"persistentvolumes", "{}", R"({"spec":{"hostPath":{"path":"/b"}}})", "",
     "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\nchanged: spec.hostPath"},
    {"persistentvolumes",
     R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"failure-domain.beta.kubernetes.io/zone","operator":"In","values":["a"]}]}]}}}})",
     R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a"]}]}]}}}})",
     "", ""},
    {"persistentvolumes",
     R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a"]}]}]}}}})",
     R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["b"]}]}]}}}})",
     "",
     "nodeAffinity: Invalid value: "
     "{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"topology.kubernetes.io/zone\","
     "\"operator\":\"In\",\"values\":[\"b\"]}]}]}}: field is immutable, except for updating from beta label to GA"},
    {"persistentvolumes", "{}",
     R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a"]}]}]}}}})",
     "", ""},
    {"persistentvolumes", "{}", R"({"spec":{"volumeMode":"Block"}})", "",
     "volumeMode: Invalid value: \"Block\": field is immutable"},
    {"persistentvolumeclaims", "{}", R"({"spec":{"volumeName":"v"}})", "", ""},
    {"persistentvolumeclaims", "{}", R"({"spec":{"accessModes":["ReadWriteMany"]}})", "",
     "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
     "claims\n"
     "changed: spec.accessModes"},
    {"persistentvolumeclaims", R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})",
     R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}},"spec":{"resources":{"requests":{"storage":"2Gi"}}}})", "", ""},
    {"persistentvolumeclaims", R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})",
     R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}},"spec":{"resources":{"requests":{"storage":"1Mi"}}}})", "",
     "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"},
    {"persistentvolumeclaims", R"({"spec":{"storageClassName":"a"}})", R"({"spec":{"storageClassName":"b"}})", "",
     "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
     "claims\n"
     "changed: spec.storageClassName"},
    {"persistentvolumeclaims", "{}", R"({"spec":{"storageClassName":"b"}})", "", ""},
    {"persistentvolumeclaims", R"({"spec":{"volumeAttributesClassName":"a"}})", R"({"spec":{"volumeAttributesClassName":"b"}})", "",
     "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
     "claims\n"
     "changed: spec.volumeAttributesClassName"},
    {"persistentvolumeclaims", R"({"spec":{"volumeAttributesClassName":"a"},"status":{"phase":"Bound"}})",
     R"({"spec":{"volumeAttributesClassName":null},"status":{"phase":"Bound"}})", "", ""},
    {"persistentvolumeclaims",
     R"({"spec":{"volumeAttributesClassName":"a"},"status":{"phase":"Bound","currentVolumeAttributesClassName":"a"}})",
     R"({"spec":{"volumeAttributesClassName":null},"status":{"phase":"Bound","currentVolumeAttributesClassName":"a"}})", "",
     "spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when status.currentVolumeAttributesClassName is not "
     "nil"},
    {"persistentvolumeclaims",
     R"({"spec":{"volumeAttributesClassName":"a"},"status":{"phase":"Bound","currentVolumeAttributesClassName":"a"}})",
     R"({"spec":{"volumeAttributesClassName":""},"status":{"phase":"Bound","currentVolumeAttributesClassName":"a"}})", "",
     "spec.volumeAttributesClassName: Forbidden: update to empty string is forbidden when "
     "status.currentVolumeAttributesClassName is not nil"},
    {"resourcequotas", R"({"spec":{"scopes":["BestEffort"]}})", R"({"spec":{"scopes":["Terminating"]}})", "",
     "spec.scopes: Invalid value: [\"Terminating\"]: field is immutable"},
    {"resourcequotas", "{}", R"({"status":{"used":{"pods":"-1"}}})", "status",
     "status.used[pods]: Invalid value: \"-1\": must be greater than or equal to 0"},
    {"priorityclasses.scheduling.k8s.io", "{}", R"({"value":6})", "", "value: Forbidden: may not be changed in an update."},
    {"priorityclasses.scheduling.k8s.io", "{}", R"({"preemptionPolicy":"Never"})", "",
     "preemptionPolicy: Invalid value: \"Never\": field is immutable"},
    {"runtimeclasses.node.k8s.io", "{}", R"({"handler":"i"})", "", "handler: Invalid value: \"i\": field is immutable"},
    {"ingressclasses.networking.k8s.io", "{}", R"({"spec":{"controller":"a.b/c"}})", "",
     "spec.controller: Invalid value: \"a.b/c\": field is immutable"},
    {"endpointslices.discovery.k8s.io", "{}", R"({"addressType":"IPv6","endpoints":[{"addresses":["fd00::1"]}]})", "",
     "addressType: Invalid value: \"IPv6\": field is immutable"},
    {"ipaddresses.networking.k8s.io", "{}", R"({"spec":{"parentRef":{"name":"t"}}})", "",
     "spec.parentRef: Invalid value: {\"resource\":\"services\",\"namespace\":\"d\",\"name\":\"t\"}: field is immutable"},
    {"servicecidrs.networking.k8s.io", "{}", R"({"spec":{"cidrs":["10.1.0.0/16"]}})", "",
     "spec.cidrs: Invalid value: [\"10.1.0.0/16\"]: field is immutable"},
    {"ingresses.networking.k8s.io", "{}", R"({"status":{"loadBalancer":{"ingress":[{"ip":"x"}]}}})", "status",
     "status.loadBalancer.ingress[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
    {"poddisruptionbudgets.policy", "{}", R"({"status":{"expectedPods":-1}})", "status",
     "status.expectedPods: Invalid value: -1: must be greater than or equal to 0"},
    {"horizontalpodautoscalers.autoscaling", "{}", R"({"status":{"desiredReplicas":-1}})", "status",
     "status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0"},
};

TEST(Invalid, what_may_not_change_stays) {
  for (const Change& change : kChanges) {
    std::vector<Cause> causes = validate_update(info_by_resource(change.kind), made(change.kind, change.now),
                                                made(change.kind, change.before), change.subresource);
    if (*change.want) expect_cause(causes, {change.kind, change.now, change.want});
    else
      EXPECT_TRUE(causes.empty()) << change.kind << " " << change.now << ": " << causes.front().field << ": "
                                  << causes.front().message;
  }
}

}  // namespace
}  // namespace coracle::schema
