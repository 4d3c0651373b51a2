// SPDX-License-Identifier: Apache-2.0
// The verbs over HTTP, as clients see them: status codes, messages, representations, discovery.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "store/schema/protobuf.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

class Resources : public testing::Test {
 protected:
  static void SetUpTestSuite() { fixture = new ServerFixture; }
  static void TearDownTestSuite() { delete std::exchange(fixture, nullptr); }
  void TearDown() override {
    client.ask("DELETE", kMaps, "{}");
    client.ask("DELETE", "/apis/apps/v1/namespaces/default/deployments", "{}");
    client.ask("DELETE", "/api/v1/namespaces/default/pods", R"({"gracePeriodSeconds":0})");
  }
  RawAnswer create_map(const std::string& name, const std::string& more = {}) {
    return client.ask(
        "POST", kMaps,
        R"({"metadata":{"name":")" + name + R"(","labels":{"n":")" + name + "\"}},\"data\":{\"a\":\"b\"}" + more + "}");
  }
  static inline ServerFixture* fixture = nullptr;
  KeyPair admin = fixture->server->admin();
  RawClient client{fixture->port(), &admin};
};

TEST_F(Resources, live_and_die) {
  RawAnswer made = create_map("m");
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.header("Content-Type"), "application/json");
  EXPECT_EQ(made.header("Cache-Control"), "no-cache, private");
  EXPECT_FALSE(made.header("Audit-ID").empty());
  json::value object = made.json();
  EXPECT_EQ(get_string(object, "kind"), "ConfigMap");
  EXPECT_FALSE(get_string(object, "metadata.uid").empty());
  EXPECT_EQ(client.get(std::string(kMaps) + "/m").body, made.body) << "what was stored is what is read";

  make(object, "data.a") = "c";
  RawAnswer changed = client.ask("PUT", std::string(kMaps) + "/m", to_text(object));
  EXPECT_EQ(changed.status, 200);
  RawAnswer stale = client.ask("PUT", std::string(kMaps) + "/m", to_text(object));
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(get_string(stale.json(), "message"),
            "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply your changes to the "
            "latest version and try again");

  RawAnswer gone = client.ask("DELETE", std::string(kMaps) + "/m");
  EXPECT_EQ(gone.status, 200);
  EXPECT_EQ(get_string(gone.json(), "status"), "Success");
  EXPECT_EQ(get_string(gone.json(), "details.kind"), "configmaps");
  RawAnswer missing = client.get(std::string(kMaps) + "/m");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(get_string(missing.json(), "message"), "configmaps \"m\" not found");
  EXPECT_EQ(get_string(missing.json(), "reason"), "NotFound");
}

