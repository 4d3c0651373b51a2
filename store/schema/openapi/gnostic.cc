// SPDX-License-Identifier: Apache-2.0
// The version 2 document as gnostic's protobuf, the only format that Go clients request from /openapi/v2. The numbers are those
// of OpenAPIv2.proto; only what our documents contain is written. Maps are lists of named values, and free-form values (defaults,
// enums, extensions) are YAML text, which includes JSON. Source: github.com/google/gnostic-models openapiv2/OpenAPIv2.proto.
#include "store/schema/openapi.h"
#include "store/schema/wire.h"

namespace coracle::schema {
namespace {

class Gnostic {
 public:
  std::string document(const json::value& root) {
    text(1, get_string(root, "swagger"));
    nest(2, [&] {
      text(1, get_string(root, "info.title"));
      text(2, get_string(root, "info.version"));
    });
    nest(8, [&] {
      for (const auto& pair : get_object(root, "paths")) named(2, pair.key(), [&] { path_item(pair.value()); });
    });
    nest(9, [&] {
      for (const auto& pair : get_object(root, "definitions")) named(1, pair.key(), [&] { schema(pair.value()); });
    });
    return wire_.take();
  }

 private:
  template <typename Body>
  void nest(uint32_t number, Body body) {
    size_t begun = wire_.begin(number);
    body();
    wire_.end(begun);
  }

  template <typename Body>
  void named(uint32_t number, std::string_view name, Body body) {
    nest(number, [&] {
      wire_.bytes(1, name);
      nest(2, body);
    });
  }

  void text(uint32_t number, std::string_view value) {
    if (!value.empty()) wire_.bytes(number, value);
  }

  void texts(uint32_t number, const json::array& values) {
    for (const json::value& value : values) wire_.bytes(number, value.get_string());
  }

  void any(const json::value& value) { wire_.bytes(2, to_text(value)); }

  void extensions(uint32_t number, const json::value& of) {
    for (const auto& pair : of.get_object()) {
      if (std::string_view(pair.key()).starts_with("x-")) named(number, pair.key(), [&] { any(pair.value()); });
    }
  }

  void path_item(const json::value& item) {
    constexpr std::pair<std::string_view, uint32_t> kMethods[] = {
        {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};
    for (auto [method, number] : kMethods) {
      if (const json::value* found = find(item, method)) nest(number, [&] { operation(*found); });
    }
    for (const json::value& one : get_array(item, "parameters")) nest(9, [&] { parameters_item(one); });
  }

  void operation(const json::value& one) {
    text(3, get_string(one, "description"));
    text(5, get_string(one, "operationId"));
    texts(6, get_array(one, "produces"));
    texts(7, get_array(one, "consumes"));
    for (const json::value& item : get_array(one, "parameters")) nest(8, [&] { parameters_item(item); });
    nest(9, [&] {
      for (const auto& pair : get_object(one, "responses")) {
        named(1, pair.key(), [&] { nest(1, [&] { response(pair.value()); }); });
      }
    });
    extensions(13, one);
  }

  void response(const json::value& one) {
    text(1, get_string(one, "description"));
    if (const json::value* found = find(one, "schema")) nest(2, [&] { nest(1, [&] { schema(*found); }); });
  }

  void parameters_item(const json::value& one) {
    nest(1, [&] {
      if (get_string(one, "in") == "body") nest(1, [&] { body_parameter(one); });
      else nest(2, [&] { plain_parameter(one); });
    });
  }

  void body_parameter(const json::value& one) {
    text(2, get_string(one, "name"));
    text(3, get_string(one, "in"));
    wire_.varint(4, get_bool(one, "required"));
    nest(5, [&] { schema(*find(one, "schema")); });
  }

  void plain_parameter(const json::value& one) {
    bool query = get_string(one, "in") == "query";
    nest(query ? 3 : 4, [&] {
      if (get_bool(one, "required")) wire_.varint(1, 1);
      text(2, get_string(one, "in"));
      text(3, get_string(one, "description"));
      text(4, get_string(one, "name"));
      text(query ? 6 : 5, get_string(one, "type"));
      wire_.varint(query ? 20 : 18, get_bool(one, "uniqueItems"));
    });
  }

  void schema(const json::value& one) {
    text(1, get_string(one, "$ref"));
    text(2, get_string(one, "format"));
    text(4, get_string(one, "description"));
    if (const json::value* found = find(one, "default")) nest(5, [&] { any(*found); });
    texts(19, get_array(one, "required"));
    for (const json::value& value : get_array(one, "enum")) nest(20, [&] { any(value); });
    if (const json::value* found = find(one, "additionalProperties")) nest(21, [&] { nest(1, [&] { schema(*found); }); });
    if (std::string_view type = get_string(one, "type"); !type.empty()) nest(22, [&] { wire_.bytes(1, type); });
    if (const json::value* found = find(one, "items")) nest(23, [&] { nest(1, [&] { schema(*found); }); });
    if (const json::value* found = find(one, "properties")) {
      nest(25, [&] {
        for (const auto& pair : found->get_object()) named(1, pair.key(), [&] { schema(pair.value()); });
      });
    }
    extensions(31, one);
  }

  WireWriter wire_;
};

}  // namespace

std::string openapi_v2_protobuf(const Catalog& catalog) { return Gnostic().document(*parse_json(openapi_v2(catalog))); }

}  // namespace coracle::schema
