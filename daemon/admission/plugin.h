// SPDX-License-Identifier: Apache-2.0
// Plugin: one rule of admission, in a file of its own. First all may change the request's object, in the order of chain.cc;
// then the object is validated; then all may refuse it.
#pragma once

#include <functional>
#include <memory>

#include "daemon/admission/request.h"

namespace coracle::admission {

// What the configuration and the machine say to plugins.
struct Settings {
  bool deny_service_external_ips = false;
  bool has_app_armor = true;  // the kernel
};

// What plugins look at besides the request: the store as it is now, and the settings.
class World {
 public:
  // `suffix`: what makes a generated name unlike any other.
  World(engine::Engine& engine, std::function<std::string()> suffix) : engine_(engine), suffix_(std::move(suffix)) {}
  ObjectPtr get(const Kind& kind, const Key& key) const;  // null: there is none
  std::vector<ObjectPtr> list(const Kind& kind, const std::string& ns = {}) const;
  engine::Engine& engine() const { return engine_; }
  std::string suffix() const { return suffix_(); }
  const Settings& settings() const { return settings_; }
  void set(Settings settings) { settings_ = settings; }  // before the first request

 private:
  engine::Engine& engine_;
  std::function<std::string()> suffix_;
  Settings settings_;
};

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  // Errors: as the client is told them.
  virtual Result<void> admit(Request& request, const World& world) const;
  virtual Result<void> validate(const Request& request, const World& world) const;
};

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
