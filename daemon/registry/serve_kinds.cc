// SPDX-License-Identifier: Apache-2.0
// See serve_kinds.h.
#include "daemon/registry/serve_kinds.h"

#include <utility>

namespace coracle::registry {

void serve_kinds(schema::CatalogSource& catalogs, engine::Engine& engine, schema::CatalogPtr next) {
  const schema::CatalogPtr former = catalogs.now(), now = next;
  catalogs.publish(std::move(next));
  for (const schema::KindInfo& info : former->kinds())
    if (info.is_stored() && !now->find(info.kind))
      engine.end_watches(info.kind, Error(Code::gone, info.kind.qualified_resource() + " is no longer served"));
}

}  // namespace coracle::registry
