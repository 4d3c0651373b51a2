// SPDX-License-Identifier: Apache-2.0
// What `coraclectl __manual` prints: all that --help says, of all commands at once, in lines for a program to read. The man page
// is made of it, from the copy in systemd/manual, since who builds for another processor cannot run the program.
#include "ctl/command.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

std::string manual_of(Flag flag) {
  if (flag.is_argument()) return "argument " + flag.name() + (flag.takes_many() ? "..." : "") + " | " + flag.about() + "\n";
  std::string names;
  for (const auto& name : flag.short_names()) names += ",-" + name;
  for (const auto& name : flag.long_names()) names += ",--" + name;
  const char* value = flag.needs_value() ? "=VALUE" : flag.may_have_value() ? "[=VALUE]" : "";
  return "flag " + names.substr(1) + value + " | " + flag.about() + "\n";
}

std::string manual_of(Command command, const std::string& path) {
  std::string text = "command " + path + "\n";
  if (!command.about().empty()) text += "about " + command.about() + "\n";
  for (const auto& alias : command.aliases()) text += "alias " + alias + "\n";
  for (bool arguments : {true, false})
    for (Flag flag : command.flags())
      if (flag.is_argument() == arguments && !flag.hidden() && flag.name() != "help") text += manual_of(flag);
  if (std::string footer = command.footer(); !footer.empty())
    for (std::string_view line : split(footer, '\n')) text += "footer " + std::string(line) + "\n";
  for (Command below : command.commands())
    if (!below.hidden()) text += manual_of(below, path + " " + below.name());
  return text;
}

}  // namespace

Result<int> run_manual(Commands& commands) {
  out(manual_of(commands.root(), commands.root().name()));
  return 0;
}

}  // namespace coracle::ctl
