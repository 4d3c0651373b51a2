// SPDX-License-Identifier: Apache-2.0
// Creates and removes the sandbox of one pod. See pod_sandbox.h.
#include "daemon/node/pod_sandbox.h"

#include "daemon/node/resources.h"
#include "daemon/node/status.h"
#include "daemon/node/stream/log_links.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/schema/views.h"

namespace coracle::node {

Result<void> PodSandbox::create() {
  tell_unenforceable();
  TRY(check_means());
  record_.released = false;
  note_released();
  TRY(volumes_.prepare());
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
  class_weights_.note(uid_, pod());
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

void PodSandbox::tell_unenforceable() {
  if (std::exchange(entry_.told_unenforceable, true)) return;
  runtime::Enforcement enforcement = seams_.runtime.enforcement();
  if (std::string missing = unenforceable(pod(), enforcement); !missing.empty())
    event(true, "LimitsNotEnforced", "This machine cannot hold the pod's limits of " + missing + ": " + enforcement.missing);
}

// Checks for requirements that this node lacks: the pod then waits with an event and does not run without them.
Result<void> PodSandbox::check_means() {
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

Result<void> PodSandbox::check_runtime_class() {
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
Result<std::vector<std::string>> PodSandbox::attach_network() {
  Attachment attachment{seams_.config.node_ips};
  if (!view::Pod(pod()).spec().host_network()) {
    Fd network = TRY(seams_.runtime.network_namespace(uid_).wrap("open the network namespace"));
    attachment = TRY(seams_.network.attach(uid_, network, record_.key, host_ports(pod())).wrap("attach network"));
  }
  record_.ips = std::move(attachment.ips);
  record_.network_known = true;
  return std::move(attachment.conflicts);
}

// ---- removal ----

Result<void> PodSandbox::discard() {
  event(false, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
  return stop();
}

Result<void> PodSandbox::stop() {
  seams_.probes.forget_pod(uid_);
  TRY(remove());
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
Result<void> PodSandbox::remove() {
  if (seams_.network.expect_loss) seams_.network.expect_loss(uid_);
  TRY(seams_.runtime.remove_sandbox(uid_).wrap("remove sandbox"));
  record_.sandbox = SandboxFact::absent;
  class_weights_.forget(uid_);
  entry_.weighed = false;
  return seams_.network.detach(uid_).wrap("detach network");
}

// Saves the results and releases everything else.
Result<void> PodSandbox::release() {
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
  if (record_.sandbox != SandboxFact::absent) TRY(remove());
  auto removed = node_volumes_.remove(paths_, uid_);
  state_.waits |= !removed && removed.error().code() == Code::unavailable;
  TRY(std::move(removed));
  id_ranges_.give_back(uid_);
  record_.released = true;
  note_released();
  record_.network_known = false;
  return {};
}

Result<void> PodSandbox::forget() {
  TRY(write_status().wrap("write status"));
  ObjectPtr known = desired_.api();
  if (known && !desired_.gone && !desired_.is_static) {
    auto removed = seams_.client.remove(kPod, known->key(), {.grace_period_seconds = 0, .uid = known->uid()});
    // Deleted or recreated in the meantime by another client.
    bool gone = !removed && (removed.error().code() == Code::not_found || removed.error().code() == Code::conflict);
    if (!removed && !gone) return std::move(removed).wrap("remove the pod from the API");
  }
  id_ranges_.give_back(uid_);
  TRY(sys::remove_tree(paths_.logs).wrap("remove the pod's logs"));
  remove_dead_links(seams_.config.log_links_dir, paths_.logs);
  TRY(sys::remove_tree(paths_.state).wrap("remove the pod's directory"));  // last: see PodWorker::remove_left
  seams_.table.erase(uid_);
  drop();
  state_.forgotten = true;
  if (desired_.is_static) wake_successors(record_.key);
  return {};
}

}  // namespace coracle::node
