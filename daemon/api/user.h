// SPDX-License-Identifier: Apache-2.0
// What a request says about who asks, as whom, and for what: HTTP in the words of daemon/access, which judges it.
//   head, connection ──▶ Credentials ▸ Impersonation ▸ Attributes
// Source: Kubernetes "Authenticating", "User impersonation", "Authorization Overview"; apiserver endpoints/request.
#pragma once

#include "daemon/access/attributes.h"
#include "daemon/access/authentication.h"
#include "daemon/api/route.h"
#include "daemon/api/tls.h"

namespace coracle::api {

access::Credentials credentials_of(const Head& head, const TlsConnection& connection);
access::Impersonation impersonation_of(const Head& head);
access::Attributes attributes_of(const Route& route, const Head& head);

}  // namespace coracle::api
