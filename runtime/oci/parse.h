// SPDX-License-Identifier: Apache-2.0
// config.json ↔ structs. Reading is strict about types and about what the specification requires, and names the field
// that is wrong ("process.user.uid: not a whole number"); fields it does not know are ignored, as the specification
// asks. Writing gives the specification's form back: what was read is written again, field by field.
// Source: opencontainers/runtime-spec v1.2 and v1.3, config.md, config-linux.md.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::oci {

Result<Spec> parse_spec(const json::value& config);               // Errors: invalid, with the field
Result<Process> parse_process(const json::value& process);        // the `process` object alone
Result<Resources> parse_resources(const json::value& resources);  // the `linux.resources` object alone

json::value to_json(const Spec& spec);
json::value to_json(const Process& process);
json::value to_json(const Resources& resources);

}  // namespace coracle::oci
