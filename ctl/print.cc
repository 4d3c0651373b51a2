// SPDX-License-Identifier: Apache-2.0
// See print.h.
#include "ctl/print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "ctl/escape.h"
#include "ctl/jsonpath.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"
#include "store/schema/table.h"

namespace coracle::ctl {
namespace {

constexpr size_t kGap = 3;        // spaces between columns
constexpr size_t kNarrowest = 3;  // a column, without its gap: kubectl's tabwriter has six together
constexpr size_t kTabGap = 2;     // the same for align_tabs
constexpr size_t kEventWidth = std::string_view("MODIFIED").size();

size_t width_of(std::string_view text) {  // counts code points; good enough for a terminal
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
}

// Narrows the widest column until a line fits or no column can shrink. The first column has the names and keeps its width.
void shrink(std::vector<size_t>& widths, size_t fit) {
  size_t total = 0;
  for (size_t width : widths) total += width + kGap;
  total -= std::min(total, kGap);
  while (total > fit && widths.size() > 1) {
    auto widest = std::max_element(widths.begin() + 1, widths.end());
    if (*widest <= Columns::kShortest) return;
    size_t take = std::min(total - fit, *widest - Columns::kShortest);
    *widest -= take, total -= take;
  }
}

std::string shortened(const std::string& text, size_t width) {
  if (width_of(text) <= width) return text;
  size_t bytes = 0;
  for (size_t seen = 0; bytes < text.size() && seen + 1 < width; ++seen) do
      ++bytes;
    while (bytes < text.size() && (uint8_t(text[bytes]) & 0xc0) == 0x80);
  return text.substr(0, bytes) + "…";
}

using Cells = std::vector<std::string_view>;  // cells of one line; each but the last ends with a tab

// Widens the cells of `column` in lines [from, to), then the cells to its right, block by block.
void widen(const std::vector<Cells>& lines, size_t from, size_t to, size_t column, std::vector<std::vector<size_t>>& widths) {
  for (size_t first = from; first < to; ++first) {
    if (lines[first].size() <= column + 1) continue;
    size_t end = first, width = 0;
    for (; end < to && lines[end].size() > column + 1; ++end) width = std::max(width, width_of(lines[end][column]) + kTabGap);
    for (size_t i = first; i < end; ++i) widths[i].push_back(width);
    widen(lines, first, end, column + 1, widths);
    first = end - 1;
  }
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return out;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string first_line(std::string_view text) {
  size_t end = text.find_first_of("\r\n\f");
  return end == text.npos ? std::string(text) : std::string(text.substr(0, end)) + "...";
}

std::string cell_text(const json::value& cell) {
  if (cell.is_null()) return "<none>";
  return first_line(jsonpath_text(cell));
}

std::string labels_text(const json::object& labels) {
  std::string out;
  for (const auto& [key, value] : labels) out.append(out.empty() ? "" : ",").append(key).append("=").append(jsonpath_text(value));
  return out.empty() ? "<none>" : out;
}

}  // namespace

size_t terminal_width() {
  winsize size{};
  return ::isatty(STDOUT_FILENO) && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string_view uid_in_events(const json::value& object) {
  view::ObjectMeta metadata = metadata_of(object);
  if (kind_in(object) == "Node") return metadata.name();
  const json::value* mirrored = metadata.annotations().if_contains(kMirrorAnnotation);
  return mirrored && mirrored->is_string() ? std::string_view(mirrored->get_string()) : metadata.uid();
}

WallTime event_time(const json::value& object) {
  view::Event event(object);
  for (std::string_view text :
       {event.series().last_observed_time(), event.last_timestamp(), event.event_time(), event.metadata().creation_timestamp()})
    if (auto time = parse_time(text)) return *time;
  return {};
}

std::string event_age(const json::value& object, WallTime now) {
  view::Event event(object);
  std::string_view first_time = event.event_time().empty() ? event.first_timestamp() : event.event_time();
  std::string first = schema::human_age(first_time, now);
  if (!event.has_series() && event.count() <= 1) return first;
  std::string_view last_time = event.has_series() ? event.series().last_observed_time() : event.last_timestamp();
  int64_t count = event.has_series() ? event.series().count() : event.count();  // of a series even once, as kubectl
  return schema::human_age(last_time, now) + " (x" + std::to_string(count) + " over " + first + ")";
}

std::string align_tabs(std::string_view given) {
  std::string text = visible_lines(given);
  std::vector<Cells> lines;
  for (std::string_view line : split(text, '\n')) lines.push_back(split(line, '\t'));
  std::vector<std::vector<size_t>> widths(lines.size());
  widen(lines, 0, lines.size(), 0, widths);
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    for (size_t k = 0; k < lines[i].size(); ++k) {
      out += lines[i][k];
      if (k < widths[i].size()) out.append(widths[i][k] - width_of(lines[i][k]), ' ');
    }
  }
  return out;
}

void Columns::add(std::vector<std::string> row) {
  for (auto& cell : row) cell = visible_line(cell);
  rows_.push_back(std::move(row));
}

std::string Columns::text(size_t fit, std::vector<size_t>* remembered) const {
  std::vector<size_t> widths = remembered ? *remembered : std::vector<size_t>();
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max({widths[i], width_of(row[i]), kNarrowest});
  }
  if (fit > 0) shrink(widths, fit);
  if (remembered) *remembered = widths;
  std::string out;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      std::string cell = fit > 0 ? shortened(row[i], widths[i]) : row[i];
      out += cell;
      if (i + 1 < row.size()) out.append(widths[i] + kGap - width_of(cell), ' ');
    }
    out += '\n';
  }
  return out;
}

