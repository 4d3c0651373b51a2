// SPDX-License-Identifier: Apache-2.0
// Decides what becomes of one pod, and applies the plan. See pod_sync.h.
#include "daemon/node/pod_sync.h"

#include <algorithm>

#include "daemon/node/admit.h"
#include "daemon/node/status.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/selector.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr std::chrono::seconds kDrainMax{5};        // longest wait for the Service rules before termination
constexpr std::chrono::milliseconds kDrainMin{20};  // shortest wait if the pod was ready: it may be on its way into the rules
constexpr std::chrono::seconds kRulesDelayMax{1};   // longest time until a pod that has become ready is in the rules
constexpr const char* kHeldBack = "WaitingForOthers";

std::string duration_text(std::chrono::seconds span) {  // in Go's format: 10s, 1m20s, 5m0s
  if (span < std::chrono::minutes(1)) return std::to_string(span.count()) + "s";
  return std::to_string(span.count() / 60) + "m" + std::to_string(span.count() % 60) + "s";
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

}  // namespace

Result<Outcome> PodSync::run() {
  bool prepared = TRY(prepare());
  if (!prepared) return Outcome{};
  TRY(observer_.look());
  note_released();
  if (waits_for_predecessor()) return Outcome{};
  tell_refused();
  weigh();
  observer_.take_reports();
  admit();
  observer_.apply_probe_results();
  shorten_grace();
  volumes_.refresh();
  wait_for_others();
  wait_for_rules();
  Plan plan = make_plan(observed_pod(record_, pod(), desired_.gone, seams_.clock.steady(), seams_.node_ends_by(pod())));
  set_phase_from_plan(plan);
  auto applied = apply(plan);
  if (state_.forgotten) return Outcome{};
  if (acted_) {
    TRY(observer_.look());
    observer_.apply_probe_results();
  }
  note_back_offs(plan);
  TRY(write_status().wrap("write status"));
  if (!applied && !state_.waits) return applied.take_error();
  if (plan.again) again_at(*plan.again);
  if (entry_.volumes_refresh_at && record_.sandbox == SandboxFact::alive)
    again_at(steady_of(*entry_.volumes_refresh_at, seams_.clock));
  if (!state_.again) return Outcome{};
  return Outcome{std::max(std::chrono::nanoseconds(*state_.again - seams_.clock.steady()), std::chrono::nanoseconds(0))};
}

// Makes sure that there is a pod object, and restores the known state of the pod.
Result<bool> PodSync::prepare() {
  bool own = desired_.object != nullptr;
  if (!own) {
    auto sandbox = seams_.runtime.sandbox(uid_);
    if (!sandbox) {
      seams_.table.erase(uid_);
      drop();
      if (desired_.adopted_as) wake_successors(*desired_.adopted_as);
      return false;
    }
    SandboxMark mark = SandboxMark::from_text(sandbox->metadata);
    if (mark.uid.empty()) mark = {Key{"unknown", uid_}, uid_, "", 0, false, false, 0};
    desired_.object = TRY(object_of(mark, *sandbox));
    // Its manifest could not be read yet.
    if (!desired_.gone && !seams_.node_ends_by(desired_.object->json())) return false;
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

// Static pods with the same name would conflict over ports, and a node of their size has no capacity for both.
bool PodSync::waits_for_predecessor() const {
  if (!desired_.is_static || desired_.gone || record_.sandbox != SandboxFact::absent) return false;
  auto all = seams_.table.static_pods_of(record_.key);
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) { return entry.first != uid_ && entry.second.gone; });
}

void PodSync::tell_refused() {
  if (!desired_.refused || deleting() || std::exchange(entry_.told_refused, true)) return;
  event(true, "FailedValidation", *desired_.refused);
}

// Records the pod's CPU weight, also for an adopted pod. A new pod is recorded before it starts.
void PodSync::weigh() {
  if (record_.sandbox == SandboxFact::alive && !std::exchange(entry_.weighed, true)) class_weights_.note(uid_, pod());
}

// ---- decide ----

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

// ---- apply ----

Result<void> PodSync::apply(const Plan& plan) {
  for (const auto& step : plan.steps) TRY(apply(step));
  return {};
}

Result<void> PodSync::apply(const Step& step) {
  acted_ = true;
  switch (step.kind) {
    case StepKind::create_sandbox: return sandbox_.create();
    case StepKind::start: return start_.start(step.container);
    case StepKind::run_pre_stop:
    case StepKind::terminate:
    case StepKind::kill: return stop_.stop(step);
    case StepKind::discard_sandbox: return sandbox_.discard();
    case StepKind::stop_sandbox: return sandbox_.stop();
    case StepKind::release: return sandbox_.release();
    case StepKind::forget: return sandbox_.forget();
  }
  return {};
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

}  // namespace coracle::node
