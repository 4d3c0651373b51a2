// SPDX-License-Identifier: Apache-2.0
// CronJob: one job for each scheduled time, whatever the clock does and whenever the daemon stops.
#include "daemon/controller/job/cron_job.h"

#include "daemon/controller/job/job.h"
#include "runtime/base/text.h"
#include "tests/catalogs.h"
#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

using std::chrono::seconds;

const Key kCronJobKey{"default", "tick"};

WallTime time_of(const char* text) { return MUST(parse_time(text)); }

// Only the CronJob controller runs: the test ends the jobs.
struct CronJobFixture {
  FakeClock clock{time_of("2024-03-01T10:00:30Z")};
  FakeClient client{clock};
  CollectedEvents events;
  Config config;
  std::unique_ptr<Informers> informers;
  std::unique_ptr<Controller> controller;
  std::unique_ptr<WorkQueue> queue;

  CronJobFixture() { boot(); }
  ~CronJobFixture() { stop(); }
  void stop() {
    if (informers) informers->stop();
    controller.reset();
    informers.reset();
  }
  void boot() {
    stop();
    queue = std::make_unique<WorkQueue>(BackoffPolicy{}, clock);
    informers = std::make_unique<Informers>(client);
    controller = make_cron_job_controller({client, *informers, events, built_in_catalogs(), clock, config});
    controller->subscribe({[this](Key key) { queue->add(std::move(key)); },
                           [this](Key key, std::chrono::nanoseconds delay) { queue->add_after(std::move(key), delay); }});
    MUST(informers->start());
    client.settle();
  }
  bool run_once() {
    auto lease = queue->try_take();
    if (!lease) return false;
    work_once(*queue, lease->key(), "test", [this](const Key& key) { return controller->reconcile(key); });
    return true;
  }
  void settle() {
    for (int passes = 0; passes < 5000; ++passes) {
      client.settle();
      if (!run_once()) return;
    }
    FAIL() << "the controller does not come to rest";
  }
  void pass(seconds span) {
    for (; span.count() > 0; span -= seconds(1)) {
      clock.advance(seconds(1));
      settle();
    }
  }
  void set_clock(WallTime to) {
    clock.set(to);
    queue->add_all_delayed();
    settle();
  }

  void put(const std::string& spec, const std::string& status = "{}", const std::string& created = "2024-03-01T10:00:00Z") {
    client.put(
        kCronJob,
        R"({"metadata":{"name":"tick","namespace":"default","uid":"cron-uid","creationTimestamp":")" + created +
            R"("},"spec":{)" + spec +
            R"(,"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1,"jobTemplate":{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},"spec":{"completions":1}}},
      "status":)" +
            status + "}");
    settle();
  }
  void change_spec(const json::value& spec) {
    MUST(client.patch(kCronJob, kCronJobKey, PatchType::merge, {{"spec", spec}}));
    settle();
  }
  void end(const std::string& job, const char* how = "Complete") {
    std::string now = format_time(clock.now());
    client.set_status(kJob, {"default", job},
                      R"({"startTime":")" + now + R"(","completionTime":")" + now + R"(","conditions":[{"type":")" + how +
                          R"(","status":"True"}]})");
    settle();
  }
  std::string jobs() const {
    std::vector<std::string> names;
    for (const ObjectPtr& job : client.all(kJob)) names.push_back(job->name());
    return join(names, " ");
  }
  json::value status() const { return get_object(client.find(kCronJob, kCronJobKey)->json(), "status"); }
  std::string text(const char* name) const { return std::string(get_string(status(), name)); }
  std::string active() const {
    json::value now = status();
    std::vector<std::string> names;
    for (const json::value& each : get_array(now, "active")) names.emplace_back(get_string(each, "name"));
    return join(names, " ");
  }
};

struct CronJobTest : testing::Test, CronJobFixture {};

// 2024-03-01T10:00:00Z is minute 28488120 since the epoch.
constexpr int64_t kTen = 28488120;
std::string run(int minute) { return "tick-" + std::to_string(kTen + minute); }

