// SPDX-License-Identifier: Apache-2.0
// The scheduler's configuration: a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), read as kube-scheduler does.
// Without one, Kubernetes' defaults apply. Fields for a separate process (leaderElection, clientConnection, addresses, profiling,
// parallelism, delayCacheUntilActive) are accepted and have no effect. Extenders are not supported and are rejected.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/scheduler/framework.h"
#include "runtime/base/result.h"

namespace coracle::scheduler {

struct Configuration {
  std::vector<std::shared_ptr<const Framework>> profiles;  // at least one; with different names
  std::chrono::seconds backoff_first{1}, backoff_longest{10};
  std::chrono::seconds volumes_bound_within{600};
};

Configuration default_configuration();  // one profile, with Kubernetes' defaults
// YAML or JSON. Errors: invalid, with the field, the plugin, or the plugin's argument.
Result<Configuration> read_configuration(std::string_view text);

}  // namespace coracle::scheduler
