// SPDX-License-Identifier: Apache-2.0
// coraclectl: the command line of a Coracle machine, in kubectl's grammar. It is only a client: it does everything through the
// API. This file reads the command line and formats errors; command.cc has the table of commands.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>

#include "ctl/command.h"
#include "ctl/completion.h"
#include "ctl/help.h"
#include "ctl/plugin.h"
#include "ctl/preferences.h"
#include "ctl/print.h"
#include "runtime/base/text.h"

namespace coracle::ctl {

namespace {

bool is_known(const std::string& dashed, Command command) {
  for (; command; command = command.parent())
    if (command.find_flag(dashed)) return true;
  return false;
}

std::vector<std::string> long_flags_of(Command command) {
  std::vector<std::string> names;
  for (; command; command = command.parent())
    for (Flag flag : command.flags())
      for (const auto& name : flag.long_names()) names.push_back("--" + name);
  return names;
}

// The first unknown flag of the line; "" if all are known.
std::string unknown_flag(Command command, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    if (word == "--") break;
    if (word.size() < 2 || word.front() != '-') continue;
    std::string name = word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (!is_known(name, command)) return name;
  }
  return {};
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  std::string close = suggestion(word, known);
  return close.empty() || close == word ? "" : "Did you mean " + close + "?\n";
}

// "'o' in -oyaml", as kubectl names a flag of one letter.
std::string shorthand_text(const std::string& flag, const std::string& word) { return "'" + flag.substr(1) + "' in " + word; }

std::string unknown_shorthand(const std::string& flag, const std::vector<std::string>& words) {
  auto word = std::find_if(words.begin(), words.end(), [&](const std::string& one) { return one.starts_with(flag); });
  return "unknown shorthand flag: " + shorthand_text(flag, word == words.end() ? flag : *word);
}

std::string go_words(const std::vector<std::string>& words) { return "[" + join(words, " ") + "]"; }

constexpr std::string_view kNoCommand = "A subcommand is required";  // in the parser's words

// The reason why a command line is invalid, with a hint how to correct it. `said`: the parser's message.
std::string explain(Command root, const std::vector<std::string>& words, const std::string& said) {
  std::vector<std::string> all = words;
  all.emplace_back();  // no word is being typed after it
  Line line = parse_line(root, all);
  std::string path, help;
  for (Command at = line.command; at.parent(); at = at.parent()) path.insert(0, " " + at.name());
  help = "See 'coraclectl" + path + " --help' for usage.\n";
  if (std::string flag = unknown_flag(line.command, words); !flag.empty()) {
    std::string said_flag = flag.starts_with("--") ? "unknown flag: " + flag : unknown_shorthand(flag, words);
    return "error: " + said_flag + "\n" + did_you_mean(flag, long_flags_of(line.command)) + help;
  }
  std::vector<Command> below = line.command.commands();
  if (!below.empty() && !line.positionals.empty()) {
    std::vector<std::string> names;
    for (Command command : below) names.push_back(command.name());
    const std::string& word = line.positionals.front();
    std::string examples = "See 'coraclectl" + path + " -h' for help and examples\n";
    bool makes = path == " create" || path == " apply";  // without a command below, these take files
    if (makes) return "error: Unexpected args: " + go_words(line.positionals) + "\n" + did_you_mean(word, names) + examples;
    if (!path.empty())
      return "error: unknown command " + coracle::quoted(join(line.positionals, " ")) + "\n" + did_you_mean(word, names) +
             examples;
    return "error: unknown command " + coracle::quoted(word) + " for \"coraclectl" + path + "\"\n" + did_you_mean(word, names) +
           help;
  }
  if (size_t colon = said.find(": "); colon != said.npos && said.find(" required ") != said.npos && said.ends_with(" missing")) {
    bool is_short = words.back().size() == 2 && words.back()[1] != '-';
    std::string flag = is_short ? shorthand_text(words.back(), words.back()) : said.substr(0, colon);
    return "error: flag needs an argument: " + flag + "\n" + help;
  }
  constexpr std::string_view kRequired = " is required";
  if (said.starts_with("--") && said.ends_with(kRequired))
    return "error: required flag(s) " + coracle::quoted(said.substr(2, said.size() - 2 - kRequired.size())) + " not set\n" + help;
  return "error: " + said + "\n" + help;
}

struct Program {
  CommandLine command_line{"coraclectl",
                           "coraclectl controls the pods of this machine. Usual flags and grammar: those of kubectl."};
  GlobalFlags flags;
  Commands commands{command_line.root(), flags};
};

// Prints the help of the command that the line named; as a message where something else was expected of the line. The line's tree
// holds its values: a new one has the defaults.
int print_help(const std::vector<std::string>& path, bool as_message = false) {
  Program fresh;
  fresh.commands.expect(path);
  add_commands(fresh.commands);
  Command command = command_at(fresh.command_line.root(), path);
  std::string text = help_of(command ? command : fresh.command_line.root(), terminal_width());
  if (as_message) tell(text);
  else out(text);
  return 0;
}

Command innermost(Command root) {
  Command at = root;
  while (Command below = at.given_command()) at = below;
  return at;
}

// The command that the words name.
Command command_of(Command root, std::vector<std::string> words) {
  words.emplace_back();  // no word is being typed after them
  return parse_line(root, words).command;
}

// What follows them.
std::vector<std::string> words_behind(Command root, std::vector<std::string> words) {
  words.emplace_back();
  return parse_line(root, words).positionals;
}

int refuse_preferences(const Error& error) {
  tell("error occurred while applying preferences " + error.text() + "\n");
  return 1;
}

// What a shell or the build asks for.
int run_internal(const std::vector<std::string>& words) {
  Program program;
  add_commands(program.commands);
  bool completes = words.front() == "__complete";
  auto done = completes ? run_complete(program.commands, {words.begin() + 1, words.end()}) : run_manual(program.commands);
  return done ? *done : 1;
}

// The commands of a tree: those that the line may name, which takes a tenth of the time, or all. A line that cannot be read needs
// all of them for its message.
enum class Tree : uint8_t { named, all };

// Reads the line and does what it says. Nothing if it cannot be read with Tree::named.
std::optional<int> run_line(const char* name, std::vector<std::string> words, const std::optional<Preferences>& preferences,
                            Tree tree) {
  Program program;
  Commands& commands = program.commands;
  Command root = program.command_line.root();
  if (tree == Tree::named) commands.expect(words);
  add_commands(commands);
  if (preferences) {
    auto changed = apply_preferences(root, *preferences, words);
    if (!changed) return refuse_preferences(changed.error());
    words = *std::move(changed);
    program.flags.plugin_policy = preferences->plugin_policy;
    program.flags.plugin_allowlist = preferences->plugin_allowlist;
  }
  std::vector<std::string> own = commands.take_rest(words);
  std::vector<const char*> line = {name};
  for (const auto& word : own) line.push_back(word.c_str());
  auto help = program.command_line.parse(int(line.size()), line.data());
  if (!help && tree == Tree::named) return std::nullopt;
  bool names_none = !help && help.error().text() == kNoCommand && words_behind(root, own).empty();
  if (names_none) {  // as kubectl: what could have been named, and a failure
    Command group = command_of(root, own);
    bool as_message = group.name() != "certificate" && group.name() != "rollout";
    (void)print_help(path_of(group), as_message);
    return group.name() == "certificate" ? 0 : 1;
  }
  if (!help) {
    auto plugin = run_plugin_of(root, words);
    if (plugin) tell(explain(root, own, help.error().text()));
    else print_failure(plugin.error());
    Command named = root.given_command();
    return named && named.name() == "diff" ? 2 : 1;  // for diff, 1 means that there is a difference
  }
  if (*help || !commands.chosen()) return print_help(path_of(innermost(root)));
  commands.set_recorded(program.command_line.recorded(commands.rest()));
  auto done = commands.run();
  if (done) return *done;
  print_failure(done.error());
  return 1;
}

int run(const char* name, const std::vector<std::string>& words) {
  if (!words.empty() && (words.front() == "__complete" || words.front() == "__manual")) return run_internal(words);
  auto preferences = read_preferences(words);
  if (!preferences) return refuse_preferences(preferences.error());
  if (words.empty()) return print_help({});
  if (!*preferences) {  // these may name other commands
    std::optional<int> code = run_line(name, words, std::nullopt, Tree::named);
    if (code) return *code;
  }
  return run_line(name, words, *preferences, Tree::all).value_or(1);
}

}  // namespace
}  // namespace coracle::ctl

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return coracle::ctl::run(argv[0], {argv + 1, argv + argc});
}
