// SPDX-License-Identifier: Apache-2.0
// The scheduling loop: order, back-off, the events that move an unschedulable pod, and its condition and events.
#include "daemon/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include "daemon/scheduler/queue.h"
#include "runtime/base/guarded.h"
#include "tests/store/client/fake_client.h"

namespace coracle::scheduler {
namespace {

using namespace std::chrono_literals;

PodInfoPtr pod_info(const std::string& name, int64_t priority = 0, const std::string& created = "") {
  auto info = std::make_shared<PodInfo>();
  info->key = {"d", name};
  info->priority = priority;
  info->created = created;
  return info;
}

struct QueueTest : testing::Test {
  Configuration configuration = default_configuration();
  SchedulingQueue queue{[&](const PodInfo& a, const PodInfo& b) { return configuration.profiles.front()->sorts_before(a, b); },
                        1s, 10s};
  SteadyTime now{};
  void wake(bool helps = true) {
    queue.wake(now, [=](const PodInfo&, const PluginSet&) { return helps; });
  }
};

TEST_F(QueueTest, gives_the_most_important_then_the_oldest) {
  queue.add(pod_info("young", 0, "2024-01-02T00:00:00Z"));
  queue.add(pod_info("old", 0, "2024-01-01T00:00:00Z"));
  queue.add(pod_info("important", 10, "2024-01-03T00:00:00Z"));
  for (const char* want : {"important", "old", "young"}) EXPECT_EQ(queue.pop(now)->key.name, want);
  EXPECT_FALSE(queue.pop(now));
}

TEST_F(QueueTest, parked_pods_come_back_when_woken_and_no_sooner_than_their_back_off) {
  const Key a{"d", "a"};
  queue.add(pod_info("a"));
  for (auto delay : {1s, 2s, 4s, 8s, 10s, 10s}) {
    ASSERT_TRUE(queue.pop(now)) << delay.count();
    queue.park(a, {}, now);
    EXPECT_FALSE(queue.pop(now + 1h));  // time alone does not move it
    wake(false);
    EXPECT_FALSE(queue.pop(now + 1h));  // an event that cannot help does not move it
    wake();
    EXPECT_FALSE(queue.pop(now + delay - 1ms)) << delay.count();
    now += delay;
    EXPECT_EQ(queue.next_due(), now);
  }
  ASSERT_TRUE(queue.pop(now));
  queue.add(pod_info("a"));  // its spec changed during the decision
  queue.park(a, {}, now);
  EXPECT_TRUE(queue.next_due());
  queue.remove(a);
  EXPECT_FALSE(queue.pop(now + 1h));
  EXPECT_EQ(queue.size(), 0u);
}

TEST_F(QueueTest, wakes_by_who_refused) {
  for (const char* name : {"alone", "social"}) {
    queue.add(pod_info(name));
    queue.pop(now);
    queue.park({"d", name}, PluginSet(std::string_view(name) == "social" ? 2 : 1), now);
  }
  now += 1h;
  queue.wake(now, [](const PodInfo&, const PluginSet& refused) { return refused[1]; });
  EXPECT_EQ(queue.pop(now)->key.name, "social");
  EXPECT_FALSE(queue.pop(now));
}

class CollectedEvents : public EventSink {
 public:
  void post(EventRecord record) override {
    texts_.with([&](auto& list) { list.push_back(record.reason + ": " + record.message); });
  }
  std::string take() {
    std::string out;
    for (const std::string& text : texts_.with([](auto& list) { return std::exchange(list, {}); })) out += text + "\n";
    return out;
  }

 private:
  Guarded<std::vector<std::string>> texts_;
};

struct SchedulerTest : testing::Test {
  FakeClock clock;
  FakeClient client{clock};
  CollectedEvents events;
  Informers informers{client};
  Scheduler scheduler{client, informers, events, default_configuration(), clock};

