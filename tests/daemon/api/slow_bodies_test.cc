// SPDX-License-Identifier: Apache-2.0
// Request bodies that do not arrive: other clients do not wait for them.
#include <gtest/gtest.h>

#include <thread>

#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

class SlowBodies : public testing::Test {
 protected:
  static constexpr const char* kToken = "Authorization: Bearer t0ken\r\n";
  void start(HttpServerLimits limits = {}) {
    fixture = std::make_unique<ServerFixture>(limits);
    admin = fixture->server->admin();
    client = std::make_unique<RawClient>(fixture->port(), &admin);
    json::value edit = MUST(parse_json(
        R"({"metadata":{"name":"makes-maps"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["create","get"]}]})"));
    ASSERT_EQ(client->ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", to_text(edit)).status, 201);
    ASSERT_EQ(
        client
            ->ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                  R"({"metadata":{"name":"makes-maps"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",)"
                  R"("name":"makes-maps"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"someone"}]})")
            .status,
        201);
  }
  std::unique_ptr<RawClient> begin_body(const std::string& headers, const KeyPair* identity = nullptr) {
    auto one = std::make_unique<RawClient>(fixture->port(), identity);
    one->send("POST " + std::string(kMaps) + " HTTP/1.1\r\nHost: x\r\n" + headers + "Content-Length: 1000\r\n\r\n{");
    return one;
  }
  bool await_bodies(int count) {
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (fixture->server->counts().bodies != count && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return fixture->server->counts().bodies == count;
  }

  std::unique_ptr<ServerFixture> fixture;
  KeyPair admin;
  std::unique_ptr<RawClient> client;
};

TEST_F(SlowBodies, of_strangers_are_answered_and_not_waited_for) {
  start();
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 220; i++) {
    strangers.push_back(begin_body(""));
    EXPECT_EQ(client->get(kMaps).status, 200) << i;
  }
  EXPECT_EQ(fixture->server->counts().bodies, 0);
  for (auto& stranger : strangers) {
    RawAnswer answer = stranger->receive();
    EXPECT_EQ(answer.status, 403);
    EXPECT_EQ(answer.header("Connection"), "close");
    EXPECT_TRUE(stranger->at_end());
  }
}

TEST_F(SlowBodies, of_one_user_leave_space_for_all_others) {
  start();
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 64; i++) slow.push_back(begin_body("", &admin));
  ASSERT_TRUE(await_bodies(64));
  RawClient other(fixture->port());
  for (int i = 0; i < 20; i++) {
    EXPECT_EQ(client->get(kMaps).status, 200);
    EXPECT_EQ(other.ask("POST", kMaps, R"({"metadata":{"generateName":"m-"}})", kToken).status, 201);
  }
  EXPECT_EQ(fixture->server->counts().requests, 0) << "they hold no place of those who are served";
}

TEST_F(SlowBodies, of_one_user_are_a_share_of_all) {
  HttpServerLimits limits;
  limits.bodies = 8;
  start(limits);
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 4; i++) {
    slow.push_back(begin_body(kToken));
    ASSERT_TRUE(await_bodies(i + 1));
  }
  auto one_more = begin_body(kToken);
  RawAnswer refused = one_more->receive();
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_EQ(get_string(refused.json(), "reason"), "TooManyRequests");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_TRUE(one_more->at_end());
  auto of_another = begin_body("", &admin);
  ASSERT_TRUE(await_bodies(5)) << "there is space for somebody else";
  std::string rest = R"("metadata":{"name":"whole"}})";
  of_another->send(rest + std::string(999 - rest.size(), ' '));
  EXPECT_EQ(of_another->receive().status, 201);
}

TEST_F(SlowBodies, that_crawl_are_ended_with_408) {
  HttpServerLimits limits;
  limits.body_grace = std::chrono::milliseconds(50);
  start(limits);
  RawAnswer ended = begin_body(kToken)->receive();
  EXPECT_EQ(ended.status, 408) << ended.body;
  EXPECT_EQ(get_int(ended.json(), "code"), 408);
  EXPECT_EQ(get_string(ended.json(), "message"), "the request body came too slowly");
  EXPECT_TRUE(await_bodies(0));
}

TEST_F(SlowBodies, hold_no_seat) {
  start();
  ASSERT_EQ(client
                ->ask("POST", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
                      R"({"metadata":{"name":"narrow"},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":1,)"
                      R"("lendablePercent":0,"borrowingLimitPercent":0,"limitResponse":{"type":"Reject"}}}})")
                .status,
            201);
  ASSERT_EQ(client
                ->ask("POST", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
                      R"({"metadata":{"name":"of-someone"},"spec":{"priorityLevelConfiguration":{"name":"narrow"},)"
                      R"("matchingPrecedence":5,"rules":[{"subjects":[{"kind":"User","user":{"name":"someone"}}],)"
                      R"("resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"]}]}]}})")
                .status,
            201);
  auto first = begin_body(kToken);
  ASSERT_TRUE(await_bodies(1)) << "for a moment it has the seat";
  auto second = begin_body(kToken);
  ASSERT_TRUE(await_bodies(2));
  std::string rest = R"("metadata":{"name":"whole"}})";
  first->send(rest + std::string(999 - rest.size(), ' '));
  EXPECT_EQ(first->receive().status, 201);
}

TEST_F(SlowBodies, the_star_of_options_is_answered) {
  start();
  RawClient stranger(fixture->port());
  stranger.send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(stranger.receive().status, 200);
  EXPECT_EQ(client->get("http://x" + std::string(kMaps)).status, 200);
  EXPECT_EQ(client->get(std::string(kMaps) + "?labelSelector=a+notin+(" + std::string(20'000, 'b') + ")").status, 400)
      << "it is read: the value is too long for a label";
}

}  // namespace
}  // namespace coracle::api
