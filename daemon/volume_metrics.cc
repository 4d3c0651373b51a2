// SPDX-License-Identifier: Apache-2.0
// See volume_metrics.h.
#include "daemon/volume_metrics.h"

#include "daemon/api/metrics.h"

namespace coracle {

void write_volume_metrics(std::string& text, const std::vector<node::VolumeUse>& volumes) {
  if (volumes.empty()) return;
  struct Column {
    const char* name;
    double (*value)(const node::VolumeUse&);
  };
  using Use = node::VolumeUse;
  for (const Column& column :
       {Column{"kubelet_volume_stats_capacity_bytes", [](const Use& use) { return double(use.capacity.count); }},
        Column{"kubelet_volume_stats_available_bytes", [](const Use& use) { return double(use.available.count); }},
        Column{"kubelet_volume_stats_used_bytes", [](const Use& use) { return double(use.used.count); }},
        Column{"kubelet_volume_stats_inodes", [](const Use& use) { return double(use.inodes); }},
        Column{"kubelet_volume_stats_inodes_free", [](const Use& use) { return double(use.inodes_free); }},
        Column{"kubelet_volume_stats_inodes_used", [](const Use& use) { return double(use.inodes_used); }}}) {
    api::write_type(text, column.name, "gauge");
    for (const Use& use : volumes)
      api::write_metric(text, column.name, "namespace=\"" + use.claim.ns + "\",persistentvolumeclaim=\"" + use.claim.name + "\"",
                        column.value(use));
  }
}

}  // namespace coracle