  void start() {
    MUST(informers.start());
    settle();
  }
  void settle() {
    for (client.settle(); scheduler.run_once(); client.settle()) {
    }
  }
  void put_node(const std::string& cpu, const std::string& spec = "{}") {
    client.put(kNode, R"({"metadata":{"name":"pi"},"spec":)" + spec + R"(,"status":{"allocatable":{"cpu":")" + cpu +
                          R"(","memory":"4Gi","pods":"110"}}})");
    settle();
  }
  void put_pod(const std::string& name, const std::string& cpu = "1", const std::string& more = "") {
    client.put(kPod, R"({"metadata":{"name":")" + name +
                         R"(","namespace":"default"},"spec":{"containers":[{"name":"c","resources":
      {"requests":{"cpu":")" +
                         cpu + R"("}}}])" + more + "}}");
    settle();
  }
  // A class whose volumes a provisioner of somebody else makes, once a node has been chosen for the first pod.
  void put_far_class() {
    client.put(kStorageClass,
               R"({"metadata":{"name":"far"},"provisioner":"far.example","volumeBindingMode":"WaitForFirstConsumer"})");
  }
  void put_far_claim() {  // "data", of that class
    put_far_class();
    client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"default"},"spec":{"storageClassName":"far",
      "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
  }
  std::string node_of(const std::string& name) {
    return std::string(get_string(client.find(kPod, {"default", name})->json(), "spec.nodeName"));
  }
  std::string condition(const std::string& name) {
    for (const json::value& condition : get_array(client.find(kPod, {"default", name})->json(), "status.conditions"))
      if (get_string(condition, "type") == "PodScheduled")
        return std::string(get_string(condition, "reason")) + ": " + std::string(get_string(condition, "message"));
    return "";
  }
};

TEST_F(SchedulerTest, binds_and_says_so) {
  put_node("4");
  start();
  put_pod("a");
  EXPECT_EQ(node_of("a"), "pi");
  EXPECT_EQ(events.take(), "Scheduled: Successfully assigned default/a to pi\n");
}

TEST_F(SchedulerTest, leaves_alone_what_is_not_its_own) {
  put_node("4");
  start();
  put_pod("other", "1", R"(,"schedulerName":"mine")");
  put_pod("gated", "1", R"(,"schedulingGates":[{"name":"wait"}])");
  EXPECT_EQ(node_of("other"), "");
  EXPECT_EQ(node_of("gated"), "");
  MUST(client.patch(kPod, {"default", "gated"}, PatchType::merge, {{"spec", {{"schedulingGates", json::array{}}}}}));
  settle();
  EXPECT_EQ(node_of("gated"), "pi");
}

TEST_F(SchedulerTest, tells_why_and_tries_again_when_space_is_made) {
  put_node("2");
  start();
  put_pod("first", "2");
  put_pod("second", "1");
  EXPECT_EQ(node_of("second"), "");
  EXPECT_EQ(condition("second").substr(0, 59), "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.");
  EXPECT_NE(events.take().find("FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu."), std::string::npos);
  client.clear_calls();
  clock.advance(1h);
  settle();
  EXPECT_TRUE(client.calls().empty());  // nothing is polled
  client.erase(kPod, {"default", "first"});
  settle();
  EXPECT_EQ(node_of("second"), "pi");
}

TEST_F(SchedulerTest, a_finished_pod_leaves_space_and_a_node_that_changes_gives_hope) {
  put_node("1");
  start();
  put_pod("first", "1");
  put_pod("second", "1");
  clock.advance(10s);
  client.set_status(kPod, {"default", "first"}, R"({"phase":"Succeeded"})");
  settle();
  EXPECT_EQ(node_of("second"), "pi");
  put_pod("third", "2");
  EXPECT_EQ(node_of("third"), "");
  clock.advance(10s);
  put_node("4");
  EXPECT_EQ(node_of("third"), "pi");
}

TEST_F(SchedulerTest, two_pods_are_not_given_the_same_space) {
  put_node("3");
  start();
  for (const char* name : {"a", "b"})
    client.put(kPod, std::string(R"({"metadata":{"name":")") + name +
                         R"(","namespace":"default"},"spec":{"containers":[{"resources":
      {"requests":{"cpu":"2"}}}]}})");
  settle();
  EXPECT_NE(node_of("a").empty(), node_of("b").empty());
}

