// SPDX-License-Identifier: Apache-2.0
// Job, and its removal after its end: pods are run, replaced and counted once each, whatever call fails and whenever the daemon
// stops.
#include "daemon/controller/job/job.h"

#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

using std::chrono::seconds;

const Key kJobKey{"default", "j"};

// A fixture whose controllers can be killed at any time, with a simulated kubelet.
struct JobFixture {
  FakeClock clock;
  FakeClient client{clock};
  CollectedEvents events;
  std::unique_ptr<Informers> informers;
  std::unique_ptr<Manager> manager;
  int made_failed = 0, made_succeeded = 0;

  JobFixture() {
    client.put(kNode, R"({"metadata":{"name":"pi"}})");
    boot();
  }
  void boot() {
    manager.reset();
    informers = std::make_unique<Informers>(client);
    manager = std::make_unique<Manager>(client, *informers, events, built_in_catalogs(),
                                        Config{.root_ca = "CERT", .local_node = "pi"}, clock);
    MUST(informers->start());
    client.settle();
  }
  void settle() {
    for (int passes = 0; passes < 5000; ++passes) {
      client.settle();
      if (!manager->run_once()) return;
    }
    FAIL() << "the controllers do not come to rest";
  }
  void pass(seconds span) {
    for (; span.count() > 0; span -= seconds(1)) {
      clock.advance(seconds(1));
      settle();
    }
  }

  void put_job(const std::string& spec, const std::string& metadata = "") {
    client.put(kJob, R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"default","uid":"job-uid")" +
                         metadata + R"(},"spec":{"backoffLimit":6,"podReplacementPolicy":"TerminatingOrFailed",)" + spec +
                         R"(,"selector":{"matchLabels":{"u":"job-uid"}},"template":{"metadata":{"labels":{"u":"job-uid"}},
        "spec":{"restartPolicy":"Never","terminationGracePeriodSeconds":30,"containers":[{"name":"c","image":"i"}]}}}})");
    settle();
  }
  void change_spec(const json::value& spec) {
    MUST(client.patch(kJob, kJobKey, PatchType::merge, {{"spec", spec}}));
    settle();
  }
  ObjectPtr job() const { return client.find(kJob, kJobKey); }
  json::value status() const { return get_object(job()->json(), "status"); }
  int64_t count(const char* name) const { return get_int(status(), name); }
  std::string condition(std::string_view type) const {
    json::value now = status();
    const json::value* found = find_condition(get_array(now, "conditions"), type);
    return found ? std::string(get_string(*found, "status")) + " " + std::string(get_string(*found, "reason")) + ": " +
                       std::string(get_string(*found, "message"))
                 : "";
  }

  std::vector<ObjectPtr> pods() const { return client.all(kPod); }
  std::vector<ObjectPtr> active() const {
    std::vector<ObjectPtr> all = pods();
    std::erase_if(all, [](const ObjectPtr& pod) { return !pod_active(*pod); });
    return all;
  }
  ObjectPtr of_index(int64_t index) const {
    for (const ObjectPtr& pod : active())
      if (completion_index(*pod) == index) return pod;
    return nullptr;
  }
  void run(const Object& pod) {
    if (view::Pod(pod).spec().node_name().empty())
      MUST(client.create_subresource(kPod, pod.key(), "binding", {{"target", {{"name", "pi"}}}}));
    client.set_status(kPod, pod.key(), R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})");
  }
  void end(const Object& pod, int code) {
    (code ? made_failed : made_succeeded)++;
    client.set_status(kPod, pod.key(),
                      R"({"phase":")" + std::string(code ? "Failed" : "Succeeded") +
                          R"(","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":)" + std::to_string(code) +
                          R"(,"finishedAt":")" + format_time(clock.now()) + R"("}}}]})");
  }
  void end_all(int code) {
    for (const ObjectPtr& pod : active()) end(*pod, code);
    settle();
  }
  // Removes pods that are being deleted, unless a finalizer holds them.
  void bury() {
    for (const ObjectPtr& pod : pods()) {
      if (!pod->deleting()) continue;
      if (!is_terminal(view::Pod(*pod))) client.set_status(kPod, pod->key(), R"({"phase":"Failed"})");
      (void)client.remove(kPod, pod->key(), {.grace_period_seconds = 0});  // an absent pod is fine too
    }
    settle();
  }
  size_t held() const {
    size_t count = 0;
    for (const ObjectPtr& pod : pods()) count += has_finalizer(*pod, kJobTracking);
    return count;
  }
};

