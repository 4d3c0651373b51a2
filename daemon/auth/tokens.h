// SPDX-License-Identifier: Apache-2.0
// Tokens: authenticates bearer tokens. Tokens of service accounts are issued and verified here; static tokens and bootstrap
// tokens are only verified.
//   token ──▶ static file | bootstrap Secret | signed (jwt.h): do the account and the bound objects still exist? ──▶ User
// The result for a signed token is cached for ten seconds and is valid while its objects are unchanged (token_cache.h).
// Thread-safe. Source: Kubernetes "Authenticating", "Managing Service Accounts"; pkg/serviceaccount (claims, rules).
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/auth/jwt.h"
#include "daemon/auth/recent_token.h"
#include "daemon/auth/static_tokens.h"
#include "daemon/auth/token_cache.h"
#include "daemon/registry/registry.h"
#include "store/object/user.h"
#include "store/schema/views.h"

namespace coracle::auth {

struct TokenSettings {
  std::string issuer;
  StaticTokens static_tokens;
};

class Tokens : public registry::TokenIssuer {
 public:
  Tokens(TokenSigner signer, TokenSettings settings, registry::Registry& registry);
  Result<json::value> issue(const Object& account, json::value request) override;
  // Issues a token without an expiry time, valid while account and Secret exist: for Secrets of type service-account-token.
  // Errors: internal.
  Result<std::string> issue_lasting(const Object& account, std::string_view secret) const;

  struct Verified {
    UserPtr user;
    std::vector<std::string> audiences;
    FindingPtr finding;  // null: a static or bootstrap token
  };
  // `audiences`: the audiences of the verifier; empty: the API server. Errors: unauthorized, with the reason.
  Result<Verified> verify(std::string_view token, const std::vector<std::string>& audiences) const;
  // The user of a request to the API server. `recent` belongs to its connection, and is changed. Errors: as verify().
  Result<UserPtr> user_of(std::string_view token, RecentToken& recent) const;
  uint64_t signatures_checked() const { return signatures_checked_; }  // since the start, for measuring the cache
  void forget_remembered() const { remembered_.clear(); }  // frees memory: tokens are verified again on their next use
  const TokenSigner& signer() const { return signer_; }
  const std::string& issuer() const { return settings_.issuer; }

 private:
  Result<json::object> bind(const Object& account, view::BoundObjectReference reference) const;
  Result<FindingPtr> finding_on(std::string_view token, const TokenDigest& digest) const;
  // `held_at`: a revision of the store at which it held; 0: unknown.
  bool holds(const Finding& finding, Revision held_at = 0) const;
  Result<Finding> find_out(std::string_view token) const;
  Result<Finding> find_out_bound(const json::value& claims) const;
  Result<Finding> find_out_lasting(const json::value& claims, std::string_view token) const;
  Result<void> still_there(const Kind& kind, const std::string& ns, const json::value& reference, Finding& finding) const;
  TokenSigner signer_;
  TokenSettings settings_;
  std::map<TokenDigest, User> static_tokens_;  // by digest, so that the lookup time reveals nothing about a token
  registry::Registry& registry_;
  mutable TokenCache remembered_;
  mutable std::atomic<uint64_t> signatures_checked_ = 0;
};

}  // namespace coracle::auth
