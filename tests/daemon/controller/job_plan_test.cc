// SPDX-License-Identifier: Apache-2.0
// The decisions of a Job about its pods: indexes, policies, back-off, how many pods to create and their specs. Pure.
#include <gtest/gtest.h>

#include "daemon/controller/job/job.h"
#include "runtime/base/text.h"
#include "tests/daemon/parsed.h"

namespace coracle::controller {
namespace {

TEST(IndexSet, reads_and_writes_what_a_status_holds) {
  struct Row {
    const char* in;
    int64_t limit;
    const char* out;
    int64_t size;
  };
  for (const Row& row : {Row{"", 9, "", 0}, Row{"1,3-5,7", 9, "1,3-5,7", 5}, Row{"1,2", 9, "1,2", 2}, Row{"1,2,3", 9, "1-3", 3},
                         Row{"0-9", 3, "0-2", 3}, Row{"5,7", 6, "5", 1}, Row{"x,2,4-3,6-", 9, "2", 1}}) {
    IndexSet set = IndexSet::parse(row.in, row.limit);
    EXPECT_EQ(set.text(), row.out) << row.in;
    EXPECT_EQ(set.size(), row.size) << row.in;
  }
}

TEST(IndexSet, grows_together) {
  IndexSet set;
  for (int64_t index : {5, 1, 3, 2, 9}) set.add(index);
  EXPECT_EQ(set.text(), "1-3,5,9");
  set.add(4, 8);
  EXPECT_EQ(set.text(), "1-9");
  EXPECT_TRUE(set.contains(1) && set.contains(9) && !set.contains(0) && !set.contains(10));
  EXPECT_EQ(IndexSet::parse("0-3,8-12", 20).common(set), 5);
  EXPECT_EQ(set.first_missing(3, 12), (std::vector<int64_t>{0, 10, 11}));
  EXPECT_EQ(set.first_missing(1, 12), (std::vector<int64_t>{0}));
  EXPECT_TRUE(set.first_missing(0, 12).empty());
}

ObjectPtr job(std::string_view spec, std::string_view status = "{}") {
  json::value all = parsed(spec);
  for (auto [name, value] : {std::pair{"parallelism", 1}, {"backoffLimit", 6}})
    if (!find(all, name)) all.get_object()[name] = value;
  if (!find(all, "template"))
    all.get_object()["template"] =
        parsed(R"({"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}})");
  return MUST(Object::make(kJob, {{"apiVersion", "batch/v1"},
                                  {"kind", "Job"},
                                  {"metadata", {{"name", "j"}, {"namespace", "default"}, {"uid", "job"}}},
                                  {"spec", all},
                                  {"status", parsed(status)}}));
}

