// SPDX-License-Identifier: Apache-2.0
// Connects the node agent's parts: which events enqueue pods for the workers, and the threads. See agent.h.
#include "daemon/node/agent.h"

#include "daemon/node/stream/log_links.h"
#include "runtime/base/log.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr size_t kPullsAtOnce = 3, kHooksAtOnce = 256;
constexpr size_t kHooksOfPodAtOnce = 32;
// Each disk has threads of its own, so that one that hangs holds only what is on it. Of the deletions on a disk one works, and
// the other leaves its work to that.
constexpr size_t kDisksAtOnce = 16, kWalksOfDiskAtOnce = 1, kDeletionsOfDiskAtOnce = 2, kCopiesOfDiskAtOnce = 2;
constexpr size_t kServersAtOnce = 16, kOfServerAtOnce = 2;
constexpr std::chrono::milliseconds kEndLook{20};

Key queue_key(const std::string& uid) { return {"", uid}; }

std::optional<DiskUse> disk_use(const std::string& path) {
  auto directory = sys::open_directory(path);
  auto usage = directory ? sys::disk_usage(*directory) : Result<sys::DiskUsage>(directory.error());
  if (!usage) return std::nullopt;
  return DiskUse{usage->total, usage->available};
}

}  // namespace

Agent::Agent(AgentConfig config, AgentSeams seams, PodNetworkHooks network)
    : config_(std::move(config)),
      seams_(seams),
      network_(std::move(network)),
      queue_(BackoffPolicy{}, seams.clock),
      recorder_(seams.events, "kubelet", config_.node_name),
      actions_(seams.runtime),
      probes_(
          actions_, seams.clock, [this](const std::string& uid) { queue_.add(queue_key(uid)); },
          [this](const Probes::Warning& warning) { tell(warning); }),
      node_object_(config_, seams.client, seams.runtime, seams.clock),
      worker_(
          {.config = config_,
           .client = seams.client,
           .config_maps = seams.config_maps,
           .secrets = seams.secrets,
           .services = seams.services,
           .storage = storage(),
           .runtime = seams.runtime,
           .network = network_,
           .events = recorder_,
           .table = table_,
           .probes = probes_,
           .actions = actions_,
           .pulls = seams.pulls ? seams.pulls : [this](Task task) { pulls_.post(std::move(task)); },
           .removals = seams.walks ? seams.walks : [this](Task task) { removals_.post(std::move(task)); },
           .hooks = [this](const std::string& uid,
                           Task task) { seams_.hooks ? seams_.hooks(std::move(task)) : hooks_.post(std::move(task), uid); },
           .servers = [this](
                          const std::string& server,
                          Task task) { seams_.walks ? seams_.walks(std::move(task)) : servers_.post(std::move(task), server); },
           .look_again = [this](const std::string& uid) { queue_.add(queue_key(uid)); },
           .look_again_if_alive = [heard = while_alive()](
                                      const std::string& uid) { heard([&](Agent& agent) { agent.queue_.add(queue_key(uid)); }); },
           .allocatable = [this] { return node_object_.allocatable(); },
           .node =
               [this] {
                 return seams_.nodes ? seams_.nodes->get({"", config_.node_name}) : nullptr;
               },
           .images_changed = [this] { images_changed(); },
           .start_order = start_order_,
           .draining = draining_,
           .wanting_images = wanting_images_,
           .held_back = seams.held_back,
           .readiness_changed = [this](const std::string& ns) { look_at_held(ns); },
           .is_dropped = seams.is_dropped,
           .node_ends_by = [this](const json::value& pod) { return ends_by(pod); },
           .clock = seams.clock}),
      directories_(config_.volume_dirs, [this](const std::string& root) { return holds_volumes(root); }),
      static_pods_(config_, seams.client, seams.pods, table_, [this](const std::string& uid) { queue_.add(queue_key(uid)); }),
      storage_limits_(
          config_, table_, seams.runtime, seams.clock,
          seams.walks ? seams.walks : [this](Task task) { walks_.post(std::move(task)); },
          [this](const std::string& uid, std::string why) { worker_.evict(uid, std::move(why)); }),
      image_collector_(
          config_.image_collection, seams.runtime.images(), seams.clock,
          [this](Task task) { seams_.walks ? seams_.walks(std::move(task)) : removals_.post(std::move(task)); },
          [this]() -> std::optional<DiskUse> { return disk_use(config_.state_dir); }, [this] { images_changed(); }),
      metrics_(
          config_, seams.client, seams.runtime, table_, seams.clock,
          seams.pause ? seams.pause : [this](std::chrono::nanoseconds span) { wait_for(span); }),
      pulls_("image-pulls", kPullsAtOnce),
      hooks_("hooks", kHooksAtOnce, kHooksOfPodAtOnce),
      walks_("storage", kDisksAtOnce, kWalksOfDiskAtOnce),
      deletions_("storage", kDisksAtOnce, kDeletionsOfDiskAtOnce),
      copies_("storage", kDisksAtOnce, kCopiesOfDiskAtOnce),
      removals_("storage", 1),
      servers_("nfs", kServersAtOnce, kOfServerAtOnce) {
  if (!config_.images_dir.empty())
    image_archives_.emplace(config_.images_dir, config_.images_record, seams_.runtime.images(), seams_.clock,
                            [this] { images_changed(); });
  auto heard = while_alive();
  seams_.pods.on_change([heard](const Informer::Change& change) { heard([&](Agent& agent) { agent.on_pod(change); }); });
  seams_.config_maps.on_change(
      [heard](const Informer::Change& change) { heard([&](Agent& agent) { agent.on_source(kConfigMap, change.any().key()); }); });
  seams_.secrets.on_change(
      [heard](const Informer::Change& change) { heard([&](Agent& agent) { agent.on_source(kSecret, change.any().key()); }); });
  if (seams_.nodes)
    seams_.nodes->on_change([heard, name = config_.node_name](const Informer::Change& change) {
      if (change.after && change.after->name() == name)
        heard([&](Agent& agent) { agent.node_object_.node_changed(change.after->json()); });
    });
  if (seams_.claims) hear_storage();
  seams_.runtime.on_change([heard](const std::string& uid) { heard([&](Agent& agent) { agent.on_sandbox(uid); }); });
}

