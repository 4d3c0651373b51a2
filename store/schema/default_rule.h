// SPDX-License-Identifier: Apache-2.0
// Default rules: defaults that are not constants. A rule belongs to a type, and so applies to every kind that contains the type:
// the rule for a Container applies to pods and to every pod template. It may add fields anywhere in its object; the order of
// fields is restored afterwards. Children are visited after their parent. Pure.
#pragma once

#include <string_view>

#include "runtime/base/json.h"
#include "store/schema/members.h"

namespace coracle::schema {

using DefaultRule = void (*)(json::object& object);

struct NamedDefaultRule {
  std::string_view type;  // OpenAPI name
  DefaultRule rule;
};

// True if absent or null; with `pointer` false, also for "", 0 and false.
bool unset(const json::object& object, std::string_view name, bool pointer = false);

}  // namespace coracle::schema
