// SPDX-License-Identifier: Apache-2.0
// Counting controllers: quota usage, disruption budgets, and whether deleted storage is still in use.
#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

struct BudgetsTest : Bench {
  void put_pod(const std::string& name, const std::string& rest = "", const std::string& labels = R"("app":"web")",
               const std::string& metadata = "") {
    client.put(
        kPod,
        R"({"metadata":{"name":")" + name + R"(","namespace":"default","labels":{)" + labels + "}" + metadata +
            R"(},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"250m"}}}]},"status":{"phase":"Running")" +
            rest + "}}");
    settle();
  }
  void put_ready(const std::string& name, const std::string& metadata = "") {
    put_pod(name, R"(,"conditions":[{"type":"Ready","status":"True"}])", R"("app":"web")", metadata);
  }
  json::value status(const Kind& kind, const std::string& name) {
    return *coracle::find(client.find(kind, {"default", name})->json(), "status");
  }

  void put_quota(const std::string& hard, const std::string& status = "{}") {
    client.put(kResourceQuota,
               R"({"metadata":{"name":"q","namespace":"default"},"spec":{"hard":{)" + hard + R"(}},"status":)" + status + "}");
    settle();
  }
  std::string used(std::string_view name) {
    return std::string(get_object(status(kResourceQuota, "q"), "used").at(name).as_string());
  }

  void put_budget(const std::string& spec) {
    client.put(
        kPodDisruptionBudget,
        R"({"metadata":{"name":"b","namespace":"default","generation":3},"spec":{"selector":{"matchLabels":{"app":"web"}})" +
            spec + "}}");
    settle();
  }
  int64_t count(const char* field) { return get_int(status(kPodDisruptionBudget, "b"), field, -1); }
  std::string owned_by(const Kind& kind, const std::string& name) {
    ObjectPtr owner = client.find(kind, {"default", name});
    return R"(,"ownerReferences":[{"apiVersion":")" + owner->kind().api_version() + R"(","kind":")" +
           std::string(owner->kind().kind) + R"(","name":")" + name + R"(","uid":")" + owner->uid() + R"(","controller":true}])";
  }
};

// ---- quotas ----

TEST_F(BudgetsTest, a_quota_is_counted_and_given_back) {
  start();
  put_pod("a"), put_pod("b");
  client.put(kConfigMap, R"({"metadata":{"name":"x","namespace":"default"}})");
  put_quota(R"("pods":"5","requests.cpu":"2","count/configmaps":"9","example":"1")");
  EXPECT_EQ(used("pods"), "2");
  EXPECT_EQ(used("requests.cpu"), "500m");
  EXPECT_EQ(used("count/configmaps"), "1");
  EXPECT_EQ(get_object(status(kResourceQuota, "q"), "hard").size(), 4u);
  EXPECT_FALSE(get_object(status(kResourceQuota, "q"), "used").contains("example")) << "nobody counts it";
  client.erase(kPod, {"default", "a"});
  settle();
  EXPECT_EQ(used("pods"), "1");
  client.set_status(kPod, {"default", "b"}, R"({"phase":"Succeeded"})");
  settle();
  EXPECT_EQ(used("pods"), "0") << "one that has ended uses nothing";
  EXPECT_EQ(used("requests.cpu"), "0");
}

