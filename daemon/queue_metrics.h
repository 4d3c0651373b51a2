// SPDX-License-Identifier: Apache-2.0
// workqueue_*: metrics of the controllers' queues, with the names that Kubernetes dashboards use. Source:
// k8s.io/component-base/metrics/prometheus/workqueue.
#pragma once

#include <map>
#include <string>

#include "daemon/queue/work_queue.h"

namespace coracle {

// Writes one series of each metric per queue; `counts` is by queue name.
void write_queue_metrics(std::string& text, const std::map<std::string, QueueCount>& counts);

}  // namespace coracle
