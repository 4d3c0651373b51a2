// SPDX-License-Identifier: Apache-2.0
// See help.h.
#include "ctl/help.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "ctl/command.h"
#include "ctl/examples.h"
#include "ctl/print.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

using HelpRows = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kNamesWidthMax = 32;  // what is longer has its text on the next line
constexpr size_t kTextWidthMin = 30;   // on a narrower terminal lines are broken by the terminal

// Where the root's commands stand, as in kubectl's help; what only we have is by itself. Others stand under "Other Commands".
constexpr std::pair<const char*, const char*> kHelpGroups[] = {
    {"Basic Commands", "create expose run set explain get edit delete"},
    {"Deploy Commands", "rollout scale autoscale"},
    {"Cluster Management Commands", "certificate cluster-info top cordon uncordon drain taint"},
    {"Troubleshooting and Debugging Commands", "describe logs attach exec port-forward proxy cp auth debug events"},
    {"Advanced Commands", "diff apply patch replace wait kustomize"},
    {"Settings Commands", "label annotate completion"},
    {"Commands of Coracle Alone", "why health doctor boot image volume backup restore store"},
};

// `text` in lines that fit beside an indentation of `indent`, which the first line has already.
std::string wrapped(const std::string& text, size_t indent, size_t width) {
  if (width < indent + kTextWidthMin) return text;
  std::string shown;
  size_t used = 0;
  for (std::string_view word : split(text, ' ')) {
    if (used > 0 && used + 1 + word.size() > width - indent) {
      shown += "\n" + std::string(indent, ' ');
      used = 0;
    }
    shown.append(used > 0 ? " " : "").append(word);
    used += word.size() + (used > 0 ? 1 : 0);
  }
  return shown;
}

std::string rows_text(const HelpRows& rows, size_t width) {
  size_t names = 0;
  for (const auto& [name, about] : rows)
    if (name.size() <= kNamesWidthMax) names = std::max(names, name.size());
  std::string text;
  for (const auto& [name, about] : rows) {
    text += "  " + name;
    if (!about.empty()) {
      text += name.size() > names ? "\n" + std::string(names + 4, ' ') : std::string(names - name.size() + 2, ' ');
      text += wrapped(about, names + 4, width);
    }
    text += "\n";
  }
  return text;
}

// "''" of nothing; what a shell would take apart stands in quotes.
std::string shown_value(const std::string& value) {
  bool plain = !value.empty() && value.find_first_of(" \t'\"\\^$*,|&;<>()") == value.npos;
  return plain || value.starts_with('[') ? value : "'" + value + "'";
}

HelpRows rows_of_flags(Command command) {
  HelpRows rows;
  for (Flag flag : command.flags()) {
    if (flag.is_argument() || flag.hidden() || flag.long_names().empty() || flag.name() == "help") continue;
    std::string name = flag.short_names().empty() ? "    " : "-" + flag.short_names().front() + ", ";
    name += "--" + flag.name() + "=" + shown_value(flag.default_text());
    rows.emplace_back(name, flag.about() + (flag.is_required() ? " (required)" : ""));
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first.substr(4) < b.first.substr(4); });
  return rows;
}

HelpRows rows_of(const std::vector<Command>& commands) {
  HelpRows rows;
  for (Command command : commands) {
    std::string also;
    for (const auto& alias : command.aliases()) also += (also.empty() ? "" : ", ") + alias;
    rows.emplace_back(command.name(), command.about() + (also.empty() ? "" : " (also: " + also + ")"));
  }
  return rows;
}

std::string command_list(Command command, size_t width) {
  std::vector<Command> rest;
  for (Command below : command.commands())
    if (!below.hidden()) rest.push_back(below);
  if (rest.empty()) return {};
  if (command.parent()) return "Available Commands:\n" + rows_text(rows_of(rest), width) + "\n";
  std::string text;
  for (const auto& [title, names] : kHelpGroups) {
    std::vector<Command> group;
    for (std::string_view name : split(names, ' ')) {
      auto found = std::find_if(rest.begin(), rest.end(), [&](Command one) { return one.name() == name; });
      if (found == rest.end()) continue;
      group.push_back(*found);
      rest.erase(found);
    }
    if (!group.empty()) text.append(title).append(":\n").append(rows_text(rows_of(group), width)).append("\n");
  }
  if (!rest.empty()) text += "Other Commands:\n" + rows_text(rows_of(rest), width) + "\n";
  return text;
}

}  // namespace

