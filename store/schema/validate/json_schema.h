// SPDX-License-Identifier: Apache-2.0
// JSON schemas of custom resources: what a schema may say, and that it is structural: every field has one type, said outside of
// allOf, anyOf, oneOf and not. CEL rules have to be there; what they say is not looked into, nor whether defaults fit. Pure.
// Source: apiextensions-apiserver 1.36, pkg/apis/apiextensions/validation and pkg/apiserver/schema.
#pragma once

#include <string>
#include <string_view>

#include "store/schema/validate/findings.h"

namespace coracle::schema {

// `status_apart`: the kind has /status, so that only some fields may stand at the schema's root.
void check_json_schema(Findings& out, const std::string& path, const json::value& schema, bool status_apart);
// Type of the field at a path like .spec.size; "" when the schema has none.
std::string_view type_at(const json::value& schema, std::string_view path);

}  // namespace coracle::schema
