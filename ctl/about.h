// SPDX-License-Identifier: Apache-2.0
// Commands about the server, in files of their own.
#pragma once

#include "ctl/command.h"

namespace coracle::ctl {

void add_api_resources(Commands& commands);  // api-resources, api-versions
void add_cluster_info(Commands& commands);   // cluster-info, cluster-info dump

}  // namespace coracle::ctl
