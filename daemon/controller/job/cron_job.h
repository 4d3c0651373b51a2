// SPDX-License-Identifier: Apache-2.0
// The pure part of the CronJob controller: which run is due, the Job of a run, and which Jobs exceed the history limits. Source:
// Kubernetes CronJob.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/controller/shared/common.h"
#include "store/schema/schedule.h"

namespace coracle::controller {

inline constexpr std::string_view kScheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp";
inline constexpr int kMissedRunsMax = 100;  // beyond that a warning event is recorded
// A lastScheduleTime further in the future is ignored: the clock was wrong then.
inline constexpr std::chrono::hours kBelievedAhead{24};

struct DueRun {
  std::optional<WallTime> at;      // the last scheduled time that has passed without a Job; nullopt: nothing is due
  std::optional<WallTime> missed;  // a time later than `at` that passed longer ago than startingDeadlineSeconds
  bool many_missed = false;        // more than kMissedRunsMax before it
};
DueRun due_run(view::CronJob cron_job, const schema::Schedule& schedule, const schema::TimeZone& zone, WallTime now);

// NAME-MINUTES, with the minutes since the epoch. So the API rejects a second Job for the same run.
std::string run_name(std::string_view cron_job, WallTime scheduled);
json::value job_of_run(const Object& cron_job, WallTime scheduled, const schema::TimeZone& zone);

// Finished Jobs beyond the history limits, oldest first.
std::vector<ObjectPtr> outlived(view::CronJobSpec spec, const std::vector<ObjectPtr>& jobs);

}  // namespace coracle::controller
