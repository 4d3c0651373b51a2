// SPDX-License-Identifier: Apache-2.0
// The kind of an input object.
#pragma once

#include "store/schema/catalog.h"

namespace coracle {

// The kind that the object declares; Pod if it declares no known kind.
inline const schema::KindInfo& kind_said(const json::value& object) {
  const schema::KindInfo* named = schema::catalog().by_kind(get_string(object, "apiVersion"), get_string(object, "kind"));
  return named ? *named : schema::catalog().of(kPod);
}

}  // namespace coracle
