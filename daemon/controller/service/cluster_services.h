// SPDX-License-Identifier: Apache-2.0
// The Services of the API (kubernetes, with its endpoints) and of the DNS (kube-dns). The daemon creates them when it starts. If
// they are deleted while it runs, as by `delete services --all`, this controller recreates them unchanged.
#pragma once

#include "daemon/controller/controller.h"

namespace coracle::controller {

std::unique_ptr<Controller> make_cluster_services(const Context& context);

}  // namespace coracle::controller
