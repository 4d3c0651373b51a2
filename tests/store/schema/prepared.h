// SPDX-License-Identifier: Apache-2.0
// What the schema's tests have in common: objects that are written down as text, made as a write makes them, and what is shown of
// them afterwards.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "store/object/kind.h"
#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/table.h"

namespace coracle::schema {

inline const WallTime kNow = *parse_time("2026-01-02T00:00:00Z");

inline json::value canonical(const Type& type, json::value value) { return MUST(decode(type, std::move(value))).value; }
inline json::value canonical(const KindInfo& info, std::string_view text) {
  return canonical(info.type(), MUST(parse_json(text)));
}

// Canonical, with defaults.
inline json::value prepared(const Kind& kind, std::string_view text) {
  const KindInfo& info = catalog().of(kind);
  json::value value = canonical(info, text);
  apply_defaults(info, value);
  return value;
}

// A line for each cause.
inline std::string shown(const std::vector<Cause>& causes) {
  std::string text;
  for (const Cause& cause : causes) text += cause.field + ": " + cause.message + "\n";
  return text;
}

// The row of `kubectl get`.
inline std::string row_text(const Kind& kind, const json::value& object) {
  return to_text(json::value(cells_of(catalog().of(kind), object, kNow)));
}

}  // namespace coracle::schema
