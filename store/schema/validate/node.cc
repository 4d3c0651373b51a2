// SPDX-License-Identifier: Apache-2.0
// Validation of nodes, leases and what else is small. Source: core/v1 and coordination.k8s.io/v1 API references.
#include <set>

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
      out.add({"FieldValueDuplicate", "Duplicate value: " + to_text(taint.raw()) + ": taints must be unique by key and effect pair", at});
    }
  }
}

void check_namespace_spec(const json::value& value, const std::string& path, Findings& out) {
  view::NamespaceSpec spec(value);
  for (size_t i = 0; i < spec.finalizers().size(); ++i) {
    out.invalid_all(item(sub(path, "finalizers"), i), spec.finalizers()[i], qualified_name_problems(spec.finalizers()[i]));
  }
}

void check_lease_spec(const json::value& value, const std::string& path, Findings& out) {
  view::LeaseSpec spec(value);
  if (spec.has_lease_duration_seconds() && spec.lease_duration_seconds() <= 0) {
    out.invalid(sub(path, "leaseDurationSeconds"), spec.lease_duration_seconds(), "must be greater than 0");
  }
  if (spec.has_lease_transitions()) out.not_negative(sub(path, "leaseTransitions"), spec.lease_transitions());
}

void check_event(const json::value& value, const std::string&, Findings& out) {
  view::Event event(value);
  std::string_view about = event.involved_object().namespace_(), own = event.metadata().namespace_();
  bool of_the_cluster = about.empty() && (own == "default" || own == "kube-system");
  if (about != own && !of_the_cluster) out.invalid("involvedObject.namespace", about, "does not match event.namespace");
}

constexpr NamedValidationRule kRules[] = {
    {"io.k8s.api.core.v1.NodeSpec", check_node_spec},
    {"io.k8s.api.core.v1.NamespaceSpec", check_namespace_spec},
    {"io.k8s.api.coordination.v1.LeaseSpec", check_lease_spec},
    {"io.k8s.api.core.v1.Event", check_event},
};

}  // namespace

std::span<const NamedValidationRule> node_rules() { return kRules; }

}  // namespace coracle::schema
