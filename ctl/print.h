// SPDX-License-Identifier: Apache-2.0
// How answers reach the terminal: server Tables as aligned columns, objects as YAML, JSON, names, JSONPath or columns of
// the user's own. Pure: values in, text out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/schema/catalog.h"

namespace coracle::ctl {

// Rows of cells aligned as kubectl aligns them: columns as wide as their widest cell, three spaces between, nothing behind
// the last one. Cells are cut at their first line break; what a terminal would obey is written out (escape.h).
class Columns {
 public:
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  // `fit`: the terminal's width; what is wider has its widest columns but the first shortened, "like th…", to no less than
  // kShortest. 0: as wide as need be. `widths`: what columns had before, at least; updated, for rows that come later.
  std::string text(size_t fit = 0, std::vector<size_t>* widths = nullptr) const;
  static constexpr size_t kShortest = 20;

 private:
  std::vector<std::vector<std::string>> rows_;
};

struct TableOptions {
  bool wide = false, headers = true, namespace_column = false, show_labels = false;
  std::vector<std::string> label_columns;  // -L
  std::string name_prefix;                 // "pod/" where several kinds are shown
  size_t fit = 0;                          // as in Columns::text
  std::vector<size_t>* widths = nullptr;
};

size_t terminal_width();  // of standard output; 0 when it is no terminal

// Cells that end in a tab become columns: as wide as the widest of their neighbours above and below, two spaces between. A column
// ends where a line has no such cell. What else a terminal would obey is written out (escape.h). As describe lays out its lines.
// Source: Go's text/tabwriter, which kubectl uses.
std::string align_tabs(std::string_view text);

// When an Event was last seen, for sorting; and how long ago that is: "5s", "5s (x3 over 2m)".
// The uid by which events name the object: a node's is its name, and a static pod's what its mirror has in an annotation.
std::string_view uid_in_events(const json::value& object);
WallTime event_time(const json::value& event);
std::string event_age(const json::value& event, WallTime now);

// A meta.k8s.io/v1 Table as text. The widths of one table do not depend on another's.
std::string print_table(const json::value& table, const TableOptions& options);

// "<spec>" of -o custom-columns: "NAME:.metadata.name,IMAGE:.spec.containers[*].image". Errors: invalid.
Result<std::string> print_custom_columns(std::string_view spec, const std::vector<const json::value*>& objects, bool headers);

// Items of a list carry no kind of their own on the wire; whoever prints them gives it back.
void name_kind(json::value& object, const schema::KindInfo& kind);
void hide_managed_fields(json::value& object);  // who owns which field: bookkeeping that readers rarely want

// "pod/web", "deployment.apps/web".
std::string print_name(const json::value& object, std::string_view singular_resource);

}  // namespace coracle::ctl