TEST_F(SchedulerTest, a_failed_binding_gives_the_space_back_and_is_tried_again) {
  put_node("2");
  start();
  client.fail(1, Error(Code::unavailable, "disk is full"), "create_subresource pods/binding");
  put_pod("a", "2");
  EXPECT_EQ(node_of("a"), "");
  EXPECT_NE(events.take().find("FailedScheduling: binding rejected: disk is full"), std::string::npos);
  clock.advance(1s);
  settle();
  EXPECT_EQ(node_of("a"), "pi");
}

TEST_F(SchedulerTest, space_is_kept_for_a_pod_of_which_nobody_knows_whether_it_was_bound) {
  put_node("2");
  start();
  for (Code code : {Code::timeout, Code::internal, Code::unavailable}) {
    client.fail(1, Error(code, "the answer was lost"), "create_subresource pods/binding");
    client.fail(1, Error(code, "the answer was lost"), "get pods");
    put_pod("a", "2");
    put_pod("b", "2");
    EXPECT_EQ(node_of("b"), "") << code_name(code);
    clock.advance(1s);
    settle();
    EXPECT_EQ(node_of("a"), "pi") << code_name(code);
    for (const char* name : {"a", "b"}) client.erase(kPod, {"default", name});
    settle();
  }
}

TEST_F(SchedulerTest, kept_space_is_given_back_when_the_pod_is_refused_goes_elsewhere_or_is_deleted) {
  put_node("2");
  start();
  auto put_both = [&] {
    client.fail(1, Error(Code::timeout, "the answer was lost"), "create_subresource pods/binding");
    client.fail(1, Error(Code::timeout, "the answer was lost"), "get pods");
    put_pod("a", "2");
    put_pod("b", "2");
    EXPECT_EQ(node_of("b"), "");
  };
  auto erase_both = [&] {
    for (const char* name : {"a", "b"}) client.erase(kPod, {"default", name});
    settle();
  };
  put_both();
  client.fail(1, Error(Code::forbidden, "no"), "create_subresource pods/binding");
  clock.advance(1s);
  settle();
  EXPECT_EQ(node_of("b"), "pi");
  erase_both();

  put_both();
  client.erase(kPod, {"default", "a"});
  clock.advance(1s);
  settle();
  EXPECT_EQ(node_of("b"), "pi");
  erase_both();

  put_both();
  MUST(client.patch(kPod, {"default", "a"}, PatchType::merge, {{"spec", {{"nodeSelector", {{"disk", "fast"}}}}}}));
  clock.advance(1s);
  settle();
  EXPECT_EQ(node_of("a"), "");
  EXPECT_EQ(node_of("b"), "pi");
}

TEST_F(SchedulerTest, a_pod_that_could_not_be_told_why_it_waits_is_told_later) {
  put_node("2");
  start();
  client.fail(1, Error(Code::unavailable, "disk is full"), "patch pods/status");
  put_pod("a", "3");
  auto told = [&] { return !get_array(client.find(kPod, {"default", "a"})->json(), "status.conditions").empty(); };
  EXPECT_FALSE(told());
  clock.advance(1s);
  settle();
  EXPECT_TRUE(told());
}

// ---- preemption and its writes ----

struct PreemptingTest : SchedulerTest {
  void put_ranked(const std::string& name, const std::string& cpu, int priority) {
    put_pod(name, cpu, R"(,"terminationGracePeriodSeconds":30,"priority":)" + std::to_string(priority));
  }
  ObjectPtr find(const std::string& name) { return client.find(kPod, {"default", name}); }
  std::string nominated(const std::string& name) {
    return std::string(get_string(find(name)->json(), "status.nominatedNodeName"));
  }
};

