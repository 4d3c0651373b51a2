// SPDX-License-Identifier: Apache-2.0
// Eviction checks the pod's disruption budget, with Kubernetes' messages, and charges it.
#include "daemon/quota/disruption.h"
#include "store/schema/catalog.h"
#include "tests/daemon/registry/registry_fixture.h"

namespace coracle::registry {
namespace {

class EvictionTest : public testing::Test {
 protected:
  void put_pod(const std::string& name, const std::string& phase = "Running", bool ready = true) {
    fixture.make(
        kPod,
        R"({"metadata":{"name":")" + name +
            R"(","namespace":"default","labels":{"app":"web"}},"spec":{"nodeName":"n","terminationGracePeriodSeconds":30,"containers":[{"name":"c","image":"i"}]}})");
    MUST(fixture.try_merge(kPod, {"default", name},
                           R"({"status":{"phase":")" + phase + R"(","conditions":[{"type":"Ready","status":")" +
                               (ready ? "True" : "False") + R"("}]}})",
                           "status"));
  }
  void put_budget(const std::string& status, const std::string& spec = "", const std::string& name = "b") {
    const Kind& kind = schema::catalog().by_kind("policy/v1", "PodDisruptionBudget")->kind;
    fixture.make(kind, R"({"metadata":{"name":")" + name +
                           R"(","namespace":"default"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}})" +
                           spec + "}}");
    ObjectPtr made = MUST(fixture.registry().get(kind, {"default", name}));
    MUST(fixture.engine->write(
        {&kind, made->key(), RegistryFixture::with(*made, "status", RegistryFixture::parse(status)), std::nullopt},
        engine::Durability::durable));
  }
  Result<json::value> evict(const std::string& name, const std::string& options = "{}", const Writer& writer = {}) {
    return fixture.registry().create_subresource(
        kPod, {"default", name}, "eviction",
        RegistryFixture::parse(R"({"metadata":{"name":")" + name + R"("},"deleteOptions":)" + options + "}"), writer);
  }
  json::value budget() { return MUST(fixture.registry().get(kPodDisruptionBudget, {"default", "b"}))->json(); }
  bool going(const std::string& name) {
    auto pod = fixture.registry().get(kPod, {"default", name});
    return !pod || (*pod)->deleting();
  }
  RegistryFixture fixture;
};

constexpr const char* kOneAllowed =
    R"({"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2})";
constexpr const char* kNoneAllowed =
    R"({"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":2,"desiredHealthy":2,"expectedPods":2})";

TEST_F(EvictionTest, charges_the_budget_and_removes_the_pod) {
  put_pod("a"), put_pod("b");
  put_budget(kOneAllowed);
  MUST(evict("a"));
  EXPECT_TRUE(going("a"));
  EXPECT_EQ(get_int(budget(), "status.disruptionsAllowed", -1), 0);
  EXPECT_TRUE(get_object(budget(), "status.disruptedPods").contains("a"));
  EXPECT_EQ(get_string(*quota::allowed_condition(budget()), "reason"), "InsufficientPods");
  EXPECT_FALSE(evict("b")) << "the one disruption is spent";
}

TEST_F(EvictionTest, a_precondition_that_fails_charges_nothing) {
  put_pod("a");
  put_budget(kOneAllowed);
  for (const char* other : {R"({"preconditions":{"uid":"other"}})", R"({"preconditions":{"resourceVersion":"1"}})"}) {
    EXPECT_EQ(evict("a", other).error().code(), Code::conflict);
    EXPECT_EQ(get_int(budget(), "status.disruptionsAllowed", -1), 1) << other;
    EXPECT_FALSE(get_object(budget(), "status").contains("disruptedPods")) << other;
  }
  MUST(evict("a"));
  EXPECT_TRUE(going("a"));
}

