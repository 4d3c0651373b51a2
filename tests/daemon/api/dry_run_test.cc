// SPDX-License-Identifier: Apache-2.0
// Dry runs: every writing verb of every kind, requested in the query or in the body, changes nothing: neither an object nor the
// revision.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "runtime/base/text.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"
#include "tests/store/schema/sample_objects.h"

namespace coracle::api {
namespace {

class DryRun : public testing::Test {
 protected:
  static constexpr const char *kPods = "/api/v1/namespaces/default/pods", *kServices = "/api/v1/namespaces/default/services";
  static constexpr const char *kApply = "Content-Type: application/apply-patch+yaml\r\n",
                              *kStrategic = "Content-Type: application/strategic-merge-patch+json\r\n";
  static std::string collection(const schema::KindInfo& info) {
    std::string path = info.kind.group.empty() ? "/api/" : "/apis/" + std::string(info.kind.group) + "/";
    path += std::string(info.kind.version) + "/";
    if (info.kind.namespaced) path += "namespaces/default/";
    return path + std::string(info.kind.resource);
  }
  struct Sample {
    const schema::KindInfo* info;
    json::value object;
    std::string path, name;
    std::string one() const { return path + "/" + name; }
  };
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const schema::KindInfo& info : schema::catalog().kinds()) {
      if (!info.has_verb("create") || !info.has_verb("get")) continue;
      auto found = sample_objects().find(info.kind.api_version() + "/" + std::string(info.kind.kind));
      if (found == sample_objects().end() || found->second.empty()) continue;
      json::value object = MUST(parse_json(found->second));
      std::string name(get_string(object, "metadata.name"));
      all.push_back({&info, std::move(object), collection(info), std::move(name)});
    }
    return all;
  }
  void make_pod(const std::string& name) {
    RawAnswer made = client.ask("POST", kPods,
                                R"({"metadata":{"name":")" + name +
                                    R"("},"spec":{"nodeName":"n","containers":[{"name":"main","image":"example.com/i:1"}]}})");
    ASSERT_EQ(made.status, 201) << made.body;
  }
  // The server adds a condition to a flow schema shortly after its creation.
  void await_flow_schemas() {
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const std::string group = "/apis/flowcontrol.apiserver.k8s.io/v1/";
    // If the schema was created before its priority level, the condition is written twice.
    auto judged = [&] {
      json::value schemas = client.get(group + "flowschemas").json();
      json::value levels = client.get(group + "prioritylevelconfigurations").json();
      std::set<std::string_view> names;
      for (const json::value& level : get_array(levels, "items")) names.insert(get_string(level, "metadata.name"));
      for (const json::value& item : get_array(schemas, "items")) {
        const bool dangles = !names.contains(get_string(item, "spec.priorityLevelConfiguration.name"));
        bool is_said = false;
        for (const json::value& condition : get_array(item, "status.conditions"))
          is_said |=
              get_string(condition, "type") == "Dangling" && get_string(condition, "status") == (dangles ? "True" : "False");
        if (!is_said) return false;
      }
      return true;
    };
    while (!judged() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }

  ServerFixture fixture;
  KeyPair admin = fixture.server->admin();
  RawClient client{fixture.port(), &admin};
};

TEST_F(DryRun, creates_nothing_of_any_kind) {
  await_flow_schemas();
  Revision before = fixture.engine->revision();
  for (const Sample& sample : samples()) {
    RawAnswer made = client.ask("POST", sample.path + "?dryRun=All", to_text(sample.object));
    EXPECT_EQ(made.status, 201) << sample.path << made.body;
    EXPECT_EQ(client.get(sample.one()).status, 404) << sample.path;
    EXPECT_EQ(fixture.engine->revision(), before) << sample.path;
  }
}

TEST_F(DryRun, changes_and_deletes_nothing_of_any_kind) {
  std::vector<Sample> all = samples();
  for (const Sample& sample : all) {
    int status = client.ask("POST", sample.path, to_text(sample.object)).status;
    EXPECT_TRUE(status == 201 || status == 409) << sample.path << " " << status;  // 409: a second version of one object
  }
  await_flow_schemas();
  for (const Sample& sample : all) {
    SCOPED_TRACE(sample.one());
    const schema::KindInfo& info = *sample.info;
    const Revision before = fixture.engine->revision();
    const std::string text = client.get(sample.one()).body;
    auto unmoved = [&](const std::string& what, const RawAnswer& answer, int status) {
      EXPECT_EQ(answer.status, status) << what << ": " << answer.body;
      EXPECT_EQ(client.get(sample.one()).body, text) << what;
      EXPECT_EQ(fixture.engine->revision(), before) << what;
    };
    const std::string dry = sample.one() + "?dryRun=All";
    const char* labels = R"({"metadata":{"labels":{"rehearsed":"yes"}}})";
    json::value changed = MUST(parse_json(text));
    make(changed, "metadata.labels.rehearsed") = "yes";
    unmoved("update", client.ask("PUT", dry, to_text(changed)), 200);
    unmoved("merge patch", client.ask("PATCH", dry, labels, kMerge), 200);
    unmoved("strategic merge patch", client.ask("PATCH", dry, labels, kStrategic), 200);
    json::value applied = MUST(parse_json(labels));
    make(applied, "metadata.name") = sample.name;
    applied.get_object()["apiVersion"] = info.kind.api_version();
    applied.get_object()["kind"] = info.kind.kind;
    unmoved("apply", client.ask("PATCH", dry + "&fieldManager=me&force=true", to_text(applied), kApply), 200);
    if (info.subresource("status") && info.subresource("status")->has_verb("patch"))
      unmoved("patch of the status", client.ask("PATCH", sample.one() + "/status?dryRun=All", labels, kMerge), 200);
    if (info.subresource("scale"))
      unmoved("scale", client.ask("PATCH", sample.one() + "/scale?dryRun=All", R"({"spec":{"replicas":3}})", kMerge), 200);
    for (const std::string& at : {sample.one(), sample.path}) {
      if (at == sample.path && !info.has_verb("deletecollection")) continue;
      bool named = at == sample.one();
      auto remove = [&](const std::string& query, const std::string& body) {
        std::string target = at + (named ? "?" : "?labelSelector=tier%3Dtest&") + query;
        unmoved("delete " + target + " " + body, client.ask("DELETE", target, body), 200);
      };
      remove("dryRun=All", "");
      remove("dryRun=All&gracePeriodSeconds=0&propagationPolicy=Foreground", "");
      remove("", R"({"dryRun":["All"]})");
      remove("", R"({"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"],"gracePeriodSeconds":0})");
      remove("dryRun=All", R"({"propagationPolicy":"Background"})");
      remove("dryRun=All", "{}");
      if (!named) continue;
      RawAnswer unknown = client.ask("DELETE", at + "?dryRun=Some", R"({"propagationPolicy":"Background"})");
      unmoved("an unknown value", unknown, 422);
      unmoved("an unknown value", client.ask("DELETE", at, R"({"dryRun":["Some"]})"), 422);
      unmoved("no list", client.ask("DELETE", at, R"({"dryRun":"All"})"), 400);
    }
  }
}

