// SPDX-License-Identifier: Apache-2.0
// Autoscalers over a fake API: when they read metrics, what they write to the scale and the status, and their memory.
#include "daemon/controller/autoscaler/horizontal_autoscaler.h"

#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

using namespace std::chrono_literals;

struct AutoscalerTest : Bench {
  const Key key{"default", "web"};
  int generation = 0;

  void deploy(int replicas, const std::string& name = "web",
              const std::string& request = R"("requests":{"cpu":"100m","memory":"100M"})") {
    client.put(kDeployment, R"({"metadata":{"name":")" + name + R"(","namespace":"default","uid":"dep-)" + name +
                                R"("},"spec":{"replicas":)" + std::to_string(replicas) +
                                R"(,"selector":{"matchLabels":{"app":")" + name +
                                R"("}},"template":{"metadata":{"labels":{"app":")" + name +
                                R"("}},"spec":{"containers":[{"name":"c","image":"i","resources":{)" + request + "}}]}}}}");
    settle();
  }
  void autoscale(const std::string& metrics = kCpu, const std::string& more = R"(,"minReplicas":1,"maxReplicas":10)",
                 const std::string& name = "web",
                 const std::string& target = R"("apiVersion":"apps/v1","kind":"Deployment","name":"web")") {
    client.put(kHorizontalPodAutoscaler, R"({"metadata":{"name":")" + name + R"(","namespace":"default","uid":"hpa-)" + name +
                                             R"("},"spec":{"scaleTargetRef":{)" + target + R"(},"metrics":[)" + metrics + "]" +
                                             more + "}}");
    settle();
  }
  // All pods run and have been ready for long; each uses the given amounts.
  void use(const std::string& cpu, const std::string& memory = "10M") {
    for (const ObjectPtr& pod : client.all(kPod)) {
      if (pod->deleting()) {
        client.erase(kPod, pod->key());
        client.erase(kPodMetrics, pod->key());
        continue;
      }
      if (!is_ready(view::Pod(*pod))) {
        std::string then = format_time(clock.now() - 1h);
        client.set_status(kPod, pod->key(),
                          R"({"phase":"Running","startTime":")" + then +
                              R"(","conditions":[{"type":"Ready","status":"True","lastTransitionTime":")" + then + R"("}]})");
      }
      client.put(kPodMetrics, R"({"metadata":{"name":")" + pod->name() + R"(","namespace":"default"},"timestamp":")" +
                                  format_time(clock.now()) + R"(","window":"15s","containers":[{"name":"c","usage":{"cpu":")" +
                                  cpu + R"(","memory":")" + memory + R"("}}]})");
    }
    settle();
  }
  void tick() { pass(15s); }
  json::value hpa(const std::string& name = "web") { return client.find(kHorizontalPodAutoscaler, {"default", name})->json(); }
  int64_t status(const char* name) { return get_int(hpa(), std::string("status.") + name); }
  int64_t replicas(const std::string& name = "web") {
    return get_int(client.find(kDeployment, {"default", name})->json(), "spec.replicas");
  }
  std::string condition(std::string_view type, const std::string& name = "web") {
    json::value body = hpa(name);
    const json::value* found = find_condition(get_array(body, "status.conditions"), type);
    return found ? std::string(get_string(*found, "status")) + "/" + std::string(get_string(*found, "reason")) : "";
  }
  std::string message(std::string_view type) {
    json::value body = hpa();
    const json::value* found = find_condition(get_array(body, "status.conditions"), type);
    return found ? std::string(get_string(*found, "message")) : "";
  }
  size_t calls(std::string_view beginning) {
    auto all = client.calls();
    return size_t(std::count_if(all.begin(), all.end(), [&](const std::string& call) { return call.starts_with(beginning); }));
  }

  static inline const std::string kCpu =
      R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}})";
  static inline const std::string kMemory =
      R"({"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"20M"}}})";
};

TEST_F(AutoscalerTest, scales_a_busy_deployment_up_and_says_so) {
  start();
  deploy(2);
  use("120m");
  autoscale();
  tick();
  EXPECT_EQ(replicas(), 4);  // 120 % of 50 % gives five; the limit is twice the size
  EXPECT_EQ(status("currentReplicas"), 2);
  EXPECT_EQ(status("desiredReplicas"), 4);
  EXPECT_EQ(condition("AbleToScale"), "True/SucceededRescale");
  EXPECT_EQ(condition("ScalingActive"), "True/ValidMetricFound");
  EXPECT_EQ(condition("ScalingLimited"), "True/ScaleUpLimit");
  EXPECT_EQ(message("ScalingActive"),
            "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)");
  EXPECT_EQ(get_string(hpa(), "status.lastScaleTime"), format_time(clock.now()));
  EXPECT_TRUE(
      events.has("SuccessfulRescale", "New size: 4; reason: cpu resource utilization (percentage of request) above target"));
  json::value body = hpa();
  EXPECT_EQ(to_text(*find(body, "status.currentMetrics")),
            R"([{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":120,"averageValue":"120m"}}}])");
  use("60m");
  tick();
  EXPECT_EQ(replicas(), 5);
}

