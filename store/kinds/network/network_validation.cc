// SPDX-License-Identifier: Apache-2.0
// Validation of NetworkPolicies, and of ServiceCIDRs and IPAddresses. Source: networking.k8s.io/v1 API reference.
#include "store/kinds/network/network_kinds.h"
#include "store/schema/validate/syntax.h"

namespace coracle::schema {
namespace {

void check_policy_port(const json::value& port, const std::string& path, Findings& out) {
  const json::value *number = find(port, "port"), *end = find(port, "endPort");
  check_port_or_name(out, sub(path, "port"), number);
  if (!end || !end->is_int64()) return;
  int64_t last = end->get_int64();
  std::string at = sub(path, "endPort");
  if (!number) return out.invalid(at, last, "may not be specified when `port` is not specified");
  if (!number->is_int64()) return out.invalid(at, last, "may not be specified when `port` is non-numeric");
  if (last < number->get_int64()) out.invalid(at, number->get_int64(), "must be greater than or equal to `port`");
  check_port_number(out, at, last);
}

void check_peer(const json::value& peer, const std::string& path, Findings& out) {
  bool pods = find(peer, "podSelector"), namespaces = find(peer, "namespaceSelector"), block = find(peer, "ipBlock");
  if (!pods && !namespaces && !block) out.required(path, "must specify a peer");
  if (block && (pods || namespaces)) out.forbidden(path, "may not specify both ipBlock and another peer");
}

void check_block(const json::value& block, const std::string& path, Findings& out) {
  std::string_view cidr = get_string(block, "cidr");
  if (cidr.empty()) return;
  out.invalid_all(sub(path, "cidr"), cidr, network_problems(cidr, false));
  auto network = parse_network(cidr);
  if (!network) return;
  const json::array& holes = get_array(block, "except");
  for (size_t i = 0; i < holes.size(); ++i) {
    std::string_view text = holes[i].is_string() ? std::string_view(holes[i].get_string()) : std::string_view();
    std::string at = item(sub(path, "except"), i);
    out.invalid_all(at, text, network_problems(text, false));
    auto hole = parse_network(text);
    if (hole && (!network->contains(*hole) || network->prefix >= hole->prefix)) {
      out.invalid(at, text, "must be a strict subset of `cidr`");
    }
  }
}

void check_policy_spec(const json::value& spec, const std::string& path, Findings& out) {
  const json::array& types = get_array(spec, "policyTypes");
  if (types.size() > 2) out.invalid_json(sub(path, "policyTypes"), types, "may not specify more than two policyTypes");
}

void check_parent(const json::value& parent, const std::string& path, Findings& out) {
  std::string_view group = get_string(parent, "group");
  if (!group.empty()) out.invalid_all(sub(path, "group"), group, dns_subdomain_problems(group));
  for (std::string_view name : {"resource", "name", "namespace"}) {
    out.invalid_all(sub(path, name), get_string(parent, name), path_segment_problems(get_string(parent, name)));
  }
}

void check_service_networks(const json::value& spec, const std::string& path, Findings& out) {
  const json::array& cidrs = get_array(spec, "cidrs");
  std::string at = sub(path, "cidrs");
  if (cidrs.empty()) return out.required(at, "at least one CIDR required");
  json::object shown{{"CIDRs", cidrs}};
  if (cidrs.size() > 2) return out.invalid_json(at, json::value(shown), "may only hold up to 2 values");
  auto text = [&](size_t i) { return cidrs[i].is_string() ? std::string_view(cidrs[i].get_string()) : std::string_view(); };
  if (cidrs.size() == 2) {
    auto first = parse_network(text(0)), second = parse_network(text(1));
    if (!first || !second || first->four() == second->four()) {
      return out.invalid_json(at, json::value(shown),
                              "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
    }
  }
  for (size_t i = 0; i < cidrs.size(); ++i) out.invalid_all(item(at, i), text(i), network_problems(text(i), true));
}

constexpr NamedValidationRule kNetworkChecks[] = {
    {"io.k8s.api.networking.v1.NetworkPolicySpec", check_policy_spec},
    {"io.k8s.api.networking.v1.NetworkPolicyPort", check_policy_port},
    {"io.k8s.api.networking.v1.NetworkPolicyPeer", check_peer},
    {"io.k8s.api.networking.v1.IPBlock", check_block},
    {"io.k8s.api.networking.v1.ParentReference", check_parent},
    {"io.k8s.api.networking.v1.ServiceCIDRSpec", check_service_networks},
};

}  // namespace

std::span<const NamedValidationRule> network_rules() { return kNetworkChecks; }

void check_address_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "spec.parentRef", find(now, "spec.parentRef"), find(before, "spec.parentRef"));
}

void check_service_networks_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "spec.cidrs", find(now, "spec.cidrs"), find(before, "spec.cidrs"));
}

}  // namespace coracle::schema
