// SPDX-License-Identifier: Apache-2.0
// KindFamily: the code that one folder of store/kinds adds to its schema text. Each folder defines one value, named after the
// folder (job_family in store/kinds/job/job_kinds.cc). The build collects them: nothing else names a folder.
//
//   text (core.v1) ─▶ types, columns, constant defaults
//   <folder>_family ─▶ default rules, validation rules, cells, conversions
//   server/ ─▶ strategies (store/kinds/strategy.h)
//
// A rule for a type applies to every kind that contains the type: the rules for a container apply to pods and to pod templates.
// Constant; thread-safe.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "store/schema/conversion.h"
#include "store/schema/default_rule.h"
#include "store/schema/table/cells.h"
#include "store/schema/validate/findings.h"

namespace coracle::schema {

// Called with each value of its type and the value's path.
using ValidationRule = void (*)(const json::value& value, const std::string& path, Findings& out);

struct NamedValidationRule {
  std::string_view type;  // OpenAPI name
  ValidationRule rule;
  std::string_view unwalked = {};  // comma-separated fields whose contents only this rule checks
};

// What is allowed in an update of the main resource, or of `subresource`.
using UpdateRule = void (*)(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
using StatusRule = void (*)(const json::value& now, const json::value& before, Findings& out);
using CreateRule = void (*)(const json::value& object, Findings& out);
// Sets the fields of a new object, whatever the client has sent.
using BeginRule = void (*)(json::value& object);
// Conditions of a table's row.
using RowRule = json::array (*)(const json::value& object);

// The rules for whole objects of one kind. Null: nothing is checked, an empty status, no conditions.
struct KindRules {
  std::string_view api_version, resource;  // "batch/v1", "jobs"
  UpdateRule update = nullptr;
  StatusRule status = nullptr;
  CreateRule create = nullptr;
  BeginRule begin = nullptr;
  RowRule row_conditions = nullptr;
};

struct VersionConversion {
  std::string_view api_version, kind;  // the version that is not stored
  Conversion to_stored, from_stored;
};

template <typename Rule>
using RuleList = std::span<const Rule> (*)();  // the rules of one file
constexpr size_t kRuleListsMax = 6;            // of one folder

struct KindFamily {
  std::array<RuleList<NamedDefaultRule>, kRuleListsMax> defaults = {};
  std::array<RuleList<NamedValidationRule>, kRuleListsMax> validation = {};
  std::array<RuleList<NamedCellRule>, kRuleListsMax> cells = {};
  std::span<const KindRules> kinds = {};
  std::span<const VersionConversion> conversions = {};
};

const KindRules& rules_of(const KindInfo& info);  // of this version; empty ones if it has none

std::span<const KindFamily* const> kind_families();  // of all folders

// Calls `use` with each rule of one sort: for_each_rule(&KindFamily::cells, [](const NamedCellRule& rule) { ... }).
template <typename Lists, typename Use>
void for_each_rule(Lists KindFamily::*lists, Use use) {
  for (const KindFamily* family : kind_families())
    for (auto list : family->*lists)
      if (list)
        for (const auto& rule : list()) use(rule);
}

}  // namespace coracle::schema
