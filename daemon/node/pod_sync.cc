// SPDX-License-Identifier: Apache-2.0
// Gathers the state of one pod and reports its status. See pod_sync.h.
#include "daemon/node/pod_sync.h"

#include "daemon/node/admit.h"
#include "daemon/node/container_text.h"
#include "daemon/node/resources.h"
#include "daemon/node/status.h"
#include "daemon/node/stream/log_reader.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/selector.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr size_t kTerminationMessageMax = 4096, kTerminationLogMax = 2048;
constexpr int64_t kTerminationLogLines = 80;

std::string field_path(const ContainerRef& container) {
  const char* list = container.role == Role::main        ? "spec.containers{"
                     : container.role == Role::ephemeral ? "spec.ephemeralContainers{"
                                                         : "spec.initContainers{";
  return list + std::string(container.name) + "}";
}

constexpr const char* kHeldBack = "WaitingForOthers";
constexpr const char* kEvicted = "Evicted";
constexpr int64_t kEvictionGraceSeconds = 1;  // kubelet's, for a pod over its limit

bool says_ready(const json::object& status) {
  for (view::PodCondition condition : view::PodStatus(status).conditions())
    if (condition.type() == "Ready") return condition.status() == "True";
  return false;
}

SteadyTime steady_of(WallTime when, const Clock& clock) {
  return clock.steady() + std::chrono::duration_cast<SteadyTime::duration>(when - clock.now());
}

// A substitute object for a pod of which only the sandbox is left: enough to terminate it.
Result<ObjectPtr> object_of(const SandboxMark& mark, const runtime::SandboxState& sandbox) {
  json::array containers;
  for (const auto& state : sandbox.containers) {
    std::string name = ContainerMark::from_text(state.metadata).name;
    bool seen =
        std::any_of(containers.begin(), containers.end(), [&](const auto& c) { return view::Container(c).name() == name; });
    if (!name.empty() && !seen) containers.push_back(json::object{{"name", name}});
  }
  json::object metadata{{"namespace", mark.pod.ns}, {"name", mark.pod.name}, {"uid", mark.uid}};
  json::object spec{{"containers", std::move(containers)}, {"terminationGracePeriodSeconds", mark.grace_seconds}};
  return Object::make(
      kPod, json::object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}});
}

// A pod that was removed from the API without waiting for this node is terminated at once, because its name, ports or files may
// be needed now.
Result<ObjectPtr> deleted_by_force(const Object& pod) {
  json::value left = pod.json();
  make(left, "metadata.deletionGracePeriodSeconds") = 0;
  return Object::make(kPod, std::move(left));
}

// The pod was started by an earlier daemon version without user namespaces: it keeps the host's users until its next sandbox.
Result<ObjectPtr> with_host_users(const Object& pod) {
  json::value left = pod.json();
  make(left, "spec.hostUsers") = true;
  return Object::make(kPod, std::move(left));
}

}  // namespace

std::string hook_name(const ContainerRecord& record, const char* hook) { return record.id() + " " + hook; }

Result<Outcome> PodSync::run() {
  bool prepared = TRY(prepare());
  if (!prepared) return Outcome{};
  TRY(look());
  note_released();
  if (waits_for_predecessor()) return Outcome{};
  tell_refused();
  weigh();
  take_reports();
  admit();
  apply_probe_results();
  shorten_grace();
  refresh_volumes();
  wait_for_others();
  wait_for_rules();
  Plan plan = make_plan(observed_pod(record_, pod(), desired_.gone, seams_.clock.steady(), seams_.node_ends_by(pod())));
  set_phase_from_plan(plan);
  auto applied = apply(plan);
  if (forgotten_) return Outcome{};
  if (acted_) {
    TRY(look());
    apply_probe_results();
  }
  note_back_offs(plan);
  TRY(write_status().wrap("write status"));
  if (!applied && !waits_) return applied.take_error();
  if (plan.again) again_at(*plan.again);
  if (entry_.volumes_refresh_at && record_.sandbox == SandboxFact::alive)
    again_at(steady_of(*entry_.volumes_refresh_at, seams_.clock));
  if (!again_) return Outcome{};
  return Outcome{std::max(std::chrono::nanoseconds(*again_ - seams_.clock.steady()), std::chrono::nanoseconds(0))};
}