TEST_F(PreemptingTest, victims_are_told_and_the_space_is_kept) {
  put_node("2");
  start();
  put_ranked("low", "2", 1);
  ASSERT_EQ(node_of("low"), "pi");
  (void)events.take();
  put_ranked("high", "2", 10);
  EXPECT_EQ(nominated("high"), "pi");
  EXPECT_EQ(node_of("high"), "");
  ASSERT_TRUE(find("low"));
  EXPECT_TRUE(find("low")->deleting());  // within its grace period
  const json::value& victim = get_array(find("low")->json(), "status.conditions").back();
  EXPECT_EQ(get_string(victim, "type"), "DisruptionTarget");
  EXPECT_EQ(get_string(victim, "reason"), "PreemptionByScheduler");
  EXPECT_EQ(get_string(victim, "message"), "default-scheduler: preempting to accommodate a higher priority pod");
  EXPECT_NE(events.take().find("Preempted: Preempted by pod " + find("high")->uid() + " on node pi"), std::string::npos);
  put_ranked("sneaks", "1", 5);  // less important, so the space is not for it
  clock.advance(1h);
  client.erase(kPod, {"default", "low"});
  settle();
  EXPECT_EQ(node_of("high"), "pi");
  EXPECT_EQ(node_of("sneaks"), "");
}

TEST_F(PreemptingTest, a_pod_that_may_be_bound_is_waited_for) {
  put_node("2");
  start();
  client.fail(1, Error(Code::timeout, "the answer was lost"), "create_subresource pods/binding");
  client.fail(1, Error(Code::timeout, "the answer was lost"), "get pods");
  put_ranked("low", "2", 1);
  put_ranked("high", "2", 10);
  EXPECT_FALSE(find("low")->deleting());
  EXPECT_EQ(node_of("high"), "");
  for (auto delay : {1s, 2s}) {  // first that of "low", whose space is reserved; then that of "high"
    clock.advance(delay);
    settle();
  }
  EXPECT_EQ(node_of("high"), "pi");
  EXPECT_EQ(node_of("low"), "");
  EXPECT_FALSE(find("low")->deleting());
}

TEST_F(PreemptingTest, a_pod_that_waits_for_its_volumes_chooses_anew) {
  put_node("2");
  put_far_claim();
  start();
  put_pod("low", "2", R"(,"priority":1,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])");
  ASSERT_EQ(client.find(kPersistentVolumeClaim, {"default", "data"})->annotation("volume.kubernetes.io/selected-node"), "pi");
  put_ranked("high", "2", 10);
  clock.advance(1s);
  settle();
  EXPECT_EQ(node_of("high"), "pi");
  ASSERT_TRUE(find("low"));
  EXPECT_FALSE(find("low")->deleting());
  EXPECT_EQ(condition("low").substr(0, 59), "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.");
}

TEST_F(PreemptingTest, a_more_important_pod_takes_the_nomination) {
  put_node("2");
  start();
  put_ranked("low", "2", 1);
  put_ranked("high", "2", 10);
  put_ranked("higher", "2", 20);
  EXPECT_EQ(nominated("higher"), "pi");
  EXPECT_EQ(nominated("high"), "");
}

TEST_F(PreemptingTest, what_was_kept_for_a_pod_that_goes_is_free_again) {
  put_node("2");
  start();
  put_ranked("low", "2", 1);
  put_ranked("high", "2", 10);
  put_ranked("small", "1", 5);
  client.erase(kPod, {"default", "low"});
  client.settle();
  client.erase(kPod, {"default", "high"});
  clock.advance(1h);
  settle();
  EXPECT_EQ(node_of("small"), "pi");
}

TEST_F(PreemptingTest, what_was_kept_for_a_pod_that_gives_up_is_free_again) {
  put_node("2");
  start();
  put_ranked("low", "2", 1);
  put_ranked("high", "2", 10);
  for (const char* cpu : {"2500m", "2", "2500m", "2"}) {  // after many attempts, its back-off is long
    clock.advance(20s);
    put_node(cpu);
  }
  put_ranked("small", "1", 5);
  put_pod("pinned", "1", R"(,"nodeName":"pi","priority":10)");  // bound by another client
  client.erase(kPod, {"default", "low"});
  settle();
  clock.advance(2s);
  settle();
  EXPECT_EQ(nominated("high"), "pi");
  EXPECT_EQ(node_of("small"), "");
  clock.advance(20s);
  settle();
  EXPECT_EQ(nominated("high"), "");
  clock.advance(20s);
  settle();
  EXPECT_EQ(node_of("small"), "pi");
}

