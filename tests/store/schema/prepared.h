// SPDX-License-Identifier: Apache-2.0
// Shared by the schema's tests: objects from text, prepared as for a write, and their text for comparison.
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

// In canonical form, with defaults.
inline json::value prepared(const Kind& kind, std::string_view text) {
  const KindInfo& info = catalog().of(kind);
  json::value value = canonical(info, text);
  apply_defaults(info, value);
  return value;
}

// Two items of a mergeable list: they differ in the last of its keys alone, or in their values if it has no key. `first_key`: a
// key that precedes the list's own keys.
inline json::array two_items_of(const Field& list, std::string_view first_key) {
  auto value_of = [](const Field* key, int i) {
    if (key && (key->form == Form::int32 || key->form == Form::int64 || key->form == Form::int_or_string))
      return json::value(i + 1);
    std::vector<std::string_view> values = key ? key->values() : std::vector<std::string_view>();
    return values.size() < 2 ? json::value("x" + std::to_string(i)) : json::value(values[size_t(i)]);
  };
  std::vector<std::string_view> keys = list.list_keys();
  if (!first_key.empty()) {
    std::erase(keys, first_key);
    keys.insert(keys.begin(), first_key);
  }
  if (keys.empty()) return json::array{value_of(nullptr, 0), value_of(nullptr, 1)};
  json::array items;
  for (int i : {0, 1}) {
    json::object item;
    for (std::string_view key : keys) item[key] = value_of(list.type().field(key), key == keys.back() ? i : 0);
    items.push_back(std::move(item));
  }
  return items;
}

// One line per cause.
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