TEST_F(DryRun, shows_how_a_deletion_would_wait) {
  make_pod("p");
  RawAnswer dry = client.ask("DELETE", std::string(kPods) + "/p?dryRun=All");
  EXPECT_EQ(dry.status, 200);
  EXPECT_EQ(get_int(dry.json(), "metadata.deletionGracePeriodSeconds"), 30) << dry.body;
  EXPECT_EQ(find(client.get(std::string(kPods) + "/p").json(), "metadata.deletionTimestamp"), nullptr);
}

TEST_F(DryRun, evicts_binds_and_hands_out_nothing) {
  make_pod("p");
  client.ask("POST", kPods, R"({"metadata":{"name":"free"},"spec":{"containers":[{"name":"main","image":"example.com/i:1"}]}})");
  Revision before = fixture.engine->revision();
  std::string evict = std::string(kPods) + "/p/eviction";
  for (auto [query, options, status] : {std::tuple("?dryRun=All", "{}", 201), std::tuple("", R"({"dryRun":["All"]})", 201),
                                        std::tuple("?dryRun=All", R"({"dryRun":["All"],"gracePeriodSeconds":0})", 201),
                                        std::tuple("?dryRun=Some", "{}", 422), std::tuple("", R"({"dryRun":["Some"]})", 422)}) {
    RawAnswer answer = client.ask(
        "POST", evict + query,
        R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":)" + std::string(options) + "}");
    EXPECT_EQ(answer.status, status) << query << options << answer.body;
    EXPECT_EQ(fixture.engine->revision(), before) << query << options;
  }
  std::string binding = R"({"metadata":{"name":"free"},"target":{"kind":"Node","name":"n"}})";
  EXPECT_EQ(client.ask("POST", std::string(kPods) + "/free/binding?dryRun=All", binding).status, 201);
  EXPECT_EQ(client.ask("POST", "/api/v1/namespaces/default/bindings?dryRun=All", binding).status, 201);
  RawAnswer token = client.ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token?dryRun=All", "{}");
  EXPECT_EQ(token.status, 201);
  EXPECT_EQ(get_string(token.json(), "status.token"), "") << token.body;
  EXPECT_EQ(client
                .ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?dryRun=Some",
                     R"({"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}})")
                .status,
            422);
  EXPECT_EQ(fixture.engine->revision(), before);
}

TEST_F(DryRun, keeps_no_address_and_no_port) {
  std::string service = R"({"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80}]}})";
  json::value imagined = client.ask("POST", std::string(kServices) + "?dryRun=All", service).json();
  std::string address(get_string(imagined, "spec.clusterIP"));
  ASSERT_FALSE(address.empty());
  json::value wanted = MUST(parse_json(service));
  make(wanted, "spec.clusterIP") = address;
  make(wanted, "spec.ports").get_array()[0].get_object()["nodePort"] =
      get_int(get_array(imagined, "spec.ports").at(0), "nodePort");
  EXPECT_EQ(client.ask("POST", std::string(kServices) + "?dryRun=All", to_text(wanted)).status, 201);
  RawAnswer made = client.ask("POST", kServices, to_text(wanted));
  EXPECT_EQ(made.status, 201) << made.body;
}

TEST_F(DryRun, is_refused_where_there_is_none) {
  EXPECT_EQ(client.ask("DELETE", "/coracle/v1/images?reference=x&dryRun=All").status, 400);
  EXPECT_EQ(client.ask("POST", "/coracle/v1/images?reference=x&dryRun=All").status, 400);
  make_pod("p");
  for (const char* part : {"exec?command=reboot&stdout=true&", "attach?stdin=true&", "portforward?ports=80&", "proxy/?"}) {
    RawAnswer answer = client.ask("POST", std::string(kPods) + "/p/" + part + "dryRun=All");
    EXPECT_EQ(answer.status, 400) << part;
    EXPECT_EQ(get_string(answer.json(), "message"), "dryRun is not supported") << part;
  }
}

}  // namespace
}  // namespace coracle::api
