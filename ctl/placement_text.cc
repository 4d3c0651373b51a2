// SPDX-License-Identifier: Apache-2.0
// The text of the scheduler's explanation of a pod, which the server answers at /coracle/v1/placement. See why.h.
#include "ctl/print.h"
#include "ctl/why.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

std::string string_at(const json::value& object, std::string_view path) { return std::string(get_string(object, path)); }

std::string reason_text(const json::value& reason) {
  std::string text = string_at(reason, "text"), figures = string_at(reason, "figures");
  return figures.empty() ? text : text + " (" + figures + ")";
}

std::string indented(const std::string& block, std::string_view indent) {
  std::string out;
  for (std::string_view one : split(block, '\n'))
    if (!one.empty()) out.append(indent).append(one).append("\n");
  return out;
}

void append_node(const json::value& node, std::string& out, std::string_view indent) {
  bool fits = get_bool(node, "fits");
  out.append(indent).append("node " + string_at(node, "name") +
                            (fits ? ": fits, score " + std::to_string(get_int(node, "total")) : ": does not fit") + "\n");
  Columns table;
  table.add({"FILTER", "SAYS"});
  for (const json::value& filter : get_array(node, "filters")) {
    std::string says;
    for (const json::value& reason : get_array(filter, "reasons"))
      says.append(says.empty() ? "" : "; ").append(reason_text(reason));
    table.add({string_at(filter, "plugin"), get_bool(filter, "ok") ? "ok" : says});
  }
  out += indented(table.text(), std::string(indent) + "  ");
  if (get_array(node, "scores").empty()) return;
  Columns scores;
  scores.add({"SCORE", "RAW", "NORMALIZED", "WEIGHT", "TOTAL"});
  for (const json::value& score : get_array(node, "scores"))
    scores.add({string_at(score, "plugin"), std::to_string(get_int(score, "raw")), std::to_string(get_int(score, "normalized")),
                std::to_string(get_int(score, "weight")), std::to_string(get_int(score, "total"))});
  out += indented(scores.text(), std::string(indent) + "  ");
}

}  // namespace

std::string placement_text(const json::value& placement, std::string_view indent) {
  std::string out;
  for (const json::value& node : get_array(placement, "nodes")) append_node(node, out, indent);
  auto list = [&](std::string_view name, std::string_view mark) {
    for (const json::value& text : get_array(placement, name))
      if (text.is_string()) out.append(indent).append(mark).append(text.get_string()).append("\n");
  };
  list("missing", "missing: ");
  list("cures", "→ ");
  std::string victims;
  for (const json::value& victim : get_array(placement, "preemption.victims"))
    if (victim.is_string()) victims.append(victims.empty() ? "" : ", ").append(victim.get_string());
  if (!victims.empty())
    out.append(indent).append("would take the place of " + victims + " on node " + string_at(placement, "preemption.node") +
                              "\n");
  return out;
}

}  // namespace coracle::ctl
