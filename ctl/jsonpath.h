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

// The template's output for `root`. Missing keys print nothing. Errors: invalid, with the place in the template or the index that
// is out of range.
Result<std::string> jsonpath(std::string_view template_text, const json::value& root);

// All values that one expression selects. It has no braces: ".metadata.name" or "metadata.name". Used by custom-columns and
// --sort-by. Errors: invalid.
Result<std::vector<const json::value*>> jsonpath_select(std::string_view expression, const json::value& root);

// A selected value as text: strings without quotes, objects and lists as JSON.
std::string jsonpath_text(const json::value& value);

}  // namespace coracle::ctl
