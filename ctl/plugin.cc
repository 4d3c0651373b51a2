// SPDX-License-Identifier: Apache-2.0
// See plugin.h. Here too: plugin list.
#include "ctl/plugin.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "ctl/command.h"
#include "ctl/completion.h"
#include "ctl/help.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "runtime/sys/run.h"

namespace coracle::ctl {
namespace {

constexpr std::string_view kPluginPrefixes[] = {"coraclectl-", "kubectl-"};
constexpr const char* kProgramVariable = "KUBECTL_PATH=";

bool is_program(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

std::string find_in_path(const std::string& name, const std::string& path) {
  for (std::string_view directory : split(path, ':'))
    if (std::string found = std::string(directory) + "/" + name; !directory.empty() && is_program(found)) return found;
  return {};
}

std::string plugin_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Line plugin_line(Command root, std::vector<std::string> words) {
  words.emplace_back();  // no word is being typed after it
  return parse_line(root, words);
}

[[nodiscard]] Error become(const FoundPlugin& plugin, const std::vector<std::string>& words) {
  std::vector<std::string> argv = {plugin.path}, environment;
  argv.insert(argv.end(), words.begin() + ptrdiff_t(plugin.words), words.end());
  for (std::string& variable : sys::own_environment())
    if (!variable.starts_with(kProgramVariable)) environment.push_back(std::move(variable));
  auto self = sys::absolute_path("/proc/self/exe");
  if (self) environment.push_back(kProgramVariable + *self);
  std::signal(SIGPIPE, SIG_DFL);  // a program inherits what is ignored
  return sys::become(plugin.path, argv, environment);
}

}  // namespace

FoundPlugin find_plugin(const std::vector<std::string>& words, size_t least, const std::string& path) {
  std::vector<std::string> parts;
  for (const auto& word : words) {
    if (word.starts_with('-')) break;
    parts.push_back(word);
    std::replace(parts.back().begin(), parts.back().end(), '-', '_');
  }
  for (; parts.size() >= std::max<size_t>(least, 1); parts.pop_back())
    for (std::string_view prefix : kPluginPrefixes)
      if (std::string found = find_in_path(std::string(prefix) + join(parts, "-"), path); !found.empty())
        return {found, parts.size()};
  return {};
}

Result<void> run_plugin_of(Command root, const std::vector<std::string>& words) {
  const char* path = std::getenv("PATH");
  if (words.empty() || !path) return {};
  Line line = plugin_line(root, words);
  if (line.positionals.empty()) return {};
  if (line.command == root) {
    FoundPlugin plugin = find_plugin(words, 1, path);
    if (!plugin.path.empty()) return become(plugin, words);
    bool behind_flags = words.front().starts_with('-') && !find_plugin(line.positionals, 1, path).path.empty();
    if (behind_flags) return Error(Code::bad_request, "flags cannot be placed before plugin name: " + words.front());
    return {};
  }
  // Only create may have further commands below it, as in kubectl.
  if (path_of(line.command) != std::vector<std::string>{"create"} || words.front().starts_with('-')) return {};
  FoundPlugin plugin = find_plugin(words, 2, path);
  if (plugin.path.empty()) return {};
  return become(plugin, words);
}

PluginList list_plugins(const std::string& path) {
  PluginList list;
  std::vector<std::string_view> seen;
  for (std::string_view directory : split(path, ':')) {
    if (trim(directory).empty() || std::find(seen.begin(), seen.end(), directory) != seen.end()) continue;
    seen.push_back(directory);
    std::string name(directory);
    auto entries = sys::list(name);
    if (!entries) {
      list.complaints.push_back(
          "Unable to read directory " + coracle::quoted(name) + " from your PATH: open " + name + ": " +
          (entries.error().code() == Code::not_found ? "no such file or directory" : entries.error().text()) + ". Skipping...");
      continue;
    }
    for (const auto& entry : *entries)
      if (std::any_of(std::begin(kPluginPrefixes), std::end(kPluginPrefixes),
                      [&](std::string_view prefix) { return entry.type != DT_DIR && entry.name.starts_with(prefix); }))
        list.paths.push_back((std::filesystem::path(name) / entry.name).lexically_normal());
  }
  return list;
}

std::vector<std::string> plugin_warnings(Command root, const std::string& path, std::vector<std::string>& seen) {
  std::vector<std::string> warnings;
  std::string name = plugin_name(path);
  if (!is_program(path)) warnings.push_back("warning: " + path + " identified as a kubectl plugin, but it is not executable");
  auto shadow = std::find_if(seen.begin(), seen.end(), [&](const std::string& other) { return plugin_name(other) == name; });
  if (shadow != seen.end()) warnings.push_back("warning: " + path + " is overshadowed by a similarly named plugin: " + *shadow);
  else seen.push_back(path);
  std::vector<std::string> parts;
  for (std::string_view part : split(name, '-')) parts.emplace_back(part);
  parts.erase(parts.begin());
  Command at = root;
  for (const auto& part : parts)
    if (Command below = command_at(at, {part})) at = below;
    else break;
  if (!(at == root)) {
    std::vector<std::string> words = path_of(at);
    warnings.push_back("warning: " + name + " overwrites existing command: " + coracle::quoted("coraclectl " + join(words, " ")));
  }
  return warnings;
}

namespace {

Result<int> run_plugin_list(Commands& commands, bool name_only) {
  const char* path = std::getenv("PATH");
  PluginList list = list_plugins(path ? path : "");
  for (const auto& complaint : list.complaints) tell(complaint + "\n");
  if (list.paths.empty()) return Error(Code::not_found, "unable to find any kubectl plugins in your PATH");
  out("The following compatible plugins are available:\n\n");
  std::vector<std::string> seen;
  size_t warnings = 0;
  for (const auto& plugin : list.paths) {
    out((name_only ? plugin_name(plugin) : plugin) + "\n");
    for (const auto& warning : plugin_warnings(commands.root(), plugin, seen)) tell("  - " + warning + "\n"), ++warnings;
  }
  if (warnings == 1) return Error(Code::invalid, "one plugin warning was found");
  if (warnings > 1) return Error(Code::invalid, std::to_string(warnings) + " plugin warnings were found");
  return 0;
}

}  // namespace

void add_plugin(Commands& commands) {
  Command plugin = commands.add("plugin", "Programs called coraclectl-NAME or kubectl-NAME in PATH, which run as commands");
  commands.on(plugin, [plugin]() -> Result<int> { return tell(help_of(plugin, terminal_width())), 1; });
  auto name_only = std::make_shared<bool>(false);
  Command list = commands.add("list", "All plugins in PATH", plugin);
  commands.ignore_words(list);
  list.add_flag("--name-only", *name_only, "without their directories");
  commands.on(list, [&commands, name_only] { return run_plugin_list(commands, *name_only); });
}

}  // namespace coracle::ctl
