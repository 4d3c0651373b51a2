// SPDX-License-Identifier: Apache-2.0
// Request attributes for the tests of authorizers.
#pragma once

#include <string>
#include <utility>

#include "daemon/auth/attributes.h"

namespace coracle::auth {

inline Attributes asks_path(std::string verb, std::string url) {
  return {std::move(verb), "", "", "", "", "", std::move(url), false, ""};
}

}  // namespace coracle::auth
