// SPDX-License-Identifier: Apache-2.0
// The part of a pod's status that is written, as the API merges it.
#include "daemon/node/status.h"

#include <gtest/gtest.h>

#include "store/schema/merge.h"

namespace coracle::node {
namespace {

TEST(StatusPatch, takes_away_what_a_condition_no_longer_says) {
  json::value pod = *parse_json(
      R"({"metadata":{"uid":"u"},"status":{"phase":"Pending","conditions":[{"type":"theirs","status":"True","message":"kept"},
    {"type":"Initialized","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"ContainersNotInitialized","message":"containers with incomplete status: [i]"}]}})");
  json::object wanted =
      parse_json(
          R"({"phase":"Pending","conditions":[{"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:05Z"},
    {"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:05Z"}]})")
          ->as_object();
  auto patch = status_patch(pod, wanted);
  ASSERT_TRUE(patch);
  auto merged = schema::strategic_merge(schema::catalog().of(kPod), pod, *patch);
  ASSERT_TRUE(merged) << merged.error().text();
  EXPECT_EQ(
      to_text(*find(*merged, "status.conditions")),
      R"([{"type":"theirs","status":"True","message":"kept"},{"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:05Z"},)"
      R"({"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:05Z"}])");
  EXPECT_FALSE(status_patch(*merged, wanted));  // and then nothing is left to write
}

TEST(Status, says_why_a_pod_is_ended_once_it_has_ended) {
  json::value pod = *parse_json(R"({"metadata":{"uid":"u"},"spec":{"containers":[{"name":"a"}]}})");
  PodRecord record;
  record.containers = {ContainerRecord("a")};
  record.containers[0].attempt = 0;
  record.containers[0].running = true;
  record.initialized = true;
  record.verdict = Verdict::failed;
  record.verdict_reason = "Evicted";
  record.verdict_message = "too much";
  json::value status = make_status(record, pod, {{}, false, WallTime()});
  EXPECT_EQ(get_string(status, "phase"), "Running");
  EXPECT_FALSE(find(status, "reason"));
  EXPECT_FALSE(find(status, "message"));
  record.containers[0].running = false;
  status = make_status(record, pod, {{}, false, WallTime()});
  EXPECT_EQ(get_string(status, "phase"), "Failed");
  EXPECT_EQ(get_string(status, "reason"), "Evicted");
  EXPECT_EQ(get_string(status, "message"), "too much");
}

TEST(Status, tells_of_each_mount_whether_it_can_be_written_to) {
  json::value pod = *parse_json(R"({"metadata":{"uid":"u"},"spec":{"containers":[{"name":"a","volumeMounts":[
    {"name":"data","mountPath":"/data"},{"name":"files","mountPath":"/files","readOnly":true},
    {"name":"deep","mountPath":"/deep","readOnly":true,"recursiveReadOnly":"IfPossible"}]},{"name":"b"}]}})");
  PodRecord record;
  record.containers = {ContainerRecord("a"), ContainerRecord("b")};
  json::value status = make_status(record, pod, {{}, false, WallTime()});
  const json::array& containers = get_array(status, "containerStatuses");
  ASSERT_EQ(containers.size(), 2u);
  EXPECT_EQ(
      to_text(*find(containers[0], "volumeMounts")),
      R"([{"name":"data","mountPath":"/data"},{"name":"files","mountPath":"/files","readOnly":true,"recursiveReadOnly":"Disabled"},)"
      R"({"name":"deep","mountPath":"/deep","readOnly":true,"recursiveReadOnly":"Enabled"}])");
  EXPECT_FALSE(find(containers[1], "volumeMounts"));
}

TEST(Status, does_not_repeat_thousands_of_names) {
  json::value pod = *parse_json(R"({"metadata":{"uid":"u"},"spec":{"containers":[{"name":"a"}],"readinessGates":[]}})");
  PodRecord record;
  record.containers = {ContainerRecord("a")};
  record.containers[0].running = record.containers[0].started = record.containers[0].ready = record.initialized = true;
  auto message_of = [&](std::string_view type) {
    const json::value status = make_status(record, pod, {{}, false, WallTime()});
    for (const json::value& condition : get_array(status, "conditions"))
      if (get_string(condition, "type") == type) return std::string(get_string(condition, "message"));
    return std::string();
  };
  json::array& gates = pod.at("spec").at("readinessGates").get_array();
  gates.push_back(json::object{{"conditionType", "gate-0"}});
  EXPECT_EQ(message_of("Ready"), R"(corresponding condition of pod readiness gate "gate-0" does not exist.)");
  for (int i = 1; i < 10'000; i++) gates.push_back(json::object{{"conditionType", "gate-" + std::to_string(i)}});
  std::string message = message_of("Ready");
  EXPECT_LE(message.size(), 32'768u);
  EXPECT_GT(message.size(), 32'000u);
  EXPECT_TRUE(message.ends_with(R"(" does not exist., ...)")) << message.substr(message.size() - 100);
  gates.clear();
  for (int i = 0; i < 10'000; i++) record.containers.push_back(ContainerRecord("container-" + std::to_string(i)));
  pod.at("spec").at("containers").get_array().clear();
  for (const ContainerRecord& container : record.containers)
    pod.at("spec").at("containers").get_array().push_back(json::object{{"name", container.name}});
  message = message_of("ContainersReady");
  EXPECT_EQ(message.size(), 32'768u);
  EXPECT_TRUE(message.ends_with(", ...")) << message.substr(message.size() - 100);
}

}  // namespace
}  // namespace coracle::node
