// SPDX-License-Identifier: Apache-2.0
// Defaults of Deployments: a rolling update has limits, which are constants of its own type.
// Source: apps/v1 API reference, Deployment.
#include "store/schema/defaults/rules.h"

namespace coracle::schema {
namespace {

void default_strategy(json::object& strategy) {
  if (text_at(strategy, "type") == "RollingUpdate" && unset(strategy, "rollingUpdate", true)) {
    strategy["rollingUpdate"].emplace_object();
  }
}

constexpr NamedDefaultRule kRules[] = {{"io.k8s.api.apps.v1.DeploymentStrategy", default_strategy}};

}  // namespace

std::span<const NamedDefaultRule> deployment_defaults() { return kRules; }

}  // namespace coracle::schema
