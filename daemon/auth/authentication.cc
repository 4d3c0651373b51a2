// SPDX-License-Identifier: Apache-2.0
// See authentication.h.
#include "daemon/auth/authentication.h"

#include <algorithm>

#include "daemon/auth/jwt.h"
#include "runtime/base/text.h"
#include "store/object/status.h"
#include "store/schema/validate/findings.h"
#include "store/schema/validate/syntax.h"

namespace coracle::auth {
namespace {

constexpr std::string_view kScheme = "bearer", kNodePrefix = "system:node:", kAuthentication = "authentication.k8s.io",
                           kOfNode = "authentication.kubernetes.io/node-name";
constexpr size_t kManyValues = 4;  // of groups or extra fields: then the right to all of them is asked for first

const UserPtr& anonymous() {
  static const UserPtr user =
      std::make_shared<const User>(User{std::string(kAnonymous), "", {std::string(kUnauthenticated)}, {}});
  return user;
}

// The token of "Bearer TOKEN"; nullopt for other schemes.
std::optional<std::string_view> bearer(std::string_view header) {
  size_t space = header.find(' ');
  if (space == header.npos || to_lower(header.substr(0, space)) != kScheme) return {};
  std::string_view token = trim(header.substr(space + 1));
  return token.substr(0, token.find(' '));
}

struct Account {
  std::string_view ns, name;
};
std::optional<Account> account_of(std::string_view user) {
  if (!user.starts_with(kServiceAccountPrefix)) return {};
  std::vector<std::string_view> parts = split(user.substr(kServiceAccountPrefix.size()), ':');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return {};
  return Account{parts[0], parts[1]};
}

// The node that the user system:node:NAME is; "" for other users.
std::string_view node_of(std::string_view user) {
  if (!user.starts_with(kNodePrefix)) return {};
  std::string_view name = user.substr(kNodePrefix.size());
  return schema::dns_subdomain_problems(name).empty() ? name : std::string_view();
}

// Why an extra field may not be taken for some requests alone; "": it may. Source: apiserver, filters/impersonation/mode.go.
std::string extra_problem(std::string_view key, const std::vector<std::string>& values) {
  if (key.empty()) return "impersonating the empty string key in extra is not allowed";
  schema::Findings findings;
  schema::check_domain_path(findings, "extra.key", key);
  std::vector<std::string> problems;
  for (const Cause& cause : findings.take()) problems.push_back(cause.field + ": " + cause.message);
  if (problems.size() == 1) return "impersonating an invalid key in extra is not allowed: " + problems[0];
  if (!problems.empty()) return "impersonating an invalid key in extra is not allowed: [" + join(problems, ", ") + "]";
  if (key != to_lower(key)) return "impersonating a non-lowercase key in extra is not allowed: " + coracle::quoted(key);
  if (values.empty()) return "impersonating empty values in extra is not allowed";
  if (std::find(values.begin(), values.end(), "") != values.end())
    return "impersonating the empty string value in extra is not allowed";
  return {};
}

// A list of texts as Go prints it for programmers.
std::string go_list(const std::vector<std::string>& texts) {
  if (texts.empty()) return "[]string(nil)";
  std::vector<std::string> shown;
  for (const std::string& text : texts) shown.push_back(coracle::quoted(std::string_view(text)));
  return "[]string{" + join(shown, ", ") + "}";
}

// Source: apiserver, filters/impersonation/constrained_impersonation.go.
Error nobody_named(const Impersonation& wanted) {
  std::vector<std::string> fields;
  for (const auto& [key, values] : wanted.extra) fields.push_back(coracle::quoted(std::string_view(key)) + ":" + go_list(values));
  const std::string extra = fields.empty() ? "(nil)" : "{" + join(fields, ", ") + "}";
  return bad_request("requested &user.DefaultInfo{Name:\"\", UID:" + coracle::quoted(std::string_view(wanted.uid)) + ", Groups:" +
                     go_list(wanted.groups) + ", Extra:map[string][]string" + extra + "} without impersonating a user name");
}

// Asks the authorizer whether `user` may be the wanted user in one way. `way` "": by the verb impersonate, which gives every
// right of that user; else by impersonate:WAY, together with impersonate-on:WAY:VERB for what is requested. Source: apiserver,
// filters/impersonation/mode.go (KEP-5284).
class Impersonator {
 public:
  Impersonator(const Impersonation& wanted, const User& user, const Authorizer& authorizer, std::string_view way)
      : wanted_(wanted), user_(user), authorizer_(authorizer), way_(way) {}

  // The user for this request alone. Errors: forbidden.
  Result<Impersonated> be_for(Attributes request) const {
    request.verb = "impersonate-on:" + way_ + ":" + request.verb;
    TRY(may(request));
    return be();
  }

  // Errors: forbidden.
  Result<Impersonated> be() const {
    TRY(may(name_asked()));
    if (!wanted_.uid.empty()) TRY(may(asked(kAuthentication, "uids", wanted_.uid)));
    TRY(may_have_groups());
    TRY(may_have_extra());
    User other{wanted_.user, wanted_.uid, wanted_.groups, wanted_.extra};
    if (constrained() && !node_of(other.name).empty()) other.groups = {"system:nodes"};
    if (auto account = account_of(other.name); account && other.groups.empty())
      other.groups = {"system:serviceaccounts", "system:serviceaccounts:" + std::string(account->ns)};
    std::string_view everybody = other.name == kAnonymous ? kUnauthenticated : kAuthenticated;
    if (!other.in(everybody) && !other.in(kUnauthenticated)) other.groups.emplace_back(everybody);
    return Impersonated{std::move(other), constrained() ? verb() : std::string()};
  }

