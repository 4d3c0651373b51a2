// SPDX-License-Identifier: Apache-2.0
// Who asks, and whether they may.
//   certificate or bearer token ──Authenticator──▶ User ──authorize(attributes)──▶ yes | why not
// Until roles (RBAC) come: administrators may everything, everybody who is known may discover and ask about themselves.
// Source: Kubernetes "Authenticating", "Authorization Overview"; apiserver serviceaccount/util.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/jwt.h"
#include "daemon/api/route.h"
#include "daemon/api/tls.h"
#include "daemon/registry/registry.h"

namespace coracle::api {

struct User {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool in(std::string_view group) const;
  bool anonymous() const { return name == "system:anonymous"; }
};

struct TokenSettings {
  std::string issuer = "https://kubernetes.default.svc.cluster.local";
  std::map<std::string, User> static_tokens;  // token → who that is
};

// Issues and believes the tokens of service accounts; bound ones die with what they are bound to.
class Tokens : public registry::TokenIssuer {
 public:
  Tokens(TokenSigner signer, TokenSettings settings, registry::Registry& registry)
      : signer_(std::move(signer)), settings_(std::move(settings)), registry_(registry) {}
  Result<json::value> issue(const Object& account, json::value request) override;
  struct Verified {
    User user;
    std::vector<std::string> audiences;
  };
  // `audiences`: what the asker calls itself; empty: the API itself. Errors: unauthorized.
  Result<Verified> verify(std::string_view token, const std::vector<std::string>& audiences) const;
  const TokenSigner& signer() const { return signer_; }
  const std::string& issuer() const { return settings_.issuer; }

 private:
  Result<json::object> bind(const Object& account, const json::value& reference) const;
  bool still_there(const Kind& kind, const std::string& ns, const json::value& reference) const;
  TokenSigner signer_;
  TokenSettings settings_;
  registry::Registry& registry_;
};

class Authenticator {
 public:
  explicit Authenticator(const Tokens& tokens) : tokens_(tokens) {}
  // No credentials: system:anonymous. Impersonation headers of administrators are honoured. Errors: unauthorized (wrong
  // ones), forbidden (impersonation).
  Result<User> authenticate(const Head& head, const TlsConnection& connection) const;

 private:
  const Tokens& tokens_;
};

struct Attributes {  // of a request, as authorization sees it
  std::string verb, group, resource, subresource, ns, name;
  std::string path;  // of what is no resource
  bool is_resource = true;
};
Attributes attributes_of(const Route& route, const Head& head);
bool allowed(const User& user, const Attributes& attributes);
// In Kubernetes' words: pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "ns"
Error denial(const User& user, const Attributes& attributes);

}  // namespace coracle::api
