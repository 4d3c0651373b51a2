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
  std::string of_node;
  if (auto decision = nodes_.authorize(user, asked)) {
    if (decision->allowed) return {true, {}};
    of_node = std::move(decision->reason);
  }
  Decision out = decide_by_roles(user, asked);
  if (out.allowed || of_node.empty()) return out;
  return {false, out.reason.empty() ? of_node : of_node + "\n" + out.reason};
}

Decision Authorizer::decide_by_roles(const User& user, const Attributes& asked) const {
  bool depends_on_name = false;
  thread_local std::string key;
  key = DecisionMemory::key_of(user, asked, std::move(key));
  if (key.empty()) return visit_roles(user, asked, depends_on_name);
  const uint64_t generation = roles_.generation();  // read first: the roles that decide are at least as new
  auto known = memory_.with([&](DecisionMemory& memory) { return memory.find(generation, key); });
  if (known) return *std::move(known);
  Decision out = visit_roles(user, asked, depends_on_name);
  if (!depends_on_name) memory_.with([&](DecisionMemory& memory) { memory.put(generation, key, out); });
  return out;
}

Decision Authorizer::visit_roles(const User& user, const Attributes& asked, bool& depends_on_name) const {
  Decision out;
  std::vector<std::string> errors;
  roles_.visit(user, asked.is_resource ? asked.ns : std::string(), [&](const Grant& grant) {
    if (!grant.rules) {
      errors.push_back(missing(grant.role));
      return true;
    }
    for (const Rule& rule : *grant.rules) {
      if (!allows_some(rule, asked)) continue;
      depends_on_name |= asked.is_resource && !rule.names.empty();
      if (!allows(rule, asked)) continue;
      out = {true, "RBAC: allowed by " + grant.text()};
      return false;
    }
    return true;
  });
  if (!out.allowed && !errors.empty()) out.reason = "RBAC: " + aggregated(errors);
  return out;
}

DecisionMemory::Size Authorizer::remembered() const {
  return memory_.with([](const DecisionMemory& memory) { return memory.size(); });
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

namespace {

// No text of a client may look like HTML to a browser that guesses. Source: apiserver responsewriters/errors.go.
std::string without_markup(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else out += c;
  }
  return out;
}

}  // namespace

Error denial(const User& user, const Attributes& asked, std::string_view reason) {
  std::string who = "User " + coracle::quoted(std::string_view(user.name)) + " cannot " + asked.verb;
  std::string tail = reason.empty() ? std::string() : ": " + std::string(reason);
  if (!asked.is_resource)
    return Error(Code::forbidden,
                 "forbidden: " + without_markup(who + " path " + coracle::quoted(std::string_view(asked.path))) + tail)
        .with(ErrorDetails{});
  std::string where =
      asked.ns.empty() ? "at the cluster scope" : "in the namespace " + coracle::quoted(std::string_view(asked.ns));
  std::string subject = asked.group.empty() ? asked.resource : asked.resource + "." + asked.group;
  if (!asked.name.empty()) subject += " " + coracle::quoted(std::string_view(asked.name));
  ErrorDetails details;
  details.name = asked.name, details.group = asked.group, details.kind = asked.resource;
  std::string what = who + " resource " + coracle::quoted(std::string_view(asked.combined())) + " in API group " +
                     coracle::quoted(std::string_view(asked.group)) + " " + where;
  return Error(Code::forbidden, subject + " is forbidden: " + without_markup(what) + tail).with(std::move(details));
}

User account_user(std::string_view ns, std::string_view name, std::string_view uid) {
  User user;
  user.name = std::string(kServiceAccountPrefix) + std::string(ns) + ":" + std::string(name);
  user.uid = uid;
  user.groups = {"system:serviceaccounts", "system:serviceaccounts:" + std::string(ns), std::string(kAuthenticated)};
  return user;
}

}  // namespace coracle::auth
