// SPDX-License-Identifier: Apache-2.0
// API priority and fairness over HTTP: the lines of Kubernetes' conformance suite about its two kinds, each under its name, and
// what clients see: headers, 429, metrics, the width of lists.
#include <gtest/gtest.h>

#include <thread>

#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

constexpr const char* kGroup = "/apis/flowcontrol.apiserver.k8s.io";
constexpr const char* kSomeone = "Authorization: Bearer t0ken\r\n";  // a user of the fixture

class Flow : public testing::Test {
 protected:
  json::value send(const std::string& method, const std::string& target, const std::string& body, int status,
                   const std::string& headers = {}) {
    RawAnswer answer = admin.ask(method, target, body, headers);
    EXPECT_EQ(answer.status, status) << method << " " << target << "\n" << answer.body;
    return answer.json();
  }
  json::value get(const std::string& target, int status = 200) { return send("GET", target, "", status); }

  // Reads, changes and writes, and retries on a conflict: the server also writes to the object's conditions.
  template <typename Change>
  json::value update(const std::string& object, const std::string& subresource, Change&& change) {
    for (int tries = 0; tries < 20; tries++) {
      json::value value = get(object);
      change(value);
      RawAnswer answer = admin.ask("PUT", object + subresource, to_text(value));
      if (answer.status == 409) continue;
      EXPECT_EQ(answer.status, 200) << answer.body;
      return answer.json();
    }
    ADD_FAILURE() << "others are always faster";
    return {};
  }
  static bool has_condition(const json::value& object, std::string_view type) {
    for (const json::value& one : get_array(object, "status.conditions"))
      if (get_string(one, "type") == type) return true;
    return false;
  }
  static int64_t revision_of(const json::value& object) {
    return std::stoll(std::string(get_string(object, "metadata.resourceVersion")));
  }

  void serves_all_operations(const std::string& resource, const std::string& kind, const std::string& spec,
                             const std::string& field);

  // A level with one seat and no borrowing, and a schema that assigns `user` to it.
  void confine(const std::string& user, const std::string& response = R"({"type":"Reject"})", int shares = 1);
  // A request that holds its seat until the client disconnects: it follows a log without an end.
  std::unique_ptr<RawClient> hold_seat() {
    fixture.streams.follows_for_ever = true;
    send("POST", "/api/v1/namespaces/default/pods",
         R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"main","image":"example.com/i:1"}]}})", 201);
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/";
    send("POST", rbac + "roles",
         R"({"metadata":{"name":"logs"},"rules":[{"apiGroups":[""],"resources":["pods/log"],"verbs":["get"]}]})", 201);
    send("POST", rbac + "rolebindings",
         R"({"metadata":{"name":"logs"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"logs"},)"
         R"("subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"someone"}]})",
         201);
    auto holder = std::make_unique<RawClient>(fixture.port());
    holder->send("GET /api/v1/namespaces/default/pods/p/log HTTP/1.1\r\nHost: x\r\n" + std::string(kSomeone) + "\r\n");
    EXPECT_EQ(holder->receive_head().status, 200);
    return holder;
  }
  // Waits until the request executes. Before that, another request could take the seat.
  void expect_one_seat_taken() {
    constexpr const char* kTaken =
        "apiserver_flowcontrol_current_executing_seats{flow_schema=\"of-someone\",priority_level=\"narrow\"} 1\n";
    EXPECT_TRUE(soon([&] { return admin.get("/metrics").body.find(kTaken) != std::string::npos; }));
  }
  template <typename Ready>
  static bool soon(Ready&& ready) {
    for (int tries = 0; tries < 2000; tries++) {
      if (ready()) return true;
      std::this_thread::yield();
    }
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < until)
      if (ready()) return true;
    return false;
  }
  std::string level_of(const std::string& headers) {
    return RawClient(fixture.port())
        .get("/api/v1/namespaces/default/configmaps/none", headers)
        .header("X-Kubernetes-Pf-Prioritylevel-Uid");
  }

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient admin{fixture.port(), &identity};
};

