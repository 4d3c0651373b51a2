// SPDX-License-Identifier: Apache-2.0
// The metadata of an object of any kind, typed.
#pragma once

#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle {

inline view::ObjectMeta metadata_of(const json::value& object) { return view::PartialObjectMetadata(object).metadata(); }
inline view::ObjectMeta metadata_of(const Object& object) { return view::PartialObjectMetadata(object).metadata(); }
void metadata_of(const json::value&& object) = delete;  // it would be gone before it is read

// What the JSON says that it is.
inline std::string_view kind_in(const json::value& object) { return get_string(object, "kind"); }
// Whether the JSON says that it is an object of this kind.
inline bool says_kind(const json::value& object, const Kind& kind) {
  return kind_in(object) == kind.kind && get_string(object, "apiVersion") == kind.api_version();
}

}  // namespace coracle
