// SPDX-License-Identifier: Apache-2.0
// Applies a plan: sandbox, network, volumes, termination, and release of a pod. See pod_sync.h.
#include "daemon/node/files.h"
#include "daemon/node/pod_sync.h"
#include "daemon/node/status.h"
#include "daemon/node/stream/log_links.h"
#include "runtime/base/log.h"
#include "runtime/base/signal_name.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

// A container that has already ended needs no signal.
Result<void> unless_ended(Result<void> result) {
  if (!result && (result.error().code() == Code::not_found || result.error().code() == Code::conflict)) return {};
  return result;
}

}  // namespace

Result<void> PodSync::apply(const Plan& plan) {
  for (const auto& step : plan.steps) TRY(apply(step));
  return {};
}

Result<void> PodSync::apply(const Step& step) {
  acted_ = true;
  switch (step.kind) {
    case StepKind::create_sandbox: return create_sandbox();
    case StepKind::start: return start(step.container);
    case StepKind::run_pre_stop:
    case StepKind::terminate:
    case StepKind::kill: return stop_container(step);
    case StepKind::discard_sandbox: return discard_sandbox();
    case StepKind::stop_sandbox: return stop_sandbox();
    case StepKind::release: return release();
    case StepKind::forget: return forget();
  }
  return {};
}

// ---- creation ----

Result<void> PodSync::create_sandbox() {
  tell_unenforceable();
  TRY(check_means());
  record_.released = false;
  note_released();
  TRY(prepare_volumes());
  auto first = TRY(first_id());
  SandboxMark mark{record_.key,
                   uid_,
                   format_time(seams_.clock.now()),
                   grace_seconds(pod()),
                   view::Pod(pod()).spec().host_network(),
                   desired_.is_static,
                   first.value_or(0)};
  auto spec = make_sandbox_spec(pod(), uid_, mark.to_text(), seams_.network.cluster_domain, seams_.config.pod_pids_max);
  if (first) spec.uid_mappings = spec.gid_mappings = {{0, *first, kPodIds}};
  worker_.class_weights_.note(uid_, pod());
  entry_.weighed = true;
  auto created = seams_.runtime.create_sandbox(spec);
  if (!created) {
    event(true, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + created.error().text());
    return std::move(created).wrap("create sandbox");
  }
  record_.sandbox = SandboxFact::alive;
  record_.network_known = false;
  auto attached = attach_network();
  if (attached) {
    for (auto& conflict : *attached) event(true, "HostPortConflict", std::move(conflict));
    return {};
  }
  event(true, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + attached.error().text());
  (void)seams_.runtime.remove_sandbox(uid_);  // a failure leaves the sandbox for the next sync, which discards it
  (void)seams_.network.detach(uid_);
  record_.sandbox = SandboxFact::absent;
  return attached.take_error();
}

// Checks for requirements that this node lacks: the pod then waits with an event and does not run without them.
Result<void> PodSync::check_means() {
  if (!view::Pod(pod()).spec().resource_claims().empty()) {
    Error why(Code::unsupported, "resource claims cannot be prepared: this node has no dynamic resource allocation");
    event(true, "FailedPrepareDynamicResources", "Failed to prepare dynamic resources: " + why.text());
    return why;
  }
  auto handler = check_runtime_class();
  if (handler) return {};
  event(true, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + handler.error().text());
  return std::move(handler).wrap("create sandbox");
}

Result<void> PodSync::check_runtime_class() {
  std::string name(view::Pod(pod()).spec().runtime_class_name());
  if (name.empty()) return {};
  auto found = seams_.client.get(kRuntimeClass, {"", name});
  if (!found && found.error().code() == Code::not_found)
    return Error(Code::not_found, "RuntimeClass " + coracle::quoted(name) + " not found");
  ObjectPtr runtime_class = TRY(std::move(found).wrap("look up RuntimeClass " + coracle::quoted(name)));
  std::string handler(view::RuntimeClass(*runtime_class).handler());
  if (is_runtime_handler(handler)) return {};
  return Error(Code::unsupported, "no runtime for " + coracle::quoted(handler) + " is configured");
}

// Returns the conflicts of the pod's host ports with programs of the machine.
Result<std::vector<std::string>> PodSync::attach_network() {
  Attachment attachment{seams_.config.node_ips};
  if (!view::Pod(pod()).spec().host_network()) {
    Fd network = TRY(seams_.runtime.network_namespace(uid_).wrap("open the network namespace"));
    attachment = TRY(seams_.network.attach(uid_, network, record_.key, host_ports(pod())).wrap("attach network"));
  }
  record_.ips = std::move(attachment.ips);
  record_.network_known = true;
  return std::move(attachment.conflicts);
}

