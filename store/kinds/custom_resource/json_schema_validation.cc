// SPDX-License-Identifier: Apache-2.0
// See json_schema_validation.h.
#include "store/kinds/custom_resource/json_schema_validation.h"

#include <set>

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

void check_parts(Findings& out, const std::string& path, const json::value& schema, const Context& context, bool root);

void check_words(Findings& out, const std::string& path, const json::value& schema, const Context& context) {
  static const std::set<std::string_view> types = {"array", "boolean", "integer", "number", "object", "string"};
  std::string_view type = get_string(schema, "type");
  if (!type.empty() && !types.count(type)) {
    out.not_supported(sub(path, "type"), type, {"array", "boolean", "integer", "number", "object", "string"});
  }
  if (has(schema, "default") && !context.no_default.empty())
    out.forbidden(sub(path, "default"), "must not be set " + context.no_default);
  if (!get_string(schema, "id").empty()) out.forbidden(sub(path, "id"), "id is not supported");
  for (const char* field : {"additionalItems", "patternProperties", "definitions", "dependencies", "$ref"}) {
    if (has(schema, field)) out.forbidden(sub(path, field), std::string(field) + " is not supported");
  }
  if (type == "null") out.forbidden(sub(path, "type"), "type cannot be set to null, use nullable as an alternative");
  const json::value* items = find(schema, "items");
  if (items && items->is_array() && !items->get_array().empty())
    out.forbidden(sub(path, "items"), "items must be a schema object and not an array");
  if (context.in_meta && get_bool(schema, "x-kubernetes-embedded-resource")) {
    out.forbidden(sub(path, "x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
  }
  if (get_bool(schema, "uniqueItems")) {
    out.forbidden(sub(path, "uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  }
}

void check_type_of(Findings& out, const std::string& path, const json::value& schema, std::string_view wanted,
                   std::string_view extension) {
  std::string_view type = get_string(schema, "type");
  if (!has(schema, extension) || type == wanted) return;
  std::string text = "must be " + std::string(wanted) + " if " + std::string(extension) + " is specified";
  if (type.empty()) out.required(sub(path, "type"), text);
  else out.invalid(sub(path, "type"), type, text);
}

void check_map_list(Findings& out, const std::string& path, const json::value& schema) {
  std::vector<std::string_view> keys = texts_at(schema, "x-kubernetes-list-map-keys");
  std::string keys_path = sub(path, "x-kubernetes-list-map-keys"), items_path = sub(path, "items");
  const json::value* items = find(schema, "items");
  if (keys.empty()) out.required(keys_path, "must not be empty if x-kubernetes-list-type is map");
  if (!is_schema(items)) return out.required(items_path, "must have a schema if x-kubernetes-list-type is map");
  std::string_view type = get_string(*items, "type");
  if (type != "object")
    return out.invalid(sub(items_path, "type"), type, "must be object if parent array's x-kubernetes-list-type is map");
  std::set<std::string_view> seen, needed;
  for (std::string_view name : texts_at(*items, "required")) needed.insert(name);
  for (std::string_view key : keys) {
    const json::value* property = find_keys(*items, {"properties", key});
    std::string at = property_path(items_path, key);
    if (!property)
      out.invalid_json(keys_path, *find(schema, "x-kubernetes-list-map-keys"), "entries must all be names of item properties");
    if (!seen.insert(key).second)
      out.invalid_json(keys_path, *find(schema, "x-kubernetes-list-map-keys"), "must not contain duplicate entries");
    if (!property) continue;
    std::string_view kind = get_string(*property, "type");
    if (kind == "array" || kind == "object") {
      out.invalid(sub(at, "type"), type, "must be a scalar type if parent array's x-kubernetes-list-type is map");
    }
    if (!needed.count(key) && !has(*property, "default")) {
      out.required(sub(at, "default"),
                   "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
    }
    if (get_bool(*property, "nullable")) {
      out.forbidden(sub(at, "nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
    }
  }
}

void check_set_items(Findings& out, const std::string& path, const json::value& schema) {
  const json::value* items = find(schema, "items");
  if (!is_schema(items)) return;
  constexpr std::string_view kAtomic = "must be atomic as item of a list with x-kubernetes-list-type=set";
  std::string_view type = get_string(*items, "type"), list = get_string(*items, "x-kubernetes-list-type");
  if (type == "array" && !list.empty() && list != "atomic") out.invalid(sub(path, "items.x-kubernetes-list-type"), list, kAtomic);
  if (type == "object" && get_string(*items, "x-kubernetes-map-type") != "atomic") {
    out.add({"FieldValueInvalid", "Invalid value: null: " + std::string(kAtomic), sub(path, "items.x-kubernetes-map-type")});
  }
}

void check_extensions(Findings& out, const std::string& path, const json::value& schema) {
  if (has(schema, "x-kubernetes-preserve-unknown-fields") && !get_bool(schema, "x-kubernetes-preserve-unknown-fields")) {
    out.add({"FieldValueInvalid", "Invalid value: false: must be true or undefined",
             sub(path, "x-kubernetes-preserve-unknown-fields")});
  }
  check_type_of(out, path, schema, "object", "x-kubernetes-map-type");
  std::string_view map = get_string(schema, "x-kubernetes-map-type"), list = get_string(schema, "x-kubernetes-list-type");
  if (has(schema, "x-kubernetes-map-type") && map != "atomic" && map != "granular") {
    out.not_supported(sub(path, "x-kubernetes-map-type"), map, {"atomic", "granular"});
  }
  check_type_of(out, path, schema, "array", "x-kubernetes-list-type");
  if (has(schema, "x-kubernetes-list-type") && list != "atomic" && list != "set" && list != "map") {
    out.not_supported(sub(path, "x-kubernetes-list-type"), list, {"atomic", "map", "set"});
  }
  if (list == "set" && get_string(schema, "type") == "array") check_set_items(out, path, schema);
  bool keyed = !get_array(schema, "x-kubernetes-list-map-keys").empty();
  constexpr std::string_view kMap = "must be map if x-kubernetes-list-map-keys is non-empty";
  if (keyed && list.empty()) out.required(sub(path, "x-kubernetes-list-type"), kMap);
  else if (keyed && list != "map") out.invalid(sub(path, "x-kubernetes-list-type"), list, kMap);
  if (list == "map") check_map_list(out, path, schema);
  const json::value* items = find(schema, "items");
  if ((list == "map" || list == "set") && is_schema(items) && get_bool(*items, "nullable")) {
    out.forbidden(sub(path, "items.nullable"), "cannot be nullable when x-kubernetes-list-type is " + std::string(list));
  }
}

bool has_newlines(std::string_view text) { return text.find_first_of("\r\n") != text.npos; }

void check_cel(Findings& out, const std::string& path, const json::value& schema) {
  const json::array& rules = get_array(schema, "x-kubernetes-validations");
  for (size_t i = 0; i < rules.size(); ++i) {
    std::string at = item(sub(path, "x-kubernetes-validations"), i);
    std::string_view rule = get_string(rules[i], "rule"), message = get_string(rules[i], "message");
    std::string_view made = get_string(rules[i], "messageExpression"), field = get_string(rules[i], "fieldPath");
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

void check_parts(Findings& out, const std::string& path, const json::value& schema, const Context& context, bool root) {
  check_words(out, path, schema, context);
  const json::value* additional = find(schema, "additionalProperties");
  const json::object& properties = get_object(schema, "properties");
  bool narrows = additional && (additional->is_object() || (additional->is_bool() && !additional->get_bool()));
  if (narrows && !properties.empty()) {
    out.forbidden(sub(path, "additionalProperties"), "additionalProperties and properties are mutual exclusive");
  }
  if (is_schema(additional)) {
    Context inner = context;
    if (context.in_meta) inner.no_default = "inside additionalProperties applying to object metadata";
    check_parts(out, sub(path, "additionalProperties"), *additional, inner, false);
  }
  for (const auto& pair : properties) {
    Context inner = context;
    bool meta = is_meta_field(pair.key()) && (root || get_bool(schema, "x-kubernetes-embedded-resource"));
    if (meta) inner.in_meta = true;
    if (meta && root) inner.no_default = "in top-level " + std::string(pair.key());
    check_parts(out, property_path(path, pair.key()), pair.value(), inner, false);
  }
  if (is_schema(find(schema, "not"))) check_parts(out, sub(path, "not"), *find(schema, "not"), context, false);
  for (const char* field : {"allOf", "oneOf", "anyOf"}) {
    const json::array& all = get_array(schema, field);
    for (size_t i = 0; i < all.size(); ++i) check_parts(out, item(sub(path, field), i), all[i], context, false);
  }
  if (is_schema(find(schema, "items"))) check_parts(out, sub(path, "items"), *find(schema, "items"), context, false);
  check_extensions(out, path, schema);
  check_cel(out, path, schema);
}

// ---- structural schemas ----

// anyOf: [{type: integer}, {type: string}], which belongs to x-kubernetes-int-or-string.
bool is_int_or_string(const json::value& holder) {
  const json::array& any = get_array(holder, "anyOf");
  return any.size() == 2 && any[0] == json::value{{"type", "integer"}} && any[1] == json::value{{"type", "string"}};
}

void check_junctors(Findings& out, const std::string& path, const json::value& schema, bool skip_any);

// A schema under allOf, anyOf, oneOf or not: it may restrict values but not define fields.
void check_nested(Findings& out, const std::string& path, const json::value& schema, bool skip_any) {
  check_junctors(out, path, schema, skip_any);
  if (is_schema(find(schema, "items"))) check_nested(out, sub(path, "items"), *find(schema, "items"), false);
  for (const auto& pair : get_object(schema, "properties"))
    check_nested(out, property_path(path, pair.key()), pair.value(), false);
  constexpr std::string_view kEmpty = "must be empty to be structural", kUndefined = "must be undefined to be structural";
  constexpr std::string_view kFalse = "must be false to be structural";
  for (const char* field : {"type", "title", "description"}) {
    if (!get_string(schema, field).empty()) out.forbidden(sub(path, field), kEmpty);
  }
  for (const char* field : {"additionalProperties", "default"}) {
    if (has(schema, field)) out.forbidden(sub(path, field), kUndefined);
  }
  for (const char* field :
       {"nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"}) {
    if (get_bool(schema, field)) out.forbidden(sub(path, field), kFalse);
  }
  for (const char* field : {"x-kubernetes-list-map-keys", "x-kubernetes-validations"}) {
    if (!get_array(schema, field).empty()) out.forbidden(sub(path, field), kEmpty);
  }
  for (const char* field : {"x-kubernetes-list-type", "x-kubernetes-map-type"}) {
    if (has(schema, field)) out.forbidden(sub(path, field), kUndefined);
  }
  if (has(schema, "properties.metadata"))
    out.forbidden(property_path(path, "metadata"), "must not be specified in a nested context");
}

void check_junctors(Findings& out, const std::string& path, const json::value& schema, bool skip_any) {
  for (const char* field : {"anyOf", "allOf", "oneOf"}) {
    const json::array& all = get_array(schema, field);
    bool any = std::string_view(field) == "anyOf";
    for (size_t i = 0; i < all.size() && !(any && skip_any); ++i) {
      bool int_or_string = std::string_view(field) == "allOf" && i == 0 && is_int_or_string(all[i]);
      check_nested(out, item(sub(path, field), i), all[i], int_or_string);
    }
  }
  if (is_schema(find(schema, "not"))) check_nested(out, sub(path, "not"), *find(schema, "not"), false);
}

void check_meta_types(Findings& out, const std::string& path, const json::value& schema, Level level) {
  for (std::string_view name : {"kind", "apiVersion"}) {
    const json::value* property = find_keys(schema, {"properties", name});
    if (property && get_string(*property, "type") != "string") {
      out.invalid(sub(property_path(path, name), "type"), get_string(*property, "type"), "must be string");
    }
  }
  const json::value* metadata = find_keys(schema, {"properties", "metadata"});
  if (!metadata) return;
  std::string at = property_path(path, "metadata");
  if (get_string(*metadata, "type") != "object") out.invalid(sub(at, "type"), get_string(*metadata, "type"), "must be object");
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

void check_structural(Findings& out, const std::string& path, const json::value& schema, Level level) {
  std::string_view type = get_string(schema, "type");
  const json::value* items = find(schema, "items");
  const json::value* additional = find(schema, "additionalProperties");
  bool embedded = get_bool(schema, "x-kubernetes-embedded-resource"),
       int_or_string = get_bool(schema, "x-kubernetes-int-or-string");
  bool preserves = get_bool(schema, "x-kubernetes-preserve-unknown-fields");
  if (type == "array" && !has(schema, "items")) out.required(sub(path, "items"), "must be specified");
  if (is_schema(items)) check_structural(out, sub(path, "items"), *items, Level::item);
  for (const auto& pair : get_object(schema, "properties")) {
    bool root_meta = level == Level::root && pair.key() == "metadata";
    if (!root_meta) check_structural(out, property_path(path, pair.key()), pair.value(), Level::field);
  }
  if (has(schema, "additionalProperties") && level == Level::root)
    out.forbidden(sub(path, "additionalProperties"), "must not be used at the root");
  if (is_schema(additional)) check_structural(out, sub(path, "additionalProperties"), *additional, Level::field);
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
  if (embedded && has(schema, "additionalProperties")) {
    out.forbidden(sub(path, "additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set");
  }
  if (level == Level::root && !type.empty() && type != "object")
    out.invalid(sub(path, "type"), type, "must be object at the root");
  if (level == Level::root || embedded) check_meta_types(out, path, schema, level);
  if (embedded && !preserves && get_object(schema, "properties").empty()) {
    out.required(sub(path, "properties"),
                 "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields");
  }
}

// With a status subresource, the root may only contain keywords that still apply without the status.
void check_root(Findings& out, const std::string& path, const json::value& schema) {
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
  std::string_view type = get_string(schema, "type");
  if (!type.empty() && type != "object") {
    return out.invalid(sub(path, "type"), type,
                       "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled");
  }
  for (const auto& pair : schema.get_object()) {
    if (allowed.count(pair.key())) continue;
    return out.invalid_json(
        path, schema,
        "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
        "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
        "XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource "
        "is enabled");
  }
}

}  // namespace

void check_json_schema(Findings& out, const std::string& path, const json::value& schema, bool status_apart) {
  if (!schema.is_object()) return;
  if (status_apart) check_root(out, path, schema);
  if (get_bool(schema, "nullable")) out.forbidden(sub(path, "nullable"), "nullable cannot be true at the root");
  check_structural(out, path, schema, Level::root);
  check_parts(out, path, schema, {}, true);
}

std::string_view type_at(const json::value& schema, std::string_view path) {
  const json::value* at = &schema;
  if (!path.starts_with('.')) return {};
  for (std::string_view name : split(path.substr(1), '.')) {
    const json::value* property = find_keys(*at, {"properties", name});
    const json::value* additional = find(*at, "additionalProperties");
    at = property ? property : is_schema(additional) ? additional : nullptr;
    if (!at) return {};
  }
  return get_string(*at, "type");
}

}  // namespace coracle::schema