TEST_F(AutoscalerTest, scales_down_when_five_minutes_of_advice_agree) {
  start();
  deploy(4);
  use("50m");
  autoscale();
  tick();
  EXPECT_EQ(replicas(), 4);
  EXPECT_EQ(condition("AbleToScale"), "True/ReadyForNewScale");
  for (int i = 0; i < 19; ++i) {
    use("5m");
    tick();
    EXPECT_EQ(replicas(), 4) << i;
  }
  EXPECT_EQ(condition("AbleToScale"), "True/ScaleDownStabilized");
  use("5m");
  tick();
  use("5m");
  tick();
  EXPECT_EQ(replicas(), 1);
  EXPECT_TRUE(events.has("SuccessfulRescale", "New size: 1; reason: All metrics below target"));
}

TEST_F(AutoscalerTest, whose_target_has_no_pods_or_is_not_there_is_written_once) {
  for (bool there : {true, false}) {
    SCOPED_TRACE(there);
    if (there) start(), deploy(0);
    else client.erase(kDeployment, key);
    autoscale();
    tick();
    json::value body = hpa();  // as the API stores it
    make(body, "status").get_object().erase("currentReplicas");
    client.put(kHorizontalPodAutoscaler, to_text(body));
    client.clear_calls();
    tick();
    EXPECT_EQ(calls("update horizontalpodautoscalers"), 0u);
  }
}

TEST_F(AutoscalerTest, a_short_window_scales_down_soon) {
  start();
  deploy(4);
  use("5m");
  autoscale(
      kCpu,
      R"(,"minReplicas":2,"maxReplicas":10,"behavior":{"scaleDown":{"stabilizationWindowSeconds":0,"policies":[{"type":"Pods","value":1,"periodSeconds":15}]}})");
  tick();
  EXPECT_EQ(replicas(), 3);
  EXPECT_EQ(condition("ScalingLimited"), "True/ScaleDownLimit");
  use("5m");
  tick();
  use("5m");
  tick();
  EXPECT_EQ(replicas(), 2);
}

TEST_F(AutoscalerTest, bounds_hold_before_any_metric) {
  start();
  deploy(12);
  autoscale();
  tick();
  EXPECT_EQ(replicas(), 10);
  EXPECT_TRUE(events.has("SuccessfulRescale", "New size: 10; reason: Current number of replicas above Spec.MaxReplicas"));
  autoscale(kCpu, R"(,"minReplicas":11,"maxReplicas":20)");
  tick();
  EXPECT_EQ(replicas(), 11);
  EXPECT_TRUE(events.has("SuccessfulRescale", "New size: 11; reason: Current number of replicas below Spec.MinReplicas"));
}

TEST_F(AutoscalerTest, nothing_is_scaled_that_was_scaled_to_nothing) {
  start();
  deploy(0);
  autoscale();
  client.clear_calls();
  tick();
  EXPECT_EQ(replicas(), 0);
  EXPECT_EQ(condition("ScalingActive"), "False/ScalingDisabled");
  EXPECT_EQ(calls("list pods.metrics"), 0u) << "there is nothing to be measured";
}

TEST_F(AutoscalerTest, says_why_when_the_target_is_not_there) {
  struct Row {
    const char *target, *why;
  };
  start();
  autoscale();
  tick();
  EXPECT_EQ(condition("AbleToScale"), "False/FailedGetScale");
  EXPECT_TRUE(events.has("FailedGetScale", "not found"));
  for (const Row& row :
       {Row{R"("apiVersion":"example.com/v1","kind":"Boat","name":"x")", "no matches for kind \"Boat\" in group \"example.com\""},
        Row{R"("apiVersion":"a/b/c","kind":"Deployment","name":"x")", "unexpected GroupVersion string: a/b/c"}}) {
    autoscale(kCpu, R"(,"maxReplicas":3)", "web", row.target);
    tick();
    EXPECT_EQ(message("AbleToScale"), std::string("the HPA controller was unable to get the target's current scale: ") + row.why);
  }
}

