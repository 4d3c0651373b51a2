// SPDX-License-Identifier: Apache-2.0
// Cells of services and their endpoints: addresses and ports as short text.
#include "runtime/base/text.h"
#include "store/kinds/service/service_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kShownMax = 3;

// "a,b,c", or "a,b,c + 2 more...".
std::string shown(const std::vector<std::string>& all) {
  std::vector<std::string> first(all.begin(), all.begin() + std::min(all.size(), kShownMax));
  std::string text = join(first, ",");
  if (all.size() > kShownMax) text += " + " + std::to_string(all.size() - kShownMax) + " more...";
  return text;
}

json::value cluster_ip(const CellInput& in) {
  view::ServiceSpec spec = view::Service(in.object).spec();
  if (!spec.cluster_ips().empty()) return or_none(spec.cluster_ips()[0]);
  return or_none(spec.cluster_ip());
}

json::value external_ip(const CellInput& in) {
  view::Service service(in.object);
  view::ServiceSpec spec = service.spec();
  if (spec.type() == "ExternalName") return json::value(spec.external_name());
  std::vector<std::string> addresses;
  if (spec.type() == "LoadBalancer") {
    for (view::LoadBalancerIngress point : service.status().load_balancer().ingress()) {
      addresses.emplace_back(point.ip().empty() ? point.hostname() : point.ip());
    }
  }
  for (std::string_view address : spec.external_ips()) addresses.emplace_back(address);
  if (addresses.empty() && spec.type() == "LoadBalancer") return json::value("<pending>");
  return or_none(join(addresses, ","));
}

json::value service_ports(const CellInput& in) {
  std::vector<std::string> texts;
  for (view::ServicePort port : view::Service(in.object).spec().ports()) {
    std::string text = std::to_string(port.port());
    if (port.node_port()) text += ":" + std::to_string(port.node_port());
    texts.push_back(text + "/" + std::string(port.protocol()));
  }
  return or_none(join(texts, ","));
}

json::value addresses(const CellInput& in) {
  std::vector<std::string> first;
  size_t count = 0;  // addresses times ports: only builds what is printed
  for (view::EndpointSubset subset : view::Endpoints(in.object).subsets()) {
    auto add = [&](std::string_view address, std::string_view port) {
      bool six = !port.empty() && address.find(':') != std::string_view::npos;
      std::string host = six ? "[" + std::string(address) + "]" : std::string(address);
      first.push_back(port.empty() ? host : host + ":" + std::string(port));
    };
    const auto ports = subset.ports();
    const auto listed = subset.addresses();
    count += std::max<size_t>(ports.size(), 1) * listed.size();
    for (view::EndpointAddress address : listed)
      if (ports.empty() && first.size() < kShownMax) add(address.ip(), "");
    for (view::EndpointPort port : ports) {
      if (first.size() == kShownMax) break;
      for (view::EndpointAddress address : listed)
        if (first.size() < kShownMax) add(address.ip(), std::to_string(port.port()));
    }
  }
  std::string text = join(first, ",");
  if (count > first.size()) text += " + " + std::to_string(count - first.size()) + " more...";
  return or_none(text);
}

json::value slice_ports(const CellInput& in) {
  std::vector<std::string> all;
  for (view::DiscoveryEndpointPort port : view::EndpointSlice(in.object).ports()) {
    if (port.has_port()) all.push_back(std::to_string(port.port()));
    else all.push_back(port.name().empty() ? "*" : std::string(port.name()));
  }
  return json::value(all.empty() ? "<unset>" : shown(all));
}

json::value slice_endpoints(const CellInput& in) {
  std::vector<std::string> all;
  for (view::Endpoint endpoint : view::EndpointSlice(in.object).endpoints()) {
    for (std::string_view address : endpoint.addresses()) all.emplace_back(address);
  }
  return json::value(all.empty() ? "<unset>" : shown(all));
}

constexpr NamedCellRule kServiceCells[] = {{"service.cluster_ip", cluster_ip}, {"service.external_ip", external_ip},
                                           {"service.ports", service_ports},   {"endpoints.addresses", addresses},
                                           {"slice.ports", slice_ports},       {"slice.endpoints", slice_endpoints}};

}  // namespace

std::span<const NamedCellRule> service_cells() { return kServiceCells; }

}  // namespace coracle::schema
