// SPDX-License-Identifier: Apache-2.0
// Parts of OpenAPI documents, in the format of version 2 or 3: schemas of types, operations of kinds. Pure.
#pragma once

#include <set>
#include <string>

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

enum class Dialect { v2, v3 };

// The schemas of `types` and of all types they use, by OpenAPI name.
json::object openapi_schemas(const std::set<const Type*>& types, Dialect dialect);

// Adds the paths of a kind and its subresources to `paths`.
void add_openapi_paths(const KindInfo& kind, Dialect dialect, json::object& paths);

std::string openapi_reference(std::string_view name, Dialect dialect);  // "#/definitions/io.k8s.api.core.v1.Pod"
json::object openapi_head(Dialect dialect);                             // version and info

// "api/v1", "apis/apps/v1"
std::string openapi_path(const Package& package);

}  // namespace coracle::schema
