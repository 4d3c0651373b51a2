// SPDX-License-Identifier: Apache-2.0
// See authentication.h.
#include "daemon/auth/authentication.h"

#include "daemon/auth/jwt.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::auth {
namespace {

constexpr std::string_view kScheme = "bearer";

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

std::vector<Attributes> questions(const Impersonation& wanted) {
  std::vector<Attributes> out;
  auto ask = [&](std::string group, std::string resource, std::string subresource, std::string_view ns, std::string name) {
    out.push_back({"impersonate", std::move(group), std::move(resource), std::move(subresource), std::string(ns), std::move(name),
                   "", true, ""});
  };
  if (auto account = account_of(wanted.user)) ask("", "serviceaccounts", "", account->ns, std::string(account->name));
  else ask("", "users", "", "", wanted.user);
  for (const std::string& group : wanted.groups) ask("", "groups", "", "", group);
  for (const auto& [key, values] : wanted.extra)
    for (const std::string& value : values) ask("authentication.k8s.io", "userextras", key, "", value);
  if (!wanted.uid.empty()) ask("authentication.k8s.io", "uids", "", "", wanted.uid);
  return out;
}

}  // namespace

UserPtr user_of_certificate(std::string common_name, std::vector<std::string> organizations, std::string_view fingerprint) {
  if (common_name.empty()) return nullptr;
  User user{std::move(common_name), "", std::move(organizations), {}};
  user.groups.emplace_back(kAuthenticated);
  if (!fingerprint.empty()) user.extra["authentication.kubernetes.io/credential-id"] = {"X509SHA256=" + std::string(fingerprint)};
  return std::make_shared<const User>(std::move(user));
}

Result<UserPtr> Authenticator::authenticate(const Credentials& credentials) const {
  auto token = bearer(credentials.authorization);
  if (credentials.certificate && credentials.trusted && credentials.certified) return credentials.certified;
  if (!token || token->empty()) return credentials.certificate ? Result<UserPtr>(unauthorized()) : Result<UserPtr>(anonymous());
  auto verified = tokens_.verify(*token, {});
  if (!verified) return unauthorized();
  if (verified->user->in(kAuthenticated)) return std::move(verified->user);
  User user = *verified->user;
  user.groups.emplace_back(kAuthenticated);
  return std::make_shared<const User>(std::move(user));
}

Result<std::optional<User>> impersonated(const Impersonation& wanted, const User& user, const Authorizer& authorizer) {
  if (!wanted.any()) return std::optional<User>();
  if (wanted.user.empty())
    return internal_error("impersonation of groups, a uid or extra fields was requested without impersonating a user");
  for (const Attributes& asked : questions(wanted)) {
    Decision decision = authorizer.authorize(user, asked);
    if (!decision.allowed) return denial(user, asked, decision.reason);
  }
  User other{wanted.user, wanted.uid, wanted.groups, wanted.extra};
  auto account = account_of(wanted.user);
  if (account && other.groups.empty())
    other.groups = {"system:serviceaccounts", "system:serviceaccounts:" + std::string(account->ns)};
  std::string_view everybody = other.name == kAnonymous ? kUnauthenticated : kAuthenticated;
  if (!other.in(kAuthenticated) && !other.in(kUnauthenticated)) other.groups.emplace_back(everybody);
  return std::optional(std::move(other));
}

}  // namespace coracle::auth
