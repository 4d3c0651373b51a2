// SPDX-License-Identifier: Apache-2.0
// The number of pods that an autoscaler computes: from metrics, with missing metrics, windows and policies.
#include <gtest/gtest.h>

#include "daemon/controller/autoscaler/horizontal_autoscaler.h"

namespace coracle::controller {
namespace {

using namespace std::chrono_literals;

const WallTime kMeasuredAt = *parse_time("2026-01-02T03:04:05Z");
const WallTime kLongAgo = kMeasuredAt - 1h;

ObjectPtr scaled_pod(const std::string& name, const std::string& phase = "Running", bool ready = true,
                     WallTime started = kLongAgo, WallTime changed = kLongAgo, const std::string& metadata = "") {
  return MUST(Object::make(
      kPod,
      MUST(parse_json(R"({"metadata":{"name":")" + name + R"(","namespace":"default")" + metadata +
                      R"(},"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"100m"}}}]},"status":{"phase":")" +
                      phase + R"(","startTime":")" + format_time(started) + R"(","conditions":[{"type":"Ready","status":")" +
                      (ready ? "True" : "False") + R"(","lastTransitionTime":")" + format_time(changed) + R"("}]}})"))));
}

Target target(int64_t wanted, std::vector<ObjectPtr> pods) { return {wanted, wanted, std::move(pods), {}, kMeasuredAt}; }
PodMetrics used(const std::vector<int64_t>& amounts) {  // for the pods "0", "1", …; negative: not measured
  PodMetrics out;
  for (size_t i = 0; i < amounts.size(); ++i)
    if (amounts[i] >= 0) out[std::to_string(i)] = {amounts[i], kMeasuredAt, 15s};
  return out;
}
std::vector<ObjectPtr> scaled_pods(size_t count) {
  std::vector<ObjectPtr> out;
  for (size_t i = 0; i < count; ++i) out.push_back(scaled_pod(std::to_string(i)));
  return out;
}

TEST(AutoscalerProposal, follows_the_ratio_of_use_to_target) {
  struct Row {
    std::vector<int64_t> millicores;  // each pod requests 100
    int64_t percent, want, utilization;
  };
  for (const Row& row : {Row{{50, 50}, 50, 2, 50}, Row{{100, 100}, 50, 4, 100}, Row{{20, 20, 20, 20}, 50, 2, 20},
                         Row{{55, 55}, 50, 2, 55}, Row{{56, 56}, 50, 3, 56}, Row{{45, 45}, 50, 2, 45},
                         Row{{44, 44, 44}, 50, 3, 44}, Row{{0, 0, 0}, 50, 0, 0}, Row{{300, 0}, 50, 6, 150}}) {
    Target now = target(int64_t(row.millicores.size()), scaled_pods(row.millicores.size()));
    auto requests = MUST(pod_requests(now.pods, "cpu", ""));
    Proposal got = MUST(propose_by_utilization(now, used(row.millicores), requests, row.percent, true));
    EXPECT_EQ(got.replicas, row.want) << row.utilization;
    EXPECT_EQ(got.utilization, row.utilization);
  }
}

TEST(AutoscalerProposal, a_pod_without_metrics_keeps_the_number_from_changing_much) {
  // Measured: 30 of 100 with a target of 60, so one half. The unmeasured pod counts as using its whole request: (30+30+100)/300 =
  // 53 %, within the tolerance.
  Target now = target(3, scaled_pods(3));
  auto requests = MUST(pod_requests(now.pods, "cpu", ""));
  EXPECT_EQ(propose_by_utilization(now, used({30, 30, -1}), requests, 60, true)->replicas, 3);
  // With much lower use it scales down, but less than without the unmeasured pod: (5+5+100)/300 = 36 % of 60 %: 0.6 × 3.
  EXPECT_EQ(propose_by_utilization(now, used({5, 5, -1}), requests, 60, true)->replicas, 2);
  // For scaling up, the unmeasured pod counts as idle: (180+180+0)/300 = 120 % of 60 %: twice three.
  EXPECT_EQ(propose_by_utilization(now, used({180, 180, -1}), requests, 60, true)->replicas, 6);
  // Slightly above the target, but below it with the unmeasured pod counted: no change.
  EXPECT_EQ(propose_by_utilization(now, used({80, 80, -1}), requests, 60, true)->replicas, 3);
  // With a target above the request, an unmeasured pod counts as being at the target.
  EXPECT_EQ(propose_by_utilization(now, used({150, 150, -1}), requests, 200, true)->replicas, 3);
  EXPECT_EQ(propose_by_utilization(now, used({30, 30, -1}), requests, 60, true)->utilization, 30)
      << "what was seen is told, not what was guessed";
}

