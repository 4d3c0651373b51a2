// SPDX-License-Identifier: Apache-2.0
// A user as reviews answer and the audit log writes it down. Pure. Source: Kubernetes authentication.k8s.io/v1 UserInfo.
#pragma once

#include "daemon/admission/user.h"
#include "runtime/base/json.h"

namespace coracle::access {

// What is empty is left out, the name as well: of nobody there is nothing to say.
json::object user_info(const User& user);

}  // namespace coracle::access
