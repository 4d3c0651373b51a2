// SPDX-License-Identifier: Apache-2.0
// Roles, bindings and certificate requests: defaults, validation with its messages, immutable fields, tables.
#include <gtest/gtest.h>

#include "runtime/base/text.h"
#include "store/schema/validate.h"
#include "tests/store/schema/prepared.h"

namespace coracle::schema {
namespace {

// A PKCS#10 request of O=readers, CN=jane with an ECDSA key, in PEM, in base64.
const std::string kRequest =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIY01JR0RBZ0VBTUNFeEVEQU9CZ05WQkFvTUIzSmxZV1JsY25NeERUQUxCZ0"
    "5WQkFNTUJHcGhibVV3V1RBVApCZ2NxaGtqT1BRSUJCZ2dxaGtqT1BRTUJCd05DQUFRcitzaTVMLzFhY1lsdkpGUFVWWGdEbWtrZ1d5NDBvOGZy"
    "Ck5PSTByZzdMeWd4S25jVSs1US9DV1RSakJZSFUrc2Z3elVLZ1poSTZDeXR4NEg2QkRzYklvQUF3Q2dZSUtvWkkKemowRUF3SURTQUF3UlFJaE"
    "FNS0ZCSHlyREZvcjBBUjAvSHBieHRYSzFVNzlSWW9wd3E3UzdBdE9WYkxUQWlBSApFVzhOMEE5ZDFTQ0xEbnluY0lXMnFwMy8zclFVZkJsT3NU"
    "RFFGRmt3VEE9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
// The same with another name in it, so that the signature is wrong.
const std::string kForged =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIY01JR0RBZ0VBTUNFeEVEQU9CZ05WQkFvTUIzSmxZV1JsY25NeERUQUxCZ0"
    "5WQkFNTUJHSmhibVV3V1RBVApCZ2NxaGtqT1BRSUJCZ2dxaGtqT1BRTUJCd05DQUFRcitzaTVMLzFhY1lsdkpGUFVWWGdEbWtrZ1d5NDBvOGZy"
    "Ck5PSTByZzdMeWd4S25jVSs1US9DV1RSakJZSFUrc2Z3elVLZ1poSTZDeXR4NEg2QkRzYklvQUF3Q2dZSUtvWkkKemowRUF3SURTQUF3UlFJaE"
    "FNS0ZCSHlyREZvcjBBUjAvSHBieHRYSzFVNzlSWW9wd3E3UzdBdE9WYkxUQWlBSApFVzhOMEE5ZDFTQ0xEbnluY0lXMnFwMy8zclFVZkJsT3NU"
    "RFFGRmt3VEE9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";

struct AccessRow {
  const Kind& kind;
  std::string object;
  std::string want;  // "" = valid; otherwise every line of the result
};

const std::string kNamespacedMeta = R"({"metadata":{"name":"x","namespace":"d"},)";
const std::string kClusterMeta = R"({"metadata":{"name":"x"},)";
const std::string kRoleRef = R"("roleRef":{"kind":"Role","name":"r"})";
const std::string kClusterRef = R"("roleRef":{"kind":"ClusterRole","name":"r"})";

TEST(AccessKinds, roles_say_what_is_wrong_with_them) {
  for (const AccessRow& row : {
           AccessRow{
               kRole,
               kNamespacedMeta + R"("rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]}]})",
               ""},
           AccessRow{kRole, R"({"metadata":{"name":"system:a b","namespace":"d"}})", ""},
           AccessRow{kRole, R"({"metadata":{"name":"a/b","namespace":"d"}})",
                     "metadata.name: Invalid value: \"a/b\": may not contain '/'\n"},
           AccessRow{kRole, R"({"metadata":{"name":"..","namespace":"d"}})",
                     "metadata.name: Invalid value: \"..\": may not be '..'\n"},
           AccessRow{kRole, kNamespacedMeta + R"("rules":[{"apiGroups":[""],"resources":["pods"]}]})",
                     "rules[0].verbs: Required value: verbs must contain at least one value\n"},
           AccessRow{kRole, kNamespacedMeta + R"("rules":[{"verbs":["get"]}]})",
                     "rules[0].apiGroups: Required value: resource rules must supply at least one api group\n"
                     "rules[0].resources: Required value: resource rules must supply at least one resource\n"},
           AccessRow{kRole, kNamespacedMeta + R"("rules":[{"verbs":["get"],"nonResourceURLs":["/x"]}]})",
                     "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs\n"},
           AccessRow{kClusterRole, kClusterMeta + R"("rules":[{"verbs":["get"],"nonResourceURLs":["/x/*"]}]})", ""},
           AccessRow{
               kClusterRole,
               kClusterMeta + R"("rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"nonResourceURLs":["/x"]}]})",
               "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular resources and non-resource "
               "URLs\n"},
           AccessRow{kClusterRole,
                     kClusterMeta + R"("rules":[{"verbs":["get"],"apiGroups":[""]},{"apiGroups":[""],"resources":["pods"]}]})",
                     "rules[0].resources: Required value: resource rules must supply at least one resource\n"
                     "rules[1].verbs: Required value: verbs must contain at least one value\n"},
           AccessRow{kClusterRole, kClusterMeta + R"("aggregationRule":{}})",
                     "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if "
                     "aggregationRule is non-nil\n"},
           AccessRow{kClusterRole,
                     kClusterMeta +
                         R"("aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"Is"}]}]}})",
                     "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: \"Is\": not a valid "
                     "selector operator\n"},
           AccessRow{kClusterRole, R"({"metadata":{"name":"x","namespace":"d"}})",
                     "metadata.namespace: Forbidden: not allowed on this type\n"},
       }) {
    EXPECT_EQ(shown(validate_create(catalog().of(row.kind), prepared(row.kind, row.object))), row.want) << row.object;
  }
}

TEST(AccessKinds, bindings_say_what_is_wrong_with_them) {
  const std::string group = "supported values: \"rbac.authorization.k8s.io\"\n";
  for (const AccessRow& row : {
           AccessRow{kRoleBinding,
                     kNamespacedMeta + R"("subjects":[{"kind":"User","name":"jane"},{"kind":"ServiceAccount","name":"a"}],)" +
                         kRoleRef + "}",
                     ""},
           AccessRow{kRoleBinding, kNamespacedMeta + R"("roleRef":{"kind":"Rule","name":"r"}})",
                     "roleRef.kind: Unsupported value: \"Rule\": supported values: \"ClusterRole\", \"Role\"\n"},
           AccessRow{kRoleBinding, kNamespacedMeta + R"("roleRef":{"kind":"Role"}})", "roleRef.name: Required value\n"},
           AccessRow{kRoleBinding, kNamespacedMeta + R"("roleRef":{"kind":"Role","name":"a%b"}})",
                     "roleRef.name: Invalid value: \"a%b\": may not contain '%'\n"},
           AccessRow{kRoleBinding, kNamespacedMeta + R"("roleRef":{"kind":"Role","name":"r","apiGroup":"apps"}})",
                     "roleRef.apiGroup: Unsupported value: \"apps\": " + group},
           AccessRow{
               kRoleBinding, kNamespacedMeta + R"("subjects":[{"kind":"Robot","name":"a"}],)" + kRoleRef + "}",
               "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"Group\", \"ServiceAccount\", \"User\"\n"},
           AccessRow{kRoleBinding, kNamespacedMeta + R"("subjects":[{"kind":"User"}],)" + kRoleRef + "}",
                     "subjects[0].name: Required value\nsubjects[0].name: Invalid value: \"\": user name cannot be empty\n"},
           AccessRow{kRoleBinding,
                     kNamespacedMeta + R"("subjects":[{"kind":"Group","name":"g","apiGroup":"x"}],)" + kRoleRef + "}",
                     "subjects[0].apiGroup: Unsupported value: \"x\": " + group},
           AccessRow{kClusterRoleBinding,
                     kClusterMeta + R"("subjects":[{"kind":"ServiceAccount","name":"a","namespace":"d"}],)" + kClusterRef + "}",
                     ""},
           AccessRow{kClusterRoleBinding, kClusterMeta + kRoleRef + "}",
                     "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"\n"},
           AccessRow{kClusterRoleBinding, kClusterMeta + R"("roleRef":{"kind":"ClusterRole"}})",
                     "roleRef.name: Required value\n"},
           AccessRow{kClusterRoleBinding,
                     kClusterMeta + R"("subjects":[{"kind":"ServiceAccount","name":"a"}],)" + kClusterRef + "}",
                     "subjects[0].namespace: Required value\n"},
           AccessRow{kClusterRoleBinding,
                     kClusterMeta + R"("subjects":[{"kind":"ServiceAccount","name":"a","namespace":"d","apiGroup":"x"}],)" +
                         kClusterRef + "}",
                     "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"\"\n"},
           AccessRow{kClusterRoleBinding, kClusterMeta + R"("subjects":[{"kind":"Group"}],)" + kClusterRef + "}",
                     "subjects[0].name: Required value\nsubjects[0].name: Invalid value: \"\": group name cannot be empty\n"},
       }) {
    EXPECT_EQ(shown(validate_create(catalog().of(row.kind), prepared(row.kind, row.object))), row.want) << row.object;
  }
}

TEST(AccessKinds, a_binding_keeps_its_role) {
  json::value before = prepared(kRoleBinding, kNamespacedMeta + kRoleRef + "}");
  json::value other = prepared(kRoleBinding, kNamespacedMeta + R"("roleRef":{"kind":"Role","name":"s"}})");
  EXPECT_EQ(shown(validate_update(catalog().of(kRoleBinding), other, before)),
            R"(roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"s"}: cannot change roleRef)"
            "\n");
  json::value more = prepared(kRoleBinding, kNamespacedMeta + R"("subjects":[{"kind":"User","name":"a"}],)" + kRoleRef + "}");
  EXPECT_EQ(shown(validate_update(catalog().of(kRoleBinding), more, before)), "");
  EXPECT_EQ(to_text(*find(more, "subjects")), R"([{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"a"}])");
}

std::string request(const std::string& more, const std::string& pem = kRequest) {
  return R"({"metadata":{"name":"Any: name at all"},"spec":{"request":")" + pem + "\"" + (more.empty() ? "" : ",") + more + "}}";
}

TEST(AccessKinds, a_name_that_no_path_can_hold_is_refused) {
  auto named = [](const Kind& kind, const char* name) {
    json::object object{{"metadata", json::object{{"name", name}}}, {"spec", json::object{{"request", kRequest}}}};
    return shown(validate_create(catalog().of(kind), json::value(std::move(object))));
  };
  for (const Kind* kind : {&kCertificateSigningRequest, &kClusterRole}) {
    EXPECT_NE(named(*kind, "a/b").find("metadata.name: Invalid value: \"a/b\": may not contain '/'"), std::string::npos);
    EXPECT_NE(named(*kind, "..").find("metadata.name: Invalid value: \"..\": may not be '..'"), std::string::npos);
    EXPECT_EQ(named(*kind, "a:b c").find("metadata.name"), std::string::npos);
  }
  json::value nul = prepared(kClusterRole, R"({"metadata":{"name":"a\u0000b"}})");
  EXPECT_NE(shown(validate_create(catalog().of(kClusterRole), nul)).find("may not contain NUL"), std::string::npos);
}

TEST(AccessKinds, certificate_requests_say_what_is_wrong_with_them) {
  const std::string signer = R"("signerName":"example.com/a")", usages = R"("usages":["client auth"])";
  const std::string label =
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
      "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
  const std::string other = base64_encode("hello");
  for (const AccessRow& row : {
           AccessRow{kCertificateSigningRequest, request(signer + "," + usages), ""},
           AccessRow{kCertificateSigningRequest, request(signer + "," + usages, other),
                     "spec.request: Invalid value: \"" + other + "\": PEM block type must be CERTIFICATE REQUEST\n"},
           AccessRow{kCertificateSigningRequest, request(signer + "," + usages, kForged),
                     "spec.request: Invalid value: \"" + kForged + "\": x509: ECDSA verification failure\n"},
           AccessRow{kCertificateSigningRequest, request(signer), "spec.usages: Required value\n"},
           AccessRow{kCertificateSigningRequest, request(signer + R"(,"usages":["client auth","any","any"])"),
                     "spec.usages[2]: Duplicate value: \"any\"\n"},
           AccessRow{kCertificateSigningRequest, request(usages), "spec.signerName: Required value\n"},
           AccessRow{kCertificateSigningRequest, request(usages + R"(,"signerName":"example.com")"),
                     "spec.signerName: Invalid value: \"example.com\": must be a fully qualified domain and path of the form "
                     "'example.com/signer-name'\n"},
           AccessRow{kCertificateSigningRequest, request(usages + R"(,"signerName":"Example.com/a")"),
                     "spec.signerName: Invalid value: \"Example.com\": validating label \"Example\": " + label + "\n"},
           AccessRow{
               kCertificateSigningRequest, request(usages + R"(,"signerName":"example/a")"),
               "spec.signerName: Invalid value: \"example\": should be a domain with at least two segments separated by dots\n"},
           AccessRow{
               kCertificateSigningRequest, request(usages + R"(,"signerName":"kubernetes.io/legacy-unknown")"),
               "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed via this "
               "API version\n"},
           AccessRow{
               kCertificateSigningRequest, request(signer + "," + usages + R"(,"expirationSeconds":599)"),
               "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)\n"},
       }) {
    EXPECT_EQ(shown(validate_create(catalog().of(row.kind), prepared(row.kind, row.object))), row.want)
        << row.object.substr(0, 80);
  }
  std::string unknown = shown(validate_create(catalog().of(kCertificateSigningRequest),
                                              prepared(kCertificateSigningRequest, request(signer + R"(,"usages":["flying"])"))));
  EXPECT_EQ(unknown.find("spec.usages[0]: Unsupported value: \"flying\": supported values: \"any\", \"cert sign\","), 0u)
      << unknown;
}

json::value with_status(const std::string& status) {
  std::string text = request(R"("signerName":"example.com/a","usages":["any"])");
  text.pop_back();
  return prepared(kCertificateSigningRequest, text + R"(,"status":)" + status + "}");
}

TEST(AccessKinds, what_was_decided_about_a_request_stays_decided) {
  const std::string approved = R"({"type":"Approved","status":"True","reason":"a"})",
                    denied = R"({"type":"Denied","status":"True"})";
  struct Change {
    std::string from, to, subresource, want;
  };
  const std::string conditions = "{\"conditions\":[", end = "]}";
  for (const Change& change : {
           Change{"{}", conditions + approved + end, "approval", ""},
           Change{"{}", conditions + approved + end, "status",
                  "status.conditions: Forbidden: updates may not add a condition of type \"Approved\"\n"},
           Change{conditions + approved + end, "{}", "approval",
                  "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\"\n"},
           Change{
               conditions + approved + end, conditions + approved + "," + denied + end, "approval",
               "status.conditions[1].type: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive\n"},
           Change{"{}", conditions + R"({"type":"Approved","status":"False"})" + end, "approval",
                  "status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\"\n"},
           Change{"{}", conditions + R"({"type":"Ready"})" + end, "status", "status.conditions[0].status: Required value\n"},
           Change{"{}", conditions + R"({"type":"Failed","status":"True"})" + end, "status", ""},
           Change{"{}", R"({"certificate":"aGVsbG8="})", "approval",
                  "status.certificate: Forbidden: updates may not set certificate content\n"},
           Change{"{}", R"({"certificate":"aGVsbG8="})", "status",
                  "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block\n"},
       }) {
    EXPECT_EQ(shown(validate_update(catalog().of(kCertificateSigningRequest), with_status(change.to), with_status(change.from),
                                    change.subresource)),
              change.want)
        << change.to;
  }
}

TEST(AccessKinds, are_shown_as_kubectl_shows_them) {
  json::value binding = prepared(
      kRoleBinding, R"({"metadata":{"name":"b","namespace":"d"},"subjects":[{"kind":"User","name":"a"},{"kind":"User","name":"b"},
      {"kind":"ServiceAccount","name":"s","namespace":"n"},{"kind":"Group","name":"g"}],)" +
                        kRoleRef + "}");
  EXPECT_EQ(row_text(kRoleBinding, binding), R"(["b","Role/r","<unknown>","a, b","g","n/s"])");
  EXPECT_EQ(
      row_text(kClusterRole, prepared(kClusterRole, R"({"metadata":{"name":"c","creationTimestamp":"2026-01-01T00:00:00Z"}})")),
      R"(["c","2026-01-01T00:00:00Z"])");
  std::string text = request(R"("signerName":"example.com/a","username":"jane","expirationSeconds":3600)");
  EXPECT_EQ(row_text(kCertificateSigningRequest, prepared(kCertificateSigningRequest, text)),
            R"(["Any: name at all","<unknown>","example.com/a","jane","60m","Pending"])");
  json::value approved = with_status(R"({"conditions":[{"type":"Approved","status":"True"}],"certificate":"eA=="})");
  EXPECT_EQ(row_text(kCertificateSigningRequest, approved),
            R"(["Any: name at all","<unknown>","example.com/a","","<none>","Approved,Issued"])");
}

}  // namespace
}  // namespace coracle::schema
