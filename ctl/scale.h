// SPDX-License-Identifier: Apache-2.0
// The pure part of autoscale: builds a HorizontalPodAutoscaler from flags.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct AutoscaleFlags {
  std::string name, cpu, memory;  // "70%" of the request, or an average per pod: "500m", "200Mi"
  int64_t min = -1, max = -1, cpu_percent = -1;
};

// An autoscaler for the object with that apiVersion, kind and name. It has the target's name if flags.name is "". Errors:
// bad_request, worded as kubectl's.
Result<json::value> autoscaler_of(const AutoscaleFlags& flags, std::string_view api_version, std::string_view kind,
                                  const std::string& target);

// The same autoscaler in autoscaling/v1, which knows the CPU's utilization only. Errors: bad_request for another metric.
Result<json::value> old_autoscaler_of(const json::value& scaler);

}  // namespace coracle::ctl
