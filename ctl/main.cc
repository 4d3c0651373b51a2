// SPDX-License-Identifier: Apache-2.0
// coraclectl: the command line of a Coracle machine, in kubectl's grammar. A client and nothing more: all it does goes
// through the API. This file is the table of commands; each family has a file of its own.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "ctl/command.h"
#include "store/object/status.h"

extern char** environ;

namespace coracle::ctl {

CLI::App* Commands::add(std::string name, std::string description, CLI::App* parent) {
  CLI::App* command = (parent ? parent : &app_)->add_subcommand(std::move(name), std::move(description));
  command->fallthrough();
  return command;
}

void Commands::on(CLI::App* command, Run run) {
  command->callback([this, command, run = std::move(run)] {
    if (command->get_subcommands().empty()) chosen_ = run;
  });
}

Result<Session*> Commands::session() {
  if (!session_) session_ = TRY(Session::open(flags_));
  return session_.get();
}

void out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Result<int> run_program(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const auto& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = 0;
  if (int failed = ::posix_spawnp(&pid, pointers[0], nullptr, nullptr, pointers.data(), environ))
    return Error::from_errno(failed, "run " + argv.front());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return Error::from_errno("wait for " + argv.front());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

namespace {

void add_global_flags(CLI::App& app, GlobalFlags& flags) {
  app.add_option("--kubeconfig", flags.kubeconfig, "the kubeconfig file");
  app.add_option("--context", flags.context, "its context to use");
  app.add_option("--cluster", flags.cluster, "its cluster to use");
  app.add_option("--user", flags.user, "its user to be");
  app.add_option("-n,--namespace", flags.ns, "the namespace");
  app.add_option("-s,--server", flags.server, "the server's URL");
  app.add_option("--token", flags.token, "a bearer token");
  app.add_option("--certificate-authority", flags.certificate_authority, "the CA's certificate file");
  app.add_flag("--insecure-skip-tls-verify", flags.insecure_skip_tls_verify, "trust any server");
  app.add_option("--request-timeout", flags.request_timeout, "give up on a request after this; 0: never");
  app.add_option("-v,--v", flags.verbosity, "say more: 6 shows requests");
}

// As kubectl words it: what the server said, or what we could not do.
void print_failure(const Error& error) {
  bool from_server = error.details() != nullptr;
  if (from_server) std::fprintf(stderr, "Error from server (%s): %s\n", std::string(reason_of(error)).c_str(), error.text().c_str());
  else std::fprintf(stderr, "error: %s\n", error.text().c_str());
}

int run(int argc, char** argv) {
  CLI::App app("coraclectl controls the pods of this machine. Usual flags and grammar: those of kubectl.", "coraclectl");
  app.require_subcommand(0, 1);
  GlobalFlags flags;
  add_global_flags(app, flags);
  Commands commands(app, flags);
  add_get(commands);
  add_describe(commands);
  add_apply(commands);
  add_create(commands);
  add_edit(commands);
  add_delete(commands);
  add_logs(commands);
  add_exec(commands);
  add_rollout(commands);
  add_wait(commands);
  add_about(commands);
  add_image(commands);
  if (argc < 2) {
    out(app.help());
    return 0;
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