// Makes sure that there is a pod object, and restores the known state of the pod.
Result<bool> PodSync::prepare() {
  bool own = desired_.object != nullptr;
  if (!own) {
    auto sandbox = seams_.runtime.sandbox(uid_);
    if (!sandbox) {
      seams_.table.erase(uid_);
      worker_.drop(uid_);
      if (desired_.adopted_as) wake_successors(*desired_.adopted_as);
      return false;
    }
    SandboxMark mark = SandboxMark::from_text(sandbox->metadata);
    if (mark.uid.empty()) mark = {Key{"unknown", uid_}, uid_, "", 0, false, false, 0};
    desired_.object = TRY(object_of(mark, *sandbox));
  }
  if (desired_.gone && !desired_.is_static && own) desired_.object = TRY(deleted_by_force(*desired_.object));
  record_.uid = uid_;
  record_.key = desired_.object->key();
  paths_ = TRY(paths_of(seams_.config, record_.key, uid_));
  ObjectPtr known = api();
  if (!std::exchange(entry_.looked, true)) restore_status();
  adopt_status(record_, known ? known->json() : pod(), seams_.clock);
  if (!record_.start_time) record_.start_time = seams_.clock.now();
  if (view::PodSpec spec = view::Pod(pod()).spec(); spec.has_active_deadline_seconds())
    record_.active_deadline = steady_of(*record_.start_time + bounded_seconds(spec.active_deadline_seconds()), seams_.clock);
  return true;
}

// Records the pod's CPU weight, also for an adopted pod. A new pod is recorded before it starts.
void PodSync::weigh() {
  if (record_.sandbox == SandboxFact::alive && !std::exchange(entry_.weighed, true)) worker_.class_weights_.note(uid_, pod());
}

// Static pods with the same name would conflict over ports, and a node of their size has no capacity for both.
bool PodSync::waits_for_predecessor() const {
  if (!desired_.is_static || desired_.gone || record_.sandbox != SandboxFact::absent) return false;
  auto all = seams_.table.static_pods_of(record_.key);
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) { return entry.first != uid_ && entry.second.gone; });
}

// Call when a static pod has ended and is no longer in the table.
void PodSync::wake_successors(const Key& name) const {
  for (const auto& [uid, successor] : seams_.table.static_pods_of(name)) seams_.look_again(uid);
}

// An ended pod has its status on the disk, in case the API had not stored it before a crash.
void PodSync::restore_status() {
  auto text = sys::read_file(paths_.state + "/status.json");
  if (!text) return;
  auto status = parse_json(*text);
  if (!status) return;
  json::value left = pod();
  make(left, "status") = *std::move(status);
  adopt_status(record_, left, seams_.clock);
  // It was written before the volumes were released.
  record_.released =
      !sys::exists(paths_.state + "/volumes") && !sys::exists(paths_.state + "/shm") && !sys::exists(paths_.memory);
}

void PodSync::note_released() {
  const bool is_released = record_.released && record_.sandbox == SandboxFact::absent;
  if (is_released == desired_.released) return;
  desired_.released = is_released;
  seams_.table.change_existing(uid_, [&](RestingPod& pod) { pod.released = is_released; });
}

Result<void> PodSync::look() {
  auto found = seams_.runtime.sandbox(uid_);
  if (!found && found.error().code() != Code::not_found) return found.take_error().wrap("look at the sandbox");
  runtime::SandboxState sandbox;
  if (found) sandbox = *std::move(found);
  record_.sandbox = !found ? SandboxFact::absent : sandbox.alive ? SandboxFact::alive : SandboxFact::dead;
  const bool has_host_users = SandboxMark::from_text(sandbox.metadata).first_id == 0;
  if (record_.sandbox == SandboxFact::alive && has_own_users(pod()) && has_host_users)
    desired_.object = TRY(with_host_users(*desired_.object));
  const auto attempts = attempts_in(sandbox);
  const Attempts none;
  for (auto& container : record_.containers) {
    auto there = attempts.find(container.name);
    look_at(container, there == attempts.end() ? none : there->second);
  }
  if (desired_.lost_network) {
    seams_.table.change_existing(uid_, [](RestingPod& pod) { pod.lost_network = false; });
    record_.network_known = false;
  }
  if (record_.sandbox == SandboxFact::alive && !record_.network_known) TRY(attach_network());
  return {};
}

