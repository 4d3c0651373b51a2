// SPDX-License-Identifier: Apache-2.0
// See volume_watch.h.
#include "daemon/node/volume_watch.h"

#include <fcntl.h>

#include <algorithm>

#include "daemon/node/storage_limits.h"
#include "daemon/volume/match.h"
#include "runtime/base/log.h"
#include "runtime/sys/file.h"
#include "runtime/sys/project_quota.h"
#include "runtime/sys/tree_size.h"
#include "store/schema/views.h"

namespace coracle::node {
namespace {

// Nothing: a quota holds it to its size.
Result<std::optional<Bytes>> measured(const Object& volume, std::stop_token stop) {
  std::string place(view::PersistentVolume(volume).spec().local().path());
  Fd directory = TRY(sys::open(place, O_RDONLY | O_DIRECTORY));
  if (sys::limited_use(directory)) return std::optional<Bytes>();
  sys::TreeSize size = TRY(sys::tree_size(directory, std::move(stop)));
  return std::optional(size.bytes);
}

}  // namespace

std::optional<Bytes> VolumeWatch::used(const Key& claim) const {
  return progress_.with([&](const auto& progress) {
    auto found = progress.find(claim);
    return found == progress.end() ? std::nullopt : found->second.used;
  });
}

void VolumeWatch::look() {
  std::map<Key, volume::Backing> all;
  for (const ObjectPtr& pod : seams_.table.with_claims())
    for (const json::value& volume : get_array(pod->json(), "spec.volumes")) {
      if (volume::claim_name(pod->name(), volume).empty()) continue;
      auto backing = volume::backing_of(pod->json(), volume, seams_.storage);
      if (backing && seams_.is_ours(*backing->volume)) all.emplace(backing->claim->key(), *std::move(backing));
    }
  const SteadyTime now = seams_.clock.steady();
  progress_.with([&](auto& progress) {
    std::erase_if(progress, [&](const auto& entry) { return !all.contains(entry.first) && !entry.second.is_running; });
    std::erase_if(all, [&](const auto& entry) {
      Progress& its = progress[entry.first];
      if (its.is_running || now < its.due) return true;
      its.is_running = true;
      return false;
    });
  });
  for (auto& [claim, backing] : all)
    seams_.elsewhere([this, backing = backing](std::stop_token stop) { measure(backing, std::move(stop)); });
}

void VolumeWatch::measure(const volume::Backing& backing, std::stop_token stop) {
  const SteadyTime began = seams_.clock.steady();
  auto used = measured(*backing.volume, std::move(stop));
  const SteadyTime ended = seams_.clock.steady();
  const auto rest = std::max<std::chrono::nanoseconds>(kVolumePeriod, kStoragePace * (ended - began));
  const Quantity capacity = volume::capacity_of(*backing.volume);
  const bool is_over = used && *used && **used > capacity.bytes();
  const bool was_over = progress_.with([&](auto& progress) {
    Progress& its = progress[backing.claim->key()];
    its.is_running = false;
    its.due = ended + rest - kStoragePeriod / 2;  // looks come once a period, and seldom on the dot
    its.used = used ? *used : std::nullopt;
    return std::exchange(its.is_over, is_over);
  });
  if (!used) return log_debug("node", "measure the volume of " + backing.claim->key().text() + ": " + used.error().text());
  if (is_over && !was_over)
    seams_.events.warning(*backing.claim, "SizeExceeded",
                          "the volume holds " + Quantity::of(**used).text() + ", more than its " + capacity.text() +
                              ", and nothing holds it to that");
}

}  // namespace coracle::node
