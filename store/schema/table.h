// SPDX-License-Identifier: Apache-2.0
// Tables: what `kubectl get` prints, made by the server from the columns in the schema text. Cell rules are named there
// (`column "Ready" string = pod.ready`); table/cells.cc has the general ones, table/<kind>.cc those of one kind.
// Pure; thread-safe. Source: Kubernetes API concepts, "Receiving resources as Tables"; kubectl's observable columns.
#pragma once

#include <span>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

enum class IncludeObject { none, metadata, object };  // ?includeObject=

struct TableOptions {
  IncludeObject include = IncludeObject::metadata;
  bool columns = true;  // a watch sends the column definitions only once
  std::string resource_version, continue_token;
};

// A meta.k8s.io/v1 Table. `objects` are of `kind`.
json::value to_table(const KindInfo& kind, std::span<const json::value* const> objects, const TableOptions& options,
                     WallTime now);
json::value to_table(const KindInfo& kind, std::span<const ObjectPtr> objects, const TableOptions& options, WallTime now);
// All of it but its rows.
json::object table_head(const KindInfo& kind, const TableOptions& options);
// One of its rows.
json::value table_row(const KindInfo& kind, const json::value& object, IncludeObject include, WallTime now);

// The object as PartialObjectMetadata (metadata, apiVersion and kind of meta.k8s.io/v1).
json::value partial_metadata(const json::value& object);

// The cells of one object, as text or number, in the order of kind.columns().
json::array cells_of(const KindInfo& kind, const json::value& object, WallTime now);

// 45s, 5m10s, 3h, 2d4h, 1y30d: Kubernetes' short form of a span.
std::string human_duration(std::chrono::seconds span);
// Since then; "<unknown>" for "" and for what is no time.
std::string human_age(std::string_view time, WallTime now);

}  // namespace coracle::schema
