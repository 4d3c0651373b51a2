// SPDX-License-Identifier: Apache-2.0
// The answers of custom.metrics.k8s.io and external.metrics.k8s.io: lists of measured values. They are no built-in kinds, so they
// are read by their paths. Source: kubernetes/metrics, MetricValueList and ExternalMetricValueList.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/controller/autoscaler/horizontal_autoscaler.h"

namespace coracle::controller {

struct MetricValue {        // views into the list
  std::string_view object;  // name of the measured object; "" in an external metric
  std::string_view timestamp;
  std::optional<std::chrono::seconds> window;
  int64_t milli_value = 0;
};

inline std::vector<MetricValue> metric_values(const json::value& list) {
  std::vector<MetricValue> out;
  for (const json::value& item : get_array(list, "items")) {
    MetricValue one{get_string(item, "describedObject.name"), get_string(item, "timestamp"), std::nullopt, 0};
    if (find(item, "windowSeconds")) one.window = bounded_seconds(get_int(item, "windowSeconds"));
    if (const json::value* value = find(item, "value")) one.milli_value = milli_value_of(*value);
    out.push_back(one);
  }
  return out;
}

}  // namespace coracle::controller
