// SPDX-License-Identifier: Apache-2.0
// See bootstrap_tokens.h.
#include "daemon/auth/bootstrap_tokens.h"

#include <algorithm>

#include "daemon/auth/secret_text.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::auth {
namespace {

constexpr size_t kIdSize = 6, kSecretSize = 16, kGroupMax = 256;
constexpr std::string_view kBootstrappersGroup = "system:bootstrappers", kGroupPrefix = "system:bootstrappers:";

bool small(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool all_small(std::string_view text) { return std::all_of(text.begin(), text.end(), small); }

// A valid group: system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]
bool good_group(std::string_view group) {
  if (!group.starts_with(kGroupPrefix)) return false;
  std::string_view rest = group.substr(kGroupPrefix.size());
  return !rest.empty() && rest.size() <= kGroupMax && small(rest.back()) &&
         std::all_of(rest.begin(), rest.end(), [](char c) { return small(c) || c == ':' || c == '-'; });
}

}  // namespace

bool looks_like_bootstrap_token(std::string_view token) {
  return token.size() == kIdSize + 1 + kSecretSize && token[kIdSize] == '.' && all_small(token.substr(0, kIdSize)) &&
         all_small(token.substr(kIdSize + 1));
}

std::optional<User> bootstrap_user(registry::Registry& registry, std::string_view token) {
  if (!looks_like_bootstrap_token(token)) return {};
  std::string id(token.substr(0, kIdSize));
  auto secret = registry.get(kSecret, {"kube-system", std::string(kBootstrapSecretPrefix) + id});
  if (!secret || (*secret)->deleting()) return {};
  const json::value& body = (*secret)->json();
  if (view::Secret(body).type() != kBootstrapSecretType) return {};
  if (secret_text(body, "token-id") != id || !same_secret(secret_text(body, "token-secret"), token.substr(kIdSize + 1)))
    return {};
  if (std::string expiration = secret_text(body, "expiration"); !expiration.empty()) {
    auto end = parse_time(expiration);
    if (!end || *end <= registry.clock().now()) return {};
  }
  if (secret_text(body, "usage-bootstrap-authentication") != "true") return {};
  User user{"system:bootstrap:" + id, "", {std::string(kBootstrappersGroup)}, {}};
  std::string extra = secret_text(body, "auth-extra-groups");
  if (!extra.empty())
    for (std::string_view group : split(extra, ',')) {
      if (!good_group(group)) return {};
      if (!user.in(group)) user.groups.emplace_back(group);
    }
  std::sort(user.groups.begin(), user.groups.end());
  user.groups.emplace_back("system:authenticated");
  return user;
}

}  // namespace coracle::auth
