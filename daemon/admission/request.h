// SPDX-License-Identifier: Apache-2.0
// Request: one write on its way into the store, as admission sees it: who does what to which object.
// Source: apiserver admission.Attributes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admission/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/engine/engine.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::admission {

enum class Operation : uint8_t { create, update, remove };

struct Request {
  Operation operation;
  const schema::KindInfo& info;   // as it is stored
  const Kind& kind;               // its kind
  Key key;                        // the name is "" where the server has yet to make one
  std::string_view subresource;   // "": the object itself
  json::value* object = nullptr;  // what is to be written, or the body of an action; null: a removal
  const Object* old = nullptr;    // what is there; null: nothing
  const User& user;
  WallTime now;
  bool dry_run = false;
  std::vector<std::string>* warnings = nullptr;         // null: nobody listens
  std::map<std::string, std::string>* audit = nullptr;  // annotations for the audit log, likewise
  std::vector<engine::Write>* charges = nullptr;        // what is to be written together with the object

  bool creates(const Kind& of) const { return operation == Operation::create && kind == of && subresource.empty(); }
  void warn(std::string text) const {
    if (warnings) warnings->push_back(std::move(text));
  }
  void annotate(const std::string& name, std::string value) const {
    if (audit) (*audit)[name] = std::move(value);
  }
};

// pods "x" is forbidden: why
Error refuse(const Request& request, std::string_view why);

}  // namespace coracle::admission