std::map<std::string, PodSync::Attempts, std::less<>> PodSync::attempts_in(const runtime::SandboxState& sandbox) {
  std::map<std::string, Attempts, std::less<>> found;
  for (const auto& state : sandbox.containers) {
    ContainerMark mark = ContainerMark::from_text(state.metadata);
    Attempts& its = found[mark.name];
    if (its.newest && mark.attempt < its.newest_mark.attempt) {
      its.before = &state;
      continue;
    }
    its.before = its.newest;
    its.newest = &state;
    its.newest_mark = std::move(mark);
  }
  return found;
}

void PodSync::look_at(ContainerRecord& container, const Attempts& found) {
  const auto& [newest, before, newest_mark] = found;
  bool alive = record_.sandbox == SandboxFact::alive;
  auto failed = entry_.start_failed.find(container.name);
  if (failed != entry_.start_failed.end() && failed->second == container.attempt) {
    container.running = false;  // this attempt did not start; the runtime's state is of an earlier one
    container.in_sandbox = alive;
    return;
  }
  container.in_sandbox = alive && newest;
  container.running = alive && newest && newest->running;
  if (!newest) {
    if (container.attempt >= 0 && !container.terminated)
      note_lost(container, 137, "ContainerStatusUnknown", "The container could not be located when the pod was looked at");
    return;
  }
  if (newest_mark.attempt > container.attempt) container.terminated.reset();
  container.attempt = newest_mark.attempt;
  container.mark = newest_mark;
  container.started_at = newest->started;
  if (container.running) {
    container.terminated.reset();
  } else if (!container.terminated) {
    if (newest->exit) note_end(container, *newest);
    else note_lost(container, 255, "Unknown", "");
  }
  if (!container.last && before && before->exit) {
    ContainerRecord earlier(container.name);
    earlier.mark = ContainerMark::from_text(before->metadata);
    earlier.attempt = earlier.mark.attempt;
    note_end(earlier, *before);
    container.last = std::move(earlier.terminated);
  }
}

void PodSync::note_end(ContainerRecord& container, const runtime::ContainerState& state) {
  const runtime::ExitStatus& exit = *state.exit;
  json::object ended{{"exitCode", exit.exit_code}};
  ended["reason"] = exit.oom_killed ? "OOMKilled" : exit.exit_code == 0 ? "Completed" : "Error";
  if (std::string message = termination_message(container, exit.exit_code); !message.empty()) ended["message"] = message;
  ended["startedAt"] = format_time(exit.started);
  ended["finishedAt"] = format_time(exit.finished);
  ended["containerID"] = container_id(record_, container);
  container.terminated = std::move(ended);
  // On the steady clock, so that a change of the wall clock does not prolong a back-off.
  auto ago = std::clamp<WallTime::duration>(seams_.clock.now() - exit.finished, WallTime::duration(0), BackOff::kForgottenAfter);
  container.ended_at = seams_.clock.steady() - ago;
  container.stopping.reset();
  container.ailment = Ailment::none;
  seams_.probes.forget(uid_, container.id());
}

void PodSync::note_lost(ContainerRecord& container, int exit_code, std::string reason, std::string message) {
  json::object ended{{"exitCode", exit_code}, {"reason", std::move(reason)}};
  if (!message.empty()) ended["message"] = std::move(message);
  if (container.started_at != WallTime()) ended["startedAt"] = format_time(container.started_at);
  ended["finishedAt"] = format_time(seams_.clock.now());
  ended["containerID"] = container_id(record_, container);
  container.terminated = std::move(ended);
  container.ended_at = seams_.clock.steady();
  container.stopping.reset();
  container.ailment = Ailment::none;
  // It did not fail itself, the machine or its pause process did: it restarts at once.
  container.back_off.reset();
}

