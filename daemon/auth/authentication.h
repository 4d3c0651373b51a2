// SPDX-License-Identifier: Apache-2.0
// Authentication: the user of a request, and impersonation.
//   bearer token, or client certificate ──Authenticator──▶ User ──impersonated──▶ User
// Source: Kubernetes "Authenticating", "User impersonation"; apiserver authentication/request, filters/impersonation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/auth/authorizer.h"
#include "daemon/auth/tokens.h"

namespace coracle::auth {

struct Credentials {
  std::string_view authorization;  // the header Authorization
  std::string of_protocols;        // its equivalent for WebSockets, which have no such header; "": none
  bool certificate = false;        // the client presented a certificate
  bool trusted = false;            // it is signed by the cluster's CA, for clients
  UserPtr certified;               // the user that the certificate names; null if it names none
};

// The user of a client certificate with this subject; null without a common name. `fingerprint`: SHA-256 of the certificate,
// hexadecimal; "": unknown.
UserPtr user_of_certificate(std::string common_name, std::vector<std::string> organizations, std::string_view fingerprint);

class Authenticator {
 public:
  explicit Authenticator(const Tokens& tokens) : tokens_(tokens) {}
  // Without credentials: system:anonymous. `recent`: see Tokens::user_of. Errors: unauthorized for invalid ones.
  Result<UserPtr> authenticate(const Credentials& credentials, RecentToken& recent) const;

 private:
  const Tokens& tokens_;
};

struct Impersonation {  // the Impersonate-* headers
  std::string user, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool any() const { return !user.empty() || !uid.empty() || !groups.empty() || !extra.empty(); }
};

struct Impersonated {
  User user;
  std::string constraint;  // the verb that allows it for this request alone, like impersonate:user-info; "": impersonate
};

// The impersonated user; nullopt if there is none. `request`: what is to be done as that user. Who may do that as another
// (impersonate-on:WAY:VERB and impersonate:WAY), or may be that user in all (impersonate), may; a node is then always in the
// group of nodes. Errors: forbidden if `user` may not impersonate it; bad_request if groups or other fields are given without a
// user.
Result<std::optional<Impersonated>> impersonated(const Impersonation& wanted, const User& user, const Attributes& request,
                                                 const Authorizer& authorizer);

}  // namespace coracle::auth
