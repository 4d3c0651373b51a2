// SPDX-License-Identifier: Apache-2.0
// The pure part of the CronJob controller: which run is due, what its job is like, which jobs have been kept long enough.
// Source: Kubernetes CronJob.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/controller/common.h"
#include "store/schema/schedule.h"

namespace coracle::controller {

inline constexpr std::string_view kScheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp";
inline constexpr int kMissedRunsMax = 100;               // beyond that somebody is told
inline constexpr std::chrono::hours kBelievedAhead{24};  // a last run further ahead than that was of a clock that was wrong

struct DueRun {
  std::optional<WallTime> at;      // the last scheduled time that has passed without a job. None: nothing is due
  std::optional<WallTime> missed;  // a later one than `at` passed too long ago for startingDeadlineSeconds
  bool many_missed = false;        // more than kMissedRunsMax before it
};
DueRun due_run(view::CronJob cron_job, const schema::Schedule& schedule, const schema::TimeZone& zone, WallTime now);

// NAME-MINUTES, minutes since the epoch: a run that is started twice is refused once.
std::string run_name(std::string_view cron_job, WallTime scheduled);
json::value job_of_run(const Object& cron_job, WallTime scheduled, const schema::TimeZone& zone);

// Finished jobs beyond the limits of the history, the oldest first.
std::vector<ObjectPtr> outlived(view::CronJobSpec spec, const std::vector<ObjectPtr>& jobs);

}  // namespace coracle::controller
