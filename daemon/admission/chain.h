// SPDX-License-Identifier: Apache-2.0
// Chain: the admission plugins in Kubernetes' order.
//   registry: decode ▸ default ▸ chain.admit ▸ validate ▸ chain.validate ▸ commit, with the quota's writes
// Thread-safe. May block for a short time, until a new namespace has its default service account. Source: Kubernetes
// pkg/kubeapiserver/options/plugins.go (AllOrderedPlugins).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "daemon/admission/plugin.h"

namespace coracle::admission {

class Chain {
 public:
  Chain(engine::Engine& engine, std::function<std::string()> suffix, Settings settings);
  // Errors of both: the refusal of the first plugin that refuses, with Kubernetes' text; the plugins after it are not called.
  Result<void> admit(Request& request) const;
  Result<void> validate(const Request& request) const;
  std::vector<std::string_view> names() const;  // of the plugins, in order

 private:
  ClusterState cluster_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
};

}  // namespace coracle::admission
