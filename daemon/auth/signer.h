// SPDX-License-Identifier: Apache-2.0
// Decides on certificate signing requests: automatic approval of a node's own request, and signing of approved requests by the
// built-in signers. The controllers write the results. Source: Kubernetes "Certificate Signing Requests";
// pkg/controller/certificates/approver, signer (rules, texts).
#pragma once

#include <optional>

#include "daemon/auth/authorizer.h"
#include "daemon/auth/certificate_request.h"
#include "runtime/base/clock.h"

namespace coracle::auth {

inline constexpr std::chrono::hours kSignedLifetimeMax{24 * 365};

// The approval message for a node that requests its client certificate and is authorized to have it approved; nullopt: not such a
// request. Errors: forbidden if it is such a request but the requester is not authorized.
Result<std::optional<std::string>> approval_of(const json::value& request, const Authorizer& authorizer);

struct Outcome {
  std::string certificate;  // PEM
  std::string failure;      // why the signer rejects it permanently
};
// Signs an approved request for a built-in signer. Errors: as sign_certificate.
Result<Outcome> signed_request(const json::value& request, const Authority& authority, WallTime now);

}  // namespace coracle::auth
