// SPDX-License-Identifier: Apache-2.0
// Conversion between config.json and structs. Reading is strict about types and required members and names the invalid field
// ("process.user.uid: not a whole number"). Unknown fields are ignored, as the specification requires. Writing produces the
// specification's form: all fields that were read are written again.
// Source: opencontainers/runtime-spec v1.2 and v1.3, config.md, config-linux.md.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::oci {

Result<Spec> parse_spec(const json::value& config);               // Errors of all three: invalid, with the field
Result<Process> parse_process(const json::value& process);        // only the `process` object
Result<Resources> parse_resources(const json::value& resources);  // only the `linux.resources` object

json::value to_json(const Spec& spec);
json::value to_json(const Process& process);
json::value to_json(const Resources& resources);

}  // namespace coracle::oci
