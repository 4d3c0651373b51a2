// SPDX-License-Identifier: Apache-2.0
// A user as UserInfo, for reviews and the audit log. Pure. Source: Kubernetes authentication.k8s.io/v1 UserInfo.
#pragma once

#include "store/object/user.h"
#include "runtime/base/json.h"

namespace coracle::auth {

// Empty fields are left out, also the name: an unauthenticated user gives an empty object.
json::object user_info(const User& user);

}  // namespace coracle::auth