volume::StorageObjects Agent::storage() const {
  return {[this](const Key& key) { return seams_.claims ? seams_.claims->get(key) : nullptr; },
          [this](std::string_view name) {
            return seams_.volumes ? seams_.volumes->get({"", std::string(name)}) : nullptr;
          },
          [this](const Key& claim) { return archives_ && archives_->keeps_out(claim); }};
}

std::vector<VolumeUse> Agent::volumes() {
  auto used = [this](const Key& claim) { return volume_watch_ ? volume_watch_->used(claim) : std::nullopt; };
  auto quota = [this](const std::string& path, const Fd& directory) { return directories_.use_of(path, directory); };
  auto answers = [this](const std::string& path) { return worker_.answers(path); };
  return measure_volumes(table_.with_claims(), storage(), config_.host_root, {answers, quota, used});
}

// Whether a PersistentVolume has its directory there.
bool Agent::holds_volumes(const std::string& root) const {
  std::vector<ObjectPtr> volumes = seams_.volumes->list();
  return std::any_of(volumes.begin(), volumes.end(), [&](const ObjectPtr& volume) {
    return view::PersistentVolume(*volume).spec().local().path().starts_with(root + "/");
  });
}

// Enqueues pods when their claim or its volume changes.
void Agent::hear_storage() {
  auto heard = while_alive();
  seams_.claims->on_change([heard](const Informer::Change& change) {
    heard([&](Agent& agent) {
      agent.on_source(kPersistentVolumeClaim, change.any().key());
      agent.provisioner_->on_claim(change);
    });
  });
  seams_.volumes->on_change([heard](const Informer::Change& change) {
    view::ObjectReference claim = view::PersistentVolume(change.any()).spec().claim_ref();
    Key key{std::string(claim.namespace_()), std::string(claim.name())};
    heard([&](Agent& agent) {
      agent.on_source(kPersistentVolumeClaim, key);
      agent.provisioner_->on_volume(change);
    });
  });
  seams_.storage_classes->on_change(
      [heard](const Informer::Change& change) { heard([&](Agent& agent) { agent.provisioner_->on_class(change); }); });
  volume_watch_.emplace(VolumeWatchSeams{.table = table_,
                                         .storage = storage(),
                                         .events = recorder_,
                                         .clock = seams_.clock,
                                         .directories = directories_,
                                         .answers = [this](const std::string& path) { return worker_.answers(path); },
                                         .elsewhere =
                                             [this](Task task, const std::string& owner) {
                                               seams_.walks ? seams_.walks(std::move(task)) : walks_.post(std::move(task), owner);
                                             },
                                         .is_ours = [this](const Object& volume) { return provisioner_->is_ours(volume); }});
  archives_.emplace(
      VolumeArchiveSeams{.client = seams_.client,
                         .table = table_,
                         .storage = storage(),
                         .directories = directories_,
                         .trees = seams_.runtime.trees(),
                         .node_name = config_.node_name,
                         .host_root = config_.host_root,
                         .has_pods = [this] { return seams_.pods.synced(); },
                         .is_ours = [this](const Object& volume) { return provisioner_->is_ours(volume); },
                         .may_provision = [this](const Object& claim) { return provisioner_->may_provision(claim); },
                         .look_again = [this](const Key& claim) { on_source(kPersistentVolumeClaim, claim); },
                         .clear = [this] { provisioner_->clear(); },
                         .wait = [this](std::chrono::milliseconds span) { wait_for(span); }});
  provisioner_.emplace(
      config_.node_name,
      volume::ProvisionerSeams{
          .client = seams_.client,
          .claims = *seams_.claims,
          .volumes = *seams_.volumes,
          .classes = *seams_.storage_classes,
          .events = recorder_,
          .directories = directories_,
          .enqueue = [this](Key key) { queue_.add(std::move(key)); },
          .delete_in_background =
              [this](Task task, const std::string& owner) {
                seams_.walks ? seams_.walks(std::move(task)) : deletions_.post(std::move(task), owner);
              },
          .copy_in_background =
              [this](Task task, const std::string& owner) {
                seams_.walks ? seams_.walks(std::move(task)) : copies_.post(std::move(task), owner);
              },
          .answers = [this](const std::string& place) { return worker_.answers(place); },
          .in_use = [this](const Key& claim) { return !table_.users_of_claim(claim).empty() || archives_->is_busy(claim); },
          .in_use_yet = [this](const Key& claim) { return table_.is_used_by_gone(claim) || archives_->is_busy(claim); },
          .copy = [this](const Key& claim, const Fd& to, const volume::ProvisionerSeams::SoFar& so_far,
                         std::stop_token stop) -> Result<volume::Copied> {
            auto progress = [&](const runtime::TreeCount& count) { so_far({count.entries, count.bytes}); };
            runtime::TreeCount count = TRY(archives_->copy(claim, to, progress, std::move(stop)));
            return volume::Copied{count.entries, count.bytes};
          },
          .clock = seams_.clock,
      });
}

