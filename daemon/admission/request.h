// SPDX-License-Identifier: Apache-2.0
// Request: the attributes of one write for admission: user, operation and object. Source: apiserver admission.Attributes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/engine/engine.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/object/user.h"
#include "store/schema/catalog.h"

namespace coracle::admission {

enum class Operation : uint8_t { create, update, remove };

struct Request {
  Operation operation;
  const schema::KindInfo& info;   // the stored kind
  const Kind& kind;               // its kind
  Key key;                        // the name is "" until the server has generated it
  std::string_view subresource;   // "": the object itself
  json::value* object = nullptr;  // the object to write, or the body of a subresource; null: a deletion
  const Object* old = nullptr;    // the present object; null: none
  const User& user;
  WallTime now;
  bool dry_run = false;
  std::vector<std::string>* warnings = nullptr;         // null: discarded
  std::map<std::string, std::string>* audit = nullptr;  // annotations for the audit log; null: discarded
  std::vector<engine::Write>* charges = nullptr;        // receives writes to commit with the object, before it

  bool creates(const Kind& of) const { return operation == Operation::create && kind == of && subresource.empty(); }
  void warn(std::string text) const {
    if (warnings) warnings->push_back(std::move(text));
  }
  void annotate(const std::string& name, std::string value) const {
    if (audit) (*audit)[name] = std::move(value);
  }
};

// The name of the object, or the prefix from which it is generated.
std::string_view name_of(const Request& request);
// The error "pods "x" is forbidden: why".
Error refuse(const Request& request, std::string_view why);

}  // namespace coracle::admission
