// SPDX-License-Identifier: Apache-2.0
// See catalog_source.h.
#include "store/schema/catalog_source.h"

namespace coracle::schema {

CatalogPtr CatalogSource::now() const {
  return now_.with([](const CatalogPtr& catalog) { return catalog; });
}

void CatalogSource::publish(CatalogPtr next) {
  now_.with([&](CatalogPtr& catalog) { std::swap(catalog, next); });
}

const Kind* CatalogSource::stored_kind(std::string_view group, std::string_view resource) const {
  const CatalogPtr catalog = now();
  for (const KindInfo& info : catalog->kinds())
    if (info.kind.group == group && info.kind.resource == resource) return &info.stored().kind;
  return nullptr;
}

Result<KindPtr> CatalogSource::find(const Kind& kind) const {
  CatalogPtr catalog = now();
  const KindInfo* info = catalog->find(kind);
  if (!info) return Error(Code::not_found, "the server could not find the requested resource").with(ErrorDetails{});
  return KindPtr(std::move(catalog), info);
}

}  // namespace coracle::schema
