// SPDX-License-Identifier: Apache-2.0
// Properties of a kubeconfig by their dotted names, as `config set` and `config unset` take them: "clusters.10.0.0.1.server". A
// name of an entry may have dots: it ends where a field's name follows.
// Source: kubectl pkg/cmd/config/navigation_step_parser.go and set.go.
#pragma once

#include <string>

#include "ctl/kubeconfig_files.h"

namespace coracle::ctl {

// Errors: bad_request for a property that there is not, or a value that it cannot have. With `raw`, a value of bytes is not
// base64 yet.
Result<void> set_property(KubeconfigFiles& files, const std::string& property, const std::string& value, bool raw);
// Errors: bad_request, likewise.
Result<void> unset_property(KubeconfigFiles& files, const std::string& property);

}  // namespace coracle::ctl
