// SPDX-License-Identifier: Apache-2.0
// CatalogSource: the kinds that a process currently serves. Users take the catalog, or one kind with its catalog, once per unit
// of work: a request, a write, a reconcile. Thread-safe; nothing blocks.
#pragma once

#include <memory>
#include <utility>

#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

class CatalogSource {
 public:
  explicit CatalogSource(CatalogPtr first = built_in_catalog()) : now_(std::move(first)) {}

  CatalogPtr now() const;
  // Later calls of now() and find() use `next`. A user that has taken the former catalog keeps it.
  void publish(CatalogPtr next);
  // Errors: not_found, with the API's text for a kind that is not served.
  Result<KindPtr> find(const Kind& kind) const;
  // The stored version of a kind, by group and resource only. Null: not served. The result lives as long as the process.
  const Kind* stored_kind(std::string_view group, std::string_view resource) const;

 private:
  Guarded<CatalogPtr> now_;
};

}  // namespace coracle::schema
