// SPDX-License-Identifier: Apache-2.0
// Deployments that roll out over simulated pods: the bounds hold at every step, and each rollout completes.
#include "daemon/controller/workload/deployment.h"

#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

struct DeploymentTest : Bench {
  const Key key{"default", "web"};

  void put(int replicas, const std::string& image, const std::string& extra = "", int generation = 1) {
    std::string annotations;
    if (ObjectPtr present = client.find(kDeployment, key))
      annotations = R"(,"annotations":)" + to_text(get_object(present->json(), "metadata.annotations"));
    client.put(kDeployment, R"({"metadata":{"name":"web","namespace":"default","uid":"dep","generation":)" +
                                std::to_string(generation) + annotations + R"(},"spec":{"replicas":)" + std::to_string(replicas) +
                                R"(,"progressDeadlineSeconds":600,"revisionHistoryLimit":2)" + extra +
                                R"(,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
        "spec":{"containers":[{"name":"c","image":")" +
                                image + R"("}]}}}})");
  }
  void change(json::value patch) {
    MUST(client.patch(kDeployment, key, PatchType::merge, patch));
    settle();
  }
  void set_image(const std::string& image) {
    change({{"spec", {{"template", {{"spec", {{"containers", json::array{{{"name", "c"}, {"image", image}}}}}}}}}}});
  }
  ObjectPtr deployment() { return client.find(kDeployment, key); }
  int64_t status(const char* name) { return get_int(deployment()->json(), std::string("status.") + name); }
  std::string reason(std::string_view type) {
    const json::value* found = find_condition(get_array(deployment()->json(), "status.conditions"), type);
    return found ? std::string(get_string(*found, "status")) + "/" + std::string(get_string(*found, "reason")) : "";
  }
  ObjectPtr set_of(const std::string& image) {
    for (const ObjectPtr& set : client.all(kReplicaSet))
      if (get_string(get_array(set->json(), "spec.template.spec.containers")[0], "image") == image) return set;
    return nullptr;
  }
  int64_t size_of(const std::string& image) { return get_int(set_of(image)->json(), "spec.replicas"); }
  size_t ready_pods() {
    auto pods = client.all(kPod);
    return size_t(std::count_if(pods.begin(), pods.end(),
                                [](const ObjectPtr& pod) { return pod_active(*pod) && is_ready(view::Pod(*pod)); }));
  }
  size_t live_pods() {
    auto pods = client.all(kPod);
    return size_t(std::count_if(pods.begin(), pods.end(), [](const ObjectPtr& pod) { return pod_active(*pod); }));
  }
  void finish() {
    for (int i = 0; i < 50; ++i) play_kubelet();
  }
};

TEST_F(DeploymentTest, a_new_one_makes_a_set_and_its_pods) {
  start();
  put(2, "v1");
  settle();
  ObjectPtr set = set_of("v1");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->name(), "web-" + std::string(set->label(kHashLabel)));
  EXPECT_EQ(set->annotation(kRevisionAnnotation), "1");
  EXPECT_EQ(set->annotation(kDesiredAnnotation), "2");
  EXPECT_EQ(set->annotation(kMaxAnnotation), "3");
  EXPECT_EQ(get_string(set->json(), "spec.selector.matchLabels.pod-template-hash"), set->label(kHashLabel));
  EXPECT_EQ(deployment()->annotation(kRevisionAnnotation), "1");
  EXPECT_TRUE(events.has("ScalingReplicaSet", "Scaled up replica set " + set->name() + " from 0 to 2"));
  EXPECT_EQ(reason("Available"), "False/MinimumReplicasUnavailable");
  finish();
  EXPECT_EQ(count(kPod), 2u);
  EXPECT_EQ(status("readyReplicas"), 2);
  EXPECT_EQ(status("availableReplicas"), 2);
  EXPECT_EQ(status("updatedReplicas"), 2);
  EXPECT_EQ(reason("Available"), "True/MinimumReplicasAvailable");
  EXPECT_EQ(reason("Progressing"), "True/NewReplicaSetAvailable");
  EXPECT_FALSE(find(deployment()->json(), "status.unavailableReplicas"));
  client.clear_calls();
  pass(std::chrono::seconds(700));
  EXPECT_TRUE(client.calls().empty()) << client.calls()[0];
}

