// SPDX-License-Identifier: Apache-2.0
// NfsMounts: mounts the NFS shares that pods have as volumes. Mounting or opening a share blocks while its server does not
// answer. So the mount and a check of the server run on other threads, and the pod is synced again when they have finished. The
// pod workers never wait for a server.
//   is_ready(pod, share) ──no──▶ mount ▸ check the server (elsewhere) ──▶ look_again(pod) ──▶ is_ready: true, or the error
// Source: Kubernetes core/v1 NFSVolumeSource.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "daemon/node/config.h"
#include "daemon/node/task_pool.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"

namespace coracle::node {

constexpr std::chrono::seconds kAnswerHolds{5};  // a server that has answered is not checked again for so long

class NfsMounts {
 public:
  struct Seams {
    const MountHooks& mounts;
    const Clock& clock;
    std::function<void(const std::string& server, Task task)> elsewhere;
    std::function<void(const std::string& uid)> look_again;
  };
  explicit NfsMounts(Seams seams) : seams_(std::move(seams)) {}

  // Whether the share is mounted on the directory and its server has answered recently. False: the mount is under way, and the
  // pod will be synced again. Does not block. Errors: the error of the last attempt, returned once; the next call tries again.
  // unsupported without MountHooks::nfs.
  Result<bool> is_ready(const std::string& uid, const std::string& directory, const NfsShare& share);
  // Stops mounting for the pod. Errors: unavailable while a mount is still running; it is cancelled, and the pod is synced again
  // when it has ended.
  Result<void> stop(const std::string& uid);

 private:
  struct Share {
    bool is_running = false;
    std::stop_source stop;
    std::optional<SteadyTime> answered;
    std::optional<Error> error;
  };
  using Shares = std::map<std::string, Share>;  // by directory
  void see_to(const std::string& uid, const std::string& directory, const NfsShare& share, std::stop_token stop);
  Result<void> mount(const std::string& directory, const NfsShare& share, const std::stop_token& stop);

  Seams seams_;
  Guarded<std::map<std::string, Shares>> pods_;  // by pod uid
};

}  // namespace coracle::node