TEST_F(CronJobTest, makes_a_job_at_each_scheduled_time) {
  put(R"("schedule":"*/5 * * * *","timeZone":"Europe/Berlin")");
  EXPECT_EQ(jobs(), "");
  pass(seconds(4 * 60 + 29));
  EXPECT_EQ(jobs(), "");
  pass(seconds(1));
  ASSERT_EQ(jobs(), run(5));
  ObjectPtr job = client.all(kJob)[0];
  EXPECT_EQ(job->controller()->uid, "cron-uid");
  EXPECT_EQ(job->controller()->kind, "CronJob");
  EXPECT_EQ(job->label("a"), "b");
  EXPECT_EQ(job->annotation("c"), "d");
  EXPECT_EQ(job->annotation(kScheduledAt), "2024-03-01T11:05:00+01:00");
  EXPECT_EQ(get_int(job->json(), "spec.completions"), 1);
  EXPECT_TRUE(events.has("SuccessfulCreate", "Created job " + run(5)));
  EXPECT_EQ(active(), run(5));
  EXPECT_EQ(text("lastScheduleTime"), "2024-03-01T10:05:00Z");

  client.clear_calls();
  pass(seconds(200));
  EXPECT_TRUE(client.calls().empty()) << client.calls()[0];
  end(run(5));
  EXPECT_EQ(active(), "");
  EXPECT_EQ(text("lastSuccessfulTime"), format_time(clock.now()));
  EXPECT_TRUE(events.has("SawCompletedJob", "Saw completed job: " + run(5) + ", condition: Complete"));
  pass(seconds(100));
  EXPECT_EQ(active(), run(10));
}

TEST_F(CronJobTest, allows_forbids_or_replaces_what_still_runs) {
  put(R"("schedule":"* * * * *","concurrencyPolicy":"Allow")");
  pass(seconds(90));
  EXPECT_EQ(active(), run(1) + " " + run(2));

  change_spec({{"concurrencyPolicy", "Forbid"}});
  pass(seconds(60));
  EXPECT_EQ(active(), run(1) + " " + run(2));
  EXPECT_TRUE(
      events.has("JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid"));
  end(run(1));
  EXPECT_EQ(active(), run(2));
  pass(seconds(10));
  end(run(2));
  EXPECT_EQ(active(), run(3)) << "what had to wait starts as soon as it may";

  change_spec({{"concurrencyPolicy", "Replace"}});
  pass(seconds(50));
  EXPECT_EQ(active(), run(4));
  EXPECT_FALSE(client.find(kJob, {"default", run(3)}));
  EXPECT_TRUE(events.has("SuccessfulDelete", "Deleted job " + run(3)));
}

TEST_F(CronJobTest, suspended_it_starts_nothing_and_then_the_last_run_that_it_missed) {
  put(R"("schedule":"* * * * *","suspend":true)");
  pass(seconds(300));
  EXPECT_EQ(jobs(), "");
  change_spec({{"suspend", false}});
  EXPECT_EQ(jobs(), run(5));
  pass(seconds(29));
  EXPECT_EQ(jobs(), run(5));
}

TEST_F(CronJobTest, what_is_too_late_is_left_out) {
  put(R"("schedule":"0 * * * *","startingDeadlineSeconds":20,"suspend":true)");
  set_clock(time_of("2024-03-01T11:00:20Z"));
  change_spec({{"suspend", false}});
  EXPECT_EQ(jobs(), "");
  EXPECT_TRUE(events.has("MissSchedule", "Missed scheduled time to start a job: 2024-03-01T11:00:00"));
  events.take();
  pass(seconds(3580));
  EXPECT_EQ(jobs(), run(120));
  EXPECT_FALSE(events.has("MissSchedule", "")) << "told once";
}

TEST_F(CronJobTest, keeps_as_many_ended_jobs_as_its_history_holds) {
  put(R"("schedule":"* * * * *")");
  pass(seconds(30));
  for (int minute = 1; minute <= 5; ++minute) {
    end(run(minute));
    pass(seconds(60));
  }
  EXPECT_EQ(jobs(), run(3) + " " + run(4) + " " + run(5) + " " + run(6));
  EXPECT_TRUE(events.has("SuccessfulDelete", "Deleted job " + run(2)));
  end(run(6), "Failed");
  pass(seconds(60));
  end(run(7), "Failed");
  EXPECT_EQ(jobs(), run(3) + " " + run(4) + " " + run(5) + " " + run(7));
  EXPECT_TRUE(events.has("SawCompletedJob", "Saw completed job: " + run(7) + ", condition: Failed"));
}

TEST_F(CronJobTest, tells_of_jobs_that_it_does_not_know_or_misses) {
  client.put(
      kJob,
      R"({"metadata":{"name":"other","namespace":"default","uid":"o","ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"tick","uid":"cron-uid","controller":true}]}})");
  put(R"("schedule":"0 0 1 1 *")", R"({"active":[{"name":"lost","uid":"l"}]})");
  EXPECT_TRUE(events.has("UnexpectedJob", "Saw a job that the controller did not create or forgot: other"));
  EXPECT_TRUE(events.has("MissingJob", "Active job went missing: lost"));
  EXPECT_EQ(active(), "");
}