TEST_F(PreemptingTest, a_victim_that_could_not_be_asked_is_asked_again) {
  put_node("2");
  start();
  put_ranked("low", "2", 1);
  client.fail(1, Error(Code::unavailable, "disk is full"), "remove pods");
  put_ranked("high", "2", 10);
  EXPECT_FALSE(find("low")->deleting());
  clock.advance(1h);
  settle();
  EXPECT_TRUE(find("low")->deleting());
}

// A StatefulSet recreates a pod with the victim's name, and the scheduler has no event about it yet.
TEST_F(PreemptingTest, a_namesake_of_a_victim_that_went_is_not_told_to_go) {
  put_node("2");
  start();
  put_ranked("db-0", "2", 1);
  auto lose = [&](auto&& change) { client.lose_event(), change(); };
  lose([&] { client.erase(kPod, {"default", "db-0"}); });
  lose([&] { put_ranked("db-0", "2", 1); });
  client.put(
      kPod,
      R"({"metadata":{"name":"high","namespace":"default"},"spec":{"priority":10,"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}})");
  client.settle();
  ASSERT_TRUE(scheduler.run_once());
  EXPECT_NE(events.take().find("FailedScheduling"), std::string::npos);
  EXPECT_FALSE(find("db-0")->deleting());
  EXPECT_TRUE(get_array(find("db-0")->json(), "status.conditions").empty()) << to_text(find("db-0")->json());
}

// ---- queueing hints ----

struct HintTest : SchedulerTest {
  // The node "pi" is chosen for the pod "db", whose claim "data" waits for a provisioner of somebody else.
  void wait_for_a_far_volume() {
    put_node("4");
    put_far_claim();
    start();
    put_pod("db", "1", R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])");
  }
  // The number of rejections since the last call.
  int refusals() {
    std::string text = events.take();
    int count = 0;
    for (size_t at = text.find("FailedScheduling"); at != text.npos; at = text.find("FailedScheduling", at + 1)) ++count;
    return count;
  }
  void later() {
    clock.advance(1h);
    settle();
  }
};

TEST_F(HintTest, only_what_could_help_wakes_a_pod) {
  put_node("4");
  start();
  put_pod("big", "8");
  put_pod("picky", "1", R"(,"nodeSelector":{"disk":"ssd"})");
  EXPECT_EQ(refusals(), 2);
  later();
  put_pod("other", "1");  // an unrelated pod
  EXPECT_EQ(refusals(), 0);
  client.put(kNamespace, R"({"metadata":{"name":"more"}})");
  client.put(
      kNode,
      R"({"metadata":{"name":"pi","labels":{"colour":"red"}},"status":{"allocatable":{"cpu":"4","memory":"4Gi","pods":"110"}}})");
  later();
  EXPECT_EQ(refusals(), 0);  // a namespace or a label that no pod refers to
  client.put(
      kNode,
      R"({"metadata":{"name":"pi","labels":{"colour":"red"}},"status":{"allocatable":{"cpu":"6","memory":"4Gi","pods":"110"}}})");
  later();
  EXPECT_EQ(refusals(), 0);  // more cpu, but not enough for the big one
  client.put(
      kNode,
      R"({"metadata":{"name":"pi","labels":{"disk":"ssd"}},"status":{"allocatable":{"cpu":"16","memory":"4Gi","pods":"110"}}})");
  later();
  EXPECT_EQ(node_of("big"), "pi");
  EXPECT_EQ(node_of("picky"), "pi");
}

// Nothing of a waiting pod is parsed again for events that cannot help it.
TEST_F(HintTest, large_pods_that_wait_cost_nothing_while_others_come_and_go) {
  put_node("4");
  start();
  json::object labels;
  for (int i = 0; i < 2000; ++i) labels["example.com/a" + std::to_string(i)] = "with some text behind it";
  for (int i = 0; i < 40; ++i)
    client.put(kPod, to_text(json::value{
                         {"metadata", {{"name", "large" + std::to_string(i)}, {"namespace", "default"}, {"annotations", labels}}},
                         {"spec", {{"containers", json::array{{{"resources", {{"requests", {{"cpu", "8"}}}}}}}}}}}));
  settle();
  EXPECT_EQ(refusals(), 40);
  for (int i = 0; i < 500; ++i) client.put(kNamespace, R"({"metadata":{"name":"n)" + std::to_string(i) + "\"}}");
  settle();
  EXPECT_EQ(refusals(), 0);
}

