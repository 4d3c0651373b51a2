// SPDX-License-Identifier: Apache-2.0
// PodObserver: the part of a sync that brings a pod's record up to date: from the runtime, from reports of other threads, and
// from the probes.
#pragma once

#include <map>
#include <string>

#include "daemon/node/pod_images.h"
#include "daemon/node/pod_sandbox.h"
#include "daemon/node/sync_part.h"

namespace coracle::node {

class PodObserver : private SyncPart {
 public:
  PodObserver(SyncState& state, PodSandbox& sandbox, PodImages& images) : SyncPart(state), sandbox_(sandbox), images_(images) {}

  // Compares the record with the runtime: sandbox, attempts, exit codes. Attaches the network to a sandbox that has lost it.
  Result<void> look();
  // Takes what hooks, pulls and limits have reported since the last sync.
  void take_reports();
  // Copies the probe results of running containers to the record.
  void apply_probe_results();

 private:
  struct Attempts {  // the newest two attempts of one container in the sandbox
    const runtime::ContainerState *newest = nullptr, *before = nullptr;
    ContainerMark newest_mark;
  };
  static std::map<std::string, Attempts, std::less<>> attempts_in(const runtime::SandboxState& sandbox);
  void look_at(ContainerRecord& container, const Attempts& found);
  void note_end(ContainerRecord& container, const runtime::ContainerState& state);
  void note_lost(ContainerRecord& container, int exit_code, std::string reason, std::string message);
  std::string termination_message(const ContainerRecord& container, int exit_code) const;
  void end_as_evicted(std::string why);

  PodSandbox& sandbox_;
  PodImages& images_;
};

}  // namespace coracle::node
