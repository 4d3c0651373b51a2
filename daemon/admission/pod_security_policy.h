// SPDX-License-Identifier: Apache-2.0
// The Pod Security Standards: levels, their versions, and the violations of a level by a pod. Pure.
//   a namespace's labels ──policy_of──▶ Policy {enforce, audit, warn} ──violations──▶ texts
// Source: Kubernetes "Pod Security Standards"; pod-security-admission api and policy.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/schema/views.h"

namespace coracle::admission {

enum class SecurityLevel : uint8_t { privileged, baseline, restricted };

struct LevelVersion {
  SecurityLevel level = SecurityLevel::privileged;
  std::optional<int> minor;  // of version 1; nullopt: latest
  std::string text() const;  // "restricted:v1.30"
  bool operator==(const LevelVersion&) const = default;
};

struct SecurityPolicy {
  LevelVersion enforce, audit, warn;
  std::vector<Cause> errors;  // labels with unknown values; for enforce, the strictest level is used then
  bool privileged() const;    // in all three modes
};
SecurityPolicy policy_of(const json::object& labels);

struct Violation {
  std::string reason, detail;  // "privileged", "container \"c\" must not set securityContext.privileged=true"
};
// `metadata` and `spec` of a pod or a template. The violations are in Kubernetes' order.
std::vector<Violation> violations(const LevelVersion& allowed, view::ObjectMeta metadata, view::PodSpec spec);
std::string reasons(const std::vector<Violation>& violations);  // "hostPort, privileged"
std::string details(const std::vector<Violation>& violations);  // "hostPort (container …), privileged (…)"

}  // namespace coracle::admission
