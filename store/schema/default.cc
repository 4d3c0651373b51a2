// SPDX-License-Identifier: Apache-2.0
// See default.h. One walk from the outside in: an object's constants, then its type's rule, then its children.
#include "store/schema/default.h"

#include <algorithm>
#include <array>

#include "runtime/base/text.h"
#include "store/object/quantity.h"
#include "store/schema/decode.h"
#include "store/schema/kind_family.h"

namespace coracle::schema {
namespace {

using DefaultRules = std::vector<DefaultRule>;  // by index of the type; nullptr: none

DefaultRules collect_default_rules() {
  DefaultRules rules(all_types().size(), nullptr);
  for_each_rule(&KindFamily::defaults,
                [&](const NamedDefaultRule& named) { rules[type_named(named.type)->index()] = named.rule; });
  return rules;
}

const DefaultRules& default_rules() {
  static const DefaultRules collected = collect_default_rules();
  return collected;
}

bool has_field_order(const Type& type, const json::object& object) {
  const Field* last = nullptr;
  return std::all_of(object.begin(), object.end(), [&](const auto& pair) {
    const Field* field = type.field_after(last, pair.key());
    bool later = field && (!last || field > last);
    last = field;
    return later;
  });
}

// Restores the order of the type's fields: defaults were appended.
void restore_order(const Type& type, json::object& object) {
  if (has_field_order(type, object)) return;
  json::object sorted(object.storage());
  sorted.reserve(object.size());
  for (const Field& field : type.fields()) {
    if (json::value* value = object.if_contains(field.name())) sorted.emplace(field.name(), std::move(*value));
  }
  object = std::move(sorted);
}

// The value of a default in the tables. A test reads every default of the schema.
json::value constant(std::string_view text, json::storage_ptr storage) {
  bool plain = text.size() >= 2 && text.front() == '"' && text.find('\\') == text.npos;
  if (plain) return json::value(text.substr(1, text.size() - 2), std::move(storage));
  if (text == "true" || text == "false") return json::value(text == "true", std::move(storage));
  if (auto number = parse_number<int64_t>(text)) return json::value(*number, std::move(storage));
  return *parse_json(text, nullptr, std::move(storage));
}

// True for an amount below 1/1000, by its canonical text: 1500u, 1n, 1e-6.
bool is_finer_than_milli(std::string_view text) {
  return text.ends_with('n') || text.ends_with('u') || text.find("e-") != text.npos;
}

// Rounds amounts of a resource list to 1/1000. Source: Kubernetes core/v1 defaults, ResourceList.
void round_amounts(json::value& amounts) {
  json::object* entries = amounts.if_object();
  if (!entries) return;
  for (auto& pair : *entries) {
    const json::string* text = pair.value().if_string();
    if (!text || !is_finer_than_milli(*text)) continue;
    if (auto amount = Quantity::from_json(pair.value())) pair.value() = amount->rounded_to_milli().text();
  }
}

// Maps of amounts in other packages are not resource lists.
bool is_resource_list(const Type& type, const Field& field) {
  if (field.form != Form::quantity || field.shape != Shape::map) return false;
  return type.package().name() == "core" || type.package().name() == "node";
}

void fill(const Type& type, json::value& value, bool with_rules);

void fill_children(const Field& field, json::value& value, bool with_rules) {
  if (field.shape == Shape::one) {
    fill(field.type(), value, with_rules);
  } else if (json::array* items = value.if_array()) {
    for (json::value& item : *items) fill(field.type(), item, with_rules);
  } else if (json::object* entries = value.if_object()) {
    for (auto& pair : *entries) fill(field.type(), pair.value(), with_rules);
  }
}

void fill(const Type& type, json::value& value, bool with_rules) {
  if (type.either) {
    const Field* field = type.alternative(value);
    if (field && field->form == Form::object) fill_children(*field, value, with_rules);
    return;
  }
  json::object* object = value.if_object();
  if (!object) return;
  for (const Field& field : type.fields()) {
    if (field.default_json().empty() || !unset(*object, field.name(), field.pointer)) continue;
    object->insert_or_assign(field.name(), constant(field.default_json(), object->storage()));
  }
  if (DefaultRule rule = with_rules ? default_rules()[type.index()] : nullptr) rule(*object);
  restore_order(type, *object);
  const Field* last = nullptr;
  for (auto& pair : *object) {
    const Field* field = type.field_after(last, pair.key());
    if (field && field->form == Form::object) fill_children(*field, pair.value(), with_rules);
    if (field && with_rules && is_resource_list(type, *field)) round_amounts(pair.value());
    last = field;
  }
}

}  // namespace

bool unset(const json::object& object, std::string_view name, bool pointer) {
  const json::value* value = object.if_contains(name);
  if (!value || value->is_null()) return true;
  if (pointer) return false;
  if (const json::string* text = value->if_string()) return text->empty();
  if (const int64_t* number = value->if_int64()) return *number == 0;
  if (const bool* flag = value->if_bool()) return !*flag;
  return false;
}

void apply_defaults(const Type& type, json::value& object) { fill(type, object, true); }

void apply_constant_defaults(const Type& type, json::value& object) { fill(type, object, false); }

void begin_life(const KindInfo& kind, json::value& object) {
  if (!object.is_object()) return;
  if (BeginRule rule = rules_of(kind).begin) return rule(object);
  if (kind.traits.keeps_first_status || !kind.subresource("status")) return;
  const Field* status = kind.type().field("status");
  if (!status || status->form != Form::object) return;
  auto empty = decode(status->type(), json::object());
  if (empty) object.get_object()["status"] = std::move(empty->value);
}

}  // namespace coracle::schema
