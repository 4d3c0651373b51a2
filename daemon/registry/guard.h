// SPDX-License-Identifier: Apache-2.0
// Guard: whether a user may write an object as it would be stored. Authorization has said yes to the verb already; this is
// about what the object grants or decides: roles and bindings, certificate requests. Implemented where authorization is.
#pragma once

#include <string_view>

#include "daemon/admission/user.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/kind.h"

namespace coracle::registry {

struct GuardedWrite {
  const Kind& kind;
  std::string_view subresource;
  const json::value* old;     // nullptr: it is created
  const json::value& object;  // defaulted, canonical
  const User& user;
};

class Guard {
 public:
  virtual ~Guard() = default;
  // Errors: forbidden, in Kubernetes' words; not_found for a role that there is not.
  virtual Result<void> check(const GuardedWrite& write) const = 0;
};

}  // namespace coracle::registry
