// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "daemon/api/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::api {
namespace {

constexpr int kTicksPerSecond = 100;  // USER_HZ of every supported architecture
// Fields after the program name.
constexpr size_t kStatUser = 11, kStatSystem = 12, kStatStart = 19, kStatVirtual = 20, kStatResident = 21;

// The order of the labels in a series' key and in its text.
constexpr std::string_view kLabelNames[] = {"dry_run", "group", "resource", "scope", "subresource", "verb", "version"};
constexpr size_t kLabelBytesMax = 64;

// The values of kLabelNames, each of them with a NUL behind it. Made without an allocation, because every request is counted.
class SeriesKey {
 public:
  explicit SeriesKey(const RequestLabels& labels) {
    for (std::string_view value :
         {std::string_view(labels.dry_run ? "All" : ""), std::string_view(labels.group), std::string_view(labels.resource),
          std::string_view(labels.scope), std::string_view(labels.subresource), std::string_view(labels.verb),
          std::string_view(labels.version)}) {
      size_ += value.substr(0, value.find('\0')).copy(text_.data() + size_, kLabelBytesMax);
      text_[size_++] = '\0';
    }
  }
  operator std::string_view() const { return {text_.data(), size_}; }

 private:
  std::array<char, std::size(kLabelNames) * (kLabelBytesMax + 1)> text_;
  size_t size_ = 0;
};

std::string text_of(std::string_view series_key) {
  std::string out = "component=\"apiserver\"";
  for (std::string_view name : kLabelNames) {
    std::string_view value = series_key.substr(0, series_key.find('\0'));
    series_key.remove_prefix(value.size() + 1);
    out.append(",").append(name).append("=\"");
    for (char c : value) out += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '_' : c;
    out += '"';
  }
  return out;
}

SeriesKey key_of_others() { return SeriesKey({"OTHER", "", "", "other", "", "", false}); }

// The fields of /proc/self/stat after the program name, which may contain any character.
std::vector<double> stat_fields() {
  auto stat = sys::read_file("/proc/self/stat");
  std::vector<double> fields;
  if (!stat) return fields;
  size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return fields;
  for (std::string_view word : split(trim(std::string_view(*stat).substr(name_end + 1)), ' '))
    fields.push_back(double(parse_number<uint64_t>(word).value_or(0)));
  return fields;
}

double number_after(const std::string& text, std::string_view name) {
  size_t at = text.find(name);
  if (at == std::string::npos) return 0;
  std::string_view rest = trim(std::string_view(text).substr(at + name.size()));
  return double(parse_number<uint64_t>(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0));
}

}  // namespace

void write_type(std::string& text, std::string_view name, std::string_view type) {
  ((text += "# TYPE ").append(name) += ' ').append(type) += '\n';
}

void write_metric(std::string& text, std::string_view name, std::string_view labels, double value) {
  text += name;
  if (!labels.empty()) (text += '{').append(labels) += '}';
  char number[40];
  auto end = std::to_chars(number, number + sizeof number, value).ptr;
  if (value == std::floor(value) && std::abs(value) < 1e15)
    end = std::to_chars(number, number + sizeof number, int64_t(value)).ptr;
  (text += ' ').append(number, size_t(end - number)) += '\n';
}

void write_histogram(std::string& text, std::string_view name, std::string_view labels, std::span<const double> bounds,
                     std::span<const uint64_t> buckets, double sum) {
  std::string all(labels), whole(name);
  uint64_t below = 0;
  for (size_t i = 0; i < buckets.size(); i++) {
    below += buckets[i];
    char bound[24] = "+Inf";
    if (i < bounds.size()) *std::to_chars(bound, bound + sizeof bound, bounds[i]).ptr = 0;
    write_metric(text, whole + "_bucket", all + ",le=\"" + bound + "\"", double(below));
  }
  write_metric(text, whole + "_sum", labels, sum);
  write_metric(text, whole + "_count", labels, double(below));
}

void RequestMetrics::count(const RequestLabels& labels, int code, std::chrono::duration<double> took) {
  SeriesKey key(labels);
  auto bucket = size_t(std::lower_bound(std::begin(kBounds), std::end(kBounds), took.count()) - std::begin(kBounds));
  shared_.with([&](Shared& shared) {
    if (shared.codes.size() >= kSeriesMax && !shared.codes.contains(key)) key = key_of_others(), code = code / 100 * 100;
    of(shared.codes, key)[code]++;
    if (shared.times.size() >= kHistogramsMax && !shared.times.contains(key)) key = key_of_others();
    Histogram& histogram = of(shared.times, key);
    histogram.buckets[bucket]++;
    histogram.seconds += took.count();
  });
}

void RequestMetrics::begin_long(const RequestLabels& labels) {
  shared_.with([&](Shared& shared) { of(shared.long_running, SeriesKey(labels))++; });
}

void RequestMetrics::end_long(const RequestLabels& labels) {
  shared_.with([&](Shared& shared) {
    auto found = shared.long_running.find(std::string_view(SeriesKey(labels)));
    if (found != shared.long_running.end() && --found->second <= 0) shared.long_running.erase(found);
  });
}

void RequestMetrics::write(std::string& text) const {
  Shared shared = shared_.with([](const Shared& now) { return now; });
  write_type(text, "apiserver_request_total", "counter");
  for (const auto& [key, codes] : shared.codes)
    for (const auto& [code, times] : codes)
      write_metric(text, "apiserver_request_total", ("code=\"" + std::to_string(code) + "\",").append(text_of(key)),
                   double(times));
  write_type(text, "apiserver_request_duration_seconds", "histogram");
  for (const auto& [key, histogram] : shared.times)
    write_histogram(text, "apiserver_request_duration_seconds", text_of(key), kBounds, histogram.buckets, histogram.seconds);
  write_type(text, "apiserver_longrunning_requests", "gauge");
  for (const auto& [key, running] : shared.long_running)
    write_metric(text, "apiserver_longrunning_requests", text_of(key), double(running));
}

void write_process_metrics(std::string& text) {
  std::vector<double> stat = stat_fields();
  if (stat.size() <= kStatResident) return;
  double booted = number_after(sys::read_file("/proc/stat").value_or(""), "btime ");
  std::string limits = sys::read_file("/proc/self/limits").value_or("");
  auto one = [&](std::string_view name, std::string_view type, double value) {
    write_type(text, name, type);
    write_metric(text, name, "", value);
  };
  one("process_cpu_seconds_total", "counter", (stat[kStatUser] + stat[kStatSystem]) / kTicksPerSecond);
  one("process_resident_memory_bytes", "gauge", stat[kStatResident] * double(::sysconf(_SC_PAGESIZE)));
  one("process_virtual_memory_bytes", "gauge", stat[kStatVirtual]);
  one("process_start_time_seconds", "gauge", booted + stat[kStatStart] / kTicksPerSecond);
  if (auto open = sys::list("/proc/self/fd")) one("process_open_fds", "gauge", double(open->size()));
  one("process_max_fds", "gauge", number_after(limits, "Max open files"));
}

}  // namespace coracle::api