Result<void> PodSync::prepare_volumes() {
  TRY(sys::make_directories(paths_.state, 0750));
  auto set_stale = [&](bool stale) { seams_.table.change_existing(uid_, [&](RestingPod& pod) { pod.stale_volumes = stale; }); };
  set_stale(false);  // before the sources are read: a later change marks them stale again
  auto first = TRY(first_id());
  const bool begins = record_.sandbox != SandboxFact::alive;
  VolumeResult result = worker_.volumes_.prepare(pod(), paths_, lookup(), identity(), begins, first.value_or(0));
  entry_.volumes_refresh_at = result.refresh_at;
  note_waiting(result);
  if (!result.failures.empty()) {
    set_stale(true);
    return Error(Code::unavailable, std::move(result.failures.front().text));
  }
  if (result.waits) return Error(Code::unavailable, "a server or a disk of its volumes has not answered yet");
  record_.volumes_ready = true;
  desired_.stale_volumes = false;
  return {};
}

void PodSync::note_waiting(const VolumeResult& result) {
  waits_ |= result.waits;
  note_mount_failures(result.failures, result.waits);
  if (result.is_slow) again_at(seams_.clock.steady() + kSlowTold);
}

// Before a container opens volumes that were prepared some time ago.
Result<void> PodSync::ask_places() {
  VolumeResult result = worker_.volumes_.ask_places(pod(), seams_.storage);
  note_waiting(result);
  if (!result.waits && result.failures.empty()) return {};
  return Error(Code::unavailable, "a disk of its volumes has not answered yet");
}

// Reports each failure once in kMountErrorTold, also if the next attempt is still under way. Objects have events; a path on the
// host must be polled.
void PodSync::note_mount_failures(const std::vector<MountFailure>& failures, bool waits) {
  const SteadyTime now = seams_.clock.steady();
  auto& told = entry_.mount_failures_told;
  if (failures.empty() && !waits) told.clear();
  std::erase_if(told, [&](const auto& each) { return now >= each.second + kMountErrorTold; });
  for (const MountFailure& failure : failures)
    if (told.emplace(failure.text, now).second) event(true, failure.reason, failure.text);
  if (failures.empty()) return;
  view::Range<view::Volume> volumes = view::Pod(pod()).spec().volumes();
  bool on_host = std::any_of(volumes.begin(), volumes.end(), [](view::Volume volume) {
    return !volume.host_path().type().empty() || !volume::claim_name("", volume.raw()).empty();
  });
  again_at(now + (on_host ? kHostPathRetry : kConfigErrorRetry));
  waits_ = true;
}

// The first id of the pod's range of host ids, if it has a user namespace.
Result<std::optional<uint32_t>> PodSync::first_id() {
  if (!has_own_users(pod())) return std::optional<uint32_t>();
  auto first = worker_.ids_.take(uid_);
  if (!first) event(true, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + first.error().text());
  if (!first) return first.take_error();
  return std::optional(*first);
}

// Updates the volumes of running containers from their sources. Content whose source is missing stays.
void PodSync::refresh_volumes() {
  if (record_.sandbox != SandboxFact::alive || deleting() || record_.verdict != Verdict::none) return;
  bool due = entry_.volumes_refresh_at && *entry_.volumes_refresh_at <= seams_.clock.now();
  if (!due && !desired_.stale_volumes) return;
  (void)prepare_volumes();  // errors were reported
}

// ---- termination ----

Result<void> PodSync::stop_container(const Step& step) {
  ContainerRecord* record = record_.find(step.container);
  const ContainerRef* ref = containers().find(step.container);
  if (!record) return {};
  if (!record->stopping) {
    record->stopping.emplace();
    event(false, "Killing", step.why.empty() ? "Stopping container " + step.container : step.why, ref);
    if (record->ailment == Ailment::post_start)
      event(true, "FailedPostStartHook", "PostStartHook failed: " + record->ailment_text, ref);
  }
  Stopping& stopping = *record->stopping;
  stopping.deadline = seams_.clock.steady() + bounded_seconds(step.grace_seconds);
  if (step.kind == StepKind::run_pre_stop && ref) {
    record->pre_stop = {HookState::running, ""};
    begin_hook(*ref, *record, "preStop", bounded_seconds(step.grace_seconds));
  } else if (step.kind == StepKind::terminate) {
    stopping.terminated = true;
    int signal = signal_number(record->mark.stop_signal).value_or(15);
    if (is_in_vain(*record, signal)) {
      stopping.killed = true;
      return unless_ended(seams_.runtime.kill_container(uid_, record->id())).wrap("kill container " + step.container);
    }
    TRY(unless_ended(seams_.runtime.signal_container(uid_, record->id(), signal)).wrap("stop container " + step.container));
  } else {
    stopping.terminated = stopping.killed = true;
    TRY(unless_ended(seams_.runtime.kill_container(uid_, record->id())).wrap("kill container " + step.container));
  }
  again_at(stopping.deadline);
  return {};
}

