// SPDX-License-Identifier: Apache-2.0
// A kubeconfig as `config view` shows it: merged, in kubectl's order, secrets left out unless they are asked for.
// Source: client-go tools/clientcmd/api/helpers.go.
#pragma once

#include <string>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// Leaves only what the current context uses. Errors: invalid when it names what is not there.
Result<void> minify_kubeconfig(json::value& config);
// Holds the content of the files that it names by absolute paths. Errors: invalid for an entry with both; from reading.
Result<void> flatten_kubeconfig(json::value& config);
void redact_kubeconfig(json::value& config);  // keys, certificates, tokens and passwords
// The same in the order of kubectl's JSON: lists sorted by name, members without a value left out.
json::value ordered_kubeconfig(const json::value& config);

}  // namespace coracle::ctl