// The content of a container's termination log or, if its terminationMessagePolicy requests that, the end of its log.
std::string PodSync::termination_message(const ContainerRecord& container, int exit_code) const {
  std::string file = paths_.container(container.name) + "/" + std::to_string(container.attempt) + "-message";
  if (std::string text = end_of_file(file, kTerminationMessageMax); !text.empty()) return as_utf8(text);
  if (container.mark.termination_policy != "FallbackToLogsOnError" || exit_code == 0) return "";
  return as_utf8(last_lines(paths_.log(container.name, container.attempt), kTerminationLogLines, kTerminationLogMax));
}

void PodSync::take_reports() {
  Reports reports = worker_.reports_.with([&](auto& all) {
    auto found = all.find(uid_);
    return found == all.end() ? Reports() : std::move(found->second);
  });
  for (auto& container : record_.containers) {
    if (auto hook = reports.hooks.find(hook_name(container, "postStart")); hook != reports.hooks.end()) {
      container.post_start = hook->second;
      if (hook->second.state == HookState::failed) {
        container.ailment = Ailment::post_start;
        container.ailment_text = hook->second.text;
      }
    }
    if (auto hook = reports.hooks.find(hook_name(container, "preStop")); hook != reports.hooks.end()) {
      container.pre_stop = hook->second;
      if (hook->second.state == HookState::failed)
        event(true, "FailedPreStopHook", "PreStopHook failed: " + hook->second.text, containers().find(container.name));
    }
  }
  for (const auto& [name, pull] : reports.pulls) take_pull(name, pull);
  if (!reports.evicted.empty() && record_.verdict == Verdict::none && !deleting()) end_as_evicted(std::move(reports.evicted));
}

void PodSync::end_as_evicted(std::string why) {
  event(true, kEvicted, why);
  record_.verdict = Verdict::failed;
  record_.verdict_reason = kEvicted;
  record_.verdict_message = std::move(why);
  record_.end_grace_seconds = kEvictionGraceSeconds;
}

// Copies the probe results of running containers to the record.
void PodSync::apply_probe_results() {
  for (const auto& ref : containers().all()) {
    ContainerRecord* container = record_.find(ref.name);
    if (!container || !container->running) continue;
    bool hook_done = container->post_start.state == HookState::none || container->post_start.state == HookState::done;
    if (!hook_done) {
      container->started = container->ready = false;
      continue;
    }
    view::Container spec(*ref.spec);
    bool probed = spec.has_startup_probe() || spec.has_liveness_probe() || spec.has_readiness_probe();
    if (!probed) {
      container->started = container->ready = true;
      continue;
    }
    std::string address = record_.ips.empty() ? std::string() : record_.ips.front();
    if (!seams_.probes.watches(uid_, container->id()))
      seams_.probes.watch({uid_, container->name, container->id(), *ref.spec, address,
                           steady_of(container->started_at, seams_.clock), container->started, container->ready});
    ProbeVerdict verdict = seams_.probes.verdict(uid_, container->id());
    container->started = verdict.startup_passed;
    container->ready = verdict.startup_passed && verdict.ready;
    // Of a refused pod, what is ended would not be started again: a container that is not well is better than none.
    if (verdict.failed && container->ailment == Ailment::none && !desired_.refused) {
      container->ailment = *verdict.failed == ProbeKind::startup ? Ailment::startup_probe : Ailment::liveness_probe;
      container->ailment_text = verdict.text;
    }
  }
}

// Admits a pod that is new on this node; running pods are not checked again, nor is one that an earlier version started.
void PodSync::admit() {
  if (desired_.admitted) return;
  ObjectPtr known = api();
  bool known_before =
      record_.sandbox != SandboxFact::absent || desired_.refused || (known && !view::Pod(*known).status().start_time().empty());
  if (record_.verdict == Verdict::none && !deleting() && !known_before) {
    ObjectPtr node = seams_.node ? seams_.node() : nullptr;
    auto refusal =
        refuse_pod(*desired_.object, {seams_.table.admitted_beside(uid_), seams_.allocatable(), node.get(), desired_.is_static},
                   seams_.config);
    if (refusal) {
      record_.verdict = Verdict::failed;
      record_.verdict_reason = refusal->reason;
      record_.verdict_message = "Pod was rejected: " + refusal->message;
      event(true, refusal->reason, refusal->message);
    }
  }
  if (record_.verdict == Verdict::none) {
    desired_.admitted = true;
    seams_.table.change_existing(uid_, [](RestingPod& pod) { pod.admitted = true; });
  }
}

