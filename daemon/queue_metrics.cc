// SPDX-License-Identifier: Apache-2.0
// See queue_metrics.h.
#include "daemon/queue_metrics.h"

#include "daemon/api/metrics.h"

namespace coracle {

void write_queue_metrics(std::string& text, const std::map<std::string, QueueCount>& counts) {
  auto labels = [](const std::string& name) { return "name=\"" + name + "\""; };
  struct Column {
    const char *name, *type;
    double (*value)(const QueueCount&);
  };
  for (const Column& column :
       {Column{"workqueue_depth", "gauge", [](const QueueCount& c) { return double(c.depth); }},
        Column{"workqueue_adds_total", "counter", [](const QueueCount& c) { return double(c.adds); }},
        Column{"workqueue_retries_total", "counter", [](const QueueCount& c) { return double(c.retries); }},
        Column{"workqueue_unfinished_work_seconds", "gauge", [](const QueueCount& c) { return c.unfinished_seconds; }},
        Column{"workqueue_longest_running_processor_seconds", "gauge", [](const QueueCount& c) { return c.longest_seconds; }}}) {
    api::write_type(text, column.name, column.type);
    for (const auto& [name, count] : counts) api::write_metric(text, column.name, labels(name), column.value(count));
  }
  for (const auto& [metric, times] : {std::pair("workqueue_queue_duration_seconds", &QueueCount::waited),
                                      std::pair("workqueue_work_duration_seconds", &QueueCount::worked)}) {
    api::write_type(text, metric, "histogram");
    for (const auto& [name, count] : counts)
      api::write_histogram(text, metric, labels(name), QueueCount::kBounds, (count.*times).buckets, (count.*times).seconds);
  }
}

}  // namespace coracle
