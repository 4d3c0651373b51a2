// SPDX-License-Identifier: Apache-2.0
// Kinds of which the pipeline needs to know only that their generations count: from 1, up with each change of what is wanted.
// Source: Kubernetes 1.36, the kinds' registry strategies.
#include <algorithm>
#include <vector>

#include "daemon/registry/kinds/kinds.h"
#include "store/schema/catalog.h"

namespace coracle::registry {
namespace {

constexpr std::string_view kCounted[] = {"podtemplates",
                                         "replicationcontrollers",
                                         "deployments.apps",
                                         "replicasets.apps",
                                         "statefulsets.apps",
                                         "cronjobs.batch",
                                         "endpointslices.discovery.k8s.io",
                                         "ingressclasses.networking.k8s.io",
                                         "ingresses.networking.k8s.io",
                                         "networkpolicies.networking.k8s.io",
                                         "poddisruptionbudgets.policy"};

std::vector<Strategy> make_simple_strategies() {
  std::vector<Strategy> out;
  for (const schema::KindInfo& info : schema::catalog().kinds()) {
    std::string name = info.kind.qualified_resource();
    if (std::find(std::begin(kCounted), std::end(kCounted), name) == std::end(kCounted)) continue;
    Strategy strategy;
    strategy.kind = &info.kind;
    strategy.deletion.counts_generations = true;
    out.push_back(std::move(strategy));
  }
  return out;
}

}  // namespace

std::span<const Strategy> simple_strategies() {
  static const std::vector<Strategy> all = make_simple_strategies();
  return all;
}

}  // namespace coracle::registry