TEST(AutoscalerProposal, a_pod_that_is_not_ready_counts_as_idle_upwards_and_not_at_all_downwards) {
  Target now = target(3, {scaled_pod("0"), scaled_pod("1"), scaled_pod("2", "Pending", false)});
  auto requests = MUST(pod_requests(now.pods, "cpu", ""));
  EXPECT_EQ(propose_by_utilization(now, used({120, 120, -1}), requests, 60, true)->replicas, 4);  // 240/300 = 80 % of 60 %: × 3
  EXPECT_EQ(propose_by_utilization(now, used({20, 20, -1}), requests, 60, true)->replicas, 1);    // 20 % of 60 %: × 2
}

TEST(AutoscalerProposal, cpu_of_a_starting_pod_does_not_count_but_memory_does) {
  struct Row {
    const char* what;
    ObjectPtr pod;
    bool counts;
  };
  for (const Row& row :
       {Row{"ready for long", scaled_pod("0"), true},
        Row{"just started, ready for longer than the window",
            scaled_pod("0", "Running", true, kMeasuredAt - 60s, kMeasuredAt - 30s), true},
        Row{"just started, ready for less than the window", scaled_pod("0", "Running", true, kMeasuredAt - 60s, kMeasuredAt - 5s),
            false},
        Row{"just started, not ready", scaled_pod("0", "Running", false, kMeasuredAt - 60s, kMeasuredAt - 50s), false},
        Row{"old, never ready", scaled_pod("0", "Running", false, kMeasuredAt - 600s, kMeasuredAt - 590s), false},
        Row{"old, was ready once", scaled_pod("0", "Running", false, kMeasuredAt - 600s, kMeasuredAt - 60s), true},
        Row{"being deleted",
            scaled_pod("0", "Running", true, kLongAgo, kLongAgo, R"(,"deletionTimestamp":"2026-01-02T03:04:05Z")"), false},
        Row{"failed", scaled_pod("0", "Failed"), false}}) {
    Target now = target(1, {row.pod});
    auto cpu = propose_by_average(now, used({100}), 50, true);
    EXPECT_EQ(cpu.ok(), row.counts) << row.what;
    if (!cpu) {
      EXPECT_EQ(cpu.error().text(), "did not receive metrics for any ready pods");
    }
    bool alive = get_string(row.pod->json(), "status.phase") == "Running" && !row.pod->deleting();
    EXPECT_EQ(propose_by_average(now, used({100}), 50, false).ok(), alive) << row.what;
  }
}

TEST(AutoscalerProposal, what_cannot_be_computed_says_why) {
  EXPECT_EQ(propose_by_average(target(1, {}), used({1}), 1, true).error().text(),
            "no pods returned by selector while calculating replica count");
  ObjectPtr silent = MUST(
      Object::make(kPod, MUST(parse_json(R"({"metadata":{"name":"p","namespace":"d"},"spec":{"containers":[{"name":"c"}]}})"))));
  EXPECT_EQ(pod_requests({silent}, "cpu", "").error().text(), "missing request for cpu in container c of Pod p");
  EXPECT_EQ(pod_requests({silent}, "cpu", "x").error().text(), "container x not found in Pod p");
}

