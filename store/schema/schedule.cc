// SPDX-License-Identifier: Apache-2.0
// See schedule.h.
#include "store/schema/schedule.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/text.h"

namespace coracle::schema {
namespace {

bool digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Bounds {
  int64_t low, high;
  std::string_view names;  // names of the values from `low` on, three letters each
};

constexpr Bounds kFieldBounds[] = {
    {0, 59, ""}, {0, 23, ""}, {1, 31, ""}, {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 6, "sunmontuewedthufrisat"}};

Error wrong(std::string words) { return Error(Code::invalid, std::move(words)); }

Result<int64_t> read_number(std::string_view text) {
  bool minus = text.starts_with('-');
  std::string_view rest = minus || text.starts_with('+') ? text.substr(1) : text;
  auto parsed = digits(rest) ? parse_number<uint32_t>(rest) : std::nullopt;
  if (!parsed) {
    std::string shown(text);
    return wrong("failed to parse int from " + shown + ": strconv.Atoi: parsing " + quoted(text) + ": " +
                 (digits(rest) ? "value out of range" : "invalid syntax"));
  }
  if (minus && *parsed > 0) return wrong("negative number (-" + std::to_string(*parsed) + ") not allowed: " + std::string(text));
  return int64_t(*parsed);
}

Result<int64_t> read_number_or_name(std::string_view text, const Bounds& bounds) {
  std::string name = to_lower(text);
  size_t at = name.size() == 3 ? bounds.names.find(name) : std::string_view::npos;
  if (at == std::string_view::npos || at % 3) return read_number(text);
  return bounds.low + int64_t(at / 3);
}

// A duration in Go's format: 1h30m, 1.5h, 90s. Nothing if it is invalid or exceeds Go's range.
std::optional<std::chrono::duration<double>> read_duration(std::string_view text) {
  bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return std::chrono::duration<double>(0);
  if (text.empty()) return std::nullopt;
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"μs", 1e-6},
                                                            {"ms", 1e-3}, {"s", 1},     {"m", 60},    {"h", 3600}};
  double total = 0;
  while (!text.empty()) {
    size_t number = text.find_first_not_of("0123456789.");
    if (number == 0 || number == text.npos) return std::nullopt;
    std::string amount(text.substr(0, number));
    if (amount == "." || std::count(amount.begin(), amount.end(), '.') > 1) return std::nullopt;
    text.remove_prefix(number);
    std::string_view unit = text.substr(0, text.find_first_of("0123456789."));
    auto found = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& each) { return each.first == unit; });
    if (found == std::end(kUnits)) return std::nullopt;
    total += std::strtod(amount.c_str(), nullptr) * found->second;
    text.remove_prefix(unit.size());
  }
  if (total > double(std::numeric_limits<int64_t>::max()) * 1e-9) return std::nullopt;
  return std::chrono::duration<double>(minus ? -total : total);
}

}  // namespace

class ScheduleReader {
 public:
  static Result<Schedule> read(std::string_view text) {
    if (text.empty()) return wrong("empty spec string");
    for (std::string_view prefix : {"TZ=", "CRON_TZ="}) {  // rejected elsewhere with another error
      if (!text.starts_with(prefix)) continue;
      size_t blank = text.find(' ');
      text = blank == text.npos ? std::string_view() : trim(text.substr(blank));
    }
    if (text.starts_with('@')) return read_named(text);
    return read_fields(text);
  }

 private:
  // One range of a field: *, 5, 5-10, */15, 5-50/15.
  static Result<Schedule::Field> read_range(std::string_view text, const Bounds& bounds) {
    std::vector<std::string_view> parts = split(text, '/'), ends = split(parts[0], '-');
    std::string shown(text);
    int64_t start = bounds.low, end = bounds.high, step = 1;
    Schedule::Field field;
    field.everything = ends[0] == "*" || ends[0] == "?";
    if (!field.everything) {
      start = TRY(read_number_or_name(ends[0], bounds));
      end = start;
      if (ends.size() > 2) return wrong("too many hyphens: " + shown);
      if (ends.size() == 2) end = TRY(read_number_or_name(ends[1], bounds));
    }
    if (parts.size() > 2) return wrong("too many slashes: " + shown);
    if (parts.size() == 2) {
      step = TRY(read_number(parts[1]));
      if (ends.size() == 1) end = bounds.high;
      if (step > 1) field.everything = false;
    }
    auto number = [](int64_t value) { return "(" + std::to_string(value) + ")"; };
    if (start < bounds.low)
      return wrong("beginning of range " + number(start) + " below minimum " + number(bounds.low) + ": " + shown);
    if (end > bounds.high) return wrong("end of range " + number(end) + " above maximum " + number(bounds.high) + ": " + shown);
    if (start > end) return wrong("beginning of range " + number(start) + " beyond end of range " + number(end) + ": " + shown);
    if (step == 0) return wrong("step of range should be a positive number: " + shown);
    for (int64_t value = start; value <= end; value += step) field.fits |= uint64_t(1) << value;
    return field;
  }