// A pod with the tracking finalizer. `index`: an index, or "".
ObjectPtr tracked_pod(const std::string& name, std::string_view status, const std::string& index = "",
                      const std::string& failures = "", bool deleting = false) {
  json::object annotations;
  if (!index.empty()) annotations[kCompletionIndex] = index;
  if (!failures.empty()) annotations[kIndexFailures] = failures;
  json::object metadata{{"name", name},
                        {"namespace", "default"},
                        {"uid", name},
                        {"creationTimestamp", "2024-01-01T00:00:00Z"},
                        {"annotations", annotations},
                        {"finalizers", json::array{kJobTracking}}};
  if (deleting) metadata["deletionTimestamp"] = "2024-01-01T00:05:00Z", metadata["deletionGracePeriodSeconds"] = 30;
  return MUST(Object::make(
      kPod,
      {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", json::object()}, {"status", parsed(status)}}));
}

constexpr const char* kRunning = R"({"phase":"Running"})";
constexpr const char* kSucceeded = R"({"phase":"Succeeded"})";
std::string failed(int code = 1, const std::string& at = "2024-01-01T00:01:00Z") {
  return R"({"phase":"Failed","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":)" + std::to_string(code) +
         R"(,"finishedAt":")" + at + R"("}}}]})";
}

const WallTime kNow{std::chrono::sys_days(std::chrono::year(2024) / 1 / 1) + std::chrono::hours(1)};
Since at(WallTime now) {
  return [now](const std::string&, WallTime moment) { return std::chrono::nanoseconds(now - moment); };
}

ObservedJob observed_pod(const Object& job, const std::vector<ObjectPtr>& pods) {
  std::vector<ObjectPtr> active;
  std::set<std::string> held;
  for (const ObjectPtr& each : pods) {
    if (pod_active(*each)) active.push_back(each);
    held.insert(each->uid());
  }
  return observe_job(job, pods, active, held);
}

JobDecision decided(const Object& job, const std::vector<ObjectPtr>& pods, WallTime now = kNow) {
  return decide_job(observed_pod(job, pods), {}, at(now));
}

std::string names(const std::vector<ObjectPtr>& pods) {
  std::vector<std::string> all;
  for (const ObjectPtr& pod : pods) all.push_back(pod->name());
  return join(all, " ");
}

TEST(JobFailurePolicy, the_first_rule_that_fits_holds) {
  auto with = [](const std::string& rules) { return job(R"({"podFailurePolicy":{"rules":[)" + rules + "]}}"); };
  const std::string ignore_42 = R"({"action":"Ignore","onExitCodes":{"operator":"In","values":[42]}})";
  const std::string fail_others = R"({"action":"FailJob","onExitCodes":{"operator":"NotIn","values":[1,42]}})";
  const std::string sidecar = R"({"action":"Count","onExitCodes":{"containerName":"s","operator":"In","values":[3]}})";
  const std::string disrupted = R"({"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]})";
  const std::string fail_disrupted = R"({"action":"FailJob","onPodConditions":[{"type":"DisruptionTarget"}]})";
  const std::string with_condition = R"({"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True"}]})";
  struct Row {
    const char* name;
    std::string rules, status;
    const char *action, *message;
    bool counts;
  };
  for (const Row& row : {
           Row{"in", ignore_42, failed(42), "Ignore", "", false},
           Row{"no rule fits", ignore_42, failed(1), "", "", true},
           Row{"not in", ignore_42 + "," + fail_others, failed(7), "FailJob",
               "Container c for pod default/p failed with exit code 7 matching FailJob rule at index 1", true},
           Row{"not in, but named", fail_others, failed(1), "", "", true},
           Row{"success is no exit code that fits", fail_others, failed(0), "", "", true},
           Row{"another container", sidecar, failed(3), "", "", true},
           Row{"condition", disrupted, with_condition, "Ignore", "", false},
           Row{"condition, True by default", fail_disrupted, with_condition, "FailJob",
               "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0", true},
           Row{"condition that is not there", disrupted, failed(), "", "", true},
           Row{"still ends", ignore_42, R"({"phase":"Failed","containerStatuses":[{"name":"c","state":{"running":{}}}]})", "", "",
               true},
           Row{"init container", ignore_42,
               R"({"phase":"Failed","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":42}}}]})", "Ignore",
               "", false},
       }) {
    ObjectPtr owner = with(row.rules), object = tracked_pod("p", row.status);
    FailureRule rule = failure_rule(view::Job(*owner), *object);
    EXPECT_EQ(rule.action, row.action) << row.name;
    EXPECT_EQ(rule.message, row.message) << row.name;
    EXPECT_EQ(rule.counts(), row.counts) << row.name;
  }
}

TEST(JobSuccessPolicy, a_rule_by_indexes_by_count_or_by_both) {
  struct Row {
    const char *rules, *done, *met;
  };
  for (const Row& row : {
           Row{R"({"succeededIndexes":"0,2-3"})", "0,2,3", "Matched rules at index 0"},
           Row{R"({"succeededIndexes":"0,2-3"})", "0-2", nullptr},
           Row{R"({"succeededCount":2})", "1,4", "Matched rules at index 0"},
           Row{R"({"succeededCount":3})", "1,4", nullptr},
           Row{R"({"succeededIndexes":"0-3","succeededCount":2})", "1,3", "Matched rules at index 0"},
           Row{R"({"succeededIndexes":"0-3","succeededCount":2})", "1,4", nullptr},
           Row{R"({"succeededIndexes":"0"},{"succeededCount":1})", "4", "Matched rules at index 1"},
           Row{R"({"succeededCount":0})", "", nullptr},
       }) {
    ObjectPtr owner =
        job(std::string(R"({"completionMode":"Indexed","completions":5,"successPolicy":{"rules":[)") + row.rules + "]}}");
    auto met = success_rule(view::Job(*owner), IndexSet::parse(row.done, 5));
    EXPECT_EQ(met.value_or("none"), row.met ? row.met : "none") << row.rules << " " << row.done;
  }
}

