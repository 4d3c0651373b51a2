// SPDX-License-Identifier: Apache-2.0
// The pure half of autoscale: an autoscaler made of a few flags.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct AutoscaleFlags {
  std::string name, cpu, memory;  // "70%" of what is requested, or an amount for each pod: "500m", "200Mi"
  int64_t min = -1, max = -1, cpu_percent = -1;
};

// For the object of that apiVersion, kind and name, under its name where flags.name is "". Errors: bad_request, in kubectl's
// words.
Result<json::value> autoscaler_of(const AutoscaleFlags& flags, std::string_view api_version, std::string_view kind,
                                  const std::string& target);

}  // namespace coracle::ctl
