// SPDX-License-Identifier: Apache-2.0
// Values as Go's fmt package prints them: %v, Printf with all its verbs and flags, and its remarks on wrong ones, such as
// "%!d(string=hi)". Pure. Source: Go's fmt package.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/go_value.h"

namespace coracle::ctl {

// Arguments that are nothing are nil. What would be longer than `bytes_max` is cut somewhere behind it: the caller takes that for
// an error.
std::string go_sprint(const std::vector<GoValue>& values, size_t bytes_max);
std::string go_sprintln(const std::vector<GoValue>& values, size_t bytes_max);
std::string go_sprintf(std::string_view format, const std::vector<GoValue>& values, size_t bytes_max);

std::string go_text(const GoValue& value);    // as %v: "map[a:1 b:[x]]"
std::string go_syntax(const GoValue& value);  // as %#v: map[string]interface {}{"a":1, "b":[]interface {}{"x"}}

// A number as strconv.FormatFloat writes it. Formats: b, e, E, f, g, G, x, X; a precision of -1 is as many digits as are needed.
std::string go_float(double value, char format, int precision);

}  // namespace coracle::ctl
