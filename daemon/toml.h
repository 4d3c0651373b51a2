// SPDX-License-Identifier: Apache-2.0
// TOML, as far as settings need it: tables, inline tables, dotted and quoted keys, strings of one line, integers, booleans and
// arrays. Not: other numbers, dates, strings of several lines, arrays of tables. Source: toml.io, v1.0.0.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

struct Toml {
  json::value root;  // an object; all objects have their fields in the order of the text
  std::map<std::vector<std::string>, size_t> lines;

  // The line of a field, counted from 1, or that of the nearest field above it that has one; 0: none has.
  size_t line_of(std::vector<std::string> path) const;
};

// Errors: invalid, with the line: "line 3: …".
Result<Toml> parse_toml(std::string_view text);

}  // namespace coracle
