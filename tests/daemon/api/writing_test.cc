// SPDX-License-Identifier: Apache-2.0
// Create, update, patch and delete with all their options and rules, with Kubernetes' messages.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/text.h"
#include "store/schema/protobuf.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"
#include "tests/processor_time.h"

namespace coracle::api {
namespace {

constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

class Writing : public testing::Test {
 protected:
  RawAnswer create(const std::string& name, const std::string& more = {}) {
    return client.ask("POST", kMaps, R"({"metadata":{"name":")" + name + "\"" + more + "}}");
  }
  std::string at(const std::string& name) { return std::string(kMaps) + "/" + name; }
  static std::string message(const RawAnswer& answer) { return std::string(get_string(answer.json(), "message")); }

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(Writing, what_a_put_may_do_depends_on_the_kind) {
  EXPECT_EQ(client.ask("PUT", at("m"), R"({"metadata":{"name":"m"}})").status, 404);
  create("m");
  EXPECT_EQ(client.ask("PUT", at("m"), R"({"metadata":{"name":"m"},"data":{"a":"b"}})").status, 200) << "without a version";
  EXPECT_EQ(client.ask("PUT", at("m"), R"({"metadata":{"name":"m","resourceVersion":"0"}})").status, 200) << "0 is none";
  std::string lease = std::string(kLeases) + "/l";
  EXPECT_EQ(client.ask("PUT", lease, R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"a"}})").status, 201) << "made by PUT";
  RawAnswer blind = client.ask("PUT", lease, R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"b"}})");
  EXPECT_EQ(blind.status, 422);
  EXPECT_EQ(
      message(blind),
      "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update");
  json::value current = client.get(lease).json();
  make(current, "spec.holderIdentity") = "b";
  EXPECT_EQ(client.ask("PUT", lease, to_text(current)).status, 200);
  EXPECT_EQ(client.ask("PATCH", lease, R"({"spec":{"holderIdentity":"c"}})", kMerge).status, 200) << "a patch knows the version";
}

