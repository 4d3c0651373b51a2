// SPDX-License-Identifier: Apache-2.0
// See table.h.
#include "store/schema/table.h"

#include "runtime/base/text.h"
#include "store/schema/convert.h"
#include "store/schema/kind_family.h"

namespace coracle::schema {
namespace {

json::value definition(const Column& column) {
  json::object out;
  out["name"] = column.name;
  out["type"] = column.type;
  out["format"] = column.format;
  out["description"] = column.doc;
  out["priority"] = column.priority;
  return out;
}

}  // namespace

json::object table_head(const KindInfo& kind, const TableOptions& options) {
  json::object table;
  table["kind"] = "Table";
  table["apiVersion"] = "meta.k8s.io/v1";
  json::object& metadata = table["metadata"].emplace_object();
  if (!options.resource_version.empty()) metadata["resourceVersion"] = options.resource_version;
  if (!options.continue_token.empty()) metadata["continue"] = options.continue_token;
  json::array& columns = table["columnDefinitions"].emplace_array();
  if (options.columns) {
    for (const Column& column : kind.columns()) columns.push_back(definition(column));
  }
  return table;
}

json::value partial_metadata(const json::value& object) {
  json::object out;
  out["kind"] = "PartialObjectMetadata";
  out["apiVersion"] = "meta.k8s.io/v1";
  const json::value* metadata = find(object, "metadata");
  out["metadata"] = metadata ? *metadata : json::value(json::object());
  return out;
}

json::array cells_of(const KindInfo& kind, const json::value& object, WallTime now) {
  if (!kind.is_stored()) return cells_of(kind.stored(), convert(kind, kind.stored(), object), now);
  json::array cells;
  for (const Column& column : kind.columns()) {
    std::vector<std::string_view> words = split(column.cell, ' ');
    CellRule rule = cell_rule(words[0]);  // a test checks the rule of every column
    words.erase(words.begin());
    cells.push_back(rule ? rule({object, words, now}) : json::value());
  }
  return cells;
}

json::value table_row(const KindInfo& kind, const json::value& object, IncludeObject include, WallTime now) {
  json::object row;
  row["cells"] = cells_of(kind, object, now);
  if (RowRule rule = rules_of(kind).row_conditions)
    if (json::array conditions = rule(object); !conditions.empty()) row["conditions"] = std::move(conditions);
  if (include == IncludeObject::metadata) row["object"] = partial_metadata(object);
  if (include == IncludeObject::object) row["object"] = object;
  if (include == IncludeObject::none) row["object"] = nullptr;
  return row;
}

json::value to_table(const KindInfo& kind, std::span<const json::value* const> objects, const TableOptions& options,
                     WallTime now) {
  json::object table = table_head(kind, options);
  json::array& rows = table["rows"].emplace_array();
  for (const json::value* object : objects) rows.push_back(table_row(kind, *object, options.include, now));
  return table;
}

json::value to_table(const KindInfo& kind, std::span<const ObjectPtr> objects, const TableOptions& options, WallTime now) {
  std::vector<const json::value*> values;
  for (const ObjectPtr& object : objects) values.push_back(&json_of(*object));
  return to_table(kind, values, options, now);
}

std::string human_duration(std::chrono::seconds span) {
  int64_t seconds = span.count();
  int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24, years = days / 365;
  auto with = [](int64_t big, const char* unit, int64_t small, const char* small_unit) {
    std::string text = std::to_string(big) + unit;
    return small ? text + std::to_string(small) + small_unit : text;
  };
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return std::to_string(seconds) + "s";
  if (minutes < 10) return with(minutes, "m", seconds % 60, "s");
  if (hours < 3) return std::to_string(minutes) + "m";
  if (hours < 8) return with(hours, "h", minutes % 60, "m");
  if (hours < 48) return std::to_string(hours) + "h";
  if (days < 8) return with(days, "d", hours % 24, "h");
  if (days < 730) return std::to_string(days) + "d";
  if (years < 8) return with(years, "y", days % 365, "d");
  return std::to_string(years) + "y";
}

std::string human_age(std::string_view time, WallTime now) {
  if (time.empty()) return "<unknown>";
  auto then = parse_time(time);
  if (!then) return "<unknown>";
  return human_duration(std::chrono::duration_cast<std::chrono::seconds>(now - *then));
}

}  // namespace coracle::schema