TEST_F(HintTest, company_wakes_those_who_asked_for_it) {
  client.put(
      kNode,
      R"({"metadata":{"name":"pi","labels":{"zone":"z"}},"status":{"allocatable":{"cpu":"4","memory":"4Gi","pods":"110"}}})");
  start();
  put_pod(
      "friend", "1",
      R"(,"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"db"}}}]}})");
  EXPECT_EQ(refusals(), 1);
  later();
  put_pod("stranger");
  later();
  EXPECT_EQ(refusals(), 0);
  client.put(kPod, R"({"metadata":{"name":"db","namespace":"default","labels":{"app":"db"}},"spec":{"containers":[{}]}})");
  settle();
  EXPECT_EQ(node_of("friend"), "pi");
}

// ---- volumes ----

TEST_F(HintTest, a_claim_that_waits_for_its_consumer_is_bound_first) {
  put_node("4");
  start();
  client.put(
      kStorageClass,
      R"({"metadata":{"name":"local"},"provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"})");
  put_pod("db", "1", R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])");
  EXPECT_EQ(condition("db").substr(0, 79), "Unschedulable: 0/1 nodes are available: persistentvolumeclaim \"data\" not found.");
  client.put(
      kPersistentVolumeClaim,
      R"({"metadata":{"name":"data","namespace":"default"},"spec":{"storageClassName":"local","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
  later();
  EXPECT_NE(condition("db").find("1 node(s) didn't find available persistent volumes to bind"), std::string::npos)
      << condition("db");
  client.put(
      kPersistentVolume,
      R"({"metadata":{"name":"big"},"spec":{"storageClassName":"local","accessModes":["ReadWriteOnce"],"capacity":{"storage":"9Gi"}},"status":{"phase":"Available"}})");
  client.put(
      kPersistentVolume,
      R"({"metadata":{"name":"fits"},"spec":{"storageClassName":"local","accessModes":["ReadWriteOnce"],"capacity":{"storage":"2Gi"}},"status":{"phase":"Available"}})");
  later();
  EXPECT_EQ(get_string(client.find(kPersistentVolume, {"", "fits"})->json(), "spec.claimRef.name"), "data");
  EXPECT_EQ(find(client.find(kPersistentVolume, {"", "big"})->json(), "spec.claimRef"), nullptr);
  EXPECT_EQ(node_of("db"), "");  // until the claim is bound
  client.put(
      kPersistentVolumeClaim,
      R"({"metadata":{"name":"data","namespace":"default"},"spec":{"storageClassName":"local","volumeName":"fits","accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Bound"}})");
  settle();
  EXPECT_EQ(node_of("db"), "pi");
}

// Each bound claim is counted; the pod's other claims are not examined again.
TEST_F(HintTest, a_pod_of_many_claims_is_bound_after_the_last_of_them) {
  constexpr int kMany = 10'000;
  put_node("4");
  put_far_class();
  std::string volumes;
  auto put_claim = [&](int i, const std::string& annotations, const std::string& spec, const std::string& status) {
    client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data)" + std::to_string(i) +
                                           R"(","namespace":"default","annotations":)" + annotations +
                                           R"(},"spec":{"storageClassName":"far")" + spec + R"(},"status":)" + status + "}");
  };
  const std::string selected = R"({"volume.kubernetes.io/selected-node":"pi"})";
  auto bind = [&](int i) { put_claim(i, selected, R"(,"volumeName":"disk)" + std::to_string(i) + "\"", R"({"phase":"Bound"})"); };
  for (int i = 0; i < kMany; ++i) {
    put_claim(i, "{}", "", "{}");
    volumes += (i ? "," : "") + (R"({"name":"v","persistentVolumeClaim":{"claimName":"data)" + std::to_string(i) + "\"}}");
  }
  start();
  put_pod("db", "1", R"(,"volumes":[)" + volumes + "]");
  for (int i = 0; i < kMany; ++i) {
    bind(i);
    if (i == kMany / 2) put_claim(0, selected, "", "{}");  // one of them becomes unbound again
    if (i >= kMany - 2) settle();
  }
  EXPECT_EQ(node_of("db"), "");
  bind(0);
  settle();
  EXPECT_EQ(node_of("db"), "pi");
}

