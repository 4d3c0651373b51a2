// SPDX-License-Identifier: Apache-2.0
// ObjectPtr and RestingPtr for code that passes objects on and only reads their parsed form. object.h has the rest.
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <memory>

#include "runtime/base/json.h"

namespace coracle {

class Object;
using ObjectPtr = std::shared_ptr<const Object>;

class RestingObject;
using RestingPtr = boost::intrusive_ptr<const RestingObject>;
void intrusive_ptr_add_ref(const RestingObject* object) noexcept;
void intrusive_ptr_release(const RestingObject* object) noexcept;

// object.json(): thread-safe, parses on first use, valid while the object is held.
const json::value& json_of(const Object& object);

}  // namespace coracle
