// SPDX-License-Identifier: Apache-2.0
// BuildInfo: the source that the program was built from, for /version. It is a separate library, so that a new commit recompiles
// only this file. Source: apimachinery version.Info.
#pragma once

#include <string>

namespace coracle::api {

struct BuildInfo {
  std::string commit;      // 40 hexadecimal digits; "" if built without git
  std::string tree_state;  // "clean"; "dirty": with uncommitted changes; "archive": without git
  std::string date;        // of the commit, so that builds of the same tree are identical
};
const BuildInfo& build_info();
// Parses the output of git: the commit, with the suffix "-dirty" if there are changes, and the commit time in seconds.
BuildInfo read_build_info(std::string described, const std::string& seconds);

}  // namespace coracle::api
