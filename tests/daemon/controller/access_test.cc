// SPDX-License-Identifier: Apache-2.0
// Certificate requests from creation to removal, aggregated roles, and Secrets with service account tokens.
#include "runtime/base/text.h"
#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

struct AccessTest : testing::Test {
  FakeClock clock;
  FakeClient client{clock};
  CollectedEvents events;
  Informers informers{client};
  std::optional<std::string> judged;
  SignedRequest result;
  int signatures = 0;
  std::unique_ptr<Manager> manager;

  void start() {
    Config config;
    config.root_ca = "CERT";
    config.judge_request = [this](const json::value&) -> Result<std::optional<std::string>> { return judged; };
    config.sign_request = [this](const json::value&) -> Result<SignedRequest> { return ++signatures, result; };
    config.lasting_token = [](const Object& account, std::string_view secret) -> Result<std::string> {
      return account.name() + " in " + std::string(secret);
    };
    manager = std::make_unique<Manager>(client, informers, events, built_in_catalogs(), config, clock);
    MUST(informers.start());
    settle();
  }
  void settle() {
    for (int passes = 0; passes < 5000; ++passes) {
      client.settle();
      if (!manager->run_once()) return;
    }
    FAIL() << "the controllers do not come to rest";
  }
  void pass(std::chrono::seconds span) {
    clock.advance(span);
    settle();
  }
  void put_request(const std::string& name, const std::string& conditions = "[]") {
    client.put(kCertificateSigningRequest, R"({"metadata":{"name":")" + name + R"(","creationTimestamp":")" +
                                               format_time(clock.now()) +
                                               R"("},"spec":{"signerName":"a.b/c"},"status":{"conditions":)" + conditions + "}}");
    settle();
  }
  ObjectPtr request(const std::string& name) { return client.find(kCertificateSigningRequest, {"", name}); }
  std::string condition(const std::string& name, std::string_view type, std::string_view field) {
    const json::value* found = find_condition(get_array(request(name)->json(), "status.conditions"), type);
    return found ? std::string(get_string(*found, field)) : "";
  }
  std::string when() { return R"("lastUpdateTime":")" + format_time(clock.now()) + "\""; }
};

TEST_F(AccessTest, requests_are_approved_signed_and_cleared_away) {
  judged = "because";
  result.certificate = "PEM";
  start();
  put_request("a");
  EXPECT_EQ(condition("a", "Approved", "reason"), "AutoApproved");
  EXPECT_EQ(condition("a", "Approved", "message"), "because");
  EXPECT_EQ(get_string(request("a")->json(), "status.certificate"), base64_encode("PEM"));
  EXPECT_EQ(signatures, 1);
  pass(std::chrono::minutes(59));
  EXPECT_TRUE(request("a"));
  pass(std::chrono::minutes(2));
  EXPECT_FALSE(request("a"));
}

TEST_F(AccessTest, requests_that_nobody_decides_wait_a_day) {
  start();
  put_request("a");
  EXPECT_EQ(signatures, 0);
  pass(std::chrono::hours(23));
  EXPECT_TRUE(request("a"));
  pass(std::chrono::minutes(61));
  EXPECT_FALSE(request("a"));
}

TEST_F(AccessTest, requests_that_are_denied_or_anothers_are_not_signed) {
  start();
  put_request("denied", R"([{"type":"Denied","status":"True",)" + when() + "}]");
  EXPECT_EQ(signatures, 0);
  put_request("foreign", R"([{"type":"Approved","status":"True",)" + when() + "}]");
  EXPECT_EQ(signatures, 1);
  EXPECT_EQ(get_string(request("foreign")->json(), "status.certificate"), "");
  EXPECT_EQ(condition("foreign", "Failed", "status"), "");
}

