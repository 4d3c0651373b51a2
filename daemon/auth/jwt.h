// SPDX-License-Identifier: Apache-2.0
// JSON Web Tokens signed with ECDSA P-256 (ES256), as ServiceAccount tokens. No other algorithm is created or accepted, so a
// token cannot choose its algorithm. Source: RFC 7515, 7518 section 3.4, 7519; RFC 7638 (the key id).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::auth {

constexpr size_t kTokenBytesMax = 16 << 10;  // longer tokens are rejected

// The error for a rejected token.
inline Error unauthorized(const std::string& why = "Unauthorized") { return Error(Code::unauthorized, why); }

class TokenSigner {  // Thread-safe.
 public:
  static Result<TokenSigner> make(std::string_view private_key);  // PEM, P-256. Errors: invalid

  Result<std::string> sign(const json::object& claims) const;  // the token. Errors: internal
  // The claims of a token with a valid signature of this key. The caller checks time and audience. Errors: unauthorized.
  Result<json::value> verify(std::string_view token) const;

  const std::string& key_id() const { return key_id_; }
  json::object public_jwk() const;

 private:
  std::shared_ptr<void> key_;   // EVP_PKEY
  std::string key_id_, x_, y_;  // coordinates, base64url
};

}  // namespace coracle::auth