struct JobTest : testing::Test, JobFixture {};

TEST_F(JobTest, runs_until_enough_have_succeeded) {
  put_job(R"("completions":3,"parallelism":2)");
  ASSERT_EQ(active().size(), 2u);
  ObjectPtr pod = active()[0];
  EXPECT_EQ(pod->controller()->uid, "job-uid");
  EXPECT_TRUE(has_finalizer(*pod, kJobTracking));
  EXPECT_EQ(count("active"), 2);
  EXPECT_EQ(count("ready"), 0);
  EXPECT_EQ(get_string(status(), "startTime"), format_time(clock.now()));
  EXPECT_TRUE(events.has("SuccessfulCreate", "Created pod: " + pod->name()));
  run(*pod);
  settle();
  EXPECT_EQ(count("ready"), 1);

  end(*pod, 0);
  settle();
  EXPECT_EQ(count("succeeded"), 1);
  EXPECT_EQ(active().size(), 2u);
  end_all(0);
  EXPECT_EQ(count("succeeded"), 3);
  EXPECT_EQ(count("active"), 0);
  EXPECT_EQ(condition("SuccessCriteriaMet"), "True CompletionsReached: Reached expected number of succeeded pods");
  EXPECT_EQ(condition("Complete"), "True CompletionsReached: Reached expected number of succeeded pods");
  EXPECT_EQ(get_string(status(), "completionTime"), format_time(clock.now()));
  EXPECT_EQ(to_text(*find(status(), "uncountedTerminatedPods")), "{}");
  EXPECT_TRUE(events.has("Completed", "Job completed"));
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(pods().size(), 3u);

  client.clear_calls();
  pass(seconds(700));
  EXPECT_TRUE(client.calls().empty()) << client.calls()[0];
}

TEST_F(JobTest, a_work_queue_ends_when_one_has_succeeded_and_the_others_have_ended) {
  put_job(R"("parallelism":3)");
  ASSERT_EQ(active().size(), 3u);
  end(*active()[0], 0);
  settle();
  EXPECT_EQ(active().size(), 2u) << "who runs runs on, nobody follows";
  EXPECT_EQ(condition("Complete"), "");
  end_all(0);
  EXPECT_EQ(condition("Complete").substr(0, 4), "True");
  EXPECT_EQ(count("succeeded"), 3);
}

