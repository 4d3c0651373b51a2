// SPDX-License-Identifier: Apache-2.0
// The progress of a rollout, and the patch that undoes it.
#include "ctl/rollout.h"

#include <gtest/gtest.h>

#include "store/object/patch.h"
#include "tests/ctl/fake_api.h"
#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

std::string line_of(std::string_view text, Rolling rolling, int64_t revision = 0) {
  auto progress = progress_of(parsed(text), rolling, revision);
  if (!progress) return "error: " + progress.error().text();
  return (progress->done ? "done: " : "") + progress->line;
}

TEST(RolloutStatus, deployments) {
  auto line = [](std::string status, int64_t revision = 0) {
    return line_of(
        R"({"metadata":{"name":"web","generation":2,"annotations":{"deployment.kubernetes.io/revision":"4"}},"spec":{"replicas":3},"status":{)" +
            status + "}}",
        Rolling::deployment, revision);
  };
  EXPECT_EQ(line(R"("observedGeneration":1)"), "Waiting for deployment spec update to be observed...\n");
  EXPECT_EQ(line(R"("observedGeneration":2,"updatedReplicas":1)"),
            "Waiting for deployment \"web\" rollout to finish: 1 out of 3 new replicas have been updated...\n");
  EXPECT_EQ(line(R"("observedGeneration":2,"updatedReplicas":3,"replicas":5)"),
            "Waiting for deployment \"web\" rollout to finish: 2 old replicas are pending termination...\n");
  EXPECT_EQ(line(R"("observedGeneration":2,"updatedReplicas":3,"replicas":3,"availableReplicas":2)"),
            "Waiting for deployment \"web\" rollout to finish: 2 of 3 updated replicas are available...\n");
  EXPECT_EQ(line(R"("observedGeneration":2,"updatedReplicas":3,"replicas":3,"availableReplicas":3)", 4),
            "done: deployment \"web\" successfully rolled out\n");
  EXPECT_EQ(line(R"("observedGeneration":2)", 3), "error: desired revision (3) is different from the running revision (4)");
  EXPECT_EQ(
      line(
          R"("observedGeneration":2,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}])"),
      "error: deployment \"web\" exceeded its progress deadline");
}

TEST(RolloutStatus, daemon_sets) {
  auto line = [](std::string type, std::string status) {
    return line_of(R"({"metadata":{"name":"a","generation":1},"spec":{"updateStrategy":{"type":")" + type + R"("}},"status":{)" +
                       status + "}}",
                   Rolling::daemon_set);
  };
  EXPECT_EQ(line("OnDelete", ""), "error: rollout status is only available for RollingUpdate strategy type");
  EXPECT_EQ(line("RollingUpdate", ""), "Waiting for daemon set spec update to be observed...\n");
  EXPECT_EQ(line("RollingUpdate", R"("observedGeneration":1,"desiredNumberScheduled":1)"),
            "Waiting for daemon set \"a\" rollout to finish: 0 out of 1 new pods have been updated...\n");
  EXPECT_EQ(line("RollingUpdate", R"("observedGeneration":1,"desiredNumberScheduled":1,"updatedNumberScheduled":1)"),
            "Waiting for daemon set \"a\" rollout to finish: 0 of 1 updated pods are available...\n");
  EXPECT_EQ(line("RollingUpdate",
                 R"("observedGeneration":1,"desiredNumberScheduled":1,"updatedNumberScheduled":1,"numberAvailable":1)"),
            "done: daemon set \"a\" successfully rolled out\n");
}

TEST(RolloutStatus, stateful_sets) {
  auto line = [](std::string rolling, std::string status) {
    return line_of(R"({"metadata":{"name":"s","generation":1},"spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate")" +
                       rolling + R"(}},"status":{)" + status + "}}",
                   Rolling::stateful_set);
  };
  std::string parted = R"(,"rollingUpdate":{"partition":1})";
  EXPECT_EQ(line("", ""), "Waiting for statefulset spec update to be observed...\n");
  EXPECT_EQ(line("", R"("observedGeneration":1,"readyReplicas":1)"), "Waiting for 2 pods to be ready...\n");
  EXPECT_EQ(line(parted, R"("observedGeneration":1,"readyReplicas":3,"updatedReplicas":1)"),
            "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...\n");
  EXPECT_EQ(line(parted, R"("observedGeneration":1,"readyReplicas":3,"updatedReplicas":2)"),
            "done: partitioned roll out complete: 2 new pods have been updated...\n");
  EXPECT_EQ(
      line("", R"("observedGeneration":1,"readyReplicas":3,"updatedReplicas":2,"updateRevision":"s-2","currentRevision":"s-1")"),
      "waiting for statefulset rolling update to complete 2 pods at revision s-2...\n");
  EXPECT_EQ(
      line("", R"("observedGeneration":1,"readyReplicas":3,"currentReplicas":3,"updateRevision":"s-2","currentRevision":"s-2")"),
      "done: statefulset rolling update complete 3 pods at revision s-2...\n");
}

