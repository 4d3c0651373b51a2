// SPDX-License-Identifier: Apache-2.0
// Actions on Jobs and CronJobs. Most of their pods end by themselves (nodes.h). Deadlines and TTLs are shorter than the time
// without changes that defines rest, so they expire before the rules for rest are checked.
// See user.h. Source: Kubernetes Jobs; CronJob.
#include "tests/simulation/nodes.h"
#include "tests/simulation/user.h"

namespace coracle::simulation {

void User::may_run_jobs(double rough) {
  may(0.4, "jobs",
      {[this] { create_job(); }, [this] { create_job(); }, [this] { create_job(); }, [this] { change_job(); },
       [this] { change_job(); }});
  may(rough * 0.4, "jobs' end",
      {[this] { remove(kJob, true); }, [this] { remove(kPod, false); }, [this] { remove(kPod, false); }});
  may(0.25, "cronjobs", {[this] { create_cron_job(); }, [this] { create_cron_job(); }, [this] { change_cron_job(); }});
  may(rough * 0.3, "cronjobs' end", {[this] { remove(kCronJob, true); }, [this] { remove(kJob, true); }});
}

void User::relent_jobs() {
  for (const ObjectPtr& cron_job : cluster_state_.all(kCronJob))
    (void)client_.patch(kCronJob, cron_job->key(), PatchType::merge, {{"spec", {{"suspend", true}}}});
  for (const ObjectPtr& job : cluster_state_.all(kJob))
    if (get_bool(job->json(), "spec.suspend") && dice_.chance(0.5))
      (void)client_.patch(kJob, job->key(), PatchType::merge, {{"spec", {{"suspend", false}}}});
}

// ---- jobs ----

json::object User::job_spec(const std::string& app) {
  json::object spec;
  bool indexed = dice_.chance(0.4), queue = !indexed && dice_.chance(0.2), once = true;
  int64_t completions = dice_.between(dice_.chance(0.1) ? 0 : 1, big_ ? 8 : 4);
  if (indexed) spec["completionMode"] = "Indexed";
  if (!queue) spec["completions"] = completions;
  spec["parallelism"] = dice_.chance(0.4) && !queue ? completions : dice_.between(dice_.chance(0.1) ? 0 : 1, big_ ? 6 : 3);
  if (indexed && dice_.chance(0.4)) {
    spec["backoffLimitPerIndex"] = dice_.between(0, 2);
    if (dice_.chance(0.5)) spec["maxFailedIndexes"] = dice_.between(0, completions);
  } else {
    if (dice_.chance(0.7)) spec["backoffLimit"] = dice_.between(0, 4);
    once = dice_.chance(0.7);
  }
  if (once && dice_.chance(0.3)) {
    json::array rules;
    auto by_code = [&](const char* action, int64_t code) {
      rules.push_back({{"action", action},
                       {"onExitCodes", {{"operator", dice_.chance(0.8) ? "In" : "NotIn"}, {"values", json::array{code}}}}});
    };
    if (dice_.chance(0.5))
      rules.push_back(
          {{"action", "Ignore"}, {"onPodConditions", json::array{{{"type", "DisruptionTarget"}, {"status", "True"}}}}});
    if (dice_.chance(0.4)) by_code("FailJob", 3);
    if (dice_.chance(0.4)) by_code(spec.contains("backoffLimitPerIndex") ? "FailIndex" : "Count", 2);
    if (rules.empty() || dice_.chance(0.3)) by_code("Ignore", 1);
    spec["podFailurePolicy"] = {{"rules", std::move(rules)}};
  } else if (dice_.chance(0.4)) {
    spec["podReplacementPolicy"] = dice_.pick<std::string>({"Failed", "TerminatingOrFailed"});
  }
  if (indexed && completions > 0 && dice_.chance(0.3)) {
    json::object rule;
    bool some = dice_.chance(0.5);
    if (some)
      rule["succeededIndexes"] = completions > 1 && dice_.chance(0.5) ? "0," + std::to_string(completions - 1)
                                                                      : std::to_string(dice_.between(0, completions - 1));
    if (!some || dice_.chance(0.3)) rule["succeededCount"] = some ? 1 : dice_.between(1, completions);
    spec["successPolicy"] = {{"rules", json::array{rule}}};
  }
  if (dice_.chance(0.2)) spec["activeDeadlineSeconds"] = dice_.between(1, 300);
  if (dice_.chance(0.3)) spec["ttlSecondsAfterFinished"] = dice_.chance(0.3) ? 0 : dice_.between(1, 300);
  if (dice_.chance(0.15)) spec["suspend"] = true;

  json::object pods = pod_template(app);
  pods["spec"].as_object()["restartPolicy"] = once ? "Never" : "OnFailure";
  if (dice_.chance(0.9)) pods["metadata"].as_object()["annotations"] = {{kOutcome, "ends"}};
  spec["template"] = std::move(pods);
  return spec;
}

void User::create_job() {
  std::string app = name(dice_.pick<std::string>({"job", "batch"}));
  json::object spec = job_spec(app);
  if (dice_.chance(0.15)) spec["manualSelector"] = true, spec["selector"] = {{"matchLabels", {{"app", app}}}};
  create(kJob, {{"metadata", {{"name", app}}}, {"spec", std::move(spec)}});
}

void User::change_job() {
  change(kJob, [this](json::value& body) {
    bool indexed = get_string(body, "spec.completionMode") == "Indexed";
    switch (dice_.between(0, 5)) {
      case 0:
      case 1: make(body, "spec.suspend") = !get_bool(body, "spec.suspend"); break;
      case 2:
      case 3: {
        int64_t size = dice_.between(dice_.chance(0.2) ? 0 : 1, big_ ? 6 : 4);
        make(body, "spec.parallelism") = size;
        if (indexed && dice_.chance(0.7)) make(body, "spec.completions") = size;
        break;
      }
      case 4: make(body, "spec.ttlSecondsAfterFinished") = dice_.between(0, 300); break;
      default: make(body, "spec.activeDeadlineSeconds") = dice_.between(1, 300);
    }
  });
}

// ---- cron jobs ----

void User::create_cron_job() {
  std::string app = name("cron");
  json::object job = job_spec(app);
  job.erase("suspend");
  json::object spec{{"schedule", dice_.pick<std::string>({"* * * * *", "* * * * *", "*/2 * * * *", "*/5 * * * *"})},
                    {"jobTemplate", {{"spec", std::move(job)}}}};
  if (dice_.chance(0.3)) spec["timeZone"] = dice_.pick<std::string>({"Etc/UTC", "Europe/Berlin", "Asia/Kolkata"});
  if (dice_.chance(0.7)) spec["concurrencyPolicy"] = dice_.pick<std::string>({"Allow", "Forbid", "Replace"});
  if (dice_.chance(0.3)) spec["startingDeadlineSeconds"] = dice_.between(10, 200);
  if (dice_.chance(0.5)) spec["successfulJobsHistoryLimit"] = dice_.between(0, 3);
  if (dice_.chance(0.5)) spec["failedJobsHistoryLimit"] = dice_.between(0, 2);
  create(kCronJob, {{"metadata", {{"name", app}}}, {"spec", std::move(spec)}});
}

void User::change_cron_job() {
  change(kCronJob, [this](json::value& body) {
    switch (dice_.between(0, 3)) {
      case 0: make(body, "spec.suspend") = !get_bool(body, "spec.suspend"); break;
      case 1: make(body, "spec.concurrencyPolicy") = dice_.pick<std::string>({"Allow", "Forbid", "Replace"}); break;
      case 2: make(body, "spec.schedule") = dice_.pick<std::string>({"* * * * *", "*/3 * * * *"}); break;
      default:
        make(body, dice_.chance(0.5) ? "spec.successfulJobsHistoryLimit" : "spec.failedJobsHistoryLimit") = dice_.between(0, 2);
    }
  });
}

}  // namespace coracle::simulation
