// SPDX-License-Identifier: Apache-2.0
// See registry_source.h.
#include "daemon/registry_source.h"

#include "daemon/hosts_directory.h"
#include "daemon/registries_file.h"
#include "runtime/base/log.h"

namespace coracle {
namespace {

runtime::RegistrySettings of_config(const Config& config) {
  runtime::RegistrySettings settings;
  settings.insecure = config.insecure_registries;
  settings.mirrors = config.mirrors;
  return settings;
}

Result<runtime::RegistrySettings> read_now(const std::string& path) {
  Config config = TRY(read_config(path));
  return read_registry_settings(config);
}

}  // namespace

Result<runtime::RegistrySettings> read_registry_settings(const Config& config) {
  runtime::RegistrySettings settings = of_config(config);
  TRY(add_registries_file(config.config_dir + "/registries.yaml", settings));
  TRY(add_hosts_directory(config.config_dir + "/certs.d", settings));
  return settings;
}

RegistrySource::RegistrySource(const Config& config)
    : path_(config.path), last_(std::make_shared<Guarded<runtime::RegistrySettings>>()) {
  auto settings = read_registry_settings(config);
  if (!settings) log_warning("main", "registries.yaml and certs.d are not used", {{"why", settings.error().text()}});
  last_->with([&](auto& last) { last = settings ? *std::move(settings) : of_config(config); });
}

runtime::RegistrySettings RegistrySource::operator()() const {
  if (!path_.empty()) {
    auto now = read_now(path_);
    if (now) last_->with([&](auto& last) { last = *std::move(now); });
    else
      log_warning("main", "cannot read the settings of registries; the previous ones remain in use",
                  {{"why", now.error().text()}});
  }
  return last_->with([](const auto& last) { return last; });
}

}  // namespace coracle
