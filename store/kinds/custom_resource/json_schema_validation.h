// SPDX-License-Identifier: Apache-2.0
// JSON schemas of custom resources: checks the keywords, and that the schema is structural: every field has one type, defined
// outside of allOf, anyOf, oneOf and not. CEL rules must be present, but their expressions are not parsed, and defaults are not
// checked against the schema. Pure. Source: apiextensions-apiserver 1.36, pkg/apis/apiextensions/validation and
// pkg/apiserver/schema.
#pragma once

#include <string>
#include <string_view>

#include "store/schema/validate/findings.h"
#include "store/schema/views.h"

namespace coracle::schema {

// `status_apart`: the kind has /status; then only some keywords are allowed at the schema's root.
void check_json_schema(Findings& out, const std::string& path, view::JSONSchemaProps schema, bool status_apart);
// The type of the field at a path such as .spec.size; "" if the schema has none.
std::string_view type_at(view::JSONSchemaProps schema, std::string_view path);

}  // namespace coracle::schema