TEST_F(HintTest, a_volume_that_another_pod_just_got_is_not_taken_away) {
  put_node("4");
  client.put(
      kStorageClass,
      R"({"metadata":{"name":"local"},"provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"})");
  client.put(
      kPersistentVolume,
      R"({"metadata":{"name":"disk"},"spec":{"storageClassName":"local","accessModes":["ReadWriteOnce"],"capacity":{"storage":"2Gi"}},"status":{"phase":"Available"}})");
  for (std::string name : {"first", "second"})
    client.put(kPersistentVolumeClaim,
               R"({"metadata":{"name":")" + name + R"(","namespace":"default"},"spec":{"storageClassName":"local",
        "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
  start();
  client.lose_event(2);  // the pod is the first change, the volume's claim the second
  put_pod("first", "1", R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"first"}}])");
  auto owner = [&] {
    return std::string(get_string(client.find(kPersistentVolume, {"", "disk"})->json(), "spec.claimRef.name"));
  };
  ASSERT_EQ(owner(), "first");
  (void)events.take();
  put_pod("second", "1", R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"second"}}])");
  EXPECT_EQ(owner(), "first");
  std::string said = events.take();
  EXPECT_TRUE(said.starts_with("FailedScheduling: binding volumes: ")) << said;
}

TEST_F(HintTest, a_pod_whose_claim_got_a_volume_elsewhere_is_not_bound) {
  wait_for_a_far_volume();
  (void)events.take();
  client.put(kPersistentVolume, R"({"metadata":{"name":"disk"},"spec":{"storageClassName":"far","capacity":{"storage":"1Gi"},
    "accessModes":["ReadWriteOnce"],"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":
    "In","values":["moon"]}]}]}}},"status":{"phase":"Bound"}})");
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"default","annotations":{
    "volume.kubernetes.io/selected-node":"pi"}},"spec":{"storageClassName":"far","volumeName":"disk","accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Bound"}})");
  settle();
  EXPECT_EQ(node_of("db"), "");
  EXPECT_EQ(events.take(),
            "FailedScheduling: binding volumes: pv \"disk\" node affinity doesn't match node \"pi\": no matching "
            "NodeSelectorTerms\n");
}

TEST_F(HintTest, a_pod_whose_volume_cannot_be_made_on_its_node_chooses_anew) {
  wait_for_a_far_volume();
  auto selected = [&] {
    ObjectPtr claim = client.find(kPersistentVolumeClaim, {"default", "data"});
    return std::string(claim->annotation("volume.kubernetes.io/selected-node"));
  };
  ASSERT_EQ(selected(), "pi");
  (void)events.take();
  json::value unselected = {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", nullptr}}}}}};
  MUST(client.patch(kPersistentVolumeClaim, {"default", "data"}, PatchType::merge, unselected));
  settle();
  EXPECT_EQ(selected(), "");
  EXPECT_EQ(events.take(), "FailedScheduling: binding volumes: provisioning failed for PVC \"data\"\n");
  clock.advance(1s);
  settle();
  EXPECT_EQ(selected(), "pi");
}

TEST_F(HintTest, a_pod_whose_claim_is_to_be_made_elsewhere_or_is_gone_chooses_anew) {
  wait_for_a_far_volume();
  (void)events.take();
  json::value selected = {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "moon"}}}}}};
  MUST(client.patch(kPersistentVolumeClaim, {"default", "data"}, PatchType::merge, selected));
  settle();
  EXPECT_EQ(events.take(), "FailedScheduling: binding volumes: provisioning failed for PVC \"data\"\n");
  selected = {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "pi"}}}}}};
  MUST(client.patch(kPersistentVolumeClaim, {"default", "data"}, PatchType::merge, selected));
  clock.advance(10s);
  settle();
  (void)events.take();
  client.erase(kPersistentVolumeClaim, {"default", "data"});
  settle();
  EXPECT_EQ(events.take(),
            "FailedScheduling: binding volumes: failed to check provisioning pvc: persistentvolumeclaim \"data\" not found\n");
  clock.advance(10s);
  settle();
  EXPECT_NE(condition("db").find("persistentvolumeclaim \"data\" not found"), std::string::npos) << "it does not wait there";
}

