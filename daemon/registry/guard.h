// SPDX-License-Identifier: Apache-2.0
// Guard: whether a user may write an object as it would be stored. Authorization has said yes to the verb already; this is
// about what the object grants or decides (roles and bindings, certificate requests), and about writes that turn out to be
// another verb: an update or an apply of what does not exist creates it. Implemented where authorization is.
#pragma once

#include <string_view>

#include "daemon/admission/user.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

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
  // An update or an apply of `key` found nothing there. Errors: forbidden, naming the verb create.
  virtual Result<void> check_create(const Kind& kind, const Key& key, const User& user) const = 0;
};

}  // namespace coracle::registry
