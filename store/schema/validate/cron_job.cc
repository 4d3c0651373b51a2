// SPDX-License-Identifier: Apache-2.0
// Validation of CronJobs: schedule, time zone, and a template whose selector is left to the server.
// Source: batch/v1 API reference, CronJob; crontab(5); the IANA time zone database, "Names of timezones".
#include <algorithm>

#include "runtime/base/text.h"
#include "store/schema/validate/findings.h"
#include "store/schema/validate/schedule.h"

namespace coracle::schema {
namespace {

constexpr size_t kNameMax = 52;  // a job's name has 11 characters more

bool digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }); }

struct Bounds {
  int64_t low, high;
  std::string_view names;  // of the numbers from `low` on, three letters each
};

constexpr Bounds kFields[] = {{0, 59, ""}, {0, 23, ""}, {1, 31, ""}, {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 6, "sunmontuewedthufrisat"}};

std::string read_number(std::string_view text, int64_t& number) {
  bool minus = text.starts_with('-');
  std::string_view rest = minus || text.starts_with('+') ? text.substr(1) : text;
  auto parsed = digits(rest) ? parse_number<uint32_t>(rest) : std::nullopt;
  if (!parsed) {
    std::string shown(text);
    return "failed to parse int from " + shown + ": strconv.Atoi: parsing " + quoted(text) + ": " +
           (digits(rest) ? "value out of range" : "invalid syntax");
  }
  number = minus ? -int64_t(*parsed) : int64_t(*parsed);
  if (number < 0) return "negative number (" + std::to_string(number) + ") not allowed: " + std::string(text);
  return {};
}

std::string read_number_or_name(std::string_view text, const Bounds& bounds, int64_t& number) {
  std::string name = to_lower(text);
  size_t at = name.size() == 3 ? bounds.names.find(name) : std::string_view::npos;
  if (at == std::string_view::npos || at % 3) return read_number(text, number);
  number = bounds.low + int64_t(at / 3);
  return {};
}

// One part of a field: *, 5, 5-10, */15, 5-50/15.
std::string range_problem(std::string_view text, const Bounds& bounds) {
  std::vector<std::string_view> parts = split(text, '/'), ends = split(parts[0], '-');
  std::string shown(text);
  int64_t start = bounds.low, end = bounds.high, step = 1;
  bool everything = ends[0] == "*" || ends[0] == "?";
  if (!everything) {
    if (std::string problem = read_number_or_name(ends[0], bounds, start); !problem.empty()) return problem;
    end = start;
    if (ends.size() > 2) return "too many hyphens: " + shown;
    if (ends.size() == 2) {
      if (std::string problem = read_number_or_name(ends[1], bounds, end); !problem.empty()) return problem;
    }
  }
  if (parts.size() > 2) return "too many slashes: " + shown;
  if (parts.size() == 2) {
    if (std::string problem = read_number(parts[1], step); !problem.empty()) return problem;
    if (ends.size() == 1) end = bounds.high;
  }
  auto number = [](int64_t value) { return "(" + std::to_string(value) + ")"; };
  if (start < bounds.low) return "beginning of range " + number(start) + " below minimum " + number(bounds.low) + ": " + shown;
  if (end > bounds.high) return "end of range " + number(end) + " above maximum " + number(bounds.high) + ": " + shown;
  if (start > end) return "beginning of range " + number(start) + " beyond end of range " + number(end) + ": " + shown;
  if (step == 0) return "step of range should be a positive number: " + shown;
  return {};
}

// A duration in Go's form: 1h30m, 1.5h, 90s.
bool is_duration(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return true;
  if (text.empty()) return false;
  while (!text.empty()) {
    size_t number = text.find_first_not_of("0123456789.");
    if (number == 0 || number == text.npos) return false;
    std::string_view amount = text.substr(0, number);
    if (amount == "." || std::count(amount.begin(), amount.end(), '.') > 1) return false;
    text.remove_prefix(number);
    std::string_view unit = text.substr(0, text.find_first_of("0123456789."));
    if (std::string_view("|ns|us|µs|μs|ms|s|m|h|").find("|" + std::string(unit) + "|") == std::string_view::npos) return false;
    text.remove_prefix(unit.size());
  }
  return true;
}