Agent::~Agent() {
  stop();
  self_->with([](Agent*& agent) { agent = nullptr; });
}

Result<void> Agent::start() {
  TRY(sys::make_directories(config_.state_dir, 0700).wrap("node agent"));
  TRY(sys::make_directories(config_.memory_dir, 0700).wrap("node agent"));
  TRY(sys::make_directories(config_.log_dir, 0755).wrap("node agent"));
  prepare_log_links();
  if (config_.mounts.tmpfs) {
    // A tmpfs of its own, because programs in ConfigMaps may be executed, and /run is mounted noexec.
    auto mounted = config_.mounts.tmpfs(config_.memory_dir, Bytes(0), 0700);
    if (!mounted)
      log_warning("node", "no tmpfs for volumes in memory, secrets are written to the disk: " + mounted.error().text());
  }
  TRY(adopt());
  probes_.start();
  threads_.push_back(start_thread("node", [this] { run(stop_.get_token()); }));
  return {};
}

// Removes dead links that an earlier daemon has left.
void Agent::prepare_log_links() {
  if (config_.log_links_dir.empty()) return;
  if (auto made = sys::make_directories(config_.log_links_dir, 0755); !made) {
    log_warning("node", "cannot create the directory of links to the pods' logs: " + made.error().text());
    config_.log_links_dir.clear();
  }
  remove_dead_links(config_.log_links_dir, config_.log_dir);
}

void Agent::stop() {
  stop_.request_stop();
  followers_.with([](Followers& followers) {
    for (auto& [uid, watch] : followers.by_uid) watch->wake();
  });
  threads_.clear();  // joins the threads
}

bool Agent::end_tasks() {
  TaskPool* const pools[] = {&pulls_, &hooks_, &walks_, &deletions_, &copies_, &removals_, &servers_};
  for (TaskPool* pool : pools) pool->request_stop();
  const auto deadline = std::chrono::steady_clock::now() + kTasksEndWithin;
  return std::ranges::all_of(pools, [&](TaskPool* pool) { return pool->wait_for_end(deadline); });
}

