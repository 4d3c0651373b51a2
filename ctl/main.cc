// SPDX-License-Identifier: Apache-2.0
// coraclectl: the command line of a Coracle machine, in kubectl's grammar. A client and nothing more: all it does goes
// through the API. This file reads the command line and words failures; the table of commands stands in command.cc.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "ctl/command.h"
#include "ctl/completion.h"
#include "runtime/base/text.h"

namespace coracle::ctl {

namespace {

bool known_option(const CLI::App* command, const std::string& name) {
  for (; command; command = command->get_parent())
    if (command->get_option_no_throw(name)) return true;
  return false;
}

std::vector<std::string> options_of(const CLI::App* command) {
  std::vector<std::string> names;
  for (; command; command = command->get_parent())
    for (const CLI::Option* option : command->get_options())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The first option of the line that nobody knows, "" when all are known.
std::string unknown_option(const CLI::App* command, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    if (word.size() < 2 || word.front() != '-') continue;
    std::string name = word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (!known_option(command, name)) return name;
  }
  return {};
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  std::string close = suggestion(word, known);
  return close.empty() || close == word ? "" : "Did you mean " + close + "?\n";
}

// What kubectl has and we do not, and what serves instead.
constexpr std::pair<std::string_view, const char*> kElsewhere[] = {
    {"proxy", "The API can be read by: coraclectl get --raw PATH\n"},
    {"kustomize", "Kustomizations are built by kustomize: kustomize build DIRECTORY | coraclectl apply -f -\n"},
    {"debug", "A shell in a container: coraclectl exec -it POD -- sh\n"},
};

// Why a line could not be read, in words that lead on. `said`: what the parser says.
std::string explain(const CLI::App& app, const std::vector<std::string>& words, const std::string& said) {
  std::vector<std::string> all = words;
  all.emplace_back();  // nothing is being typed behind them
  Line line = parse_line(app, all);
  std::string path, help;
  for (const CLI::App* at = line.command; at->get_parent(); at = at->get_parent()) path.insert(0, " " + at->get_name());
  help = "See 'coraclectl" + path + " --help'.\n";
  if (std::string option = unknown_option(line.command, words); !option.empty())
    return "error: unknown flag: " + option + "\n" + did_you_mean(option, options_of(line.command)) + help;
  auto below = line.command->get_subcommands([](const CLI::App*) { return true; });
  if (!below.empty() && !line.positionals.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : below) names.push_back(command->get_name());
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
  CLI::App app("coraclectl controls the pods of this machine. Usual flags and grammar: those of kubectl.", "coraclectl");
  app.require_subcommand(0, 1);
  GlobalFlags flags;
  Commands commands(app, flags);
  add_commands(commands);
  if (argc < 2) {
    out(app.help());
    return 0;
  }
  if (argv[1] == std::string_view("__complete")) {
    auto done = run_complete(commands, {argv + 2, argv + argc});
    return done ? *done : 1;
  }
  // What stands behind "--" belongs to a program in a container: CLI11 does not get to see it.
  int own = 1;
  while (own < argc && std::string_view(argv[own]) != "--") ++own;
  for (int i = own + 1; i < argc; ++i) commands.rest().emplace_back(argv[i]);
  try {  // wall: CLI11 reports by exceptions
    app.parse(own, argv);
  } catch (const CLI::ParseError& thrown) {
    if (thrown.get_exit_code() == 0) return app.exit(thrown);
    std::fputs(explain(app, std::vector<std::string>(argv + 1, argv + own), thrown.what()).c_str(), stderr);
    return app.got_subcommand("diff") ? 2 : 1;  // of diff, 1 says that something differs
  }
  if (!commands.chosen()) {
    const CLI::App* at = &app;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    out(at->help());
    return 0;
  }
  auto done = commands.chosen()();
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
