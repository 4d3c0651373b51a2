// SPDX-License-Identifier: Apache-2.0
// The kind that an input is about.
#pragma once

#include "store/schema/catalog.h"

namespace coracle {

// The kind that the object says it is; a Pod where it says none that is known.
inline const schema::KindInfo& kind_said(const json::value& object) {
  const schema::KindInfo* named = schema::catalog().by_kind(get_string(object, "apiVersion"), get_string(object, "kind"));
  return named ? *named : schema::catalog().of(kPod);
}

}  // namespace coracle
