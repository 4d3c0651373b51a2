// SPDX-License-Identifier: Apache-2.0
// NfsMounts: the shares of NFS servers that pods have as volumes. A server that does not answer holds up who mounts its share or
// opens it; so both are tried elsewhere, and a pod goes on once that has succeeded. The workers never wait for a server.
//   is_ready(pod, share) ──no──▶ mount ▸ ask the server (elsewhere) ──▶ look_again(pod) ──▶ is_ready: yes, or what went wrong
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

constexpr std::chrono::seconds kAnswerHolds{5};  // so long a server that has answered is not asked again

class NfsMounts {
 public:
  struct Seams {
    const MountHooks& mounts;
    const Clock& clock;
    std::function<void(const std::string& server, Task task)> elsewhere;
    std::function<void(const std::string& uid)> look_again;
  };
  explicit NfsMounts(Seams seams) : seams_(std::move(seams)) {}

  // Whether the share is mounted on the directory, and its server has answered just now. False: that is being seen to, and the
  // pod is looked at again. Does not block. Errors: what went wrong, once; asked again, it is tried again.
  Result<bool> is_ready(const std::string& uid, const std::string& directory, const NfsShare& share);
  // From now on nothing is mounted for the pod. Errors: unavailable, something is being mounted still; it is told to end, and the
  // pod is looked at again then.
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
  Guarded<std::map<std::string, Shares>> pods_;  // by uid
};

}  // namespace coracle::node
