// SPDX-License-Identifier: Apache-2.0
// Extracts from a request who sends it, whom it impersonates, and what it does. Authentication and authorization are in
// daemon/auth.
//   head, connection ──▶ Credentials ▸ Impersonation ▸ Attributes
// Source: Kubernetes "Authenticating", "User impersonation", "Authorization Overview"; apiserver endpoints/request.
#pragma once

#include "daemon/api/route.h"
#include "daemon/api/connection.h"
#include "daemon/auth/attributes.h"
#include "daemon/auth/authentication.h"

namespace coracle::api {

auth::Credentials credentials_of(const Head& head, const Connection& connection);
auth::Impersonation impersonation_of(const Head& head);
auth::Attributes attributes_of(const Route& route, const Head& head);

}  // namespace coracle::api
