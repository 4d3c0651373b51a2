// SPDX-License-Identifier: Apache-2.0
// Validation: the refusals, with field and message.
#include "store/schema/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "store/object/status.h"
#include "tests/store/schema/prepared.h"

namespace coracle::schema {
namespace {

std::string pod(const std::string& spec) { return R"({"metadata":{"name":"x","namespace":"d"},"spec":{)" + spec + "}}"; }

std::string container(const std::string& more) {
  return pod(R"("containers":[{"name":"a","image":"b")" + std::string(more.empty() ? "" : ",") + more + "}]");
}

struct ValidateRow {
  const Kind& kind;
  std::string object;
  const char* want;  // "" = valid; otherwise every line of the result
};

TEST(Validate, finds_what_is_wrong_and_says_where) {
  const std::string meta = R"({"metadata":{"name":"x","namespace":"d"},)";
  for (
      const ValidateRow& row : {
          ValidateRow{kPod, container(""), ""},
          ValidateRow{
              kPod, R"({"metadata":{"name":"X","namespace":"d"},"spec":{"containers":[]}})",
              "metadata.name: Invalid value: \"X\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
              "characters, "
              "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation "
              "is "
              "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\nspec.containers: Required value\n"},
          ValidateRow{kPod, pod(R"("containers":[{"name":"a"},{"name":"a","image":"x"}])"),
                      "spec.containers[0].image: Required value\nspec.containers[1].name: Duplicate value: \"a\"\n"},
          ValidateRow{
              kPod, pod(R"("restartPolicy":"Sometimes","containers":[{"name":"a","image":"b"}])"),
              "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\", \"OnFailure\"\n"},
          ValidateRow{
              kPod,
              pod(R"("initContainers":[{"name":"s","image":"b","restartPolicy":"always"}],"containers":[{"name":"a","image":"b"}])"),
              "spec.initContainers[0].restartPolicy: Unsupported value: \"always\": supported values: \"Always\", \"Never\", "
              "\"OnFailure\"\n"},
          ValidateRow{kPod,
                      container(R"("ports":[{"containerPort":0},{"containerPort":70000},{"containerPort":80,"name":"-x-"}])"),
                      "spec.containers[0].ports[0].containerPort: Required value\n"
                      "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive\n"
                      "spec.containers[0].ports[2].name: Invalid value: \"-x-\": must not begin or end with a hyphen\n"},
          ValidateRow{
              kPod, container(R"("volumeMounts":[{"name":"v","mountPath":"/x"},{"name":"v","mountPath":"/x"}])"),
              "spec.containers[0].volumeMounts[0].name: Not found: \"v\"\nspec.containers[0].volumeMounts[1].name: Not found: "
              "\"v\"\n"
              "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/x\": must be unique\n"},
          ValidateRow{
              kPod,
              container(
                  R"("env":[{"name":"A=B","value":"1"},{"name":"C","value":"1","valueFrom":{"fieldRef":{"fieldPath":"spec.foo"}}},{"name":"D","valueFrom":{}}])"),
              "spec.containers[0].env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of "
              "printable "
              "ASCII characters other than '='\n"
              "spec.containers[0].env[1].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.foo\": error converting fieldPath: "
              "field label "
              "not supported: spec.foo\n"
              "spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty\n"
              "spec.containers[0].env[2].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, "
              "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`\n"},
          ValidateRow{
              kPod,
              container(
                  R"("livenessProbe":{"successThreshold":2,"exec":{"command":["x"]},"tcpSocket":{"port":80}},"readinessProbe":{"periodSeconds":-1})"),
              "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type\n"
              "spec.containers[0].readinessProbe: Required value: must specify a handler type\n"
              "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0\n"
              "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1\n"},
          ValidateRow{
              kPod, container(R"("resources":{"requests":{"cpu":"2","memory":"-1","foo":"1"},"limits":{"cpu":"1"}})"),
              "spec.containers[0].resources.requests[foo]: Invalid value: \"foo\": must be a standard resource type or fully "
              "qualified\n"
              "spec.containers[0].resources.requests[foo]: Invalid value: \"foo\": must be a standard resource for containers\n"
              "spec.containers[0].resources.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0\n"
              "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1\n"},
          ValidateRow{
              kPod,
              pod(R"("volumes":[{"name":"v","emptyDir":{},"hostPath":{"path":"/a/../b"}},{"name":"v"},{"name":"s","secret":{}}],"containers":[{"name":"a","image":"b"}])"),
              "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'\n"
              "spec.volumes[0].emptyDir: Forbidden: may not specify more than 1 volume type\n"
              "spec.volumes[2].secret.secretName: Required value\n"
              "spec.volumes[1].name: Duplicate value: \"v\"\n"},
          ValidateRow{
              kPod,
              pod(R"("dnsPolicy":"None","activeDeadlineSeconds":0,"hostname":"A","tolerations":[{"operator":"Equal","value":"x"}],"containers":[{"name":"a","image":"b"}])"),
              nullptr},
          ValidateRow{kPod, container(R"("securityContext":{"privileged":true,"allowPrivilegeEscalation":false,"runAsUser":-1})"),
                      nullptr},
          ValidateRow{
              kPod,
              pod(R"("hostUsers":false,"hostNetwork":true,"hostPID":true,"hostIPC":true,"containers":[{"name":"a","image":"b"}])"),
              "spec.hostNetwork: Forbidden: when `hostUsers` is false\nspec.HostPID: Forbidden: when `hostUsers` is false\n"
              "spec.HostIPC: Forbidden: when `hostUsers` is false\n"},
          ValidateRow{
              kPod,
              pod(R"("hostUsers":false,"shareProcessNamespace":true,"containers":[{"name":"a","image":"b","securityContext":{"procMount":"Unmasked"}}])"),
              ""},
          ValidateRow{kPod, pod(R"("hostUsers":true,"hostNetwork":true,"containers":[{"name":"a","image":"b"}])"), ""},
          ValidateRow{
              kPod,
              pod(R"("hostUsers":false,"volumes":[{"name":"v","hostPath":{"path":"/a"}}],"containers":[{"name":"a","image":"b","volumeDevices":[{"name":"v","devicePath":"/dev/x"}]}])"),
              "spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false\n"
              "spec.containers[0].volumeDevices[0].name: Invalid value: \"v\": can only use volume source type of "
              "PersistentVolumeClaim or "
              "Ephemeral for block mode\n"},
          ValidateRow{
              kPod, container(R"("securityContext":{"procMount":"Unmasked"})"),
              "spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use "
              "`Unmasked`\n"},
          ValidateRow{kPod, pod(R"("initContainers":[{"name":"i","image":"b","ports":[{"containerPort":80,"hostPort":80}]},
               {"name":"j","image":"b","ports":[{"containerPort":80,"hostPort":80},{"containerPort":81,"hostPort":80},
               {"containerPort":81,"hostPort":80,"protocol":"UDP"}]}],
               "containers":[{"name":"a","image":"b","ports":[{"containerPort":80,"hostPort":80}]},
               {"name":"c","image":"b","ports":[{"containerPort":81,"hostPort":80}]}])"),
                      "spec.initContainers[1].ports[1].hostPort: Duplicate value: \"TCP//80\"\n"
                      "spec.containers[1].ports[0].hostPort: Duplicate value: \"TCP//80\"\n"},
          ValidateRow{kDeployment, meta + R"("spec":{"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}})",
                      "spec.selector: Required value\n"
                      "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`\n"},
          ValidateRow{
              kDeployment,
              meta + R"("spec":{"replicas":-1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"c"}},
               "spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}})",
              "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
              "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match template `labels`\n"
              "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"\n"},
          ValidateRow{
              kDeployment,
              meta +
                  R"("spec":{"strategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":"0%"}},"selector":{"matchLabels":{"a":"b"}},
               "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}})",
              "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0\n"},
          ValidateRow{
              kService, R"({"metadata":{"name":"1.x","namespace":"d"},"spec":{}})",
              "metadata.name: Invalid value: \"1.x\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
              "characters "
              "or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
              "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')\nspec.ports: Required value\n"},
          ValidateRow{kService, meta + R"("spec":{"ports":[{"port":80,"nodePort":30000},{"name":"b","port":0}]}})",
                      "spec.ports[0].name: Required value\nspec.ports[0].nodePort: Forbidden: may not be used when `type` is "
                      "'ClusterIP'\n"
                      "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive\n"
                      "spec.ports[1].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive\n"},
          ValidateRow{kService, meta + R"("spec":{"clusterIP":"None"}})", ""},
          ValidateRow{kService, meta + R"("spec":{"type":"ExternalName"}})", "spec.externalName: Required value\n"},
          ValidateRow{kConfigMap, meta + R"("data":{"a/b":"x","c":"y"},"binaryData":{"c":"AA=="}})", nullptr},
          ValidateRow{kSecret, meta + R"("type":"kubernetes.io/tls","data":{"tls.crt":""}})", "data[tls.key]: Required value\n"},
          ValidateRow{kConfigMap, R"({"metadata":{"name":"x"}})", "metadata.namespace: Required value\n"},
          ValidateRow{kNamespace, R"({"metadata":{"name":"a.b"}})", nullptr},
          ValidateRow{kNode, R"({"metadata":{"name":"a.b"},"spec":{"taints":[{"key":"k","effect":"Never"}]}})",
                      "spec.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoExecute\", \"NoSchedule\", "
                      "\"PreferNoSchedule\"\n"},
          ValidateRow{kEndpointSlice,
                      meta + R"("addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]},{"addresses":["::1"]}]})",
                      "endpoints[1].addresses[0]: Invalid value: \"::1\": must be a valid IP address, (e.g. 10.9.8.7 or "
                      "2001:db8::ffff)\n"},
          ValidateRow{kEndpointSlice, meta + R"("addressType":"IPv4","endpoints":[]})", ""},
          ValidateRow{kLease, meta + R"("spec":{"leaseDurationSeconds":0}})",
                      "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0\n"},
          ValidateRow{kEvent, meta + R"("involvedObject":{"namespace":"other"}})",
                      "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace\n"},
          ValidateRow{kServiceAccount,
                      R"({"metadata":{"name":"x","namespace":"d","labels":{"a b":"c","d":"e f"},"annotations":{"A/B/C":""},
               "ownerReferences":[{}]}})",
                      nullptr},
      }) {
    std::vector<Cause> causes = validate_create(catalog().of(row.kind), prepared(row.kind, row.object));
    if (row.want) {
      EXPECT_EQ(shown(causes), row.want) << row.object;
    } else {
      EXPECT_FALSE(causes.empty()) << row.object;
    }
  }
}

