// SPDX-License-Identifier: Apache-2.0
// Which objects a list or watch asked for: label and field selectors together as one question. Pure.
// Source: Kubernetes "Field Selectors"; the fields of each kind as kube-apiserver 1.36 supports them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::registry {

using Filter = std::function<bool(const Object&)>;  // empty: everything

// Errors: bad_request for what cannot be parsed and for fields that the kind does not support.
Result<Filter> make_filter(const schema::KindPtr& kind, const std::string& labels, const std::string& fields);
// The single name that `fields` demands, "" when there is none: then a list is a get.
std::string name_demanded(const std::string& fields);

}  // namespace coracle::registry
