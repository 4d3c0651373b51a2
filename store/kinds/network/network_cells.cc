// SPDX-License-Identifier: Apache-2.0
// Cells of ingresses and ingress classes, and of IP addresses with their owners.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/network/network_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kHostsShown = 3, kAddressWidth = 16;

json::value ingress_hosts(const CellInput& in) {
  auto rules = view::Ingress(in.object).spec().rules();
  std::vector<std::string> shown;
  bool more = false;
  for (view::IngressRule rule : rules) {
    if (shown.size() == kHostsShown) more = true;
    else if (!rule.host().empty()) shown.emplace_back(rule.host());
  }
  if (shown.empty()) return json::value("*");
  std::string text = join(shown, ",");
  if (more) text += " + " + std::to_string(rules.size() - kHostsShown) + " more...";
  return json::value(text);
}

json::value ingress_address(const CellInput& in) {
  std::set<std::string> points;
  for (view::IngressLoadBalancerIngress point : view::Ingress(in.object).status().load_balancer().ingress()) {
    if (!point.ip().empty()) points.emplace(point.ip());
    else if (!point.hostname().empty()) points.emplace(point.hostname());
  }
  std::string text = join(std::vector<std::string>(points.begin(), points.end()), ",");
  if (text.size() > kAddressWidth) text = text.substr(0, kAddressWidth - 3) + "...";
  return json::value(text);
}

json::value ingress_ports(const CellInput& in) {
  return json::value(view::Ingress(in.object).spec().tls().empty() ? "80" : "80, 443");
}

json::value parameters(const CellInput& in) {
  view::IngressClassParametersReference to = view::IngressClass(in.object).spec().parameters();
  if (!to) return or_none({});
  std::string text(to.kind());
  if (to.has_api_group()) text += "." + std::string(to.api_group());
  return json::value(text + "/" + std::string(to.name()));
}

json::value parent(const CellInput& in) {
  view::ParentReference to = view::IPAddress(in.object).spec().parent_ref();
  if (!to) return or_none({});
  std::string text;
  for (std::string_view part : {to.group(), to.resource(), to.namespace_()}) {
    if (!part.empty()) text += std::string(part) + "/";
  }
  return json::value(text + std::string(to.name()));
}

constexpr NamedCellRule kNetworkCells[] = {{"ingress.hosts", ingress_hosts},
                                           {"ingress.address", ingress_address},
                                           {"ingress.ports", ingress_ports},
                                           {"ingressclass.parameters", parameters},
                                           {"ipaddress.parent", parent}};

}  // namespace

std::span<const NamedCellRule> network_cells() { return kNetworkCells; }

}  // namespace coracle::schema
