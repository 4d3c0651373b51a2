// SPDX-License-Identifier: Apache-2.0
// What logs, exec and attach have in common: which container is meant.
#pragma once

#include "daemon/api/call.h"

namespace coracle::api {

// The container that `asked` names, or the only one. Errors: bad_request in Kubernetes' words, naming the choices.
Result<std::string> choose_container(const Object& pod, std::string_view asked);

}  // namespace coracle::api
