// SPDX-License-Identifier: Apache-2.0
// The general cell rules. See cells.h.
#include "store/schema/table/cells.h"

#include <map>

#include "runtime/base/text.h"
#include "store/object/selector.h"
#include "store/schema/kind_family.h"
#include "store/schema/metadata.h"
#include "store/schema/table.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

json::value path(const CellInput& in) {
  std::string_view text = get_string(in.object, in.arguments[0]);
  if (text.empty() && in.arguments.size() > 1) text = in.arguments[1];
  return json::value(text);
}

json::value age(const CellInput& in) {
  std::string_view time = get_string(in.object, in.arguments[0]);
  if (time.empty() && in.arguments.size() > 1) return json::value(in.arguments[1]);
  return json::value(human_age(time, in.now));
}

json::value text(const CellInput& in) {
  const json::value* found = find(in.object, in.arguments[0]);
  if (!found || found->is_null()) return json::value(in.arguments.size() > 1 ? in.arguments[1] : std::string_view());
  return found->is_string() ? *found : json::value(to_text(*found));
}

json::value flag(const CellInput& in) {
  const json::value* found = find(in.object, in.arguments[0]);
  if (!found || !found->is_bool()) return json::value(in.arguments[1]);
  return json::value(found->get_bool() ? "True" : "False");
}

json::value texts(const CellInput& in) {
  std::vector<std::string> all;
  for (const json::value& item : get_array(in.object, in.arguments[0])) {
    if (const json::string* one = item.if_string()) all.emplace_back(*one);
  }
  return json::value(join(all, ","));
}

// The controller of the object: kind.group/name.
json::value controller(const CellInput& in) {
  for (view::OwnerReference owner : metadata_of(in.object).owner_references()) {
    if (!owner.controller()) continue;
    std::string_view group = split_api_version(owner.api_version()).group;
    std::string kind = to_lower(owner.kind());
    if (!group.empty()) kind += "." + std::string(group);
    return json::value(kind + "/" + std::string(owner.name()));
  }
  return or_none({});
}

json::value number(const CellInput& in) { return json::value(get_int(in.object, in.arguments[0])); }

// A number, or the column's text if it is absent.
json::value integer(const CellInput& in) {
  const json::value* found = find(in.object, in.arguments[0]);
  if (found && found->is_int64()) return *found;
  return in.arguments.size() > 1 ? json::value(in.arguments[1]) : json::value();
}

json::value boolean(const CellInput& in) {
  bool absent = in.arguments.size() > 1 && in.arguments[1] == "true";
  return json::value(get_bool(in.object, in.arguments[0], absent));
}

json::value list(const CellInput& in) {
  std::vector<std::string> texts;
  for (const json::value& item : get_array(in.object, in.arguments[0])) {
    if (item.is_string()) texts.emplace_back(item.get_string());
  }
  return or_none(join(texts, ","));
}

json::value count(const CellInput& in) {
  size_t total = 0;
  for (std::string_view dotted : in.arguments) {
    const json::value* found = find(in.object, dotted);
    if (!found) continue;
    if (const json::object* entries = found->if_object()) total += entries->size();
    if (const json::array* items = found->if_array()) total += items->size();
  }
  return json::value(int64_t(total));
}

json::value ratio(const CellInput& in) {
  return json::value(std::to_string(get_int(in.object, in.arguments[0])) + "/" +
                     std::to_string(get_int(in.object, in.arguments[1])));
}

json::value names(const CellInput& in) {
  std::vector<std::string> texts;
  for (const json::value& item : get_array(in.object, in.arguments[0])) texts.emplace_back(get_string(item, in.arguments[1]));
  return json::value(join(texts, ","));
}

json::value labels(const CellInput& in) {
  std::vector<std::string> pairs;
  for (const auto& pair : get_object(in.object, in.arguments[0])) {
    const json::string* text = pair.value().if_string();
    pairs.push_back(std::string(pair.key()) + "=" + (text ? std::string(*text) : ""));
  }
  return or_none(join(pairs, ","));
}

json::value selector(const CellInput& in) {
  auto selector = LabelSelector::from_json(find(in.object, in.arguments[0]));
  if (!selector) return json::value("<error>");
  return or_none(selector->text());
}

constexpr NamedCellRule kGeneralCells[] = {
    {"path", path},   {"age", age},       {"number", number},         {"count", count}, {"ratio", ratio},
    {"names", names}, {"labels", labels}, {"selector", selector},     {"text", text},   {"boolean", boolean},
    {"flag", flag},   {"texts", texts},   {"controller", controller}, {"list", list},   {"integer", integer}};

}  // namespace

std::string amount_or_zero(const json::object& amounts, std::string_view name) {
  const json::value* found = amounts.if_contains(name);
  return found && found->is_string() ? std::string(found->get_string()) : "0";
}

CellRule cell_rule(std::string_view name) {
  static const std::map<std::string_view, CellRule> all = [] {
    std::map<std::string_view, CellRule> rules;
    for (const NamedCellRule& named : kGeneralCells) rules.emplace(named.name, named.rule);
    for_each_rule(&KindFamily::cells, [&](const NamedCellRule& named) { rules.emplace(named.name, named.rule); });
    return rules;
  }();
  auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace coracle::schema