TEST(JobBackOff, doubles_with_each_failure_since_the_last_success) {
  std::vector<int64_t> seconds;
  for (int64_t failures : {0, 1, 2, 3, 6, 7, 8, 1000}) seconds.push_back(back_off_span(failures) / std::chrono::seconds(1));
  EXPECT_EQ(seconds, (std::vector<int64_t>{0, 10, 20, 40, 320, 600, 600, 600}));

  auto early = tracked_pod("e", failed(1, "2024-01-01T00:01:00Z")), late = tracked_pod("l", failed(1, "2024-01-01T00:09:00Z"));
  auto good = tracked_pod(
      "g", R"({"phase":"Succeeded","containerStatuses":[{"state":{"terminated":{"finishedAt":"2024-01-01T00:05:00Z"}}}]})");
  JobBackOff after = back_off_after({3, kNow}, {}, {late, early});
  EXPECT_EQ(after.failures, 5);
  EXPECT_EQ(after.last, kNow);
  after = back_off_after({3, std::nullopt}, {good}, {late, early});
  EXPECT_EQ(after.failures, 1);
  EXPECT_EQ(format_time(*after.last), "2024-01-01T00:09:00Z");
  EXPECT_FALSE(back_off_after({3, kNow}, {good}, {}).last);
}

TEST(JobBackOff, a_pod_ended_when_its_containers_did_or_else_when_it_was_to_go) {
  EXPECT_EQ(format_time(pod_ended_at(*tracked_pod("a", failed()))), "2024-01-01T00:01:00Z");
  EXPECT_EQ(format_time(pod_ended_at(*tracked_pod(
                "a", R"({"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2024-01-01T00:02:00Z"}]})"))),
            "2024-01-01T00:02:00Z");
  EXPECT_EQ(format_time(pod_ended_at(*tracked_pod("a", "{}", "", "", true))), "2024-01-01T00:04:30Z");
  EXPECT_EQ(format_time(pod_ended_at(*tracked_pod("a", "{}"))), "2024-01-01T00:00:00Z");
}

TEST(JobDecision, how_many_pods_to_make) {
  struct Row {
    const char* name;
    const char *spec, *status;
    std::vector<ObjectPtr> pods;
    size_t create;
    const char* remove;
  };
  auto running = tracked_pod("r", kRunning), done = tracked_pod("s", kSucceeded),
       going = tracked_pod("g", kRunning, "", "", true);
  for (const Row& row : {
           Row{"as many as may run at once", R"({"completions":5,"parallelism":2})", "{}", {}, 2, ""},
           Row{"no more than are missing", R"({"completions":5,"parallelism":4})", R"({"succeeded":3})", {running}, 1, ""},
           Row{"those just ended count", R"({"completions":3,"parallelism":3})", "{}", {running, done}, 1, ""},
           Row{"those on their way into the counts too",
               R"({"completions":3,"parallelism":3})",
               R"({"uncountedTerminatedPods":{"succeeded":["s"]}})",
               {done},
               2,
               ""},
           Row{"a work queue fills up", R"({"parallelism":3})", "{}", {running}, 2, ""},
           Row{"until one succeeds", R"({"parallelism":3})", "{}", {running, done}, 0, ""},
           Row{"too many",
               R"({"completions":5,"parallelism":1})",
               "{}",
               {running, tracked_pod("p", R"({"phase":"Pending"})")},
               0,
               "p"},
           Row{"none while suspended", R"({"completions":5,"parallelism":3,"suspend":true})", "{}", {running}, 0, "r"},
           Row{"one that goes is replaced at once", R"({"completions":1})", "{}", {going}, 1, ""},
           Row{"or once it is gone", R"({"completions":1,"podReplacementPolicy":"Failed"})", "{}", {going}, 0, ""},
           Row{"parallelism 0 is a pause", R"({"completions":1,"parallelism":0})", "{}", {}, 0, ""},
       }) {
    ObjectPtr owner = job(row.spec, row.status);
    // A terminating pod counts as failed when it may be replaced; another test covers its back-off.
    JobDecision decision = decide_job(observed_pod(*owner, row.pods), {}, at(kNow));
    EXPECT_FALSE(decision.end) << row.name;
    EXPECT_EQ(decision.create.size(), row.create) << row.name;
    EXPECT_EQ(names(decision.remove), row.remove) << row.name;
    EXPECT_TRUE(decision.remove_uncounted) << row.name;
  }
}

