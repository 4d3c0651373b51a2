// SPDX-License-Identifier: Apache-2.0
// Users for requests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/object/user.h"

namespace coracle::flowcontrol {

inline User user(const std::string& name, std::vector<std::string> groups = {}) { return {name, "", std::move(groups), {}}; }

}  // namespace coracle::flowcontrol
