// SPDX-License-Identifier: Apache-2.0
// kubelet_volume_stats_*: how full the volumes of claims are, under the names that Kubernetes' dashboards know.
// Source: kubelet, pkg/kubelet/metrics/collectors/volume_stats.go.
#pragma once

#include <string>
#include <vector>

#include "daemon/node/volume_use.h"

namespace coracle {

// One series of each metric for each claim; nothing at all when there are none.
void write_volume_metrics(std::string& text, const std::vector<node::VolumeUse>& volumes);

}  // namespace coracle