void Flow::serves_all_operations(const std::string& resource, const std::string& kind, const std::string& spec,
                                 const std::string& field) {
  auto serves_v1 = [](const json::value& group) {
    for (const json::value& version : get_array(group, "versions"))
      if (get_string(version, "version") == "v1") return true;
    return false;
  };
  bool listed = false;
  json::value groups = get("/apis");
  for (const json::value& group : get_array(groups, "groups"))
    listed |= get_string(group, "name") == "flowcontrol.apiserver.k8s.io" && serves_v1(group);
  EXPECT_TRUE(listed);
  EXPECT_TRUE(serves_v1(get(kGroup)));
  int found = 0;
  json::value resources = get(std::string(kGroup) + "/v1");
  for (const json::value& one : get_array(resources, "resources"))
    found += get_string(one, "name") == resource || get_string(one, "name") == resource + "/status";
  EXPECT_EQ(found, 2) << "the resource and its status";

  const std::string all = std::string(kGroup) + "/v1/" + resource, label = "?labelSelector=example-e2e-label%3Dx";
  const std::string body =
      R"({"metadata":{"generateName":"e2e-example-","labels":{"example-e2e-label":"x"}},"spec":)" + spec + "}";
  json::value created;
  for (int i = 0; i < 3; i++) created = send("POST", all, body, 201);
  std::string name(get_string(created, "metadata.name")), one = all + "/" + name;
  EXPECT_TRUE(name.starts_with("e2e-example-"));
  json::value read = get(one);
  EXPECT_EQ(get_string(read, "metadata.uid"), get_string(created, "metadata.uid"));
  EXPECT_GE(revision_of(read), revision_of(created));
  json::value list = get(all + label);
  EXPECT_EQ(get_array(list, "items").size(), 3u);

  RawClient watch(fixture.port(), &identity);
  watch.send("GET " + all + label + "&watch=1&resourceVersion=" + std::to_string(revision_of(list)) +
             " HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(watch.receive_head().status, 200);

  json::value patch = json::object{{"metadata", json::object{{"annotations", json::object{{"patched", "true"}}}}}};
  make(patch, "spec." + field) = 9;
  json::value patched = send("PATCH", one, to_text(patch), 200, kMerge);
  EXPECT_EQ(get_string(patched, "metadata.annotations.patched"), "true");
  EXPECT_EQ(get_int(patched, "spec." + field), 9);
  EXPECT_GT(revision_of(patched), revision_of(created));
  json::value updated = update(one, "", [&](json::value& object) {
    make(object, "metadata.annotations.updated") = "true";
    make(object, "spec." + field) = 8;
  });
  EXPECT_EQ(get_string(updated, "metadata.annotations.updated"), "true");
  EXPECT_EQ(get_int(updated, "spec." + field), 8);
  for (bool seen = false; !seen;) {
    std::string chunk = watch.receive_chunk();
    ASSERT_FALSE(chunk.empty()) << "the watch goes on";
    json::value event = MUST(parse_json(chunk));
    EXPECT_EQ(get_string(event, "type"), "MODIFIED");
    EXPECT_EQ(get_string(event, "object.kind"), kind);
    seen = get_string(event, "object.metadata.annotations.patched") == "true";
  }

  json::value status = get(one + "/status");
  EXPECT_EQ(get_string(status, "kind"), kind);
  EXPECT_EQ(get_string(status, "apiVersion"), "flowcontrol.apiserver.k8s.io/v1");
  EXPECT_EQ(get_string(status, "metadata.uid"), get_string(created, "metadata.uid"));
  status = send("PATCH", one + "/status",
                R"({"status":{"conditions":[{"type":"PatchStatusFailed","status":"False","reason":"e2e"}]}})", 200, kMerge);
  EXPECT_TRUE(has_condition(status, "PatchStatusFailed"));
  status = update(one, "/status", [](json::value& object) {
    json::array conditions = get_array(object, "status.conditions");
    conditions.push_back(json::object{
        {"type", "StatusUpdateFailed"}, {"status", "False"}, {"reason", "E2E"}, {"message", "Set from an e2e test"}});
    make(object, "status.conditions") = std::move(conditions);
  });
  EXPECT_TRUE(has_condition(status, "StatusUpdateFailed"));
  EXPECT_EQ(get_int(status, "spec." + field), 8) << "the spec stays";

  send("DELETE", one, "", 200);
  get(one, 404);
  EXPECT_EQ(get_array(get(all + label), "items").size(), 2u);
  send("DELETE", all + label, "", 200);
  EXPECT_EQ(get_array(get(all + label), "items").size(), 0u);
}

// [sig-api-machinery] API priority and fairness should support FlowSchema API operations [Conformance]
TEST_F(Flow, should_support_FlowSchema_API_operations) {
  serves_all_operations("flowschemas", "FlowSchema",
                        R"({"matchingPrecedence":10000,"priorityLevelConfiguration":{"name":"global-default"},
      "distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[{"kind":"User","user":{"name":"example-e2e-non-existent-user"}}],
      "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]})",
                        "matchingPrecedence");
}

// [sig-api-machinery] API priority and fairness should support PriorityLevelConfiguration API operations [Conformance]
TEST_F(Flow, should_support_PriorityLevelConfiguration_API_operations) {
  serves_all_operations("prioritylevelconfigurations", "PriorityLevelConfiguration",
                        R"({"type":"Limited","limited":{"nominalConcurrencyShares":2,"limitResponse":{"type":"Reject"}}})",
                        "limited.nominalConcurrencyShares");
}

void Flow::confine(const std::string& user, const std::string& response, int shares) {
  json::value level = send("POST", std::string(kGroup) + "/v1/prioritylevelconfigurations",
                           R"({"metadata":{"name":"narrow"},"spec":{"type":"Limited","limited":{
      "nominalConcurrencyShares":)" +
                               std::to_string(shares) + R"(,"borrowingLimitPercent":0,"limitResponse":)" + response + "}}}",
                           201);
  send(
      "POST", std::string(kGroup) + "/v1/flowschemas",
      R"({"metadata":{"name":"of-)" + user + R"("},"spec":{"priorityLevelConfiguration":{"name":"narrow"},
      "matchingPrecedence":5,"distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[{"kind":"User","user":{"name":")" +
          user +
          R"("}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}]}]}})",
      201);
  std::string uid(get_string(level, "metadata.uid"));
  ASSERT_TRUE(soon([&] { return level_of(kSomeone) == uid; })) << "no restart is needed";
}

