// SPDX-License-Identifier: Apache-2.0
// exec and attach: connect this terminal to a process in a container. stream.h implements the protocol.
#include <unistd.h>

#include <utility>

#include "ctl/command.h"
#include "ctl/pods.h"
#include "ctl/stream.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"

namespace coracle::ctl {
namespace {

struct ExecFlags {
  std::vector<std::string> args;
  std::string container, running_timeout = "1m0s", detach_keys = "ctrl-p,ctrl-q";
  std::vector<std::string> files;
  bool use_stdin = false, tty = false, quiet = false;
};

// Takes "POD", "KIND/NAME" or, to attach to, "KIND NAME" from the front. Errors: bad_request.
Result<std::vector<std::string>> take_pod(std::vector<std::string>& args, bool attach) {
  if (attach && args.empty()) return Error(Code::bad_request, "at least 1 argument is required for attach");
  if (attach && args.size() > 2)
    return Error(Code::bad_request, "expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw " +
                                        std::to_string(args.size()) + ": [" + join(args, " ") + "]");
  if (attach && args.size() == 2) {
    TRY(parse_named(args));  // it says whether there is such a kind
    return std::exchange(args, {});
  }
  if (args.empty()) return Error(Code::bad_request, "pod, type/name or --filename must be specified");
  std::vector<std::string> named = {args.front()};
  args.erase(args.begin());
  return named;
}

// With -f, the object of the file comes before the command.
Result<void> name_from_file(ExecFlags& flags) {
  if (flags.files.empty()) return {};
  std::vector<Document> documents = TRY(read_documents(flags.files, false));
  if (documents.size() != 1)
    return Error(Code::bad_request,
                 documents.empty() ? "there is no object in the file" : "cannot exec into multiple objects at a time");
  const Document& one = documents.front();
  flags.args.insert(flags.args.begin(),
                    std::string(one.kind->kind.qualified_resource()) + "/" + std::string(metadata_of(one.object).name()));
  return {};
}

// A process at a terminal can only be joined at one, and another one at none.
void settle_tty(view::Container container, ExecFlags& flags) {
  if (flags.tty && !container.tty() && !flags.quiet)
    tell("error: Unable to use a TTY - container " + std::string(container.name()) + " did not allocate one\n");
  flags.tty = container.tty();
}

// As kubectl: without -i, or without a terminal here, the process gets none.
void use_tty_if_there_is_one(ExecFlags& flags) {
  if (!flags.use_stdin) flags.tty = false;
  if (!flags.tty || ::isatty(STDIN_FILENO)) return;
  flags.tty = false;
  if (!flags.quiet) tell("Unable to use a TTY - input is not a terminal or the right kind of file\n");
}

Result<int> run_exec(Commands& commands, ExecFlags flags, bool attach) {
  auto patience = TRY(parse_timeout(flags.running_timeout).wrap("--pod-running-timeout"));
  if (patience.count() <= 0)
    return Error(Code::bad_request, std::string("--pod-running-timeout must be higher than zero\nSee 'coraclectl ") +
                                        (attach ? "attach" : "exec") + " -h' for help and examples");
  TRY(name_from_file(flags));
  std::vector<std::string> named = TRY(take_pod(flags.args, attach));
  if (!attach && !flags.args.empty() && commands.rest().empty())
    return Error(
        Code::bad_request,
        "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\nSee 'coraclectl exec -h' for "
        "help and examples");
  if (!attach && !flags.args.empty())  // kubectl drops it
    return Error(Code::bad_request, coracle::quoted(flags.args.front()) +
                                        " stands between the pod and --, and belongs to neither: write the whole command "
                                        "behind the dashes, as in: exec POD -- COMMAND [ARGS...]");
  const std::vector<std::string>& command = commands.rest();
  if (!attach && command.empty()) return Error(Code::bad_request, "you must specify at least one command for the container");
  Session* session = TRY(commands.session());
  json::value pod = TRY(one_pod(*session, named, PodUse::attach, patience));
  std::string_view phase = view::Pod(pod).status().phase();
  if (is_terminal_phase(phase))
    return Error(Code::bad_request, std::string("cannot ") + (attach ? "attach" : "exec into") +
                                        " a container in a completed pod; current phase is " + std::string(phase));
  auto chosen = choose_container(pod, flags.container, flags.quiet);
  if (!chosen && attach) return chosen.take_error().wrap("cannot attach to the container");
  view::Container container = TRY(std::move(chosen));
  std::string name(container.name());
  if (attach) settle_tty(container, flags);
  use_tty_if_there_is_one(flags);
  if (attach && flags.use_stdin && !container.stdin())
    std::fprintf(stderr, "Warning: container %s was made without stdin: what is typed reaches nobody\n", name.c_str());
  StreamRequest request{
      session->ns(), std::string(metadata_of(pod).name()), name, attach ? std::vector<std::string>() : command, flags.use_stdin,
      flags.tty};
  if (attach && !flags.quiet) tell(kSessionBegins);
  auto socket = TRY(open_stream(*session, request));
  StreamHandles handles;
  if (attach && flags.tty && flags.use_stdin) handles.detach_keys = TRY(parse_detach_keys(flags.detach_keys));
  int code = TRY(run_stream(*socket, request, handles));
  if (code != 0 && !attach) std::fprintf(stderr, "command terminated with exit code %d\n", code);
  if (attach && flags.tty && !flags.quiet) out(session_ended(request.ns, request.pod, name, is_debug_container(pod, name)));
  return code;
}

}  // namespace

void add_exec(Commands& commands) {
  for (bool attach : {false, true}) {
    auto flags = std::make_shared<ExecFlags>();
    Command command =
        attach ? commands.add("attach", "Join a container's own process") : commands.add("exec", "Run a command in a container");
    command.add_option("args", flags->args, attach ? "POD or KIND/NAME" : "POD or KIND/NAME, -- COMMAND [ARGS...]");
    command.add_option("-c,--container", flags->container, "the container");
    command.add_flag("-i,--stdin", flags->use_stdin, "pass standard input");
    command.add_flag("-t,--tty", flags->tty, "with a terminal");
    command.add_flag("-q,--quiet", flags->quiet, "only what the process prints");
    command.add_option("--pod-running-timeout", flags->running_timeout, "how long to wait until the object has a pod")
        .as_duration();
    if (attach) command.add_option("--detach-keys", flags->detach_keys, "with -it: what to type to leave: ctrl-p,ctrl-q");
    else command.add_option("-f,--filename", flags->files, "file with the object").delimiter(',');
    if (!attach) commands.keep_rest(command);
    commands.on(command, [&commands, flags, attach] { return run_exec(commands, *flags, attach); });
  }
}

}  // namespace coracle::ctl