TEST_F(JobTest, waits_longer_after_each_failure_and_gives_up_in_the_end) {
  put_job(R"("completions":1,"parallelism":1,"backoffLimit":2)");
  for (int wait : {10, 20}) {
    end_all(1);
    pass(seconds(wait - 1));
    EXPECT_TRUE(active().empty()) << wait;
    pass(seconds(1));
    ASSERT_EQ(active().size(), 1u) << wait;
  }
  end_all(1);
  EXPECT_EQ(count("failed"), 3);
  EXPECT_EQ(condition("FailureTarget"), "True BackoffLimitExceeded: Job has reached the specified backoff limit");
  EXPECT_EQ(condition("Failed"), "True BackoffLimitExceeded: Job has reached the specified backoff limit");
  EXPECT_FALSE(find(status(), "completionTime"));
  EXPECT_TRUE(events.has("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
  EXPECT_EQ(pods().size(), 3u) << "they stay for whoever looks";
}

TEST_F(JobTest, the_wait_is_as_long_over_a_restart_and_a_jumping_clock) {
  put_job(R"("completions":1,"parallelism":1)");
  end_all(1);
  pass(seconds(10));
  end_all(1);
  boot();
  settle();
  pass(seconds(19));
  EXPECT_TRUE(active().empty()) << "two failures can be seen: twenty seconds";
  pass(seconds(1));
  ASSERT_EQ(active().size(), 1u);

  end_all(1);
  clock.set(clock.now() - std::chrono::hours(1));
  pass(seconds(39));
  EXPECT_TRUE(active().empty());
  pass(seconds(1));
  EXPECT_EQ(active().size(), 1u);
}

TEST_F(JobTest, running_pods_end_with_a_failed_job_which_waits_for_them) {
  put_job(R"("completions":3,"parallelism":3,"backoffLimit":0)");
  for (const ObjectPtr& pod : active()) run(*pod);
  settle();
  EXPECT_EQ(count("ready"), 3);
  end(*active()[0], 1);
  settle();
  EXPECT_TRUE(active().empty());
  EXPECT_EQ(count("failed"), 3) << "who is stopped has failed";
  EXPECT_EQ(count("terminating"), 2);
  EXPECT_EQ(condition("FailureTarget").substr(0, 4), "True");
  EXPECT_EQ(condition("Failed"), "") << "not while pods are ending";
  bury();
  EXPECT_EQ(condition("Failed").substr(0, 4), "True");
  EXPECT_EQ(count("terminating"), 0);
  EXPECT_EQ(count("failed"), 3);
}

TEST_F(JobTest, a_deadline_ends_what_still_runs) {
  put_job(R"("completions":1,"parallelism":1,"activeDeadlineSeconds":30)");
  run(*active()[0]);
  pass(seconds(29));
  EXPECT_EQ(active().size(), 1u);
  pass(seconds(1));
  EXPECT_TRUE(active().empty());
  bury();
  EXPECT_EQ(condition("Failed"), "True DeadlineExceeded: Job was active longer than specified deadline");
}

// On a machine without a clock battery, thirty seconds are thirty seconds, whatever the date.
TEST_F(JobTest, a_deadline_is_a_span_not_a_date) {
  clock.set(WallTime(seconds(100)));
  put_job(R"("completions":1,"parallelism":1,"activeDeadlineSeconds":30)");
  clock.set(WallTime(seconds(1'800'000'000)));
  manager->clock_was_set();
  pass(seconds(29));
  EXPECT_EQ(active().size(), 1u);
  pass(seconds(1));
  EXPECT_TRUE(active().empty());
}

TEST_F(JobTest, a_deadline_that_passed_while_the_machine_was_off_counts_once_the_clock_is_right) {
  WallTime begin = clock.now();
  put_job(R"("completions":1,"parallelism":1,"activeDeadlineSeconds":3600)");
  clock.set(WallTime(seconds(100)));
  boot();
  settle();
  EXPECT_EQ(active().size(), 1u);
  clock.set(begin + std::chrono::hours(2));
  manager->clock_was_set();
  settle();
  EXPECT_TRUE(active().empty());
}

TEST_F(JobTest, suspended_it_has_no_pods_and_resumed_it_starts_anew) {
  put_job(R"("completions":2,"parallelism":2,"suspend":true)");
  EXPECT_TRUE(active().empty());
  EXPECT_FALSE(find(status(), "startTime"));
  EXPECT_EQ(condition("Suspended"), "True JobSuspended: Job suspended");
  EXPECT_TRUE(events.has("Suspended", "Job suspended"));
  pass(seconds(5));
  change_spec({{"suspend", false}});
  EXPECT_EQ(active().size(), 2u);
  EXPECT_EQ(condition("Suspended"), "False JobResumed: Job resumed");
  EXPECT_EQ(get_string(status(), "startTime"), format_time(clock.now()));
  EXPECT_TRUE(events.has("Resumed", "Job resumed"));

  for (const ObjectPtr& pod : active()) run(*pod);
  settle();
  change_spec({{"suspend", true}});
  EXPECT_TRUE(active().empty());
  bury();
  EXPECT_TRUE(pods().empty());
  EXPECT_EQ(count("failed"), 0) << "they did not fail";
  EXPECT_EQ(count("active"), 0);
  EXPECT_FALSE(find(status(), "startTime")) << "it does not run";
  pass(seconds(5));
  std::string later = format_time(clock.now());
  change_spec({{"suspend", false}});
  EXPECT_EQ(get_string(status(), "startTime"), later);
  end_all(0);
  EXPECT_EQ(condition("Complete").substr(0, 4), "True");
}

TEST_F(JobTest, what_ends_while_it_is_suspended_has_begun) {
  put_job(R"("completions":1,"parallelism":1,"podReplacementPolicy":"Failed")");
  ObjectPtr pod = active()[0];
  run(*pod);
  settle();
  MUST(client.remove(kPod, pod->key()));
  change_spec({{"suspend", true}});
  EXPECT_FALSE(find(status(), "startTime"));
  end(*client.find(kPod, pod->key()), 0);
  settle();
  EXPECT_EQ(condition("Complete").substr(0, 4), "True");
  EXPECT_TRUE(find(status(), "startTime")) << "without it the API refuses the end";
}

TEST_F(JobTest, it_does_not_end_before_it_began_when_the_clock_is_set_back) {
  put_job(R"("completions":1,"parallelism":1)");
  clock.set(clock.now() - std::chrono::hours(24));
  end_all(0);
  EXPECT_EQ(condition("Complete").substr(0, 4), "True");
  EXPECT_GE(get_string(status(), "completionTime"), get_string(status(), "startTime"));
}

TEST_F(JobTest, a_pod_that_is_deleted_has_failed_and_is_replaced) {
  put_job(R"("completions":1,"parallelism":1)");
  run(*active()[0]);
  settle();
  MUST(client.remove(kPod, active()[0]->key()));
  settle();
  EXPECT_EQ(count("failed"), 1);
  EXPECT_EQ(count("terminating"), 1);
  pass(seconds(10));
  EXPECT_EQ(active().size(), 1u);
  bury();
  EXPECT_EQ(pods().size(), 1u);
  EXPECT_EQ(count("terminating"), 0);
}

TEST_F(JobTest, with_replacement_once_failed_it_waits_until_the_pod_is_over) {
  put_job(R"("completions":1,"parallelism":1)");
  change_spec({{"podReplacementPolicy", "Failed"}});
  run(*active()[0]);
  MUST(client.remove(kPod, active()[0]->key()));
  pass(seconds(60));
  EXPECT_TRUE(active().empty());
  EXPECT_EQ(count("failed"), 0);
  EXPECT_EQ(held(), 1u) << "its end is waited for";
  bury();
  pass(seconds(10));
  EXPECT_EQ(count("failed"), 1);
  EXPECT_EQ(active().size(), 1u);
}

// No node has run it: the pod collector marks it as failed.
TEST_F(JobTest, an_unbound_pod_that_is_deleted_is_over_at_once) {
  put_job(R"("completions":1,"parallelism":1)");
  change_spec({{"podReplacementPolicy", "Failed"}});
  MUST(client.remove(kPod, active()[0]->key()));
  pass(seconds(11));
  EXPECT_EQ(count("failed"), 1);
  EXPECT_EQ(active().size(), 1u);
}

TEST_F(JobTest, indexes_are_run_each_until_it_has_succeeded) {
  put_job(R"("completions":4,"parallelism":2,"completionMode":"Indexed")");
  ASSERT_TRUE(of_index(0) && of_index(1));
  EXPECT_EQ(of_index(0)->name().substr(0, 4), "j-0-");
  EXPECT_EQ(view::Pod(*of_index(0)).spec().hostname(), "j-0");
  end(*of_index(1), 0);
  settle();
  EXPECT_EQ(get_string(status(), "completedIndexes"), "1");
  ASSERT_TRUE(of_index(2));
  end(*of_index(0), 1);
  settle();
  EXPECT_FALSE(of_index(0));
  pass(seconds(10));
  ASSERT_TRUE(of_index(0)) << "the lowest index that is missing comes first";
  end(*of_index(2), 0);
  settle();
  end_all(0);
  EXPECT_EQ(get_string(status(), "completedIndexes"), "0-3");
  EXPECT_EQ(count("succeeded"), 4);
  EXPECT_EQ(count("failed"), 1);
  EXPECT_EQ(condition("Complete").substr(0, 4), "True");
}

TEST_F(JobTest, an_elastic_job_grows_and_shrinks) {
  put_job(R"("completions":3,"parallelism":3,"completionMode":"Indexed")");
  end(*of_index(2), 0);
  settle();
  change_spec({{"completions", 1}, {"parallelism", 1}});
  bury();
  EXPECT_EQ(active().size(), 1u);
  EXPECT_TRUE(of_index(0));
  EXPECT_EQ(count("succeeded"), 0);
  EXPECT_EQ(count("failed"), 0);
  change_spec({{"completions", 2}, {"parallelism", 2}});
  EXPECT_EQ(active().size(), 2u);
  end_all(0);
  EXPECT_EQ(condition("Complete").substr(0, 4), "True");
  EXPECT_EQ(get_string(status(), "completedIndexes"), "0,1");
}

TEST_F(JobTest, with_a_limit_for_each_index_the_others_go_on) {
  put_job(R"("completions":2,"parallelism":2,"completionMode":"Indexed","backoffLimit":2147483647,"backoffLimitPerIndex":1)");
  EXPECT_EQ(of_index(0)->annotation(kIndexFailures), "0");
  end(*of_index(0), 1);
  pass(seconds(10));
  ASSERT_TRUE(of_index(0));
  EXPECT_EQ(of_index(0)->annotation(kIndexFailures), "1");
  EXPECT_EQ(get_string(status(), "failedIndexes"), "");
  EXPECT_EQ(count("failed"), 1);
  end(*of_index(0), 1);
  settle();
  EXPECT_EQ(get_string(status(), "failedIndexes"), "0");
  EXPECT_EQ(condition("FailureTarget"), "");
  pass(seconds(60));
  EXPECT_FALSE(of_index(0));
  end(*of_index(1), 0);
  settle();
  EXPECT_EQ(condition("Failed"), "True FailedIndexes: Job has failed indexes");
  EXPECT_EQ(count("failed"), 2);
  EXPECT_EQ(count("succeeded"), 1);
  EXPECT_EQ(held(), 0u);
}

TEST_F(JobTest, more_failed_indexes_than_may_end_it_early) {
  put_job(
      R"("completions":4,"parallelism":4,"completionMode":"Indexed","backoffLimit":2147483647,"backoffLimitPerIndex":0,"maxFailedIndexes":1)");
  end(*of_index(0), 1), end(*of_index(1), 1);
  settle();
  EXPECT_TRUE(active().empty());
  bury();
  EXPECT_EQ(condition("Failed"),
            "True MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes");
  EXPECT_EQ(get_string(status(), "failedIndexes"), "0,1");
}

TEST_F(JobTest, a_success_policy_ends_it_before_all_indexes_have_succeeded) {
  put_job(R"("completions":3,"parallelism":3,"completionMode":"Indexed","successPolicy":{"rules":[{"succeededIndexes":"1"}]})");
  for (const ObjectPtr& pod : active()) run(*pod);
  end(*of_index(1), 0);
  settle();
  EXPECT_EQ(condition("SuccessCriteriaMet"), "True SuccessPolicy: Matched rules at index 0");
  EXPECT_TRUE(active().empty());
  EXPECT_EQ(condition("Complete"), "");
  bury();
  EXPECT_EQ(condition("Complete"), "True SuccessPolicy: Matched rules at index 0");
  EXPECT_EQ(get_string(status(), "completedIndexes"), "1");
  EXPECT_EQ(count("failed"), 0);
  EXPECT_EQ(count("succeeded"), 1);
}

TEST_F(JobTest, a_failure_policy_ends_the_job_or_looks_away) {
  put_job(R"("completions":2,"parallelism":2,"backoffLimit":0,"podFailurePolicy":{"rules":[
    {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]},
    {"action":"FailJob","onExitCodes":{"operator":"In","values":[42]}}]})");
  client.set_status(kPod, active()[0]->key(), R"({"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True"}]})");
  settle();
  EXPECT_EQ(count("failed"), 0);
  pass(seconds(60));
  ASSERT_EQ(active().size(), 2u) << "replaced, and not counted";
  std::string name = active()[0]->name();
  end(*active()[0], 42);
  settle();
  bury();
  EXPECT_EQ(condition("Failed"), "True PodFailurePolicy: Container c for pod default/" + name +
                                     " failed with exit code 42 matching FailJob rule at index 1");
}

TEST_F(JobTest, restarts_in_place_count_against_the_limit) {
  put_job(R"("completions":1,"parallelism":1,"backoffLimit":2)");
  change_spec({{"template", {{"spec", {{"restartPolicy", "OnFailure"}}}}}});
  client.set_status(kPod, active()[0]->key(), R"({"phase":"Running","containerStatuses":[{"name":"c","restartCount":1}]})");
  settle();
  EXPECT_EQ(active().size(), 1u);
  client.set_status(kPod, active()[0]->key(), R"({"phase":"Running","containerStatuses":[{"name":"c","restartCount":2}]})");
  settle();
  bury();
  EXPECT_EQ(condition("Failed"), "True BackoffLimitExceeded: Job has reached the specified backoff limit");
}

TEST_F(JobTest, adopts_a_matching_orphan_and_lets_go_of_what_matches_no_more) {
  client.put(kPod, R"({"metadata":{"name":"orphan","namespace":"default","uid":"o","labels":{"u":"job-uid"}},"spec":{}})");
  put_job(R"("completions":2,"parallelism":1)");
  ASSERT_EQ(pods().size(), 1u);
  EXPECT_EQ(pods()[0]->controller()->uid, "job-uid");
  EXPECT_TRUE(has_finalizer(*pods()[0], kJobTracking));
  MUST(client.patch(kPod, {"default", "orphan"}, PatchType::merge, {{"metadata", {{"labels", {{"u", "mine"}}}}}}));
  settle();
  ObjectPtr orphan = client.find(kPod, {"default", "orphan"});
  EXPECT_FALSE(orphan->controller());
  EXPECT_FALSE(has_finalizer(*orphan, kJobTracking));
  EXPECT_EQ(active().size(), 2u) << "it has made one of its own";
}

TEST_F(JobTest, a_pod_that_lost_its_owner_is_its_own_again_and_is_counted) {
  put_job(R"("completions":1,"parallelism":1)");
  Key pod = active()[0]->key();
  for (int times = 0; times < 3; ++times) {
    MUST(client.patch(kPod, pod, PatchType::merge, {{"metadata", {{"ownerReferences", nullptr}}}}));
    pass(seconds(2));
    ASSERT_TRUE(client.find(kPod, pod)->controller());
    EXPECT_TRUE(has_finalizer(*client.find(kPod, pod), kJobTracking));
  }
  end_all(0);
  EXPECT_EQ(count("succeeded"), 1);
  EXPECT_EQ(pods().size(), 1u);
}

TEST_F(JobTest, what_somebody_else_manages_is_left_alone) {
  put_job(R"("completions":1,"parallelism":1,"managedBy":"example.com/mine")");
  EXPECT_TRUE(pods().empty());
  EXPECT_FALSE(find(job()->json(), "status"));
}

TEST_F(JobTest, pods_are_held_by_nobody_once_their_job_is_gone) {
  put_job(R"("completions":2,"parallelism":2)");
  end(*active()[0], 0);
  client.erase(kJob, kJobKey);  // before the pod was counted
  pass(seconds(2));
  EXPECT_EQ(held(), 0u);
}

TEST_F(JobTest, a_job_that_is_deleted_in_the_foreground_lets_its_pods_go) {
  put_job(R"("completions":2,"parallelism":2)");
  for (const ObjectPtr& pod : active()) run(*pod);
  MUST(client.remove(kJob, kJobKey, {.propagation = "Foreground"}));
  settle();
  bury();
  pass(seconds(5));
  EXPECT_TRUE(pods().empty());
  EXPECT_FALSE(job());
}

TEST_F(JobTest, too_many_successes_are_told) {
  put_job(R"("completions":1,"parallelism":1)");
  client.put(
      kPod,
      R"({"metadata":{"name":"more","namespace":"default","uid":"o","labels":{"u":"job-uid"}},"spec":{},"status":{"phase":"Succeeded"}})");
  end(*active()[0], 0);
  settle();
  EXPECT_EQ(count("succeeded"), 2);
  EXPECT_TRUE(events.has("TooManySucceededPods", "Too many succeeded pods running after completion count reached"));
}

TEST_F(JobTest, is_removed_when_its_time_after_the_end_is_over) {
  put_job(R"("completions":1,"parallelism":1,"ttlSecondsAfterFinished":60)");
  end_all(0);
  pass(seconds(59));
  EXPECT_TRUE(job());
  pass(seconds(1));
  bury();
  pass(seconds(2));
  EXPECT_FALSE(job());
  EXPECT_TRUE(pods().empty()) << "its pods go with it";
}

TEST_F(JobTest, its_time_may_change_and_the_clock_may_jump) {
  WallTime begin = clock.now();
  put_job(R"("completions":1,"parallelism":1,"ttlSecondsAfterFinished":60)");
  end_all(0);
  change_spec({{"ttlSecondsAfterFinished", 120}});
  clock.set(begin + std::chrono::hours(1000));
  manager->clock_was_set();
  pass(seconds(100));
  EXPECT_TRUE(job()) << "not two minutes have passed";
  clock.set(WallTime(seconds(100)));  // a restart with an unset clock
  boot();
  settle();
  EXPECT_TRUE(job());
  clock.set(begin + std::chrono::hours(1000));
  manager->clock_was_set();
  settle();
  bury();
  pass(seconds(2));
  EXPECT_FALSE(job());
}

// ---- faults ----

struct Play {
  const char *name, *spec;
  int fails;  // the number of pods that fail first
};
constexpr Play kPlays[] = {
    {"plain", R"("completions":4,"parallelism":2)", 2},
    {"indexed", R"("completions":4,"parallelism":2,"completionMode":"Indexed")", 2},
    {"limit per index",
     R"("completions":3,"parallelism":3,"completionMode":"Indexed","backoffLimit":2147483647,"backoffLimitPerIndex":3)", 2},
};

// Ends pods one after another until the job has ended; `each` is called before every pass of the controllers.
void play_job(JobFixture& fixture, const Play& play, const std::function<void()>& each) {
  for (int round = 0; round < 200 && !(fixture.job() && job_finished(*fixture.job())); ++round) {
    for (int passes = 0; passes < 200; ++passes) {
      each();
      fixture.client.settle();
      if (!fixture.manager->run_once()) break;
    }
    std::vector<ObjectPtr> active = fixture.active();
    if (!active.empty()) fixture.end(*active.front(), fixture.made_failed < play.fails ? 1 : 0);
    fixture.clock.advance(seconds(round % 2 ? 41 : 1));
  }
}

void check_counts(const JobFixture& fixture, const std::string& what) {
  ASSERT_TRUE(fixture.job()) << what;
  EXPECT_EQ(fixture.condition("Complete").substr(0, 4), "True") << what;
  EXPECT_EQ(fixture.count("succeeded"), fixture.made_succeeded) << what;
  EXPECT_EQ(fixture.count("failed"), fixture.made_failed) << what;
  EXPECT_EQ(fixture.held(), 0u) << what;
  EXPECT_EQ(int(fixture.pods().size()), fixture.made_succeeded + fixture.made_failed) << what << ": no pod was made for nothing";
  EXPECT_EQ(get_object(fixture.status(), "uncountedTerminatedPods").size(), 0u) << what;
}

size_t calls_of(const Play& one) {
  JobFixture fixture;
  size_t before = fixture.client.calls().size();
  fixture.put_job(one.spec);
  play_job(fixture, one, [] {});
  check_counts(fixture, one.name);
  return fixture.client.calls().size() - before;
}

TEST(JobFaults, any_single_failing_call_heals_and_every_pod_is_counted_once) {
  for (const Play& one : kPlays) {
    size_t calls = calls_of(one);
    ASSERT_GT(calls, 15u) << one.name;
    for (size_t nth = 1; nth <= calls; ++nth) {
      JobFixture fixture;
      fixture.client.fail(int(nth), Error(Code::unavailable, "disk is full"));
      fixture.put_job(one.spec);
      play_job(fixture, one, [] {});
      check_counts(fixture, std::string(one.name) + ", call " + std::to_string(nth));
      if (testing::Test::HasFailure()) return;
    }
  }
}

// The daemon is killed before its nth call: the rest of that pass does not happen, and a new daemon starts from the stored state.
TEST(JobFaults, killed_at_any_call_it_counts_every_pod_once) {
  constexpr size_t kDead = 60;  // more calls than a pass has
  for (const Play& one : kPlays) {
    size_t calls = calls_of(one);
    for (size_t nth = 1; nth <= calls; ++nth) {
      JobFixture fixture;
      for (size_t i = 0; i < kDead; ++i) fixture.client.fail(int(nth), Error(Code::unavailable, "killed"));  // one after another
      bool dead = false;
      size_t before = fixture.client.calls().size();
      auto watch_over = [&] {
        if (dead || fixture.client.calls().size() - before < nth) return;
        dead = true;
        while (fixture.client.calls().size() - before < nth + kDead) (void)fixture.client.get(kNode, {"", "pi"});
        fixture.boot();
      };
      fixture.client.put(kJob, R"({"metadata":{"name":"x","namespace":"default"},"spec":{"managedBy":"x/y"}})");
      fixture.put_job(one.spec);
      play_job(fixture, one, watch_over);
      EXPECT_TRUE(dead || nth + 5 > calls) << one.name << " " << nth;  // the last pass may end earlier
      check_counts(fixture, std::string(one.name) + ", killed at call " + std::to_string(nth));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(JobFaults, a_lost_event_counts_nothing_twice_and_heals) {
  for (const Play& one : kPlays) {
    for (int nth = 1; nth <= 40; ++nth) {
      JobFixture fixture;
      fixture.put_job(one.spec);
      fixture.client.lose_event(nth);
      int passes = 0;
      play_job(fixture, one, [&] {
        ASSERT_LE(fixture.count("succeeded"), fixture.made_succeeded) << one.name << " " << nth;
        ASSERT_LE(fixture.count("failed"), fixture.made_failed) << one.name << " " << nth;
        if (++passes % 60 == 0) fixture.boot();  // the caches become current again
      });
      // If the cache lacks a pod, its index may get a second one; the index still succeeds once.
      bool indexed = std::string_view(one.spec).find("Indexed") != std::string_view::npos;
      EXPECT_EQ(fixture.count("succeeded"), indexed ? get_int(fixture.job()->json(), "spec.completions") : fixture.made_succeeded)
          << one.name << " " << nth;
      EXPECT_EQ(fixture.count("failed"), fixture.made_failed) << one.name << " " << nth;
      if (testing::Test::HasFailure()) return;
    }
  }
}

// A pod that runs when its job has succeeded is released uncounted. It must not be counted when it ends, even though the cache
// still shows the finalizer.
TEST_F(JobTest, a_pod_that_was_let_go_of_is_not_counted_when_nobody_was_told) {
  put_job(R"("completions":2,"parallelism":2,"completionMode":"Indexed","successPolicy":{"rules":[{"succeededIndexes":"1"}]})");
  for (const ObjectPtr& pod : active()) run(*pod);
  const ObjectPtr running = of_index(0);
  client.lose_patch("patch pods " + running->key().text());
  end(*of_index(1), 0);
  settle();
  bury();
  pass(seconds(60));
  EXPECT_EQ(condition("Complete"), "True SuccessPolicy: Matched rules at index 0");
  EXPECT_EQ(count("failed"), 0);
  EXPECT_EQ(count("succeeded"), 1);
}

}  // namespace
}  // namespace coracle::controller
