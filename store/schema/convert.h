// SPDX-License-Identifier: Apache-2.0
// Convert: one stored kind under several groups and versions. The schema text says which version is stored (`stored v1`);
// every other one has two functions here, to it and from it. Whoever reads or writes one of the others goes through here,
// once on the way in and once on the way out; the store, watches and validation know the stored one alone.
//   v1 body ─▶ decode ▸ default ─▶ convert ─▶ default ▸ validate ▸ store ─▶ convert ─▶ v1 body
// Pure; thread-safe; total: what cannot be said in the other version travels in annotations, where Kubernetes has it so.
// Source: Kubernetes 1.36, pkg/apis/*/conversion.
#pragma once

#include "runtime/base/json.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

// `object` (canonical, of `from`) as `to` has it, canonical. Both are versions of one stored kind; the same one: unchanged.
json::value convert(const KindInfo& from, const KindInfo& to, json::value object);
// What the store holds, as `to` has it. The same object where `to` is what is stored.
ObjectPtr shown_as(const KindInfo& to, ObjectPtr stored);

}  // namespace coracle::schema
