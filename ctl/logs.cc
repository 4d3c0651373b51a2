// SPDX-License-Identifier: Apache-2.0
// logs: prints the logs of a pod's containers, of the pods of a Deployment, ReplicaSet or Service, or of all pods that match a
// selector.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "ctl/command.h"
#include "ctl/flag_values.h"
#include "ctl/pods.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

struct LogFlags {
  std::vector<std::string> args;
  std::string container, selector, since = "0s", since_time, running_timeout = "20s";
  std::chrono::milliseconds patience{};  // running_timeout
  int64_t tail = -1, limit_bytes = 0, max_requests = 5;
  bool follow = false, previous = false, timestamps = false, all_containers = false, prefix = false, ignore_errors = false;
  bool all_pods = false, skip_backend_tls = false;
  std::optional<int64_t> since_seconds;  // of `since`
  Flag tail_flag, container_flag;
};

struct Stream {
  std::string pod, container;
};

Request log_request(Session& session, const LogFlags& flags, const Stream& stream) {
  const schema::KindInfo& pods = schema::catalog().of(kPod);
  Request request{.path = session.path(pods, session.ns(), stream.pod, "log"), .accept = "*/*"};
  auto add = [&](const char* name, std::string value) { request.query.emplace_back(name, std::move(value)); };
  if (!stream.container.empty()) add("container", stream.container);
  if (flags.follow) add("follow", "true");
  if (flags.previous) add("previous", "true");
  if (flags.timestamps) add("timestamps", "true");
  if (flags.tail >= 0) add("tailLines", std::to_string(flags.tail));
  if (flags.limit_bytes > 0) add("limitBytes", std::to_string(flags.limit_bytes));
  if (!flags.since_time.empty()) add("sinceTime", flags.since_time);
  if (flags.since_seconds) add("sinceSeconds", std::to_string(*flags.since_seconds));
  if (flags.skip_backend_tls) add("insecureSkipTLSVerifyBackend", "true");
  return request;
}

std::mutex& whole_lines() {  // several streams share the terminal; each writes whole lines
  static std::mutex lock;
  return lock;
}

// `alone`: no other stream writes meanwhile, so what is there of a line is shown at once.
Result<void> copy(Session& session, const Request& request, const std::string& prefix, bool alone) {
  std::string partial;
  auto streamed = session.stream(request, [&](std::string_view bytes) {
    if (alone && prefix.empty()) {
      out(bytes);
      return true;
    }
    partial += bytes;
    for (size_t end; (end = partial.find('\n')) != partial.npos; partial.erase(0, end + 1)) {
      std::lock_guard lock(whole_lines());
      out(prefix + partial.substr(0, end + 1));
    }
    return true;
  });
  if (partial.empty()) return streamed;
  std::lock_guard lock(whole_lines());
  out(prefix + partial + (prefix.empty() ? "" : "\n"));
  return streamed;
}

constexpr std::chrono::milliseconds kLogRetry{1000};

// With --follow, a log that the server does not have yet is awaited: that of a container that has not begun. Each refusal is
// told.
Result<void> follow(Session& session, const LogFlags& flags, const Request& request, const std::string& prefix, bool alone) {
  const auto deadline = std::chrono::steady_clock::now() + flags.patience;
  for (;;) {
    auto copied = copy(session, request, prefix, alone);
    bool may_come = !copied && copied.error().details() && !flags.ignore_errors;
    if (!may_come) return copied;
    tell(copied.error().text() + "\n");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    // Nothing tells when the log is there: the server has to be asked again.
    (void)::poll(nullptr, 0, int(std::clamp(left, std::chrono::milliseconds(0), kLogRetry).count()));
    if (std::chrono::steady_clock::now() >= deadline) return Error(Code::timeout, "context deadline exceeded");
  }
}

// A failure of one of several logs is part of what is shown, with --ignore-errors.
Result<void> show_log(Session& session, const LogFlags& flags, const Stream& stream, bool alone) {
  std::string prefix = flags.prefix ? "[pod/" + stream.pod + "/" + stream.container + "] " : std::string();
  Request request = log_request(session, flags, stream);
  auto shown = flags.follow ? follow(session, flags, request, prefix, alone) : copy(session, request, prefix, alone);
  if (shown || !flags.ignore_errors) return shown;
  std::lock_guard lock(whole_lines());
  out("error: " + shown.error().text() + "\n");
  return {};
}

std::vector<std::string> containers_of(const json::value& pod) {
  view::PodSpec spec = view::Pod(pod).spec();
  std::vector<std::string> names;
  for (view::Container container : spec.init_containers()) names.emplace_back(container.name());
  for (view::Container container : spec.containers()) names.emplace_back(container.name());
  for (view::EphemeralContainer container : spec.ephemeral_containers()) names.emplace_back(container.name());
  return names;
}

// "--all-containers" with a container, and what else kubectl refuses.
Result<void> check_log_flags(const LogFlags& flags) {
  if (flags.args.size() == 1 && !flags.selector.empty())
    return Error(Code::bad_request,
                 "only a selector (-l) or a POD name is allowed\nSee 'coraclectl logs -h' for help and examples");
  if (flags.args.size() == 2 && !flags.selector.empty())
    return Error(Code::bad_request, "selectors and the all flag cannot be used when passing resource/name arguments");
  if (flags.args.size() > 2 || (flags.args.empty() && flags.selector.empty()))
    return Error(Code::bad_request,
                 "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the "
                 "logs command\nSee 'coraclectl logs -h' for help and examples");
  if (std::string fault = flags.since_time.empty() ? "" : fault_of_time(flags.since_time); !fault.empty())
    return Error(Code::bad_request, fault);
  if (!flags.since_time.empty() && flags.since != "0s" && flags.since != "0")
    return Error(Code::bad_request, "at most one of `sinceTime` or `sinceSeconds` may be specified");
  const bool names_container = flags.args.size() == 2;
  const std::string& container = names_container ? flags.args[1] : flags.container;
  if (flags.all_containers && !container.empty())
    return Error(Code::bad_request, "--all-containers=true should not be specified with container name " + container);
  if (names_container && flags.container_flag.count() > 0)
    return Error(Code::bad_request, "only one of -c or an inline [CONTAINER] arg is allowed");
  if (flags.limit_bytes < 0) return Error(Code::bad_request, "--limit-bytes must be greater than 0");
  if (flags.tail < -1) return Error(Code::bad_request, "--tail must be greater than or equal to -1");
  return {};
}