TEST_F(AutoscalerTest, says_why_when_nothing_is_measured) {
  start();
  deploy(2);
  autoscale();
  tick();
  EXPECT_EQ(replicas(), 2);
  EXPECT_EQ(condition("ScalingActive"), "False/FailedGetResourceMetric");
  const std::string why =
      "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API";
  EXPECT_EQ(message("ScalingActive"), "the HPA was unable to compute the replica count: " + why);
  EXPECT_TRUE(events.has("FailedGetResourceMetric", why));
  EXPECT_TRUE(
      events.has("FailedComputeMetricsReplicas",
                 "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: " + why));
  (void)events.take();
  tick();
  EXPECT_TRUE(events.take().empty()) << "it was told";
  pass(31min);
  EXPECT_TRUE(events.has("FailedGetResourceMetric", why)) << "and is told again";
  deploy(1, "web", "");
  use("10m");
  tick();
  EXPECT_NE(message("ScalingActive").find("missing request for cpu in container c of Pod web-"), std::string::npos);
}

TEST_F(AutoscalerTest, the_metric_that_asks_for_most_counts_and_one_that_fails_only_keeps_it_from_shrinking) {
  start();
  deploy(2);
  use("50m", "45M");
  autoscale(kCpu + "," + kMemory);
  tick();
  EXPECT_EQ(replicas(), 4);
  EXPECT_EQ(condition("ScalingActive"), "True/ValidMetricFound");
  EXPECT_NE(message("ScalingActive").find("from memory resource"), std::string::npos);
  const std::string missing =
      R"({"type":"External","external":{"metric":{"name":"queue"},"target":{"type":"AverageValue","averageValue":"1"}}})";
  use("50m", "5M");
  const std::string at_once =
      R"({"stabilizationWindowSeconds":0,"policies":[{"type":"Percent","value":100,"periodSeconds":15}]})";
  autoscale(kMemory + "," + missing,
            R"(,"minReplicas":1,"maxReplicas":10,"behavior":{"scaleUp":)" + at_once + R"(,"scaleDown":)" + at_once + "}");
  tick();
  EXPECT_EQ(replicas(), 4);
  EXPECT_EQ(condition("ScalingActive"), "False/FailedGetExternalMetric");
  EXPECT_EQ(
      message("ScalingActive"),
      "the HPA was unable to compute the replica count: unable to get external metric default/queue/nil: unable to fetch metrics "
      "from external metrics API: the server could not find the requested resource (get queue.external.metrics.k8s.io)");
  use("50m", "45M");
  tick();
  EXPECT_EQ(replicas(), 8) << "upwards one is enough";
}

TEST_F(AutoscalerTest, one_container_can_be_what_counts) {
  start();
  deploy(1);
  use("90m");
  autoscale(
      R"({"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","target":{"type":"Utilization","averageUtilization":30}}})");
  tick();
  EXPECT_EQ(replicas(), 3);
  autoscale(
      R"({"type":"ContainerResource","containerResource":{"name":"cpu","container":"x","target":{"type":"Utilization","averageUtilization":30}}})");
  tick();
  EXPECT_EQ(condition("ScalingActive"), "False/FailedGetContainerResourceMetric");
  EXPECT_NE(message("ScalingActive").find("container x not present in metrics for pod default/web-"), std::string::npos);
}

TEST_F(AutoscalerTest, metrics_of_other_apis_are_asked_for_through_the_client) {
  start();
  deploy(2);
  use("1m");
  const std::string pods =
      R"({"type":"Pods","pods":{"metric":{"name":"hits","selector":{"matchLabels":{"verb":"get"}}},"target":{"type":"AverageValue","averageValue":"10"}}})";
  autoscale(pods);
  tick();
  EXPECT_EQ(condition("ScalingActive"), "False/FailedGetPodsMetric");
  EXPECT_EQ(message("ScalingActive"),
            "the HPA was unable to compute the replica count: unable to get metric hits: unable to fetch metrics from custom "
            "metrics API: no custom metrics API (custom.metrics.k8s.io) registered");
  std::string items;
  for (const ObjectPtr& pod : client.all(kPod))
    items += (items.empty() ? "" : ",") + (R"({"describedObject":{"kind":"Pod","name":")" + pod->name() +
                                           R"("},"timestamp":"2026-01-01T00:00:00Z","value":"15"})");
  client.answer_read("pods.custom.metrics.k8s.io default/*/hits labelSelector=app=web metricLabelSelector=verb=get",
                     R"({"items":[)" + items + "]}");
  tick();
  EXPECT_EQ(replicas(), 3);
  json::value body = hpa();
  EXPECT_EQ(
      to_text(*find(body, "status.currentMetrics")),
      R"([{"type":"Pods","pods":{"metric":{"name":"hits","selector":{"matchLabels":{"verb":"get"}}},"current":{"averageValue":"15"}}}])");

  autoscale(
      R"({"type":"Object","object":{"describedObject":{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","name":"front"},"metric":{"name":"hits"},
      "target":{"type":"Value","value":"100"}}})");
  client.answer_read("ingresses.networking.k8s.io.custom.metrics.k8s.io default/front/hits", R"({"items":[{"value":"150"}]})");
  use("1m");
  tick();
  EXPECT_EQ(replicas(), 5);  // one and a half times three
  EXPECT_NE(message("ScalingActive").find("from Ingress metric hits"), std::string::npos);

  autoscale(R"({"type":"External","external":{"metric":{"name":"queue"},"target":{"type":"AverageValue","averageValue":"10"}}})");
  client.answer_read("queue.external.metrics.k8s.io default/", R"({"items":[{"value":"40"},{"value":"40"}]})");
  use("1m");
  tick();
  EXPECT_EQ(replicas(), 8);
  EXPECT_NE(message("ScalingActive").find("from external metric queue(nil)"), std::string::npos);
}

