// SPDX-License-Identifier: Apache-2.0
// Validation of CronJobs: schedule, time zone, and a job template without a selector. Source: batch/v1 API reference, CronJob;
// the IANA time zone database, "Names of timezones".
#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/job/job_kinds.h"
#include "store/schema/schedule.h"
#include "store/schema/time_zone.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kNameMax = 52;  // a job's name is 11 characters longer

bool zone_part_ok(std::string_view part) {
  auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-_+").find(c) != std::string_view::npos;
  };
  return !part.empty() && part.size() <= 14 && part != "." && part != ".." && part[0] != '-' &&
         std::all_of(part.begin(), part.end(), good);
}

void check_time_zone(std::string_view name, const std::string& path, Findings& out) {
  if (name.empty()) return out.invalid(path, name, "timeZone must be nil or non-empty string");
  for (std::string_view part : split(name, '/')) {
    if (!zone_part_ok(part)) return out.invalid(path, name, "unknown time zone " + std::string(name));
  }
  if (to_lower(name) == "local") {
    out.invalid(path, name, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  }
  if (auto zone_there = TimeZone::find(std::string(name)); !zone_there) out.invalid(path, name, zone_there.error().text());
}

void check_cron_job_spec(const json::value& value, const std::string& path, Findings& out) {
  view::CronJobSpec spec(value);
  std::string_view schedule = spec.schedule();
  if (!schedule.empty()) {
    if (auto parsed = Schedule::parse(schedule); !parsed) out.invalid(sub(path, "schedule"), schedule, parsed.error().text());
    if (schedule.find("TZ") != schedule.npos) {
      out.invalid(sub(path, "schedule"), schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    }
  }
  for (std::string_view name : {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    out.not_negative(sub(path, name), get_int(value, name));
  }
  if (spec.has_time_zone()) check_time_zone(spec.time_zone(), sub(path, "timeZone"), out);
}

void check_job_template(const json::value& value, const std::string& path, Findings& out) {
  view::JobSpec spec = view::JobTemplateSpec(value).spec();
  if (spec.has_selector()) {
    out.invalid_json(sub(path, "spec.selector"), spec.selector().raw(), "`selector` will be auto-generated");
  }
  if (spec.manual_selector()) {
    out.not_supported_json(sub(path, "spec.manualSelector"), json::value(true), {"nil", "false"});
  }
}

constexpr NamedValidationRule kCronJobChecks[] = {
    {"io.k8s.api.batch.v1.CronJobSpec", check_cron_job_spec},
    {"io.k8s.api.batch.v1.JobTemplateSpec", check_job_template},
};

}  // namespace

std::span<const NamedValidationRule> cron_job_rules() { return kCronJobChecks; }

void check_cron_job_create(const json::value& job, Findings& out) {
  std::string_view name = view::CronJob(job).metadata().name();
  if (name.size() > kNameMax) out.invalid("metadata.name", name, "must be no more than 52 characters");
}

}  // namespace coracle::schema