TEST_F(CronJobTest, a_run_that_the_status_does_not_know_of_is_known_before_another_is_due) {
  put(R"("schedule":"* * * * *","concurrencyPolicy":"Forbid")");
  stop();  // right after it created the first one
  client.put(
      kJob,
      R"({"metadata":{"name":")" + run(1) +
          R"(","namespace":"default","uid":"o","annotations":{"batch.kubernetes.io/cronjob-scheduled-timestamp":"2024-03-01T10:01:00Z"},
    "ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"tick","uid":"cron-uid","controller":true}]}})");
  clock.advance(seconds(180));
  boot();
  settle();
  EXPECT_EQ(jobs(), run(1));
  EXPECT_EQ(active(), run(1));
  EXPECT_EQ(text("lastScheduleTime"), "2024-03-01T10:01:00Z");
  end(run(1));
  EXPECT_EQ(active(), run(3));
  EXPECT_FALSE(events.has("UnexpectedJob", ""));
}

TEST_F(CronJobTest, a_run_that_ended_before_the_status_knew_of_it_is_not_made_again) {
  put(R"("schedule":"0 * * * *","suspend":true)");
  client.put(
      kJob,
      R"({"metadata":{"name":")" + run(0) +
          R"(","namespace":"default","uid":"o","annotations":{"batch.kubernetes.io/cronjob-scheduled-timestamp":"2024-03-01T10:00:00Z"},
    "ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"tick","uid":"cron-uid","controller":true}]},"status":{"conditions":[{"type":"Complete","status":"True"}]}})");
  settle();
  EXPECT_EQ(active(), "");
  EXPECT_EQ(text("lastScheduleTime"), "2024-03-01T10:00:00Z");
}

TEST_F(CronJobTest, a_zone_that_is_not_there_is_told) {
  put(R"("schedule":"* * * * *","timeZone":"Mars/Olympus")");
  pass(seconds(120));
  EXPECT_EQ(jobs(), "");
  EXPECT_TRUE(events.has("UnknownTimeZone", "invalid timeZone: \"Mars/Olympus\": unknown time zone Mars/Olympus"));
  change_spec({{"timeZone", "UTC"}, {"schedule", "nonsense"}});
  EXPECT_TRUE(events.has("UnparseableSchedule", "unparseable schedule: \"nonsense\""));
}

TEST_F(CronJobTest, somebody_elses_job_of_that_name_is_in_the_way) {
  client.put(kJob, R"({"metadata":{"name":")" + run(1) + R"(","namespace":"default","uid":"o"}})");
  put(R"("schedule":"* * * * *")");
  pass(seconds(30));
  EXPECT_TRUE(events.has("FailedCreate", "Error creating job: job " + run(1) + " exists and is not this cron job's"));
  EXPECT_EQ(text("lastScheduleTime"), "");
}

// ---- the clock ----

TEST_F(CronJobTest, a_clock_that_jumps_from_1970_to_today_starts_one_run) {
  clock.set(WallTime(seconds(30)));
  put(R"("schedule":"* * * * *")", "{}", "1970-01-01T00:00:00Z");
  pass(seconds(30));
  EXPECT_EQ(jobs(), "tick-1");
  end("tick-1");
  set_clock(time_of("2024-03-01T10:00:30Z"));
  EXPECT_EQ(jobs(), "tick-1 " + run(0));
  EXPECT_TRUE(events.has("TooManyMissedTimes",
                         "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"));
  pass(seconds(29));
  EXPECT_EQ(jobs(), "tick-1 " + run(0));
  pass(seconds(1));
  EXPECT_EQ(active(), run(0) + " " + run(1)) << "the next one comes at its time";
}

TEST_F(CronJobTest, a_start_in_1970_does_not_run_what_was_run_in_its_future) {
  put(R"("schedule":"*/5 * * * *")", R"({"lastScheduleTime":"2024-03-01T10:00:00Z"})");
  set_clock(WallTime(seconds(30)));
  boot();
  pass(seconds(600));
  EXPECT_EQ(jobs(), "");
  set_clock(time_of("2024-03-01T10:04:50Z"));
  EXPECT_EQ(jobs(), "");
  pass(seconds(10));
  EXPECT_EQ(jobs(), run(5));
}

