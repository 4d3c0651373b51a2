// SPDX-License-Identifier: Apache-2.0
// run and expose. `run -it --rm` creates a pod, attaches to its process and deletes it afterwards:
//   create ──▶ wait until it runs ──▶ print its log so far, then attach ──▶ its exit code ──▶ delete
// Without stdin no attach is needed: the log, followed from its start, contains the whole output.
#include <poll.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>

#include "ctl/create.h"
#include "ctl/deletion.h"
#include "ctl/flag_values.h"
#include "ctl/generate.h"
#include "ctl/pods.h"
#include "ctl/stream.h"
#include "ctl/target.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"

namespace coracle::ctl {
namespace {

struct RunFlags : CreateFlags {
  PodFlags pod;
  DeletionFlags deletion;          // with --rm
  std::vector<std::string> words;  // NAME, and arguments for the container
  std::string running_timeout = "1m0s", detach_keys = "ctrl-p,ctrl-q";
  bool attach = false, remove = false, leave_stdin_open = false, quiet = false, expose = false;
};

// ---- life cycle of an attached pod ----

class Attached {
 public:
  Attached(Session& session, const RunFlags& flags, const json::value& pod)
      : session_(session),
        flags_(flags),
        name_(metadata_of(pod).name()),
        ns_(metadata_of(pod).namespace_()),
        uid_(metadata_of(pod).uid()),
        container_(flags.pod.name) {}

  Result<int> run() {
    auto code = speak();
    if (flags_.remove) {
      auto removed = remove();
      if (!removed && code) return removed.take_error();
    }
    return code;
  }

 private:
  Result<int> speak() {
    auto timeout = TRY(parse_timeout(flags_.running_timeout).wrap("--pod-running-timeout"));
    bool runs = TRY(wait_started(timeout));
    if (!flags_.quiet && flags_.pod.use_stdin && runs) tell(kSessionBegins);
    if (flags_.pod.use_stdin && runs) return attach();
    TRY(follow_log());
    return exit_code();
  }

  // Returns true if the pod runs, false if it has already ended.
  Result<bool> wait_started(std::chrono::milliseconds timeout) {
    bool ended = false;
    std::string waiting;
    auto waited = wait_until(session_, kind_, ns_, name_, timeout, [&](const json::value* pod) -> Result<bool> {
      if (!pod) return Error(Code::not_found, "pod " + name_ + " was deleted");
      ended = is_terminal(view::Pod(*pod));
      view::ContainerState state = container_state_of(*pod, container_);
      if (!state) return ended;
      ended |= state.has_terminated();
      if (view::ContainerStateWaiting why = state.waiting()) {
        waiting = why.reason();
        if (!why.message().empty()) waiting.append(": ").append(why.message());
      }
      return ended || state.has_running();
    });
    if (!waited && waited.error().code() == Code::timeout)
      return Error(Code::timeout, "pod " + name_ + " does not run after " + flags_.running_timeout +
                                      (waiting.empty() ? "" : " (" + waiting + ")"));
    if (!waited) return waited.take_error();
    return !ended;
  }

  Request log_request(bool follow) {
    Request request{.path = session_.path(kind_, ns_, name_, "log"), .query = {{"container", container_}}, .accept = "*/*"};
    if (follow) request.query.emplace_back("follow", "true");
    return request;
  }

  Result<int> attach() {
    StreamRequest request{ns_, name_, container_, {}, true, flags_.pod.tty};
    const std::string before = session_.text(log_request(false)).value_or("");  // attach only delivers output that comes later
    out(before);
    size_t heard = 0;
    StreamHandles ends;
    if (request.tty) ends.detach_keys = TRY(parse_detach_keys(flags_.detach_keys));
    ends.interruptible = flags_.remove;  // so that the pod is deleted; with a terminal, ^C goes to the process
    ends.on_stdout = [&](std::string_view bytes) -> Result<void> {
      heard += bytes.size();
      out(bytes);
      return {};
    };
    ends.on_stderr = [&](std::string_view bytes) -> Result<void> {
      heard += bytes.size();
      std::fwrite(bytes.data(), 1, bytes.size(), stderr);
      return {};
    };
    auto socket = open_stream(session_, request);
    auto talked = socket ? run_stream(**socket, request, ends) : Result<int>(socket.take_error());
    if (!talked && !has_come_too_late(talked.error()) && !has_ended())
      tell("warning: couldn't attach to pod/" + name_ + ", falling back to streaming logs: " + talked.error().text() + "\n");
    bool says_how_to_resume = talked && request.tty && !flags_.quiet;
    if (flags_.pod.restart == "Always") {  // it restarts and never ends
      if (!talked) out(missed(before.size() + heard, 0));
      if (says_how_to_resume) out(session_ended(ns_, name_, container_, false));
      return 0;
    }
    auto code = exit_code();  // the status has the exit code even if attaching failed
    out(talked ? missed(before.size(), heard) : missed(before.size() + heard, 0));
    if (says_how_to_resume) out(session_ended(ns_, name_, container_, false));
    return code;
  }