// The pods of the object that the line names: one of them, or all.
Result<std::vector<json::value>> logged_pods(Session& session, const LogFlags& flags) {
  if (flags.all_pods) return pods_named(session, flags.args, PodUse::logs, flags.patience);
  json::value pod = TRY(one_pod(session, flags.args, PodUse::logs, flags.patience));
  return std::vector{std::move(pod)};
}

Result<int> run_logs(Commands& commands, LogFlags flags) {
  TRY(check_log_flags(flags));
  // The second word is a container behind whatever word: "logs job x" means the pod "job".
  if (flags.args.size() == 2) flags.container = flags.args[1], flags.args.resize(1);
  flags.patience = TRY(parse_timeout(flags.running_timeout).wrap("--pod-running-timeout"));
  if (flags.patience.count() <= 0) return Error(Code::bad_request, "--pod-running-timeout must be higher than zero");
  if (flags.all_pods) flags.prefix = true;
  Session* session = TRY(commands.session());
  auto span = TRY(parse_timeout(flags.since).wrap("--since"));
  if (span.count() > 0) flags.since_seconds = (span.count() + 500) / 1000;  // as Go rounds; 0: no limit
  std::vector<json::value> pods;
  if (!flags.selector.empty()) {
    pods = TRY(pods_by_selector(*session, session->ns(), flags.selector));
    if (pods.empty()) {  // not an error, as with get
      std::fprintf(stderr, "No resources found in %s namespace.\n", session->ns().c_str());
      return 0;
    }
    if (flags.tail < 0 && flags.tail_flag.count() == 0) flags.tail = 10;
  } else {
    auto named = logged_pods(*session, flags);
    if (!named && named.error().details() && named.error().code() == Code::not_found)  // said here as kubectl says it
      return Error(Code::not_found,
                   "error from server (NotFound): " + named.error().text() + " in namespace " + coracle::quoted(session->ns()));
    pods = TRY(std::move(named));
  }
  std::vector<Stream> streams;
  for (const auto& pod : pods) {
    std::string name(metadata_of(pod).name());
    if (flags.all_containers) {
      for (const auto& container : containers_of(pod)) streams.push_back({name, container});
    } else {
      view::Container container = TRY(choose_log_container(pod, flags.container, flags.all_pods));
      streams.push_back({name, std::string(container.name())});
    }
  }
  if (!flags.follow || streams.size() <= 1) {
    for (const auto& stream : streams) TRY(show_log(*session, flags, stream, true));
    return 0;
  }
  if (int64_t(streams.size()) > flags.max_requests)
    return Error(Code::bad_request, "you are attempting to follow " + std::to_string(streams.size()) +
                                        " log streams, but maximum allowed concurrency is " + std::to_string(flags.max_requests) +
                                        ", use --max-log-requests to increase the limit");
  std::vector<Result<void>> results(streams.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < streams.size(); ++i)
      threads.push_back(start_thread("logs", [&, i] { results[i] = show_log(*session, flags, streams[i], false); }));
  }
  for (auto& result : results) TRY(std::move(result));
  return 0;
}

}  // namespace

void add_logs(Commands& commands) {
  auto flags = std::make_shared<LogFlags>();
  Command logs = commands.add("logs", "Show what containers wrote");
  logs.add_option("args", flags->args, "POD [CONTAINER], or deployment/NAME, job/NAME, ...");
  flags->container_flag = logs.add_option("-c,--container", flags->container, "the container");
  logs.add_option("-l,--selector", flags->selector, "of all pods with these labels");
  logs.add_option("--since", flags->since, "only what is newer than this: 10s, 5m, 1h").as_duration();
  logs.add_option("--since-time", flags->since_time, "only what is newer than this RFC 3339 time");
  flags->tail_flag = logs.add_option("--tail", flags->tail, "only the last lines; -1: all, or 10 of each with a selector");
  logs.add_option("--limit-bytes", flags->limit_bytes, "no more than this");
  logs.add_flag("-f,--follow", flags->follow, "go on as more is written");
  logs.add_flag("-p,--previous", flags->previous, "of the container before its last restart");
  logs.add_flag("--timestamps", flags->timestamps, "with the time of each line");
  logs.add_flag("--all-containers", flags->all_containers, "of all containers of the pod");
  logs.add_flag("--prefix", flags->prefix, "say where each line comes from");
  logs.add_flag("--ignore-errors", flags->ignore_errors, "go on when one of several fails");
  logs.add_flag("--all-pods", flags->all_pods, "of all pods of the object, with --prefix");
  logs.add_option("--max-log-requests", flags->max_requests, "with -f: no more streams than this");
  logs.add_option("--pod-running-timeout", flags->running_timeout, "how long to wait until the object has a pod").as_duration();
  logs.add_flag("--insecure-skip-tls-verify-backend", flags->skip_backend_tls, "the server trusts any node that has the log");
  commands.on(logs, [&commands, flags] { return run_logs(commands, *flags); });
}

}  // namespace coracle::ctl