TEST_F(DeploymentTest, rolls_within_its_bounds) {
  struct Row {
    const char* surge;
    const char* unavailable;
    size_t most, least;
  };
  int version = 1;
  start();
  put(4, "v1");
  settle();
  finish();
  for (const Row& row : {Row{"1", "0", 5, 4}, Row{"0", "1", 4, 3}, Row{"\"25%\"", "\"25%\"", 5, 3}, Row{"\"100%\"", "0", 8, 4},
                         Row{"0", "0", 4, 3}}) {
    change(MUST(parse_json(std::string(R"({"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":)") +
                           row.surge + R"(,"maxUnavailable":)" + row.unavailable + "}}}}")));
    std::string image = "v" + std::to_string(++version);
    set_image(image);
    size_t most = 0, least = 99;
    for (int i = 0; i < 40 && size_of(image) + status("unavailableReplicas") + int64_t(live_pods()) != 8; ++i) {
      most = std::max(most, live_pods());
      least = std::min(least, ready_pods());
      bool one = false;  // one pod at a time becomes ready
      play_kubelet([&](const Object& pod) { return is_ready(view::Pod(pod)) || !std::exchange(one, true); });
    }
    finish();
    EXPECT_LE(most, row.most) << image;
    EXPECT_GE(least, row.least) << image;
    EXPECT_EQ(size_of(image), 4) << image;
    EXPECT_EQ(live_pods(), 4u) << image;
    EXPECT_EQ(reason("Progressing"), "True/NewReplicaSetAvailable") << image;
    EXPECT_EQ(deployment()->annotation(kRevisionAnnotation), std::to_string(version)) << image;
    EXPECT_LE(count(kReplicaSet), 3u);  // the history limit is two old ones
  }
}

// After a ReplicaSet was scaled down, its status still counts all its pods until its controller has run: the surplus is not
// available.
TEST_F(DeploymentTest, pods_that_are_about_to_go_are_not_counted_as_available) {
  start();
  put(3, "v3", R"(,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":2,"maxUnavailable":0}})");
  auto set = [&](const std::string& image, int replicas, int available) {
    json::value body = deployment()->json();
    body = {{"metadata",
             {{"name", "web-" + image},
              {"namespace", "default"},
              {"ownerReferences", json::array{controller_reference(*deployment())}}}},
            {"spec",
             {{"replicas", replicas}, {"selector", *find(body, "spec.selector")}, {"template", *find(body, "spec.template")}}},
            {"status", {{"replicas", available}, {"availableReplicas", available}}}};
    make(body, "spec.template.spec.containers").get_array()[0].get_object()["image"] = image;
    make(body, "metadata.annotations").emplace_object()[kDesiredAnnotation] = "3";
    return MUST(Object::make(kReplicaSet, body));
  };
  ObservedDeployment state{deployment(), {set("v1", 0, 1), set("v2", 2, 2), set("v3", 3, 2)}, false};
  for (const DeploymentStep& step : plan_deployment(state, clock.now()).steps) {
    bool of_v2 = step.set && step.set->name() == "web-v2";
    EXPECT_TRUE(!of_v2 || step.to >= 1) << "two new ones are available, and three are to be";
  }
}

TEST_F(DeploymentTest, a_set_that_somebody_made_larger_does_not_grow_when_there_are_too_many) {
  start();
  put(2, "v1");
  settle();
  finish();
  set_image("v2");
  finish();
  std::string old = set_of("v1")->name();
  MUST(client.patch(
      kReplicaSet, {"default", old}, PatchType::merge,
      MUST(parse_json(R"({"spec":{"replicas":2},"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":"1",
                      "deployment.kubernetes.io/max-replicas":"1"}}})"))));
  client.settle();
  while (manager.run_once()) EXPECT_LE(size_of("v1") + size_of("v2"), 4);
  finish();
  EXPECT_EQ(size_of("v2"), 2);
}

TEST_F(DeploymentTest, going_back_to_an_old_template_takes_its_old_set_with_a_new_revision) {
  start();
  put(1, "v1");
  settle();
  finish();
  std::string first = set_of("v1")->name();
  set_image("v2");
  finish();
  set_image("v1");
  finish();
  EXPECT_EQ(set_of("v1")->name(), first);
  EXPECT_EQ(set_of("v1")->annotation(kRevisionAnnotation), "3");
  EXPECT_EQ(set_of("v1")->annotation(kRevisionHistoryAnnotation), "1");
  EXPECT_EQ(deployment()->annotation(kRevisionAnnotation), "3");
  EXPECT_EQ(size_of("v2"), 0);
}

