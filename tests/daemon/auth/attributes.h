// SPDX-License-Identifier: Apache-2.0
// What is asked for, for the tests of those who decide about it.
#pragma once

#include <string>
#include <utility>

#include "daemon/auth/attributes.h"

namespace coracle::auth {

inline Attributes asks_path(std::string verb, std::string url) {
  return {std::move(verb), "", "", "", "", "", std::move(url), false, ""};
}

}  // namespace coracle::auth
