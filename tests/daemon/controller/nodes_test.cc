// SPDX-License-Identifier: Apache-2.0
// Nodes that stop reporting, taints that follow from conditions, and the eviction of pods.
#include "daemon/controller/pod/node_lifecycle.h"
#include "daemon/placement/placement.h"
#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

using std::chrono::seconds;

struct NodesTest : Bench {
  void node(const std::string& name, const std::string& conditions, const std::string& spec = "{}",
            const std::string& labels = "{}") {
    client.put(kNode, R"({"metadata":{"name":")" + name + R"(","labels":)" + labels + R"(},"spec":)" + spec +
                          R"(,"status":{"conditions":[)" + conditions + "]}}");
    settle();
  }
  static std::string is(const std::string& type, const std::string& status) {
    return R"({"type":")" + type + R"(","status":")" + status + R"(","lastHeartbeatTime":"2024-01-01T00:00:00Z"})";
  }
  void renew(const std::string& name) {
    client.put(kLease, R"({"metadata":{"namespace":"kube-node-lease","name":")" + name + R"("},"spec":{"renewTime":")" +
                           format_micro_time(clock.now()) + "\"}}");
    settle();
  }
  void pod(const std::string& name, const std::string& node, const std::string& tolerations = "[]") {
    client.put(kPod, R"({"metadata":{"namespace":"default","name":")" + name + R"("},"spec":{"nodeName":")" + node +
                         R"(","tolerations":)" + tolerations +
                         R"(},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
    settle();
  }
  std::string taints(const std::string& name) {  // "key:Effect …", sorted, without the domain of Kubernetes
    std::set<std::string> all;
    for (const json::value& taint : get_array(client.find(kNode, {"", name})->json(), "spec.taints")) {
      std::string key(get_string(taint, "key"));
      all.insert(key.substr(key.find('/') + 1) + ":" + std::string(get_string(taint, "effect")));
    }
    std::string text;
    for (const std::string& one : all) text += (text.empty() ? "" : " ") + one;
    return text;
  }
  std::string condition(const std::string& node, const std::string& type) {
    return std::string(node_condition(*client.find(kNode, {"", node}), type));
  }
  std::string pod_condition_of(const std::string& pod, const std::string& type, const char* field) {
    const json::value* found = find_condition(get_array(client.find(kPod, {"default", pod})->json(), "status.conditions"), type);
    return found ? std::string(get_string(*found, field)) : "";
  }
  bool leaving(const std::string& pod) {
    ObjectPtr found = client.find(kPod, {"default", pod});
    return !found || found->deleting();
  }
};

TEST_F(NodesTest, a_silent_remote_node_is_marked_and_a_returning_one_welcome) {
  start();
  node("far", is("Ready", "True") + "," + is("MemoryPressure", "False"));
  pod("web", "far", R"([{"operator":"Exists"}])");
  renew("far");
  renew("pi");
  pass(seconds(40));
  renew("far");
  pass(seconds(40));
  EXPECT_EQ(taints("far"), "");
  pass(seconds(11));
  EXPECT_EQ(taints("far"), "unreachable:NoExecute unreachable:NoSchedule");
  for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"})
    EXPECT_EQ(condition("far", type), "Unknown") << type;
  EXPECT_EQ(condition("far", "NetworkUnavailable"), "");
  const json::array& conditions = get_array(client.find(kNode, {"", "far"})->json(), "status.conditions");
  EXPECT_EQ(get_string(*find_condition(conditions, "Ready"), "reason"), "NodeStatusUnknown");
  EXPECT_EQ(get_string(*find_condition(conditions, "Ready"), "message"), "Kubelet stopped posting node status.");
  EXPECT_EQ(get_string(*find_condition(conditions, "Ready"), "lastHeartbeatTime"), "2024-01-01T00:00:00Z");
  EXPECT_EQ(get_string(*find_condition(conditions, "DiskPressure"), "reason"), "NodeStatusNeverUpdated");
  EXPECT_EQ(taints("pi"), "") << "this machine is not judged";
  EXPECT_TRUE(events.has("NodeNotReady", "Node far status is now: NodeNotReady"));
  EXPECT_EQ(pod_condition_of("web", "Ready", "status"), "False");
  EXPECT_TRUE(events.has("NodeNotReady", "Node is not ready"));
  renew("far");  // it reports again
  node("far", is("Ready", "True"));
  EXPECT_EQ(taints("far"), "");
}

