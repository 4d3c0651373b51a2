// SPDX-License-Identifier: Apache-2.0
// config.json ↔ structs. Reading is strict about types and names the field that is wrong ("process.user.uid: not a
// number"); fields it does not know are ignored, as the specification asks. Writing gives the specification's form
// back. Source: opencontainers/runtime-spec v1.2, config.md, config-linux.md.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::oci {

Result<Spec> parse_spec(const json::value& config);         // Errors: invalid, with the field
Result<Process> parse_process(const json::value& process);  // the `process` object alone
json::value to_json(const Spec& spec);
json::value to_json(const Process& process);

}  // namespace coracle::oci
