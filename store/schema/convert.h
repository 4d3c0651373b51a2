// SPDX-License-Identifier: Apache-2.0
// Conversion between the groups and versions of a stored kind. The schema text names the stored version (`stored v1`); each other
// version has two functions here, to it and from it. A request in another version is converted once on the way in and once on the
// way out; the store, watches and validation only use the stored version.
//   v1 body ─▶ decode ▸ default ─▶ convert ─▶ default ▸ validate ▸ store ─▶ convert ─▶ v1 body
// Pure; thread-safe; always succeeds: fields without a counterpart in the other version are kept in annotations where Kubernetes
// does so.
// Source: Kubernetes 1.36, pkg/apis/*/conversion.
#pragma once

#include "runtime/base/json.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

// Converts `object` (canonical, of version `from`) to `to`; the result is canonical. Both are versions of one kind; if they are
// equal, it is unchanged.
json::value convert(const KindInfo& from, const KindInfo& to, json::value object);
// Converts a stored object to version `to`. Returns the same object if that is the stored version.
ObjectPtr shown_as(const KindInfo& to, ObjectPtr stored);

}  // namespace coracle::schema
