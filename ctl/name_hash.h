// SPDX-License-Identifier: Apache-2.0
// The hash of a ConfigMap's or Secret's content that --append-hash puts behind its name. Pure.
// Source: kubectl pkg/util/hash; kustomize has the same.
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace coracle::ctl {

// Ten letters and digits that depend on kind, name, type and content.
std::string name_hash(const json::value& object);
void append_hash(json::value& object);  // to its name

}  // namespace coracle::ctl
