// SPDX-License-Identifier: Apache-2.0
// exec and attach: connect this terminal to a process in a container. stream.h implements the protocol.

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

// Takes "POD", "KIND/NAME" or, to attach to, "KIND NAME" from the front.
std::vector<std::string> take_pod(std::vector<std::string>& args, bool attach) {
  bool two_words = attach && args.size() > 1 && args[0].find('/') == std::string::npos && schema::catalog().by_name(args[0]);
  std::vector<std::string> named(args.begin(), args.begin() + (two_words ? 2 : 1));
  args.erase(args.begin(), args.begin() + (two_words ? 2 : 1));
  return named;
}

// With -f, the object of the file comes before the command.
Result<void> name_from_file(ExecFlags& flags) {
  if (flags.files.empty()) return {};
  std::vector<Document> documents = TRY(read_documents(flags.files, false));
  if (documents.size() != 1)
    return Error(Code::bad_request, "expected one object in the file, there are " + std::to_string(documents.size()));
  const Document& one = documents.front();
  flags.args.insert(flags.args.begin(),
                    std::string(one.kind->kind.qualified_resource()) + "/" + std::string(metadata_of(one.object).name()));
  return {};
}

Result<int> run_exec(Commands& commands, ExecFlags flags, bool attach) {
  auto patience = TRY(parse_timeout(flags.running_timeout).wrap("--pod-running-timeout"));
  if (patience.count() <= 0) return Error(Code::bad_request, "--pod-running-timeout must be higher than zero");
  TRY(name_from_file(flags));
  if (flags.args.empty())
    return Error(Code::bad_request, attach ? "pod, type/name or --filename must be specified"
                                           : "pod or type/name must be specified: exec POD -- COMMAND");
  std::vector<std::string> named = take_pod(flags.args, attach);
  if (attach && !flags.args.empty())
    return Error(Code::bad_request, "expected one pod to attach to, got " + coracle::quoted(flags.args.front()) + " too");
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
  json::value pod = TRY(one_pod(*session, named, false, patience));
  std::string_view phase = view::Pod(pod).status().phase();
  if (is_terminal_phase(phase))
    return Error(Code::bad_request, std::string("cannot ") + (attach ? "attach" : "exec into") +
                                        " a container in a completed pod; current phase is " + std::string(phase));
  view::Container container = TRY(choose_container(pod, flags.container, flags.quiet));
  std::string name(container.name());
  if (flags.tty && !::isatty(STDIN_FILENO)) {
    if (flags.use_stdin) std::fputs("Unable to use a TTY - input is not a terminal or the right kind of file\n", stderr);
    else flags.tty = false;
  }
  if (attach && flags.tty && !container.tty()) {
    std::fprintf(stderr, "Unable to use a TTY - container %s did not allocate one\n", name.c_str());
    flags.tty = false;
  }
  if (attach && flags.use_stdin && !container.stdin())
    std::fprintf(stderr, "Warning: container %s was made without stdin: what is typed reaches nobody\n", name.c_str());
  StreamRequest request{
      session->ns(), std::string(metadata_of(pod).name()), name, attach ? std::vector<std::string>() : command, flags.use_stdin,
      flags.tty};
  auto socket = TRY(open_stream(*session, request));
  if (attach && flags.tty && flags.use_stdin && !flags.quiet)
    std::fputs("If you don't see a command prompt, try pressing enter.\n", stderr);
  StreamHandles handles;
  if (attach && flags.tty && flags.use_stdin) handles.detach_keys = TRY(parse_detach_keys(flags.detach_keys));
  int code = TRY(run_stream(*socket, request, handles));
  if (code != 0 && !attach) std::fprintf(stderr, "command terminated with exit code %d\n", code);
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
    command.add_option("--pod-running-timeout", flags->running_timeout, "how long to wait until the object has a pod");
    if (attach) command.add_option("--detach-keys", flags->detach_keys, "with -it: what to type to leave: ctrl-p,ctrl-q");
    else command.add_option("-f,--filename", flags->files, "file with the object").delimiter(',');
    if (!attach) commands.keep_rest(command);
    commands.on(command, [&commands, flags, attach] { return run_exec(commands, *flags, attach); });
  }
}

}  // namespace coracle::ctl
