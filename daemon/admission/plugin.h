// SPDX-License-Identifier: Apache-2.0
// Plugin: one admission rule, in a file of its own. First every plugin may change the object, in the order of chain.cc. Then the
// object is validated. Then every plugin may reject it.
#pragma once

#include <functional>
#include <memory>

#include "daemon/admission/request.h"

namespace coracle::admission {

// Settings of the plugins, from the configuration and the machine.
struct Settings {
  bool deny_service_external_ips = false;
  bool has_app_armor = true;  // of the kernel
};

// The plugins' access to the store's current state and to the settings.
class ClusterState {
 public:
  // `suffix` generates unique suffixes of names.
  ClusterState(engine::Engine& engine, std::function<std::string()> suffix, Settings settings)
      : engine_(engine), suffix_(std::move(suffix)), settings_(settings) {}
  ObjectPtr get(const Kind& kind, const Key& key) const;  // null: it does not exist
  std::vector<ObjectPtr> list(const Kind& kind, const std::string& ns = {}) const;
  engine::Engine& engine() const { return engine_; }
  std::string suffix() const { return suffix_(); }
  const Settings& settings() const { return settings_; }

 private:
  engine::Engine& engine_;
  std::function<std::string()> suffix_;
  const Settings settings_;
};

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  // Errors: returned to the client.
  virtual Result<void> admit(Request& request, const ClusterState& cluster) const;
  virtual Result<void> validate(const Request& request, const ClusterState& cluster) const;
};

// One for each plugin; what it does is said in its file. chain.cc has their order.
std::unique_ptr<Plugin> make_namespace_lifecycle();
std::unique_ptr<Plugin> make_limit_ranger();
std::unique_ptr<Plugin> make_service_account();
std::unique_ptr<Plugin> make_node_restriction();
std::unique_ptr<Plugin> make_taint_nodes_by_condition();
std::unique_ptr<Plugin> make_pod_security();
std::unique_ptr<Plugin> make_priority();
std::unique_ptr<Plugin> make_start_order();
std::unique_ptr<Plugin> make_default_toleration_seconds();
std::unique_ptr<Plugin> make_default_storage_class();
std::unique_ptr<Plugin> make_storage_object_in_use_protection();
std::unique_ptr<Plugin> make_volume_claim_resize();
std::unique_ptr<Plugin> make_runtime_class();
std::unique_ptr<Plugin> make_default_ingress_class();
std::unique_ptr<Plugin> make_deny_service_external_ips();
std::unique_ptr<Plugin> make_not_served();
std::unique_ptr<Plugin> make_warnings();
std::unique_ptr<Plugin> make_resource_quota();

}  // namespace coracle::admission