// Its heartbeat shows at most ten seconds later that it is alive. Until then neither side overwrites the other's condition.
TEST_F(NodesTest, who_was_taken_for_silent_and_speaks_may_contradict) {
  start();
  node("far", is("Ready", "True"));
  pod("web", "far", R"([{"operator":"Exists"}])");
  auto is_ready = [&] { return pod_condition_of("web", "Ready", "status") == "True"; };
  auto says_ready = [&] {
    client.set_status(kPod, {"default", "web"}, R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})");
    settle();
  };
  pass(seconds(51));
  EXPECT_EQ(condition("far", "Ready"), "Unknown");
  EXPECT_FALSE(is_ready());
  says_ready();
  EXPECT_TRUE(is_ready());
  pass(seconds(8));
  EXPECT_TRUE(is_ready());
  pass(seconds(2));
  EXPECT_FALSE(is_ready()) << "it was the last that was heard of it";
  says_ready();
  renew("far");
  node("far", is("Ready", "True"));
  pass(seconds(11));
  EXPECT_TRUE(is_ready());
  node("far", is("Ready", "False"));
  EXPECT_FALSE(is_ready()) << "another time that it is down";
  says_ready();
  pass(seconds(11));
  EXPECT_TRUE(is_ready()) << "a node that speaks knows its pods";
}

TEST_F(NodesTest, a_node_that_only_reports_its_status_is_heard_too) {
  start();
  node("far", is("Ready", "True"));
  pass(seconds(45));
  client.set_status(kNode, {"", "far"},
                    R"({"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2024-01-01T00:00:45Z"}]})");
  settle();
  pass(seconds(45));
  EXPECT_EQ(condition("far", "Ready"), "True");
  pass(seconds(6));
  EXPECT_EQ(condition("far", "Ready"), "Unknown");
}

TEST_F(NodesTest, a_node_that_never_said_anything_has_a_minute) {
  start();
  node("far", "", R"({"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]})");
  renew("far");
  pass(seconds(58));
  EXPECT_EQ(taints("far"), "not-ready:NoSchedule");
  pass(seconds(3));
  EXPECT_EQ(condition("far", "Ready"), "Unknown");
  EXPECT_EQ(taints("far"), "unreachable:NoExecute unreachable:NoSchedule");
}

TEST_F(NodesTest, a_clock_that_jumps_makes_nobody_silent_and_evicts_nobody) {
  start();
  node("far", is("Ready", "True"));
  renew("far");
  pod("patient", "far", R"([{"key":"slow","operator":"Exists","tolerationSeconds":100}])");
  node("far", is("Ready", "True"), R"({"taints":[{"key":"slow","effect":"NoExecute"}]})");
  pass(seconds(10));
  for (int64_t to : {1'900'000'000, 10, 1'700'000'000}) {
    clock.set(WallTime(seconds(to)));
    settle();
    pass(seconds(5));
    EXPECT_EQ(condition("far", "Ready"), "True") << to;
    EXPECT_FALSE(leaving("patient")) << to;
    renew("far");  // whatever its clock's time is
  }
  pass(seconds(49));
  EXPECT_EQ(condition("far", "Ready"), "True");
  pass(seconds(2));
  EXPECT_EQ(condition("far", "Ready"), "Unknown");
  pass(seconds(40));
  EXPECT_TRUE(leaving("patient"));
}

TEST_F(NodesTest, taints_follow_conditions_and_cordons_this_machines_too) {
  start();
  node("pi", "",
       R"({"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"},{"key":"mine","effect":"NoSchedule"}]})");
  EXPECT_EQ(taints("pi"), "mine:NoSchedule not-ready:NoSchedule") << "it has not said anything yet";
  auto say = [&](const std::string& conditions) {
    client.set_status(kNode, {"", "pi"}, R"({"conditions":[)" + conditions + "]}");
    settle();
  };
  say(is("Ready", "True"));
  EXPECT_EQ(taints("pi"), "mine:NoSchedule");
  say(is("Ready", "True") + "," + is("MemoryPressure", "True") + "," + is("DiskPressure", "True") + "," +
      is("PIDPressure", "True") + "," + is("NetworkUnavailable", "True"));
  EXPECT_EQ(taints("pi"),
            "disk-pressure:NoSchedule memory-pressure:NoSchedule mine:NoSchedule network-unavailable:NoSchedule "
            "pid-pressure:NoSchedule");
  say(is("Ready", "False"));
  EXPECT_EQ(taints("pi"), "mine:NoSchedule not-ready:NoExecute not-ready:NoSchedule");
  say(is("Ready", "True"));
  EXPECT_EQ(taints("pi"), "mine:NoSchedule");
  MUST(client.patch(kNode, {"", "pi"}, PatchType::merge, {{"spec", {{"unschedulable", true}}}}));
  settle();
  EXPECT_EQ(taints("pi"), "mine:NoSchedule unschedulable:NoSchedule");
}

