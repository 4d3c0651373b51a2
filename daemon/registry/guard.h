// SPDX-License-Identifier: Apache-2.0
// Guard: checks whether a user may write an object with this content. Authorization has already allowed the verb. The guard
// checks what the object grants or decides (roles and bindings, certificate requests), and writes that need another verb: an
// update or apply of a missing object creates it. Implemented beside authorization.
#pragma once

#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/object/user.h"

namespace coracle::registry {

struct GuardedWrite {
  const Kind& kind;
  std::string_view subresource;
  const json::value* old;     // nullptr: it is created
  const json::value& object;  // with defaults, canonical
  const User& user;
};

class Guard {
 public:
  virtual ~Guard() = default;
  // Errors: forbidden, with Kubernetes' text; not_found for a role that does not exist.
  virtual Result<void> check(const GuardedWrite& write) const = 0;
  // Called when an update or apply of `key` finds no object. Errors: forbidden, with the verb create.
  virtual Result<void> check_create(const Kind& kind, const Key& key, const User& user) const = 0;
};

}  // namespace coracle::registry
