// SPDX-License-Identifier: Apache-2.0
// CatalogSource: the kinds that a process serves now. Who works with kinds takes the catalog, or one kind with it, once for what
// is one piece of work: a request, a write, a reconcile. Thread-safe; nothing blocks.
#pragma once

#include <memory>

#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

class CatalogSource {
 public:
  explicit CatalogSource(CatalogPtr first = built_in_catalog()) : now_(std::move(first)) {}

  CatalogPtr now() const;
  // Errors: not_found, as the API answers for a kind that is not served.
  Result<KindPtr> find(const Kind& kind) const;
  // For who knows the group and the resource alone: the kind in the version that the store keeps. Null: not served. Kinds live as
  // long as the source.
  const Kind* stored_kind(std::string_view group, std::string_view resource) const;

 private:
  Guarded<CatalogPtr> now_;
};

}  // namespace coracle::schema