TEST_F(NodesTest, one_reason_to_go_takes_the_place_of_another) {
  start();
  node("far", is("Ready", "False"));
  renew("far");
  EXPECT_EQ(taints("far"), "not-ready:NoExecute not-ready:NoSchedule");
  pass(seconds(51));
  EXPECT_EQ(taints("far"), "unreachable:NoExecute unreachable:NoSchedule");
}

TEST_F(NodesTest, nodes_are_emptied_one_after_the_other) {
  start();
  for (const char* name : {"a", "b", "c"}) node(name, is("Ready", "True"));
  for (const char* name : {"a", "b"}) node(name, is("Ready", "False"));
  EXPECT_EQ(taints("a"), "not-ready:NoExecute not-ready:NoSchedule");
  EXPECT_EQ(taints("b"), "not-ready:NoSchedule");
  pass(seconds(10));
  EXPECT_EQ(taints("b"), "not-ready:NoExecute not-ready:NoSchedule");
}

TEST_F(NodesTest, where_most_of_a_zone_does_not_answer_none_is_emptied) {
  start();
  const char* zone = R"({"topology.kubernetes.io/zone":"x"})";
  for (const char* name : {"a", "b", "c", "d"}) node(name, is("Ready", "True"), "{}", zone);
  for (const char* name : {"a", "b", "c"}) renew(name);
  for (int i = 0; i < 6; ++i) pass(seconds(9)), renew("d");
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(condition(name, "Ready"), "Unknown");
  std::string emptied;
  for (const char* name : {"a", "b", "c"}) emptied += taints(name).find("NoExecute") != std::string::npos ? name : "";
  EXPECT_LE(emptied.size(), 1u) << "the first of them, before there were three";
  for (int i = 0; i < 6; ++i) pass(seconds(9)), renew("d");
  std::string later;
  for (const char* name : {"a", "b", "c"}) later += taints(name).find("NoExecute") != std::string::npos ? name : "";
  EXPECT_EQ(later, emptied);
  for (const char* name : {"a", "b"}) renew(name), node(name, is("Ready", "True"), "{}", zone);
  pass(seconds(10));
  EXPECT_NE(taints("c").find("unreachable:NoExecute"), std::string::npos) << "one alone is, in its turn";
}

TEST(Zone, is_told_by_region_and_zone) {
  auto zone = [](const char* labels) { return placement::zone_of(parse_json(labels)->get_object()); };
  const char* both = R"({"topology.kubernetes.io/region":"r","topology.kubernetes.io/zone":"z"})";
  EXPECT_EQ(zone(both), zone(both));
  EXPECT_NE(zone(both), zone(R"({"topology.kubernetes.io/zone":"z"})"));
  EXPECT_NE(zone(both), zone(R"({"topology.kubernetes.io/region":"r"})"));
  EXPECT_NE(zone(R"({"topology.kubernetes.io/region":"x"})"), zone(R"({"topology.kubernetes.io/zone":"x"})"));
  EXPECT_EQ(zone(R"({"a":"b"})"), "") << "it is in none";
}

TEST(Pace, is_that_of_the_zone) {
  EXPECT_EQ(pace_of({10, 1}), seconds(10));
  EXPECT_EQ(pace_of({1, 2}), seconds(10)) << "two are too few to tell";
  EXPECT_EQ(pace_of({1, 3}), std::nullopt);
  EXPECT_EQ(pace_of({0, 30}), seconds(10)) << "the whole zone is down";
  EXPECT_EQ(pace_of({10, 60}), seconds(100));
}

