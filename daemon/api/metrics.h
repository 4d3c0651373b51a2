// SPDX-License-Identifier: Apache-2.0
// Metrics of API requests: count, result and duration, with the names and labels that Kubernetes dashboards use; and metrics of
// the process. A series exists only once it has a request. Bounded: after kSeriesMax series, further ones are counted together as
// "other". The same holds for durations after kHistogramsMax, because a histogram is as large as thirty counters. Thread-safe.
// Source: apiserver endpoints/metrics; Prometheus text format 0.0.4.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/guarded.h"
#include "store/object/object.h"

namespace coracle::api {

constexpr size_t kSeriesMax = 400;
constexpr size_t kHistogramsMax = 64;

struct RequestLabels {
  std::string verb, group, version, resource, subresource, scope;  // "LIST" "apps" "v1" "deployments" "" "namespace"
  bool dry_run = false;
};

class RequestMetrics {
 public:
  void count(const RequestLabels& labels, int code, std::chrono::duration<double> took);
  void begin_long(const RequestLabels& labels);
  void end_long(const RequestLabels& labels);
  void write(std::string& text) const;

 private:
  static constexpr double kBounds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,  1.25, 1.5, 2,
                                       3,     4,     5,    6,   8,   10,  15,  20,  30, 45,   60};
  struct Histogram {
    std::array<uint64_t, std::size(kBounds) + 1> buckets{};  // not cumulative; the last one is above all bounds
    double seconds = 0;
  };
  // In slabs: a counter is never removed, and would keep a page of the heap from being freed.
  using Text = std::basic_string<char, std::char_traits<char>, sys::SlabAllocator<char>>;
  struct ByText {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a < b; }
  };
  template <typename Key, typename Value, typename Less>
  using Map = std::map<Key, Value, Less, sys::SlabAllocator<std::pair<const Key, Value>>>;
  template <typename Value>
  using Series = Map<Text, Value, ByText>;  // by the values of the labels
  struct Shared {
    Series<Map<int, uint64_t, std::less<int>>> codes;
    Series<Histogram> times;
    Series<int64_t> long_running;
  };
  // Made when it is not there.
  template <typename Value>
  static Value& of(Series<Value>& all, std::string_view key) {
    auto found = all.find(key);
    return found != all.end() ? found->second : all.try_emplace(Text(key)).first->second;
  }
  Guarded<Shared> shared_;
};

// One sample. `labels` is `a="b",c="d"`, or empty.
void write_metric(std::string& text, std::string_view name, std::string_view labels, double value);
void write_type(std::string& text, std::string_view name, std::string_view type);
// The samples of one histogram. `buckets` is not cumulative and has one more element than `bounds`, for larger values.
void write_histogram(std::string& text, std::string_view name, std::string_view labels, std::span<const double> bounds,
                     std::span<const uint64_t> buckets, double sum);
// process_cpu_seconds_total and the other process metrics, from /proc.
void write_process_metrics(std::string& text);

}  // namespace coracle::api