TEST_F(DeploymentTest, recreate_ends_all_old_pods_first) {
  start();
  put(2, "v1", R"(,"strategy":{"type":"Recreate"})");
  settle();
  finish();
  set_image("v2");
  EXPECT_FALSE(set_of("v2"));
  EXPECT_EQ(live_pods(), 0u);
  finish();
  EXPECT_EQ(size_of("v2"), 2);
  EXPECT_EQ(live_pods(), 2u);
  EXPECT_EQ(reason("Progressing"), "True/NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, recreate_waits_until_the_old_set_knows_that_it_is_to_have_no_pods) {
  start();
  put(2, "v1", R"(,"strategy":{"type":"Recreate"})");
  settle();
  finish();
  json::value old_set = set_of("v1")->json();
  make(old_set, "spec.replicas") = 0;
  make(old_set, "metadata.generation") = 2;
  json::value changed = deployment()->json();
  make(changed, "spec.template.spec.containers") = json::array{{{"name", "c"}, {"image", "v2"}}};
  for (int observed : {1, 2}) {
    make(old_set, "status.observedGeneration") = observed;
    ObservedDeployment state{MUST(Object::make(kDeployment, changed)), {MUST(Object::make(kReplicaSet, old_set))}, false};
    DeploymentPlan plan = plan_deployment(state, clock.now());
    bool creates = std::any_of(plan.steps.begin(), plan.steps.end(),
                               [](const DeploymentStep& step) { return step.what == DeploymentStep::What::create; });
    EXPECT_EQ(creates, observed == 2) << observed;
  }
}

// Two ReplicaSets have pods, and the Deployment's size differs from both: with Recreate, nothing is scaled in proportion.
TEST_F(DeploymentTest, recreate_goes_on_when_somebody_scales_an_old_set_and_the_deployment) {
  start();
  put(2, "v1", R"(,"strategy":{"type":"Recreate"})");
  settle();
  finish();
  set_image("v2");
  finish();
  MUST(client.patch(kReplicaSet, set_of("v1")->key(), PatchType::merge, {{"spec", {{"replicas", 4}}}}));
  change({{"spec", {{"replicas", 5}}}});
  finish();
  EXPECT_EQ(size_of("v1"), 0);
  EXPECT_EQ(size_of("v2"), 5);
  EXPECT_EQ(live_pods(), 5u);
  EXPECT_EQ(reason("Progressing"), "True/NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, recreate_does_not_go_on_while_it_is_paused) {
  start();
  put(2, "v1", R"(,"strategy":{"type":"Recreate"})");
  settle();
  finish();
  set_image("v2");
  finish();
  MUST(client.patch(kReplicaSet, set_of("v1")->key(), PatchType::merge, {{"spec", {{"replicas", 4}}}}));
  change({{"spec", {{"replicas", 5}, {"paused", true}}}});
  finish();
  EXPECT_EQ(size_of("v1"), 4);
  EXPECT_EQ(size_of("v2"), 2);
}

TEST_F(DeploymentTest, paused_it_scales_but_does_not_roll) {
  start();
  put(2, "v1");
  settle();
  finish();
  change({{"spec", {{"paused", true}}}});
  EXPECT_EQ(reason("Progressing"), "Unknown/DeploymentPaused");
  set_image("v2");
  EXPECT_FALSE(set_of("v2"));
  change({{"spec", {{"replicas", 3}}}});
  EXPECT_EQ(size_of("v1"), 3);
  change({{"spec", {{"paused", false}}}});
  finish();
  EXPECT_EQ(size_of("v2"), 3);
  EXPECT_EQ(size_of("v1"), 0);
  EXPECT_EQ(reason("Progressing"), "True/NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, scaled_in_the_middle_of_a_rollout_its_sets_grow_in_proportion) {
  start();
  put(10, "v1", R"(,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":3,"maxUnavailable":2}})");
  settle();
  finish();
  set_image("v2");  // v2 never becomes ready
  play_kubelet([](const Object& pod) { return is_ready(view::Pod(pod)); });
  EXPECT_EQ(size_of("v1"), 8);
  EXPECT_EQ(size_of("v2"), 5);
  change({{"spec", {{"replicas", 15}}}});
  EXPECT_EQ(size_of("v1"), 11);
  EXPECT_EQ(size_of("v2"), 7);
}

TEST_F(DeploymentTest, without_progress_the_deadline_is_told) {
  start();
  put(1, "v1", R"(,"progressDeadlineSeconds":30)");
  settle();
  EXPECT_EQ(reason("Progressing").substr(0, 5), "True/");
  pass(std::chrono::seconds(35));
  EXPECT_EQ(reason("Progressing"), "False/ProgressDeadlineExceeded");
  change({{"spec", {{"paused", true}}}});
  EXPECT_EQ(reason("Progressing"), "False/ProgressDeadlineExceeded") << "a pause does not cover it up";
  change({{"spec", {{"paused", false}}}});
  finish();
  EXPECT_EQ(reason("Progressing"), "True/NewReplicaSetAvailable");
}

// A machine without a clock battery starts in 1970 and rolls out before its clock is set.
TEST_F(DeploymentTest, the_deadline_is_a_span_whatever_the_clock_says) {
  clock.set(MUST(parse_time("1970-01-01T00:01:00Z")));
  start();
  put(1, "v1", R"(,"progressDeadlineSeconds":30)");
  settle();
  EXPECT_EQ(reason("Progressing").substr(0, 5), "True/");
  clock.set(MUST(parse_time("2026-06-01T00:00:00Z")));
  manager.clock_was_set();
  settle();
  EXPECT_EQ(reason("Progressing").substr(0, 5), "True/");
  pass(std::chrono::seconds(35));
  EXPECT_EQ(reason("Progressing"), "False/ProgressDeadlineExceeded");
}

TEST_F(DeploymentTest, a_taken_name_gets_another_hash) {
  start();
  json::value pod_template =
      MUST(parse_json(R"({"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"v1"}]}})"));
  std::string taken = "web-" + template_hash(pod_template, 0);
  client.put(kReplicaSet, R"({"metadata":{"name":")" + taken + R"(","namespace":"default"},"spec":{"replicas":0,
    "selector":{"matchLabels":{"x":"y"}},"template":{"metadata":{"labels":{"x":"y"}},"spec":{}}}})");
  put(1, "v1");
  settle();
  pass(std::chrono::seconds(2));
  ASSERT_TRUE(client.find(kReplicaSet, {"default", "web-" + template_hash(pod_template, 1)}));
  EXPECT_EQ(status("collisionCount"), 1);
}

