// SPDX-License-Identifier: Apache-2.0
// Finalizers of an object. Source: Kubernetes "Finalizers".
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "store/object/object.h"

namespace coracle {

inline bool has_finalizer(const Object& object, std::string_view finalizer) {
  const json::array& all = get_array(object.json(), "metadata.finalizers");
  return std::find(all.begin(), all.end(), json::value(finalizer)) != all.end();
}

// A merge patch that removes the finalizer from this object in its current state.
inline json::value without_finalizer_patch(const Object& object, std::string_view finalizer) {
  json::array kept;
  for (const json::value& entry : get_array(object.json(), "metadata.finalizers"))
    if (!entry.is_string() || entry.get_string() != finalizer) kept.push_back(entry);
  json::object metadata = precondition_metadata(object);
  metadata["finalizers"] = std::move(kept);
  return {{"metadata", std::move(metadata)}};
}

}  // namespace coracle
