// SPDX-License-Identifier: Apache-2.0
// Authentication: the user of a request, and impersonation.
//   bearer token, or client certificate ──Authenticator──▶ User ──impersonated──▶ User
// Source: Kubernetes "Authenticating", "User impersonation"; apiserver authentication/request, filters/impersonation.
#pragma once

#include <optional>
#include <string>

#include "daemon/auth/authorizer.h"
#include "daemon/auth/tokens.h"

namespace coracle::auth {

struct Credentials {
  std::string authorization;  // the header Authorization, or its equivalent for WebSockets
  bool certificate = false;   // the client presented a certificate
  bool trusted = false;       // it is signed by the cluster's CA, for clients
  UserPtr certified;          // the user that the certificate names; null if it names none
};

// The user of a client certificate with this subject; null without a common name. `fingerprint`: SHA-256 of the certificate,
// hexadecimal; "": unknown.
UserPtr user_of_certificate(std::string common_name, std::vector<std::string> organizations, std::string_view fingerprint);

class Authenticator {
 public:
  explicit Authenticator(const Tokens& tokens) : tokens_(tokens) {}
  // Without credentials: system:anonymous. Errors: unauthorized for invalid ones.
  Result<UserPtr> authenticate(const Credentials& credentials) const;

 private:
  const Tokens& tokens_;
};

struct Impersonation {  // the Impersonate-* headers
  std::string user, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool any() const { return !user.empty() || !uid.empty() || !groups.empty() || !extra.empty(); }
};

// The impersonated user; nullopt if there is none. Errors: forbidden if `user` may not impersonate it; internal if groups or
// other fields are given without a user.
Result<std::optional<User>> impersonated(const Impersonation& wanted, const User& user, const Authorizer& authorizer);

}  // namespace coracle::auth