  bool has_ended() {
    auto pod = session_.json({.path = session_.path(kind_, ns_, name_)});
    return pod && (is_terminal(view::Pod(*pod)) || container_state_of(*pod, container_).has_terminated());
  }

  // The output of an ended container that was neither in the log as first read (`read` bytes) nor received by attach (the last
  // `heard` bytes).
  std::string missed(size_t read, size_t heard) {
    const std::string whole = session_.text(log_request(false)).value_or("");
    if (whole.size() <= read + heard) return "";
    const size_t size = whole.size() - read - heard;
    bool is_last_newline = size == 1 && whole.ends_with('\n') && heard > 0;  // the log adds a newline to an unfinished last line
    return is_last_newline ? "" : whole.substr(read, size);
  }

  // A separate thread follows the log while this one waits for signals: an interrupt must still delete the pod.
  Result<void> follow_log() {
    sigset_t interrupts, before;
    ::sigemptyset(&interrupts);
    ::sigaddset(&interrupts, SIGINT), ::sigaddset(&interrupts, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &interrupts, &before);
    Fd signals(::signalfd(-1, &interrupts, SFD_CLOEXEC | SFD_NONBLOCK));
    Fd done = TRY(sys::make_eventfd());
    Result<void> followed;
    {
      std::jthread follower = start_thread("logs", [&] {
        followed = session_.stream(log_request(true), [](std::string_view bytes) { return out(bytes), true; });
        sys::signal_eventfd(done);
      });
      pollfd waits[] = {{done.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
      while (::poll(waits, 2, -1) < 0 && errno == EINTR) {
      }
      signalfd_siginfo info;
      if (waits[1].revents && ::read(signals.get(), &info, sizeof info) == sizeof info) {
        if (flags_.remove) (void)remove();
        std::_Exit(128 + int(info.ssi_signo));  // the follower may block in the log for the pod's whole grace period
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!followed) return followed.take_error();
    return {};
  }

  // Waits for the pod, not only for its container: deleting a pod that has not ended takes longer.
  Result<int> exit_code() {
    // It restarts and never ends; or somebody else is to go on with it.
    if (flags_.pod.restart == "Always" || flags_.leave_stdin_open) return 0;
    auto timeout = TRY(parse_timeout(flags_.running_timeout).wrap("--pod-running-timeout"));
    std::optional<int> code;
    TRY(wait_until(session_, kind_, ns_, name_, timeout, [&](const json::value* pod) -> Result<bool> {
      if (!pod) return Error(Code::not_found, "pod " + name_ + " was deleted");
      code = TRY(exit_code_of(*pod, container_));
      return code.has_value();
    }));
    return *code;
  }

  Result<void> remove() {
    if (std::exchange(removed_, true)) return {};
    json::object options = TRY(deletion_options_of(session_, flags_.deletion));
    options["preconditions"] = json::object{{"uid", uid_}};
    auto gone = session_.json({.method = "DELETE", .path = session_.path(kind_, ns_, name_), .body = to_text(options)});
    if (!gone && gone.error().code() != Code::not_found) return gone.take_error();
    auto timeout = TRY(deletion_timeout_of(flags_.deletion, std::chrono::milliseconds(0)));
    if (flags_.deletion.wait) TRY(wait_gone(session_, kind_, ns_, name_, uid_, timeout));
    if (!flags_.quiet) out("pod " + coracle::quoted(name_) + " deleted from " + ns_ + " namespace\n");
    return {};
  }

  Session& session_;
  const RunFlags& flags_;
  const schema::KindInfo& kind_ = schema::catalog().of(kPod);
  std::string name_, ns_, uid_, container_;
  bool removed_ = false;
};

Result<void> expose_made(Session& session, const RunFlags& flags) {
  json::value service = TRY(run_service_of(flags.pod));
  flags.recorder.record(service);
  json::value created = TRY(send_new(session, flags, std::move(service), schema::catalog().of(kService)));
  print_outcome(flags.output, flags.dry_run, created, schema::catalog().of(kService), "created", JsonOrder::given);
  if (flags.output == "yaml") out("---\n");  // as kubectl, which writes another one before the pod
  return {};
}

Result<void> check_run_flags(const RunFlags& flags) {
  auto wrong = [](const std::string& text) {
    return Error(Code::bad_request, text + "\nSee 'coraclectl run -h' for help and examples");
  };
  auto is_one_of = [](const std::string& text, std::initializer_list<const char*> all) {
    return std::find(all.begin(), all.end(), text) != all.end();
  };
  if (flags.words.empty()) return wrong("NAME is required for run");
  auto patience = TRY(parse_timeout(flags.running_timeout).wrap("--pod-running-timeout"));
  if (patience.count() <= 0) return wrong("--pod-running-timeout must be higher than zero");
  if (flags.pod.image.empty()) return Error(Code::bad_request, "--image is required");
  if (!is_image_reference(flags.pod.image))
    return Error(Code::bad_request, "Invalid image name " + coracle::quoted(flags.pod.image) + ": invalid reference format");
  if (flags.pod.tty && !flags.pod.use_stdin) return wrong("-i/--stdin is required for containers with -t/--tty=true");
  if (flags.expose && flags.pod.port.empty()) return wrong("--port must be set when exposing a service");
  if (!is_one_of(flags.pod.restart, {"Always", "OnFailure", "Never"}))
    return wrong("invalid restart policy: " + flags.pod.restart);
  if (flags.remove && !flags.attach) return wrong("--rm should only be used for attached containers");
  if (flags.attach && flags.dry_run != DryRun::none)
    return wrong("--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)");
  if (!is_one_of(flags.pod.pull_policy, {"", "Always", "IfNotPresent", "Never"}))
    return wrong("invalid image pull policy: " + flags.pod.pull_policy);
  TRY(check_cascade(flags.deletion.cascade));
  return flags.check();
}

// With --rm, the Service of --expose goes as the pod does.
Result<void> remove_service(Session& session, const RunFlags& flags) {
  json::object options = TRY(deletion_options_of(session, flags.deletion));
  std::string path = session.path(schema::catalog().of(kService), session.ns(), flags.pod.name);
  auto gone = session.json({.method = "DELETE", .path = path, .body = to_text(options)});
  if (!gone && gone.error().code() != Code::not_found) return gone.take_error();
  if (!flags.quiet) out("service " + coracle::quoted(flags.pod.name) + " deleted from " + session.ns() + " namespace\n");
  return {};
}

Result<int> run_pod(Commands& commands, RunFlags& flags, bool attach_given) {
  if (!attach_given && flags.pod.use_stdin) flags.attach = true;
  if (flags.deletion.force && flags.deletion.grace_period < 0) flags.deletion.grace_period = 0;
  if (flags.pod.restart.empty()) flags.pod.restart = "Always";  // of a variable that is not set
  TRY(check_run_flags(flags));
  flags.save_only_what_is_sent();
  flags.pod.name = flags.words.front();
  flags.pod.words.assign(flags.words.begin() + 1, flags.words.end());
  flags.pod.words.insert(flags.pod.words.end(), commands.rest().begin(), commands.rest().end());
  if (flags.attach && flags.pod.tty && !::isatty(STDIN_FILENO)) {
    std::fputs("Unable to use a TTY - input is not a terminal or the right kind of file\n", stderr);
    flags.pod.tty = false;
  }
  flags.pod.stdin_once = flags.pod.use_stdin && !flags.leave_stdin_open;
  json::value pod = TRY(pod_of(flags.pod));
  flags.recorder.record(pod);
  Session* session = TRY(commands.session());
  json::value created = TRY(send_new(*session, flags, std::move(pod), schema::catalog().of(kPod)));
  auto exposed = flags.expose ? expose_made(*session, flags) : Result<void>();  // the pod is there, whatever became of it
  if (!flags.attach) {
    print_outcome(flags.output, flags.dry_run, created, schema::catalog().of(kPod), "created", JsonOrder::given);
    TRY(std::move(exposed));
    return 0;
  }
  if (!exposed) print_failure(exposed.error());
  auto code = Attached(*session, flags, created).run();
  if (flags.expose && exposed && flags.remove) TRY(remove_service(*session, flags));
  return code;
}

}  // namespace

void add_run(Commands& commands) {
  auto flags = std::make_shared<RunFlags>();
  flags->field_manager = "kubectl-run";
  Command run_command = commands.add("run", "Run an image as a pod: NAME --image=IMAGE [-- ARGS...]");
  PodFlags& pod = flags->pod;
  run_command.add_option("name", flags->words, "the pod's name, and arguments for its container");
  Flag image = run_command.add_option("--image", pod.image, "image");
  run_command.add_option("--restart", pod.restart, "Always, OnFailure or Never");
  run_command.add_option("--image-pull-policy", pod.pull_policy, "Always, IfNotPresent or Never");
  run_command.add_option("--port", pod.port, "port the container listens on");
  run_command.add_option("--env", pod.env, "NAME=VALUE");
  run_command.add_option("-l,--labels", pod.labels, "KEY=VALUE,...").delimiter(',').as_text();
  run_command.add_option("--annotations", pod.annotations, "KEY=VALUE");
  run_command.add_option("--overrides", pod.overrides, "JSON that is laid over the pod");
  run_command.add_option("--override-type", pod.override_type, "what --overrides is: a patch of type merge, json or strategic");
  run_command.add_flag("--command", pod.words_are_command, "what follows -- is the command, not its arguments");
  run_command.add_flag("--privileged", pod.privileged, "with all the machine's rights");
  run_command.add_flag("-i,--stdin", pod.use_stdin, "pass standard input");
  run_command.add_flag("-t,--tty", pod.tty, "with a terminal");
  Flag attach = run_command.add_flag("--attach", flags->attach, "show what it prints until it ends");
  run_command.add_flag("--rm", flags->remove, "delete it afterwards");
  run_command.add_flag("--leave-stdin-open", flags->leave_stdin_open, "its input stays open after the first attach");
  run_command.add_flag("-q,--quiet", flags->quiet, "only what the process prints");
  run_command.add_flag("--expose", flags->expose, "make a Service for --port too");
  DeletionFlags& deletion = flags->deletion;
  run_command.add_option("--grace-period", deletion.grace_period, "with --rm: seconds it gets to stop; -1: its own");
  run_command.add_option("--cascade", deletion.cascade, "with --rm: background, foreground or orphan")
      .optional_value("background");
  run_command.add_flag("--force", deletion.force, "with --rm: it gets no time to stop");
  run_command.add_flag("--wait", deletion.wait, "with --rm: wait until it is gone");
  run_command.add_option("--timeout", deletion.timeout, "with --wait: how long; 0s: as long as it takes").as_duration();
  run_command.add_option("--pod-running-timeout", flags->running_timeout, "how long to wait until it runs").as_duration();
  run_command.add_option("--detach-keys", flags->detach_keys, "with -it: what to type to leave: ctrl-p,ctrl-q");
  flags->CreateFlags::add_to(commands, run_command);
  flags->recorder.add_to(commands, run_command);
  flags->files.add_to(run_command);
  commands.keep_rest(run_command);
  commands.on(run_command, [&commands, flags, image, attach]() -> Result<int> {
    TRY(require_flags({image}));
    if (!flags->files.empty())
      tell("Flag --filename has been deprecated, it is ignored by run and will be removed in a future release\n");
    return run_pod(commands, *flags, attach.count() > 0);
  });
}

// ---- expose ----

void add_expose(Commands& commands) {
  struct Flags : CreateFlags {
    std::vector<std::string> args;
    ExposeFlags service;
  };
  auto flags = std::make_shared<Flags>();
  flags->field_manager = "kubectl-expose";
  Command expose = commands.add("expose", "Make a Service for pods, a Deployment or a ReplicaSet");
  expose.add_option("args", flags->args, "KIND NAME or KIND/NAME");
  flags->files.add_to(expose);
  expose.add_option("--name", flags->service.name, "the Service's name");
  expose.add_option("--port", flags->service.port, "its port");
  expose.add_option("--target-port", flags->service.target_port, "the container's port, number or name");
  expose.add_option("--protocol", flags->service.protocol, "TCP, UDP or SCTP; else what the containers have");
  expose.add_option("--type", flags->service.type, "ClusterIP, NodePort or LoadBalancer");
  expose.add_option("--cluster-ip", flags->service.cluster_ip, "its address; None for headless");
  expose.add_option("--external-ip", flags->service.external_ip, "an address of the outside that leads to it too");
  expose.add_option("--load-balancer-ip", flags->service.load_balancer_ip, "with --type=LoadBalancer: the address to get");
  expose.add_option("--session-affinity", flags->service.session_affinity, "None or ClientIP");
  expose.add_option("--overrides", flags->service.overrides, "JSON that is laid over the Service");
  expose.add_option("--override-type", flags->service.override_type,
                    "what --overrides is: a patch of type merge, json or strategic");
  expose.add_option("--selector", flags->service.selector, "labels of the pods, instead of the object's own");
  expose.add_option("-l,--labels", flags->service.labels, "the Service's labels: KEY=VALUE,...").delimiter(',').as_text();
  flags->CreateFlags::add_to(commands, expose);
  flags->recorder.add_to(commands, expose);
  commands.on(expose, [&commands, flags]() -> Result<int> {
    TRY(flags->check());
    flags->save_only_what_is_sent();
    Session* session = TRY(commands.session());
    TargetFlags wanted;
    wanted.files = flags->files;
    Targets targets = TRY(targets_of(*session, wanted, flags->args));
    return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
      json::value service = TRY(exposing_service_of(live.object, *live.kind, flags->service));
      flags->recorder.record(service);
      json::value created = TRY(send_new(*session, *flags, std::move(service), schema::catalog().of(kService)));
      print_outcome(flags->output, flags->dry_run, created, schema::catalog().of(kService), "exposed", JsonOrder::given);
      return {};
    });
  });
}

}  // namespace coracle::ctl