// A later deletion request may shorten a termination that has begun.
void PodSync::shorten_grace() {
  if (!deleting()) return;
  SteadyTime latest = seams_.clock.steady() + bounded_seconds(std::max<int64_t>(grace_seconds(pod()), 1));
  if (record_.end_deadline) record_.end_deadline = std::min(*record_.end_deadline, latest);
  for (auto& container : record_.containers)
    if (container.stopping) container.stopping->deadline = std::min(container.stopping->deadline, latest);
}

void PodSync::set_phase_from_plan(const Plan& plan) {
  record_.end_deadline = plan.end_deadline;
  record_.initialized = plan.initialized || (record_.initialized && (plan.verdict != Verdict::none || deleting()));
  if (record_.verdict != Verdict::none || plan.verdict == Verdict::none) return;
  record_.verdict = plan.verdict;
  if (plan.ended_with_node && plan.verdict == Verdict::failed) {
    record_.verdict_reason = "Terminated";
    record_.verdict_message = "Pod was terminated in response to imminent node shutdown.";
  }
  if (!plan.past_deadline) return;
  record_.verdict_reason = "DeadlineExceeded";
  record_.verdict_message = "Pod was active on the node longer than the specified deadline";
  event(false, "DeadlineExceeded", record_.verdict_message);
}

// Sets the waiting reason of containers in back-off; a new back-off is an event.
void PodSync::note_back_offs(const Plan& plan) {
  for (const auto& name : plan.backed_off) {
    ContainerRecord* container = record_.find(name);
    const ContainerRef* ref = containers().find(name);
    if (!container || !ref) continue;
    if (container->waiting_reason != "CrashLoopBackOff")
      event(true, "BackOff", "Back-off restarting failed container " + name + " in pod " + pod_text(), ref);
    container->waiting_reason = "CrashLoopBackOff";
    container->waiting_message =
        "back-off " + duration_text(container->back_off.wait()) + " restarting failed container=" + name + " pod=" + pod_text();
  }
}

// ---- report ----

// Pods that were bound before a reboot have passed their scheduling gate already, so they wait here.
void PodSync::wait_for_others() {
  const bool alive = record_.sandbox == SandboxFact::alive;
  record_.held_back = desired_.refused && !alive && !deleting() && record_.verdict == Verdict::none;
  if (record_.held_back) {  // for good: not even its sandbox is replaced
    for (auto& container : record_.containers) wait_with(container, kConfigError, *desired_.refused);
    return seams_.start_order.let_go(uid_);
  }
  bool may_begin = !alive && !deleting() && record_.verdict == Verdict::none && !record_.released;
  if (!seams_.held_back || !may_begin) return seams_.start_order.let_go(uid_);
  seams_.start_order.hold(uid_, record_.key.ns);
  std::string why = seams_.held_back(*desired_.object);
  if (why.empty()) {
    for (auto& container : record_.containers)
      if (container.waiting_reason == kHeldBack) wait_with(container, "", "");
    return seams_.start_order.let_go(uid_);
  }
  record_.held_back = true;
  bool told = !record_.containers.empty() && record_.containers.front().waiting_message == why;
  if (!told) event(false, kHeldBack, why);
  for (auto& container : record_.containers) wait_with(container, kHeldBack, why);
}

// Delays the termination of a server until the Service rules send it no new connections, so that a rollout loses no request.
// Forced deletion does not wait.
void PodSync::wait_for_rules() {
  record_.drain_until.reset();
  bool ends = deleting() && !desired_.gone && record_.sandbox == SandboxFact::alive;
  bool may_wait = ends && seams_.network.serves && !record_.ips.empty() && !view::Pod(pod()).spec().host_network();
  if (!may_wait) return;
  SteadyTime now = seams_.clock.steady();
  if (!entry_.drain_deadline) {
    entry_.drain_deadline = now + std::min<std::chrono::seconds>(kDrainMax, bounded_seconds(grace_seconds(pod())));
    bool was_ready =
        std::all_of(record_.containers.begin(), record_.containers.end(), [](const auto& c) { return c.ready || !c.running; });
    entry_.drain_from = was_ready ? now + kDrainMin : now;
    if (was_ready && entry_.ready_since && *entry_.ready_since + kRulesDelayMax > *entry_.drain_from && is_selected())
      entry_.drain_from = *entry_.ready_since + kRulesDelayMax;
  }
  if (now >= *entry_.drain_deadline) return;
  seams_.draining.with([&](auto& draining) { draining.insert(uid_); });  // before asking, so that no change in between is missed
  if (seams_.network.serves(record_.ips.front())) {
    record_.drain_until = entry_.drain_deadline;
  } else if (now < *entry_.drain_from) {
    record_.drain_until = entry_.drain_from;
  } else {
    entry_.drain_deadline = now;  // termination begins; later rules do not matter
    seams_.draining.with([&](auto& draining) { draining.erase(uid_); });
  }
}

