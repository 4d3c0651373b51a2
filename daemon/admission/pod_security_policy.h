// SPDX-License-Identifier: Apache-2.0
// The Pod Security Standards: levels, their versions, and what a pod does that a level forbids. Pure.
//   a namespace's labels ──policy_of──▶ Policy {enforce, audit, warn} ──violations──▶ words
// Source: Kubernetes "Pod Security Standards"; pod-security-admission api and policy.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::admission {

enum class SecurityLevel : uint8_t { privileged, baseline, restricted };

struct LevelVersion {
  SecurityLevel level = SecurityLevel::privileged;
  std::optional<int> minor;  // of version 1; nothing: latest
  std::string text() const;  // "restricted:v1.30"
  bool operator==(const LevelVersion&) const = default;
};

struct SecurityPolicy {
  LevelVersion enforce, audit, warn;
  std::vector<Cause> errors;  // labels that say nothing known; the strictest is assumed where it is enforced
  bool privileged() const;    // at all three
};
SecurityPolicy policy_of(const json::object& labels);

struct Violation {
  std::string reason, detail;  // "privileged", "container \"c\" must not set securityContext.privileged=true"
};
// `metadata` and `spec` of a pod or of a template. In the order in which Kubernetes names them.
std::vector<Violation> violations(const LevelVersion& allowed, const json::value& metadata, const json::value& spec);
std::string reasons(const std::vector<Violation>& violations);  // "hostPort, privileged"
std::string details(const std::vector<Violation>& violations);  // "hostPort (container …), privileged (…)"

}  // namespace coracle::admission
