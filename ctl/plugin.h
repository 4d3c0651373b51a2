// SPDX-License-Identifier: Apache-2.0
// Plugins: programs called coraclectl-NAME or kubectl-NAME in PATH, which are run as commands of that name.
// Source: kubectl pkg/cmd/plugin.go and pkg/cmd/plugin/plugin.go.
#pragma once

#include <string>
#include <vector>

#include "ctl/flags.h"

namespace coracle::ctl {

struct FoundPlugin {
  std::string path;
  size_t words = 0;  // of the line that its name takes
};

// The plugin that the words before the first flag name, the longest name first: "a b-c" is coraclectl-a-b_c, then kubectl-a-b_c,
// then coraclectl-a. Its name has at least `least` of them. `path` is a value of $PATH. No path: there is none.
FoundPlugin find_plugin(const std::vector<std::string>& words, size_t least, const std::string& path);

// Runs the plugin instead of this program, if the line names one and no command; gives only if not. Errors: bad_request for
// flags before its name; of executing it.
Result<void> run_plugin_of(Command root, const std::vector<std::string>& words);

// All plugins in the directories of `path`, in their order.
struct PluginList {
  std::vector<std::string> paths;
  std::vector<std::string> complaints;  // directories that cannot be read
};
PluginList list_plugins(const std::string& path);
// What is wrong with each, in kubectl's words. `seen` holds the names of those before.
std::vector<std::string> plugin_warnings(Command root, const std::string& path, std::vector<std::string>& seen);

}  // namespace coracle::ctl
