// SPDX-License-Identifier: Apache-2.0
// Validation of Leases. Source: Kubernetes 1.36, pkg/apis/coordination/validation.
#include "store/kinds/lease/lease_kinds.h"
#include "store/schema/validate/texts.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void check_lease(const json::value& value, const std::string& path, Findings& out) {
  view::LeaseSpec lease(value);
  int64_t lasts = lease.lease_duration_seconds_or(1);
  if (lasts <= 0) out.invalid(sub(path, "leaseDurationSeconds"), lasts, "must be greater than 0");
  int64_t times = lease.lease_transitions();
  if (times < 0) out.invalid(sub(path, "leaseTransitions"), times, "must be greater than or equal to 0");
  std::string_view strategy = lease.strategy();
  std::string at = sub(path, "strategy");
  if (lease.has_strategy()) {
    size_t slash = strategy.find('/');
    if (slash == strategy.npos && strategy != "OldestEmulationVersion")
      unsupported(out, at, strategy, {"OldestEmulationVersion"});
    if (slash != strategy.npos) check_qualified(out, at, strategy);
  }
  if (!lease.preferred_holder().empty() && strategy.empty()) {
    out.forbidden(sub(path, "preferredHolder"), "may only be specified when `strategy` is defined");
  }
}

constexpr NamedValidationRule kLeaseChecks[] = {{"io.k8s.api.coordination.v1.LeaseSpec", check_lease}};

}  // namespace

std::span<const NamedValidationRule> lease_rules() { return kLeaseChecks; }

}  // namespace coracle::schema