TEST_F(Writing, names_and_namespaces_are_settled) {
  EXPECT_EQ(message(client.ask("PUT", at("m"), R"({"data":{}})")),
            "the name of the object (m based on URL) was undeterminable: name must be provided");
  create("m");
  EXPECT_EQ(client.ask("PATCH", at("m"), R"({"metadata":{"name":null}})", kMerge).status, 400);
  RawAnswer applied = client.ask("PATCH", at("n") + "?fieldManager=me", "apiVersion: v1\nkind: ConfigMap\n",
                                 "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(applied.status, 400);
  RawAnswer cluster = client.ask("POST", "/api/v1/namespaces", R"({"metadata":{"name":"q","namespace":"somewhere"}})");
  EXPECT_EQ(cluster.status, 201) << cluster.body;
  EXPECT_EQ(find(cluster.json(), "metadata.namespace"), nullptr) << "what has no namespace loses it";
  RawAnswer versioned = client.ask("POST", kMaps, R"({"metadata":{"name":"v","resourceVersion":"5"}})");
  EXPECT_EQ(versioned.status, 400);
  EXPECT_EQ(message(versioned), "resourceVersion should not be set on objects to be created");
}

// Whoever generates names tries again with another one, after a second.
TEST_F(Writing, a_name_that_is_taken_is_told_as_generated_where_it_may_be) {
  const char* generated = R"(,"generateName":"m-")";
  create("m", R"(,"finalizers":["example.com/hold"])");
  RawAnswer plain = create("m"), both = create("m", generated);
  EXPECT_EQ(plain.status, 409);
  EXPECT_EQ(message(plain), "configmaps \"m\" already exists");
  EXPECT_EQ(plain.header("Retry-After"), "");
  EXPECT_EQ(both.status, 409);
  EXPECT_EQ(get_string(both.json(), "reason"), "AlreadyExists");
  EXPECT_EQ(message(both), "configmaps \"m\" already exists, the server was not able to generate a unique name for the object");
  EXPECT_EQ(to_text(*find(both.json(), "details")), R"({"name":"m","kind":"configmaps","retryAfterSeconds":1})");
  EXPECT_EQ(both.header("Retry-After"), "1");
  client.ask("DELETE", at("m"));
  for (const char* query : {"", "?dryRun=All"}) {
    RawAnswer going = client.ask("POST", std::string(kMaps) + query, R"({"metadata":{"name":"m","generateName":"m-"}})");
    EXPECT_EQ(message(going),
              "object is being deleted: configmaps \"m\" already exists, the server was not able to generate a unique name for "
              "the object")
        << query;
  }
}

TEST_F(Writing, yaml_may_stand_in_braces) {
  RawAnswer made =
      client.ask("POST", kMaps, "{metadata: {name: braced}, data: {a: 'yes'}}", "Content-Type: application/yaml\r\n");
  EXPECT_EQ(made.status, 201) << made.body;
  RawAnswer applied = client.ask("PATCH", at("braced") + "?fieldManager=me",
                                 "{apiVersion: v1, kind: ConfigMap, metadata: {name: braced}, data: {b: c}}",
                                 "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(applied.status, 200) << applied.body;
  EXPECT_EQ(client.ask("POST", kMaps, "{metadata: {name: z}", "Content-Type: application/yaml\r\n").status, 400);
  EXPECT_EQ(client.ask("POST", kMaps, "{metadata: {name: z}}").status, 400) << "but not where JSON was said";
}

// sigs.k8s.io/json decodes JSON into the type at once; YAML, strategic and apply patches go through Go's interface{}, where a
// number without a fraction is written as an integer.
TEST_F(Writing, a_whole_number_with_an_exponent_is_an_integer_where_kubernetes_takes_it_for_one) {
  constexpr const char* kYaml = "Content-Type: application/yaml\r\n";
  RawAnswer json = client.ask("POST", kLeases, R"({"metadata":{"name":"l"},"spec":{"leaseDurationSeconds":1e1}})");
  EXPECT_EQ(json.status, 400);
  EXPECT_NE(message(json).find("spec.leaseDurationSeconds: expected an integer"), std::string::npos) << json.body;
  RawAnswer yaml = client.ask("POST", kLeases, "metadata: {name: l}\nspec: {leaseDurationSeconds: 1e1}\n", kYaml);
  EXPECT_EQ(get_int(yaml.json(), "spec.leaseDurationSeconds"), 10) << yaml.body;
  RawAnswer braces = client.ask("POST", kLeases, R"({"metadata":{"name":"b"},"spec":{"leaseDurationSeconds":10.0}})", kYaml);
  EXPECT_EQ(get_int(braces.json(), "spec.leaseDurationSeconds"), 10) << braces.body;
  EXPECT_EQ(client.ask("POST", kLeases, "metadata: {name: h}\nspec: {leaseDurationSeconds: 1.5}\n", kYaml).status, 400);

  std::string lease = std::string(kLeases) + "/l";
  const std::string twenty = R"({"spec":{"leaseDurationSeconds":2e1}})";
  EXPECT_EQ(client.ask("PATCH", lease, twenty, kMerge).status, 422);
  EXPECT_EQ(client
                .ask("PATCH", lease, R"([{"op":"add","path":"/spec/leaseDurationSeconds","value":2e1}])",
                     "Content-Type: application/json-patch+json\r\n")
                .status,
            422);
  RawAnswer strategic = client.ask("PATCH", lease, twenty, "Content-Type: application/strategic-merge-patch+json\r\n");
  EXPECT_EQ(get_int(strategic.json(), "spec.leaseDurationSeconds"), 20) << strategic.body;
  RawAnswer applied = client.ask(
      "PATCH", lease + "?fieldManager=me&force=true",
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"},"spec":{"leaseDurationSeconds":3e1}})",
      "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(get_int(applied.json(), "spec.leaseDurationSeconds"), 30) << applied.body;
}

TEST_F(Writing, of_keys_that_stand_twice_the_last_counts) {
  constexpr const char* kYaml = "Content-Type: application/yaml\r\n";
  constexpr const char* kApply = "Content-Type: application/apply-patch+yaml\r\n";
  auto text = [](const std::string& name) {
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n  a: one\n  a: two\n";
  };
  for (const char* way : {"POST", "PATCH"}) {
    bool applies = way == std::string_view("PATCH");
    auto ask = [&](const std::string& name, const std::string& validation) {
      std::string query = "?fieldManager=me&fieldValidation=" + validation;
      return client.ask(way, (applies ? at(name) : std::string(kMaps)) + query, text(name), applies ? kApply : kYaml);
    };
    RawAnswer strict = ask("twice", "Strict");
    EXPECT_EQ(strict.status, 400) << way;
    const std::string_view says = applies
                                      ? "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
                                        "  line 6: key \"a\" already set in map"
                                      : "strict decoding error: yaml: unmarshal errors:\n  line 6: key \"a\" already set in map";
    EXPECT_NE(message(strict).find(says), std::string::npos) << message(strict);
    std::string name = applies ? "applied" : "posted";
    RawAnswer warned = ask(name, "Warn");
    EXPECT_EQ(warned.status, 201) << warned.body;
    EXPECT_EQ(get_string(warned.json(), "data.a"), "two");
    EXPECT_NE(warned.head.find("Warning: 299 - \"line 6: key \\\"a\\\" already set in map\""), std::string::npos) << warned.head;
    RawAnswer ignored = ask(name + "-too", "Ignore");
    EXPECT_EQ(ignored.status, 201) << ignored.body;
    EXPECT_EQ(ignored.head.find("Warning"), std::string::npos);
  }
}

// Both for the first apply and for a later one, whatever the validation: nobody could own such fields.
TEST_F(Writing, fields_that_nobody_knows_cannot_be_applied) {
  auto apply = [&](const char* more, const std::string& validation) {
    return client.ask("PATCH", at("known") + "?fieldManager=me&force=true&fieldValidation=" + validation,
                      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"known"})" + std::string(more) + "}",
                      "Content-Type: application/apply-patch+yaml\r\n");
  };
  const std::string one =
      "failed to create typed patch object (/known; /v1, Kind=ConfigMap): .dada: field not declared in schema";
  const std::string two =
      "failed to create typed patch object (/known; /v1, Kind=ConfigMap): errors:\n"
      "  .metadata.dodo: field not declared in schema\n  .dada: field not declared in schema";
  for (const char* validation : {"Strict", "Warn", "Ignore"}) {
    RawAnswer first = apply(R"(,"dada":{"a":"b"})", validation);
    EXPECT_EQ(first.status, 400);
    EXPECT_EQ(message(first), one) << validation;
  }
  ASSERT_EQ(apply(R"(,"data":{"a":"b"})", "Strict").status, 201);
  for (const char* validation : {"Strict", "Warn", "Ignore"}) {
    RawAnswer later = apply(R"(,"data":{"a":"b"},"dada":{"a":"c"})", validation);
    EXPECT_EQ(later.status, 400);
    EXPECT_EQ(message(later), one) << validation;
    RawAnswer more = client.ask("PATCH", at("known") + "?fieldManager=me&fieldValidation=" + std::string(validation),
                                R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"known","dodo":1},"dada":2})",
                                "Content-Type: application/apply-patch+yaml\r\n");
    EXPECT_EQ(message(more), two) << validation;
  }
  EXPECT_EQ(apply(R"(,"data":null)", "Strict").status, 200) << "null is no unknown field";
  RawAnswer twice = apply(R"(,"data":{"a":"b"},"data":{"a":"c"})", "Strict");
  EXPECT_EQ(twice.status, 400);
  EXPECT_NE(message(twice).find("error strict decoding YAML: "), std::string::npos) << message(twice);
  EXPECT_NE(message(twice).find("line 1: key \"data\" already set in map"), std::string::npos) << message(twice);
  RawAnswer broken =
      client.ask("PATCH", at("known") + "?fieldManager=me", "a: [", "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(broken.status, 400);
  EXPECT_TRUE(message(broken).starts_with("error decoding YAML: ")) << message(broken);
}