  static Result<Schedule> read_fields(std::string_view text) {
    std::vector<std::string> fields;
    for (std::string_view part : split(text, ' ')) {
      if (!trim(part).empty()) fields.emplace_back(trim(part));
    }
    if (fields.size() != std::size(kFieldBounds))
      return wrong("expected exactly 5 fields, found " + std::to_string(fields.size()) + ": [" + join(fields, " ") + "]");
    Schedule out;
    Schedule::Field* const into[] = {&out.minute_, &out.hour_, &out.day_, &out.month_, &out.weekday_};
    for (size_t i = 0; i < fields.size(); ++i) {
      for (std::string_view part : split(fields[i], ',')) {
        if (part.empty()) continue;
        Schedule::Field range = TRY(read_range(part, kFieldBounds[i]));
        into[i]->fits |= range.fits;
        into[i]->everything |= range.everything;
      }
    }
    return out;
  }

  static Result<Schedule> read_named(std::string_view text) {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
        {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"}};
    for (auto [name, fields] : kNames)
      if (text == name) return read_fields(fields);
    constexpr std::string_view kEvery = "@every ";
    if (!text.starts_with(kEvery)) return wrong("unrecognized descriptor: " + std::string(text));
    std::string_view span = text.substr(kEvery.size());
    auto duration = read_duration(span);
    if (!duration) return wrong("failed to parse duration " + std::string(text) + ": time: invalid duration " + quoted(span));
    Schedule out;
    out.every_ = std::max(std::chrono::seconds(1), std::chrono::floor<std::chrono::seconds>(*duration));
    return out;
  }
};

Result<Schedule> Schedule::parse(std::string_view text) { return ScheduleReader::read(text); }

// Day of the month and day of the week: both must match if one of them is "*", otherwise one is sufficient.
bool Schedule::day_fits(std::chrono::sys_days day) const {
  bool of_month = day_.has(unsigned(std::chrono::year_month_day(day).day()));
  bool of_week = weekday_.has(std::chrono::weekday(day).c_encoding());
  return day_.everything || weekday_.everything ? of_month && of_week : of_month || of_week;
}

std::optional<WallTime> Schedule::next(WallTime after, const TimeZone& zone) const {
  using namespace std::chrono;
  if (every_.count() > 0) {  // up to Go's maximum duration, which may exceed the range of times
    constexpr WallTime kLast = floor<seconds>(WallTime::max());
    return every_ > kLast - floor<seconds>(after) ? kLast : floor<seconds>(after) + every_;
  }
  WallTime time = floor<minutes>(after) + minutes(1);
  const WallTime end = time + days(5 * 366);
  auto forward = [&](WallTime to) {
    time = to > time ? to : time + hours(1);
  };  // always forwards, whatever the zone's calendar does
  while (time <= end) {
    auto local = time + zone.offset(time);
    sys_days day = floor<days>(local);
    year_month_day date(day);
    hh_mm_ss clock(floor<minutes>(local - day));
    if (!month_.has(unsigned(date.month()))) {
      year_month following = date.year() / date.month() + months(1);
      forward(zone.begin_of(following / 1));
    } else if (!day_fits(day)) {
      forward(zone.begin_of(day + days(1)));
    } else if (!hour_.has(unsigned(clock.hours().count()))) {
      time += hours(1) - clock.minutes();
    } else if (!minute_.has(unsigned(clock.minutes().count()))) {
      time += minutes(1);
    } else {
      return time;
    }
  }
  return std::nullopt;
}

std::optional<WallTime> Schedule::last(WallTime earliest, WallTime now, const TimeZone& zone) const {
  if (every_.count() > 0) {
    auto first = next(earliest, zone);
    if (*first > now) return std::nullopt;
    return *first + (now - *first) / every_ * every_;
  }
  // Searches backwards in intervals that double: decades may have passed, with a match in every minute.
  for (std::chrono::nanoseconds span = std::chrono::minutes(1);; span *= 2) {
    bool all = span >= now - earliest;
    std::optional<WallTime> found, time = next(all ? earliest : now - std::chrono::duration_cast<WallTime::duration>(span), zone);
    for (; time && *time <= now; time = next(*time, zone)) found = time;
    if (found || all) return found;
  }
}

}  // namespace coracle::schema
