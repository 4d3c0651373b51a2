// SPDX-License-Identifier: Apache-2.0
// User: who asks. The api room finds out (daemon/access), the write pipeline records it where Kubernetes does, admission
// and the audit log read it. Source: Kubernetes "Authenticating", user info.
#pragma once

#include "daemon/admission/request.h"

namespace coracle {

using User = admission::User;

}  // namespace coracle
