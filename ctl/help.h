// SPDX-License-Identifier: Apache-2.0
// The text of --help, of `help` and of `options`. It follows from the command tree, as long as no line was read into that: a
// line's values would stand in the place of the defaults. Layout: kubectl's, so that what reads the one reads the other.
#pragma once

#include <string>
#include <vector>

#include "ctl/flags.h"

namespace coracle::ctl {

// `width`: lines are broken there; 0: never.
std::string help_of(Command command, size_t width);
// The flags that all commands take.
std::string options_text(Command root, size_t width);
// The command that the words name, the root where there are none; none where they name no command. Aliases count.
Command command_at(Command root, const std::vector<std::string>& path);
// The words from the root to the command.
std::vector<std::string> path_of(Command command);

}  // namespace coracle::ctl
