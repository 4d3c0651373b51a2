// SPDX-License-Identifier: Apache-2.0
// Validation of nodes and namespaces. Source: core/v1 API reference.
#include <set>

#include "store/kinds/node/node_kinds.h"
#include "store/schema/validate/resource.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void check_node_spec(const json::value& value, const std::string& path, Findings& out) {
  view::NodeSpec spec(value);
  for (size_t i = 0; i < spec.pod_cidrs().size(); ++i) {
    std::string_view cidr = spec.pod_cidrs()[i];
    out.invalid_all(item(sub(path, "podCIDRs"), i), cidr, network_problems(cidr, false));
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < spec.taints().size(); ++i) {
    view::Taint taint = spec.taints()[i];
    std::string at = item(sub(path, "taints"), i);
    if (!taint.key().empty()) out.invalid_all(sub(at, "key"), taint.key(), qualified_name_problems(taint.key()));
    out.invalid_all(sub(at, "value"), taint.value(), label_value_problems(taint.value()));
    if (!seen.insert(std::string(taint.key()) + ":" + std::string(taint.effect())).second) {
      out.add({"FieldValueDuplicate",
               "Duplicate value: " + to_text(taint.raw()) + ": taints must be unique by key and effect pair", at});
    }
  }
}

void check_namespace_spec(const json::value& value, const std::string& path, Findings& out) {
  view::NamespaceSpec spec(value);
  for (size_t i = 0; i < spec.finalizers().size(); ++i) {
    out.invalid_all(item(sub(path, "finalizers"), i), spec.finalizers()[i], qualified_name_problems(spec.finalizers()[i]));
  }
}

constexpr NamedValidationRule kNodeChecks[] = {
    {"io.k8s.api.core.v1.NodeSpec", check_node_spec},
    {"io.k8s.api.core.v1.NamespaceSpec", check_namespace_spec},
};

}  // namespace

std::span<const NamedValidationRule> node_rules() { return kNodeChecks; }

void check_node_create(const json::value& node, Findings& out) {
  auto check = [&](const std::string& path, const json::object& amounts) {
    for (const auto& [name, amount] : amounts) check_resource_amount(out, sub(path, std::string_view(name)), name, amount);
  };
  view::NodeStatus status = view::Node(node).status();
  check("status.capacity", status.capacity());
  check("status.allocatable", status.allocatable());
}

void check_node_status(const json::value& now, const json::value&, Findings& out) {
  check_node_create(now, out);
  view::Range<view::NodeAddress> addresses = view::Node(now).status().addresses();
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (size_t i = 0; i < addresses.size(); ++i) {
    bool fresh = seen.emplace(addresses[i].type(), addresses[i].address()).second;
    if (!fresh) out.duplicate_json(item("status.addresses", i), addresses[i].raw());
  }
}

void check_node_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::NodeSpec spec = view::Node(now).spec(), old = view::Node(before).spec();
  if (!old.pod_cidrs().empty() && !same_json(spec.pod_cidrs().raw(), old.pod_cidrs().raw())) {
    out.forbidden("spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
  }
  if (!old.provider_id().empty() && spec.provider_id() != old.provider_id()) {
    out.forbidden("spec.providerID", "node updates may not change providerID except from \"\" to valid");
  }
}

}  // namespace coracle::schema
