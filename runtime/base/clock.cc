// SPDX-License-Identifier: Apache-2.0
// The system's clocks and RFC 3339. See clock.h.
#include "runtime/base/clock.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace coracle {
namespace {

class SystemClock : public Clock {
 public:
  WallTime now() const override { return std::chrono::system_clock::now(); }
  SteadyTime steady() const override { return std::chrono::steady_clock::now(); }
};

std::string format(CalendarTime time, int digits) {
  auto seconds = std::chrono::sys_seconds(std::chrono::seconds(time.seconds));
  auto day = std::chrono::floor<std::chrono::days>(seconds);
  std::chrono::year_month_day date(day);
  std::chrono::hh_mm_ss clock(seconds - day);
  char text[64];
  int length =
      std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", int(date.year()), unsigned(date.month()),
                    unsigned(date.day()), int(clock.hours().count()), int(clock.minutes().count()), int(clock.seconds().count()));
  if (digits == 6) length += std::snprintf(text + length, sizeof text - size_t(length), ".%06d", int(time.nanos / 1000));
  if (digits == 9) length += std::snprintf(text + length, sizeof text - size_t(length), ".%09d", int(time.nanos));
  return std::string(text, size_t(length)) + "Z";
}

// Reads exactly `width` digits at text[at].
bool digits(std::string_view text, size_t at, size_t width, int& out) {
  if (at + width > text.size()) return false;
  auto [end, error] = std::from_chars(text.data() + at, text.data() + at + width, out);
  return error == std::errc() && end == text.data() + at + width && text[at] != '-';
}

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

CalendarTime CalendarTime::of(WallTime time) {
  auto whole = std::chrono::floor<std::chrono::seconds>(time);
  return {whole.time_since_epoch().count(), int32_t(std::chrono::duration_cast<std::chrono::nanoseconds>(time - whole).count())};
}

std::string format_time(CalendarTime time) { return format(time, 0); }
std::string format_micro_time(CalendarTime time) { return format(time, 6); }
std::string format_time(WallTime time) { return format(CalendarTime::of(time), 0); }
std::string format_micro_time(WallTime time) { return format(CalendarTime::of(time), 6); }
std::string format_nano_time(WallTime time) { return format(CalendarTime::of(time), 9); }

std::string format_duration(std::chrono::nanoseconds span) {
  if (span.count() == 0) return "0s";
  std::string out = span.count() < 0 ? "-" : "";
  uint64_t left = span.count() < 0 ? 0 - uint64_t(span.count()) : uint64_t(span.count());
  auto with_fraction = [&](uint64_t amount, uint64_t unit, const char* name) {
    out += std::to_string(amount / unit);
    if (uint64_t rest = amount % unit) {
      std::string fraction = std::to_string(unit + rest).substr(1);
      fraction.erase(fraction.find_last_not_of('0') + 1);
      out += "." + fraction;
    }
    out += name;
  };
  constexpr uint64_t kSecond = 1'000'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  if (left < 1000) return out + std::to_string(left) + "ns";
  if (left < 1'000'000) return with_fraction(left, 1000, "µs"), out;
  if (left < kSecond) return with_fraction(left, 1'000'000, "ms"), out;
  if (left >= kHour) out += std::to_string(left / kHour) + "h";
  if (left >= kMinute) out += std::to_string(left % kHour / kMinute) + "m";
  return with_fraction(left % kMinute, kSecond, "s"), out;
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  static constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"ns", 1},
                                                                    {"us", 1000},
                                                                    {"µs", 1000},
                                                                    {"μs", 1000},
                                                                    {"ms", 1'000'000},
                                                                    {"h", 3'600'000'000'000},
                                                                    {"m", 60'000'000'000},
                                                                    {"s", 1'000'000'000}};
  auto invalid = [&] { return Error(Code::invalid, "not a duration: \"" + std::string(text) + "\""); };
  std::string_view rest = text;
  bool negative = rest.starts_with("-");
  if (negative || rest.starts_with("+")) rest.remove_prefix(1);
  if (rest == "0") return std::chrono::nanoseconds(0);
  if (rest.empty()) return invalid();
  constexpr double kMost = 9.2e18;  // the range of 64 bits
  double total = 0;
  while (!rest.empty()) {
    double number = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc() || rest.front() == '-') return invalid();
    rest.remove_prefix(size_t(end - rest.data()));
    auto unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& one) { return rest.starts_with(one.first); });
    if (unit == std::end(kUnits)) return invalid();
    rest.remove_prefix(unit->first.size());
    total += number * double(unit->second);
    if (!(total < kMost)) return invalid();
  }
  return std::chrono::nanoseconds(std::llround(negative ? -total : total));
}

Result<CalendarTime> parse_calendar_time(std::string_view text) {
  auto invalid = [&] { return Error(Code::invalid, "not an RFC 3339 time: \"" + std::string(text) + "\""); };
  int year, month, day, hour, minute, second;
  if (text.size() < 20 || !digits(text, 0, 4, year) || text[4] != '-' || !digits(text, 5, 2, month) || text[7] != '-' ||
      !digits(text, 8, 2, day) || (text[10] != 'T' && text[10] != 't') || !digits(text, 11, 2, hour) || text[13] != ':' ||
      !digits(text, 14, 2, minute) || text[16] != ':' || !digits(text, 17, 2, second))
    return invalid();
  std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(unsigned(month)), std::chrono::day(unsigned(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return invalid();
  size_t at = 19;
  int64_t nanos = 0;
  if (text[at] == '.') {
    int64_t scale = 100'000'000;
    size_t first = ++at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10) nanos += (text[at] - '0') * scale;
    if (at == first) return invalid();
  }
  if (at >= text.size()) return invalid();
  int offset_minutes = 0;
  if (text[at] == 'Z' || text[at] == 'z') {
    ++at;
  } else if (text[at] == '+' || text[at] == '-') {
    int hours, minutes;
    if (!digits(text, at + 1, 2, hours) || at + 3 >= text.size() || text[at + 3] != ':' || !digits(text, at + 4, 2, minutes))
      return invalid();
    offset_minutes = (hours * 60 + minutes) * (text[at] == '-' ? -1 : 1);
    at += 6;
  }
  if (at != text.size()) return invalid();
  std::chrono::sys_seconds time = std::chrono::sys_days(date) + std::chrono::hours(hour) +
                                  std::chrono::minutes(minute - offset_minutes) + std::chrono::seconds(second);
  int64_t seconds = time.time_since_epoch().count();
  if (seconds < kGoZeroTimeSeconds || seconds > kCalendarSecondsMax) return invalid();
  return CalendarTime{seconds, int32_t(nanos)};
}

Result<WallTime> parse_time(std::string_view text) {
  CalendarTime time = TRY(parse_calendar_time(text));
  if (time.seconds < std::chrono::floor<std::chrono::seconds>(kParsedTimeMin).time_since_epoch().count()) return kParsedTimeMin;
  if (time.seconds >= std::chrono::floor<std::chrono::seconds>(kParsedTimeMax).time_since_epoch().count()) return kParsedTimeMax;
  return WallTime(std::chrono::seconds(time.seconds) + std::chrono::nanoseconds(time.nanos));
}

}  // namespace coracle