TEST_F(Writing, what_is_applied_says_its_own_type) {
  const std::string deployments = "/apis/apps/v1/namespaces/default/deployments";
  auto apply = [&](const std::string& target, const char* body) {
    return client.ask("PATCH", target + "?fieldManager=me", body, "Content-Type: application/apply-patch+yaml\r\n");
  };
  for (const auto& [target, body, said] :
       {std::tuple(at("m"), R"({"metadata":{"name":"m"}})", "/, Kind="),
        std::tuple(at("m"), R"({"apiVersion":"v1","metadata":{"name":"m"}})", "/v1, Kind="),
        std::tuple(at("m"), R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"m"}})", "/v1, Kind=Secret"),
        std::tuple(deployments + "/d", R"({"apiVersion":"apps/v1beta1","kind":"Deployment"})", "apps/v1beta1, Kind=Deployment"),
        std::tuple(deployments + "/d/scale", R"({"apiVersion":"apps/v1","kind":"Scale"})", "apps/v1, Kind=Scale")}) {
    RawAnswer refused = apply(target, body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_EQ(message(refused), "invalid object type: " + std::string(said));
  }
  EXPECT_EQ(client.get(at("m")).status, 404);
}

// In the order in which Kubernetes tells them. Source: kubernetes test/integration/apiserver/field_validation_test.go.
TEST_F(Writing, unknown_and_duplicate_fields_are_told_by_form) {
  const std::string deployments = "/apis/apps/v1/namespaces/default/deployments";
  auto spec = [](const char* more, const char* in_container) {
    return R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"a":"b"}},"spec":{)" +
           std::string(more) +
           R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c",)" +
           in_container + R"("image":"i"}]}}}})";
  };
  const char* wrong = R"("unknown":1,"both":1,"both":{"in":1,"in":2},"paused":true,"paused":false,"paused":true,)";
  const char* nested = R"("nested":1,"imagePullPolicy":"Always","imagePullPolicy":"Never",)";
  auto warnings = [](const RawAnswer& answer) {
    constexpr std::string_view kHead = "Warning: 299 - \"";
    std::vector<std::string> out;
    for (size_t at = answer.head.find(kHead); at != std::string::npos; at = answer.head.find(kHead, at + 1)) {
      std::string text = answer.head.substr(at + kHead.size(), answer.head.find("\"\r\n", at) - at - kHead.size());
      std::erase(text, '\\');
      out.push_back(std::move(text));
    }
    return out;
  };
  using Texts = std::vector<std::string>;
  const std::string container = "spec.template.spec.containers[0]";
  EXPECT_EQ(warnings(client.ask("POST", deployments, spec(wrong, nested))),
            (Texts{"unknown field \"spec.unknown\"", "unknown field \"spec.both\"", "duplicate field \"spec.paused\"",
                   "unknown field \"" + container + ".nested\"", "duplicate field \"" + container + ".imagePullPolicy\""}))
      << "in the order of the text; what is unknown is not told as a duplicate too";
  std::string many;
  for (int i = 0; i < 70; i++) many += "\"u" + std::to_string(i) + R"(":1,"selector":{},)";
  for (int i = 0; i < 70; i++) many += "\"w" + std::to_string(i) + "\":1,";
  const Texts first = warnings(client.ask("POST", deployments + "?dryRun=All", spec(many.c_str(), nested)));
  ASSERT_EQ(first.size(), 100u);
  EXPECT_EQ(first[1], "unknown field \"spec.u1\"");
  EXPECT_EQ(first[99], "unknown field \"spec.w28\"") << "one of them is about the selector";
  const Texts merged{"duplicate field \"spec.both.in\"", "duplicate field \"spec.both\"", "duplicate field \"spec.paused\"",
                     "unknown field \"spec.unknown\"", "unknown field \"spec.both\""};
  for (const char* type : {"application/merge-patch+json", "application/strategic-merge-patch+json"}) {
    Texts told = warnings(client.ask("PATCH", deployments + "/d", "{\"spec\":{" + std::string(wrong) + "\"replicas\":1}}",
                                     "Content-Type: " + std::string(type) + "\r\n"));
    std::ranges::sort(told);
    Texts want = merged;
    std::ranges::sort(want);
    EXPECT_EQ(told, want) << type;
  }
  const std::string operations = R"([{"op":"add","path":"/spec/unknown","value":1,"foo":2},
    {"op":"add","path":"/spec/minReadySeconds","path":"/spec/other","bar":1,"bar":{"in":1,"in":2},"value":2}])";
  EXPECT_EQ(warnings(client.ask("PATCH", deployments + "/d", operations, "Content-Type: application/json-patch+json\r\n")),
            (Texts{"json patch unknown field \"[0].foo\"", "json patch duplicate field \"[1].path\"",
                   "json patch unknown field \"[1].bar\"", "unknown field \"spec.unknown\"", "unknown field \"spec.other\""}));
  RawAnswer strict = client.ask("PATCH", deployments + "/d?fieldValidation=Strict",
                                R"([{"op":"add","path":"/spec/minReadySeconds","value":3,"foo":1}])",
                                "Content-Type: application/json-patch+json\r\n");
  EXPECT_EQ(strict.status, 422) << strict.body;
  EXPECT_NE(message(strict).find("strict decoding error: json patch unknown field \"[0].foo\""), std::string::npos)
      << message(strict);
}

