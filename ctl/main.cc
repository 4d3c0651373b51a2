// SPDX-License-Identifier: Apache-2.0
// coraclectl: the command line of a Coracle machine, in kubectl's grammar. A client and nothing more: all it does goes
// through the API. This file reads the command line and words failures; the table of commands stands in command.cc.
#include <csignal>
#include <cstdio>

#include "ctl/command.h"

namespace coracle::ctl {

namespace {

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
    std::string hint;
    for (int i = 1; i < argc; ++i) {
      if (argv[i][0] == '-') continue;
      std::vector<std::string> known;
      for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) known.push_back(command->get_name());
      hint = suggestion(argv[i], known);
      if (hint == argv[i]) hint.clear();
      break;
    }
    std::fprintf(stderr, "error: %s\n", thrown.what());
    if (!hint.empty()) std::fprintf(stderr, "Did you mean \"%s\"?\n", hint.c_str());
    std::fputs("See 'coraclectl --help', or 'coraclectl COMMAND --help'.\n", stderr);
    return 2;
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