TEST_F(BudgetsTest, a_pod_that_asks_for_less_gives_back) {
  start();
  put_pod("a");
  put_quota(R"("requests.cpu":"2")");
  EXPECT_EQ(used("requests.cpu"), "250m");
  MUST(
      client.patch(kPod, {"default", "a"}, PatchType::merge,
                   {{"spec", {{"containers", json::array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", "100m"}}}}}}}}}}}));
  settle();
  EXPECT_EQ(used("requests.cpu"), "100m");
}

TEST_F(BudgetsTest, a_pod_that_should_be_gone_counts_no_more) {
  start();
  put_pod("a");
  client.put(kPod, R"({"metadata":{"name":"stuck","namespace":"default","deletionGracePeriodSeconds":30,"deletionTimestamp":")" +
                       format_time(clock.now() + std::chrono::seconds(5)) +
                       R"("},"spec":{"nodeName":"pi"},"status":{"phase":"Running"}})");
  put_quota(R"("pods":"5")");
  EXPECT_EQ(used("pods"), "2");
  pass(std::chrono::seconds(30));
  EXPECT_EQ(used("pods"), "2");
  pass(std::chrono::seconds(10));
  EXPECT_EQ(used("pods"), "1");
}

TEST_F(BudgetsTest, a_quota_that_says_so_already_is_not_written) {
  start();
  put_pod("a");
  put_quota(R"("pods":"5")", R"({"hard":{"pods":"5"},"used":{"pods":"1"}})");
  client.clear_calls();
  client.put(kConfigMap, R"({"metadata":{"name":"x","namespace":"default"}})");
  client.erase(kConfigMap, {"default", "x"});
  settle();
  for (const std::string& call : client.calls()) EXPECT_FALSE(call.starts_with("update resourcequotas")) << call;
}

TEST_F(BudgetsTest, a_charge_does_not_count_all_objects_again) {
  start();
  client.put(kConfigMap, R"({"metadata":{"name":"x","namespace":"default"}})");
  put_quota(R"("count/configmaps":"9")");
  ASSERT_EQ(used("count/configmaps"), "1");
  auto lists = [&](const std::string& amounts) {
    client.clear_calls();
    client.set_status(kResourceQuota, {"default", "q"}, R"({"hard":{"count/configmaps":"9"},"used":{)" + amounts + "}}");
    settle();
    std::vector<std::string> calls = client.calls();
    return std::count(calls.begin(), calls.end(), "list configmaps");
  };
  client.put(kConfigMap, R"({"metadata":{"name":"y","namespace":"default"}})");
  EXPECT_EQ(lists(R"("count/configmaps":"2")"), 0) << "admission has charged it with the object";
  EXPECT_EQ(used("count/configmaps"), "2");
  EXPECT_GE(lists(R"("count/configmaps":"1")"), 1) << "nobody gives back but this controller";
  EXPECT_EQ(used("count/configmaps"), "2");
  EXPECT_GE(lists(""), 1);
  EXPECT_EQ(used("count/configmaps"), "2");
  client.clear_calls();
  put_quota(R"("count/configmaps":"10")", R"({"hard":{"count/configmaps":"9"},"used":{"count/configmaps":"2"}})");
  EXPECT_EQ(get_string(status(kResourceQuota, "q"), "hard.count/configmaps"), "10");
}

TEST_F(BudgetsTest, some_minutes_after_a_charge_all_is_counted_again) {
  start();
  client.put(kConfigMap, R"({"metadata":{"name":"x","namespace":"default"}})");
  put_quota(R"("count/configmaps":"9")");
  for (const char* name : {"y", "z"})
    client.put(kConfigMap, R"({"metadata":{"name":")" + std::string(name) + R"(","namespace":"default"}})");
  client.set_status(kResourceQuota, {"default", "q"}, R"({"hard":{"count/configmaps":"9"},"used":{"count/configmaps":"2"}})");
  settle();
  EXPECT_EQ(used("count/configmaps"), "2") << "one of them was not charged";
  clock.advance(std::chrono::minutes(5));
  settle();
  EXPECT_EQ(used("count/configmaps"), "3");
}

TEST_F(BudgetsTest, a_charge_in_between_is_counted_too) {
  start();
  put_pod("a");
  client.fail(1, Error(Code::conflict, "somebody charged it"), "update resourcequotas");
  put_quota(R"("pods":"5")");
  pass(std::chrono::seconds(10));
  EXPECT_EQ(used("pods"), "1");
}

// ---- disruption budgets ----

TEST_F(BudgetsTest, a_number_that_must_stay) {
  start();
  put_ready("a"), put_ready("b"), put_pod("c");
  put_budget(R"(,"minAvailable":1)");
  EXPECT_EQ(count("currentHealthy"), 2);
  EXPECT_EQ(count("desiredHealthy"), 1);
  EXPECT_EQ(count("expectedPods"), 3);
  EXPECT_EQ(count("disruptionsAllowed"), 1);
  EXPECT_EQ(count("observedGeneration"), 3);
  const json::value condition = get_array(status(kPodDisruptionBudget, "b"), "conditions")[0];
  EXPECT_EQ(get_string(condition, "type"), "DisruptionAllowed");
  EXPECT_EQ(get_string(condition, "status"), "True");
  EXPECT_EQ(get_string(condition, "reason"), "SufficientPods");
  client.set_status(kPod, {"default", "a"}, R"({"phase":"Running","conditions":[{"type":"Ready","status":"False"}]})");
  settle();
  EXPECT_EQ(count("disruptionsAllowed"), 0);
  EXPECT_EQ(get_string(get_array(status(kPodDisruptionBudget, "b"), "conditions")[0], "reason"), "InsufficientPods");
}

TEST_F(BudgetsTest, a_share_of_what_the_deployment_wants) {
  start();
  client.put(
      kDeployment,
      R"({"metadata":{"name":"d","namespace":"default","uid":"du"},"spec":{"replicas":4,"selector":{"matchLabels":{"app":"web"}},
    "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  settle();
  play_kubelet();
  ASSERT_EQ(client.all(kPod).size(), 4u);
  put_budget(R"(,"maxUnavailable":"30%")");
  EXPECT_EQ(count("expectedPods"), 4);
  EXPECT_EQ(count("desiredHealthy"), 2) << "30 % of 4, rounded up, may be away";
  EXPECT_EQ(count("currentHealthy"), 4);
  EXPECT_EQ(count("disruptionsAllowed"), 2);
  put_budget(R"(,"minAvailable":"80%")");
  EXPECT_EQ(count("desiredHealthy"), 4);
  EXPECT_EQ(count("disruptionsAllowed"), 0);
}

TEST_F(BudgetsTest, is_counted_anew_when_more_are_wanted_and_none_can_come) {
  start();
  client.put(kReplicationController,
             R"({"metadata":{"name":"rc","namespace":"default","uid":"ru"},"spec":{"replicas":2,"selector":{"app":"web"},
    "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  settle();
  play_kubelet();
  put_budget(R"(,"minAvailable":"50%")");
  EXPECT_EQ(count("expectedPods"), 2);
  client.fail(1, Error(Code::forbidden, "exceeded quota"), "create pods");
  MUST(client.patch(kReplicationController, {"default", "rc"}, PatchType::merge, {{"spec", {{"replicas", 6}}}}));
  settle();
  EXPECT_EQ(count("expectedPods"), 6);
  EXPECT_EQ(count("desiredHealthy"), 3);
}

TEST_F(BudgetsTest, who_has_ended_is_not_healthy_whatever_its_node_said_before_it_vanished) {
  start();
  put_ready("a");
  put_pod("b", R"(,"conditions":[{"type":"Ready","status":"True"}])");
  put_budget(R"(,"minAvailable":1)");
  EXPECT_EQ(count("currentHealthy"), 2);
  client.set_status(kPod, {"default", "b"}, R"({"phase":"Failed","conditions":[{"type":"Ready","status":"True"}]})");
  settle();
  EXPECT_EQ(count("currentHealthy"), 1);
  EXPECT_EQ(count("disruptionsAllowed"), 0);
}

TEST_F(BudgetsTest, who_cannot_be_counted_allows_nothing) {
  start();
  put_ready("a", R"(,"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Robot","name":"j","uid":"u","controller":true}])");
  put_budget(R"(,"maxUnavailable":1)");
  EXPECT_EQ(count("disruptionsAllowed"), 0);
  EXPECT_EQ(count("observedGeneration"), 3);
  const json::value condition = get_array(status(kPodDisruptionBudget, "b"), "conditions")[0];
  EXPECT_EQ(get_string(condition, "reason"), "SyncFailed");
  EXPECT_EQ(get_string(condition, "message"), "robots.example.com does not implement the scale subresource");
  EXPECT_TRUE(events.has("CalculateExpectedPodCountFailed", "robots.example.com"));
}

TEST_F(BudgetsTest, a_question_that_is_not_answered_is_asked_again) {
  start();
  client.put(
      kDeployment,
      R"({"metadata":{"name":"d","namespace":"default","uid":"du"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},
    "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  settle();
  play_kubelet();
  for (const char* question : {"get replicasets", "get deployments"}) {
    for (int times = 0; times < 2; ++times) client.fail(1, Error(Code::timeout, "no time"), question);
    put_budget(R"(,"maxUnavailable":1)");
    pass(std::chrono::seconds(5));
    EXPECT_EQ(count("expectedPods"), 3) << question;
    EXPECT_EQ(count("disruptionsAllowed"), 1) << question;
  }
}

TEST_F(BudgetsTest, pods_that_nobody_manages_count_for_nothing_and_that_is_told) {
  start();
  put_ready("a");
  put_budget(R"(,"maxUnavailable":1)");
  EXPECT_EQ(count("expectedPods"), 0);
  EXPECT_EQ(count("disruptionsAllowed"), 0);
  EXPECT_TRUE(events.has("UnmanagedPods", "please set \".spec.minAvailable\" field of the PDB to an integer value"));
}

TEST_F(BudgetsTest, an_evicted_pod_counts_as_gone_for_two_minutes) {
  start();
  put_ready("a"), put_ready("b");
  put_budget(R"(,"minAvailable":1)");
  json::value charged = status(kPodDisruptionBudget, "b");
  charged.as_object()["disruptedPods"] = json::object{{"a", format_time(clock.now())}, {"gone", format_time(clock.now())}};
  client.set_status(kPodDisruptionBudget, {"default", "b"}, to_text(charged));
  settle();
  EXPECT_EQ(count("currentHealthy"), 1);
  EXPECT_EQ(count("disruptionsAllowed"), 0);
  EXPECT_EQ(get_object(status(kPodDisruptionBudget, "b"), "disruptedPods").size(), 1u) << "only who is there";
  pass(std::chrono::seconds(125));
  EXPECT_EQ(count("currentHealthy"), 2);
  EXPECT_EQ(count("disruptionsAllowed"), 1);
  EXPECT_TRUE(get_object(status(kPodDisruptionBudget, "b"), "disruptedPods").empty());
  EXPECT_TRUE(events.has("NotDeleted", "Pod was expected by PDB default/b to be deleted but it wasn't"));
}

TEST_F(BudgetsTest, a_pod_that_was_told_to_go_and_stays_is_told_no_more) {
  start();
  auto told = [&](const char* reason) {
    return R"(,"conditions":[{"type":"Ready","status":"True"},{"type":"DisruptionTarget","status":"True","reason":")" +
           std::string(reason) + R"(","message":"go","lastTransitionTime":")" + format_time(clock.now()) + R"("}])";
  };
  auto condition = [&](const char* name) -> json::value {
    return *find_condition(get_array(status(kPod, name), "conditions"), "DisruptionTarget");
  };
  put_pod("stays", told("PreemptionByScheduler"));
  put_pod("nodes", told("TerminationByKubelet"));
  put_pod("goes", told("PreemptionByScheduler"), R"("app":"web")",
          R"(,"deletionTimestamp":"2024-01-01T00:00:00Z","finalizers":["a/b"])");
  pass(std::chrono::seconds(118));
  EXPECT_EQ(get_string(condition("stays"), "status"), "True");
  pass(std::chrono::seconds(3));
  EXPECT_EQ(to_text(condition("stays")), R"({"type":"DisruptionTarget","status":"False","lastTransitionTime":")" +
                                             format_time(clock.now() - std::chrono::seconds(1)) + "\"}");
  EXPECT_EQ(get_array(status(kPod, "stays"), "conditions").size(), 2u);
  EXPECT_EQ(get_string(condition("nodes"), "status"), "True") << "a node takes its time";
  EXPECT_EQ(get_string(condition("goes"), "status"), "True");
}

// ---- storage ----

TEST_F(BudgetsTest, a_claim_goes_when_no_pod_uses_it_any_more) {
  start();
  client.put(kPersistentVolumeClaim,
             R"({"metadata":{"name":"data","namespace":"default","finalizers":["kubernetes.io/pvc-protection"]}})");
  client.put(
      kPod,
      R"({"metadata":{"name":"p","namespace":"default"},"spec":{"nodeName":"pi","volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]},"status":{"phase":"Running"}})");
  settle();
  MUST(client.remove(kPersistentVolumeClaim, {"default", "data"}));
  settle();
  ASSERT_TRUE(client.find(kPersistentVolumeClaim, {"default", "data"})) << "a pod uses it";
  client.set_status(kPod, {"default", "p"}, R"({"phase":"Succeeded"})");
  settle();
  ASSERT_TRUE(client.find(kPersistentVolumeClaim, {"default", "data"})) << "one that has ended is there all the same";
  client.erase(kPod, {"default", "p"});
  settle();
  EXPECT_FALSE(client.find(kPersistentVolumeClaim, {"default", "data"}));
}

