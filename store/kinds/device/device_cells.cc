// SPDX-License-Identifier: Apache-2.0
// Cells of resource claims.
#include "store/kinds/device/device_kinds.h"

namespace coracle::schema {
namespace {

json::value claim_state(const CellInput& in) {
  std::string text;
  auto add = [&](std::string_view state) { text += (text.empty() ? "" : ",") + std::string(state); };
  bool deleted = !get_string(in.object, "metadata.deletionTimestamp").empty();
  if (deleted) add("deleted");
  const json::value* allocation = find(in.object, "status.allocation");
  if (allocation && allocation->is_object()) {
    add("allocated");
    if (!get_array(in.object, "status.reservedFor").empty()) add("reserved");
  } else if (!deleted) {
    add("pending");
  }
  return json::value(text);
}

constexpr NamedCellRule kDeviceCells[] = {{"claim.state", claim_state}};

}  // namespace

std::span<const NamedCellRule> device_cells() { return kDeviceCells; }

}  // namespace coracle::schema