TEST_F(Flow, the_answer_says_by_which_objects_it_came) {
  auto uid = [&](const char* resource, const char* name) {
    return std::string(get_string(get(std::string(kGroup) + "/v1/" + resource + "/" + name), "metadata.uid"));
  };
  RawClient nobody(fixture.port());
  RawAnswer answer = admin.get("/api/v1/namespaces"), probe = nobody.get("/readyz"), other = nobody.get("/version");
  EXPECT_EQ(answer.header("X-Kubernetes-Pf-Flowschema-Uid"), uid("flowschemas", "exempt"));
  EXPECT_EQ(answer.header("X-Kubernetes-Pf-Prioritylevel-Uid"), uid("prioritylevelconfigurations", "exempt"));
  EXPECT_EQ(probe.header("X-Kubernetes-Pf-Flowschema-Uid"), uid("flowschemas", "probes"));
  EXPECT_EQ(other.header("X-Kubernetes-Pf-Prioritylevel-Uid"), uid("prioritylevelconfigurations", "global-default"));
  EXPECT_EQ(admin.get("/apis", "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n")
                .header("X-Kubernetes-Pf-Flowschema-Uid")
                .size(),
            36u);
}

TEST_F(Flow, a_level_that_is_full_answers_429_and_others_go_on) {
  confine("someone");
  auto slow = hold_seat();
  RawClient next(fixture.port());
  expect_one_seat_taken();
  RawAnswer refused;
  ASSERT_TRUE(soon([&] {
    refused = next.get("/api/v1/namespaces/default/configmaps", kSomeone);
    return refused.status == 429;
  }));
  EXPECT_EQ(refused.body, "Too many requests, please try again later.\n");
  EXPECT_GE(std::stoi(refused.header("Retry-After")), 1);
  EXPECT_EQ(refused.header("X-Kubernetes-Pf-Prioritylevel-Uid").size(), 36u);
  EXPECT_EQ(admin.get("/api/v1/namespaces/default/configmaps").status, 200);
  std::string metrics = admin.get("/metrics").body;
  for (const char* line :
       {"apiserver_flowcontrol_rejected_requests_total{flow_schema=\"of-someone\",priority_level=\"narrow\",reason=\"concurrency-"
        "limit\"} ",
        "apiserver_flowcontrol_current_executing_seats{flow_schema=\"of-someone\",priority_level=\"narrow\"} 1",
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"narrow\"} 1",
        "apiserver_flowcontrol_upper_limit_seats{priority_level=\"narrow\"} 1",
        "apiserver_flowcontrol_dispatched_requests_total{flow_schema=\"exempt\",priority_level=\"exempt\"} ",
        "apiserver_flowcontrol_request_wait_duration_seconds_bucket{execute=\"true\",flow_schema=\"of-someone\",priority_level="
        "\"narrow\",le=\"0.005\"} "})
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  slow->close();
  EXPECT_TRUE(soon([&] { return next.get("/api/v1/namespaces/default/configmaps", kSomeone).status == 403; }))
      << "the seat is free again";
}

