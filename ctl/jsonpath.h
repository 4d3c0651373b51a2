// SPDX-License-Identifier: Apache-2.0
// JSONPath templates as kubectl's -o jsonpath takes them: text with {expressions}; fields, ['quoted'], indices, slices,
// wildcards, recursive descent, filters [?(@.type=="Ready")], unions, {range …}{end}, quoted literals.
// Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// The template's output for `root`. Missing keys read as nothing. Errors: invalid, saying where the template is wrong,
// or which index a list has not.
Result<std::string> jsonpath(std::string_view template_text, const json::value& root);

// All values one expression selects, without braces: ".metadata.name" or "metadata.name". Used by custom-columns and
// --sort-by. Errors: invalid.
Result<std::vector<const json::value*>> jsonpath_select(std::string_view expression, const json::value& root);

// How a selected value reads in output: strings bare, numbers and booleans as they are, the rest as JSON.
std::string jsonpath_text(const json::value& value);

}  // namespace coracle::ctl
