// SPDX-License-Identifier: Apache-2.0
// Cells: the rules for columns of the schema text, as functions from an object to a cell. The general rules:
//   path <dotted> [text if empty]   age <dotted> [text if absent]   number <dotted>   count <dotted>...   ratio <dotted> <dotted>
//   names <list> <field>   labels <map>   selector <LabelSelector>   texts <list>   controller
//   text <dotted> [text if absent]: any value as text   boolean <dotted> [true if absent]   flag <dotted> <value if absent>: True
//   or False   list <strings>: or <none>   integer <dotted> [text if absent]
// and <kind>.<name> for rules of one kind (pod.ready, pod.status, ...), which are in store/kinds. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

struct CellInput {
  const json::value& object;
  std::span<const std::string_view> arguments;
  WallTime now;
};

using CellRule = json::value (*)(const CellInput& input);

struct NamedCellRule {
  std::string_view name;
  CellRule rule;
};

CellRule cell_rule(std::string_view name);  // nullptr if there is none

// The amount of a resource in a resource list, as text.
std::string amount_or_zero(const json::object& amounts, std::string_view name);

inline json::value or_none(std::string_view text) { return json::value(text.empty() ? std::string_view("<none>") : text); }

}  // namespace coracle::schema
