// SPDX-License-Identifier: Apache-2.0
// See json_schema_validation.h.
#include "store/kinds/custom_resource/json_schema_validation.h"

#include <set>
#include <utility>

#include "runtime/base/text.h"
#include "store/kinds/custom_resource/custom_resource_kinds.h"
#include "store/schema/validate/texts.h"

namespace coracle::schema {
namespace {

enum class Level { root, item, field };

bool is_meta_field(std::string_view name) { return name == "metadata" || name == "kind" || name == "apiVersion"; }
std::string property_path(const std::string& path, std::string_view name) {
  return path + ".properties[" + std::string(name) + "]";
}
bool is_schema(const json::value* value) { return value && value->is_object(); }

// ---- keywords ----

struct Context {
  bool in_meta = false;    // within apiVersion, kind or metadata
  std::string no_default;  // why defaults are not allowed; "": they are
};

void check_parts(Findings& out, const std::string& path, view::JSONSchemaProps schema, const Context& context, bool root);

void check_words(Findings& out, const std::string& path, view::JSONSchemaProps schema, const Context& context) {
  static const std::set<std::string_view> types = {"array", "boolean", "integer", "number", "object", "string"};
  std::string_view type = schema.type();
  if (!type.empty() && !types.count(type)) {
    out.not_supported(sub(path, "type"), type, {"array", "boolean", "integer", "number", "object", "string"});
  }
  if (schema.has_default_() && !context.no_default.empty())
    out.forbidden(sub(path, "default"), "must not be set " + context.no_default);
  if (!schema.id().empty()) out.forbidden(sub(path, "id"), "id is not supported");
  for (auto [field, given] :
       {std::pair("additionalItems", schema.has_additional_items()),
        std::pair("patternProperties", schema.has_pattern_properties()), std::pair("definitions", schema.has_definitions()),
        std::pair("dependencies", schema.has_dependencies()), std::pair("$ref", schema.has_ref())}) {
    if (given) out.forbidden(sub(path, field), std::string(field) + " is not supported");
  }
  if (type == "null") out.forbidden(sub(path, "type"), "type cannot be set to null, use nullable as an alternative");
  const json::value* items = schema.items();
  if (items && items->is_array() && !items->get_array().empty())
    out.forbidden(sub(path, "items"), "items must be a schema object and not an array");
  if (context.in_meta && schema.x_kubernetes_embedded_resource()) {
    out.forbidden(sub(path, "x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
  }
  if (schema.unique_items()) {
    out.forbidden(sub(path, "uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  }
}

// `extension`: a keyword that the schema has.
void check_type_of(Findings& out, const std::string& path, std::string_view type, std::string_view wanted,
                   std::string_view extension) {
  if (type == wanted) return;
  std::string text = "must be " + std::string(wanted) + " if " + std::string(extension) + " is specified";
  if (type.empty()) out.required(sub(path, "type"), text);
  else out.invalid(sub(path, "type"), type, text);
}

void check_map_list(Findings& out, const std::string& path, view::JSONSchemaProps schema) {
  view::Range<std::string_view> keys = schema.x_kubernetes_list_map_keys();
  std::string keys_path = sub(path, "x-kubernetes-list-map-keys"), items_path = sub(path, "items");
  if (keys.empty()) out.required(keys_path, "must not be empty if x-kubernetes-list-type is map");
  view::JSONSchemaProps items(schema.items());
  if (!items) return out.required(items_path, "must have a schema if x-kubernetes-list-type is map");
  std::string_view type = items.type();
  if (type != "object")
    return out.invalid(sub(items_path, "type"), type, "must be object if parent array's x-kubernetes-list-type is map");
  std::set<std::string_view> seen, needed;
  for (std::string_view name : items.required()) needed.insert(name);
  for (std::string_view key : keys) {
    const json::value* found = items.properties().if_contains(key);
    std::string at = property_path(items_path, key);
    if (!found) out.invalid_json(keys_path, keys.raw(), "entries must all be names of item properties");
    if (!seen.insert(key).second) out.invalid_json(keys_path, keys.raw(), "must not contain duplicate entries");
    if (!found) continue;
    view::JSONSchemaProps property(*found);
    std::string_view kind = property.type();
    if (kind == "array" || kind == "object") {
      out.invalid(sub(at, "type"), type, "must be a scalar type if parent array's x-kubernetes-list-type is map");
    }
    if (!needed.count(key) && !property.has_default_()) {
      out.required(sub(at, "default"),
                   "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
    }
    if (property.nullable()) {
      out.forbidden(sub(at, "nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
    }
  }
}

void check_set_items(Findings& out, const std::string& path, view::JSONSchemaProps schema) {
  view::JSONSchemaProps items(schema.items());
  if (!items) return;
  constexpr std::string_view kAtomic = "must be atomic as item of a list with x-kubernetes-list-type=set";
  std::string_view type = items.type(), list = items.x_kubernetes_list_type();
  if (type == "array" && !list.empty() && list != "atomic") out.invalid(sub(path, "items.x-kubernetes-list-type"), list, kAtomic);
  if (type == "object" && items.x_kubernetes_map_type() != "atomic") {
    out.add({"FieldValueInvalid", "Invalid value: null: " + std::string(kAtomic), sub(path, "items.x-kubernetes-map-type")});
  }
}

void check_extensions(Findings& out, const std::string& path, view::JSONSchemaProps schema) {
  if (schema.has_x_kubernetes_preserve_unknown_fields() && !schema.x_kubernetes_preserve_unknown_fields()) {
    out.add({"FieldValueInvalid", "Invalid value: false: must be true or undefined",
             sub(path, "x-kubernetes-preserve-unknown-fields")});
  }
  bool has_map = schema.has_x_kubernetes_map_type(), has_list = schema.has_x_kubernetes_list_type();
  std::string_view map = schema.x_kubernetes_map_type(), list = schema.x_kubernetes_list_type();
  if (has_map) check_type_of(out, path, schema.type(), "object", "x-kubernetes-map-type");
  if (has_map && map != "atomic" && map != "granular") {
    out.not_supported(sub(path, "x-kubernetes-map-type"), map, {"atomic", "granular"});
  }
  if (has_list) check_type_of(out, path, schema.type(), "array", "x-kubernetes-list-type");
  if (has_list && list != "atomic" && list != "set" && list != "map") {
    out.not_supported(sub(path, "x-kubernetes-list-type"), list, {"atomic", "map", "set"});
  }
  if (list == "set" && schema.type() == "array") check_set_items(out, path, schema);
  bool keyed = !schema.x_kubernetes_list_map_keys().empty();
  constexpr std::string_view kMap = "must be map if x-kubernetes-list-map-keys is non-empty";
  if (keyed && list.empty()) out.required(sub(path, "x-kubernetes-list-type"), kMap);
  else if (keyed && list != "map") out.invalid(sub(path, "x-kubernetes-list-type"), list, kMap);
  if (list == "map") check_map_list(out, path, schema);
  if ((list == "map" || list == "set") && view::JSONSchemaProps(schema.items()).nullable()) {
    out.forbidden(sub(path, "items.nullable"), "cannot be nullable when x-kubernetes-list-type is " + std::string(list));
  }
}

bool has_newlines(std::string_view text) { return text.find_first_of("\r\n") != text.npos; }

void check_cel(Findings& out, const std::string& path, view::JSONSchemaProps schema) {
  view::Range<view::ValidationRule> rules = schema.x_kubernetes_validations();
  for (size_t i = 0; i < rules.size(); ++i) {
    std::string at = item(sub(path, "x-kubernetes-validations"), i);
    std::string_view rule = rules[i].rule(), message = rules[i].message();
    std::string_view made = rules[i].message_expression(), field = rules[i].field_path();
    if (is_blank(rule)) out.required(sub(at, "rule"), "rule is not specified");
    else if (!message.empty() && is_blank(message)) out.invalid(sub(at, "message"), message, "must be non-empty if specified");
    else if (has_newlines(trim(message))) out.invalid(sub(at, "message"), message, "must not contain line breaks");
    else if (has_newlines(trim(rule)) && is_blank(message))
      out.required(sub(at, "message"), "message must be specified if rule contains line breaks");
    if (!made.empty() && is_blank(made))
      out.required(sub(at, "messageExpression"), "messageExpression must be non-empty if specified");
    if (!field.empty() && is_blank(field)) out.invalid(sub(at, "fieldPath"), field, "must be non-empty if specified");
    if (has_newlines(field)) out.invalid(sub(at, "fieldPath"), field, "must not contain line breaks");
    if (!is_blank(field) && type_at(schema, field).empty()) out.invalid(sub(at, "fieldPath"), field, "must be a valid path");
  }
}

void check_parts(Findings& out, const std::string& path, view::JSONSchemaProps schema, const Context& context, bool root) {
  check_words(out, path, schema, context);
  const json::value* additional = schema.additional_properties();
  const json::object& properties = schema.properties();
  bool narrows = additional && (additional->is_object() || (additional->is_bool() && !additional->get_bool()));
  if (narrows && !properties.empty()) {
    out.forbidden(sub(path, "additionalProperties"), "additionalProperties and properties are mutual exclusive");
  }
  if (is_schema(additional)) {
    Context inner = context;
    if (context.in_meta) inner.no_default = "inside additionalProperties applying to object metadata";
    check_parts(out, sub(path, "additionalProperties"), view::JSONSchemaProps(*additional), inner, false);
  }
  for (const auto& pair : properties) {
    Context inner = context;
    bool meta = is_meta_field(pair.key()) && (root || schema.x_kubernetes_embedded_resource());
    if (meta) inner.in_meta = true;
    if (meta && root) inner.no_default = "in top-level " + std::string(pair.key());
    check_parts(out, property_path(path, pair.key()), view::JSONSchemaProps(pair.value()), inner, false);
  }
  if (schema.not_()) check_parts(out, sub(path, "not"), schema.not_(), context, false);
  for (auto [field, all] :
       {std::pair("allOf", schema.all_of()), std::pair("oneOf", schema.one_of()), std::pair("anyOf", schema.any_of())}) {
    for (size_t i = 0; i < all.size(); ++i) check_parts(out, item(sub(path, field), i), all[i], context, false);
  }
  if (view::JSONSchemaProps items(schema.items()); items) check_parts(out, sub(path, "items"), items, context, false);
  check_extensions(out, path, schema);
  check_cel(out, path, schema);
}

// ---- structural schemas ----

// anyOf: [{type: integer}, {type: string}], which belongs to x-kubernetes-int-or-string.
bool is_int_or_string(view::JSONSchemaProps holder) {
  const json::array& any = holder.any_of().raw();
  return any.size() == 2 && any[0] == json::value{{"type", "integer"}} && any[1] == json::value{{"type", "string"}};
}

void check_junctors(Findings& out, const std::string& path, view::JSONSchemaProps schema, bool skip_any);

// A schema under allOf, anyOf, oneOf or not: it may restrict values but not define fields.
void check_nested(Findings& out, const std::string& path, view::JSONSchemaProps schema, bool skip_any) {
  check_junctors(out, path, schema, skip_any);
  if (view::JSONSchemaProps items(schema.items()); items) check_nested(out, sub(path, "items"), items, false);
  for (const auto& pair : schema.properties())
    check_nested(out, property_path(path, pair.key()), view::JSONSchemaProps(pair.value()), false);
  constexpr std::string_view kEmpty = "must be empty to be structural", kUndefined = "must be undefined to be structural";
  constexpr std::string_view kFalse = "must be false to be structural";
  auto forbid = [&](bool given, std::string_view field, std::string_view why) {
    if (given) out.forbidden(sub(path, field), why);
  };
  forbid(!schema.type().empty(), "type", kEmpty);
  forbid(!schema.title().empty(), "title", kEmpty);
  forbid(!schema.description().empty(), "description", kEmpty);
  forbid(schema.has_additional_properties(), "additionalProperties", kUndefined);
  forbid(schema.has_default_(), "default", kUndefined);
  forbid(schema.nullable(), "nullable", kFalse);
  forbid(schema.x_kubernetes_preserve_unknown_fields(), "x-kubernetes-preserve-unknown-fields", kFalse);
  forbid(schema.x_kubernetes_embedded_resource(), "x-kubernetes-embedded-resource", kFalse);
  forbid(schema.x_kubernetes_int_or_string(), "x-kubernetes-int-or-string", kFalse);
  forbid(!schema.x_kubernetes_list_map_keys().empty(), "x-kubernetes-list-map-keys", kEmpty);
  forbid(!schema.x_kubernetes_validations().empty(), "x-kubernetes-validations", kEmpty);
  forbid(schema.has_x_kubernetes_list_type(), "x-kubernetes-list-type", kUndefined);
  forbid(schema.has_x_kubernetes_map_type(), "x-kubernetes-map-type", kUndefined);
  if (schema.properties().contains("metadata"))
    out.forbidden(property_path(path, "metadata"), "must not be specified in a nested context");
}

void check_junctors(Findings& out, const std::string& path, view::JSONSchemaProps schema, bool skip_any) {
  for (auto [field, all] :
       {std::pair("anyOf", schema.any_of()), std::pair("allOf", schema.all_of()), std::pair("oneOf", schema.one_of())}) {
    bool any = std::string_view(field) == "anyOf";
    for (size_t i = 0; i < all.size() && !(any && skip_any); ++i) {
      bool int_or_string = std::string_view(field) == "allOf" && i == 0 && is_int_or_string(all[i]);
      check_nested(out, item(sub(path, field), i), all[i], int_or_string);
    }
  }
  if (schema.not_()) check_nested(out, sub(path, "not"), schema.not_(), false);
}

void check_meta_types(Findings& out, const std::string& path, view::JSONSchemaProps schema, Level level) {
  for (std::string_view name : {"kind", "apiVersion"}) {
    const json::value* property = schema.properties().if_contains(name);
    std::string_view type = view::JSONSchemaProps(property).type();
    if (property && type != "string") out.invalid(sub(property_path(path, name), "type"), type, "must be string");
  }
  const json::value* metadata = schema.properties().if_contains("metadata");
  if (!metadata) return;
  std::string at = property_path(path, "metadata");
  std::string_view type = view::JSONSchemaProps(*metadata).type();
  if (type != "object") out.invalid(sub(at, "type"), type, "must be object");
  if (level != Level::root || !metadata->is_object()) return;
  bool only_names = true;
  for (const auto& pair : metadata->get_object()) {
    if (pair.key() == "properties" && pair.value().is_object()) {
      for (const auto& inner : pair.value().get_object())
        only_names = only_names && (inner.key() == "name" || inner.key() == "generateName");
    } else if (pair.key() != "type" && pair.key() != "default") {
      only_names = false;
    }
  }
  if (!only_names)
    out.forbidden(at, "must not specify anything other than name and generateName, but metadata is implicitly specified");
}

void check_structural(Findings& out, const std::string& path, view::JSONSchemaProps schema, Level level) {
  std::string_view type = schema.type();
  view::JSONSchemaProps items(schema.items()), additional(schema.additional_properties());
  bool embedded = schema.x_kubernetes_embedded_resource(), int_or_string = schema.x_kubernetes_int_or_string();
  bool preserves = schema.x_kubernetes_preserve_unknown_fields();
  if (type == "array" && !schema.has_items()) out.required(sub(path, "items"), "must be specified");
  if (items) check_structural(out, sub(path, "items"), items, Level::item);
  for (const auto& pair : schema.properties()) {
    bool root_meta = level == Level::root && pair.key() == "metadata";
    if (!root_meta) check_structural(out, property_path(path, pair.key()), view::JSONSchemaProps(pair.value()), Level::field);
  }
  if (schema.has_additional_properties() && level == Level::root)
    out.forbidden(sub(path, "additionalProperties"), "must not be used at the root");
  if (additional) check_structural(out, sub(path, "additionalProperties"), additional, Level::field);
  auto false_with = [&](std::string_view field) {
    out.add({"FieldValueInvalid", "Invalid value: true: must be false if x-kubernetes-int-or-string is true", sub(path, field)});
  };
  if (int_or_string && preserves) false_with("x-kubernetes-preserve-unknown-fields");
  if (int_or_string && embedded) false_with("x-kubernetes-embedded-resource");
  check_junctors(out, path, schema, is_int_or_string(schema));
  constexpr std::string_view kEmbedded = "must be object if x-kubernetes-embedded-resource is true";
  if (embedded && type.empty()) out.required(sub(path, "type"), kEmbedded);
  else if (embedded && type != "object") out.invalid(sub(path, "type"), type, kEmbedded);
  else if (type.empty() && !int_or_string && !preserves) {
    out.required(sub(path, "type"), level == Level::root   ? "must not be empty at the root"
                                    : level == Level::item ? "must not be empty for specified array items"
                                                           : "must not be empty for specified object fields");
  }
  if (embedded && schema.has_additional_properties()) {
    out.forbidden(sub(path, "additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set");
  }
  if (level == Level::root && !type.empty() && type != "object")
    out.invalid(sub(path, "type"), type, "must be object at the root");
  if (level == Level::root || embedded) check_meta_types(out, path, schema, level);
  if (embedded && !preserves && schema.properties().empty()) {
    out.required(sub(path, "properties"),
                 "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields");
  }
}

// With a status subresource, the root may only contain keywords that still apply without the status.
void check_root(Findings& out, const std::string& path, view::JSONSchemaProps schema) {
  static const std::set<std::string_view> allowed = {"description",
                                                     "type",
                                                     "format",
                                                     "title",
                                                     "maximum",
                                                     "exclusiveMaximum",
                                                     "minimum",
                                                     "exclusiveMinimum",
                                                     "maxLength",
                                                     "minLength",
                                                     "pattern",
                                                     "maxItems",
                                                     "minItems",
                                                     "uniqueItems",
                                                     "multipleOf",
                                                     "required",
                                                     "items",
                                                     "properties",
                                                     "externalDocs",
                                                     "example",
                                                     "x-kubernetes-preserve-unknown-fields",
                                                     "x-kubernetes-validations"};
  std::string_view type = schema.type();
  if (!type.empty() && type != "object") {
    return out.invalid(sub(path, "type"), type,
                       "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled");
  }
  for (const auto& pair : schema.members()) {
    if (allowed.count(pair.key())) continue;
    return out.invalid_json(
        path, schema.raw(),
        "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
        "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
        "XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource "
        "is enabled");
  }
}

}  // namespace

void check_json_schema(Findings& out, const std::string& path, view::JSONSchemaProps schema, bool status_apart) {
  if (!schema) return;
  if (status_apart) check_root(out, path, schema);
  if (schema.nullable()) out.forbidden(sub(path, "nullable"), "nullable cannot be true at the root");
  check_structural(out, path, schema, Level::root);
  check_parts(out, path, schema, {}, true);
}

std::string_view type_at(view::JSONSchemaProps schema, std::string_view path) {
  if (!path.starts_with('.')) return {};
  for (std::string_view name : split(path.substr(1), '.')) {
    const json::value* property = schema.properties().if_contains(name);
    const json::value* additional = schema.additional_properties();
    if (!property && !is_schema(additional)) return {};
    schema = view::JSONSchemaProps(property ? *property : *additional);
  }
  return schema.type();
}

}  // namespace coracle::schema
