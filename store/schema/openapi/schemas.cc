// SPDX-License-Identifier: Apache-2.0
// Schemas of types. See build.h. Kubernetes' extensions define how lists and maps merge, and the kind of a schema.
#include "runtime/base/text.h"
#include "store/schema/form_doc.h"
#include "store/schema/openapi/build.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";

// Scalar types with a name of their own in Kubernetes' documents.
std::string named_scalar(Form form) {
  switch (form) {
    case Form::time: return std::string(kMeta) + "Time";
    case Form::micro_time: return std::string(kMeta) + "MicroTime";
    case Form::duration: return std::string(kMeta) + "Duration";
    case Form::fields: return std::string(kMeta) + "FieldsV1";
    case Form::quantity: return "io.k8s.apimachinery.pkg.api.resource.Quantity";
    case Form::int_or_string: return "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    case Form::any: return "io.k8s.apimachinery.pkg.runtime.RawExtension";
    default: return {};
  }
}

json::object one_of(std::string_view first, std::string_view second) {
  return {{"oneOf", json::array{json::object{{"type", first}}, json::object{{"type", second}}}}};
}

json::object scalar_definition(Form form, Dialect dialect) {
  json::object out;
  switch (form) {
    case Form::time:
    case Form::micro_time: out = {{"type", "string"}, {"format", "date-time"}}; break;
    case Form::duration: out = {{"type", "string"}}; break;
    case Form::quantity:
      if (dialect == Dialect::v3) out = one_of("string", "number");
      else out = {{"type", "string"}};
      break;
    case Form::int_or_string:
      if (dialect == Dialect::v3) out = one_of("integer", "string");
      else out = {{"type", "string"}};
      out["format"] = "int-or-string";
      break;
    default: out = {{"type", "object"}};
  }
  out["description"] = form_doc(form);
  return out;
}

class SchemaWriter {
 public:
  SchemaWriter(Dialect dialect, json::object& out) : dialect_(dialect), out_(out) {}

  void add(const Type& type) {
    std::string name = type.openapi_name();
    if (out_.contains(name)) return;
    out_[name] = nullptr;  // reserves the name: types may be recursive
    json::value definition = define(type);
    out_[name] = std::move(definition);
  }

 private:
  json::object define(const Type& type) {
    json::object schema;
    schema["description"] = type.doc().empty() ? type.name() : type.doc();
    if (type.either) return schema;  // it has no single type
    schema["type"] = "object";
    json::array required;
    json::object properties;
    for (const Field& field : type.fields()) {
      if (field.required) required.emplace_back(field.name());
      properties[field.name()] = property(field);
    }
    if (!required.empty()) schema["required"] = std::move(required);
    if (!properties.empty()) schema["properties"] = std::move(properties);
    if (type.root) schema["x-kubernetes-group-version-kind"] = kinds_of(type);
    if (type.atomic) schema["x-kubernetes-map-type"] = "atomic";
    return schema;
  }

  // Options and Status belong to every served group.
  static json::array kinds_of(const Type& type) {
    json::array kinds;
    auto add = [&](std::string_view group, std::string_view version) {
      kinds.push_back(json::object{{"group", group}, {"kind", type.name()}, {"version", version}});
    };
    bool everywhere = type.package().name() == "meta" && type.name().ends_with("Options");
    GroupVersion own = split_api_version(type.api_version());
    add(own.group, own.version);
    for (const Package& package : all_packages()) {
      if (everywhere && package.group() != own.group) add(package.group(), package.version());
    }
    return kinds;
  }

  json::object property(const Field& field) {
    json::object schema;
    if (field.shape == Shape::one) {
      schema = value_of(field);
      if (field.granular) schema["x-kubernetes-map-type"] = "granular";
    } else if (field.shape == Shape::map) {
      schema["type"] = "object";
      schema["additionalProperties"] = value_of(field);
      if (field.atomic) schema["x-kubernetes-map-type"] = "atomic";
    } else {
      schema["type"] = "array";
      schema["items"] = value_of(field);
      add_list_extensions(field, schema);
    }
    if (!field.doc().empty()) schema["description"] = field.doc();
    if (!field.default_json().empty()) schema["default"] = *parse_json(field.default_json());
    if (field.closed && field.shape == Shape::one) {
      json::array& values = schema["enum"].emplace_array();
      for (std::string_view value : field.values()) values.emplace_back(value);
    }
    std::string strategy = field.merges ? "merge" : field.replaced ? "replace" : "";
    if (field.retains_keys) strategy += strategy.empty() ? "retainKeys" : ",retainKeys";
    if (!strategy.empty()) schema["x-kubernetes-patch-strategy"] = strategy;
    if (!field.merge_key().empty()) schema["x-kubernetes-patch-merge-key"] = field.merge_key();
    return schema;
  }

  static void add_list_extensions(const Field& field, json::object& schema) {
    schema["x-kubernetes-list-type"] = field.list == ListKind::map ? "map" : field.list == ListKind::set ? "set" : "atomic";
    if (field.list != ListKind::map) return;
    json::array& keys = schema["x-kubernetes-list-map-keys"].emplace_array();
    for (std::string_view key : field.list_keys()) keys.emplace_back(key);
  }

  json::object value_of(const Field& field) {
    switch (field.form) {
      case Form::string: return {{"type", "string"}};
      case Form::int32: return {{"type", "integer"}, {"format", "int32"}};
      case Form::int64: return {{"type", "integer"}, {"format", "int64"}};
      case Form::boolean: return {{"type", "boolean"}};
      case Form::number: return {{"type", "number"}, {"format", "double"}};
      case Form::bytes: return {{"type", "string"}, {"format", "byte"}};
      case Form::strings: return {{"type", "array"}, {"items", json::object{{"type", "string"}}}};
      case Form::object: add(field.type()); return reference(field.type().openapi_name());
      default: break;
    }
    std::string name = named_scalar(field.form);
    if (!out_.contains(name)) out_[name] = scalar_definition(field.form, dialect_);
    return reference(name);
  }

  json::object reference(const std::string& name) const {
    json::object bare{{"$ref", openapi_reference(name, dialect_)}};
    if (dialect_ == Dialect::v2) return bare;
    return {{"allOf", json::array{std::move(bare)}}};  // version 3 allows no siblings of a $ref
  }

  Dialect dialect_;
  json::object& out_;
};

}  // namespace

json::object openapi_schemas(const std::set<const Type*>& types, Dialect dialect) {
  json::object out;
  SchemaWriter writer(dialect, out);
  for (const Type* type : types) writer.add(*type);
  return out;
}

std::string openapi_reference(std::string_view name, Dialect dialect) {
  return (dialect == Dialect::v2 ? "#/definitions/" : "#/components/schemas/") + std::string(name);
}

}  // namespace coracle::schema