// PUT creates an absent object through another code path; each warning is still returned once.
TEST_F(Writing, a_warning_is_given_once) {
  auto times = [](const std::string& text, std::string_view part) {
    int out = 0;
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) out++;
    return out;
  };
  for (int status : {201, 200}) {
    RawAnswer put = client.ask("PUT", "/api/v1/namespaces/default/limitranges/put?fieldValidation=Warn",
                               R"({"metadata":{"name":"put"},"spec":{"limits":[]},"spec":{"limits":[]}})");
    EXPECT_EQ(put.status, status) << put.body;
    EXPECT_EQ(times(put.head, "Warning: "), 1) << put.head;
  }
}

// Source: Go encoding/json. YAML is refused, as by Go's reader.
TEST_F(Writing, what_is_no_unicode_is_replaced) {
  RawAnswer made =
      client.ask("POST", kMaps, "{\"metadata\":{\"name\":\"m\"},\"data\":{\"a\":\"x\xff\xe2\x82y\",\"b\":\"\\ud83dz\"}}");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(get_string(made.json(), "data.a"), "x\ufffd\ufffd\ufffdy");
  EXPECT_EQ(get_string(made.json(), "data.b"), "\ufffdz");
  RawAnswer changed = client.ask("PATCH", at("m"), "{\"data\":{\"a\":\"\xc0\"}}", kMerge);
  EXPECT_EQ(get_string(changed.json(), "data.a"), "\ufffd") << changed.body;
  RawAnswer replaced = client.ask("PATCH", at("m"), "[{\"op\":\"replace\",\"path\":\"/data/b\",\"value\":\"\\udc00\"}]",
                                  "Content-Type: application/json-patch+json\r\n");
  EXPECT_EQ(get_string(replaced.json(), "data.b"), "\ufffd") << replaced.body;
  EXPECT_EQ(client.ask("POST", kMaps, "metadata: {name: \"n\xff\"}\n", "Content-Type: application/yaml\r\n").status, 400);
  EXPECT_EQ(client.ask("POST", kMaps, "{\"metadata\":{\"name\":\"n\"}}\xff").status, 400) << "between values it is no JSON";
}

TEST_F(Writing, a_byte_order_mark_is_skipped) {
  std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(client.ask("POST", kMaps, mark + R"({"metadata":{"name":"json"}})").status, 201);
  EXPECT_EQ(client.ask("POST", kMaps, mark + "metadata: {name: yaml}\n", "Content-Type: application/yaml\r\n").status, 201);
  EXPECT_EQ(client.ask("POST", kMaps, mark + R"({"metadata":{"name":"both"}})", "Content-Type: application/yaml\r\n").status,
            201);
  EXPECT_EQ(client.ask("PATCH", at("json"), mark + R"({"data":{"a":"b"}})", kMerge).status, 200);
  EXPECT_EQ(client
                .ask("PATCH", at("json") + "?fieldManager=me",
                     mark + R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"json"}})",
                     "Content-Type: application/apply-patch+yaml\r\n")
                .status,
            200);
}

