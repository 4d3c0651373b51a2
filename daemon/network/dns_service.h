// SPDX-License-Identifier: Apache-2.0
// The Service kube-dns in kube-system: how the cluster shows where its DNS is. It has no selector and no endpoints; our
// server answers on its address. Who wants another server gives it a selector: its endpoints then go before ours.
#pragma once

#include "daemon/network/address.h"
#include "store/client/client.h"

namespace coracle::network {

// Creates it where it is missing, and leaves it alone where it is not. Errors: the client's; not_found when the namespace
// kube-system is not there yet.
Result<void> ensure_dns_service(Client& client, Ipv4 address);

}  // namespace coracle::network
