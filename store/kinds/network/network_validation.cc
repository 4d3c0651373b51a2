// SPDX-License-Identifier: Apache-2.0
// Validation of NetworkPolicies, and of ServiceCIDRs and IPAddresses. Source: networking.k8s.io/v1 API reference.
#include "store/kinds/network/network_kinds.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void check_policy_port(const json::value& value, const std::string& path, Findings& out) {
  view::NetworkPolicyPort port(value);
  const json::value* number = port.port();
  check_port_or_name(out, sub(path, "port"), number);
  if (!port.has_end_port()) return;
  int64_t last = port.end_port();
  std::string at = sub(path, "endPort");
  if (!number) return out.invalid(at, last, "may not be specified when `port` is not specified");
  if (!number->is_int64()) return out.invalid(at, last, "may not be specified when `port` is non-numeric");
  if (last < number->get_int64()) out.invalid(at, number->get_int64(), "must be greater than or equal to `port`");
  check_port_number(out, at, last);
}

void check_peer(const json::value& value, const std::string& path, Findings& out) {
  view::NetworkPolicyPeer peer(value);
  bool pods = peer.has_pod_selector(), namespaces = peer.has_namespace_selector(), block = peer.has_ip_block();
  if (!pods && !namespaces && !block) out.required(path, "must specify a peer");
  if (block && (pods || namespaces)) out.forbidden(path, "may not specify both ipBlock and another peer");
}

void check_block(const json::value& value, const std::string& path, Findings& out) {
  view::IPBlock block(value);
  std::string_view cidr = block.cidr();
  if (cidr.empty()) return;
  out.invalid_all(sub(path, "cidr"), cidr, network_problems(cidr, false));
  auto network = parse_network(cidr);
  if (!network) return;
  for (size_t i = 0; i < block.except().size(); ++i) {
    std::string_view text = block.except()[i];
    std::string at = item(sub(path, "except"), i);
    out.invalid_all(at, text, network_problems(text, false));
    auto hole = parse_network(text);
    if (hole && (!network->contains(*hole) || network->prefix >= hole->prefix)) {
      out.invalid(at, text, "must be a strict subset of `cidr`");
    }
  }
}

void check_policy_spec(const json::value& spec, const std::string& path, Findings& out) {
  const json::array& types = view::NetworkPolicySpec(spec).policy_types().raw();
  if (types.size() > 2) out.invalid_json(sub(path, "policyTypes"), types, "may not specify more than two policyTypes");
}

void check_parent(const json::value& value, const std::string& path, Findings& out) {
  view::ParentReference parent(value);
  std::string_view group = parent.group();
  if (!group.empty()) out.invalid_all(sub(path, "group"), group, dns_subdomain_problems(group));
  out.invalid_all(sub(path, "resource"), parent.resource(), path_segment_problems(parent.resource()));
  out.invalid_all(sub(path, "name"), parent.name(), path_segment_problems(parent.name()));
  out.invalid_all(sub(path, "namespace"), parent.namespace_(), path_segment_problems(parent.namespace_()));
}

void check_service_networks(const json::value& spec, const std::string& path, Findings& out) {
  view::Range<std::string_view> cidrs = view::ServiceCIDRSpec(spec).cidrs();
  std::string at = sub(path, "cidrs");
  if (cidrs.empty()) return out.required(at, "at least one CIDR required");
  json::object shown{{"CIDRs", cidrs.raw()}};
  if (cidrs.size() > 2) return out.invalid_json(at, json::value(shown), "may only hold up to 2 values");
  if (cidrs.size() == 2) {
    auto first = parse_network(cidrs[0]), second = parse_network(cidrs[1]);
    if (!first || !second || first->four() == second->four()) {
      return out.invalid_json(at, json::value(shown),
                              "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
    }
  }
  for (size_t i = 0; i < cidrs.size(); ++i) out.invalid_all(item(at, i), cidrs[i], network_problems(cidrs[i], true));
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
  check_immutable(out, "spec.parentRef", view::IPAddress(now).spec().parent_ref().pointer(),
                  view::IPAddress(before).spec().parent_ref().pointer());
}

void check_service_networks_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::ServiceCIDRSpec spec = view::ServiceCIDR(now).spec(), old = view::ServiceCIDR(before).spec();
  json::value cidrs(spec.cidrs().raw()), old_cidrs(old.cidrs().raw());
  check_immutable(out, "spec.cidrs", spec.has_cidrs() ? &cidrs : nullptr, old.has_cidrs() ? &old_cidrs : nullptr);
}

}  // namespace coracle::schema
