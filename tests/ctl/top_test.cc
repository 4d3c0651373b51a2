// SPDX-License-Identifier: Apache-2.0
// The output of top for given measurements.
#include "ctl/top.h"

#include <gtest/gtest.h>

#include "runtime/base/clock.h"
#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const json::value kMeasuredPods = *parse_json(R"({"items":[
  {"metadata":{"name":"web","namespace":"shop"},"containers":[{"name":"a","usage":{"cpu":"1500u","memory":"1Mi"}},
                                                               {"name":"b","usage":{"cpu":"20m","memory":"2Mi"}}]},
  {"metadata":{"name":"db","namespace":"shop"},"containers":[{"name":"db","usage":{"cpu":"3m","memory":"300Mi"}}]}]})");

TEST(Top, shows_pods_as_kubectl_does) {
  EXPECT_EQ(print_pod_usages(pod_usages(kMeasuredPods), {}),
            "NAME   CPU(cores)   MEMORY(bytes)\n"
            "db     3m           300Mi\n"
            "web    22m          3Mi\n");
  EXPECT_EQ(print_pod_usages(pod_usages(kMeasuredPods), {.all_namespaces = true, .headers = false, .sort_by = "cpu"}),
            "shop   web   22m   3Mi\n"
            "shop   db    3m    300Mi\n");
}

TEST(Top, shows_containers_and_the_sum) {
  EXPECT_EQ(print_pod_usages(pod_usages(kMeasuredPods), {.containers = true, .sum = true, .sort_by = "memory"}),
            "POD   NAME   CPU(cores)   MEMORY(bytes)\n"
            "db    db     3m           300Mi\n"
            "web   b      20m          2Mi\n"
            "web   a      2m           1Mi\n"
            "             ________     ________\n"
            "             25m          303Mi\n");
}

TEST(Top, shows_nodes_as_a_part_of_what_they_can_give) {
  json::value metrics = MUST(parse_json(R"({"items":[{"metadata":{"name":"edge"},"usage":{"cpu":"500m","memory":"256Mi"}}]})"));
  json::value nodes = MUST(parse_json(R"({"items":[
      {"metadata":{"name":"edge"},"status":{"capacity":{"cpu":"4","memory":"1Gi"},"allocatable":{"cpu":"2","memory":"512Mi"}}},
      {"metadata":{"name":"silent"},"status":{"allocatable":{"cpu":"2","memory":"512Mi"}}}]})"));
  EXPECT_EQ(print_node_usages(metrics, nodes, {}),
            "NAME     CPU(cores)   CPU(%)      MEMORY(bytes)   MEMORY(%)\n"
            "edge     500m         25%         256Mi           50%\n"
            "silent   <unknown>    <unknown>   <unknown>       <unknown>\n");
  EXPECT_EQ(print_node_usages(metrics.at("items").at(0), nodes.at("items").at(0), {.show_capacity = true, .headers = false}),
            "edge   500m   12%   256Mi   25%\n");
}

TEST(Top, shows_how_full_volumes_are) {
  auto usages = volume_usages(
      "# TYPE kubelet_volume_stats_used_bytes gauge\n"
      "kubelet_volume_stats_capacity_bytes{namespace=\"default\",persistentvolumeclaim=\"data\"} 1073741824\n"
      "kubelet_volume_stats_capacity_bytes{namespace=\"shop\",persistentvolumeclaim=\"big\"} 1.099511627776e+13\n"
      "kubelet_volume_stats_used_bytes{namespace=\"default\",persistentvolumeclaim=\"data\"} 268435456\n"
      "kubelet_volume_stats_available_bytes{namespace=\"default\",persistentvolumeclaim=\"data\"} 805306368\n"
      "kubelet_volume_stats_inodes{namespace=\"default\",persistentvolumeclaim=\"data\"} 1000\n"
      "kubelet_volume_stats_inodes_used{namespace=\"default\",persistentvolumeclaim=\"data\"} 30\n"
      "workqueue_depth{name=\"x\"} 3\n");
  EXPECT_EQ(print_volume_usages(usages, {}),
            "NAME   CAPACITY   USED    AVAILABLE   USED(%)   INODES(%)\n"
            "data   1024Mi     256Mi   768Mi       25%       3%\n"
            "big    10Ti       0       0           0%        <unknown>\n");
  EXPECT_EQ(print_volume_usages(usages, {true, false, "capacity"}),
            "shop      big    10Ti     0       0       0%    <unknown>\n"
            "default   data   1024Mi   256Mi   768Mi   25%   3%\n");
}

// A script may wait until top succeeds.
TEST(TopCommand, says_why_there_are_no_measurements) {
  FakeApi api;
  auto put_pod = [&](const std::string& name, const std::string& created) {
    api.put("/api/v1/namespaces/default/pods/" + name,
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":")" + name +
                R"(","creationTimestamp":")" + created + R"("},"spec":{}})");
  };
  FakeApi::Outcome outcome = api.run({"top", "pods"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "No resources found in default namespace.\n");
  put_pod("fresh", format_time(system_clock().now()));
  outcome = api.run({"top", "pods"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: metrics not available yet\n");
  put_pod("old", "2020-01-01T00:00:00Z");
  outcome = api.run({"top", "pods"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.err.starts_with("error: Metrics not available for pod default/old, age: ")) << outcome.err;
  EXPECT_EQ(api.run({"top", "nodes"}).err, "error: metrics not available yet\n");
  EXPECT_EQ(api.run({"top", "pod", "old"}).err, "error: Metrics API not available\n") << "the server has no such group";
}

TEST(TopCommand, takes_one_name_or_a_selector) {
  FakeApi api;
  for (const std::string what : {"pod", "node"}) {
    EXPECT_EQ(api.run({"top", what, "a", "b"}).err,
              "error: " + what + " [NAME | -l label]\nSee 'coraclectl top " + what + " -h' for help and examples\n");
    EXPECT_EQ(api.run({"top", what, "a", "-l", "x=y"}).err,
              std::string("error: only one of NAME or ") + (what == "pod" ? "" : "--") + "selector can be provided\n");
  }
  EXPECT_EQ(api.run({"top", "pod", "a", "--field-selector=x=y"}).err, "error: only one of NAME or selector can be provided\n");
}

TEST(Top, one_pod_is_a_list_of_one) {
  EXPECT_EQ(print_pod_usages(pod_usages(kMeasuredPods.at("items").at(1)), {.headers = false}), "db    3m    300Mi\n");
}

}  // namespace
}  // namespace coracle::ctl
