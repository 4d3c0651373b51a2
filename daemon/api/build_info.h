// SPDX-License-Identifier: Apache-2.0
// BuildInfo: what the program was built from, for /version. A library of its own: with each commit no more than this is compiled
// again. Source: apimachinery version.Info.
#pragma once

#include <string>

namespace coracle::api {

struct BuildInfo {
  std::string commit;      // 40 hexadecimal digits; "" where it was built without git
  std::string tree_state;  // "clean", "dirty": with changes of no commit; "archive": without git
  std::string date;        // of the commit: the same tree builds the same program whenever it is built
};
const BuildInfo& build_info();
// As git says it: the commit, "-dirty" behind it where that is so, and the seconds of its date.
BuildInfo read_build_info(std::string described, const std::string& seconds);

}  // namespace coracle::api
