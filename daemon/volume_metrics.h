// SPDX-License-Identifier: Apache-2.0
// kubelet_volume_stats_*: usage of the claims' volumes, with the names that Kubernetes dashboards use. Source: kubelet,
// pkg/kubelet/metrics/collectors/volume_stats.go.
#pragma once

#include <string>
#include <vector>

#include "daemon/node/volume/volume_use.h"

namespace coracle {

// Writes one series of each metric per claim; nothing if there are no claims.
void write_volume_metrics(std::string& text, const std::vector<node::VolumeUse>& volumes);

}  // namespace coracle