std::string named_schedule_problem(std::string_view text) {
  for (std::string_view name : {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}) {
    if (text == name) return {};
  }
  constexpr std::string_view kEvery = "@every ";
  if (!text.starts_with(kEvery)) return "unrecognized descriptor: " + std::string(text);
  std::string_view span = text.substr(kEvery.size());
  if (is_duration(span)) return {};
  return "failed to parse duration " + std::string(text) + ": time: invalid duration " + quoted(span);
}

bool zone_part_ok(std::string_view part) {
  auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view(".-_+").find(c) != std::string_view::npos;
  };
  return !part.empty() && part.size() <= 14 && part != "." && part != ".." && part[0] != '-' && std::all_of(part.begin(), part.end(), good);
}

void check_time_zone(const json::value& zone, const std::string& path, Findings& out) {
  std::string_view name = zone.is_string() ? std::string_view(zone.get_string()) : std::string_view();
  if (name.empty()) return out.invalid(path, name, "timeZone must be nil or non-empty string");
  for (std::string_view part : split(name, '/')) {
    if (!zone_part_ok(part)) return out.invalid(path, name, "unknown time zone " + std::string(name));
  }
  if (to_lower(name) == "local") {
    out.invalid(path, name, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  }
}

void check_cron_job_spec(const json::value& spec, const std::string& path, Findings& out) {
  std::string_view schedule = get_string(spec, "schedule");
  if (!schedule.empty()) {
    if (std::string problem = schedule_problem(schedule); !problem.empty()) out.invalid(sub(path, "schedule"), schedule, problem);
    if (schedule.find("TZ") != schedule.npos) {
      out.invalid(sub(path, "schedule"), schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    }
  }
  for (std::string_view name : {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    out.not_negative(sub(path, name), get_int(spec, name));
  }
  if (const json::value* zone = find(spec, "timeZone")) check_time_zone(*zone, sub(path, "timeZone"), out);
}

void check_job_template(const json::value& value, const std::string& path, Findings& out) {
  if (const json::value* selector = find(value, "spec.selector")) {
    out.invalid_json(sub(path, "spec.selector"), *selector, "`selector` will be auto-generated");
  }
  if (get_bool(value, "spec.manualSelector")) {
    out.not_supported_json(sub(path, "spec.manualSelector"), json::value(true), {"nil", "false"});
  }
}

constexpr NamedValidationRule kRules[] = {
    {"io.k8s.api.batch.v1.CronJobSpec", check_cron_job_spec},
    {"io.k8s.api.batch.v1.JobTemplateSpec", check_job_template},
};

}  // namespace

std::string schedule_problem(std::string_view text) {
  if (text.empty()) return "empty spec string";
  for (std::string_view prefix : {"TZ=", "CRON_TZ="}) {
    if (!text.starts_with(prefix)) continue;
    size_t blank = text.find(' ');
    text = blank == text.npos ? std::string_view() : trim(text.substr(blank));
  }
  if (text.starts_with('@')) return named_schedule_problem(text);
  std::vector<std::string> fields;
  for (std::string_view part : split(text, ' ')) {
    if (!trim(part).empty()) fields.emplace_back(trim(part));
  }
  if (fields.size() != std::size(kFields)) {
    return "expected exactly 5 fields, found " + std::to_string(fields.size()) + ": [" + join(fields, " ") + "]";
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    for (std::string_view part : split(fields[i], ',')) {
      if (part.empty()) continue;
      if (std::string problem = range_problem(part, kFields[i]); !problem.empty()) return problem;
    }
  }
  return {};
}

std::span<const NamedValidationRule> cron_job_rules() { return kRules; }

void check_cron_job_create(const json::value& job, Findings& out) {
  std::string_view name = get_string(job, "metadata.name");
  if (name.size() > kNameMax) out.invalid("metadata.name", name, "must be no more than 52 characters");
}

}  // namespace coracle::schema