TEST_F(BudgetsTest, a_claim_of_a_pods_own_does_not_wait_for_what_keeps_the_pod) {
  start();
  const std::string finalizers = R"(,"finalizers":["kubernetes.io/pvc-protection"])";
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"p-own","namespace":"default","ownerReferences":[
    {"apiVersion":"v1","kind":"Pod","name":"p","uid":"uid-p","controller":true}])" +
                                         finalizers + "}}");
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"p-others","namespace":"default")" + finalizers + "}}");
  auto put_pod = [&](const std::string& grace) {  // it terminates, then only its finalizer keeps it
    client.put(kPod,
               R"({"metadata":{"name":"p","namespace":"default","uid":"uid-p","finalizers":["a/b"],
      "deletionTimestamp":"2024-01-01T00:00:00Z","deletionGracePeriodSeconds":)" +
                   grace +
                   R"(},"spec":{"nodeName":"pi","volumes":[{"name":"own","ephemeral":{}},{"name":"others","ephemeral":{}}]}})");
    settle();
  };
  put_pod("30");
  for (const char* name : {"p-own", "p-others"}) MUST(client.remove(kPersistentVolumeClaim, {"default", name}));
  settle();
  EXPECT_TRUE(client.find(kPersistentVolumeClaim, {"default", "p-own"}));
  EXPECT_FALSE(client.find(kPersistentVolumeClaim, {"default", "p-others"})) << "it is not the pod's";
  put_pod("0");
  EXPECT_FALSE(client.find(kPersistentVolumeClaim, {"default", "p-own"}));
}