TEST_F(Flow, a_level_that_queues_lets_wait) {
  confine("someone", R"({"type":"Queue","queuing":{"queues":4,"handSize":1,"queueLengthLimit":5}})");
  auto slow = hold_seat();
  auto metric = [&](const std::string& line) { return admin.get("/metrics").body.find(line) != std::string::npos; };
  const std::string of_it = "{flow_schema=\"of-someone\",priority_level=\"narrow\"} ";
  ASSERT_TRUE(soon([&] { return metric("apiserver_flowcontrol_current_executing_requests" + of_it + "1"); }));
  RawClient next(fixture.port());
  next.send("GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\n" + std::string(kSomeone) + "\r\n");
  ASSERT_TRUE(soon([&] { return metric("apiserver_flowcontrol_current_inqueue_requests" + of_it + "1"); }));
  slow->close();
  EXPECT_EQ(next.receive().status, 403) << "its turn came; what it asked for is another matter";
}

// A watch occupies seats while it sends the initial events, and none while it waits.
TEST_F(Flow, a_watch_that_waits_holds_no_seat) {
  send(
      "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
      R"({"metadata":{"name":"v"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:aggregate-to-view"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"someone"}]})",
      201);
  send("POST", "/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"there"}})", 201);
  confine("someone");
  RawClient watch(fixture.port()), next(fixture.port());
  ASSERT_TRUE(soon([&] {
    watch.send("GET /api/v1/namespaces/default/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\n" + std::string(kSomeone) + "\r\n");
    RawAnswer head = watch.receive_head();
    if (head.status != 200) watch.receive_exactly(std::stoul(head.header("Content-Length")));
    return head.status == 200;
  }));
  EXPECT_NE(watch.receive_chunk().find("\"ADDED\""), std::string::npos);
  EXPECT_TRUE(soon([&] { return next.get("/api/v1/namespaces/default/configmaps/there", kSomeone).status == 200; }));
}

TEST_F(Flow, lists_of_much_take_several_seats) {
  for (int i = 0; i < 250; i++)
    send("POST", "/api/v1/namespaces/default/configmaps", R"({"metadata":{"generateName":"m-"}})", 201);
  confine("someone", R"({"type":"Reject"})", 10);  // worth three seats
  EXPECT_NE(admin.get("/metrics").body.find("apiserver_flowcontrol_current_limit_seats{priority_level=\"narrow\"} 3"),
            std::string::npos);
  auto slow = hold_seat();
  RawClient next(fixture.port());
  expect_one_seat_taken();
  EXPECT_TRUE(soon([&] { return next.get("/api/v1/namespaces/default/configmaps", kSomeone).status == 429; }))
      << "two seats are free, it needs three";
  EXPECT_EQ(next.get("/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dx", kSomeone).status, 403)
      << "one by its name needs one";
  EXPECT_EQ(next.get("/api/v1/namespaces/default/secrets", kSomeone).status, 403) << "of few it needs one";
}

}  // namespace
}  // namespace coracle::api
