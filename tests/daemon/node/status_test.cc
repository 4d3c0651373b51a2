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

}  // namespace
}  // namespace coracle::node