TEST_F(BudgetsTest, a_pods_own_claim_is_made_once_another_of_its_name_is_gone) {
  start();
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"p-own","namespace":"default","uid":"uid-other"}})");
  client.put(kPod, R"({"metadata":{"name":"p","namespace":"default","uid":"uid-p"},"spec":{"volumes":[{"name":"own","ephemeral":{
    "volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}}]}})");
  settle();
  EXPECT_TRUE(events.has("FailedBinding", "PVC default/p-own was not created for pod default/p (pod is not owner)"));
  client.erase(kPersistentVolumeClaim, {"default", "p-own"});
  settle();
  ObjectPtr made = client.find(kPersistentVolumeClaim, {"default", "p-own"});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->controller()->uid, "uid-p");
}

TEST_F(BudgetsTest, what_protects_is_there_again) {
  start();
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"default","finalizers":["a/b"]}})");
  client.put(kPersistentVolume, R"({"metadata":{"name":"disk"}})");
  client.put(kVolumeAttributesClass, R"({"metadata":{"name":"gold"},"driverName":"example.com"})");
  settle();
  auto finalizers = [&](const Kind& kind, const Key& key) {
    return to_text(*find(client.find(kind, key)->json(), "metadata.finalizers"));
  };
  EXPECT_EQ(finalizers(kPersistentVolumeClaim, {"default", "data"}), R"(["a/b","kubernetes.io/pvc-protection"])");
  EXPECT_EQ(finalizers(kPersistentVolume, {"", "disk"}), R"(["kubernetes.io/pv-protection"])");
  EXPECT_EQ(finalizers(kVolumeAttributesClass, {"", "gold"}), R"(["kubernetes.io/vac-protection"])");
}