TEST_F(CronJobTest, a_last_run_by_a_clock_that_was_years_ahead_keeps_nothing_from_running) {
  put(R"("schedule":"*/5 * * * *")", R"({"lastScheduleTime":"2038-01-19T03:10:00Z"})");
  EXPECT_EQ(jobs(), "");
  pass(seconds(270));
  EXPECT_EQ(jobs(), run(5));
  pass(seconds(300));
  EXPECT_EQ(jobs(), run(5) + " " + run(10));
}

TEST_F(CronJobTest, a_clock_that_is_set_back_an_hour_repeats_nothing) {
  put(R"("schedule":"*/5 * * * *")");
  pass(seconds(270));
  ASSERT_EQ(jobs(), run(5));
  set_clock(time_of("2024-03-01T09:05:10Z"));
  pass(seconds(64 * 60));
  EXPECT_EQ(jobs(), run(5));
  pass(seconds(50));
  EXPECT_EQ(jobs(), run(5) + " " + run(10)) << "at 10:10 by the clock";
}

TEST_F(CronJobTest, a_clock_that_is_set_forward_delays_nothing) {
  put(R"("schedule":"0 * * * *")");
  set_clock(time_of("2024-03-01T10:59:50Z"));
  pass(seconds(10));
  EXPECT_EQ(jobs(), run(60)) << "not an hour later, when the timer of before would end";
}

TEST_F(CronJobTest, as_many_as_a_hundred_missed_runs_are_nothing_to_tell) {
  put(R"("schedule":"* * * * *","suspend":true)");
  set_clock(time_of("2024-03-01T11:40:30Z"));
  change_spec({{"suspend", false}});
  EXPECT_EQ(jobs(), run(100));
  EXPECT_FALSE(events.has("TooManyMissedTimes", ""));
}

TEST(DueRun, a_deadline_bounds_what_counts_as_missed) {
  auto cron =
      MUST(parse_json(R"({"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"startingDeadlineSeconds":200}})"));
  auto zone = MUST(schema::TimeZone::find("UTC"));
  auto every_minute = MUST(schema::Schedule::parse("* * * * *"));
  DueRun due = due_run(view::CronJob(cron), every_minute, zone, time_of("2024-03-01T10:00:10Z"));
  EXPECT_EQ(format_time(*due.at), "2024-03-01T10:00:00Z");
  EXPECT_FALSE(due.many_missed);
}

// ---- faults ----

// Seven minutes with a run each, which ends at once; then the invariants that hold in every case.
void play_cron_job(CronJobFixture& fixture, const std::function<void()>& each) {
  for (int second = 0; second < 425; ++second) {
    each();
    fixture.clock.advance(seconds(1));
    for (int passes = 0; passes < 100; ++passes) {
      fixture.client.settle();
      if (!fixture.run_once()) break;
      each();
    }
  }
}

TEST(CronJobFaults, stopped_at_any_call_it_starts_each_run_once) {
  constexpr size_t kDead = 10;
  for (size_t nth = 1; nth <= 40; ++nth) {
    CronJobFixture fixture;
    for (size_t i = 0; i < kDead; ++i) fixture.client.fail(int(nth), Error(Code::unavailable, "killed"));  // one after another
    size_t before = fixture.client.calls().size();
    bool dead = false;
    std::map<std::string, std::string> uids;  // of each run's job
    fixture.put(R"("schedule":"* * * * *","concurrencyPolicy":"Allow")");
    play_cron_job(fixture, [&] {
      for (const ObjectPtr& job : fixture.client.all(kJob)) {
        auto [known, fresh] = uids.try_emplace(job->name(), job->uid());
        EXPECT_EQ(known->second, job->uid()) << job->name() << " was made twice, stopped at call " << nth;
        if (fresh) {
          std::string now = format_time(fixture.clock.now());
          fixture.client.set_status(kJob, job->key(),
                                    R"({"startTime":")" + now + R"(","completionTime":")" + now +
                                        R"(","conditions":[{"type":"Complete","status":"True"}]})");
        }
      }
      if (dead || fixture.client.calls().size() - before < nth) return;
      dead = true;
      while (fixture.client.calls().size() - before < nth + kDead) (void)fixture.client.get(kCronJob, kCronJobKey);
      fixture.boot();
    });
    EXPECT_EQ(uids.size(), 7u) << nth;
    for (int minute = 1; minute <= 7; ++minute) EXPECT_TRUE(uids.contains(run(minute))) << nth << " " << minute;
    EXPECT_EQ(fixture.text("lastScheduleTime"), "2024-03-01T10:07:00Z") << nth;
    EXPECT_FALSE(fixture.events.has("UnexpectedJob", "")) << nth;
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace coracle::controller