TEST_F(AutoscalerTest, one_measurement_serves_all_and_what_does_not_change_is_not_written) {
  start();
  for (int i = 0; i < 20; ++i) {
    std::string name = "w" + std::to_string(i);
    deploy(1, name);
    autoscale(kCpu, R"(,"minReplicas":1,"maxReplicas":10)", name,
              R"("apiVersion":"apps/v1","kind":"Deployment","name":")" + name + "\"");
  }
  use("10m");
  tick();
  use("10m");
  client.clear_calls();
  tick();
  EXPECT_EQ(calls("list pods.metrics.k8s.io"), 1u);
  EXPECT_EQ(calls("read deployments.apps"), 20u);
  use("10500u");  // within the tolerance
  client.clear_calls();
  tick();
  EXPECT_EQ(calls("update"), 0u);
  EXPECT_EQ(calls("patch"), 0u);
  use("14m");
  client.clear_calls();
  tick();
  EXPECT_EQ(calls("update horizontalpodautoscalers.autoscaling/status"), 20u);
}

TEST_F(AutoscalerTest, only_the_pods_of_targets_are_measured) {
  start();
  deploy(2);
  deploy(3, "other");  // no autoscaler refers to it
  autoscale();
  use("10m");
  tick();
  use("10m");
  client.clear_calls();
  tick();
  auto names = [&] {
    std::vector<std::string> out;
    for (const Key& key : client.last_only()) out.push_back(key.name.substr(0, key.name.find('-')));
    return out;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"web", "web"}));
  EXPECT_EQ(calls("list pods.metrics.k8s.io"), 1u);

  autoscale(kCpu, R"(,"minReplicas":1,"maxReplicas":10)", "other",
            R"("apiVersion":"apps/v1","kind":"Deployment","name":"other")");
  for (int ticks = 0; ticks < 2; ++ticks) {
    use("10m");
    client.clear_calls();
    tick();
    EXPECT_EQ(calls("list pods.metrics.k8s.io"), 1u);
    EXPECT_EQ(condition("ScalingActive", "other"), "True/ValidMetricFound");
  }
  EXPECT_EQ(names().size(), client.all(kPod).size());
}

TEST_F(AutoscalerTest, a_target_whose_selector_changes_is_measured_all_the_same) {
  start();
  deploy(1);
  deploy(1, "other");
  autoscale();
  use("10m");
  tick();
  use("10m");
  tick();
  autoscale(kCpu, R"(,"minReplicas":1,"maxReplicas":10)", "web", R"("apiVersion":"apps/v1","kind":"Deployment","name":"other")");
  use("10m");
  tick();
  EXPECT_EQ(condition("ScalingActive"), "True/ValidMetricFound");
}

TEST_F(AutoscalerTest, without_autoscalers_nothing_ticks) {
  start();
  deploy(1);
  autoscale();
  tick();
  client.erase(kHorizontalPodAutoscaler, key);
  settle();
  tick();
  client.clear_calls();
  pass(60s);
  EXPECT_TRUE(client.calls().empty()) << client.calls()[0];
}

