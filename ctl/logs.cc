// SPDX-License-Identifier: Apache-2.0
// logs: prints the logs of a pod's containers, of the pods of a Deployment, ReplicaSet or Service, or of all pods that match a
// selector.
#include <mutex>
#include <thread>

#include "ctl/command.h"
#include "ctl/pods.h"
#include "ctl/wait.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"

namespace coracle::ctl {
namespace {

constexpr size_t kFollowsMax = 5;  // limit of streams followed at once, as kubectl's --max-log-requests

struct LogFlags {
  std::vector<std::string> args;
  std::string container, selector, since, since_time;
  int64_t tail = -1, limit_bytes = 0;
  bool follow = false, previous = false, timestamps = false, all_containers = false, prefix = false, ignore_errors = false;
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
  return request;
}

Result<void> copy(Session& session, const Request& request, const std::string& prefix) {
  static std::mutex whole_lines;  // several streams share the terminal; each writes whole lines
  std::string partial;
  TRY(session.stream(request, [&](std::string_view bytes) {
    if (prefix.empty()) {
      std::lock_guard lock(whole_lines);
      out(bytes);
      return true;
    }
    partial += bytes;
    for (size_t end; (end = partial.find('\n')) != partial.npos; partial.erase(0, end + 1)) {
      std::lock_guard lock(whole_lines);
      out(prefix + partial.substr(0, end + 1));
    }
    return true;
  }));
  if (partial.empty()) return {};
  std::lock_guard lock(whole_lines);
  out(prefix + partial + "\n");
  return {};
}

std::vector<std::string> containers_of(const json::value& pod) {
  std::vector<std::string> names;
  for (const char* list : {"spec.initContainers", "spec.containers"})
    for (const auto& container : get_array(pod, list)) names.emplace_back(get_string(container, "name"));
  return names;
}

Result<int> run_logs(Commands& commands, LogFlags flags) {
  Session* session = TRY(commands.session());
  if (!flags.since.empty()) {
    auto span = TRY(parse_timeout(flags.since).wrap("--since"));
    if (span.count() > 0) flags.since_time = format_time(system_clock().now() - span);  // 0: no limit
  }
  std::vector<json::value> pods;
  if (!flags.selector.empty()) {
    pods = TRY(pods_by_selector(*session, session->ns(), flags.selector));
    if (pods.empty()) {  // not an error, as with get
      std::fprintf(stderr, "No resources found in %s namespace.\n", session->ns().c_str());
      return 0;
    }
    if (flags.tail < 0) flags.tail = flags.follow ? -1 : 10;
  } else {
    if (flags.args.empty()) return Error(Code::bad_request, "expected POD or TYPE/NAME; see logs --help");
    if (flags.args.size() > 1 && flags.container.empty() && flags.args[0].find('/') == std::string::npos &&
        !schema::catalog().by_name(flags.args[0]))
      flags.container = flags.args[1], flags.args.resize(1);
    json::value pod = TRY(one_pod(*session, flags.args, true));
    pods.push_back(std::move(pod));
  }
  std::vector<Stream> streams;
  for (const auto& pod : pods) {
    std::string name(get_string(pod, "metadata.name"));
    if (!flags.container.empty()) {
      streams.push_back({name, flags.container});
    } else if (flags.all_containers) {
      for (const auto& container : containers_of(pod)) streams.push_back({name, container});
    } else {
      std::string container = default_container(pod);
      if (get_array(pod, "spec.containers").size() > 1 &&
          !find_keys(pod, {"metadata", "annotations", "kubectl.kubernetes.io/default-container"}))
        std::fprintf(stderr, "Defaulted container \"%s\" out of: %s\n", container.c_str(),
                     join(containers_of(pod), ", ").c_str());
      streams.push_back({name, container});
    }
  }
  auto prefix_of = [&](const Stream& stream) {
    return flags.prefix ? "[pod/" + stream.pod + "/" + stream.container + "] " : std::string();
  };
  if (!flags.follow || streams.size() <= 1) {
    for (const auto& stream : streams) {
      auto copied = copy(*session, log_request(*session, flags, stream), prefix_of(stream));
      if (!copied && !flags.ignore_errors) return copied.take_error();
    }
    return 0;
  }
  if (streams.size() > kFollowsMax)
    return Error(Code::bad_request, "you are attempting to follow " + std::to_string(streams.size()) +
                                        " log streams, but maximum allowed concurrency is " + std::to_string(kFollowsMax));
  std::vector<Result<void>> results(streams.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < streams.size(); ++i)
      threads.push_back(start_thread(
          "logs", [&, i] { results[i] = copy(*session, log_request(*session, flags, streams[i]), prefix_of(streams[i])); }));
  }
  for (auto& result : results)
    if (!result && !flags.ignore_errors) return result.take_error();
  return 0;
}

}  // namespace

void add_logs(Commands& commands) {
  auto flags = std::make_shared<LogFlags>();
  Command logs = commands.add("logs", "Show what containers wrote");
  logs.add_option("args", flags->args, "POD [CONTAINER], or deployment/NAME, job/NAME, ...");
  logs.add_option("-c,--container", flags->container, "the container");
  logs.add_option("-l,--selector", flags->selector, "of all pods with these labels");
  logs.add_option("--since", flags->since, "only what is newer than this: 10s, 5m, 1h");
  logs.add_option("--since-time", flags->since_time, "only what is newer than this RFC 3339 time");
  logs.add_option("--tail", flags->tail, "only the last lines");
  logs.add_option("--limit-bytes", flags->limit_bytes, "no more than this");
  logs.add_flag("-f,--follow", flags->follow, "go on as more is written");
  logs.add_flag("-p,--previous", flags->previous, "of the container before its last restart");
  logs.add_flag("--timestamps", flags->timestamps, "with the time of each line");
  logs.add_flag("--all-containers", flags->all_containers, "of all containers of the pod");
  logs.add_flag("--prefix", flags->prefix, "say where each line comes from");
  logs.add_flag("--ignore-errors", flags->ignore_errors, "go on when one of several fails");
  commands.on(logs, [&commands, flags] { return run_logs(commands, *flags); });
}

}  // namespace coracle::ctl