TEST(AutoscalerProposal, requests_are_those_of_what_runs_all_the_time) {
  ObjectPtr mixed = MUST(Object::make(kPod, MUST(parse_json(R"({"metadata":{"name":"p","namespace":"d"},"spec":{
      "initContainers":[{"name":"once","resources":{}},{"name":"side","restartPolicy":"Always","resources":{"requests":{"cpu":"50m"}}}],
      "containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}})"))));
  EXPECT_EQ(MUST(pod_requests({mixed}, "cpu", ""))["p"], 1050);
  EXPECT_EQ(MUST(pod_requests({mixed}, "cpu", "side"))["p"], 50);
  ObjectPtr whole = MUST(Object::make(kPod, MUST(parse_json(R"({"metadata":{"name":"p","namespace":"d"},"spec":{
      "resources":{"requests":{"cpu":"2"}},"containers":[{"name":"a"}]}})"))));
  EXPECT_EQ(MUST(pod_requests({whole}, "cpu", ""))["p"], 2000);
}

TEST(AutoscalerProposal, values_from_elsewhere_are_shared_by_ready_pods_or_divided) {
  Target now = target(2, scaled_pods(2));
  EXPECT_EQ(propose_by_value(now, 200, 100)->replicas, 4);
  EXPECT_EQ(propose_by_value(now, 105, 100)->replicas, 2);
  EXPECT_EQ(propose_by_value(target(0, {}), 250, 100)->replicas, 3) << "from nothing";
  EXPECT_EQ(propose_per_pod(now, 1000, 100).replicas, 10);
  EXPECT_EQ(propose_per_pod(now, 1000, 100).amount, 500);
  EXPECT_EQ(propose_per_pod(now, 210, 100).replicas, 2);
  EXPECT_EQ(propose_per_pod(target(0, {}), 250, 100).replicas, 3);
  EXPECT_EQ(propose_per_pod(target(0, {}), 0, 100).replicas, 0);
}

TEST(AutoscalerProposal, tolerance_is_the_behaviours) {
  json::value autoscaler =
      MUST(parse_json(R"({"spec":{"behavior":{"scaleUp":{"tolerance":"500m"},"scaleDown":{"tolerance":"0"}}}})"));
  Target now = target(2, scaled_pods(2));
  now.tolerance = tolerance_of(autoscaler);
  EXPECT_EQ(propose_by_average(now, used({140, 140}), 100, true)->replicas, 2);
  EXPECT_EQ(propose_by_average(now, used({151, 151}), 100, true)->replicas, 4);
  EXPECT_EQ(propose_by_average(now, used({49, 49}), 100, true)->replicas, 1);
  EXPECT_DOUBLE_EQ(tolerance_of(json::object()).up, 0.1);
}

// ---- limits of a change ----

struct Decide : testing::Test {
  AutoscalerPast past;
  std::optional<Behavior> behavior;
  SteadyTime now{1h};
  Limits limits{4, 1, 100};

  void behave(const std::string& text) { behavior = behavior_of(MUST(parse_json(R"({"spec":{"behavior":)" + text + "}}"))); }
  // "6 ReadyForNewScale DesiredWithinRange", "8 … ScaleUpLimit!"; the mark "!" means limited.
  std::string decide(int64_t proposed) {
    Decision got = decide_replicas(past, behavior, limits, proposed, now);
    EXPECT_EQ(got.able.status, "True");
    return std::to_string(got.replicas) + " " + got.able.reason + " " + got.limited.reason +
           (got.limited.status == "True" ? "!" : "");
  }
  void scale(int64_t to) {
    remember_change(past, limits.current, to, now);
    limits.current = to;
  }
};

TEST_F(Decide, without_a_behaviour_growth_is_a_doubling_or_to_four) {
  EXPECT_EQ(decide(6), "6 ReadyForNewScale DesiredWithinRange");
  EXPECT_EQ(decide(20), "8 ReadyForNewScale ScaleUpLimit!");
  limits = {1, 1, 100};
  EXPECT_EQ(decide(30), "4 ReadyForNewScale ScaleUpLimit!");
  limits = {4, 1, 5};
  EXPECT_EQ(decide(30), "5 ReadyForNewScale TooManyReplicas!");
}

TEST_F(Decide, without_a_behaviour_five_minutes_of_advice_keep_it_up) {
  limits = {5, 2, 10};
  EXPECT_EQ(decide(5), "5 ReadyForNewScale DesiredWithinRange");
  now += 15s;
  EXPECT_EQ(decide(1), "5 ScaleDownStabilized DesiredWithinRange");
  now += 285s;
  EXPECT_EQ(decide(1), "5 ScaleDownStabilized DesiredWithinRange");
  now += 15s;
  EXPECT_EQ(decide(1), "2 ReadyForNewScale TooFewReplicas!");
}

TEST_F(Decide, stabilises_both_ways_as_the_behaviour_says) {
  behave(R"({"scaleUp":{"stabilizationWindowSeconds":60,"policies":[{"type":"Percent","value":900,"periodSeconds":15}]},
             "scaleDown":{"stabilizationWindowSeconds":30,"policies":[{"type":"Percent","value":100,"periodSeconds":15}]}})");
  EXPECT_EQ(decide(4), "4 ReadyForNewScale DesiredWithinRange");
  now += 15s;
  EXPECT_EQ(decide(9), "4 ScaleUpStabilized DesiredWithinRange");
  now += 44s;
  EXPECT_EQ(decide(8), "4 ScaleUpStabilized DesiredWithinRange");
  now += 2s;
  EXPECT_EQ(decide(10), "8 ScaleUpStabilized DesiredWithinRange");
  scale(8);
  now += 29s;
  EXPECT_EQ(decide(2), "8 ScaleDownStabilized DesiredWithinRange");
  now += 31s;
  EXPECT_EQ(decide(3), "3 ReadyForNewScale DesiredWithinRange");
}