TEST_F(AutoscalerTest, two_that_select_the_same_pods_do_nothing) {
  start();
  deploy(2);
  use("200m");
  autoscale(kCpu, R"(,"minReplicas":2,"maxReplicas":10)", "a");
  autoscale(kCpu, R"(,"minReplicas":2,"maxReplicas":10)", "b");
  pass(30s);
  EXPECT_EQ(condition("ScalingActive", "b"), "False/AmbiguousSelector");
  EXPECT_EQ(condition("ScalingActive", "a"), "False/AmbiguousSelector");
  EXPECT_TRUE(
      events.has("AmbiguousSelector", "pods by selector app=web are controlled by multiple HPAs: [{a default} {b default}]"));
}

// The pods index their autoscalers: autoscalers are not compared with each other over all pods.
TEST_F(AutoscalerTest, very_many_of_very_many_pods_are_told_apart) {
  start();
  constexpr int kMany = 60, kPods = 200;
  deploy(1);
  deploy(1, "none");
  for (int i = 0; i < kPods; ++i) {
    client.put(kPod, R"({"metadata":{"name":"p)" + std::to_string(i) +
                         R"(","namespace":"default","labels":{"app":"web"}},"status":{"phase":"Pending"}})");
    if (i % 100 == 0) settle();
  }
  const std::string range = R"(,"minReplicas":1,"maxReplicas":10)";
  for (int i = 0; i < kMany; ++i) {
    std::string number = std::to_string(1000 + i);
    autoscale(kCpu, range, "a" + number, R"("apiVersion":"apps/v1","kind":"Deployment","name":"none")");
    autoscale(kCpu, range, "z" + number);
  }
  for (int i = 0; i < 4; ++i) tick();
  EXPECT_EQ(condition("ScalingActive", "z1000"), "False/AmbiguousSelector");
  EXPECT_EQ(condition("ScalingActive", "z1059"), "False/AmbiguousSelector");
  EXPECT_TRUE(events.has("AmbiguousSelector", "multiple HPAs: [{z1000 default} {z1001 default} {z1002 default} {z1003 default}"));
  EXPECT_TRUE(events.has("AmbiguousSelector", "{z1009 default}]"));
}

TEST_F(AutoscalerTest, a_change_of_the_targets_selector_tells_them_apart_again) {
  start();
  deploy(2);
  deploy(2, "other");
  use("50m");
  autoscale(kCpu, R"(,"minReplicas":2,"maxReplicas":10)", "a");
  autoscale(kCpu, R"(,"minReplicas":2,"maxReplicas":10)", "b");
  pass(30s);
  ASSERT_EQ(condition("ScalingActive", "a"), "False/AmbiguousSelector");
  autoscale(kCpu, R"(,"minReplicas":2,"maxReplicas":10)", "a", R"("apiVersion":"apps/v1","kind":"Deployment","name":"other")");
  use("50m");
  tick();
  EXPECT_EQ(condition("ScalingActive", "a"), "True/ValidMetricFound");
  EXPECT_EQ(condition("ScalingActive", "b"), "True/ValidMetricFound");
}

TEST_F(AutoscalerTest, metrics_beyond_a_hundred_are_told_and_keep_the_number_from_growing_smaller) {
  start();
  deploy(4);
  use("10m");
  std::string metrics = kCpu;
  for (int i = 1; i < 101; ++i) metrics += "," + kCpu;
  autoscale(metrics);
  tick();
  EXPECT_EQ(replicas(), 4);
  EXPECT_EQ(condition("ScalingActive"), "False/InvalidMetricSourceType");
  EXPECT_TRUE(events.has("InvalidMetricSourceType", "metrics beyond 100 are not looked at"));
}

TEST_F(AutoscalerTest, a_scale_that_cannot_be_written_is_told) {
  start();
  deploy(2);
  use("100m");
  autoscale();
  client.fail(1, Error(Code::conflict, "it has changed"), "update deployments.apps/scale");
  tick();
  EXPECT_EQ(condition("AbleToScale"), "False/FailedUpdateScale");
  EXPECT_TRUE(
      events.has("FailedRescale",
                 "New size: 4; reason: cpu resource utilization (percentage of request) above target; error: it has changed"));
  EXPECT_EQ(replicas(), 2);
  tick();
  EXPECT_EQ(replicas(), 4);
}

TEST_F(AutoscalerTest, tells_which_generation_it_saw_where_generations_are_counted) {
  start();
  deploy(1);
  use("50m");
  client.put(kHorizontalPodAutoscaler,
             R"({"metadata":{"name":"web","namespace":"default","uid":"h","generation":7},"spec":{"maxReplicas":3,"metrics":[)" +
                 kCpu + R"(],"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}})");
  settle();
  tick();
  EXPECT_EQ(status("observedGeneration"), 7);
}

}  // namespace
}  // namespace coracle::controller
