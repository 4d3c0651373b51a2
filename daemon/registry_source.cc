// SPDX-License-Identifier: Apache-2.0
// See registry_source.h.
#include "daemon/registry_source.h"

#include <algorithm>
#include <utility>

#include "daemon/hosts_directory.h"
#include "daemon/registries_file.h"
#include "runtime/base/log.h"

namespace coracle {

runtime::RegistrySettings read_registry_settings(const Config& config) {
  runtime::RegistrySettings settings;
  settings.insecure = config.insecure_registries;
  settings.mirrors = config.mirrors;
  auto added = add_registries_file(config.config_dir + "/registries.yaml", settings);
  if (added) added = add_hosts_directory(config.config_dir + "/certs.d", settings);
  if (!added) settings.refused_all = added.error().text();
  return settings;
}

std::vector<std::string> refusals_in(const runtime::RegistrySettings& settings) {
  std::vector<std::string> all;
  auto add = [&](const std::string& why) {
    if (!why.empty() && std::find(all.begin(), all.end(), why) == all.end()) all.push_back(why);
  };
  add(settings.refused_all);
  for (const auto& [registry, why] : settings.refused) add(why);
  for (const auto& [name, host] : settings.hosts) add(host.refused);
  return all;
}

RegistrySource::RegistrySource(const Config& config) : path_(config.path), last_(std::make_shared<Guarded<Last>>()) {
  take(read_registry_settings(config));
}

runtime::RegistrySettings RegistrySource::operator()() const {
  if (!path_.empty()) {
    auto config = read_config(path_);
    runtime::RegistrySettings now;
    if (config) now = read_registry_settings(*config);
    else now.refused_all = config.error().text();
    take(std::move(now));
  }
  return last_->with([](const Last& last) { return last.settings; });
}

// Logs what was not wrong before.
void RegistrySource::take(runtime::RegistrySettings now) const {
  std::vector<std::string> wrong = refusals_in(now), told;
  const bool has_previous = last_->with([&](Last& last) {
    told = std::exchange(last.told, wrong);
    const bool is_none = !now.refused_all.empty(), has_any = last.is_read && last.settings.refused_all.empty();
    last.is_read = true;
    if (!is_none || !has_any) last.settings = std::move(now);
    return is_none && has_any;
  });
  const char* text = has_previous ? "cannot read the settings of registries; the previous ones remain in use"
                                  : "settings of registries are wrong; what needs them is not pulled";
  for (const std::string& why : wrong)
    if (std::find(told.begin(), told.end(), why) == told.end()) log_warning("main", text, {{"why", why}});
}

}  // namespace coracle
