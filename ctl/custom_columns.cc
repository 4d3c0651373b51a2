// SPDX-License-Identifier: Apache-2.0
// See custom_columns.h.
#include "ctl/custom_columns.h"

#include <algorithm>

#include "ctl/escape.h"
#include "ctl/go_format.h"
#include "ctl/go_text.h"
#include "ctl/jsonpath.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

constexpr size_t kWidthMin = 6;  // with the padding
constexpr size_t kPadding = 3;

using TabCells = std::vector<std::string_view>;  // of one line; each but the last ends with a tab

// Sets the widths of `column` in lines [from, to), then those of the columns to its right, run by run.
void set_widths(const std::vector<TabCells>& lines, size_t from, size_t to, size_t column,
                std::vector<std::vector<size_t>>& widths) {
  for (size_t first = from; first < to; ++first) {
    if (lines[first].size() <= column + 1) continue;
    size_t end = first, width = kWidthMin;
    for (; end < to && lines[end].size() > column + 1; ++end) width = std::max(width, count_runes(lines[end][column]) + kPadding);
    for (size_t i = first; i < end; ++i) widths[i].push_back(width);
    set_widths(lines, first, end, column + 1, widths);
    first = end - 1;
  }
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    size_t begin = std::min(line.find_first_not_of(" \t\r\v\f", at), line.size());
    size_t end = std::min(line.find_first_of(" \t\r\v\f", begin), line.size());
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

}  // namespace

std::string align_columns(std::string_view text) {
  std::vector<TabCells> lines;
  for (std::string_view line : split(text, '\n')) lines.push_back(split(line, '\t'));
  std::vector<std::vector<size_t>> widths(lines.size());
  set_widths(lines, 0, lines.size(), 0, widths);
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    for (size_t k = 0; k < lines[i].size(); ++k) {
      out += lines[i][k];
      if (k < widths[i].size()) out.append(widths[i][k] - count_runes(lines[i][k]), ' ');
    }
  }
  return out;
}

Result<CustomColumns::Column> CustomColumns::column(std::string_view header, std::string_view expression) {
  std::string path = TRY(relaxed_jsonpath(expression));
  return Column{std::string(header), std::move(path)};
}

Result<CustomColumns> CustomColumns::parse(std::string_view spec) {
  if (spec.empty()) return Error(Code::invalid, "custom-columns format specified but no custom columns given");
  CustomColumns out;
  for (std::string_view part : split(spec, ',')) {
    size_t colon = part.find(':');
    if (colon == part.npos)
      return Error(Code::invalid,
                   "unexpected custom-columns spec: " + std::string(part) + ", expected <header>:<json-path-expr>");
    Column one = TRY(column(part.substr(0, colon), part.substr(colon + 1)));
    out.columns_.push_back(std::move(one));
  }
  return out;
}

Result<CustomColumns> CustomColumns::parse_file(std::string_view content) {
  constexpr const char* kExpected =
      " Expected format is one line of space separated headers, one line of space separated column specs.";
  if (content.empty()) return Error(Code::invalid, std::string("invalid template, missing header line.") + kExpected);
  size_t end = content.find('\n');
  if (end == content.npos || end + 1 == content.size())
    return Error(Code::invalid, std::string("invalid template, missing spec line.") + kExpected);
  std::vector<std::string_view> headers = words_of(content.substr(0, end));
  std::vector<std::string_view> specs = words_of(split(content.substr(end + 1), '\n').front());
  if (headers.size() != specs.size())
    return Error(Code::invalid, "number of headers (" + std::to_string(headers.size()) + ") and field specifications (" +
                                    std::to_string(specs.size()) + ") don't match");
  CustomColumns out;
  out.always_headers_ = true;
  for (size_t i = 0; i < headers.size(); ++i) {
    Column one = TRY(column(headers[i], specs[i]));
    out.columns_.push_back(std::move(one));
  }
  return out;
}

Result<void> CustomColumns::print(const std::vector<const json::value*>& objects, bool headers, std::string& out) const {
  std::string text;
  auto print_all = [&]() -> Result<void> {
    if (headers || always_headers_) {
      for (const auto& column : columns_) text.append(&column == &columns_.front() ? "" : "\t").append(column.header);
      text += '\n';
    }
    std::vector<JsonPath> paths;
    for (const auto& column : columns_) {
      JsonPath path = TRY(JsonPath::parse(column.path));
      paths.push_back(std::move(path));
    }
    for (const auto* object : objects) {
      std::string line;
      for (const auto& path : paths) {
        std::vector<GoValue> values = TRY(path.select(*object));
        if (&path != &paths.front()) line += '\t';
        if (values.empty()) line += "<none>";
        for (const auto& value : values) line.append(&value == &values.front() ? "" : ",").append(go_text(value.unboxed()));
      }
      text += line + "\n";
    }
    return {};
  };
  Result<void> printed = print_all();
  out += align_columns(visible_lines(text));
  return printed;
}

}  // namespace coracle::ctl
