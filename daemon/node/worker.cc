// SPDX-License-Identifier: Apache-2.0
// Finds the record of a pod and syncs it. See worker.h.
#include "daemon/node/worker.h"

#include <fstream>

#include "daemon/node/files.h"
#include "daemon/node/pod_sync.h"
#include "daemon/node/stream/log_links.h"
#include "runtime/base/log.h"
#include "runtime/sys/file.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

Bytes read_machine_memory() {
  std::ifstream file("/proc/meminfo");  // "MemTotal: 16303428 kB" is its first line
  std::string name;
  int64_t kib = 0;
  file >> name >> kib;
  return Bytes(kib << 10);
}

Result<std::string> request_token(Client& client, const json::value& pod, std::string_view audience, int64_t expiration_seconds) {
  view::Pod viewed(pod);
  std::string account(viewed.spec().service_account_name());
  if (account.empty()) account = "default";
  json::object spec{
      {"expirationSeconds", expiration_seconds},
      {"boundObjectRef",
       json::object{
           {"apiVersion", "v1"}, {"kind", "Pod"}, {"name", viewed.metadata().name()}, {"uid", viewed.metadata().uid()}}}};
  if (!audience.empty()) spec["audiences"] = json::array{json::value(audience)};
  json::object request{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}, {"spec", std::move(spec)}};
  Key key{std::string(viewed.metadata().namespace_()), account};
  json::value answer = TRY(client.create_subresource(kServiceAccount, key, "token", request));
  std::string token(view::TokenRequest(answer).status().token());
  if (token.empty()) return Error(Code::internal, "the API gave no token");
  return token;
}

}  // namespace

PodWorker::PodWorker(WorkerSeams seams)
    : seams_(std::move(seams)),
      nfs_({seams_.config.mounts, seams_.clock, seams_.servers, seams_.look_again}),
      places_({seams_.clock, seams_.look_again_if_alive, seams_.config.place_patience}),
      volumes_(
          seams_.config, seams_.clock, seams_.runtime.images(), nfs_, places_,
          [this](const json::value& pod, std::string_view audience, int64_t seconds) {
            return request_token(seams_.client, pod, audience, seconds);
          },
          seams_.removals, [this](const std::string& uid, const Key& claim) { return seams_.table.take_alone(uid, claim); }),
      ids_(seams_.config),
      class_weights_(seams_.runtime),
      machine_memory_(read_machine_memory()) {}

PodWorker::~PodWorker() = default;

std::shared_ptr<PodWorker::Entry> PodWorker::entry_of(const std::string& uid) {
  return entries_.with([&](auto& entries) {
    auto& entry = entries[uid];
    if (!entry) entry = std::make_shared<Entry>();
    return entry;
  });
}

Result<Outcome> PodWorker::reconcile(const Key& key) {
  auto desired = seams_.table.get(key.name);
  if (!desired) return Outcome{};
  auto entry = entry_of(key.name);
  SyncState state{*this, *entry, key.name, *std::move(desired)};
  return PodSync(state).run();
}

void PodWorker::remove_left(bool with_static) const {
  volumes_.clear();
  for (const auto& uid : files::list(seams_.config.state_dir)) {
    if (!is_pod_uid(uid) || seams_.table.get(uid)) continue;
    if (!with_static && uid.find('-') == uid.npos) continue;  // the uid of a static pod is a hash
    if (auto removed = remove_left(uid); !removed)
      log_warning("node", "files of a deleted pod remain: " + removed.error().text());
  }
}

// Removes the pod's directory last, as forget() does, because the other parts are found by it.
Result<void> PodWorker::remove_left(const std::string& uid) const {
  const PodPaths paths{seams_.config.state_dir + "/" + uid, seams_.config.memory_dir + "/" + uid, ""};
  TRY(volumes_.remove(paths, uid));
  for (const auto& name : files::list(seams_.config.log_dir))
    if (name.ends_with("_" + uid)) TRY(sys::remove_tree(seams_.config.log_dir + "/" + name).wrap("remove the pod's logs"));
  remove_dead_links(seams_.config.log_links_dir, seams_.config.log_dir);
  return sys::remove_tree(paths.state).wrap("remove the pod's directory");
}

bool PodWorker::answers(const std::string& place) { return volumes_.answers(place); }

void PodWorker::evict(const std::string& uid, std::string why) {
  report(uid, [&](Reports& reports) { reports.evicted = std::move(why); });
  seams_.look_again(uid);
}

void PodWorker::drop(const std::string& uid) {
  class_weights_.forget(uid);
  seams_.start_order.forget(uid);
  seams_.draining.with([&](auto& draining) { draining.erase(uid); });
  seams_.wanting_images.with(
      [&](WantingImages& wanting) { std::erase_if(wanting, [&](const auto& container) { return container.first == uid; }); });
  auto entry = entries_.with([&](auto& entries) { return entries.extract(uid); });
  reports_.with([&](auto& reports) { reports.erase(uid); });
  if (entry) entry.mapped()->gone.request_stop();
}

}  // namespace coracle::node