TEST_F(Resources, are_refused_in_kubernetes_words) {
  create_map("m");
  struct Row {
    const char *method, *target, *headers, *body;
    int status;
    const char* message;
  };
  for (const Row& row : {
           Row{"POST", kMaps, "", R"({"metadata":{"name":"m"}})", 409, "configmaps \"m\" already exists"},
           Row{"POST", kMaps, "", R"({"metadata":{"name":"x","namespace":"other"}})", 400,
               "the namespace of the provided object does not match the namespace sent on the request"},
           Row{"POST", kMaps, "", R"({"apiVersion":"v2","metadata":{"name":"x"}})", 400,
               "the API version in the data (v2) does not match the expected API version (v1)"},
           Row{"POST", kMaps, "", R"({"metadata":{"name":"x","resourceVersion":"5"}})", 400,
               "resourceVersion should not be set on objects to be created"},
           Row{"POST", "/api/v1/namespaces/nowhere/configmaps", "", R"({"metadata":{"name":"x"}})", 404,
               "namespaces \"nowhere\" not found"},
           Row{"PUT", "/api/v1/namespaces/default/configmaps/other", "", R"({"metadata":{"name":"m"}})", 400,
               "the name of the object (m) does not match the name on the URL (other)"},
           Row{"GET", "/api/v1/namespaces/default/configmaps?fieldSelector=foo%3Dbar", "", "", 400, nullptr},
           Row{"PATCH", "/api/v1/namespaces/default/configmaps/m", "Content-Type: text/plain\r\n", "{}", 415, nullptr},
           Row{"POST", kMaps, "Content-Type: text/plain\r\n", "{}", 415, nullptr},
           Row{"GET", kMaps, "Accept: text/html\r\n", "", 406, nullptr},
           Row{"POST", "/api/v1/configmaps", "", R"({"metadata":{"name":"x"}})", 405, nullptr},
           Row{"DELETE", "/api/v1/configmaps", "", "", 405, nullptr},  // of all namespaces at once
           Row{"PUT", kMaps, "", R"({"metadata":{"name":"m"}})", 405, nullptr},
           Row{"PATCH", kMaps, "Content-Type: application/merge-patch+json\r\n", "{}", 405, nullptr},
           Row{"OPTIONS", "/api/v1/namespaces/default/configmaps/m", "", "", 405, nullptr},
           Row{"DELETE", "/api/v1/namespaces", "", "", 405, "the server does not allow this method on the requested resource"},
           Row{"DELETE", "/api/v1/namespaces/default", "", "", 403,
               "namespaces \"default\" is forbidden: this namespace may not be deleted"},
           Row{"POST", kMaps, "", "", 400,
               "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: "
               "the request body is empty"},
           Row{"POST", kMaps, "", "{\"metadata\"", 400, nullptr},
           Row{"POST", kMaps, "", "[]", 400, nullptr},
           Row{"POST", "/api/v1/namespaces/default/configmaps?dryRun=Some", "", R"({"metadata":{"name":"x"}})", 422, nullptr},
           Row{"POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Maybe", "", R"({"metadata":{"name":"x"}})", 422,
               nullptr},
           Row{"POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict", "", R"({"metadata":{"name":"x"},"foo":1})",
               400, "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"foo\""},
           Row{"PATCH", "/api/v1/namespaces/default/configmaps/m?force=true", "Content-Type: application/merge-patch+json\r\n",
               "{}", 422, nullptr},
           Row{"PATCH", "/api/v1/namespaces/default/configmaps/m", "Content-Type: application/apply-patch+yaml\r\n", "data: {}",
               422, nullptr},
           Row{"GET", "/api/v1/namespaces/default/configmaps?limit=x", "", "", 400, nullptr},
           Row{"GET", "/api/v1/namespaces/default/configmaps/m?resourceVersion=99999999", "", "", 504, nullptr},
           Row{"GET", "/api/v1/namespaces/default/configmaps/m?export=true", "", "", 400,
               "the export parameter, deprecated since v1.14, is no longer supported"},
           Row{"GET", "/version?timeout=invalid", "", "", 400,
               "invalid timeout specified in the request URL - time: invalid duration \"invalid\""},
           Row{"GET", "/api/v1/namespaces/default/configmaps?timeout=5", "", "", 400,
               "invalid timeout specified in the request URL - time: missing unit in duration \"5\""},
       }) {
    RawAnswer answer = client.ask(row.method, row.target, row.body, row.headers);
    EXPECT_EQ(answer.status, row.status) << row.method << " " << row.target << " " << answer.body;
    if (row.message) {
      EXPECT_EQ(get_string(answer.json(), "message"), row.message);
    }
    EXPECT_EQ(get_int(answer.json(), "code"), row.status);
  }
}

// [sig-api-machinery] Server request timeout
TEST_F(Resources, a_timeout_that_is_a_duration_is_accepted) {
  for (const char* timeout : {"3m", "0s", "32s", "0", ""})
    EXPECT_EQ(client.get("/version?timeout=" + std::string(timeout)).status, 200) << timeout;
}

TEST_F(Resources, unknown_ones_are_plain_404) {
  for (const char* target : {"/apis/no.such/v1", "/apis/no.such/v1/things", "/foo"}) {
    RawAnswer answer = client.get(target);
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_EQ(answer.body, "404 page not found\n");
  }
}