TEST_F(AccessTest, requests_that_a_signer_refuses_fail_for_good) {
  result.failure = "not like this";
  start();
  put_request("a", R"([{"type":"Approved","status":"True",)" + when() + "}]");
  EXPECT_EQ(condition("a", "Failed", "reason"), "SignerValidationFailure");
  EXPECT_EQ(condition("a", "Failed", "message"), "not like this");
  settle();
  EXPECT_EQ(signatures, 1);
}

TEST_F(AccessTest, roles_are_made_of_the_roles_they_choose) {
  auto role = [&](const std::string& name, const std::string& label, const std::string& more) {
    client.put(kClusterRole, R"({"metadata":{"name":")" + name + R"(","labels":{"to":")" + label + R"("}},)" + more + "}");
    settle();
  };
  auto rules = [&](const std::string& name) {
    return to_text(json::value(get_array(client.find(kClusterRole, {"", name})->json(), "rules")));
  };
  start();
  role(
      "sum", "total",
      R"("aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"sum"}},{"matchLabels":{"to":"other"}}]},"rules":null)");
  role("total", "", R"("aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"total"}}]},"rules":null)");
  EXPECT_EQ(rules("sum"), "[]");
  role("b", "sum", R"("rules":[{"verbs":["b"]},{"verbs":["x"]}])");
  role("a", "other", R"("rules":[{"verbs":["a"]},{"verbs":["x"]}])");
  role("c", "none", R"("rules":[{"verbs":["c"]}])");
  EXPECT_EQ(rules("sum"), R"([{"verbs":["a"]},{"verbs":["x"]},{"verbs":["b"]}])");
  EXPECT_EQ(rules("total"), rules("sum"));
  client.erase(kClusterRole, {"", "a"});
  settle();
  EXPECT_EQ(rules("total"), R"([{"verbs":["b"]},{"verbs":["x"]}])");
}

// With a comparison of each rule with each other one, and each selector read for each role, this would take minutes.
TEST_F(AccessTest, very_many_rules_and_selectors_of_roles_cost_little) {
  constexpr int kMany = 40'000;
  std::string selectors, rules;
  for (int i = 0; i < kMany; ++i) {
    const std::string number = std::to_string(i), comma = i ? "," : "";
    selectors += comma + R"({"matchLabels":{"to":"s)" + number + R"("}})";
    rules += comma + R"({"verbs":["v)" + number + R"("]})";
  }
  start();
  auto role = [&](const std::string& name, const std::string& more) {
    client.put(kClusterRole, R"({"metadata":{"name":")" + name + R"(","labels":{"to":"s39999"}},)" + more + "}");
  };
  role("many", R"("rules":[)" + rules + "]");
  role("again", R"("rules":[)" + rules + "]");
  for (int i = 0; i < 50; ++i) role("small-" + std::to_string(i), R"("rules":[{"verbs":["v0"]}])");
  role("sum", R"("aggregationRule":{"clusterRoleSelectors":[)" + selectors + R"(]},"rules":null)");
  settle();
  EXPECT_EQ(get_array(client.find(kClusterRole, {"", "sum"})->json(), "rules").size(), size_t(kMany));
}

