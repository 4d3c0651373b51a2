// SPDX-License-Identifier: Apache-2.0
// coraclectl: the command line of a Coracle machine, in kubectl's grammar. It is only a client: it does everything through the
// API. This file reads the command line and formats errors; command.cc has the table of commands.
#include <csignal>
#include <cstdio>

#include "ctl/command.h"
#include "ctl/completion.h"
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

// kubectl commands that do not exist here, and what replaces them.
constexpr std::pair<std::string_view, const char*> kElsewhere[] = {
    {"proxy", "The API can be read by: coraclectl get --raw PATH\n"},
    {"kustomize", "Kustomizations are built by kustomize: kustomize build DIRECTORY | coraclectl apply -f -\n"},
    {"debug", "A shell in a container: coraclectl exec -it POD -- sh\n"},
};

// The reason why a command line is invalid, with a hint how to correct it. `said`: the parser's message.
std::string explain(Command root, const std::vector<std::string>& words, const std::string& said) {
  std::vector<std::string> all = words;
  all.emplace_back();  // no word is being typed after it
  Line line = parse_line(root, all);
  std::string path, help;
  for (Command at = line.command; at.parent(); at = at.parent()) path.insert(0, " " + at.name());
  help = "See 'coraclectl" + path + " --help'.\n";
  if (std::string flag = unknown_flag(line.command, words); !flag.empty())
    return "error: unknown flag: " + flag + "\n" + did_you_mean(flag, long_flags_of(line.command)) + help;
  std::vector<Command> below = line.command.commands();
  if (!below.empty() && !line.positionals.empty()) {
    std::vector<std::string> names;
    for (Command command : below) names.push_back(command.name());
    const std::string& word = line.positionals.front();
    std::string close = did_you_mean(word, names);
    for (const auto& [name, instead] : kElsewhere)
      if (word == name) close = instead;
    return "error: unknown command " + coracle::quoted(word) + " for \"coraclectl" + path + "\"\n" + close + help;
  }
  if (size_t colon = said.find(": "); colon != said.npos && said.find(" required ") != said.npos && said.ends_with(" missing"))
    return "error: flag needs an argument: " + said.substr(0, colon) + "\n" + help;
  return "error: " + said + "\n" + help;
}

int run(int argc, char** argv) {
  CommandLine command_line("coraclectl",
                           "coraclectl controls the pods of this machine. Usual flags and grammar: those of kubectl.");
  Command root = command_line.root();
  GlobalFlags flags;
  Commands commands(root, flags);
  bool completes = argc > 1 && argv[1] == std::string_view("__complete");
  if (argc > 1 && !completes) commands.expect({argv + 1, argv + argc});
  add_commands(commands);
  if (argc < 2) {
    out(root.help());
    return 0;
  }
  if (completes) {
    auto done = run_complete(commands, {argv + 2, argv + argc});
    return done ? *done : 1;
  }
  if (argv[1] == std::string_view("__manual")) {
    auto done = run_manual(commands);
    return done ? *done : 1;
  }
  // Words after "--" belong to a program in a container, so the parser does not get them.
  int own = 1;
  while (own < argc && std::string_view(argv[own]) != "--") ++own;
  for (int i = own + 1; i < argc; ++i) commands.rest().emplace_back(argv[i]);
  auto help = command_line.parse(own, argv);
  if (!help) {
    tell(explain(root, std::vector<std::string>(argv + 1, argv + own), help.error().text()));
    Command named = root.given_command();
    return named && named.name() == "diff" ? 2 : 1;  // for diff, 1 means that there is a difference
  }
  if (!help->empty()) {
    out(*help);
    return 0;
  }
  if (!commands.chosen()) {
    Command at = root;
    while (Command below = at.given_command()) at = below;
    out(at.help());
    return 0;
  }
  auto done = commands.run();
  if (done) return *done;
  print_failure(done.error());
  return 1;
}

}  // namespace
}  // namespace coracle::ctl

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return coracle::ctl::run(argc, argv);
}
