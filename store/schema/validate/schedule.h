// SPDX-License-Identifier: Apache-2.0
// Schedules of CronJobs: what is wrong with one. Pure.
#pragma once

#include <string>
#include <string_view>

namespace coracle::schema {

// Five fields (minute, hour, day of the month, month, day of the week), "@hourly" and the like, or "@every 90m". "" when
// there is nothing wrong. Source: crontab(5); robfig/cron, whose words Kubernetes gives.
std::string schedule_problem(std::string_view text);

}  // namespace coracle::schema
