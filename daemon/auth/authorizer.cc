// SPDX-License-Identifier: Apache-2.0
// See authorizer.h.
#include "daemon/auth/authorizer.h"

#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::auth {
namespace {

// The text of a missing role in a reason: clusterrole.rbac.authorization.k8s.io "x" not found
std::string missing(const RoleRef& role) {
  return to_lower(role.kind) + ".rbac.authorization.k8s.io " + coracle::quoted(std::string_view(role.name)) + " not found";
}

std::string aggregated(const std::vector<std::string>& errors) {
  if (errors.empty()) return {};
  return errors.size() == 1 ? errors[0] : "[" + join(errors, ", ") + "]";
}

}  // namespace

Decision Authorizer::authorize(const User& user, const Attributes& asked) const {
  if (user.in(kAdministrators)) return {true, {}};
  std::vector<std::string> reasons;
  if (auto decision = nodes_.authorize(user, asked)) {
    if (decision->allowed) return {true, {}};
    if (!decision->reason.empty()) reasons.push_back(decision->reason);
  }
  Decision out;
  std::vector<std::string> errors;
  roles_.visit(user, asked.is_resource ? asked.ns : std::string(), [&](const Grant& grant) {
    if (!grant.rules) {
      errors.push_back(missing(grant.role));
      return true;
    }
    for (const Rule& rule : *grant.rules) {
      if (!allows(rule, asked)) continue;
      out = {true, "RBAC: allowed by " + grant.text()};
      return false;
    }
    return true;
  });
  if (out.allowed) return out;
  if (!errors.empty()) reasons.push_back("RBAC: " + aggregated(errors));
  return {false, join(reasons, "\n")};
}

Authorizer::Held Authorizer::rules_for(const User& user, const std::string& ns) const {
  Held out;
  std::vector<std::string> errors;
  if (node_identity(user)) out.incomplete = true, errors.push_back("node authorizer does not support user rule resolution");
  roles_.visit(user, ns, [&](const Grant& grant) {
    if (grant.rules) out.rules.insert(out.rules.end(), grant.rules->begin(), grant.rules->end());
    else errors.push_back(missing(grant.role)), out.incomplete = true;
    return true;
  });
  out.error = aggregated(errors);
  return out;
}

Error denial(const User& user, const Attributes& asked, std::string_view reason) {
  std::string who = "User " + coracle::quoted(std::string_view(user.name)) + " cannot " + asked.verb;
  std::string tail = reason.empty() ? std::string() : ": " + std::string(reason);
  if (!asked.is_resource)
    return Error(Code::forbidden, "forbidden: " + who + " path " + coracle::quoted(std::string_view(asked.path)) + tail);
  std::string where =
      asked.ns.empty() ? "at the cluster scope" : "in the namespace " + coracle::quoted(std::string_view(asked.ns));
  std::string subject = asked.group.empty() ? asked.resource : asked.resource + "." + asked.group;
  if (!asked.name.empty()) subject += " " + coracle::quoted(std::string_view(asked.name));
  ErrorDetails details;
  details.name = asked.name, details.group = asked.group, details.kind = asked.resource;
  return Error(Code::forbidden, subject + " is forbidden: " + who + " resource " +
                                    coracle::quoted(std::string_view(asked.combined())) + " in API group " +
                                    coracle::quoted(std::string_view(asked.group)) + " " + where + tail)
      .with(std::move(details));
}

User account_user(std::string_view ns, std::string_view name, std::string_view uid) {
  User user;
  user.name = std::string(kServiceAccountPrefix) + std::string(ns) + ":" + std::string(name);
  user.uid = uid;
  user.groups = {"system:serviceaccounts", "system:serviceaccounts:" + std::string(ns), std::string(kAuthenticated)};
  return user;
}

}  // namespace coracle::auth
