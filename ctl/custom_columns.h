// SPDX-License-Identifier: Apache-2.0
// -o custom-columns and custom-columns-file: columns that the user names, each with a JSONPath expression. Pure.
// Source: kubectl's pkg/cmd/get/customcolumn.go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

class CustomColumns {
 public:
  // "NAME:.metadata.name,IMAGE:.spec.containers[*].image". Errors: invalid, in kubectl's words.
  static Result<CustomColumns> parse(std::string_view spec);
  // A file's content: a line of headers, and a line with an expression for each. Errors: likewise.
  static Result<CustomColumns> parse_file(std::string_view content);

  // Appends a line of headers, if wanted, and one for each object; also before an error. A file always has its headers.
  // Errors: invalid for an expression that cannot be read, or that fails for an object.
  Result<void> print(const std::vector<const json::value*>& objects, bool headers, std::string& out) const;

 private:
  struct Column {
    std::string header, path;
  };
  static Result<Column> column(std::string_view header, std::string_view expression);

  std::vector<Column> columns_;
  bool always_headers_ = false;
};

// Aligns cells that end in a tab as kubectl's tables do: a column is a run of lines that have such a cell, at least three wide,
// with three spaces behind it. Source: Go's text/tabwriter.
std::string align_columns(std::string_view text);

}  // namespace coracle::ctl
