// SPDX-License-Identifier: Apache-2.0
// Cells of resource claims.
#include "store/kinds/device/device_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

json::value claim_state(const CellInput& in) {
  std::string text;
  auto add = [&](std::string_view state) { text += (text.empty() ? "" : ",") + std::string(state); };
  view::ResourceResourceClaim claim(in.object);
  bool deleted = !claim.metadata().deletion_timestamp().empty();
  if (deleted) add("deleted");
  if (claim.status().allocation()) {
    add("allocated");
    if (!claim.status().reserved_for().empty()) add("reserved");
  } else if (!deleted) {
    add("pending");
  }
  return json::value(text);
}

constexpr NamedCellRule kDeviceCells[] = {{"claim.state", claim_state}};

}  // namespace

std::span<const NamedCellRule> device_cells() { return kDeviceCells; }

}  // namespace coracle::schema
