// SPDX-License-Identifier: Apache-2.0
// Objects generated from the tables: every field of a type gets a nonzero value, so that a test covers each field of each kind
// without naming it, including fields that are added later.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

class Sampler {
 public:
  json::value object(const Type& type) {
    if (type.either) return one_of(type);
    json::object out;
    path_.push_back(&type);
    for (const Field& field : type.fields()) {
      json::value value = this->field(type, field);
      if (!value.is_null()) out[field.name()] = std::move(value);
    }
    path_.pop_back();
    return out;
  }

 private:
  json::value one_of(const Type& type) {  // the last alternative that does not recurse into a type on the path
    json::value chosen;
    path_.push_back(&type);
    for (const Field& field : type.fields()) {
      json::value value = this->field(type, field);
      if (!value.is_null()) chosen = std::move(value);
    }
    path_.pop_back();
    return chosen;
  }

  json::value field(const Type& type, const Field& field) {
    bool named = type.root && (field.name() == "apiVersion" || field.name() == "kind");
    if (named && path_.size() > 1) return json::value();  // list items have neither
    if (named) return json::value(field.name() == "kind" ? type.name() : type.api_version());
    bool recursive = field.form == Form::object && std::count(path_.begin(), path_.end(), &field.type()) > 0;
    if (recursive) return json::value();
    if (field.shape == Shape::list) return json::array{item(field), item(field)};
    if (field.shape == Shape::map) return json::object{{"a" + std::to_string(++count_), item(field)}, {"b", item(field)}};
    return item(field);
  }

  json::value item(const Field& field) {
    int n = ++count_;
    switch (field.form) {
      case Form::string: return json::value("s" + std::to_string(n));
      case Form::int32: return json::value(n % 2 ? n : -n);
      case Form::int64: return json::value(int64_t(n) << 33);
      case Form::boolean: return json::value(true);
      case Form::number: return json::value(n + 0.5);
      case Form::bytes: return json::value(base64_encode(std::string("\0\xff", 2) + std::to_string(n)));
      case Form::time: return json::value("2026-01-02T03:04:05Z");
      case Form::micro_time: return json::value("2026-01-02T03:04:05.000006Z");
      case Form::duration: return json::value("1m" + std::to_string(n % 59 + 1) + ".5s");
      case Form::quantity: return json::value(std::to_string(n * 2 + 1) + "m");
      case Form::int_or_string: return n % 2 ? json::value(n) : json::value(std::to_string(n) + "%");
      case Form::any: return json::object{{"any", n}};
      case Form::fields: return json::object{{"f:spec", json::object()}};
      case Form::strings: return json::array{"x", "y"};
      case Form::object: return object(field.type());
    }
    return json::value();
  }

  std::vector<const Type*> path_;
  int count_ = 0;
};

}  // namespace coracle::schema