TEST_F(Resources, are_listed_in_pages_of_one_snapshot) {
  for (const char* name : {"a", "b", "c", "d", "e"}) create_map(name);
  json::value first = client.get(std::string(kMaps) + "?limit=2").json();
  EXPECT_EQ(get_string(first, "kind"), "ConfigMapList");
  EXPECT_EQ(get_array(first, "items").size(), 2u);
  EXPECT_EQ(get_int(first, "metadata.remainingItemCount"), 3);
  EXPECT_FALSE(get_array(first, "items")[0].get_object().contains("kind"));
  create_map("aa");
  std::vector<std::string> names;
  json::value page = first;
  for (int i = 0; i < 5; i++) {
    for (const auto& item : get_array(page, "items")) names.emplace_back(get_string(item, "metadata.name"));
    EXPECT_EQ(get_string(page, "metadata.resourceVersion"), get_string(first, "metadata.resourceVersion"));
    std::string token(get_string(page, "metadata.continue"));
    if (token.empty()) break;
    page = client.get(std::string(kMaps) + "?limit=2&continue=" + token).json();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(client.get(std::string(kMaps) + "?limit=2&continue=rubbish").status, 400);
  EXPECT_EQ(get_array(client.get(std::string(kMaps) + "?labelSelector=n+in+(a,c)").json(), "items").size(), 2u);
  EXPECT_EQ(get_array(client.get(std::string(kMaps) + "?fieldSelector=metadata.name%3Db").json(), "items").size(), 1u);
  std::string empty = client.get("/api/v1/namespaces/default/secrets").body;
  EXPECT_NE(empty.find("\"items\":[]"), std::string::npos) << empty;
}

TEST_F(Resources, come_as_yaml_protobuf_table_and_metadata) {
  create_map("m");
  std::string target = std::string(kMaps) + "/m";
  RawAnswer yaml = client.get(target, "Accept: application/yaml\r\n");
  EXPECT_EQ(yaml.header("Content-Type"), "application/yaml");
  EXPECT_NE(yaml.body.find("kind: ConfigMap\n"), std::string::npos);
  RawAnswer protobuf = client.get(target, "Accept: application/vnd.kubernetes.protobuf,application/json\r\n");
  EXPECT_EQ(protobuf.header("Content-Type"), "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(protobuf.body.substr(0, 4), std::string("k8s\0", 4));
  EXPECT_EQ(get_string(MUST(schema::from_protobuf(protobuf.body)), "data.a"), "b");
  RawAnswer list = client.get(kMaps, "Accept: application/vnd.kubernetes.protobuf\r\n");
  EXPECT_EQ(get_array(MUST(schema::from_protobuf(list.body)), "items").size(), 1u);

  std::string table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n";
  for (const std::string& where : {target, std::string(kMaps)}) {
    json::value shown = client.get(where, table).json();
    EXPECT_EQ(get_string(shown, "kind"), "Table");
    EXPECT_EQ(get_array(shown, "rows").size(), 1u);
    EXPECT_EQ(get_string(get_array(shown, "rows")[0], "object.kind"), "PartialObjectMetadata");
    EXPECT_EQ(get_string(get_array(client.get(where + "?includeObject=Object", table).json(), "rows")[0], "object.kind"),
              "ConfigMap");
    EXPECT_EQ(client.get(where + "?includeObject=All", table).status, 400);
  }
  json::value partial = client.get(target, "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n").json();
  EXPECT_EQ(get_string(partial, "apiVersion"), "meta.k8s.io/v1");
  EXPECT_EQ(client.get(target, "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io\r\n").status, 406);
}

TEST_F(Resources, are_written_as_yaml_and_protobuf) {
  EXPECT_EQ(client.ask("POST", kMaps, "metadata: {name: yaml}\ndata: {a: 'yes'}\n", "Content-Type: application/yaml\r\n").status,
            201);
  json::value map = MUST(parse_json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p"},"data":{"a":"b"}})"));
  RawAnswer made = client.ask(
      "POST", kMaps, MUST(schema::to_protobuf(map)),
      "Content-Type: application/vnd.kubernetes.protobuf\r\nAccept: application/vnd.kubernetes.protobuf,application/json\r\n");
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(get_string(MUST(schema::from_protobuf(made.body)), "metadata.name"), "p");
  RawAnswer gone = client.ask("DELETE", std::string(kMaps) + "/p",
                              MUST(schema::to_protobuf(MUST(
                                  parse_json(R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"other"}})")))),
                              "Content-Type: application/vnd.kubernetes.protobuf\r\n");
  EXPECT_EQ(gone.status, 409) << "the precondition was understood";
  EXPECT_EQ(client.ask("POST", kMaps, "k8s", "Content-Type: application/vnd.kubernetes.protobuf\r\n").status, 400);
}

TEST_F(Resources, warn_about_unknown_fields) {
  RawAnswer made = create_map("m", ",\"foo\":1,\"data\":{\"a\":\"c\"}");
  EXPECT_EQ(made.status, 201);
  EXPECT_NE(made.head.find("Warning: 299 - \"unknown field \\\"foo\\\"\""), std::string::npos) << made.head;
  EXPECT_NE(made.head.find("duplicate field"), std::string::npos) << made.head;
}

TEST_F(Resources, dry_runs_leave_nothing) {
  EXPECT_EQ(client.ask("POST", std::string(kMaps) + "?dryRun=All", R"({"metadata":{"generateName":"x-"}})").status, 201);
  EXPECT_EQ(get_array(client.get(kMaps).json(), "items").size(), 0u);
  create_map("m");
  EXPECT_EQ(client.ask("DELETE", std::string(kMaps) + "/m?dryRun=All").status, 200);
  EXPECT_EQ(client.get(std::string(kMaps) + "/m").status, 200);
}

TEST_F(Resources, are_patched_in_each_way) {
  create_map("m");
  std::string target = std::string(kMaps) + "/m";
  auto patch = [&](const char* type, const char* body) {
    return client.ask("PATCH", target, body, std::string("Content-Type: ") + type + "\r\n");
  };
  EXPECT_EQ(get_string(patch("application/merge-patch+json", R"({"data":{"b":"1"}})").json(), "data.b"), "1");
  EXPECT_EQ(
      get_string(patch("application/json-patch+json", R"([{"op":"replace","path":"/data/b","value":"2"}])").json(), "data.b"),
      "2");
  EXPECT_EQ(get_string(patch("application/strategic-merge-patch+json", R"({"data":{"b":null,"c":"3"}})").json(), "data.c"), "3");
  RawAnswer test = patch("application/json-patch+json", R"([{"op":"test","path":"/data/c","value":"9"}])");
  EXPECT_EQ(test.status, 422);
  EXPECT_EQ(get_string(test.json(), "reason"), "Invalid");
  EXPECT_EQ(patch("application/json-patch+json", "{}").status, 400);
  RawAnswer strict =
      client.ask("PATCH", target + "?fieldValidation=Strict", R"({"dada":1})", "Content-Type: application/merge-patch+json\r\n");
  EXPECT_EQ(strict.status, 422);
  json::value refusal = strict.json();
  EXPECT_EQ(get_string(get_array(refusal, "details.causes")[0], "field"), "patch");
  EXPECT_NE(get_string(refusal, "message").find(R"(: strict decoding error: unknown field "dada")"), std::string_view::npos)
      << strict.body;
  EXPECT_EQ(patch("application/merge-patch+json", R"({"metadata":{"resourceVersion":"1"}})").status, 409);
  RawAnswer applied = client.ask("PATCH", std::string(kMaps) + "/new?fieldManager=me",
                                 "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata: {x: z}\n",
                                 "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(applied.status, 201) << applied.body;
  EXPECT_EQ(client.ask("PATCH", std::string(kMaps) + "/absent", "{}", "Content-Type: application/merge-patch+json\r\n").status,
            404);
}

TEST_F(Resources, are_applied_by_several_managers) {
  auto apply = [&](const char* manager, const char* body) {
    json::value configuration = MUST(parse_json(body));
    configuration.get_object()["apiVersion"] = "v1", configuration.get_object()["kind"] = "ConfigMap";
    return client.ask("PATCH", std::string(kMaps) + "/shared?fieldManager=" + manager, to_text(configuration),
                      "Content-Type: application/apply-patch+yaml\r\n");
  };
  auto managers = [](const RawAnswer& answer) {
    std::string list;
    json::value object = answer.json();
    for (const json::value& entry : get_array(object, "metadata.managedFields"))
      list += std::string(get_string(entry, "manager")) + ":" + std::string(get_string(entry, "operation")) +
              to_text(*find(entry, "fieldsV1")) + " ";
    return list;
  };
  EXPECT_EQ(apply("one", R"({"metadata":{"name":"shared"},"data":{"a":"1","b":"1"}})").status, 201);
  EXPECT_EQ(managers(apply("one", R"({"data":{"a":"2"}})")), R"(one:Apply{"f:data":{"f:a":{}}} )")
      << "what changed stays applied";
  EXPECT_EQ(managers(apply("two", R"({"data":{"a":"2"}})")), R"(two:Apply{"f:data":{"f:a":{}}} one:Apply{"f:data":{"f:a":{}}} )")
      << "shared; who has changed nothing has no time and is first";
  EXPECT_EQ(get_string(apply("two", R"({"data":{"a":"3"}})").json(), "message"),
            "Apply failed with 1 conflict: conflict with \"one\": .data.a");
}

TEST_F(Resources, are_counted_in_pages_of_protobuf_too) {
  for (const char* name : {"a", "b", "c"}) create_map(name);
  RawAnswer page = client.get(std::string(kMaps) + "?limit=1", "Accept: application/vnd.kubernetes.protobuf\r\n");
  EXPECT_EQ(page.status, 200) << page.body;
  auto list = schema::from_protobuf(page.body, nullptr);
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(get_int(*list, "metadata.remainingItemCount"), 2);
}

TEST_F(Resources, have_a_scale) {
  std::string deployments = "/apis/apps/v1/namespaces/default/deployments";
  EXPECT_EQ(client
                .ask("POST", deployments, R"({"metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},
      "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})")
                .status,
            201);
  json::value scale = client.get(deployments + "/d/scale").json();
  EXPECT_EQ(get_string(scale, "kind"), "Scale");
  EXPECT_EQ(get_string(scale, "status.selector"), "a=b");
  RawAnswer table =
      client.get(deployments + "/d/scale?includeObject=Object", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
  ASSERT_EQ(table.status, 200) << table.body;
  const json::value shown = table.json();
  EXPECT_EQ(table.header("Content-Type"), "application/json");
  std::string names;
  for (const json::value& column : get_array(shown, "columnDefinitions")) names += std::string(get_string(column, "name")) + " ";
  EXPECT_EQ(names, "Name Desired Available Age ");
  const json::value row = get_array(shown, "rows").at(0);
  EXPECT_EQ(to_text(get_array(row, "cells")), R"(["d",2,0,")" + std::string(get_array(row, "cells").at(3).get_string()) + "\"]");
  EXPECT_EQ(get_string(row, "object.kind"), "Scale");
  RawAnswer partial =
      client.get(deployments + "/d/scale", "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n");
  EXPECT_EQ(get_string(partial.json(), "kind"), "PartialObjectMetadata") << partial.body;
  EXPECT_EQ(get_string(partial.json(), "metadata.name"), "d");
  EXPECT_EQ(
      client.get(deployments + "/d/scale?includeObject=x", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n").status,
      400);
  make(scale, "spec.replicas") = 5;
  EXPECT_EQ(client.ask("PUT", deployments + "/d/scale", to_text(scale)).status, 200);
  EXPECT_EQ(client.ask("PUT", deployments + "/d/scale", to_text(scale)).status, 409);
  EXPECT_EQ(get_int(client
                        .ask("PATCH", deployments + "/d/scale", R"({"spec":{"replicas":0}})",
                             "Content-Type: application/merge-patch+json\r\n")
                        .json(),
                    "spec.replicas"),
            0);
  json::value deployment = client.get(deployments + "/d").json();
  EXPECT_EQ(get_int(deployment, "spec.replicas"), 0);
  EXPECT_EQ(get_int(deployment, "metadata.generation"), 3);
  EXPECT_EQ(
      client
          .ask("PATCH", deployments + "/d/scale", R"({"spec":{"replicas":-1}})", "Content-Type: application/merge-patch+json\r\n")
          .status,
      422);
}

TEST_F(Resources, larger_than_the_limit_are_refused) {
  std::string body = R"({"metadata":{"name":"big"},"data":{"a":")" + std::string(kBodyBytesMax, 'x') + "\"}}";
  RawClient other(fixture->port(), &admin);
  EXPECT_EQ(other.ask("POST", kMaps, body).status, 413);
}

TEST_F(Resources, print_prettily_for_people) {
  create_map("m");
  EXPECT_NE(client.get(std::string(kMaps) + "/m", "User-Agent: curl/8\r\n").body.find("\n  \"metadata\": {\n"),
            std::string::npos);
  EXPECT_EQ(client.get(std::string(kMaps) + "/m").body.find('\n'), client.get(std::string(kMaps) + "/m").body.size() - 1);
}

TEST_F(Resources, read_within_a_fifth_of_a_millisecond) {
  create_map("m");
  std::vector<double> times;
  for (int i = 0; i < 200; i++) {
    auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(client.get(std::string(kMaps) + "/m").status, 200);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  RecordProperty("median_us", int(times[100] * 1000));
  EXPECT_LT(times[100], 5.0) << "a guard against accidents; the benchmark measures";
}

TEST_F(Resources, are_discovered) {
  json::value versions = client.get("/api").json();
  EXPECT_EQ(get_array(versions, "versions")[0], "v1");
  json::value groups = client.get("/apis").json();
  EXPECT_EQ(get_string(groups, "kind"), "APIGroupList");
  EXPECT_EQ(get_string(client.get("/apis/apps").json(), "preferredVersion.groupVersion"), "apps/v1");
  json::value core = client.get("/api/v1/").json();
  std::map<std::string, json::value> by_name;
  for (const auto& resource : get_array(core, "resources")) by_name[std::string(get_string(resource, "name"))] = resource;
  EXPECT_EQ(get_string(by_name["pods"], "singularName"), "pod");
  EXPECT_EQ(get_string(by_name["pods/eviction"], "group"), "policy");
  EXPECT_EQ(get_string(by_name["serviceaccounts/token"], "kind"), "TokenRequest");
  EXPECT_FALSE(get_bool(by_name["nodes"], "namespaced", true));
  json::value apps = client.get("/apis/apps/v1").json();
  for (const auto& resource : get_array(apps, "resources"))
    if (get_string(resource, "name") == "deployments/scale") {
      EXPECT_EQ(get_string(resource, "group"), "autoscaling");
    }
}

TEST_F(Resources, are_discovered_at_once) {
  std::string accept = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json\r\n";
  RawAnswer core = client.get("/api", accept), others = client.get("/apis", accept);
  for (const RawAnswer& answer : {core, others}) {
    EXPECT_EQ(answer.header("Content-Type"), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    EXPECT_EQ(get_string(answer.json(), "apiVersion"), "apidiscovery.k8s.io/v2");
    EXPECT_EQ(answer.header("Vary"), "Accept");
  }
  EXPECT_EQ(get_array(core.json(), "items").size(), 1u);
  EXPECT_GT(get_array(others.json(), "items").size(), 3u);
  RawAnswer again = client.get("/apis", accept + "If-None-Match: " + others.header("Etag") + "\r\n");
  EXPECT_EQ(again.status, 304);
  EXPECT_TRUE(again.body.empty());
  EXPECT_EQ(get_string(client.get("/apis", "Accept: application/json\r\n").json(), "kind"), "APIGroupList");
}

TEST_F(Resources, are_discovered_in_the_order_in_which_clients_look) {
  std::vector<std::string> groups, versions;
  json::value all = client.get("/apis").json();
  for (const auto& group : get_array(all, "groups")) {
    groups.emplace_back(get_string(group, "name"));
    if (groups.back() == "autoscaling")
      for (const auto& version : get_array(group, "versions")) versions.emplace_back(get_string(version, "version"));
  }
  auto at = [&](const char* name) { return std::find(groups.begin(), groups.end(), name) - groups.begin(); };
  EXPECT_LT(at("apps"), at("authentication.k8s.io"));
  EXPECT_LT(at("authentication.k8s.io"), at("policy"));
  EXPECT_LT(at("policy"), at("coordination.k8s.io"));
  EXPECT_TRUE(std::is_sorted(versions.rbegin(), versions.rend())) << "the newest first";
  EXPECT_EQ(client.get("/apis", "Accept: application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList\r\n").status,
            406)
      << "no longer served";
  EXPECT_EQ(get_string(
                client
                    .get("/apis",
                         "Accept: application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json\r\n")
                    .json(),
                "kind"),
            "APIGroupList");
}

TEST_F(Resources, have_openapi_documents) {
  json::value index = client.get("/openapi/v3").json();
  std::string url(get_string(*find_keys(index, {"paths", "apis/apps/v1"}), "serverRelativeURL"));
  RawAnswer document = client.get(url);
  EXPECT_EQ(document.status, 200);
  EXPECT_NE(document.body.find("io.k8s.api.apps.v1.Deployment"), std::string::npos);
  EXPECT_EQ(client.get("/openapi/v3/apis/apps/v1?hash=0").status, 301);
  EXPECT_EQ(client.get("/openapi/v3/apis/no/v1").status, 404);
  RawAnswer v2 = client.get("/openapi/v2", "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf\r\n");
  EXPECT_EQ(v2.status, 200);
  EXPECT_NE(v2.header("Content-Type").find("protobuf"), std::string::npos);
}

// Source: kube-openapi pkg/handler and pkg/handler3; Go net/http ServeContent.
TEST_F(Resources, openapi_documents_are_sent_once_and_as_they_are_accepted) {
  for (const char* path : {"/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1"}) {
    const std::string etag = client.get(path).header("Etag");
    ASSERT_GT(etag.size(), 2u) << path;
    for (const std::string& known : {etag, "\"other\", " + etag, "W/" + etag, std::string("*")}) {
      RawAnswer same = client.get(path, "If-None-Match: " + known + "\r\n");
      EXPECT_EQ(same.status, 304) << path << known;
      EXPECT_EQ(same.header("Etag"), etag);
      EXPECT_FALSE(same.header("Audit-ID").empty());
    }
    EXPECT_EQ(client.get(path, "If-None-Match: \"other\"\r\n").status, 200) << path;
  }
  for (auto [path, accept, status, type] :
       {std::tuple("/openapi/v2", "text/html", 406, ""),
        std::tuple("/openapi/v2", "text/html, */*;q=0.1", 200, "application/json"),
        std::tuple("/openapi/v2", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf;q=0.5, application/json", 200,
                   "application/json"),
        std::tuple("/openapi/v3/apis/apps/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", 406, ""),
        std::tuple("/openapi/v3/apis/apps/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf, application/json",
                   200, "application/json"),
        std::tuple("/openapi/v3", "text/html", 200, "application/json")}) {
    RawAnswer answer = client.get(path, "Accept: " + std::string(accept) + "\r\n");
    EXPECT_EQ(answer.status, status) << path << accept;
    EXPECT_EQ(answer.header("Content-Type"), type) << path << accept;
  }
  RawAnswer moved = client.get("/openapi/v3/apis/apps/v1?hash=0");
  EXPECT_EQ(client.get(moved.header("Location")).status, 200);
  EXPECT_EQ(moved.header("Vary"), "Accept");
}

TEST_F(Resources, health_and_metrics_are_told) {
  EXPECT_EQ(client.get("/readyz").body, "ok");
  EXPECT_NE(client.get("/livez?verbose").body.find("[+]ping ok\n"), std::string::npos);
  EXPECT_EQ(client.get("/readyz/ping").status, 200);
  EXPECT_EQ(client.get("/readyz/ping?verbose").body, "ok");
  RawAnswer excluded = client.get("/readyz?verbose&exclude=ping&exclude=nothing");
  EXPECT_NE(excluded.body.find("[+]ping excluded: ok\n"), std::string::npos);
  EXPECT_NE(excluded.body.find("warn: some health checks cannot be excluded: no matches for \"nothing\"\nreadyz check passed\n"),
            std::string::npos)
      << excluded.body;
  EXPECT_EQ(excluded.header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(get_string(client.get("/version").json(), "gitVersion").find("v1.36."), 0u);
  EXPECT_TRUE(get_string(client.get("/version").json(), "gitVersion").ends_with("+coracle"));
  EXPECT_EQ(client.get("/readyz/nothing").status, 404);
  EXPECT_EQ(get_string(client.get("/version").json(), "minor"), "36");
  std::string metrics = client.get("/metrics").body;
  EXPECT_NE(metrics.find("apiserver_storage_objects{resource=\"namespaces\"} 4"), std::string::npos);
  for (const char* line : {"apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"\","
                           "scope=\"\",subresource=\"\",verb=\"GET\",version=\"\"} ",
                           "apiserver_request_duration_seconds_bucket{", ",le=\"0.005\"} ", ",le=\"+Inf\"} ",
                           "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1\n",
                           "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"workload-low\"} ",
                           "process_resident_memory_bytes ", "process_start_time_seconds ", "process_open_fds "})
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
}

TEST_F(Resources, who_prefers_protobuf_is_answered_where_there_is_none) {
  for (std::string path :
       {"/version", "/", "/openapi/v3", "/openid/v1/jwks", "/.well-known/openid-configuration", "/coracle/v1/images"}) {
    for (const char* accept :
         {"application/vnd.kubernetes.protobuf, */*", "application/vnd.kubernetes.protobuf,application/json"}) {
      RawAnswer answer = client.get(path, "Accept: " + std::string(accept) + "\r\n");
      EXPECT_EQ(answer.status, 200) << path << answer.body;
      EXPECT_TRUE(answer.header("Content-Type").starts_with("application/j")) << path;
      EXPECT_TRUE(answer.json().is_object() || answer.json().is_array()) << path;
    }
  }
  EXPECT_EQ(client.get("/version", "Accept: application/vnd.kubernetes.protobuf\r\n").status, 406) << "nothing else would do";
  EXPECT_EQ(client.get("/api", "Accept: application/vnd.kubernetes.protobuf, */*\r\n").header("Content-Type"),
            "application/vnd.kubernetes.protobuf");
}

TEST_F(Resources, a_byte_order_mark_is_passed_over) {
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(client.ask("POST", kMaps, mark + R"({"metadata":{"name":"json"}})").status, 201);
  EXPECT_EQ(client.ask("POST", kMaps, mark + "metadata: {name: yaml}\n", "Content-Type: application/yaml\r\n").status, 201);
  EXPECT_EQ(client.ask("POST", kMaps, mark + R"({"metadata":{"name":"braces"}})", "Content-Type: application/yaml\r\n").status,
            201);
  std::string one = std::string(kMaps) + "/json";
  EXPECT_EQ(client.ask("PATCH", one, mark + R"({"data":{"a":"b"}})", kMerge).status, 200);
  EXPECT_EQ(client
                .ask("PATCH", one + "?fieldManager=me", mark + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: json}\n",
                     "Content-Type: application/apply-patch+yaml\r\n")
                .status,
            200);
  EXPECT_EQ(client.ask("DELETE", one, mark + R"({"dryRun":["All"]})").status, 200);
  EXPECT_EQ(client.get(one).status, 200);
}

}  // namespace
}  // namespace coracle::api