TEST(JobDecision, indexes_that_are_missing_and_pods_that_are_twice) {
  ObjectPtr owner =
      job(R"({"completionMode":"Indexed","completions":5,"parallelism":3})", R"({"completedIndexes":"0","succeeded":1})");
  JobDecision decision = decided(*owner, {tracked_pod("two", kRunning, "2")});
  EXPECT_EQ(decision.create, (std::vector<std::optional<int64_t>>{1, 3}));

  decision = decided(*owner, {tracked_pod("a", kRunning, "2"), tracked_pod("b", R"({"phase":"Pending"})", "2"),
                              tracked_pod("none", kRunning), tracked_pod("beyond", kRunning, "7")});
  EXPECT_EQ(names(decision.remove), "none beyond b");
  EXPECT_TRUE(decision.create.empty());
}

TEST(JobDecision, an_elastic_job_forgets_what_is_beyond_its_new_end_and_finds_it_again) {
  ObjectPtr owner =
      job(R"({"completionMode":"Indexed","completions":2,"parallelism":2})", R"({"completedIndexes":"0,3","succeeded":2})");
  ObservedJob observed = observed_pod(*owner, {});
  EXPECT_EQ(observed.succeeded, 1);
  EXPECT_EQ(decided(*owner, {}).create, (std::vector<std::optional<int64_t>>{1}));
  JobTracking tracking = track_job(observed, decided(*owner, {}), {}, kNow);
  EXPECT_EQ(get_string(tracking.status, "completedIndexes"), "0");
}

std::string end_of(const Object& job, const std::vector<ObjectPtr>& pods, WallTime now = kNow) {
  JobDecision decision = decided(job, pods, now);
  return decision.end ? decision.end->type + " " + decision.end->reason + ": " + decision.end->message : "";
}

