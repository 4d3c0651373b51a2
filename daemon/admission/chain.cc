// SPDX-License-Identifier: Apache-2.0
// See chain.h.
#include "daemon/admission/chain.h"

#include "store/kinds/meta/metadata.h"
#include "store/object/status.h"

namespace coracle::admission {

std::string_view name_of(const Request& request) {
  std::string_view name = request.key.name;
  if (name.empty() && request.object) name = metadata_of(*request.object).name();
  if (name.empty() && request.object) name = metadata_of(*request.object).generate_name();
  return name;
}

Error refuse(const Request& request, std::string_view why) { return forbidden(request.kind, name_of(request), why); }

ObjectPtr ClusterState::get(const Kind& kind, const Key& key) const {
  auto found = engine_.get(kind, key);
  return found ? *std::move(found) : nullptr;
}

std::vector<ObjectPtr> ClusterState::list(const Kind& kind, const std::string& ns) const {
  engine::ListOptions options;
  options.ns = ns;
  auto page = engine_.list(kind, options);
  return page ? std::move(page->items) : std::vector<ObjectPtr>();
}

Result<void> Plugin::admit(Request&, const ClusterState&) const { return {}; }
Result<void> Plugin::validate(const Request&, const ClusterState&) const { return {}; }

Chain::Chain(engine::Engine& engine, std::function<std::string()> suffix, Settings settings)
    : cluster_(engine, std::move(suffix), settings) {
  for (auto make :
       {make_namespace_lifecycle, make_limit_ranger, make_service_account, make_node_restriction, make_taint_nodes_by_condition,
        make_pod_security, make_priority, make_default_toleration_seconds, make_default_storage_class,
        make_storage_object_in_use_protection, make_volume_claim_resize, make_runtime_class, make_default_ingress_class,
        make_deny_service_external_ips, make_warnings, make_not_served, make_start_order, make_resource_quota})
    plugins_.push_back(make());
}

Result<void> Chain::admit(Request& request) const {
  for (const auto& plugin : plugins_) TRY(plugin->admit(request, cluster_));
  return {};
}

std::vector<std::string_view> Chain::names() const {
  std::vector<std::string_view> out;
  for (const auto& plugin : plugins_) out.push_back(plugin->name());
  return out;
}

Result<void> Chain::validate(const Request& request) const {
  for (const auto& plugin : plugins_) TRY(plugin->validate(request, cluster_));
  return {};
}

}  // namespace coracle::admission
