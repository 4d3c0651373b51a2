// SPDX-License-Identifier: Apache-2.0
// Cells of quotas.
#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/quota/quota_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

// "name: used/hard" for limits or for all others, sorted by name.
json::value quota(const CellInput& in, bool limits) {
  view::ResourceQuotaStatus status = view::ResourceQuota(in.object).status();
  std::vector<std::string> names, shown;
  for (const auto& pair : status.hard()) names.emplace_back(pair.key());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.starts_with("limits.") != limits) continue;
    shown.push_back(name + ": " + amount_or_zero(status.used(), name) + "/" + amount_or_zero(status.hard(), name));
  }
  return json::value(join(shown, ", "));
}
json::value quota_requests(const CellInput& in) { return quota(in, false); }
json::value quota_limits(const CellInput& in) { return quota(in, true); }

constexpr NamedCellRule kQuotaCells[] = {{"quota.requests", quota_requests}, {"quota.limits", quota_limits}};

}  // namespace

std::span<const NamedCellRule> quota_cells() { return kQuotaCells; }

}  // namespace coracle::schema
