// SPDX-License-Identifier: Apache-2.0
// The metadata of an object of any kind, typed. The rules of the schema read it here, all else by store/kinds/meta/metadata.h,
// which has what follows from it.
#pragma once

#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle {

inline view::ObjectMeta metadata_of(const json::value& object) { return view::PartialObjectMetadata(object).metadata(); }
inline view::ObjectMeta metadata_of(const Object& object) { return view::PartialObjectMetadata(object).metadata(); }
void metadata_of(const json::value&& object) = delete;  // it would be gone before it is read

}  // namespace coracle
