// SPDX-License-Identifier: Apache-2.0
// ObjectPtr for those who hand objects on and do not look at more than their parsed form. object.h has the rest.
#pragma once

#include <memory>

#include "runtime/base/json.h"

namespace coracle {

class Object;
using ObjectPtr = std::shared_ptr<const Object>;

// object.json(): thread-safe, parsed on first use, good as long as the object is held.
const json::value& json_of(const Object& object);

}  // namespace coracle