TEST_F(BudgetsTest, a_claim_goes_also_when_the_pods_could_not_be_listed_at_first) {
  start();
  client.put(kPersistentVolumeClaim,
             R"({"metadata":{"name":"data","namespace":"default","finalizers":["kubernetes.io/pvc-protection"]}})");
  settle();
  client.fail(1, Error(Code::timeout, "no time"), "list pods");
  MUST(client.remove(kPersistentVolumeClaim, {"default", "data"}));
  pass(std::chrono::seconds(5));
  EXPECT_FALSE(client.find(kPersistentVolumeClaim, {"default", "data"}));
}

TEST_F(BudgetsTest, many_claims_that_go_together_have_the_pods_listed_once) {
  start();
  constexpr int kMany = 50;
  std::string volumes;
  for (int i = 0; i < kMany; ++i) {
    std::string name = "data" + std::to_string(i);
    client.put(kPersistentVolumeClaim,
               R"({"metadata":{"name":")" + name + R"(","namespace":"default","finalizers":["kubernetes.io/pvc-protection"]}})");
    volumes += (i ? "," : "") + (R"({"name":")" + name + R"(","persistentVolumeClaim":{"claimName":")" + name + "\"}}");
  }
  for (const char* name : {"p", "q"})
    client.put(kPod, R"({"metadata":{"name":")" + std::string(name) +
                         R"(","namespace":"default"},"spec":{"nodeName":"pi","volumes":[)" + volumes +
                         R"(]},"status":{"phase":"Running"}})");
  settle();
  auto lists = [&] {
    auto calls = client.calls();
    return std::ranges::count_if(calls, [](const std::string& call) { return call.starts_with("list pods"); });
  };
  client.clear_calls();
  for (int i = 0; i < kMany; ++i) MUST(client.remove(kPersistentVolumeClaim, {"default", "data" + std::to_string(i)}));
  settle();
  EXPECT_EQ(client.all(kPersistentVolumeClaim).size(), size_t(kMany));
  EXPECT_EQ(lists(), 1);
  client.erase(kPod, {"default", "p"});
  settle();
  EXPECT_EQ(client.all(kPersistentVolumeClaim).size(), size_t(kMany)) << "the other one uses them";
  EXPECT_EQ(lists(), 2);
  client.erase(kPod, {"default", "q"});
  settle();
  EXPECT_EQ(client.all(kPersistentVolumeClaim).size(), 0u);
  EXPECT_EQ(lists(), 3);
}