const char* kSet =
    R"({"metadata":{"name":"web","namespace":"d","uid":"u","annotations":{"deployment.kubernetes.io/revision":"3","note":"now"}},
  "spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"x:3"}]}}}})";

json::array replica_sets() {
  json::array sets;
  for (int i : {10, 2, 3})
    sets.push_back(parsed(
        R"({"metadata":{"annotations":{"deployment.kubernetes.io/revision":")" + std::to_string(i) +
        R"(","note":"old","kubernetes.io/change-cause":"change )" + std::to_string(i) +
        R"("},"ownerReferences":[{"uid":"u","controller":true}]},"spec":{"template":{"metadata":{"labels":{"app":"web","pod-template-hash":"h"}},
                          "spec":{"containers":[{"name":"c","image":"x:)" +
        std::to_string(i) + R"("}]}}}})"));
  sets.push_back(parsed(
      R"({"metadata":{"annotations":{"deployment.kubernetes.io/revision":"5"},"ownerReferences":[{"uid":"other","controller":true}]}})"));
  return sets;
}

TEST(RolloutHistory, is_of_its_own_replica_sets_in_the_order_of_numbers) {
  auto history = history_of(parsed(kSet), replica_sets(), Rolling::deployment);
  ASSERT_EQ(history.size(), 3u);
  EXPECT_EQ(history[0].number, 2);
  EXPECT_EQ(history[2].number, 10);
  EXPECT_EQ(change_cause_of(history[1]), "change 3");
  EXPECT_EQ((*revision_to_undo_to(history, 0, Rolling::deployment, "web"))->number, 3);
  EXPECT_EQ((*revision_to_undo_to(history, 2, Rolling::deployment, "web"))->number, 2);
  EXPECT_EQ(revision_to_undo_to(history, 5, Rolling::deployment, "web").error().text(),
            "unable to find specified revision 5 in history");
  EXPECT_EQ(revision_to_undo_to(history, -1, Rolling::deployment, "web").error().text(),
            "unable to find specified revision -1 in history");
  history.resize(1);
  EXPECT_EQ(revision_to_undo_to(history, 0, Rolling::deployment, "web").error().text(),
            "no rollout history found for deployment \"web\"");
  EXPECT_EQ(revision_to_undo_to(history, 0, Rolling::daemon_set, "web").error().text(), "no last revision to roll back to");
}

TEST(RolloutUndo, takes_a_deployment_back_with_what_was_noted_then) {
  json::value object = parsed(kSet);
  auto history = history_of(object, replica_sets(), Rolling::deployment);
  EXPECT_TRUE(has_template(object, template_of(history[1], Rolling::deployment)));  // the hash is ignored
  EXPECT_FALSE(has_template(object, template_of(history[0], Rolling::deployment)));
  Undo undo = undo_to(object, history[0], Rolling::deployment);
  EXPECT_EQ(undo.type, std::string("application/json-patch+json"));
  ASSERT_TRUE(apply_json_patch(object, undo.patch));
  EXPECT_TRUE(json_equal(
      object,
      parsed(
          R"({"metadata":{"name":"web","namespace":"d","uid":"u","annotations":{"deployment.kubernetes.io/revision":"3","note":"old",
    "kubernetes.io/change-cause":"change 2"}},"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"x:2"}]}}}})")))
      << to_text(object);
}

TEST(RolloutUndo, takes_sets_back_by_their_controller_revisions) {
  json::value object = parsed(R"({"metadata":{"uid":"u"},"spec":{"template":{"spec":{"a":1}}}})");
  json::array holders =
      parsed(
          R"([{"revision":2,"metadata":{"ownerReferences":[{"uid":"u","controller":true}]},"data":{"spec":{"template":{"$patch":"replace","spec":{"a":1}}}}},
    {"revision":1,"metadata":{"ownerReferences":[{"uid":"u","controller":true}]},"data":{"spec":{"template":{"$patch":"replace","spec":{"a":0}}}}}])")
          .as_array();
  auto history = history_of(object, holders, Rolling::stateful_set);
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(to_text(template_of(history[0], Rolling::stateful_set)), R"({"spec":{"a":0}})");
  EXPECT_TRUE(has_template(object, template_of(history[1], Rolling::stateful_set)));
  Undo undo = undo_to(object, history[0], Rolling::stateful_set);
  EXPECT_EQ(undo.type, std::string("application/strategic-merge-patch+json"));
  EXPECT_EQ(to_text(undo.patch), R"({"spec":{"template":{"$patch":"replace","spec":{"a":0}}}})");
  Undo nothing = undo_to(object, {1, parsed(R"({"revision":1})")}, Rolling::stateful_set);
  EXPECT_EQ(to_text(nothing.patch), "{}") << "a revision without data changes nothing";
}