TEST_F(NodesTest, what_does_not_tolerate_a_taint_goes_at_once_or_when_its_time_is_over) {
  start();
  node("far", is("Ready", "True"));
  pod("plain", "far");
  pod("for-good", "far", R"([{"key":"gone","operator":"Equal","value":"soon","effect":"NoExecute"}])");
  pod("any", "far", R"([{"operator":"Exists"}])");
  pod("a-while", "far", R"([{"key":"gone","operator":"Exists","effect":"NoExecute","tolerationSeconds":30}])");
  pod("other-value", "far", R"([{"key":"gone","value":"later","effect":"NoExecute"}])");
  pod("other-effect", "far", R"([{"key":"gone","operator":"Exists","effect":"NoSchedule"}])");
  pod("elsewhere", "pi");
  node("far", is("Ready", "True"),
       R"({"taints":[{"key":"gone","value":"soon","effect":"NoExecute"},{"key":"x","effect":"NoSchedule"}]})");
  for (const char* name : {"plain", "other-value", "other-effect"}) EXPECT_TRUE(leaving(name)) << name;
  for (const char* name : {"for-good", "any", "a-while", "elsewhere"}) EXPECT_FALSE(leaving(name)) << name;
  EXPECT_TRUE(events.has("TaintManagerEviction", "Marking for deletion Pod default/plain"));
  for (int i = 0; i < 29; ++i) renew("far"), pass(seconds(1));
  EXPECT_FALSE(leaving("a-while"));
  pass(seconds(1));
  EXPECT_TRUE(leaving("a-while"));
  EXPECT_FALSE(leaving("any"));
  pod("late", "far");
  EXPECT_TRUE(leaving("late")) << "who comes to a tainted node";
}

TEST_F(NodesTest, it_is_said_why_a_pod_had_to_go) {
  start();
  node("far", is("Ready", "True"), R"({"taints":[{"key":"gone","effect":"NoExecute"}]})");
  client.put(
      kPod,
      R"({"metadata":{"namespace":"default","name":"held","finalizers":["x/y"]},"spec":{"nodeName":"far"},"status":{"phase":"Running"}})");
  settle();
  EXPECT_TRUE(leaving("held"));
  EXPECT_EQ(pod_condition_of("held", "DisruptionTarget", "status"), "True");
  EXPECT_EQ(pod_condition_of("held", "DisruptionTarget", "reason"), "DeletionByTaintManager");
  EXPECT_EQ(pod_condition_of("held", "DisruptionTarget", "message"), "Taint manager: deleting due to NoExecute taint");
}

TEST_F(NodesTest, a_taint_that_goes_in_time_takes_the_verdict_back) {
  start();
  node("far", is("Ready", "True"));
  pod("a-while", "far", R"([{"key":"gone","operator":"Exists","effect":"NoExecute","tolerationSeconds":30}])");
  node("far", is("Ready", "True"), R"({"taints":[{"key":"gone","effect":"NoExecute"}]})");
  pass(seconds(20));
  node("far", is("Ready", "True"));
  EXPECT_TRUE(events.has("TaintManagerEviction", "Cancelling deletion of Pod default/a-while"));
  pass(seconds(20));
  EXPECT_FALSE(leaving("a-while"));
  renew("far");
  node("far", is("Ready", "True"), R"({"taints":[{"key":"gone","effect":"NoExecute"}]})");
  pass(seconds(29));
  EXPECT_FALSE(leaving("a-while")) << "its time begins anew";
  pass(seconds(1));
  EXPECT_TRUE(leaving("a-while"));
}

TEST_F(NodesTest, the_shortest_of_several_tolerations_counts) {
  start();
  node("far", is("Ready", "True"), R"({"taints":[{"key":"a","effect":"NoExecute"},{"key":"b","effect":"NoExecute"}]})");
  pod("both", "far",
      R"([{"key":"a","operator":"Exists","tolerationSeconds":40},{"key":"b","operator":"Exists","tolerationSeconds":20}])");
  pod("one-for-good", "far", R"([{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists","tolerationSeconds":20}])");
  pod("never", "far", R"([{"key":"a","operator":"Exists","tolerationSeconds":0},{"key":"b","operator":"Exists"}])");
  EXPECT_TRUE(leaving("never"));
  pass(seconds(19));
  EXPECT_FALSE(leaving("both"));
  EXPECT_FALSE(leaving("one-for-good"));
  pass(seconds(1));
  EXPECT_TRUE(leaving("both"));
  EXPECT_TRUE(leaving("one-for-good"));
}

TEST_F(NodesTest, pods_wait_their_five_minutes_on_a_silent_node) {  // with the tolerations that admission adds to each pod
  start();
  node("far", is("Ready", "True"));
  renew("far");
  pod("web", "far", R"([{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
                        {"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}])");
  pod("daemon", "far", R"([{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"},
                           {"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute"}])");
  pass(seconds(345));
  EXPECT_FALSE(leaving("web"));
  pass(seconds(10));
  EXPECT_TRUE(leaving("web"));
  EXPECT_FALSE(leaving("daemon"));
}

}  // namespace
}  // namespace coracle::controller
