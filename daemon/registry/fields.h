// SPDX-License-Identifier: Apache-2.0
// Label and field selectors of a list or watch, combined to one predicate. Pure. Source: Kubernetes "Field Selectors"; the fields
// of each kind that kube-apiserver 1.36 supports.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "store/object/object_ptr.h"
#include "store/schema/catalog.h"

namespace coracle::registry {

using Filter = std::function<bool(const Object&)>;  // empty: matches everything

// Errors: bad_request for unparsable selectors and for fields that the kind does not support.
Result<Filter> make_filter(const schema::KindPtr& kind, const std::string& labels, const std::string& fields);
// The single name that `fields` requires, or "": with a name, a list is a get.
std::string name_demanded(const std::string& fields);

}  // namespace coracle::registry
