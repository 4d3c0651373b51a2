// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of DaemonSets and StatefulSets: update strategies, and pods described by one letter for their state.
#pragma once

#include <string>
#include <utility>

#include "store/object/kind.h"
#include "store/object/object.h"

namespace coracle::controller {

constexpr const char* kOnDelete = R"({"type":"OnDelete"})";
inline std::string rolling_update(const std::string& limits) {
  return R"({"type":"RollingUpdate","rollingUpdate":{)" + limits + "}}";
}

constexpr const char* kJustNow = "2024-01-01T00:01:00Z";

// R ready, r just ready, n not ready, p pending, F failed, S succeeded, t ready and terminating, T ready; other letters: running
// and unready.
inline ObjectPtr lettered_pod(char state, json::object metadata, const json::value& spec) {
  if (state == 't') metadata["deletionTimestamp"] = kJustNow;
  const char* phase = state == 'F' ? "Failed" : state == 'S' ? "Succeeded" : state == 'p' ? "Pending" : "Running";
  bool ready = std::string("RrtT").find(state) != std::string::npos;
  return MUST(Object::make(
      kPod, {{"apiVersion", "v1"},
             {"kind", "Pod"},
             {"metadata", std::move(metadata)},
             {"spec", spec},
             {"status",
              {{"phase", phase},
               {"conditions", json::array{{{"type", "Ready"},
                                           {"status", ready ? "True" : "False"},
                                           {"lastTransitionTime", state == 'r' ? kJustNow : "2023-01-01T00:00:00Z"}}}}}}}));
}

}  // namespace coracle::controller
