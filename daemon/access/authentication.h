// SPDX-License-Identifier: Apache-2.0
// Authentication: who asks, and as whom.
//   bearer token, or client certificate ──Authenticator──▶ User ──impersonated──▶ User
// Source: Kubernetes "Authenticating", "User impersonation"; apiserver authentication/request, filters/impersonation.
#pragma once

#include <optional>
#include <string>

#include "daemon/access/authorizer.h"
#include "daemon/access/tokens.h"

namespace coracle::access {

struct Credentials {
  std::string authorization;  // the header, or what stands for it
  bool certificate = false;   // the client showed one
  bool trusted = false;       // and our authority signed it, for clients
  std::string common_name;
  std::vector<std::string> organizations;
  std::string fingerprint;  // SHA-256 of the certificate, hex
};

class Authenticator {
 public:
  explicit Authenticator(const Tokens& tokens) : tokens_(tokens) {}
  // Without credentials: system:anonymous. Errors: unauthorized for wrong ones.
  Result<User> authenticate(const Credentials& credentials) const;

 private:
  const Tokens& tokens_;
};

struct Impersonation {  // what the headers Impersonate-* ask for
  std::string user, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool any() const { return !user.empty() || !uid.empty() || !groups.empty() || !extra.empty(); }
};

// The user that is to act; nothing: `user` acts as itself. Errors: forbidden for what `user` may not impersonate; internal
// when groups or anything else stand without a user.
Result<std::optional<User>> impersonated(const Impersonation& wanted, const User& user, const Authorizer& authorizer);

}  // namespace coracle::access
