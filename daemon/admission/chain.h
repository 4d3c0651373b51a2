// SPDX-License-Identifier: Apache-2.0
// Chain: the admission plugins in Kubernetes' order.
//   registry: decode ▸ default ▸ chain.admit ▸ validate ▸ chain.validate ▸ commit, with what was charged
// Thread-safe. May block for a moment: a new namespace's default service account is waited for.
// Source: Kubernetes pkg/kubeapiserver/options/plugins.go (AllOrderedPlugins).
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "daemon/admission/plugin.h"

namespace coracle::admission {

class Chain {
 public:
  Chain(engine::Engine& engine, std::function<std::string()> suffix);
  void set(Settings settings) { world_.set(settings); }  // before the first request
  Result<void> admit(Request& request) const;
  Result<void> validate(const Request& request) const;
  // Held from before validate() until the commit, where a quota counts the write: two creates at once cannot take one place.
  std::unique_lock<std::mutex> turn(const Request& request) const;
  std::vector<std::string_view> names() const;  // of the plugins, in their order

 private:
  World world_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  mutable std::array<std::mutex, 16> counting_;  // by namespace, so that few wait for others
};

}  // namespace coracle::admission
