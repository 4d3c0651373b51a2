// SPDX-License-Identifier: Apache-2.0
// workqueue_*: how busy the controllers are, under the names that Kubernetes' dashboards know.
// Source: k8s.io/component-base/metrics/prometheus/workqueue.
#pragma once

#include <map>
#include <string>

#include "daemon/queue/work_queue.h"

namespace coracle {

// One series of each metric for each queue; `counts` is by the queue's name.
void write_queue_metrics(std::string& text, const std::map<std::string, QueueCount>& counts);

}  // namespace coracle
