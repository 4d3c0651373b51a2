// SPDX-License-Identifier: Apache-2.0
// See volume_watch.h.
#include "daemon/node/volume/volume_watch.h"

#include <fcntl.h>

#include <utility>

#include "daemon/volume/match.h"
#include "runtime/base/log.h"
#include "runtime/sys/file.h"
#include "runtime/sys/tree_size.h"
#include "store/schema/views.h"

namespace coracle::node {

std::optional<Bytes> VolumeWatch::used(const Key& claim) const {
  return found_.with([&](const auto& all) {
    auto found = all.find(claim);
    return found == all.end() ? std::nullopt : found->second.used;
  });
}

void VolumeWatch::look() {
  std::map<Key, volume::Backing> all;
  for (const ObjectPtr& pod : seams_.table.with_claims())
    for (view::Volume volume : view::Pod(*pod).spec().volumes()) {
      if (volume::claim_name(pod->name(), volume.raw()).empty()) continue;
      auto backing = volume::backing_of(pod->json(), volume.raw(), seams_.storage);
      if (backing && seams_.is_ours(*backing->volume)) all.emplace(backing->claim->key(), *std::move(backing));
    }
  found_.with([&](auto& found) { std::erase_if(found, [&](const auto& entry) { return !all.contains(entry.first); }); });
  pace_.keep_due(all, seams_.clock.steady());
  for (auto& [claim, backing] : all) {
    std::string_view place = view::PersistentVolume(*backing.volume).spec().local().path();
    const std::string owner = seams_.directories.disk_of(std::string(place.substr(0, place.rfind('/'))));
    seams_.elsewhere([this, backing = backing](std::stop_token stop) { measure(backing, std::move(stop)); }, owner);
  }
}

// nullopt: a quota enforces its size.
Result<std::optional<Bytes>> VolumeWatch::measured(const volume::Backing& backing, std::stop_token stop) {
  std::string place(view::PersistentVolume(*backing.volume).spec().local().path());
  if (!seams_.answers(place)) return Error(Code::timeout, place + " does not answer");
  auto held = TRY(seams_.directories.hold(place, volume::capacity_of(*backing.volume).bytes()));
  if (held && held->was)
    seams_.events.warning(
        *backing.claim, "ProjectChanged",
        "a program gave " + place + " to the project " + std::to_string(*held->was) +
            ", to escape from its size or by mistake; that is corrected, and what it wrote meanwhile is not counted");
  if (held) return std::optional<Bytes>();
  Fd directory = TRY(sys::open(place, O_RDONLY | O_DIRECTORY));
  sys::TreeSize size = TRY(sys::tree_size(directory, std::move(stop)));
  return std::optional(size.bytes);
}

void VolumeWatch::measure(const volume::Backing& backing, std::stop_token stop) {
  const SteadyTime began = seams_.clock.steady();
  auto used = measured(backing, std::move(stop));
  pace_.note_end(backing.claim->key(), began, seams_.clock.steady(), kVolumePeriod);
  const Quantity capacity = volume::capacity_of(*backing.volume);
  const bool is_over = used && *used && **used > capacity.bytes();
  const bool was_over = found_.with([&](auto& found) {
    Found& its = found[backing.claim->key()];
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