TEST(Validate, without_a_selector_no_template_is_found) {
  const std::string template_ = R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{)";
  const std::string labels =
      "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`\n";
  struct Row {
    Kind kind;
    const char *more, *policy, *want;  // in addition to the cause that all rows have
  };
  for (const Row& row :
       {Row{kDeployment, "", "Always", "spec.selector: Required value\n"},
        Row{kReplicaSet, "", "Always", "spec.selector: Required value\n"},
        Row{kStatefulSet, R"("serviceName":"s",)", "Always", "spec.selector: Required value\n"},
        Row{kDaemonSet, "", "Always", ""}, Row{kJob, R"("manualSelector":true,)", "Never", "spec.selector: Required value\n"}}) {
    json::value object =
        prepared(row.kind, R"({"metadata":{"name":"w","namespace":"d"},"spec":{)" + std::string(row.more) + template_ +
                               R"("restartPolicy":")" + row.policy + R"(","containers":[{"name":"a","image":"b"}]}}}})");
    std::string all;
    for (const Cause& cause : validate_create(catalog().of(row.kind), object)) all += cause.field + ": " + cause.message + "\n";
    EXPECT_EQ(all, row.want + labels) << row.kind.resource;
  }
}

TEST(Validate, says_it_as_kubernetes_does) {
  const KindInfo& info = catalog().of(kDeployment);
  json::value object = prepared(
      kDeployment, R"({"metadata":{"name":"web","namespace":"d"},"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}})");
  Error error = invalid(info.kind, "web", validate_create(info, object));
  EXPECT_EQ(error.text(),
            "Deployment.apps \"web\" is invalid: [spec.selector: Required value, "
            "spec.template.spec.containers[0].image: Required value, "
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`]");
}

TEST(Validate, templates_follow_the_rules_of_pods) {
  json::value object =
      prepared(kReplicaSet, R"({"metadata":{"name":"r","namespace":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b","bad label":"x"}},"spec":{"dnsPolicy":"Mine","containers":[{"name":"A","image":"b"}]}}}})");
  std::string text = shown(validate_create(catalog().of(kReplicaSet), object));
  EXPECT_NE(text.find("spec.template.spec.dnsPolicy: Unsupported value: \"Mine\""), std::string::npos) << text;
  EXPECT_NE(text.find("spec.template.spec.containers[0].name: Invalid value: \"A\""), std::string::npos) << text;
  EXPECT_NE(text.find("spec.template.metadata.labels: Invalid value: \"bad label\""), std::string::npos) << text;
}

struct Update {
  const char* name;
  const Kind& kind;
  std::string before, now;
  const char* subresource;
  const char* want;  // a part of the result; "" = valid
};

TEST(Validate, holds_what_may_not_change) {
  const std::string spec = R"("containers":[{"name":"a","image":"b"}],"tolerations":[{"key":"k","operator":"Exists"}])";
  const std::string secret = R"({"metadata":{"name":"x","namespace":"d"},"immutable":true,"data":{"a":"AA=="}})";
  const std::string deployment =
      R"({"metadata":{"name":"x","namespace":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},
      "template":{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}})";
  auto with = [](std::string text, const char* from, const char* to) { return text.replace(text.find(from), strlen(from), to); };
  for (const Update& row : {
           Update{"nothing", kPod, pod(spec), pod(spec), "", ""},
           Update{"an image", kPod, pod(spec), with(pod(spec), "\"b\"", "\"c\""), "", ""},
           Update{"a command", kPod, pod(spec), with(pod(spec), "\"b\"", "\"b\",\"command\":[\"x\"]"), "",
                  "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"},
           Update{"a node", kPod, pod(spec), pod(spec + R"(,"nodeName":"n")"), "", "changed: spec.nodeName"},
           Update{"a binding", kPod, pod(spec), pod(spec + R"(,"nodeName":"n")"), "binding", ""},
           Update{"a toleration more", kPod, pod(spec), with(pod(spec), "[{\"key\"", "[{\"operator\":\"Exists\"},{\"key\""), "",
                  ""},
           Update{"a toleration less", kPod, pod(spec), with(pod(spec), "{\"key\":\"k\",\"operator\":\"Exists\"}", ""), "",
                  "existing toleration"},
           Update{"a container more", kPod, pod(spec),
                  with(pod(spec), "[{\"name\":\"a\"", "[{\"name\":\"z\",\"image\":\"b\"},{\"name\":\"a\""), "",
                  "spec.containers: Forbidden: pod updates may not add or remove containers"},
           Update{"the selector", kDeployment, deployment,
                  with(deployment, "\"matchLabels\":{\"a\":\"b\"}", "\"matchLabels\":{\"c\":\"d\"}"), "",
                  "spec.selector: Invalid value: {\"matchLabels\":{\"c\":\"d\"}}: field is immutable"},
           Update{"replicas", kDeployment, deployment, with(deployment, "\"replicas\":1", "\"replicas\":5"), "", ""},
           Update{"an immutable secret", kSecret, secret, with(secret, "AA==", "AAA="), "",
                  "data: Forbidden: field is immutable when `immutable` is set"},
           Update{"immutability itself", kSecret, secret, with(secret, "true", "false"), "", "immutable: Forbidden"},
           Update{"a secret's labels", kSecret, secret, with(secret, "\"d\"}", "\"d\",\"labels\":{\"a\":\"b\"}}"), "", ""},
           Update{"a name", kSecret, secret, with(secret, "\"x\"", "\"y\""), "",
                  "metadata.name: Invalid value: \"y\": field is immutable"},
       }) {
    std::vector<Cause> causes =
        validate_update(catalog().of(row.kind), prepared(row.kind, row.now), prepared(row.kind, row.before), row.subresource);
    if (*row.want) {
      EXPECT_NE(shown(causes).find(row.want), std::string::npos) << row.name << ": " << shown(causes);
    } else {
      EXPECT_EQ(shown(causes), "") << row.name;
    }
  }
}

TEST(Validate, an_address_stays_and_finalizers_do_not_come_late) {
  const KindInfo& info = catalog().of(kService);
  json::value before = prepared(
      kService, R"({"metadata":{"name":"x","namespace":"d","finalizers":["a/b"],"deletionTimestamp":"2026-01-01T00:00:00Z"},
    "spec":{"clusterIP":"10.0.0.1","ports":[{"port":1}]}})");
  json::value now = prepared(
      kService, R"({"metadata":{"name":"x","namespace":"d","finalizers":["a/b","c/d"],"deletionTimestamp":"2026-01-01T00:00:00Z"},
    "spec":{"clusterIP":"10.0.0.2","ports":[{"port":1}]}})");
  EXPECT_EQ(shown(validate_update(info, now, before)),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            "[]string{\"c/d\"}\n"
            "spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set\n");
}

// An object that was stored when the rules were looser.
TEST(Validate, an_update_may_leave_what_is_wrong_already) {
  const KindInfo& info = catalog().of(kDeployment);
  const json::value old = prepared(
      kDeployment,
      R"({"metadata":{"name":"x","namespace":"d","labels":{"a b":"c"},"finalizers":["x/y"],"deletionTimestamp":"2026-01-01T00:00:00Z"},
    "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a",
    "image":"b","env":[{"name":"A=B"}]}]}}},"status":{"replicas":1}})");
  EXPECT_NE(shown(validate_create(info, old)), "");
  json::value now = old;
  make(now, "spec.replicas") = 5;
  make(now, "metadata.labels.more") = "label";
  make(now, "metadata.finalizers") = json::array();
  EXPECT_EQ(shown(validate_update(info, now, old)), "");
  json::value annotated = old;
  make(annotated, "metadata.annotations") = json::object{{"c d", "e"}};
  EXPECT_EQ(validate_update(info, annotated, old).size(), 1u) << "the labels are as they were";
  EXPECT_EQ(validate_update(info, annotated, annotated).size(), 0u);
  make(now, "status.replicas") = 2;
  EXPECT_EQ(shown(validate_update(info, now, old, "status")), "");
  make(now, "status.replicas") = -2;
  EXPECT_EQ(shown(validate_update(info, now, old, "status")).find("status.replicas: Invalid value: -2:"), 0u);
  auto& env = make(now, "spec.template.spec.containers").get_array()[0].at("env").as_array();
  env.push_back(json::object{{"name", "C=D"}});
  EXPECT_EQ(
      shown(validate_update(info, now, old)),
      "spec.template.spec.containers[0].env[1].name: Invalid value: \"C=D\": a valid environment variable name must consist "
      "only of printable ASCII characters other than '='\n");
  env.pop_back();
  env[0].as_object()["name"] = "E=F";
  EXPECT_NE(shown(validate_update(info, now, old)).find("\"E=F\""), std::string::npos) << "another wrong value in its place";
  env[0].as_object()["name"] = "A=B";
  make(now, "spec.selector.matchLabels") = json::object{{"c", "d"}};
  EXPECT_NE(shown(validate_update(info, now, old)).find("field is immutable"), std::string::npos);
}

std::string repeated(int count, const std::string& before, const std::string& after) {
  std::string text;
  for (int i = 0; i < count; i++) text += (i ? "," : "") + before + std::to_string(i) + after;
  return text;
}

// Sizes for which comparing each item with each other one takes minutes.
TEST(Validate, is_done_soon_with_a_very_large_object) {
  constexpr int kMany = 15'000;
  const std::string volumes = "\"volumes\":[" + repeated(kMany, R"({"name":"v)", R"(","emptyDir":{}})") + "]";
  const std::string tolerations =
      "\"tolerations\":[" + repeated(kMany, R"({"key":"k","value":"t)", R"(","effect":"NoExecute"})") + "]";
  auto containers = [](const std::string& list) {
    return "\"" + list + "\":[" +
           repeated(kMany, R"({"name":"c)", R"(","image":"i","volumeMounts":[{"name":"v0","mountPath":"/v"}]})") + "]";
  };
  const KindInfo& info = catalog().of(kPod);
  json::value large = prepared(kPod, pod(containers("containers") + "," + volumes + "," + tolerations));
  EXPECT_EQ(shown(validate_create(info, large)), "");
  EXPECT_EQ(shown(validate_update(info, large, large)), "");
  json::value more = large;
  json::array& kept = more.at("spec").at("tolerations").as_array();
  std::reverse(kept.begin(), kept.end());
  kept.push_back({{"key", "another"}, {"operator", "Exists"}});
  EXPECT_EQ(shown(validate_update(info, more, large)), "");

  json::value finished = prepared(kPod, container(""));
  std::string ended = R"({"name":"c)",
              state = R"(","ready":false,"restartCount":0,"image":"i","imageID":"i","state":{"terminated":{"exitCode":0}}})";
  make(finished, "spec.restartPolicy") = "Never";
  make(finished, "status.containerStatuses") = MUST(parse_json("[" + repeated(kMany, ended, state) + "]"));
  EXPECT_EQ(shown(validate_update(info, finished, finished, "status")), "");

  json::value held = prepared(kPod, container(""));
  make(held, "metadata.deletionTimestamp") = "2026-01-02T00:00:00Z";
  make(held, "metadata.finalizers") = MUST(parse_json("[" + repeated(kMany, "\"a.b/f", "\"") + "]"));
  EXPECT_EQ(shown(validate_update(info, held, held)), "");
}

// Without a limit, each of two hundred errors would show the whole list, or the whole name of the first controller.
TEST(Validate, shows_the_beginning_of_a_large_value) {
  const std::string owner = R"({"apiVersion":"v1","kind":"K","controller":true,"uid":"u","name":"o)";
  for (const std::string& owners : {"[" + repeated(15'000, owner, "\"}") + "]",
                                    "[" + owner + std::string(1 << 20, 'x') + "\"}," + repeated(1'000, owner, "\"}") + "]"}) {
    json::value object = prepared(kConfigMap, R"({"metadata":{"name":"x","namespace":"d","ownerReferences":)" + owners + "}}");
    std::vector<Cause> causes = validate_create(catalog().of(kConfigMap), object);
    EXPECT_EQ(causes.size(), kCausesMax);
    size_t bytes = 0;
    for (const Cause& cause : causes) bytes += cause.message.size();
    EXPECT_LT(bytes, size_t(2) << 20);
  }
}

// So that a label or a count costs as little for a large spec as for a small one, and whatever was stored can be labelled and
// scaled.
TEST(Validate, does_not_look_again_at_what_stays) {
  const KindInfo& info = catalog().of(kReplicaSet);
  json::value old =
      prepared(kReplicaSet,
               R"({"metadata":{"name":"x","namespace":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{
      "labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","env":[)" +
                   repeated(2 * int(kCausesMax), R"({"name":"A=)", "\"}") + "]}]}}}}");
  ASSERT_EQ(validate_create(info, old).size(), kCausesMax) << "there may be more of them than a list shows";
  json::value now = old;
  make(now, "metadata.labels.more") = "label";
  EXPECT_EQ(shown(validate_update(info, now, old)), "");
  make(now, "metadata.labels.more") = "a b";
  EXPECT_EQ(validate_update(info, now, old).size(), 1u);
  make(now, "spec.replicas") = -1;
  std::vector<Cause> causes = validate_update(info, now, old);
  ASSERT_EQ(causes.size(), 2u) << "the template stays";
  EXPECT_EQ(causes[1].field, "spec.replicas");
  json::array& env = make(now, "spec.template.spec.containers").get_array()[0].at("env").as_array();
  env.push_back(json::object{{"name", "B=C"}});
  causes = validate_update(info, now, old);
  ASSERT_EQ(causes.size(), 3u) << "and so do the other variables";
  EXPECT_TRUE(std::ranges::any_of(causes, [](const Cause& cause) {
    return cause.field == "spec.template.spec.containers[0].env[" + std::to_string(2 * kCausesMax) + "].name";
  }));
  env[0].as_object()["name"] = "D=E";
  EXPECT_EQ(validate_update(info, now, old).size(), 4u) << "another wrong value in its place";
  env.erase(env.begin());  // all others move
  EXPECT_EQ(validate_update(info, now, old).size(), kCausesMax);
}

TEST(Validate, does_not_list_endlessly) {
  std::string containers;
  for (int i = 0; i < 1000; ++i) containers += std::string(i ? "," : "") + "{}";
  EXPECT_EQ(validate_create(catalog().of(kPod), prepared(kPod, pod("\"containers\":[" + containers + "]"))).size(), kCausesMax);
}

}  // namespace
}  // namespace coracle::schema
