// SPDX-License-Identifier: Apache-2.0
// Typed access to what objects and lists of all kinds have in common: metadata, kind and apiVersion, items.
#pragma once

#include "store/object/object.h"
#include "store/schema/metadata.h"  // metadata_of
#include "store/schema/views.h"

namespace coracle {

// The objects of a list of any kind. Empty if it has none.
inline const json::array& items_of(const json::value& list) { return view::List(list).items().raw(); }
void items_of(const json::value&& list) = delete;

// The kind and the apiVersion in the JSON; "" if absent.
inline std::string_view kind_in(const json::value& object) { return view::PartialObjectMetadata(object).kind(); }
inline std::string_view api_version_in(const json::value& object) { return view::PartialObjectMetadata(object).api_version(); }
// Whether both are those of this kind.
inline bool says_kind(const json::value& object, const Kind& kind) {
  return kind_in(object) == kind.kind && api_version_in(object) == kind.api_version();
}

}  // namespace coracle
