// SPDX-License-Identifier: Apache-2.0
// A pod's life cycle without a container. See pod_life.h.
#include "tests/hollow/pod_life.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/meta/conditions.h"

namespace coracle::hollow {
namespace {

constexpr std::string_view kPrefix = "hollow/";
constexpr int kKilled = 137;
constexpr std::chrono::seconds kRestartDelay{1}, kRestartDelayMax{30};

std::optional<std::chrono::milliseconds> seconds_of(const Object& pod, std::string_view name) {
  auto text = std::string(pod.annotation(std::string(kPrefix) + std::string(name)));
  if (text.empty()) return std::nullopt;
  return std::chrono::milliseconds(int64_t(1000 * std::strtod(text.c_str(), nullptr)));
}

int exit_code(const Object& pod, std::string_view container) {
  std::string_view own = pod.annotation("hollow/exit-code." + std::string(container));
  return parse_number<int>(own.empty() ? pod.annotation("hollow/exit-code") : own).value_or(0);
}

bool any_fails(const Object& pod) {
  const json::array& containers = get_array(pod.json(), "spec.containers");
  return std::any_of(containers.begin(), containers.end(),
                     [&](const json::value& one) { return exit_code(pod, get_string(one, "name")) != 0; });
}

bool is_finished(const Object& pod) {
  std::string_view phase = get_string(pod.json(), "status.phase");
  return phase == "Succeeded" || phase == "Failed";
}

json::object condition(const Object& pod, std::string_view type, bool value, WallTime now, std::string_view reason = {}) {
  json::object made{{"type", type}, {"status", value ? "True" : "False"}, {"lastTransitionTime", format_time(now)}};
  if (int64_t generation = get_int(pod.json(), "metadata.generation")) made["observedGeneration"] = generation;
  if (!reason.empty()) made["reason"] = reason;
  const json::value* before = find_condition(pod.json(), type);
  if (before && get_string(*before, "status") == get_string(made, "status"))
    made["lastTransitionTime"] = *find(*before, "lastTransitionTime");
  return made;
}

}  // namespace

void PodLife::begin(const Object& pod, const Clock& clock) {
  since_ = clock.steady();
  step_ = Step::waiting;
  if (get_string(pod.json(), "status.phase") != "Running") return;
  step_ = Step::running;  // it ran before this process started
  started_ = parse_time(get_string(pod.json(), "status.startTime")).value_or(clock.now());
}

// The pod's current state; sets again_ if time alone changes it.
void PodLife::go_on(const Object& pod, const Clock& clock) {
  SteadyTime now = clock.steady();
  again_.reset();
  if (step_ == Step::waiting) {
    auto restart = std::min<std::chrono::milliseconds>(kRestartDelay * (1 << std::min(restarts_, 5)), kRestartDelayMax);
    auto delay = restarts_ ? restart : seconds_of(pod, "start-after").value_or(place_.start_delay);
    if (now < since_ + delay) {
      again_ = since_ + delay;
      return;
    }
    step_ = Step::running, since_ = now, started_ = clock.now();
  }
  if (step_ != Step::running) return;
  bool ends = !pod.annotation("hollow/exit-code").empty() || any_fails(pod);
  auto run_for = seconds_of(pod, "run-for");
  if (!run_for && ends) run_for.emplace(0);
  if (run_for && now >= since_ + *run_for) {
    std::string_view policy = get_string(pod.json(), "spec.restartPolicy");
    bool restart = policy == "Always" || (policy == "OnFailure" && any_fails(pod));
    step_ = restart ? Step::waiting : Step::ended;
    since_ = now, finished_ = clock.now();
    restarts_ += restart;
    if (restart) again_ = now;
    return;
  }
  if (run_for) again_ = since_ + *run_for;
  auto ready_after = seconds_of(pod, "ready-after").value_or(std::chrono::milliseconds(0));
  if (now < since_ + ready_after && (!again_ || since_ + ready_after < *again_)) again_ = since_ + ready_after;
}

bool PodLife::stopped(const Object& pod, SteadyTime now) {
  if (!stop_at_) {
    std::chrono::milliseconds grace = std::chrono::seconds(get_int(pod.json(), "metadata.deletionGracePeriodSeconds"));
    stop_at_ = now + std::min(grace, seconds_of(pod, "stop-after").value_or(std::chrono::milliseconds(0)));
  }
  return now >= *stop_at_;
}

Plan PodLife::look(const Object& pod, const Clock& clock) {
  bool finished_before = step_ == Step::unseen && is_finished(pod);
  if (step_ == Step::unseen && !finished_before) begin(pod, clock);
  if (finished_before) return {{}, {}, pod.deleting()};
  if (pod.deleting() && stopped(pod, clock.steady())) {
    if (step_ != Step::ended) step_ = Step::ended, killed_ = true, finished_ = clock.now();
    again_.reset();
  } else {
    go_on(pod, clock);
    if (stop_at_ && (!again_ || *stop_at_ < *again_)) again_ = stop_at_;
  }
  ready_ = containers_ready(pod, clock.steady());
  bool gone = pod.deleting() && step_ == Step::ended;
  return {status(pod, clock), again_, gone};
}

bool PodLife::containers_ready(const Object& pod, SteadyTime now) const {
  if (step_ != Step::running || pod.annotation("hollow/ready") == "false") return false;
  return now >= since_ + seconds_of(pod, "ready-after").value_or(std::chrono::milliseconds(0));
}

json::object PodLife::container_status(const Object& pod, const json::value& container, std::string_view role) const {
  std::string name(get_string(container, "name"));
  std::string id = "hollow://" + pod.uid() + "-" + name + "-" + std::to_string(restarts_);
  json::object made{{"name", name},
                    {"image", get_string(container, "image")},
                    {"imageID", ""},
                    {"restartCount", role == "init" ? 0 : restarts_},
                    {"lastState", json::object{}}};
  auto ended = [&](int code) {
    return json::object{{"terminated", json::object{{"exitCode", code},
                                                    {"reason", code ? "Error" : "Completed"},
                                                    {"startedAt", format_time(started_)},
                                                    {"finishedAt", format_time(finished_ == WallTime{} ? started_ : finished_)},
                                                    {"containerID", id}}}};
  };
  bool running = step_ == Step::running && role != "init";
  if (role == "init" && step_ != Step::waiting) {
    made["state"] = ended(0);
  } else if (running) {
    made["state"] = json::object{{"running", json::object{{"startedAt", format_time(started_)}}}};
  } else if (step_ == Step::waiting) {
    made["state"] = json::object{{"waiting", json::object{{"reason", restarts_ ? "CrashLoopBackOff" : "ContainerCreating"}}}};
  } else {
    made["state"] = ended(killed_ ? kKilled : exit_code(pod, name));
  }
  if (restarts_ && role != "init") made["lastState"] = ended(exit_code(pod, name));
  if (step_ != Step::waiting || restarts_) made["containerID"] = id;
  made["started"] = running;
  made["ready"] = role == "init" ? step_ != Step::waiting : role == "sidecar" ? running : ready_;
  return made;
}

json::array PodLife::conditions(const Object& pod, WallTime now) const {
  bool begun = step_ != Step::waiting || restarts_, over = step_ == Step::ended;
  bool failed = killed_ || any_fails(pod);
  std::string_view why = over ? (failed ? "PodFailed" : "PodCompleted") : "ContainersNotReady";
  bool gates = true;
  for (const json::value& gate : get_array(pod.json(), "spec.readinessGates")) {
    const json::value* found = find_condition(pod.json(), get_string(gate, "conditionType"));
    gates &= found && get_string(*found, "status") == "True";
  }
  json::array list;
  list.push_back(condition(pod, "PodReadyToStartContainers", begun && !over, now));
  list.push_back(condition(pod, "Initialized", begun, now, begun ? "" : "ContainersNotInitialized"));
  list.push_back(condition(pod, "ContainersReady", ready_, now, ready_ ? "" : why));
  list.push_back(condition(pod, "Ready", ready_ && gates, now, ready_ && gates ? "" : ready_ ? "ReadinessGatesNotReady" : why));
  return list;
}

json::object PodLife::status(const Object& pod, const Clock& clock) const {
  json::object status;
  bool begun = step_ != Step::waiting || restarts_;
  status["phase"] = !begun ? "Pending" : step_ != Step::ended ? "Running" : killed_ || any_fails(pod) ? "Failed" : "Succeeded";
  if (int64_t generation = get_int(pod.json(), "metadata.generation")) status["observedGeneration"] = generation;
  status["conditions"] = conditions(pod, clock.now());
  status["hostIP"] = place_.host_ip;
  status["hostIPs"] = json::array{json::object{{"ip", place_.host_ip}}};
  if (begun) {
    std::string ip = get_bool(pod.json(), "spec.hostNetwork") ? place_.host_ip : place_.pod_ip;
    status["podIP"] = ip;
    status["podIPs"] = json::array{json::object{{"ip", ip}}};
  }
  std::string_view since = get_string(pod.json(), "status.startTime");
  status["startTime"] = since.empty() ? format_time(clock.now()) : std::string(since);
  json::array init, main;
  for (const json::value& one : get_array(pod.json(), "spec.initContainers"))
    init.push_back(container_status(pod, one, get_string(one, "restartPolicy") == "Always" ? "sidecar" : "init"));
  for (const json::value& one : get_array(pod.json(), "spec.containers")) main.push_back(container_status(pod, one, "main"));
  if (!init.empty()) status["initContainerStatuses"] = std::move(init);
  status["containerStatuses"] = std::move(main);
  return status;
}

}  // namespace coracle::hollow
