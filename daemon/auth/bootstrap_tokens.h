// SPDX-License-Identifier: Apache-2.0
// Bootstrap tokens: id.secret, with which a machine requests its first certificate. Each is a Secret in kube-system. Source:
// Kubernetes "Authenticating with Bootstrap Tokens"; plugin/pkg/auth/authenticator/token/bootstrap.
#pragma once

#include <optional>
#include <string_view>

#include "store/object/user.h"
#include "daemon/registry/registry.h"

namespace coracle::auth {

inline constexpr std::string_view kBootstrapSecretType = "bootstrap.kubernetes.io/token",
                                  kBootstrapSecretPrefix = "bootstrap-token-";

bool looks_like_bootstrap_token(std::string_view token);
// The user of a token; nullopt if it is unknown, not for authentication, or expired.
std::optional<User> bootstrap_user(registry::Registry& registry, std::string_view token);

}  // namespace coracle::auth