// The first try was charged, and the deletion failed after that.
TEST_F(EvictionTest, a_pod_is_charged_once) {
  struct Row {
    const char* name;
    int minutes_ago, allowed, healthy;
    bool goes;
    int allowed_then;
    int made_ago = 10;
  };
  const Row rows[] = {
      {"just-now", 0, 1, 2, true, 1}, {"a-while-ago", 2, 1, 2, true, 1},    {"too-long-ago", 3, 1, 2, true, 0},
      {"the-last", 1, 0, 1, true, 0}, {"late-and-last", 3, 0, 1, false, 0}, {"others-failed", 1, 0, 0, false, 0},
      {"another", 0, 1, 2, true, 0},  {"made-since", 1, 0, 2, false, 0, 1},
  };
  put_budget(kOneAllowed);
  for (const Row& row : rows) {
    const WallTime now = fixture.clock.now();
    fixture.clock.set(now - std::chrono::minutes(row.made_ago));
    put_pod(row.name);
    fixture.clock.set(now);
    ObjectPtr made = MUST(fixture.registry().get(kPodDisruptionBudget, {"default", "b"}));
    json::value status = RegistryFixture::parse(kOneAllowed);
    make(status, "disruptionsAllowed") = row.allowed, make(status, "currentHealthy") = row.healthy;
    const std::string charged = row.name == std::string("another") ? "some" : row.name;
    make(status, "disruptedPods") =
        json::object{{charged, format_time(fixture.clock.now() - std::chrono::minutes(row.minutes_ago))}};
    MUST(fixture.engine->write({&kPodDisruptionBudget, made->key(), RegistryFixture::with(*made, "status", status), std::nullopt},
                               engine::Durability::durable));
    EXPECT_EQ(evict(row.name).ok(), row.goes) << row.name;
    EXPECT_EQ(going(row.name), row.goes) << row.name;
    EXPECT_EQ(get_int(budget(), "status.disruptionsAllowed", -1), row.allowed_then) << row.name;
    const json::value last = get_object(budget(), "status.disruptedPods").at(row.name);
    EXPECT_EQ(last.as_string() == format_time(fixture.clock.now()), row.goes || row.minutes_ago == 0) << row.name;
  }
}

// A Job's pod failure policy uses this to distinguish an eviction from a failure.
TEST_F(EvictionTest, the_pod_says_that_it_is_evicted) {
  put_pod("a");
  auto target = [&] {
    for (const json::value& condition :
         get_array(MUST(fixture.registry().get(kPod, {"default", "a"}))->json(), "status.conditions"))
      if (get_string(condition, "type") == "DisruptionTarget")
        return std::string(get_string(condition, "status")) + " " + std::string(get_string(condition, "reason")) + ": " +
               std::string(get_string(condition, "message"));
    return std::string();
  };
  MUST(evict("a", R"({"dryRun":["All"]})"));
  EXPECT_EQ(target(), "");
  EXPECT_EQ(evict("a", R"({"preconditions":{"uid":"another"}})").error().code(), Code::conflict);
  EXPECT_EQ(target(), "");
  MUST(evict("a"));
  EXPECT_TRUE(going("a"));
  EXPECT_EQ(target(), "True EvictionByEvictionAPI: Eviction API: evicting");
}

