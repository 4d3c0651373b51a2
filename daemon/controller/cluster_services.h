// SPDX-License-Identifier: Apache-2.0
// The Services by which pods find the API (kubernetes, with its endpoints) and the DNS (kube-dns): the daemon makes them when
// it starts; taken away while it runs, as by `delete services --all`, they come back as they were.
#pragma once

#include "daemon/controller/controller.h"

namespace coracle::controller {

std::unique_ptr<Controller> make_cluster_services(const Context& context);

}  // namespace coracle::controller