// In a node shutdown, a container that ignores its signal is not waited for: a shell without a trap, a server without a handler.
bool PodSync::is_in_vain(const ContainerRecord& record, int signal) const {
  if (!seams_.is_dropped || !seams_.node_ends_by(pod())) return false;
  auto sandbox = seams_.runtime.sandbox(uid_);
  if (!sandbox) return false;
  for (const auto& container : sandbox->containers)
    if (container.id == record.id() && container.running) return seams_.is_dropped(container.pid, signal);
  return false;
}

void PodSync::begin_hook(const ContainerRef& container, const ContainerRecord& record, const char* hook,
                         std::chrono::seconds timeout) {
  std::string address = record_.ips.empty() ? std::string() : record_.ips.front();
  // captured by value, because the pod may be deleted before the hook ends
  auto task = [&worker = worker_, pod = desired_.object, uid = uid_, name = std::string(container.name), id = record.id(),
               key = hook_name(record, hook), begins = hook == std::string_view("postStart"), address, timeout,
               gone = entry_.gone.get_token()](std::stop_token stop) {
    std::stop_source end;
    std::stop_callback on_stop(stop, [&] { end.request_stop(); });
    std::stop_callback on_gone(gone, [&] { end.request_stop(); });
    ActionResult result{true, ""};
    auto ref = find_container(pod->json(), name);
    view::Lifecycle lifecycle = ref ? view::Container(*ref->spec).lifecycle() : view::Lifecycle();
    view::LifecycleHandler handler = begins ? lifecycle.post_start() : lifecycle.pre_stop();
    if (handler) result = worker.seams_.actions.run(handler.raw(), {uid, id, address, ref->spec}, timeout, end.get_token());
    worker.report(uid, [&](Reports& reports) {
      reports.hooks[key] = Hook{result.success ? HookState::done : HookState::failed, result.text};
    });
    worker.seams_.look_again(uid);
  };
  seams_.hooks(uid_, std::move(task));
}

// ---- removal ----

Result<void> PodSync::discard_sandbox() {
  event(false, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
  return stop_sandbox();
}

Result<void> PodSync::stop_sandbox() {
  seams_.probes.forget_pod(uid_);
  TRY(remove_sandbox());
  record_.network_known = record_.initialized = false;
  record_.ips.clear();
  for (auto& container : record_.containers) {
    container.in_sandbox = container.running = container.started = container.ready = false;
    container.post_start = container.pre_stop = {};
    entry_.start_failed.erase(container.name);
  }
  return {};
}

// Removes the namespace first: the kernel removes its interfaces faster than separate requests would.
Result<void> PodSync::remove_sandbox() {
  if (seams_.network.expect_loss) seams_.network.expect_loss(uid_);
  TRY(seams_.runtime.remove_sandbox(uid_).wrap("remove sandbox"));
  record_.sandbox = SandboxFact::absent;
  worker_.class_weights_.forget(uid_);
  entry_.weighed = false;
  return seams_.network.detach(uid_).wrap("detach network");
}

// Saves the results and releases everything else.
Result<void> PodSync::release() {
  if (record_.released && record_.sandbox == SandboxFact::absent) return {};
  record_.released = false;
  if (!deleting() && record_.sandbox != SandboxFact::absent) {
    PodRecord last = record_;
    last.released = true;
    ObjectPtr known = api();
    json::object status = make_status(last, known ? known->json() : pod(), {seams_.config.node_ips, false, seams_.clock.now()});
    TRY(sys::make_directories(paths_.state, 0750));
    TRY(sys::replace_file(paths_.state + "/status.json", to_text(status)).wrap("keep the pod's results"));
  }
  seams_.probes.forget_pod(uid_);
  if (record_.sandbox != SandboxFact::absent) TRY(remove_sandbox());
  auto removed = worker_.volumes_.remove(paths_, uid_);
  waits_ |= !removed && removed.error().code() == Code::unavailable;
  TRY(std::move(removed));
  worker_.ids_.give_back(uid_);
  record_.released = true;
  note_released();
  record_.network_known = false;
  return {};
}

Result<void> PodSync::forget() {
  TRY(write_status().wrap("write status"));
  ObjectPtr known = desired_.api();
  if (known && !desired_.gone && !desired_.is_static) {
    auto removed = seams_.client.remove(kPod, known->key(), {.grace_period_seconds = 0, .uid = known->uid()});
    // Deleted or recreated in the meantime by another client.
    bool gone = !removed && (removed.error().code() == Code::not_found || removed.error().code() == Code::conflict);
    if (!removed && !gone) return std::move(removed).wrap("remove the pod from the API");
  }
  worker_.ids_.give_back(uid_);
  TRY(sys::remove_tree(paths_.logs).wrap("remove the pod's logs"));
  remove_dead_links(seams_.config.log_links_dir, paths_.logs);
  TRY(sys::remove_tree(paths_.state).wrap("remove the pod's directory"));  // last: see PodWorker::remove_left
  seams_.table.erase(uid_);
  worker_.drop(uid_);
  forgotten_ = true;
  if (desired_.is_static) wake_successors(record_.key);
  return {};
}

}  // namespace coracle::node
