// SPDX-License-Identifier: Apache-2.0
// ReplicaSet: the requested number of pods, in spite of lost events and failing calls.
#include "daemon/controller/workload/replica_set.h"

#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

ObjectPtr replica(const std::string& name, const json::object& spec, const json::object& status,
                  const json::object& metadata = {}) {
  json::object all{{"name", name}, {"namespace", "default"}, {"uid", name}, {"creationTimestamp", "2024-01-01T00:00:00Z"}};
  for (const auto& [key, value] : metadata) all[key] = value;
  return MUST(Object::make(kPod, {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", all}, {"spec", spec}, {"status", status}}));
}

json::object ready(const char* since, int restarts = 0) {
  return {{"phase", "Running"},
          {"containerStatuses", json::array{{{"restartCount", restarts}}}},
          {"conditions", json::array{{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", since}}}}};
}

TEST(ReplicaSetPlan, removes_first_what_is_missed_least) {
  const json::object on_a{{"nodeName", "a"}}, on_b{{"nodeName", "b"}};
  const char* early = "2024-01-01T00:00:00Z";
  const char* late = "2024-01-02T00:00:00Z";
  struct Row {
    const char* name;
    ObjectPtr goes, stays;
  };
  for (const Row& row : {
           Row{"unassigned", replica("x", {}, {{"phase", "Pending"}}), replica("y", on_a, {{"phase", "Pending"}})},
           Row{"pending", replica("x", on_a, {{"phase", "Pending"}}), replica("y", on_b, {{"phase", "Running"}})},
           Row{"not ready", replica("x", on_a, {{"phase", "Running"}}), replica("y", on_b, ready(early))},
           Row{"cheaper", replica("y", on_a, ready(early)),
               replica("x", on_b, ready(late), {{"annotations", {{"controller.kubernetes.io/pod-deletion-cost", "10"}}}})},
           Row{"ready for less long", replica("x", on_a, ready(late)), replica("y", on_b, ready(early))},
           Row{"restarted more", replica("x", on_a, ready(early, 3)), replica("y", on_b, ready(early, 1))},
           Row{"younger", replica("x", on_a, ready(early), {{"creationTimestamp", late}}), replica("y", on_b, ready(early))},
       }) {
    for (auto active : {std::vector{row.goes, row.stays}, std::vector{row.stays, row.goes}}) {
      ReplicaSetPlan plan = plan_replica_set(1, active, active);
      ASSERT_EQ(plan.remove.size(), 1u) << row.name;
      EXPECT_EQ(plan.remove[0]->name(), row.goes->name()) << row.name;
    }
  }
}

TEST(ReplicaSetPlan, crowded_nodes_give_first) {
  auto a1 = replica("a1", {{"nodeName", "a"}}, ready("2024-01-01T00:00:00Z"));
  auto b1 = replica("b1", {{"nodeName", "b"}}, ready("2024-01-01T00:00:00Z"));
  auto other = replica("other", {{"nodeName", "b"}}, ready("2024-01-01T00:00:00Z"));
  EXPECT_EQ(plan_replica_set(1, {a1, b1}, {a1, b1, other}).remove[0]->name(), "b1");
}

// A spec may have megabytes, and each of a set's pods changes the status.
TEST(UpdateStatus, sends_no_spec_and_nothing_that_is_there) {
  struct Client : FakeClient {
    std::vector<json::value> sent;
    Result<ObjectPtr> update(const Kind& kind, const json::value& body, const UpdateOptions& options) override {
      sent.push_back(body);
      return FakeClient::update(kind, body, options);
    }
  } client;
  ObjectPtr set = client.put(kReplicaSet, R"({"metadata":{"name":"web","namespace":"default","labels":{"a":"b"}},
    "spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}}},"status":{"replicas":2}})");
  ObjectPtr written = MUST(update_status(client, *set, {{"replicas", 3}}));
  ASSERT_TRUE(written);
  EXPECT_EQ(to_text(view::ReplicaSet(*written).status().raw()), R"({"replicas":3})");
  EXPECT_EQ(view::ReplicaSet(*written).spec().replicas(), 3);
  EXPECT_EQ(written->label("a"), "b");
  ASSERT_EQ(client.sent.size(), 1u);
  EXPECT_FALSE(find(client.sent[0], "spec"));
  EXPECT_FALSE(MUST(update_status(client, *written, {{"replicas", 3}})));
  EXPECT_EQ(client.sent.size(), 1u);
}

TEST(ReplicaSetPlan, creates_no_more_than_a_burst) {
  EXPECT_EQ(plan_replica_set(3, {}, {}).create, 3);
  EXPECT_EQ(plan_replica_set(100000, {}, {}).create, kReplicaSetBurst);
}

struct ReplicaSetTest : Bench {
  void put_set(int replicas, const std::string& extra = "") {
    client.put(kReplicaSet, R"({"metadata":{"name":"web","namespace":"default","uid":"set-uid","generation":1},
      "spec":{"replicas":)" + std::to_string(replicas) +
                                extra + R"(,"selector":{"matchLabels":{"app":"web"}},
      "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  }
  int64_t status(const char* name) {
    return get_int(client.find(kReplicaSet, {"default", "web"})->json(), std::string("status.") + name);
  }
};

TEST_F(ReplicaSetTest, makes_pods_and_counts_them) {
  start();
  put_set(3);
  settle();
  ASSERT_EQ(count(kPod), 3u);
  ObjectPtr pod = client.all(kPod)[0];
  EXPECT_EQ(pod->controller()->uid, "set-uid");
  EXPECT_EQ(pod->label("app"), "web");
  EXPECT_EQ(status("replicas"), 3);
  EXPECT_EQ(status("readyReplicas"), 0);
  EXPECT_EQ(status("observedGeneration"), 1);
  EXPECT_TRUE(events.has("SuccessfulCreate", "Created pod: " + pod->name()));
  play_kubelet();
  EXPECT_EQ(status("readyReplicas"), 3);
  EXPECT_EQ(status("availableReplicas"), 3);

  client.clear_calls();
  pass(std::chrono::seconds(60));
  EXPECT_TRUE(client.calls().empty()) << client.calls()[0];  // when nothing changes, nothing is written or read
}

// The older kind: its selector is a map of labels, and its status does not count terminating pods.
TEST_F(ReplicaSetTest, a_replication_controller_does_the_same) {
  auto put = [&](int replicas) {
    client.put(kReplicationController,
               R"({"metadata":{"name":"web","namespace":"default","uid":"rc-uid","generation":1},"spec":{"replicas":)" +
                   std::to_string(replicas) + R"(,"selector":{"app":"web"},"template":{"metadata":{"labels":{"app":"web"}},
                                "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  };
  client.put(kPod, R"({"metadata":{"name":"orphan","namespace":"default","uid":"o","labels":{"app":"web"}},"spec":{}})");
  client.put(kPod, R"({"metadata":{"name":"other","namespace":"default","uid":"p","labels":{"app":"x"}},"spec":{}})");
  start();
  put(2);
  settle();
  ASSERT_EQ(count(kPod), 3u) << "one was there and is adopted, another matches nothing";
  EXPECT_EQ(client.find(kPod, {"default", "orphan"})->controller()->kind, "ReplicationController");
  EXPECT_FALSE(client.find(kPod, {"default", "other"})->controller());
  play_kubelet();
  settle();
  auto status = [&](const std::string& name) {
    return get_int(client.find(kReplicationController, {"default", "web"})->json(), "status." + name);
  };
  EXPECT_EQ(status("replicas"), 2);
  EXPECT_EQ(status("availableReplicas"), 2);
  put(1);
  settle();
  EXPECT_EQ(status("replicas"), 1);
  EXPECT_FALSE(find(client.find(kReplicationController, {"default", "web"})->json(), "status.terminatingReplicas"));
}

TEST_F(ReplicaSetTest, replaces_a_vanished_pod_and_removes_one_too_many) {
  start();
  put_set(2);
  settle();
  play_kubelet();
  client.erase(kPod, client.all(kPod)[0]->key());
  settle();
  EXPECT_EQ(count(kPod), 2u);
  play_kubelet();
  put_set(1);
  settle();
  play_kubelet();
  EXPECT_EQ(count(kPod), 1u);
  EXPECT_EQ(status("replicas"), 1);
}

// The selectors of sets are not parsed again for every change of an unowned pod.
TEST_F(ReplicaSetTest, pods_of_nobody_are_held_against_many_large_selectors) {
  start();
  std::string terms;
  for (int i = 0; i < 500; ++i)
    terms += (i ? "," : "") + (R"({"key":"k)" + std::to_string(i) + R"(","operator":"NotIn","values":["some","others"]})");
  for (int i = 0; i < 20; ++i)
    client.put(kReplicaSet,
               R"({"metadata":{"name":"s)" + std::to_string(i) + R"(","namespace":"default"},"spec":{"replicas":0,)" +
                   R"("selector":{"matchLabels":{"app":"web"},"matchExpressions":[)" + terms + R"(]},"template":{}}})");
  settle();
  for (int i = 0; i < 30; ++i)
    client.put(kPod, R"({"metadata":{"name":"p)" + std::to_string(i % 10) + R"(","namespace":"default","labels":{"app":"db"},)" +
                         R"("annotations":{"n":")" + std::to_string(i) + R"("}},"spec":{}})");
  settle();
  EXPECT_EQ(count(kPod), 10u);
  for (const ObjectPtr& pod : client.all(kPod)) EXPECT_FALSE(pod->controller());
  client.put(kPod, R"({"metadata":{"name":"fits","namespace":"default","labels":{"app":"web"}},"spec":{}})");
  settle();
  ObjectPtr fits = client.find(kPod, {"default", "fits"});
  EXPECT_TRUE(!fits || fits->controller()) << "it was adopted, and is one too many";
}

TEST_F(ReplicaSetTest, adopts_a_matching_orphan_and_lets_go_of_what_matches_no_more) {
  client.put(kPod, R"({"metadata":{"name":"orphan","namespace":"default","uid":"o","labels":{"app":"web"}},"spec":{}})");
  start();
  put_set(2);
  settle();
  EXPECT_EQ(count(kPod), 2u);
  EXPECT_EQ(client.find(kPod, {"default", "orphan"})->controller()->uid, "set-uid");
  MUST(client.patch(kPod, {"default", "orphan"}, PatchType::merge, {{"metadata", {{"labels", {{"app", "mine"}}}}}}));
  settle();
  EXPECT_FALSE(client.find(kPod, {"default", "orphan"})->controller());
  EXPECT_EQ(count(kPod), 3u);  // the orphan and two of its own
}

TEST_F(ReplicaSetTest, a_set_that_is_gone_before_its_cache_knows_makes_nothing) {
  start();
  put_set(1);
  settle();
  ASSERT_EQ(count(kPod), 1u);
  MUST(client.patch(kReplicaSet, {"default", "web"}, PatchType::merge, {{"metadata", {{"finalizers", {"example.com/holds"}}}}}));
  settle();
  client.lose_event();
  MUST(client.remove(kReplicaSet, {"default", "web"}));
  client.erase(kPod, client.all(kPod).front()->key());
  client.put(kPod, R"({"metadata":{"name":"orphan","namespace":"default","uid":"o","labels":{"app":"web"}},"spec":{}})");
  settle();
  EXPECT_EQ(count(kPod), 1u) << "the orphan may be its own already";
  EXPECT_FALSE(client.find(kPod, {"default", "orphan"})->controller());
}

TEST_F(ReplicaSetTest, a_failing_creation_is_told_and_tried_again) {
  start();
  for (int times = 0; times < 6; ++times) client.fail(2, Error(Code::forbidden, "quota exceeded"), "create pods");
  put_set(3);
  settle();
  EXPECT_EQ(count(kPod), 1u);
  EXPECT_TRUE(events.has("FailedCreate", "Error creating: quota exceeded"));
  const json::value* failure =
      find_condition(get_array(client.find(kReplicaSet, {"default", "web"})->json(), "status.conditions"), "ReplicaFailure");
  ASSERT_TRUE(failure);
  EXPECT_EQ(get_string(*failure, "reason"), "FailedCreate");
  pass(std::chrono::seconds(5));
  EXPECT_EQ(count(kPod), 3u);
  EXPECT_FALSE(
      find_condition(get_array(client.find(kReplicaSet, {"default", "web"})->json(), "status.conditions"), "ReplicaFailure"));
}

TEST_F(ReplicaSetTest, any_single_failing_call_heals) {
  for (int nth = 1; nth <= 12; ++nth) {
    FakeClock clock;
    FakeClient client(clock);
    CollectedEvents events;
    Informers informers(client);
    Manager manager(client, informers, events, built_in_catalogs(), {}, clock);
    MUST(informers.start());
    client.settle();
    client.clear_calls();
    client.fail(nth, Error(Code::unavailable, "disk is full"));
    client.put(kReplicaSet, R"({"metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"replicas":3,
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{}}}})");
    for (int second = 0; second < 5; ++second) {
      for (client.settle(); manager.run_once(); client.settle()) {
      }
      clock.advance(std::chrono::seconds(1));
    }
    EXPECT_EQ(client.all(kPod).size(), 3u) << nth;
    EXPECT_EQ(get_int(client.find(kReplicaSet, {"default", "web"})->json(), "status.replicas"), 3) << nth;
  }
}

TEST_F(ReplicaSetTest, a_lost_event_delays_but_does_not_double) {
  start();
  put_set(2);
  client.settle();
  client.lose_event(2);  // the creation of the second pod
  settle();
  EXPECT_EQ(count(kPod), 2u);
  client.end_watches(Error(Code::unavailable, "dropped"));  // the cache becomes current again
  client.settle();
  while (informers.of(kPod).size() < 2 && informers.synced()) std::this_thread::yield();
  pass(OwnWrites::kTimeout + std::chrono::seconds(5));
  EXPECT_EQ(count(kPod), 2u);
  EXPECT_EQ(status("replicas"), 2);
}

// The status that a node gives to a pod that it refuses.
void refuse(Bench& bench) {
  for (const ObjectPtr& pod : bench.client.all(kPod))
    if (pod_active(*pod)) bench.client.set_status(kPod, pod->key(), R"({"phase":"Failed","reason":"NodeAffinity"})");
  bench.settle();
}

TEST_F(ReplicaSetTest, pods_that_fail_at_once_are_replaced_more_and_more_slowly) {
  start();
  put_set(1);
  settle();
  refuse(*this);
  EXPECT_EQ(count(kPod), 2u) << "the first is replaced at once";
  std::vector<int> made_at;
  for (int second = 1; second <= 3600; ++second) {
    refuse(*this);
    size_t before = count(kPod);
    pass(std::chrono::seconds(1));
    if (count(kPod) != before) made_at.push_back(second);
  }
  ASSERT_GE(made_at.size(), 12u);
  EXPECT_EQ(std::vector(made_at.begin(), made_at.begin() + 6), (std::vector{1, 3, 7, 15, 31, 63}));
  EXPECT_LE(made_at.size(), 20u) << "every five minutes in the end";
  EXPECT_EQ(status("replicas"), 0);
}

TEST_F(ReplicaSetTest, only_successors_of_failed_pods_wait) {
  start();
  put_set(1);
  settle();
  refuse(*this);
  refuse(*this);
  EXPECT_EQ(status("replicas"), 0) << "the second has failed too, and its successor waits";
  put_set(3);
  settle();
  EXPECT_EQ(status("replicas"), 2) << "two are new";
  play_kubelet();
  pass(std::chrono::seconds(1));
  play_kubelet();
  EXPECT_EQ(status("readyReplicas"), 3);

  std::vector<ObjectPtr> pods = client.all(kPod);
  auto running = std::find_if(pods.begin(), pods.end(), [](const ObjectPtr& each) { return pod_active(*each); });
  client.erase(kPod, (*running)->key());
  settle();
  EXPECT_EQ(status("replicas"), 3) << "who was removed is replaced at once, whatever failed long ago";
}

TEST_F(ReplicaSetTest, availability_comes_later_with_min_ready_seconds) {
  start();
  put_set(1, R"(,"minReadySeconds":10)");
  settle();
  play_kubelet();
  EXPECT_EQ(status("readyReplicas"), 1);
  EXPECT_EQ(status("availableReplicas"), 0);
  pass(std::chrono::seconds(11));
  EXPECT_EQ(status("availableReplicas"), 1);
}

}  // namespace
}  // namespace coracle::controller
