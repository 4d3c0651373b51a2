// SPDX-License-Identifier: Apache-2.0
// The audit log of an API server: what was sent and what came back, in whatever form.
#include <gtest/gtest.h>

#include "runtime/sys/file.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

class AuditOfRequests : public testing::Test {
 protected:
  static constexpr std::string_view kPolicy = R"(
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, omitManagedFields: true, resources: [{group: "", resources: [configmaps], resourceNames: [bare]}]}
- {level: RequestResponse, resources: [{group: "", resources: [configmaps]}, {group: apps}]}
- {level: Metadata}
)";
  static constexpr const char* kYaml = "Accept: application/yaml\r\n";
  static constexpr const char* kTable = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";

  void SetUp() override {
    for (std::string name : {"m", "bare"})
      ASSERT_EQ(client.ask("POST", kMaps, R"({"metadata":{"name":")" + name + R"("},"data":{"x":"y"}})").status, 201);
  }
  static std::string at(const std::string& name) { return std::string(kMaps) + "/" + name; }
  // The event of the last request. It is in the file before the client has the answer.
  json::value last_event() {
    std::string log = MUST(sys::read_file(fixture.directory + "/audit.log"));
    log.pop_back();
    return MUST(parse_json(log.substr(log.rfind('\n') + 1)));
  }
  static json::value part_of(const json::value& event, std::string_view path) {
    const json::value* found = find(event, path);
    return found ? *found : json::value();
  }

  ServerFixture fixture{{}, built_in_catalogs(), kPolicy};
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(AuditOfRequests, has_patches_as_they_were_sent) {
  struct Row {
    const char *type, *body, *recorded;
  };
  for (const Row& row : {
           Row{"merge-patch+json", R"({"data":{"a":null,"b":"1"}})", R"({"data":{"a":null,"b":"1"}})"},
           Row{"strategic-merge-patch+json", R"({"data":{"c":"2"}})", R"({"data":{"c":"2"}})"},
           Row{"json-patch+json", R"([{"op":"add","path":"/data/d","value":"3"}])",
               R"([{"op":"add","path":"/data/d","value":"3"}])"},
           Row{"apply-patch+yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {e: '4'}}",
               R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"e":"4"}})"},
       }) {
    RawAnswer answer = client.ask("PATCH", at("m") + "?fieldManager=me", row.body,
                                  "Content-Type: application/" + std::string(row.type) + "\r\n");
    ASSERT_EQ(answer.status, 200) << row.type << answer.body;
    json::value event = last_event();
    EXPECT_EQ(get_string(event, "verb"), "patch");
    EXPECT_EQ(part_of(event, "requestObject"), MUST(parse_json(row.recorded))) << row.type;
    EXPECT_EQ(part_of(event, "responseObject"), answer.json()) << row.type;
  }
}

TEST_F(AuditOfRequests, has_answers_of_every_form) {
  const json::value map = client.get(at("m")).json(), list = client.get(kMaps).json();
  ASSERT_EQ(get_string(list, "kind"), "ConfigMapList");
  for (const char* headers : {"", kYaml, "Accept: application/vnd.kubernetes.protobuf\r\n", "User-Agent: curl/8\r\n"}) {
    ASSERT_EQ(client.get(at("m"), headers).status, 200);
    EXPECT_EQ(part_of(last_event(), "responseObject"), map) << headers;
    ASSERT_EQ(client.get(kMaps, headers).status, 200);
    json::value answered = part_of(last_event(), "responseObject");
    EXPECT_EQ(get_string(answered, "kind"), "ConfigMapList") << headers;
    EXPECT_EQ(get_array(answered, "items").size(), get_array(list, "items").size()) << headers;
  }
  RawAnswer table = client.get(at("m"), kTable);
  EXPECT_EQ(part_of(last_event(), "responseObject"), table.json());
  RawAnswer missing = client.get(at("none"));
  EXPECT_EQ(part_of(last_event(), "responseObject"), missing.json());
  EXPECT_EQ(get_string(last_event(), "responseStatus.reason"), "NotFound");
}

TEST_F(AuditOfRequests, leaves_managed_fields_out_where_the_policy_says_so) {
  for (const char* headers : {"", kYaml, kTable}) {
    RawAnswer answer = client.get(at("bare"), headers);
    ASSERT_NE(answer.body.find("managedFields"), std::string::npos) << answer.body;
    std::string shown = to_text(part_of(last_event(), "responseObject"));
    EXPECT_NE(shown.find(R"("name":"bare")"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("managedFields"), std::string::npos) << shown;
  }
}

TEST_F(AuditOfRequests, says_what_a_status_says_at_every_level) {
  const std::string accounts = "/api/v1/namespaces/default/serviceaccounts";
  ASSERT_EQ(client.ask("POST", accounts, R"({"metadata":{"name":"s"}})").status, 201);
  json::value made = last_event();
  EXPECT_EQ(find(made, "requestObject"), nullptr);
  EXPECT_EQ(find(made, "responseObject"), nullptr);
  const std::string secrets = "/api/v1/namespaces/default/secrets";
  ASSERT_EQ(client.ask("POST", secrets, R"({"metadata":{"name":"s"}})").status, 201);
  ASSERT_EQ(client.ask("DELETE", secrets + "/s").status, 200);
  json::value gone = last_event();
  EXPECT_EQ(get_string(gone, "responseStatus.status"), "Success") << to_text(gone);
  EXPECT_EQ(get_string(gone, "responseStatus.details.name"), "s");
  EXPECT_EQ(find(gone, "responseObject"), nullptr);
  ASSERT_EQ(client.ask("DELETE", secrets + "/s").status, 404);
  EXPECT_EQ(get_string(last_event(), "responseStatus.reason"), "NotFound");
}

TEST_F(AuditOfRequests, shortens_the_name_of_the_client) {
  client.get(at("m"), "User-Agent: " + std::string(1024, 'a') + "\r\n");
  EXPECT_EQ(get_string(last_event(), "userAgent"), std::string(1024, 'a'));
  client.get(at("m"), "User-Agent: " + std::string(1025, 'a') + "\r\n");
  EXPECT_EQ(get_string(last_event(), "userAgent"), std::string(1024, 'a') + "...TRUNCATED");
}

}  // namespace
}  // namespace coracle::api