TEST_F(DeploymentTest, a_refused_set_is_told) {
  start();
  client.fail(1, Error(Code::forbidden, "quota"), "create replicasets");
  put(1, "v1");
  settle();
  EXPECT_TRUE(events.has("ReplicaSetCreateError", "quota"));
  pass(std::chrono::seconds(2));
  EXPECT_TRUE(set_of("v1"));
}

TEST_F(DeploymentTest, deleted_it_takes_everything_along) {
  start();
  put(2, "v1");
  settle();
  finish();
  MUST(client.remove(kDeployment, key));
  settle();
  finish();
  EXPECT_EQ(count(kReplicaSet), 0u);
  EXPECT_EQ(count(kPod), 0u);
}

TEST_F(DeploymentTest, deleted_as_an_orphan_its_set_stays_and_is_adopted_again) {
  start();
  put(1, "v1");
  settle();
  finish();
  MUST(client.remove(kDeployment, key, {.propagation = "Orphan"}));
  settle();
  EXPECT_FALSE(deployment());
  ASSERT_TRUE(set_of("v1"));
  EXPECT_FALSE(set_of("v1")->controller());
  EXPECT_EQ(live_pods(), 1u);
  put(1, "v1");
  settle();
  EXPECT_EQ(count(kReplicaSet), 1u);
  EXPECT_TRUE(set_of("v1")->controller());
}

TEST_F(DeploymentTest, deleted_in_the_foreground_it_goes_last) {
  start();
  put(1, "v1");
  settle();
  finish();
  MUST(client.remove(kDeployment, key, {.propagation = "Foreground"}));
  settle();
  EXPECT_TRUE(deployment());  // its pod has a grace period
  finish();
  EXPECT_FALSE(deployment());
  EXPECT_EQ(count(kReplicaSet), 0u);
  EXPECT_EQ(count(kPod), 0u);
}

}  // namespace
}  // namespace coracle::controller