// Looks at all sandboxes of the runtime, whether or not their pods exist in the API.
Result<void> Agent::adopt() {
  auto sandboxes = TRY(seams_.runtime.sandboxes().wrap("find the pods that run"));
  worker_.find_ids(sandboxes);
  for (const auto& sandbox : sandboxes) {
    SandboxMark mark = SandboxMark::from_text(sandbox.metadata);
    table_.change(sandbox.id, [&](RestingPod& pod) {
      pod.began_before = true;
      pod.is_static = mark.is_static;
      if (mark.is_static) pod.adopted_as = std::make_shared<const Key>(std::move(mark.pod));
    });
  }
  return {};
}

void Agent::tell(const Probes::Warning& warning) {
  auto pod = table_.get(warning.uid);
  if (!pod || !pod->told()) return;
  auto name = view::Container(warning.container).name();
  auto ref = find_container(pod->object->json(), name);
  const char* list = ref && ref->role != Role::main ? "spec.initContainers{" : "spec.containers{";
  recorder_.warning(*pod->told(), warning.reason, warning.text, list + std::string(name) + "}");
}

void Agent::run(std::stop_token stop) {
  // The Node is registered first, because the scheduler waits for it.
  if (auto registered = node_object_.refresh(); !registered) log_warning("node", registered.error().text());
  for (Informer* informer : {&seams_.pods, &seams_.config_maps, &seams_.secrets, &seams_.services})
    if (!informer->wait_synced(stop)) return;
  for (Informer* informer : {seams_.nodes, seams_.claims, seams_.volumes, seams_.storage_classes})
    if (informer && !informer->wait_synced(stop)) return;
  if (!config_.manifests_dir.empty()) static_pods_.read();
  sweep();
  if (provisioner_) provisioner_->start();
  std::vector<std::jthread> threads;
  for (int i = 0; i < config_.workers; ++i)
    threads.push_back(start_thread(
        "node-worker", [this, stop] { run_worker(stop, queue_, "node", [this](const Key& key) { return reconcile(key); }); }));
  if (!config_.manifests_dir.empty()) threads.push_back(start_thread("static-pods", [this, stop] { static_pods_.run(stop); }));
  if (image_archives_) threads.push_back(start_thread("image-archives", [this, stop] { image_archives_->run(stop); }));
  node_object_.run(stop, [this] { look_at_storage(); });
}

static_assert(kStorageLook == kHousekeeping);  // the node object's loop calls look_at_storage

void Agent::look_at_storage() {
  storage_limits_.look();
  image_collector_.look();
  if (volume_watch_) volume_watch_->look();
}

Result<Outcome> Agent::reconcile(const Key& key) {
  return volume::Provisioner::is_key(key) ? provisioner_->reconcile(key) : worker_.reconcile(key);
}

void Agent::sweep() {
  // Whatever manifests could not be read, their pods go on.
  const bool has_manifests = config_.manifests_dir.empty() || static_pods_.is_complete();
  worker_.remove_left(has_manifests);
  for (const auto& uid : table_.uids()) {
    table_.change_existing(uid, [&](RestingPod& pod) { pod.gone |= pod.object == nullptr && (has_manifests || !pod.is_static); });
    queue_.add(queue_key(uid));
  }
}

void Agent::read_manifests() {
  static_pods_.read();
  auto reflected = static_pods_.reflect();
  if (!reflected) log_warning("node", reflected.error().text());
}

bool Agent::work_once() {
  auto lease = queue_.try_take();
  if (!lease) return false;
  coracle::work_once(queue_, lease->key(), "node", [this](const Key& key) { return reconcile(key); });
  return true;
}

void Agent::on_pod(const Informer::Change& change) {
  if (view::Pod(change.any()).spec().node_name() != config_.node_name) return;
  if (static_pods_.on_mirror(change)) return;
  std::string uid = change.any().uid();
  if (change.before && change.after && change.before->uid() != change.after->uid()) {  // recreated with the same name
    std::string old = change.before->uid();
    table_.change_existing(old, [](RestingPod& pod) { pod.gone = true; });
    queue_.add(queue_key(old));
    uid = change.after->uid();
  }
  if (!change.after) {
    table_.change_existing(uid, [](RestingPod& pod) { pod.gone = true; });
  } else {
    table_.change(uid, [&](RestingPod& pod) {
      if (pod.object) {
        ObjectPtr known = pod.object->awake();
        view::ObjectMeta before = view::Pod(*known).metadata(), after = view::Pod(*change.after).metadata();
        pod.stale_volumes |= !same_json(before.labels(), after.labels()) || !same_json(before.annotations(), after.annotations());
      }
      pod.object = change.after->at_rest();
    });
  }
  queue_.add(queue_key(uid));
}

