// SPDX-License-Identifier: Apache-2.0
// Shared by logs, exec and attach: the choice of the container.
#pragma once

#include "daemon/api/call.h"

namespace coracle::api {

// The container named `asked`, or the pod's only one. Errors: bad_request with Kubernetes' text, which lists the choices.
Result<std::string> choose_container(const Object& pod, std::string_view asked);

}  // namespace coracle::api