 private:
  bool constrained() const { return !way_.empty(); }
  std::string verb() const { return constrained() ? "impersonate:" + way_ : "impersonate"; }
  std::string_view group() const { return constrained() ? kAuthentication : std::string_view(); }
  Attributes asked(std::string_view group, std::string resource, std::string name, std::string subresource = {},
                   std::string ns = {}) const {
    return {verb(), std::string(group), std::move(resource), std::move(subresource), std::move(ns), std::move(name), "", true,
            ""};
  }
  Attributes name_asked() const {
    if (std::string_view node = node_of(wanted_.user); constrained() && !node.empty())
      return asked(group(), "nodes", way_ == "associated-node" ? "*" : std::string(node));
    if (auto account = account_of(wanted_.user))
      return asked(group(), "serviceaccounts", std::string(account->name), "", std::string(account->ns));
    return asked(group(), "users", wanted_.user);
  }
  Result<void> may(const Attributes& asked) const {
    Decision decision = authorizer_.authorize(user_, asked);
    if (!decision.allowed) return denial(user_, asked, decision.reason);
    return {};
  }

  Result<void> may_have_groups() const {
    if (constrained()) {
      for (std::string_view never : {std::string_view(), kAdministrators})
        if (std::find(wanted_.groups.begin(), wanted_.groups.end(), never) != wanted_.groups.end())
          return denial(user_, asked(group(), "groups", std::string(never)),
                        "impersonating the " + (never.empty() ? "empty string" : std::string(never)) + " group is not allowed");
      if (wanted_.groups.size() >= kManyValues && may(asked(group(), "groups", "*"))) return {};
    }
    for (const std::string& one : wanted_.groups) TRY(may(asked(group(), "groups", one)));
    return {};
  }

  Result<void> may_have_extra() const {
    size_t values_in_all = 0;
    for (const auto& [key, values] : wanted_.extra) {
      values_in_all += values.size();
      if (!constrained()) continue;
      if (std::string problem = extra_problem(key, values); !problem.empty())
        return denial(user_, asked(kAuthentication, "userextras", ""), problem);
    }
    if (constrained() && values_in_all >= kManyValues && may(asked(kAuthentication, "userextras", "*", "*"))) return {};
    for (const auto& [key, values] : wanted_.extra)
      for (const std::string& value : values) TRY(may(asked(kAuthentication, "userextras", value, key)));
    return {};
  }

  const Impersonation& wanted_;
  const User& user_;
  const Authorizer& authorizer_;
  const std::string way_;
};

bool runs_on(const User& user, std::string_view node) {
  auto of_node = user.extra.find(std::string(kOfNode));
  return account_of(user.name) && of_node != user.extra.end() && of_node->second.size() == 1 && of_node->second[0] == node;
}

}  // namespace

UserPtr user_of_certificate(std::string common_name, std::vector<std::string> organizations, std::string_view fingerprint) {
  if (common_name.empty()) return nullptr;
  User user{std::move(common_name), "", std::move(organizations), {}};
  user.groups.emplace_back(kAuthenticated);
  if (!fingerprint.empty()) user.extra["authentication.kubernetes.io/credential-id"] = {"X509SHA256=" + std::string(fingerprint)};
  return std::make_shared<const User>(std::move(user));
}

Result<UserPtr> Authenticator::authenticate(const Credentials& credentials, RecentToken& recent) const {
  auto token = bearer(credentials.authorization.empty() ? credentials.of_protocols : credentials.authorization);
  if (credentials.certificate && credentials.trusted && credentials.certified) return credentials.certified;
  if (!token || token->empty()) return credentials.certificate ? Result<UserPtr>(unauthorized()) : Result<UserPtr>(anonymous());
  auto known = tokens_.user_of(*token, recent);
  if (!known) return unauthorized();
  if ((*known)->in(kAuthenticated)) return known;
  User user = **known;
  user.groups.emplace_back(kAuthenticated);
  return std::make_shared<const User>(std::move(user));
}

Result<std::optional<Impersonated>> impersonated(const Impersonation& wanted, const User& user, const Attributes& request,
                                                 const Authorizer& authorizer) {
  if (!wanted.any()) return std::optional<Impersonated>();
  if (wanted.user.empty()) return nobody_named(wanted);
  const std::string_view node = node_of(wanted.user);
  const bool account = account_of(wanted.user).has_value();
  const bool bare = wanted.uid.empty() && wanted.groups.empty() && wanted.extra.empty();
  std::optional<Error> refusal;  // of the first way that applies. Source: as for Impersonator, constrained_impersonation.go
  for (auto [way, applies] : {std::pair{"associated-node", bare && !node.empty() && runs_on(user, node)},
                              std::pair{"arbitrary-node", bare && !node.empty()}, std::pair{"serviceaccount", bare && account},
                              std::pair{"user-info", node.empty() && !account}}) {
    if (!applies) continue;
    auto other = Impersonator(wanted, user, authorizer, way).be_for(request);
    if (other) return std::optional(*std::move(other));
    if (!refusal) refusal = other.take_error();
  }
  auto other = Impersonator(wanted, user, authorizer, {}).be();
  if (other) return std::optional(*std::move(other));
  return refusal ? *std::move(refusal) : other.take_error();
}

}  // namespace coracle::auth
