// SPDX-License-Identifier: Apache-2.0
// See volume_archives.h.
#include "daemon/node/volume/volume_archives.h"

#include <fcntl.h>

#include <utility>

#include "daemon/node/volume/volume_use.h"
#include "daemon/volume/match.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/tree_size.h"
#include "store/schema/views.h"

namespace coracle::node {
namespace {

constexpr std::chrono::seconds kBoundWithin{30};
constexpr std::chrono::milliseconds kBoundAgain{50};

std::string shown(const Key& claim) { return "persistentvolumeclaim " + quoted(claim.name); }

}  // namespace

// Marks a claim as busy while it exists.
class VolumeArchives::ClaimLock {
 public:
  static Result<std::unique_ptr<ClaimLock>> take(VolumeArchives& archives, const Key& claim, bool keeps_out) {
    bool is_mine = archives.busy_.with([&](auto& busy) { return busy.emplace(claim, keeps_out).second; });
    if (!is_mine) return Error(Code::conflict, shown(claim) + " is being exported or imported already");
    return std::unique_ptr<ClaimLock>(new ClaimLock(archives, claim));
  }
  ~ClaimLock() {
    archives_.busy_.with([&](auto& busy) { busy.erase(claim_); });
    archives_.seams_.look_again(claim_);
  }

 private:
  ClaimLock(VolumeArchives& archives, const Key& claim) : archives_(archives), claim_(claim) {}
  VolumeArchives& archives_;
  const Key claim_;
};

bool VolumeArchives::is_busy(const Key& claim) const {
  return busy_.with([&](const auto& busy) { return busy.count(claim) > 0; });
}

bool VolumeArchives::keeps_out(const Key& claim) const {
  return busy_.with([&](const auto& busy) {
    auto found = busy.find(claim);
    return found != busy.end() && found->second;
  });
}

Result<VolumeArchives::Bound> VolumeArchives::bound(const Key& key) const {
  ObjectPtr claim = seams_.storage.claim(key);
  if (!claim) return Error(Code::not_found, shown(key) + " not found in namespace " + quoted(key.ns));
  if (claim->deleting()) return Error(Code::conflict, shown(key) + " is being deleted");
  if (!volume::is_bound(*claim)) return Error(Code::unavailable, shown(key) + " has no volume yet: it is not bound");
  std::string name(view::PersistentVolumeClaim(*claim).spec().volume_name());
  ObjectPtr volume = seams_.storage.volume(name);
  if (!volume || !volume::is_reserved_for(*volume, *claim))
    return Error(Code::not_found, shown(key) + " has lost its volume " + quoted(name));
  view::PersistentVolumeSpec spec = view::PersistentVolume(*volume).spec();
  std::string place = directory_of(spec, seams_.host_root);
  if (place.empty() || spec.volume_mode() == "Block")
    return Error(Code::unsupported, "the volume of " + shown(key) + " is no directory of this node");
  return Bound{std::move(claim), std::move(volume), std::move(place)};
}

Result<void> VolumeArchives::check_unused(const Key& claim) const {
  if (!seams_.has_pods()) return Error(Code::unavailable, "the node agent has just started and does not know its pods yet");
  std::vector<std::string> users = seams_.table.users_of_claim(claim);
  if (users.empty()) return {};
  return Error(Code::conflict, shown(claim) + " is in use by pod " + join(users, ", "));
}

Result<void> VolumeArchives::write(const Key& claim, bool while_in_use, const Fd& archive, std::stop_token stop) {
  auto claim_lock = TRY(ClaimLock::take(*this, claim, !while_in_use));
  if (!while_in_use) TRY(check_unused(claim));
  Bound found = TRY(bound(claim));
  Fd directory = TRY(sys::open(found.place, O_RDONLY | O_DIRECTORY));
  TRY(seams_.trees.write(directory, archive, nullptr, std::move(stop)));
  return {};
}

Result<runtime::TreeCount> VolumeArchives::copy(const Key& claim, const Fd& to, const runtime::TreeProgress& progress,
                                                std::stop_token stop) {
  auto claim_lock = TRY(ClaimLock::take(*this, claim, true));
  TRY(check_unused(claim));
  Bound found = TRY(bound(claim));
  Fd directory = TRY(sys::open(found.place, O_RDONLY | O_DIRECTORY));
  return seams_.trees.copy(directory, to, progress, std::move(stop));
}

// Selects this node for a claim whose class waits for its first consumer. The provisioner takes that back if it cannot make the
// volume here.
Result<void> VolumeArchives::provision(const Key& key, std::stop_token stop) {
  ObjectPtr claim = seams_.storage.claim(key);
  if (!claim || volume::is_bound(*claim) || claim->deleting() || !seams_.may_provision(*claim)) return {};
  if (claim->annotation(volume::kSelectedNode).empty())
    TRY(seams_.client.patch(kPersistentVolumeClaim, key, PatchType::merge,
                            {{"metadata", {{"annotations", {{volume::kSelectedNode, seams_.node_name}}}}}}));
  bool was_selected = false;
  for (std::chrono::milliseconds waited{0}; waited < kBoundWithin; waited += kBoundAgain) {
    claim = seams_.storage.claim(key);
    if (!claim || volume::is_bound(*claim) || stop.stop_requested()) return {};
    const bool is_selected = !claim->annotation(volume::kSelectedNode).empty();
    if (std::exchange(was_selected, is_selected) && !is_selected) return {};
    seams_.wait(kBoundAgain);
  }
  return {};
}

Result<runtime::TreeCount> VolumeArchives::read(const Key& claim, bool replace, const Fd& archive, std::stop_token stop) {
  auto claim_lock = TRY(ClaimLock::take(*this, claim, true));
  TRY(check_unused(claim));
  TRY(provision(claim, stop));
  Bound found = TRY(bound(claim));
  if (!seams_.is_ours(*found.volume))
    return Error(Code::unsupported,
                 "the volume of " + shown(claim) + " was not made by this node: unpack the archive in " + found.place);
  Fd before = TRY(sys::open(found.place, O_RDONLY | O_DIRECTORY));
  bool is_empty = TRY(sys::is_empty(before));
  if (!is_empty && !replace)
    return Error(Code::already_exists,
                 "the volume of " + shown(claim) + " is not empty; with --replace the archive takes its place");
  Fd staged = TRY(seams_.directories.stage(found.place, volume::capacity_of(*found.volume).bytes()));
  Scope cleared([&] { seams_.clear(); });
  Scope undo([&] { (void)seams_.directories.unstage(found.place); });
  runtime::TreeCount count = TRY(seams_.trees.read(archive, staged, nullptr, std::move(stop)));
  TRY(seams_.directories.put_staged(found.place));
  undo.dismiss();
  return count;
}

}  // namespace coracle::node