TEST(JobDecision, what_ends_a_job) {
  constexpr const char* kRestarts =
      R"({"phase":"Running","containerStatuses":[{"name":"c","restartCount":2}],"initContainerStatuses":[{"name":"i","restartCount":1}]})";
  const std::string on_failure = R"("template":{"spec":{"restartPolicy":"OnFailure"}})";
  auto indexed = [](const std::string& more, const char* status = "{}") {
    return job(R"({"completionMode":"Indexed","completions":3,"parallelism":3,"backoffLimit":2147483647,)" + more + "}", status);
  };
  struct Row {
    const char* name;
    ObjectPtr owner;
    std::vector<ObjectPtr> pods;
    std::string want;
  };
  for (
      const Row& row : {
          Row{"one failure more than it bears",
              job(R"({"completions":1,"backoffLimit":1})", R"({"failed":1})"),
              {tracked_pod("f", failed())},
              "FailureTarget BackoffLimitExceeded: Job has reached the specified backoff limit"},
          Row{"it bears that many",
              job(R"({"completions":1,"backoffLimit":2})", R"({"failed":1})"),
              {tracked_pod("f", failed())},
              ""},
          Row{"counted once only",
              job(R"({"completions":1,"backoffLimit":1})", R"({"uncountedTerminatedPods":{"failed":["f"]}})"),
              {tracked_pod("f", failed())},
              ""},
          Row{"restarts in place",
              job(R"({"completions":1,"backoffLimit":3,)" + on_failure + "}"),
              {tracked_pod("r", kRestarts)},
              "FailureTarget BackoffLimitExceeded: Job has reached the specified backoff limit"},
          Row{"fewer restarts",
              job(R"({"completions":1,"backoffLimit":4,)" + on_failure + "}"),
              {tracked_pod("r", kRestarts)},
              ""},
          Row{"no restart at all is borne",
              job(R"({"completions":1,"backoffLimit":0,)" + on_failure + "}"),
              {tracked_pod("r", kRestarts)},
              "FailureTarget BackoffLimitExceeded: Job has reached the specified backoff limit"},
          Row{"restarts are not failures otherwise",
              job(R"({"completions":1,"backoffLimit":1})"),
              {tracked_pod("r", kRestarts)},
              ""},
          Row{"deadline",
              job(R"({"completions":1,"activeDeadlineSeconds":3600})", R"({"startTime":"2024-01-01T00:00:00Z"})"),
              {},
              "FailureTarget DeadlineExceeded: Job was active longer than specified deadline"},
          Row{"a second before",
              job(R"({"completions":1,"activeDeadlineSeconds":3601})", R"({"startTime":"2024-01-01T00:00:00Z"})"),
              {},
              ""},
          Row{"not while suspended",
              job(R"({"completions":1,"suspend":true,"activeDeadlineSeconds":1})", R"({"startTime":"2024-01-01T00:00:00Z"})"),
              {},
              ""},
          Row{"failure policy",
              job(R"({"completions":1,"podFailurePolicy":{"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[3]}}]}})"),
              {tracked_pod("f", failed(3))},
              "FailureTarget PodFailurePolicy: Container c for pod default/f failed with exit code 3 matching FailJob rule at "
              "index 0"},
          Row{"ignored failures do not count",
              job(R"({"completions":1,"backoffLimit":0,"podFailurePolicy":{"rules":[{"action":"Ignore","onExitCodes":{"operator":"In","values":[3]}}]}})"),
              {tracked_pod("f", failed(3))},
              ""},
          Row{"too many indexes failed",
              indexed(R"("backoffLimitPerIndex":0,"maxFailedIndexes":1)", R"({"failedIndexes":"0"})"),
              {tracked_pod("f", failed(), "1", "0")},
              "FailureTarget MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes"},
          Row{"no more than may",
              indexed(R"("backoffLimitPerIndex":0,"maxFailedIndexes":2)", R"({"failedIndexes":"0"})"),
              {tracked_pod("f", failed(), "1", "0")},
              ""},
          Row{"all indexes ended, some failed",
              indexed(R"("backoffLimitPerIndex":1)", R"({"failedIndexes":"0","completedIndexes":"1"})"),
              {tracked_pod("s", kSucceeded, "2")},
              "FailureTarget FailedIndexes: Job has failed indexes"},
          Row{"an index has another try",
              indexed(R"("backoffLimitPerIndex":1)", R"({"completedIndexes":"1,2"})"),
              {tracked_pod("f", failed(), "0", "0")},
              ""},
          Row{"that was its last",
              indexed(R"("backoffLimitPerIndex":1)", R"({"completedIndexes":"1,2"})"),
              {tracked_pod("f", failed(), "0", "1")},
              "FailureTarget FailedIndexes: Job has failed indexes"},
          Row{"FailIndex ends an index at once",
              indexed(
                  R"("backoffLimitPerIndex":5,"podFailurePolicy":{"rules":[{"action":"FailIndex","onExitCodes":{"operator":"In","values":[3]}}]})",
                  R"({"completedIndexes":"1,2"})"),
              {tracked_pod("f", failed(3), "0", "0")},
              "FailureTarget FailedIndexes: Job has failed indexes"},
          Row{"success policy",
              indexed(R"("successPolicy":{"rules":[{"succeededIndexes":"1"}]})"),
              {tracked_pod("s", kSucceeded, "1"), tracked_pod("r", kRunning, "0")},
              "SuccessCriteriaMet SuccessPolicy: Matched rules at index 0"},
          Row{"what was decided stays",
              job(R"({"completions":1})",
                  R"({"conditions":[{"type":"FailureTarget","status":"True","reason":"R","message":"m"}]})"),
              {tracked_pod("r", kRunning)},
              "Failed R: m"},
          Row{"success, once decided, beats failure",
              job(R"({"completions":1,"backoffLimit":0})",
                  R"({"conditions":[{"type":"SuccessCriteriaMet","status":"True","reason":"R","message":"m"}]})"),
              {tracked_pod("f", failed())},
              "SuccessCriteriaMet R: m"},
      })
    EXPECT_EQ(end_of(*row.owner, row.pods), row.want) << row.name;
}

TEST(JobDecision, waits_after_a_failure) {
  ObjectPtr owner = job(R"({"completions":1})");
  auto fallen = tracked_pod("f", failed(1, "2024-01-01T00:59:57Z"));
  ObservedJob observed = observed_pod(*owner, {fallen});
  JobDecision decision = decide_job(observed, {2, kNow - std::chrono::seconds(3)}, at(kNow));
  EXPECT_TRUE(decision.create.empty());
  EXPECT_EQ(*decision.again, std::chrono::seconds(17));
  EXPECT_EQ(decide_job(observed, {2, kNow - std::chrono::seconds(20)}, at(kNow)).create.size(), 1u);
}

