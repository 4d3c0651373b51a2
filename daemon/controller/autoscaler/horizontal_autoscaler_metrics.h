// SPDX-License-Identifier: Apache-2.0
// Reads the autoscaler's metrics: each metric source is queried through the Client and converted to a proposal and a
// MetricStatus. An API that is not served (custom.metrics.k8s.io, external.metrics.k8s.io) is an error with a message that names
// it.
//   MetricSpec ─▶ metrics.k8s.io, custom or external metrics ─▶ horizontal_autoscaler.h's proposals
// Source: kubernetes/metrics, the APIs' paths and lists; messages are those of Kubernetes' controller.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/autoscaler/horizontal_autoscaler.h"
#include "daemon/informer/informer.h"
#include "store/client/client.h"
#include "store/schema/catalog_source.h"

namespace coracle::controller {

// Pods and metrics for one pass over all autoscalers. Pod metrics are requested once, when first needed, and only for the pods of
// all targets. Pods are listed once per namespace.
class AutoscalerMetrics {
 public:
  // `targets`: the pods of all targets. nullopt: not all are known yet; then all pods are measured.
  using Targets = std::function<std::optional<std::vector<Key>>(AutoscalerMetrics& metrics)>;
  AutoscalerMetrics(Client& client, const schema::CatalogSource& catalogs, const Informer& pods, Targets targets)
      : client_(client), catalogs_(catalogs), cache_(pods), targets_(std::move(targets)) {}

  const std::vector<ObjectPtr>& pods(const std::string& ns);

  // Errors of all: not_found if nothing was measured; those of the API, with Kubernetes' messages.
  Result<PodMetrics> of_resource(const std::vector<ObjectPtr>& pods, const std::string& resource, const std::string& container);
  // `pods` and `selector` are label selectors: of the pods and of the metric.
  Result<PodMetrics> of_pods(const std::string& ns, std::string_view metric, const std::string& pods,
                             const std::string& selector);
  Result<int64_t> of_object(const std::string& ns, view::CrossVersionObjectReference object, std::string_view metric,
                            const std::string& selector);
  Result<int64_t> of_outside(const std::string& ns, std::string_view metric,
                             const std::string& selector);  // the sum of all matching values

 private:
  Result<void> measure(const std::vector<ObjectPtr>& pods);
  Result<void> ask(const ListOptions& options);
  Result<json::value> ask_custom(const std::string& resource, const Key& key, std::string_view metric, const std::string& pods,
                                 const std::string& selector);

  Client& client_;
  const schema::CatalogSource& catalogs_;
  const Informer& cache_;
  std::map<std::string, std::vector<ObjectPtr>> pods_;  // by namespace
  const Targets targets_;
  bool asked_ = false, asked_for_all_ = false;
  std::set<Key> asked_for_;
  std::optional<Error> failure_;
  std::map<Key, ObjectPtr> measured_;
};

struct MetricQuestion {
  AutoscalerMetrics& metrics;
  const Target& target;
  const std::string& ns;
  const std::string& pods;  // label selector
};

struct MetricAnswer {
  Proposal proposal;
  std::string name;    // "cpu resource utilization (percentage of request)"
  json::value status;  // MetricStatus
};

struct MetricFailure {  // the status condition if this metric fails
  std::string_view reason;
  std::string beginning;  // beginning of the message
};

// Evaluates one of spec.metrics. On an error, `failure` has its reason and the beginning of its message.
Result<MetricAnswer> answer_metric(const MetricQuestion& question, view::MetricSpec metric, MetricFailure& failure);

}  // namespace coracle::controller
