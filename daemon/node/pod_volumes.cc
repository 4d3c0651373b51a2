// SPDX-License-Identifier: Apache-2.0
// Prepares the volumes of one pod, and reports what they wait for. See pod_volumes.h.
#include "daemon/node/pod_volumes.h"

#include <algorithm>

#include "runtime/sys/file.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr std::chrono::seconds kHostPathRetry{2};   // retry interval while a hostPath does not exist
constexpr std::chrono::minutes kMountErrorTold{2};  // an unchanged FailedMount event is repeated after so long

}  // namespace

Result<void> PodVolumes::prepare() {
  TRY(sys::make_directories(paths_.state, 0750));
  auto set_stale = [&](bool stale) { seams_.table.change_existing(uid_, [&](RestingPod& pod) { pod.stale_volumes = stale; }); };
  set_stale(false);  // before the sources are read: a later change marks them stale again
  auto first = TRY(first_id());
  const bool begins = record_.sandbox != SandboxFact::alive;
  VolumeResult result = node_volumes_.prepare(pod(), paths_, lookup(), identity(), begins, first.value_or(0));
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

// Updates the volumes of running containers from their sources. Content whose source is missing stays.
void PodVolumes::refresh() {
  if (record_.sandbox != SandboxFact::alive || deleting() || record_.verdict != Verdict::none) return;
  bool due = entry_.volumes_refresh_at && *entry_.volumes_refresh_at <= seams_.clock.now();
  if (!due && !desired_.stale_volumes) return;
  (void)prepare();  // errors were reported
}

void PodVolumes::note_waiting(const VolumeResult& result) {
  state_.waits |= result.waits;
  note_mount_failures(result.failures, result.waits);
  if (result.is_slow) again_at(seams_.clock.steady() + kSlowTold);
}

// Before a container opens volumes that were prepared some time ago.
Result<void> PodVolumes::ask_places() {
  VolumeResult result = node_volumes_.ask_places(pod(), seams_.storage);
  note_waiting(result);
  if (!result.waits && result.failures.empty()) return {};
  return Error(Code::unavailable, "a disk of its volumes has not answered yet");
}

// Reports each failure once in kMountErrorTold, also if the next attempt is still under way. Objects have events; a path on the
// host must be polled.
void PodVolumes::note_mount_failures(const std::vector<MountFailure>& failures, bool waits) {
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
  state_.waits = true;
}

}  // namespace coracle::node