bool PodSync::is_selected() const {
  std::vector<ObjectPtr> services = seams_.services.list(record_.key.ns);
  return std::any_of(services.begin(), services.end(), [&](const ObjectPtr& service) {
    const json::object& selector = view::Service(*service).spec().selector();
    return !selector.empty() && LabelSelector::from_map(selector).matches(*desired_.object);
  });
}

Result<void> PodSync::write_status() {
  ObjectPtr known = api();
  if (!known || desired_.gone) return {};
  json::object wanted = make_status(record_, known->json(), {seams_.config.node_ips, deleting(), seams_.clock.now()});
  bool ready = says_ready(wanted);
  if (!ready) entry_.ready_since.reset();
  else if (!entry_.ready_since) entry_.ready_since = seams_.clock.steady();
  if (seams_.start_order.note(uid_, ready)) seams_.readiness_changed(record_.key.ns);
  auto patch = status_patch(known->json(), wanted);
  if (!patch) return {};
  auto written = seams_.client.patch(kPod, known->key(), PatchType::strategic, *patch,
                                     {.subresource = "status", .field_manager = "coracled"});
  if (written) {
    entry_.written = (*written)->at_rest();
    return {};
  }
  // Deleted or recreated: the informer will report it.
  bool another = written.error().code() == Code::not_found || written.error().code() == Code::conflict;
  if (another) return {};
  return written.take_error();
}

void PodSync::tell_unenforceable() {
  if (std::exchange(entry_.told_unenforceable, true)) return;
  runtime::Enforcement enforcement = seams_.runtime.enforcement();
  if (std::string missing = unenforceable(pod(), enforcement); !missing.empty())
    event(true, "LimitsNotEnforced", "This machine cannot hold the pod's limits of " + missing + ": " + enforcement.missing);
}

void PodSync::tell_refused() {
  if (!desired_.refused || deleting() || std::exchange(entry_.told_refused, true)) return;
  event(true, "FailedValidation", *desired_.refused);
}

void PodSync::event(bool warning, std::string_view reason, std::string message, const ContainerRef* container) const {
  const ObjectPtr about = desired_.told();
  if (!about) return;
  std::string path = container ? field_path(*container) : std::string();
  if (warning) seams_.events.warning(*about, reason, std::move(message), std::move(path));
  else seams_.events.normal(*about, reason, std::move(message), std::move(path));
}

Lookup PodSync::lookup() const {
  const std::string& ns = record_.key.ns;
  Lookup made;
  made.config_map = [this, ns](std::string_view name) { return seams_.config_maps.get({ns, std::string(name)}); };
  made.secret = [this, ns](std::string_view name) { return seams_.secrets.get({ns, std::string(name)}); };
  made.file = [this](std::string_view volume, const std::string& path) {
    return worker_.volumes_.read_file(pod(), paths_, volume, path);
  };
  made.storage = seams_.storage;
  made.node = seams_.node;
  made.services = seams_.services.list(ns);
  if (ns != "default")
    if (ObjectPtr api_server = seams_.services.get({"default", "kubernetes"})) made.services.push_back(api_server);
  return made;
}

std::string duration_text(std::chrono::seconds span) {  // in Go's format: 10s, 1m20s, 5m0s
  if (span < std::chrono::minutes(1)) return std::to_string(span.count()) + "s";
  return std::to_string(span.count() / 60) + "m" + std::to_string(span.count() % 60) + "s";
}

}  // namespace coracle::node
