// SPDX-License-Identifier: Apache-2.0
// What the parts of a sync share. See sync_part.h.
#include "daemon/node/sync_part.h"

#include "daemon/node/status.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

std::string field_path(const ContainerRef& container) {
  const char* list = container.role == Role::main        ? "spec.containers{"
                     : container.role == Role::ephemeral ? "spec.ephemeralContainers{"
                                                         : "spec.initContainers{";
  return list + std::string(container.name) + "}";
}

bool says_ready(const json::object& status) {
  for (view::PodCondition condition : view::PodStatus(status).conditions())
    if (condition.type() == "Ready") return condition.status() == "True";
  return false;
}

}  // namespace

std::string hook_name(const ContainerRecord& record, const char* hook) { return record.id() + " " + hook; }

SteadyTime steady_of(WallTime when, const Clock& clock) {
  return clock.steady() + std::chrono::duration_cast<SteadyTime::duration>(when - clock.now());
}

SyncPart::SyncPart(SyncState& state)
    : state_(state),
      seams_(state.worker.seams_),
      entry_(state.entry),
      record_(state.entry.record),
      uid_(state.uid),
      desired_(state.desired),
      paths_(state.paths),
      node_volumes_(state.worker.volumes_),
      id_ranges_(state.worker.ids_),
      class_weights_(state.worker.class_weights_) {}

const ContainerIndex& SyncPart::containers() {
  if (state_.indexed != desired_.object) state_.containers.emplace((state_.indexed = desired_.object)->json());
  return *state_.containers;
}

ObjectPtr SyncPart::api() const {
  const ObjectPtr& known = desired_.api();
  bool newer = known && entry_.written && entry_.written->uid() == known->uid() && entry_.written->revision() > known->revision();
  if (!newer) entry_.written.reset();
  return newer ? entry_.written->awake() : known;
}

Lookup SyncPart::lookup() const {
  const std::string& ns = record_.key.ns;
  Lookup made;
  made.config_map = [this, ns](std::string_view name) { return seams_.config_maps.get({ns, std::string(name)}); };
  made.secret = [this, ns](std::string_view name) { return seams_.secrets.get({ns, std::string(name)}); };
  made.file = [this](std::string_view volume, const std::string& path) {
    return node_volumes_.read_file(pod(), paths_, volume, path);
  };
  made.storage = seams_.storage;
  made.node = seams_.node;
  made.services = [this, ns](bool all) {
    std::vector<ObjectPtr> found = all ? seams_.services.list(ns) : std::vector<ObjectPtr>();
    if (!all || ns != "default")
      if (ObjectPtr api_server = seams_.services.get({"default", "kubernetes"})) found.push_back(std::move(api_server));
    return found;
  };
  return made;
}

// The first id of the pod's range of host ids, if it has a user namespace.
Result<std::optional<uint32_t>> SyncPart::first_id() {
  if (!has_own_users(pod())) return std::optional<uint32_t>();
  auto first = id_ranges_.take(uid_);
  if (!first) event(true, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + first.error().text());
  if (!first) return first.take_error();
  return std::optional(*first);
}

// ---- reports ----

Result<void> SyncPart::write_status() {
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

void SyncPart::event(bool warning, std::string_view reason, std::string message, const ContainerRef* container) const {
  const ObjectPtr about = desired_.told();
  if (!about) return;
  std::string path = container ? field_path(*container) : std::string();
  if (warning) seams_.events.warning(*about, reason, std::move(message), std::move(path));
  else seams_.events.normal(*about, reason, std::move(message), std::move(path));
}

void SyncPart::wait_with(ContainerRecord& record, std::string reason, std::string message) {
  record.waiting_reason = std::move(reason);
  record.waiting_message = std::move(message);
}

void SyncPart::config_error(const ContainerRef& container, ContainerRecord& record, std::string reason, const Error& error) {
  if (record.waiting_reason != reason || record.waiting_message != error.text())
    event(true, "Failed", "Error: " + error.text(), &container);
  wait_with(record, std::move(reason), error.text());
  again_at(seams_.clock.steady() + kConfigErrorRetry);
}

void SyncPart::note_released() {
  const bool is_released = record_.released && record_.sandbox == SandboxFact::absent;
  if (is_released == desired_.released) return;
  desired_.released = is_released;
  seams_.table.change_existing(uid_, [&](RestingPod& pod) { pod.released = is_released; });
}

// Call when a static pod has ended and is no longer in the table.
void SyncPart::wake_successors(const Key& name) const {
  for (const auto& [uid, successor] : seams_.table.static_pods_of(name)) seams_.look_again(uid);
}

// ---- other threads ----

void SyncPart::begin_hook(const ContainerRef& container, const ContainerRecord& record, const char* hook,
                          std::chrono::seconds timeout) {
  std::string address = record_.ips.empty() ? std::string() : record_.ips.front();
  // captured by value, because the pod may be deleted before the hook ends
  auto task = [&worker = state_.worker, pod = desired_.object, uid = uid_, name = std::string(container.name), id = record.id(),
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

Reports SyncPart::take_all_reports() const {
  return state_.worker.reports_.with([&](auto& all) {
    auto found = all.find(uid_);
    return found == all.end() ? Reports() : std::move(found->second);
  });
}

}  // namespace coracle::node