// Also where nothing is rolled back.
TEST(RolloutUndo, warns_first_of_what_apply_remembers) {
  FakeApi api;
  auto put = [&](const std::string& path, const std::string& version, const std::string& kind, const std::string& annotations) {
    api.put(path, R"({"apiVersion":")" + version + R"(","kind":")" + kind +
                      R"(","metadata":{"name":"web","namespace":"default","uid":"u","annotations":{)" + annotations + "}}}");
  };
  const std::string applied = R"("kubectl.kubernetes.io/last-applied-configuration":"{}")";
  put("/apis/apps/v1/namespaces/default/deployments/web", "apps/v1", "Deployment", applied);
  put("/apis/apps/v1/namespaces/default/daemonsets/web", "apps/v1", "DaemonSet", "");
  put("/api/v1/namespaces/default/configmaps/web", "v1", "ConfigMap", applied);
  auto warning = [](const std::string& object) {
    return "Warning: resource " + object +
           " was previously managed with 'kubectl apply'. Rolling back will not update the "
           "kubectl.kubernetes.io/last-applied-configuration annotation, which may cause unexpected behavior on future 'kubectl "
           "apply' operations. Consider using 'kubectl apply' with your previous configuration file instead.\n";
  };
  EXPECT_EQ(api.run({"rollout", "undo", "deployment/web", "--to-revision=9"}).err,
            warning("deployments/web") + "error: unable to find specified revision 9 in history\n");
  EXPECT_EQ(api.run({"rollout", "undo", "daemonset/web", "--to-revision=9"}).err,
            "error: unable to find specified revision 9 in history\n");
  FakeApi::Outcome outcome = api.run({"rollout", "undo", "configmap/web"});
  EXPECT_TRUE(outcome.err.starts_with(warning("configmaps/web") + "error: error retrieving rollbacker for \"ConfigMap\""))
      << outcome.err;
  EXPECT_TRUE(api.take_writes().empty());
}

TEST(Rollout, a_refused_change_is_told_as_one) {
  FakeApi api;
  for (auto [name, paused] : {std::pair{"web", "false"}, std::pair{"held", "true"}})
    api.put(std::string("/apis/apps/v1/namespaces/default/deployments/") + name,
            std::string(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":")") + name +
                R"("},"spec":{"paused":)" + paused + R"(,"template":{}}})");
  api.refuse_writes(Error(Code::forbidden, "not today").with({}));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"restart", "deploy/web"}, {"pause", "deploy/web"}, {"resume", "deploy/held"}}) {
    FakeApi::Outcome outcome = api.run({"rollout", words[0], words[1]});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "error: failed to patch: not today\n");
  }
}

TEST(Rollout, what_cannot_be_rolled_is_told_with_its_group) {
  FakeApi api;
  for (const char* name : {"a", "b"}) {
    const std::string object =
        std::string(R"("metadata":{"namespace":"default","name":")") + name + R"("},"spec":{"template":{}}})";
    api.put(std::string("/apis/apps/v1/namespaces/default/replicasets/") + name,
            R"({"apiVersion":"apps/v1","kind":"ReplicaSet",)" + object);
    api.put(std::string("/api/v1/namespaces/default/configmaps/") + name, R"({"apiVersion":"v1","kind":"ConfigMap",)" + object);
  }
  EXPECT_EQ(api.run({"rollout", "status", "rs/a"}).err, "error: no status viewer has been implemented for ReplicaSet.apps\n");
  EXPECT_EQ(api.run({"rollout", "status", "cm/a"}).err, "error: no status viewer has been implemented for ConfigMap\n");
  EXPECT_EQ(api.run({"rollout", "restart", "rs/a"}).err, "error: replicasets.apps \"a\" restarting is not supported\n");
  EXPECT_EQ(
      api.run({"rollout", "restart", "rs/a", "rs/b"}).err,
      "error: replicasets.apps \"a\" restarting is not supported\nerror: replicasets.apps \"b\" restarting is not supported\n");
}

}  // namespace
}  // namespace coracle::ctl