std::string print_table(const json::value& answer, const TableOptions& options) {
  view::Table table(answer);
  view::Range<view::TableColumnDefinition> definitions = table.column_definitions();
  std::vector<size_t> shown;
  for (size_t i = 0; i < definitions.size(); ++i)
    if (options.wide || definitions[i].priority() == 0) shown.push_back(i);

  Columns columns;
  if (options.headers) {
    std::vector<std::string> header;
    if (!options.event.empty()) header.push_back("EVENT");
    if (options.namespace_column) header.push_back("NAMESPACE");
    for (size_t i : shown) header.push_back(upper(definitions[i].name()));
    for (const auto& label : options.label_columns) header.push_back(upper(label.substr(label.rfind('/') + 1)));
    if (options.show_labels) header.push_back("LABELS");
    columns.add(std::move(header));
  }
  for (view::TableRow row : table.rows()) {
    const json::array& cells = row.cells().raw();
    view::ObjectMeta metadata = view::PartialObjectMetadata(row.object()).metadata();
    std::vector<std::string> line;
    if (!options.event.empty()) line.push_back(padded(options.event, kEventWidth));
    if (options.namespace_column) line.push_back(std::string(metadata.namespace_()));
    for (size_t i : shown) {
      std::string text = i < cells.size() ? cell_text(cells[i]) : "<none>";
      if (!options.name_prefix.empty() && definitions[i].format() == "name") text.insert(0, options.name_prefix);
      line.push_back(std::move(text));
    }
    const json::object& labels = metadata.labels();
    for (const auto& label : options.label_columns) {
      const json::value* value = labels.if_contains(label);
      line.push_back(value ? jsonpath_text(*value) : "");
    }
    if (options.show_labels) line.push_back(labels_text(labels));
    columns.add(std::move(line));
  }
  return columns.text(options.fit, options.widths);
}

void name_kind(json::value& object, const schema::KindInfo& kind) {
  json::object named{{"apiVersion", kind.kind.api_version()}, {"kind", kind.kind.kind}};
  for (auto& [key, value] : object.as_object())
    if (key != "apiVersion" && key != "kind") named[key] = value;
  object = std::move(named);
}

void hide_managed_fields(json::value& object) {
  if (auto* root = object.if_object())
    if (auto* metadata = root->if_contains("metadata"))
      if (auto* fields = metadata->if_object()) fields->erase("managedFields");
}

std::string print_name(const json::value& object, std::string_view singular_resource) {
  return std::string(singular_resource) + "/" + std::string(metadata_of(object).name());
}

}  // namespace coracle::ctl