TEST(JobDecision, each_index_waits_for_itself) {
  ObjectPtr owner = job(R"({"completionMode":"Indexed","completions":2,"parallelism":2,"backoffLimitPerIndex":5})");
  auto fallen = tracked_pod("f", failed(1, "2024-01-01T00:59:57Z"), "0", "1");
  JobDecision decision = decided(*owner, {fallen});
  EXPECT_EQ(decision.create, (std::vector<std::optional<int64_t>>{1}));
  EXPECT_EQ(*decision.again, std::chrono::seconds(17));
  ObservedJob observed = observed_pod(*owner, {fallen});
  EXPECT_TRUE(track_job(observed, decision, {1, 0, 0}, kNow).release.empty())
      << "it is held until its successor has taken its count over";
  EXPECT_EQ(job_pod(observed, 0).at_pointer("/metadata/annotations/batch.kubernetes.io~1job-index-failure-count").as_string(),
            "2");
  EXPECT_EQ(job_pod(observed, 1).at_pointer("/metadata/annotations/batch.kubernetes.io~1job-index-failure-count").as_string(),
            "0");
}

TEST(JobPod, has_the_finalizer_and_what_its_index_brings) {
  ObjectPtr owner = job(R"({"completions":2,"template":{"metadata":{"labels":{"a":"b"},"finalizers":["x/y"]},"spec":{
    "initContainers":[{"name":"i","env":[{"name":"JOB_COMPLETION_INDEX","value":"mine"}]}],"containers":[{"name":"c"}]}}})");
  ObservedJob observed = observed_pod(*owner, {});
  json::value plain = job_pod(observed, std::nullopt);
  EXPECT_EQ(to_text(*find(plain, "metadata.finalizers")), R"(["x/y","batch.kubernetes.io/job-tracking"])");
  EXPECT_EQ(get_string(plain, "metadata.generateName"), "j-");
  EXPECT_FALSE(find(plain, "spec.hostname"));

  json::value made = job_pod(observed, 12);
  EXPECT_EQ(get_string(made, "metadata.generateName"), "j-12-");
  EXPECT_EQ(get_string(made, "spec.hostname"), "j-12");
  for (const char* place : {"metadata.annotations", "metadata.labels"})
    EXPECT_EQ(get_object(made, place).at(kCompletionIndex).as_string(), "12");
  EXPECT_EQ(get_object(made, "metadata.labels").at("a").as_string(), "b");
  EXPECT_EQ(
      to_text(get_array(made, "spec.containers")[0].at("env")),
      R"([{"name":"JOB_COMPLETION_INDEX","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['batch.kubernetes.io/job-completion-index']"}}}])");
  EXPECT_EQ(to_text(get_array(made, "spec.initContainers")[0].at("env")), R"([{"name":"JOB_COMPLETION_INDEX","value":"mine"}])");
  EXPECT_FALSE(get_object(made, "metadata.annotations").contains(kIndexFailures));
}

TEST(JobTracking, a_job_without_indexes_counts_adopted_pods_that_have_them) {
  ObjectPtr owner = job(R"({"completions":3,"parallelism":2})");
  std::vector<ObjectPtr> pods{tracked_pod("a", kSucceeded, "0"), tracked_pod("b", kSucceeded, "0"),
                              tracked_pod("c", failed(), "1")};
  ObservedJob observed = observed_pod(*owner, pods);
  EXPECT_EQ(observed.succeeded, 2);
  JobTracking tracking = track_job(observed, decided(*owner, pods), {}, kNow);
  EXPECT_EQ(to_text(get_object(tracking.status, "uncountedTerminatedPods")), R"({"succeeded":["a","b"],"failed":["c"]})");
  EXPECT_EQ(names(tracking.release), "a b c");
}

TEST(JobTracking, no_more_uids_than_a_status_holds) {
  ObjectPtr owner = job(R"({"completions":2000,"parallelism":2000})");
  std::vector<ObjectPtr> pods;
  for (size_t i = 0; i < kUncountedMax + 10; ++i) pods.push_back(tracked_pod("p" + std::to_string(i), kSucceeded));
  ObservedJob observed = observed_pod(*owner, pods);
  JobTracking tracking = track_job(observed, decided(*owner, pods), {}, kNow);
  EXPECT_EQ(get_array(tracking.status, "uncountedTerminatedPods.succeeded").size(), kUncountedMax);
  EXPECT_EQ(tracking.release.size(), kUncountedMax);
  EXPECT_EQ(observed.succeeded, int64_t(kUncountedMax + 10));
}

}  // namespace
}  // namespace coracle::controller