TEST_F(EvictionTest, refuses_with_the_budgets_numbers) {
  put_pod("a");
  put_budget(kNoneAllowed);
  auto refused = evict("a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::too_many_requests);
  EXPECT_EQ(refused.error().text(), "Cannot evict pod as it would violate the pod's disruption budget.");
  EXPECT_EQ(refused.error().details()->causes[0],
            (Cause{"DisruptionBudget", "The disruption budget b needs 2 healthy pods and has 2 currently", ""}));
  EXPECT_EQ(refused.error().details()->retry_after_seconds, 0);
  EXPECT_FALSE(going("a"));
}

TEST_F(EvictionTest, why_a_budget_allows_nothing) {
  struct Row {
    const char *status, *says;
    int retry_after;
  };
  const Row rows[] = {
      {R"({"observedGeneration":0,"disruptionsAllowed":5})", "The disruption budget b is still being processed by the server.",
       10},
      {R"({"observedGeneration":1,"disruptionsAllowed":0,"conditions":[{"type":"DisruptionAllowed","status":"False","reason":"SyncFailed","message":"no scale"}]})",
       "The disruption budget b does not allow evicting pods currently because it failed sync: no scale", 0},
      {R"({"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":5,"desiredHealthy":2,"conditions":[{"type":"DisruptionAllowed","status":"False","reason":"Held","message":"not now"}]})",
       "The disruption budget b does not allow evicting pods currently (Held): not now", 0},
      {R"({"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":5,"desiredHealthy":2})",
       "The disruption budget b does not allow evicting pods currently", 0},
  };
  for (const Row& row : rows) {
    const Kind& kind = schema::catalog().by_kind("policy/v1", "PodDisruptionBudget")->kind;
    if (!fixture.registry().get(kPod, {"default", "a"})) put_pod("a"), put_budget(row.status);
    ObjectPtr made = MUST(fixture.registry().get(kind, {"default", "b"}));
    json::value body = RegistryFixture::with(*made, "status", RegistryFixture::parse(row.status));
    make(body, "metadata.generation") = 1;
    MUST(fixture.engine->write({&kind, made->key(), std::move(body), std::nullopt}, engine::Durability::durable));
    auto refused = evict("a");
    ASSERT_FALSE(refused) << row.says;
    EXPECT_EQ(refused.error().details()->causes[0].message, row.says);
    EXPECT_EQ(refused.error().details()->retry_after_seconds, row.retry_after) << row.says;
  }
}

TEST_F(EvictionTest, who_serves_nobody_may_go) {
  put_budget(kNoneAllowed);
  put_pod("waiting", "Pending", false), put_pod("done", "Succeeded", false), put_pod("broken", "Failed", false);
  for (const char* name : {"waiting", "done", "broken"}) {
    EXPECT_TRUE(evict(name)) << name;
    EXPECT_TRUE(going(name)) << name;
  }
  EXPECT_FALSE(get_object(budget(), "status").contains("disruptedPods")) << "nothing is charged";
}

TEST_F(EvictionTest, an_unhealthy_pod_by_policy) {
  put_pod("sick", "Running", false), put_pod("ill", "Running", false);
  put_budget(R"({"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":2,"expectedPods":2})");
  EXPECT_FALSE(evict("sick")) << "those who are healthy are too few";
  put_pod("tough", "Running", true);
  const Kind& kind = schema::catalog().by_kind("policy/v1", "PodDisruptionBudget")->kind;
  MUST(fixture.try_merge(kind, {"default", "b"}, R"({"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}})"));
  EXPECT_TRUE(evict("sick"));
  MUST(fixture.try_merge(kind, {"default", "b"}, R"({"spec":{"unhealthyPodEvictionPolicy":"IfHealthyBudget"}})"));
  EXPECT_FALSE(evict("ill"));
  ObjectPtr made = MUST(fixture.registry().get(kind, {"default", "b"}));
  MUST(fixture.engine->write({&kind, made->key(), RegistryFixture::with(*made, "status.currentHealthy", 2), std::nullopt},
                             engine::Durability::durable));
  EXPECT_TRUE(evict("ill")) << "the budget is kept without it";
}

TEST_F(EvictionTest, two_budgets_are_one_too_many) {
  put_pod("a");
  put_budget(kOneAllowed), put_budget(kOneAllowed, "", "second");
  auto refused = evict("a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::internal);
  EXPECT_EQ(refused.error().text(),
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
}

TEST_F(EvictionTest, a_trial_changes_nothing) {
  put_pod("a");
  put_budget(kOneAllowed);
  EXPECT_TRUE(evict("a", R"({"dryRun":["All"]})"));
  Writer trial;
  trial.dry_run = true;
  EXPECT_TRUE(evict("a", "{}", trial));
  EXPECT_FALSE(going("a"));
  EXPECT_EQ(get_int(budget(), "status.disruptionsAllowed", -1), 1);
  EXPECT_EQ(evict("a", R"({"preconditions":{"uid":"other"}})").error().code(), Code::conflict);
}

TEST_F(EvictionTest, without_a_budget_it_is_a_deletion) {
  put_pod("a");
  EXPECT_TRUE(evict("a", R"({"gracePeriodSeconds":7})"));
  EXPECT_EQ(get_int(MUST(fixture.registry().get(kPod, {"default", "a"}))->json(), "metadata.deletionGracePeriodSeconds"), 7);
  EXPECT_EQ(evict("nobody").error().code(), Code::not_found);
}

}  // namespace
}  // namespace coracle::registry
