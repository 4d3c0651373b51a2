// SPDX-License-Identifier: Apache-2.0
// Server Tables as aligned columns, and other text that people read. Pure: it takes values and returns text. The formats of -o:
// output.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/schema/catalog.h"

namespace coracle::ctl {

// Rows of cells aligned as kubectl aligns them: columns as wide as their widest cell and at least three, three spaces between,
// nothing behind the last one. Cells are cut at their first line break; what a terminal would obey is written out (escape.h).
class Columns {
 public:
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  // `fit` is the terminal's width, 0 for no limit. In wider output the widest columns but the first are shortened, "like th…", to
  // at least kShortest. `widths` holds minimum widths from earlier rows and is updated for later ones.
  std::string text(size_t fit = 0, std::vector<size_t>* widths = nullptr) const;
  static constexpr size_t kShortest = 20;

 private:
  std::vector<std::vector<std::string>> rows_;
};

struct TableOptions {
  bool wide = false, headers = true, namespace_column = false, show_labels = false;
  std::vector<std::string> label_columns;  // -L
  std::string event;                       // what happened to the objects, "ADDED": a column of its own; "": none
  std::string name_prefix;                 // "pod/" if several kinds are shown
  size_t fit = 0;                          // see Columns::text
  std::vector<size_t>* widths = nullptr;
};

size_t terminal_width();  // of standard output; 0 if it is not a terminal

// Aligns cells that end in a tab, as describe needs it. A column is a run of adjacent lines that have such a cell; it is as wide
// as its widest cell, plus two spaces. Other control characters are escaped (escape.h). Source: Go's text/tabwriter, which
// kubectl uses.
std::string align_tabs(std::string_view text);

// The uid that events use for the object: the name of a node; for a static pod, the uid in an annotation of its mirror pod.
std::string_view uid_in_events(const json::value& object);
WallTime event_time(const json::value& event);                  // when it was last seen
std::string event_age(const json::value& event, WallTime now);  // "5s", "5s (x3 over 2m)"

// A meta.k8s.io/v1 Table as text.
std::string print_table(const json::value& table, const TableOptions& options);

// Adds apiVersion and kind to an item of a list: the API leaves them out there.
void name_kind(json::value& object, const schema::KindInfo& kind);
void hide_managed_fields(json::value& object);

// "pod/web", "deployment.apps/web".
std::string print_name(const json::value& object, std::string_view singular_resource);

}  // namespace coracle::ctl