void Agent::on_source(const Kind& kind, const Key& key) {
  for (const auto& uid : table_.mark_stale(kind, key)) queue_.add(queue_key(uid));
}

void Agent::on_sandbox(const std::string& uid) {
  queue_.add(queue_key(uid));
  followers_.with([&](Followers& followers) {
    auto [begin, end] = followers.by_uid.equal_range(uid);
    for (auto entry = begin; entry != end; ++entry) entry->second->wake();
  });
}

// Updates the Node's list of images, and enqueues pods that wait for an image.
void Agent::images_changed() {
  node_object_.touch();
  WantingImages wanting = wanting_images_.with([](const auto& now) { return now; });
  for (const auto& [uid, container] : wanting) queue_.add(queue_key(uid));
}

void Agent::look_at_held(const std::string& ns) {
  for (const auto& uid : start_order_.held_in(ns)) queue_.add(queue_key(uid));
}

void Agent::look_at_draining() {
  auto draining = draining_.with([](const auto& now) { return now; });
  for (const auto& uid : draining) queue_.add(queue_key(uid));
}

void Agent::look_at_network(const std::string& uid) {
  table_.change_existing(uid, [](RestingPod& pod) { pod.lost_network = true; });
  queue_.add(queue_key(uid));
}

// ---- node shutdown ----

void Agent::end_pods(EndBudget budget) {
  end_.with([&](auto& end) { end = End{budget, seams_.clock.steady() + budget.ordinary, std::nullopt}; });
  for (const auto& uid : table_.uids()) queue_.add(queue_key(uid));
}

// Critical pods run until the others have ended.
std::optional<SteadyTime> Agent::ends_by(const json::value& pod) const {
  return end_.with([&](const auto& end) -> std::optional<SteadyTime> {
    if (!end) return std::nullopt;
    return is_critical(pod) ? end->critical_by : end->ordinary_by;
  });
}

std::vector<std::string> Agent::wait_for_end_of(bool critical, const std::function<void()>& tick) {
  constexpr std::chrono::seconds kKilled{2}, kTick{1};  // time for killed processes to disappear
  SteadyTime until = end_.with([&](const auto& end) { return critical ? *end->critical_by : end->ordinary_by; }) + kKilled;
  SteadyTime ticked = seams_.clock.steady();
  std::map<std::string, bool> known;  // by uid: whether it is critical
  auto is_wanted = [&](const std::string& uid) {
    auto [found, is_new] = known.emplace(uid, false);
    auto pod = is_new ? table_.get(uid) : std::nullopt;
    if (pod && pod->object) found->second = is_critical(pod->object->json());
    return found->second == critical;
  };
  for (;;) {
    std::vector<std::string> left;
    for (const auto& sandbox : seams_.runtime.sandboxes().value_or({}))
      if (sandbox.alive && is_wanted(sandbox.id)) left.push_back(SandboxMark::from_text(sandbox.metadata).pod.text());
    SteadyTime now = seams_.clock.steady();
    if (left.empty() || now >= until) return left;
    if (tick && now >= ticked + kTick) {
      tick();
      ticked = now;
    }
    wait_for(kEndLook);
  }
}

std::vector<std::string> Agent::wait_for_end(const std::function<void()>& tick) {
  std::vector<std::string> left = wait_for_end_of(false, tick);
  end_.with([&](auto& end) { end->critical_by = seams_.clock.steady() + end->budget.critical; });
  for (const auto& uid : table_.uids()) queue_.add(queue_key(uid));
  std::vector<std::string> critical = wait_for_end_of(true, tick);
  left.insert(left.end(), critical.begin(), critical.end());
  return left;
}

void Agent::wait_for(std::chrono::nanoseconds span) {
  Guarded<bool> nothing(false);  // returns early only when the agent stops
  nothing.wait_until(
      stop_.get_token(), std::chrono::steady_clock::now() + span, [](bool) { return false; }, [](bool) {});
}

json::object Agent::allocatable() const { return node_object_.allocatable(); }

}  // namespace coracle::node