TEST_F(Writing, kubectl_goes_over_from_applying_itself_to_having_it_applied) {
  RawAnswer made = client.ask(
      "POST", std::string(kMaps) + "?fieldManager=kubectl-client-side-apply",
      R"({"metadata":{"name":"m","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"},\"data\":{\"a\":\"b\"}}"}},"data":{"a":"b"}})");
  ASSERT_EQ(made.status, 201) << made.body;
  auto apply = [&](const std::string& manager, const std::string& value) {
    return client
        .ask("PATCH", at("m") + "?fieldManager=" + manager,
             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: " + value + "}\n",
             "Content-Type: application/apply-patch+yaml\r\n")
        .status;
  };
  EXPECT_EQ(apply("other", "c"), 409) << "another's";
  EXPECT_EQ(client.ask("PATCH", at("m") + "?fieldManager=hand", R"({"data":{"a":"z"}})", kMerge).status, 200);
  EXPECT_EQ(apply("kubectl", "c"), 409) << "somebody has changed it since";
  EXPECT_EQ(client.ask("PATCH", at("m") + "?fieldManager=kubectl-client-side-apply", R"({"data":{"a":"b"}})", kMerge).status,
            200);
  EXPECT_EQ(apply("kubectl", "c"), 200) << "its own";
}

TEST_F(Writing, an_owner_named_twice_is_kept_once) {
  std::string owner = R"({"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"u-1"})";
  RawAnswer made = create("m", ",\"ownerReferences\":[" + owner + "," + owner + "]");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(get_array(made.json(), "metadata.ownerReferences").size(), 1u);
  EXPECT_NE(
      made.head.find(
          "Warning: 299 - \".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+"),
      std::string::npos)
      << made.head;
  RawAnswer patched =
      client.ask("PATCH", at("m"), R"({"metadata":{"ownerReferences":[)" + owner + "," + owner + "," + owner + "]}}", kMerge);
  EXPECT_EQ(get_array(patched.json(), "metadata.ownerReferences").size(), 1u);
  EXPECT_NE(patched.head.find("Warning: 299 - \".metadata.ownerReferences contains duplicate entries after mutating admission "
                              "happens; API server dedups owner references in 1.20+, and may reject such requests as early as "
                              "1.24; please fix your requests; duplicate UID(s) observed: u-1, u-1\""),
            std::string::npos)
      << patched.head;
}

TEST_F(Writing, warnings_are_told_once_escaped_and_cut) {
  std::string fields;
  for (int i = 0; i < 20; i++) fields += ",\"f" + std::to_string(i) + std::string(400, 'x') + "\":1";
  RawAnswer made = client.ask("POST", kMaps, R"({"metadata":{"name":"m"},"a\"b":1)" + fields + "}");
  EXPECT_EQ(made.status, 201);
  size_t count = 0, longest = 0;
  for (size_t here = made.head.find("Warning: 299 - "); here != std::string::npos;
       here = made.head.find("Warning: 299 - ", here + 1)) {
    count++;
    longest = std::max(longest, made.head.find("\r\n", here) - here);
  }
  EXPECT_GE(count, 16u);
  EXPECT_LE(count, 21u);
  EXPECT_LE(longest, 15 + 1 + 256 + 16u);
}

