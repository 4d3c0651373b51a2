// SPDX-License-Identifier: Apache-2.0
// What the autoscaler's metrics say: each kind of source is asked through the Client, and its answer becomes a proposal and a
// MetricStatus. An API that nobody serves (custom.metrics.k8s.io, external.metrics.k8s.io) is a failure that says so.
//   MetricSpec ─▶ metrics.k8s.io, custom or external metrics ─▶ horizontal_autoscaler.h's proposals
// Source: kubernetes/metrics, the APIs' paths and lists; messages as Kubernetes' controller words them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/horizontal_autoscaler.h"
#include "daemon/informer/informer.h"
#include "store/client/client.h"
#include "store/schema/catalog_source.h"

namespace coracle::controller {

// Where a tick's pods and metrics come from. What is measured of pods is asked once, when the first autoscaler wants it, for the
// pods of all targets and no other; and each pod is looked into once, however many autoscalers ask whether it is theirs.
class AutoscalerMetrics {
 public:
  // `targets`: the pods of all targets. Nothing: not all are known yet; then all pods are measured.
  using Targets = std::function<std::optional<std::vector<Key>>(AutoscalerMetrics& metrics)>;
  AutoscalerMetrics(Client& client, const schema::CatalogSource& catalogs, const Informer& pods, Targets targets)
      : client_(client), catalogs_(catalogs), cache_(pods), targets_(std::move(targets)) {}

  const std::vector<ObjectPtr>& pods(const std::string& ns);

  // All errors: not_found when nothing was measured; those of the API, in Kubernetes' words.
  Result<PodMetrics> of_resource(const std::vector<ObjectPtr>& pods, const std::string& resource, const std::string& container);
  // `pods` and `selector`: label selectors, of the pods and of the metric.
  Result<PodMetrics> of_pods(const std::string& ns, std::string_view metric, const std::string& pods,
                             const std::string& selector);
  Result<int64_t> of_object(const std::string& ns, const json::value& object, std::string_view metric,
                            const std::string& selector);
  Result<int64_t> of_outside(const std::string& ns, std::string_view metric,
                             const std::string& selector);  // all that match, together

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
  const std::string& pods;  // selector
};

struct MetricAnswer {
  Proposal proposal;
  std::string name;    // "cpu resource utilization (percentage of request)"
  json::value status;  // MetricStatus
};

struct MetricFailure {  // of one metric, were it to fail
  std::string_view reason;
  std::string beginning;  // of its words in the sum of all metrics
};

// One of spec.metrics. `failure` says what it means when there is an error.
Result<MetricAnswer> answer_metric(const MetricQuestion& question, const json::value& metric, MetricFailure& failure);

}  // namespace coracle::controller
