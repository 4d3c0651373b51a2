// SPDX-License-Identifier: Apache-2.0
// What becomes of a certificate request: whether a node's own request is approved by itself, and what a built-in signer
// makes of an approved one. The controllers write it down.
// Source: Kubernetes "Certificate Signing Requests"; pkg/controller/certificates/approver, signer (rules, words).
#pragma once

#include <optional>

#include "daemon/access/authorizer.h"
#include "daemon/access/certificate_request.h"
#include "runtime/base/clock.h"

namespace coracle::access {

inline constexpr std::chrono::hours kSignedLifetimeMax{24 * 365};

// The message of an approval, for a node that asks for its client certificate and may have it approved; nothing: it is for
// somebody else to decide. Errors: forbidden, when it is such a request but whoever asks may not.
Result<std::optional<std::string>> approval_of(const json::value& request, const Authorizer& authorizer);

struct Outcome {
  std::string certificate;  // PEM
  std::string failure;      // why the signer refuses, for good
};
// Of an approved request for a built-in signer. Errors: as sign_certificate.
Result<Outcome> signed_request(const json::value& request, const Authority& authority, WallTime now);

}  // namespace coracle::access