TEST_F(Writing, many_warnings_and_a_long_manager_cost_no_more_than_they_are_long) {
  std::string fields;
  for (int i = 0; i < 100'000; i++) fields += ",\"unknown" + std::to_string(i) + "\":1";
  auto began = processor_time_of_process();
  EXPECT_EQ(client.ask("POST", kMaps, R"({"metadata":{"name":"m"})" + fields + "}").status, 201);
  RawAnswer refused = client.ask("POST", std::string(kMaps) + "?fieldManager=" + std::string(900'000, 'a') + "%01", "{}");
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.body.find("(at position 900000)"), std::string::npos);
  EXPECT_LT(processor_time_of_process() - began, std::chrono::seconds(20)) << "unoptimized, and with sanitizers";
}

TEST_F(Writing, patches_are_refused_in_kubernetes_words) {
  create("m");
  auto json_patch = [&](const std::string& body) {
    return client.ask("PATCH", at("m"), body, "Content-Type: application/json-patch+json\r\n");
  };
  RawAnswer test = json_patch(R"([{"op":"test","path":"/data/x","value":"1"}])");
  EXPECT_EQ(test.status, 422);
  EXPECT_EQ(message(test), "the server rejected our request due to an error in our request");
  RawAnswer added = json_patch(R"([{"op":"add","path":"","value":{"metadata":{"name":"m"}}}])");
  EXPECT_EQ(added.status, 422) << "only replace and test may name the whole object";
  EXPECT_EQ(message(added), "the server rejected our request due to an error in our request");
  EXPECT_EQ(json_patch(R"([{"op":"replace","path":"","value":{"metadata":{"name":"m"},"data":{"x":"1"}}},
                           {"op":"test","path":"/data/x","value":"1"}])")
                .status,
            200);
  std::string many = "[";
  for (int i = 0; i <= 10000; i++) many += std::string(i ? "," : "") + R"({"op":"test","path":"/kind","value":"ConfigMap"})";
  RawAnswer too_many = json_patch(many + "]");
  EXPECT_EQ(too_many.status, 413);
  EXPECT_EQ(message(too_many), "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001");
  EXPECT_EQ(message(client.ask("PATCH", at("m") + "?fieldManager=" + std::string(129, 'm'), "{}", kMerge)),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes");
  EXPECT_EQ(message(client.ask("PATCH", at("m") + "?force=true&dryRun=x", "{}", kMerge)),
            "PatchOptions.meta.k8s.io \"\" is invalid: [force: Forbidden: may not be specified for non-apply patch, "
            "dryRun: Unsupported value: [\"x\"]: supported values: \"All\"]");
  EXPECT_EQ(message(client.ask("PATCH", at("m") + "?fieldValidation=x", "{}", "Content-Type: application/apply-patch+yaml\r\n")),
            "PatchOptions.meta.k8s.io \"\" is invalid: [fieldManager: Required value: is required for apply patch, "
            "fieldValidation: Unsupported value: \"x\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"]");
  EXPECT_EQ(message(client.ask("PATCH", at("m") + "?fieldManager=a%0ab", "{}", kMerge)),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\nb\": invalid character U+000A (at "
            "position 1)");
  for (auto [manager, named] :
       {std::pair("a%C2%85", "U+0085 (at position 1)"), std::pair("%C3%A4%E2%80%A8", "U+2028 (at position 2)"),
        std::pair("%F3%A0%80%81", "U+E0001 (at position 0)")}) {
    std::string said = message(client.ask("PATCH", at("m") + "?fieldManager=" + manager, "{}", kMerge));
    EXPECT_TRUE(said.ends_with(std::string(": invalid character ") + named)) << said;
  }
  EXPECT_EQ(client.ask("PATCH", at("m") + "?fieldManager=%C3%A4%E2%82%AC%F0%9F%98%80%FF", R"({"data":{"a":"b"}})", kMerge).status,
            200);
  RawClient other(fixture.port(), &identity);
  EXPECT_EQ(message(other.ask("POST", kMaps, std::string(kBodyBytesMax + 1, ' '))), "Request entity too large: limit is 3145728");
}

// What would be too large with the record of its fields is stored without it, except by an apply, which needs the record. Source:
// endpoints/handlers/create.go, isTooLargeError.
TEST_F(Writing, an_object_loses_its_managed_fields_before_it_is_too_large) {
  std::string data;
  for (int i = 0; i < 130'000; i++) data += std::string(i ? "," : "") + "\"k" + std::to_string(100'000 + i) + "\":\"\"";
  auto object = [&](const std::string& name) {
    return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name + R"("},"data":{)" + data + "}}";
  };
  RawAnswer made = client.ask("POST", kMaps, object("made"));
  ASSERT_EQ(made.status, 201) << made.body.substr(0, 1000);
  EXPECT_EQ(find(made.json(), "metadata.managedFields"), nullptr);
  create("put");
  RawAnswer put = client.ask("PUT", at("put"), object("put"));
  ASSERT_EQ(put.status, 200) << put.body.substr(0, 1000);
  EXPECT_EQ(get_object(put.json(), "data").size(), 130'000u);
  EXPECT_EQ(find(put.json(), "metadata.managedFields"), nullptr);
  RawAnswer applied =
      client.ask("PATCH", at("new") + "?fieldManager=me", object("new"), "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(applied.status, 413) << applied.body.substr(0, 1000);
}

// Controllers patch with the uid of the object that they mean, and know by "Invalid" that another one has its name now.
TEST_F(Writing, a_patch_for_another_object_is_invalid) {
  create("m");
  const std::string other = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","uid":"other"},"data":{"a":"b"}})";
  const std::pair<const char*, const char*> types[] = {{kMerge, ""},
                                                       {"Content-Type: application/strategic-merge-patch+json\r\n", ""},
                                                       {"Content-Type: application/apply-patch+yaml\r\n", "?fieldManager=me"}};
  for (const auto& [type, query] : types) {
    RawAnswer refused = client.ask("PATCH", at("m") + query, other, type);
    EXPECT_EQ(refused.status, 422) << type;
    EXPECT_EQ(get_string(refused.json(), "reason"), "Invalid");
    EXPECT_EQ(message(refused), "ConfigMap \"m\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable");
    EXPECT_EQ(get_string(get_array(refused.json(), "details.causes")[0], "field"), "metadata.uid");
  }
  EXPECT_EQ(client.ask("PUT", at("m"), other).status, 409) << "an update has it as its precondition";
  RawAnswer stale = client.ask("PATCH", at("m"), R"({"metadata":{"uid":"other","resourceVersion":"1"}})", kMerge);
  EXPECT_EQ(stale.status, 409) << "the version is compared first";
  EXPECT_EQ(find(client.get(at("m")).json(), "data"), nullptr) << "nothing was written";
}

TEST_F(Writing, a_body_is_limited_whatever_the_verb_and_the_coding) {
  const std::string large(kBodyBytesMax, ' '), head = " HTTP/1.1\r\nHost: x\r\n";
  const std::pair<std::string, std::string> verbs[] = {
      {"POST", kMaps}, {"PUT", at("m")}, {"PATCH", at("m")}, {"DELETE", at("m")}, {"DELETE", kMaps}};
  for (const auto& [verb, target] : verbs) {
    const std::string type = verb == "PATCH" ? kMerge : "";
    RawClient by_length(fixture.port(), &identity), by_chunks(fixture.port(), &identity);
    by_chunks.send(verb + " " + target + head + type + "Transfer-Encoding: chunked\r\n\r\n300000\r\n" + large +
                   "\r\n1\r\n \r\n0\r\n\r\n");
    for (const RawAnswer& refused : {by_length.ask(verb, target, large + " ", type), by_chunks.receive()}) {
      EXPECT_EQ(refused.status, 413) << verb << target;
      EXPECT_EQ(get_string(refused.json(), "reason"), "RequestEntityTooLarge");
      EXPECT_EQ(message(refused), "Request entity too large: limit is 3145728");
      EXPECT_EQ(find(refused.json(), "details"), nullptr);
    }
  }
  RawAnswer just = client.ask("POST", kMaps, R"({"metadata":{"name":"just"}})" + large.substr(28));
  EXPECT_EQ(just.status, 201) << "the limit itself is no excess: " << just.body;
}

TEST_F(Writing, deletions_follow_the_body_or_else_the_query) {
  struct Row {
    const char *query, *body;
    int status;
    const char* message;
  };
  for (const Row& row : {
           Row{"?propagationPolicy=Sideways", "", 422,
               "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Sideways\": supported values: "
               "\"Foreground\", \"Background\", \"Orphan\", \"nil\""},
           Row{"", R"({"propagationPolicy":"Orphan","orphanDependents":true})", 422,
               "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and "
               "deletionPropagation cannot be both set"},
           Row{"?gracePeriodSeconds=x", "", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"},
           Row{"?dryRun=Some", "", 422,
               "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""},
           Row{"", R"({"kind":"Pod","apiVersion":"v1"})", 400, "decoded object cannot be converted to DeleteOptions"},
           Row{"", R"({"gracePeriodSeconds":"x"})", 400, nullptr}, Row{"?uid=other", "", 409, nullptr},
           Row{"", R"({"preconditions":{"uid":""}})", 409, nullptr},
           Row{"", R"({"preconditions":{"resourceVersion":"0"}})", 409, nullptr},
           Row{"", R"({"preconditions":{"resourceVersion":""}})", 409, nullptr},
           Row{"", R"({"preconditions":{"uid":null}})", 200, nullptr}, Row{"?dryRun=All", "", 200, nullptr},
           Row{"?uid=other&propagationPolicy=Sideways", R"({"kind":"DeleteOptions","apiVersion":"apps/v1"})", 200,
               nullptr},  // only the body matters
       }) {
    create("m");
    RawAnswer answer = client.ask("DELETE", at("m") + row.query, row.body);
    EXPECT_EQ(answer.status, row.status) << row.query << row.body << answer.body;
    if (row.message) {
      EXPECT_EQ(message(answer), row.message);
    }
  }
  json::value made = create("m").json();
  std::string uid(get_string(made, "metadata.uid"));
  EXPECT_EQ(
      message(client.ask("DELETE", at("m") + "?uid=other")),
      "Operation cannot be fulfilled on ConfigMap \"m\": the UID in the precondition (other) does not match the UID in record (" +
          uid + "). The object might have been deleted and then recreated");
}

TEST_F(Writing, a_deletion_of_another_object_is_told_before_what_is_forbidden) {
  const std::string ns = "/api/v1/namespaces/default";
  json::value stored = client.get(ns).json();
  EXPECT_EQ(message(client.ask("DELETE", ns)), "namespaces \"default\" is forbidden: this namespace may not be deleted");
  EXPECT_EQ(message(client.ask("DELETE", ns + "?uid=other")),
            "Operation cannot be fulfilled on namespaces \"default\": Precondition failed: UID in precondition: other, UID in "
            "object meta: " +
                std::string(get_string(stored, "metadata.uid")));
  EXPECT_EQ(message(client.ask("DELETE", ns, R"({"preconditions":{"resourceVersion":"1000000"}})")),
            "Operation cannot be fulfilled on namespaces \"default\": Precondition failed: ResourceVersion in precondition: "
            "1000000, ResourceVersion in object meta: " +
                std::string(get_string(stored, "metadata.resourceVersion")));
}

TEST_F(Writing, a_deletion_is_answered_with_what_is_left_or_with_a_status) {
  create("m", R"(,"finalizers":["example.com/hold"])");
  RawAnswer held = client.ask("DELETE", at("m") + "?orphanDependents=false");
  EXPECT_EQ(held.status, 202);
  EXPECT_EQ(get_string(held.json(), "kind"), "ConfigMap");
  EXPECT_EQ(client.ask("DELETE", at("m")).status, 200) << "again changes nothing";
  EXPECT_EQ(client.ask("PATCH", at("m"), R"({"metadata":{"finalizers":["example.com/hold","example.com/more"]}})", kMerge).status,
            422);
  EXPECT_EQ(client.ask("PATCH", at("m"), R"({"metadata":{"finalizers":null}})", kMerge).status, 200);
  EXPECT_EQ(client.get(at("m")).status, 404) << "the last finalizer's end is its own";
  std::string accounts = "/api/v1/namespaces/default/serviceaccounts";
  client.ask("POST", accounts, R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(get_string(client.ask("DELETE", accounts + "/a").json(), "kind"), "ServiceAccount")
      << "some kinds answer with the object";
}

TEST_F(Writing, what_is_never_stored_is_read_as_its_kind_as_well) {
  const std::string access = "/apis/authorization.k8s.io/v1/subjectaccessreviews?fieldValidation=Strict",
                    tokens = "/apis/authentication.k8s.io/v1/tokenreviews?fieldValidation=Strict",
                    local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
  EXPECT_EQ(client.ask("POST", access, R"({"spec":{"user":"u","resourceAttributes":{"verb":"get"}}})").status, 201);
  EXPECT_EQ(client.ask("POST", access, R"({"spec":{"user":"u","resourceAttributes":{"verb":"get"},"colour":1}})").status, 400);
  EXPECT_EQ(client.ask("POST", access, R"({"kind":"Pod","spec":{"user":"u","resourceAttributes":{"verb":"get"}}})").status, 400);
  EXPECT_EQ(client.ask("POST", tokens, R"({"spec":{"token":"x"},"colour":1})").status, 400);
  EXPECT_EQ(client.ask("POST", tokens, R"({"kind":"TokenRequest","spec":{"token":"x"}})").status, 400);
  EXPECT_EQ(
      message(client.ask("POST", local, R"({"metadata":{"namespace":"other"},"spec":{"user":"u","resourceAttributes":{}}})")),
      "the namespace of the provided object does not match the namespace sent on the request");
}

TEST_F(Writing, collections_are_deleted_in_pages_by_selector_and_with_options) {
  for (const char* name : {"a", "b", "c"}) create(name);
  RawAnswer dry = client.ask("DELETE", std::string(kMaps) + "?dryRun=All");
  EXPECT_EQ(get_array(dry.json(), "items").size(), 3u);
  EXPECT_EQ(get_array(client.ask("DELETE", std::string(kMaps) + "?limit=1").json(), "items").size(), 1u);
  EXPECT_EQ(client.ask("DELETE", kMaps, R"({"preconditions":{"uid":"other"}})").status, 409);
  EXPECT_EQ(get_array(client.get(kMaps).json(), "items").size(), 2u);
  EXPECT_EQ(client.ask("DELETE", std::string(kMaps) + "?resourceVersionMatch=Exact").status, 422);
  std::string now(get_string(client.get(kMaps).json(), "metadata.resourceVersion"));
  EXPECT_EQ(
      client.ask("DELETE", std::string(kMaps) + "?dryRun=All&resourceVersionMatch=NotOlderThan&resourceVersion=" + now).status,
      200)
      << "it says which list is meant, not which object";
  EXPECT_EQ(get_string(client.ask("DELETE", kMaps).json(), "kind"), "ConfigMapList");
  EXPECT_EQ(get_array(client.get(kMaps).json(), "items").size(), 0u);
}

TEST_F(Writing, a_client_that_waits_to_be_told_is_told_to_go_on) {
  std::string body = R"({"metadata":{"name":"m"}})";
  client.send("POST " + std::string(kMaps) +
              " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.receive_head().status, 100);
  client.send(body);
  EXPECT_EQ(client.receive().status, 201);
}

TEST_F(Writing, dry_runs_change_nothing_whatever_the_verb) {
  json::value before = create("m").json();
  std::string dry = "?dryRun=All";
  EXPECT_EQ(get_string(client.ask("PUT", at("m") + dry, R"({"metadata":{"name":"m"},"data":{"a":"b"}})").json(), "data.a"), "b");
  EXPECT_EQ(get_string(client.ask("PATCH", at("m") + dry, R"({"data":{"a":"b"}})", kMerge).json(), "data.a"), "b");
  RawAnswer applied =
      client.ask("PATCH", at("new") + dry + "&fieldManager=me", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n",
                 "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(applied.status, 201);
  EXPECT_FALSE(get_string(applied.json(), "metadata.uid").empty());
  EXPECT_EQ(client.ask("PUT", std::string(kLeases) + "/l" + dry, R"({"metadata":{"name":"l"}})").status, 201);
  EXPECT_EQ(client.get(at("new")).status, 404);
  EXPECT_EQ(client.get(std::string(kLeases) + "/l").status, 404);
  EXPECT_EQ(client.get(at("m")).json(), before);
}

}  // namespace
}  // namespace coracle::api
