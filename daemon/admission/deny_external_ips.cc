// SPDX-License-Identifier: Apache-2.0
// DenyServiceExternalIPs: rejects new external IPs in Services, if enabled. Off by default, as in Kubernetes. Source: Kubernetes
// plugin/pkg/admission/denyserviceexternalips.
#include <set>

#include "daemon/admission/plugin.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

std::set<std::string_view> external_ips(const json::value& service) {
  auto all = view::Service(service).spec().external_ips();
  return {all.begin(), all.end()};
}

class DenyServiceExternalIPs : public Plugin {
 public:
  std::string_view name() const override { return "DenyServiceExternalIPs"; }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    bool writes = request.kind == kService && request.subresource.empty() && request.object;
    if (!writes || !cluster.settings().deny_service_external_ips) return {};
    std::set<std::string_view> now = external_ips(*request.object), before;
    if (request.old) before = external_ips(request.old->json());
    for (std::string_view address : now)
      if (!before.contains(address)) return refuse(request, "Use of external IPs is denied by admission control.");
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_deny_service_external_ips() { return std::make_unique<DenyServiceExternalIPs>(); }

}  // namespace coracle::admission