TEST_F(Decide, the_policy_that_changes_most_counts_unless_it_is_to_be_the_least) {
  const std::string both =
      R"("stabilizationWindowSeconds":0,"policies":[{"type":"Pods","value":3,"periodSeconds":60},{"type":"Percent","value":50,"periodSeconds":60}])";
  struct Row {
    const char* select;
    int64_t proposed;
    const char* want;
  };
  for (const Row& row :
       {Row{"Max", 100, "15 ReadyForNewScale ScaleUpLimit!"}, Row{"Min", 100, "13 ReadyForNewScale ScaleUpLimit!"},
        Row{"Disabled", 100, "10 ReadyForNewScale ScaleUpLimit!"}, Row{"Max", 1, "5 ReadyForNewScale ScaleDownLimit!"},
        Row{"Min", 1, "7 ReadyForNewScale ScaleDownLimit!"}, Row{"Disabled", 1, "10 ReadyForNewScale ScaleDownLimit!"}}) {
    limits = {10, 1, 200};
    past = {};
    std::string rules = "{" + both + R"(,"selectPolicy":")" + row.select + "\"}";
    behave(R"({"scaleUp":)" + rules + R"(,"scaleDown":)" + rules + "}");
    EXPECT_EQ(decide(row.proposed), row.want) << row.select << " " << row.proposed;
  }
}

TEST_F(Decide, a_policy_counts_what_was_changed_within_its_period) {
  behave(R"({"scaleUp":{"stabilizationWindowSeconds":0,"policies":[{"type":"Pods","value":4,"periodSeconds":60}]},
             "scaleDown":{"stabilizationWindowSeconds":0,"policies":[{"type":"Pods","value":1,"periodSeconds":60}]}})");
  EXPECT_EQ(decide(7), "7 ReadyForNewScale DesiredWithinRange");
  scale(7);
  now += 15s;
  EXPECT_EQ(decide(20), "8 ReadyForNewScale ScaleUpLimit!");
  scale(8);
  now += 15s;
  EXPECT_EQ(decide(20), "8 ReadyForNewScale ScaleUpLimit!");
  now += 31s;  // the first change is older than a minute, the second one is not
  EXPECT_EQ(decide(20), "11 ReadyForNewScale ScaleUpLimit!");
  now += 61s;
  EXPECT_EQ(decide(1), "7 ReadyForNewScale ScaleDownLimit!");
  scale(7);
  now += 30s;
  EXPECT_EQ(decide(1), "7 ReadyForNewScale ScaleDownLimit!");
}

TEST_F(Decide, bounds_hold_with_a_behaviour) {
  behave(R"({"scaleUp":{"stabilizationWindowSeconds":0,"policies":[{"type":"Pods","value":50,"periodSeconds":60}]},
             "scaleDown":{"stabilizationWindowSeconds":0,"policies":[{"type":"Percent","value":100,"periodSeconds":60}]}})");
  limits = {4, 2, 10};
  EXPECT_EQ(decide(40), "10 ReadyForNewScale TooManyReplicas!");
  EXPECT_EQ(decide(0), "2 ReadyForNewScale TooFewReplicas!");
}

TEST_F(Decide, the_past_is_bounded) {
  behave(R"({"scaleUp":{"stabilizationWindowSeconds":3600},"scaleDown":{"stabilizationWindowSeconds":3600}})");
  for (int i = 0; i < 2000; ++i) {
    (void)decide(4);
    remember_change(past, 4, 5, now);
    remember_change(past, 5, 4, now);
    now += kAutoscalerPeriod;
  }
  EXPECT_LE(past.advice.size(), 3600u / 15 + 1);
  EXPECT_LE(past.ups.size(), 1800u / 15 + 1);
  EXPECT_LE(past.downs.size(), 1800u / 15 + 1);
}

// ---- status ----

json::array measured(int64_t percent, const std::string& memory) {
  return MUST(parse_json(R"([{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":)" +
                         std::to_string(percent) +
                         R"(,"averageValue":"1m"}}},{"type":"Resource","resource":{"name":"memory","current":{"averageValue":")" +
                         memory + R"("}}}])"))
      .get_array();
}

TEST(AutoscalerStatus, noise_is_no_news) {
  const json::array specs =
      MUST(parse_json(R"([{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":100}}},
      {"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"100M"}}}])"))
          .get_array();
  EXPECT_TRUE(same_measurement(measured(10, "50M"), measured(12, "51M"), specs));
  EXPECT_FALSE(same_measurement(measured(10, "50M"), measured(13, "50M"), specs));
  EXPECT_FALSE(same_measurement(measured(10, "50M"), measured(10, "53M"), specs));
  EXPECT_FALSE(same_measurement({}, measured(10, "50M"), specs));
  EXPECT_TRUE(same_measurement({}, {}, specs));
  json::array failed = measured(10, "50M");
  failed[0] = json::object{{"type", ""}};
  EXPECT_FALSE(same_measurement(measured(10, "50M"), failed, specs));
  EXPECT_TRUE(same_measurement(failed, failed, specs));
}

}  // namespace
}  // namespace coracle::controller
