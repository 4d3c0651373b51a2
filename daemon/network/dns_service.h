// SPDX-License-Identifier: Apache-2.0
// The Service kube-dns in kube-system, which shows the address of the cluster DNS. It has no selector and no endpoints; the
// built-in server answers on its address. To use another server, give the Service a selector: its endpoints then take precedence.
#pragma once

#include "daemon/network/address.h"
#include "store/client/client.h"

namespace coracle::network {

// Creates the Service if it does not exist; an existing one is not changed. Errors: the client's; not_found while the namespace
// kube-system does not exist.
Result<void> ensure_dns_service(Client& client, Ipv4 address);

}  // namespace coracle::network
