// SPDX-License-Identifier: Apache-2.0
// Audit policy: which requests are recorded, at which stages and in which detail. The first matching rule applies. Pure. Source:
// Kubernetes audit.k8s.io/v1 Policy; apiserver audit/policy (matching, texts).
#pragma once

#include <string>
#include <vector>

#include "store/object/user.h"
#include "daemon/auth/attributes.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::auth {

enum class AuditLevel { none, metadata, request, request_response };
enum class AuditStage : unsigned { request_received = 1, response_started = 2, response_complete = 4, panic = 8 };
std::string_view text_of(AuditLevel level);  // "Metadata"
std::string_view text_of(AuditStage stage);  // "RequestReceived"

struct AuditDecision {
  AuditLevel level = AuditLevel::none;
  unsigned omitted = 0;  // bit set of stages
  bool omit_managed_fields = false;
  bool wants(AuditStage stage) const { return level != AuditLevel::none && !(omitted & unsigned(stage)); }
};

class AuditPolicy {
 public:
  // YAML or JSON. Errors: invalid, with the field.
  static Result<AuditPolicy> parse(std::string_view text);
  AuditDecision decide(const User& user, const Attributes& asked) const;

 private:
  struct Group {
    std::string group;
    std::vector<std::string> resources, names;
  };
  struct Rule {
    AuditDecision decision;
    std::vector<std::string> users, groups, verbs, namespaces, urls;
    std::vector<Group> resources;
    bool fits(const User& user, const Attributes& asked) const;
    bool fits_resource(const Attributes& asked) const;
  };
  static Result<Rule> read_rule(const json::value& value, const std::string& path, const AuditDecision& all);
  std::vector<Rule> rules_;
};

}  // namespace coracle::auth
