// SPDX-License-Identifier: Apache-2.0
// See build_info.h. Meson generates the two headers in every build; their content changes with the commit only.
#include "daemon/api/build_info.h"

#include "daemon/api/build_commit.h"
#include "daemon/api/build_date.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"

namespace coracle::api {

BuildInfo read_build_info(std::string described, const std::string& seconds) {
  constexpr std::string_view kDirty = "-dirty";
  BuildInfo info;
  bool dirty = described.ends_with(kDirty);
  if (dirty) described.resize(described.size() - kDirty.size());
  info.tree_state = described.empty() ? "archive" : dirty ? "dirty" : "clean";
  info.commit = std::move(described);
  info.date = format_time(WallTime(std::chrono::seconds(parse_number<int64_t>(seconds).value_or(0))));
  return info;
}

const BuildInfo& build_info() {
  static const BuildInfo info = read_build_info(kBuildCommit, kBuildSeconds);
  return info;
}

}  // namespace coracle::api
