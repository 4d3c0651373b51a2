// SPDX-License-Identifier: Apache-2.0
// Tokens: whose is it? Service accounts' tokens are issued and believed here; static and bootstrap tokens are believed.
//   token ──▶ static file | bootstrap Secret | signed by us (jwt.h): account, and what it is bound to, still there? ──▶ User
// What was found out about a signed one is remembered for ten seconds, and counts while what it rests on is unchanged
// (token_cache.h). Thread-safe. Source: Kubernetes "Authenticating", "Managing Service Accounts"; pkg/serviceaccount (claims,
// rules).
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/access/jwt.h"
#include "daemon/access/static_tokens.h"
#include "daemon/access/token_cache.h"
#include "daemon/admission/user.h"
#include "daemon/registry/registry.h"

namespace coracle::access {

struct TokenSettings {
  std::string issuer;
  StaticTokens static_tokens;
};

class Tokens : public registry::TokenIssuer {
 public:
  Tokens(TokenSigner signer, TokenSettings settings, registry::Registry& registry);
  Result<json::value> issue(const Object& account, json::value request) override;
  // A token without an end, that lives as long as account and Secret: what Secrets of type service-account-token hold.
  Result<std::string> issue_lasting(const Object& account, std::string_view secret) const;

  struct Verified {
    User user;
    std::vector<std::string> audiences;
  };
  // `audiences`: what the asker calls itself; empty: the API itself. Errors: unauthorized, saying why.
  Result<Verified> verify(std::string_view token, const std::vector<std::string>& audiences) const;
  uint64_t signatures_checked() const { return signatures_checked_; }  // since the start: what remembering saves
  void forget_remembered() const { remembered_.clear(); }              // for the memory: they are checked anew when they come
  const TokenSigner& signer() const { return signer_; }
  const std::string& issuer() const { return settings_.issuer; }

 private:
  Result<json::object> bind(const Object& account, const json::value& reference) const;
  Result<FindingPtr> finding_on(std::string_view token, const TokenDigest& digest) const;
  Result<Finding> find_out(std::string_view token) const;
  Result<Finding> find_out_bound(const json::value& claims) const;
  Result<Finding> find_out_lasting(const json::value& claims, std::string_view token) const;
  Result<void> still_there(const Kind& kind, const std::string& ns, const json::value& reference, Finding& finding) const;
  TokenSigner signer_;
  TokenSettings settings_;
  std::map<TokenDigest, User> static_tokens_;  // by digest: how long a search takes tells nothing of a token
  registry::Registry& registry_;
  mutable TokenCache remembered_;
  mutable std::atomic<uint64_t> signatures_checked_ = 0;
};

}  // namespace coracle::access
