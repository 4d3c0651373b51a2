// SPDX-License-Identifier: Apache-2.0
// See registry_source.h.
#include "daemon/registry_source.h"

#include "runtime/base/log.h"

namespace coracle {
namespace {

runtime::RegistrySettings settings_of(const Config& config) { return {config.insecure_registries, config.mirrors}; }

}  // namespace

RegistrySource::RegistrySource(const Config& config)
    : path_(config.path), last_(std::make_shared<Guarded<runtime::RegistrySettings>>(settings_of(config))) {}

runtime::RegistrySettings RegistrySource::operator()() const {
  if (!path_.empty()) {
    auto now = read_config(path_);
    if (now) last_->with([&](auto& last) { last = settings_of(*now); });
    else log_warning("main", "the settings of registries stay as they were", {{"why", now.error().text()}});
  }
  return last_->with([](const auto& last) { return last; });
}

}  // namespace coracle
