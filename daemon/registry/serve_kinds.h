// SPDX-License-Identifier: Apache-2.0
// Changes which kinds are served while the daemon runs.
#pragma once

#include "store/engine/engine.h"
#include "store/schema/catalog_source.h"

namespace coracle::registry {

// New requests, informers and controllers use `next`; requests that have begun go on with the former catalog. Watches of kinds
// that are no longer served end with gone. Objects of such kinds stay in the store. Thread-safe against everything but itself.
void serve_kinds(schema::CatalogSource& catalogs, engine::Engine& engine, schema::CatalogPtr next);

}  // namespace coracle::registry