TEST_F(HintTest, a_pod_whose_volume_goes_to_another_or_away_chooses_anew) {
  put_node("4");
  start();
  client.put(
      kStorageClass,
      R"({"metadata":{"name":"local"},"provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"})");
  client.put(kPersistentVolumeClaim,
             R"({"metadata":{"name":"data","namespace":"default","uid":"uid-data"},"spec":{"storageClassName":
    "local","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
  client.put(kPersistentVolume, R"({"metadata":{"name":"disk"},"spec":{"storageClassName":"local","accessModes":["ReadWriteOnce"],
    "capacity":{"storage":"2Gi"}},"status":{"phase":"Available"}})");
  settle();
  auto has_claim = [&] { return find(client.find(kPersistentVolume, {"", "disk"})->json(), "spec.claimRef") != nullptr; };
  put_pod("db", "1", R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])");
  ASSERT_TRUE(has_claim());
  EXPECT_EQ(events.take(), "");
  MUST(client.patch(kPersistentVolume, {"", "disk"}, PatchType::merge, {{"spec", {{"claimRef", nullptr}}}}));
  settle();
  EXPECT_EQ(events.take(), "FailedScheduling: binding volumes: ClaimRef got reset for pv \"disk\"\n");
  clock.advance(10s);
  settle();
  ASSERT_TRUE(has_claim()) << "it is free, and chosen again";
  EXPECT_EQ(events.take(), "");
  client.erase(kPersistentVolume, {"", "disk"});
  settle();
  EXPECT_EQ(events.take(), "FailedScheduling: binding volumes: failed to check binding: persistentvolume \"disk\" not found\n");
  clock.advance(10s);
  settle();
  EXPECT_NE(condition("db").find("1 node(s) didn't find available persistent volumes to bind"), std::string::npos)
      << condition("db");
}

// ---- explaining ----

TEST_F(SchedulerTest, explains_every_node_and_what_would_help) {
  put_node("2");
  start();
  put_pod("first", "1500m");
  put_pod("second", "1");
  json::value waits = scheduler.explain(*client.find(kPod, {"default", "second"}));
  EXPECT_EQ(get_string(waits, "state"), "waiting");
  EXPECT_EQ(get_string(waits, "best"), "");
  EXPECT_EQ(get_int(waits, "attempts"), 1);
  EXPECT_EQ(to_text(*find(waits, "missing")), R"x(["node pi: Insufficient cpu (cpu requested 1, free 500m of 2)"])x");
  EXPECT_EQ(to_text(*find(waits, "cures")), R"(["node pi: 500m more cpu"])");
  const json::value& node = get_array(waits, "nodes").front();
  EXPECT_FALSE(get_bool(node, "fits"));
  int refused = 0;
  for (const json::value& filter : get_array(node, "filters")) refused += !get_bool(filter, "ok");
  EXPECT_EQ(refused, 1);

  json::value stands = scheduler.explain(*client.find(kPod, {"default", "first"}));
  EXPECT_EQ(get_string(stands, "state"), "scheduled");
  EXPECT_EQ(get_string(stands, "node"), "pi");
  EXPECT_EQ(get_string(stands, "best"), "pi");  // the pod does not count against itself
  const json::value& score = get_array(get_array(stands, "nodes").front(), "scores").front();
  EXPECT_EQ(get_string(score, "plugin"), "TaintToleration");
  EXPECT_EQ(get_int(score, "total"), get_int(score, "normalized") * get_int(score, "weight"));

  put_pod("gated", "1", R"(,"schedulingGates":[{"name":"wait"}])");
  json::value gated = scheduler.explain(*client.find(kPod, {"default", "gated"}));
  EXPECT_EQ(get_string(gated, "state"), "gated");
  EXPECT_EQ(get_string(gated, "message"), "waiting for scheduling gates: [wait]");
}

}  // namespace
}  // namespace coracle::scheduler
