// SPDX-License-Identifier: Apache-2.0
// See write_guard.h.
#include "daemon/auth/write_guard.h"

#include <algorithm>

#include "daemon/auth/certificate_request.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/status.h"

namespace coracle::auth {
namespace {

constexpr std::string_view kRbac = "rbac.authorization.k8s.io", kCertificates = "certificates.k8s.io";

bool is_role(const Kind& kind) { return kind == kRole || kind == kClusterRole; }

std::string name_of(const registry::GuardedWrite& write) { return std::string(metadata_of(write.object).name()); }

// The garbage collector may change finalizers and owner references, whatever the role grants.
bool only_life_changed(const registry::GuardedWrite& write) {
  if (!write.old) return false;
  json::value before = *write.old, now = write.object;
  for (json::value* object : {&before, &now}) {
    if (json::value* metadata = object->get_object().if_contains("metadata"); metadata && metadata->is_object())
      for (std::string_view field : {"finalizers", "ownerReferences", "managedFields", "resourceVersion"})
        metadata->get_object().erase(field);
  }
  return same_json(before, now);
}

// The node name of the requester's certificate; "" if it is not a node.
std::string node_subject(const User& user) {
  bool node = user.in("system:nodes") && user.name.starts_with("system:node:");
  return node ? user.name : std::string();
}

bool fails(const json::value& request) {
  for (view::CertificateSigningRequestCondition condition : view::CertificateSigningRequest(request).status().conditions())
    if (condition.type() == "Failed") return true;
  return false;
}

}  // namespace

Result<void> WriteGuard::check(const registry::GuardedWrite& write) const {
  if (write.kind == kCertificateSigningRequest) return check_certificate_request(write);
  bool rbac = is_role(write.kind) || write.kind == kRoleBinding || write.kind == kClusterRoleBinding;
  if (!rbac || write.user.in(kAdministrators) || only_life_changed(write)) return {};
  return is_role(write.kind) ? check_role(write) : check_binding(write);
}

// Source: apiserver, endpoints/handlers/create.go, withAuthorization.
Result<void> WriteGuard::check_create(const Kind& kind, const Key& key, const User& user) const {
  Attributes create{"create", std::string(kind.group), std::string(kind.resource), "", key.ns, key.name, "", true, ""};
  Decision decision = authorizer_.authorize(user, create);
  if (decision.allowed) return {};
  return denial(user, create, decision.reason);
}

Result<void> WriteGuard::holds(const registry::GuardedWrite& write, const Rules& rules, const std::string& ns) const {
  Authorizer::Held held = authorizer_.rules_for(write.user, ns);
  Rules lacking = uncovered(held.rules, rules);
  if (lacking.empty()) return {};
  std::vector<std::string> lines;
  for (const Rule& rule : compacted(lacking)) lines.push_back(describe(rule));
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  std::string text = "user " + coracle::quoted(std::string_view(write.user.name)) + " (groups=" + describe(write.user.groups) +
                     ") is attempting to grant RBAC permissions not currently held:\n" + join(lines, "\n");
  if (!held.error.empty()) text += "; resolution errors: [" + held.error + "]";
  return forbidden(write.kind, name_of(write), text);
}

Result<void> WriteGuard::check_role(const registry::GuardedWrite& write) const {
  std::string ns(metadata_of(write.object).namespace_());
  Attributes escalate{"escalate", std::string(kRbac), std::string(write.kind.resource), "", ns, name_of(write), "", true, ""};
  view::ClusterRole old(write.old), now(write.object);  // a Role has no aggregationRule
  bool unchanged = old && same_json(old.rules().raw(), now.rules().raw()) &&
                   same_json(old.aggregation_rule().raw(), now.aggregation_rule().raw());
  if (unchanged || authorizer_.authorize(write.user, escalate).allowed) return {};
  TRY(holds(write, read_rules(write.object), ns));
  if (!now.has_aggregation_rule() && !old.has_aggregation_rule()) return {};
  Rules everything{{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}};
  if (uncovered(authorizer_.rules_for(write.user, "").rules, everything).empty()) return {};
  return forbidden(write.kind, name_of(write), "must have cluster-admin privileges to use the aggregationRule");
}

Result<void> WriteGuard::check_binding(const registry::GuardedWrite& write) const {
  std::string ns(metadata_of(write.object).namespace_());
  view::RoleRef named = view::RoleBinding(write.object).role_ref();  // a ClusterRoleBinding has it too
  RoleRef role{std::string(named.kind()), std::string(named.name())};
  if (role.kind != "Role" && role.kind != "ClusterRole") return {};  // validation rejects it
  Attributes bind{"bind", std::string(kRbac), role.kind == "Role" ? "roles" : "clusterroles", "", ns, role.name, "", true, ""};
  if (authorizer_.authorize(write.user, bind).allowed) return {};
  Rules rules = TRY(authorizer_.rules_of(role, ns));
  return holds(write, rules, ns);
}

// Whether the user has the verb for the signer or for all signers of its domain.
bool WriteGuard::may_for_signer(const User& user, std::string_view verb, const std::string& signer) const {
  Attributes asked{std::string(verb), std::string(kCertificates), "signers", "", "", signer, "", true, ""};
  if (authorizer_.authorize(user, asked).allowed) return true;
  asked.name = signer.substr(0, signer.find('/')) + "/*";
  return authorizer_.authorize(user, asked).allowed;
}

Result<void> WriteGuard::check_certificate_request(const registry::GuardedWrite& write) const {
  view::CertificateSigningRequest request(write.object), old(write.old);
  std::string signer(request.spec().signer_name());
  auto refuse = [&](const std::string& why) { return forbidden(write.kind, name_of(write), why); };
  if (!write.old && signer == kApiClientSigner) {
    auto csr = read_certificate_request(request.spec().request());
    bool masters =
        csr && std::find(csr->organizations.begin(), csr->organizations.end(), kAdministrators) != csr->organizations.end();
    if (masters) return refuse("use of " + signer + " signer with system:masters group is not allowed");
  }
  // A node requests only certificates for its own name. Source: Kubernetes NodeRestriction, admitCSR.
  std::string node = node_subject(write.user);
  if (!write.old && !node.empty() && (signer == kKubeletClientSigner || signer == kKubeletServingSigner)) {
    auto csr = read_certificate_request(request.spec().request());
    if (!csr) return refuse("unable to parse csr: " + csr.error().text());
    if (csr->common_name != node) return refuse("can only create a node CSR with CN=" + node);
  }
  if (!write.old) return {};
  signer = old.spec().signer_name();
  if (write.subresource == "approval" && !may_for_signer(write.user, "approve", signer))
    return refuse("user not permitted to approve requests with signerName " + coracle::quoted(std::string_view(signer)));
  bool signs = write.subresource == "status" &&
               (old.status().certificate() != request.status().certificate() || fails(*write.old) != fails(write.object));
  if (signs && !may_for_signer(write.user, "sign", signer))
    return refuse("user not permitted to sign requests with signerName " + coracle::quoted(std::string_view(signer)));
  return {};
}

}  // namespace coracle::auth