std::vector<std::string> path_of(Command command) {
  std::vector<std::string> path;
  for (; command.parent(); command = command.parent()) path.insert(path.begin(), command.name());
  return path;
}

Command command_at(Command root, const std::vector<std::string>& path) {
  Command at = root;
  for (const auto& word : path) {
    std::vector<Command> below = at.commands();
    auto found = std::find_if(below.begin(), below.end(), [&](Command one) { return one.answers_to(word); });
    if (found == below.end()) return {};
    at = *found;
  }
  return at;
}

std::string help_of(Command command, size_t width) {
  std::string program = command.name(), path;
  if (command.parent()) {
    Command root = command;
    while (root.parent()) root = root.parent();
    program = root.name();
    path = " " + join(path_of(command), " ");
  }
  std::string text = wrapped(command.about(), 0, width) + "\n\n" + command_list(command, width);
  if (std::string_view example = example_of(path.empty() ? path : path.substr(1)); !example.empty()) {
    text += "Examples:\n";
    for (std::string_view line : split(example, '\n')) text.append("  ").append(line).append("\n");
    text += "\n";
  }
  HelpRows arguments;
  std::string usage = program + path;
  for (Flag flag : command.flags()) {
    if (!flag.is_argument() || flag.hidden()) continue;
    std::string name = flag.name();
    for (char& letter : name) letter = char(std::toupper(static_cast<unsigned char>(letter)));
    if (flag.takes_many()) name += "...";
    arguments.emplace_back(name, flag.about());
    usage += flag.is_required() ? " " + name : " [" + name + "]";
  }
  std::vector<Command> below = command.commands();
  bool has_commands = std::any_of(below.begin(), below.end(), [](Command one) { return !one.hidden(); });
  if (has_commands) usage += " COMMAND";
  if (!arguments.empty()) text += "Arguments:\n" + rows_text(arguments, width) + "\n";
  HelpRows flags = command.parent() ? rows_of_flags(command) : HelpRows();
  if (!flags.empty()) text += "Options:\n" + rows_text(flags, width) + "\n";
  text += "Usage:\n  " + usage + " [options]\n\n";
  if (std::string footer = command.footer(); !footer.empty()) text += footer + "\n\n";
  if (has_commands) text += "Use \"" + program + path + " COMMAND --help\" for more about a command.\n";
  return text + "Use \"" + program + " options\" for the options that all commands take.\n";
}

std::string options_text(Command root, size_t width) {
  return "The following options can be passed to any command:\n\n" + rows_text(rows_of_flags(root), width);
}

namespace {

Result<int> run_help(Commands& commands, const std::vector<std::string>& path) {
  Command command = command_at(commands.root(), path);
  if (command) {
    out(help_of(command, terminal_width()));
    return 0;
  }
  std::vector<std::string> shown;
  for (const auto& word : path) shown.push_back("`" + word + "`");
  tell("Unknown help topic [" + join(shown, " ") + "]\n\n");
  out(help_of(commands.root(), terminal_width()));
  return 0;
}

}  // namespace

void add_help(Commands& commands) {
  auto path = std::make_shared<std::vector<std::string>>();
  Command help = commands.add("help", "What a command does, and its options: help COMMAND...").hide();
  help.add_option("command", *path, "COMMAND, and a command below it");
  commands.on(help, [&commands, path] { return run_help(commands, *path); });
  Command options = commands.add("options", "The options that all commands take").hide();
  commands.ignore_words(options);
  commands.on(options, [&commands]() -> Result<int> {
    out(options_text(commands.root(), terminal_width()));
    return 0;
  });
  Command alpha = commands.add("alpha", "Commands that may change or go: there are none").hide();
  commands.ignore_words(alpha);
  commands.on(alpha, []() -> Result<int> {
    tell("No alpha commands are available in this version of coraclectl\n");
    return 0;
  });
}

}  // namespace coracle::ctl