// A pod without a node will not start with a claim that is being deleted, so the claim does not wait for it.
TEST_F(BudgetsTest, a_claim_does_not_wait_for_pods_without_a_node) {
  start();
  client.put(kPersistentVolumeClaim,
             R"({"metadata":{"name":"data","namespace":"default","finalizers":["kubernetes.io/pvc-protection"]}})");
  client.put(
      kPod,
      R"({"metadata":{"name":"p","namespace":"default"},"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]},"status":{"phase":"Pending"}})");
  settle();
  MUST(client.remove(kPersistentVolumeClaim, {"default", "data"}));
  settle();
  EXPECT_FALSE(client.find(kPersistentVolumeClaim, {"default", "data"}));
}

TEST_F(BudgetsTest, a_claim_that_nobody_used_goes_at_once_and_a_volume_when_it_is_free) {
  start();
  client.put(kPersistentVolumeClaim,
             R"({"metadata":{"name":"data","namespace":"default","finalizers":["kubernetes.io/pvc-protection"]}})");
  client.put(kPersistentVolumeClaim,
             R"({"metadata":{"name":"user","namespace":"default","uid":"user"},"spec":{"volumeName":"disk"}})");
  client.put(kPersistentVolume, R"({"metadata":{"name":"disk","finalizers":["kubernetes.io/pv-protection"]},"spec":{
    "claimRef":{"namespace":"default","name":"user","uid":"user"}},"status":{"phase":"Bound"}})");
  settle();
  MUST(client.remove(kPersistentVolumeClaim, {"default", "data"}));
  MUST(client.remove(kPersistentVolume, {"", "disk"}));
  settle();
  EXPECT_FALSE(client.find(kPersistentVolumeClaim, {"default", "data"}));
  ASSERT_TRUE(client.find(kPersistentVolume, {"", "disk"}));
  client.erase(kPersistentVolumeClaim, {"default", "user"});
  settle();
  EXPECT_FALSE(client.find(kPersistentVolume, {"", "disk"}));
}

}  // namespace
}  // namespace coracle::controller