TEST_F(AccessTest, secrets_of_accounts_are_filled_and_go_with_them) {
  start();
  client.put(kServiceAccount, R"({"metadata":{"name":"robot","namespace":"default"}})");
  client.put(
      kSecret,
      R"({"metadata":{"name":"t","namespace":"default","annotations":{"kubernetes.io/service-account.name":"robot"}},"type":"kubernetes.io/service-account-token"})");
  client.put(
      kSecret,
      R"({"metadata":{"name":"nobodys","namespace":"default","annotations":{"kubernetes.io/service-account.name":"absent"}},"type":"kubernetes.io/service-account-token"})");
  settle();
  ObjectPtr secret = client.find(kSecret, {"default", "t"});
  ASSERT_TRUE(secret);
  EXPECT_EQ(MUST(base64_decode(get_object(secret->json(), "data").at("token").as_string())), "robot in t");
  EXPECT_EQ(MUST(base64_decode(get_object(secret->json(), "data").at("ca.crt").as_string())), "CERT");
  EXPECT_EQ(MUST(base64_decode(get_object(secret->json(), "data").at("namespace").as_string())), "default");
  EXPECT_EQ(secret->annotation("kubernetes.io/service-account.uid"), client.find(kServiceAccount, {"default", "robot"})->uid());
  EXPECT_FALSE(client.find(kSecret, {"default", "nobodys"}));
  MUST(client.patch(kSecret, {"default", "t"}, PatchType::merge,
                    {{"data", {{"ca.crt", base64_encode("OLD")}, {"token", base64_encode("kept")}}}}));
  settle();
  secret = client.find(kSecret, {"default", "t"});
  EXPECT_EQ(MUST(base64_decode(get_object(secret->json(), "data").at("ca.crt").as_string())), "CERT")
      << "the authority is this machine's, always";
  EXPECT_EQ(MUST(base64_decode(get_object(secret->json(), "data").at("token").as_string())), "kept");
  client.erase(kServiceAccount, {"default", "robot"});
  settle();
  EXPECT_FALSE(client.find(kSecret, {"default", "t"}));
}

TEST_F(AccessTest, bootstrap_tokens_go_when_they_end) {
  start();
  auto put = [&](const std::string& name, const std::string& ns) {
    client.put(kSecret, R"({"metadata":{"name":")" + name + R"(","namespace":")" + ns +
                            R"("},"type":"bootstrap.kubernetes.io/token","data":{"expiration":")" +
                            base64_encode(format_time(clock.now() + std::chrono::minutes(5))) + "\"}}");
  };
  put("a", "kube-system");
  put("b", "default");
  client.put(kSecret,
             R"({"metadata":{"name":"endless","namespace":"kube-system"},"type":"bootstrap.kubernetes.io/token","data":{}})");
  client.put(
      kSecret,
      R"({"metadata":{"name":"odd","namespace":"kube-system"},"type":"bootstrap.kubernetes.io/token","data":{"expiration":"c29vbg=="}})");
  settle();
  EXPECT_FALSE(client.find(kSecret, {"kube-system", "odd"})) << "an end that cannot be read has come";
  pass(std::chrono::minutes(4));
  EXPECT_TRUE(client.find(kSecret, {"kube-system", "a"}));
  pass(std::chrono::minutes(2));
  EXPECT_FALSE(client.find(kSecret, {"kube-system", "a"}));
  EXPECT_TRUE(client.find(kSecret, {"default", "b"})) << "elsewhere it is no token";
  EXPECT_TRUE(client.find(kSecret, {"kube-system", "endless"}));
}

// A machine without a clock battery starts in 1970: the time that a controller waits for is decades away until the clock is set.
TEST_F(AccessTest, what_ends_by_the_wall_clock_ends_when_the_clock_is_set_past_it) {
  clock.set(MUST(parse_time("1970-01-01T00:01:00Z")));
  start();
  client.put(
      kSecret,
      R"({"metadata":{"name":"token","namespace":"kube-system"},"type":"bootstrap.kubernetes.io/token","data":{"expiration":")" +
          base64_encode("2026-01-01T00:00:00Z") + "\"}}");
  client.put(
      kCertificateSigningRequest,
      R"({"metadata":{"name":"request","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"signerName":"a.b/c"},"status":{}})");
  settle();
  EXPECT_TRUE(client.find(kSecret, {"kube-system", "token"}));
  EXPECT_TRUE(request("request"));
  clock.set(MUST(parse_time("2026-06-01T00:00:00Z")));
  manager->clock_was_set();
  settle();
  EXPECT_FALSE(client.find(kSecret, {"kube-system", "token"}));
  EXPECT_FALSE(request("request"));
}

}  // namespace
}  // namespace coracle::controller
