// SPDX-License-Identifier: Apache-2.0
// The built-in kinds, as the code under test uses them.
#pragma once

#include <functional>

#include "store/schema/catalog_source.h"

namespace coracle {

inline const schema::CatalogSource& built_in_catalogs() {
  static const schema::CatalogSource catalogs;
  return catalogs;
}

// For engine::Options.
inline auto find_built_in() { return std::bind_front(&schema::CatalogSource::stored_kind, &built_in_catalogs()); }

}  // namespace coracle
