// SPDX-License-Identifier: Apache-2.0
// Commands about the server, and explain, which asks none; in files of their own.
#pragma once

#include <optional>

#include "ctl/command.h"

namespace coracle::ctl {

constexpr const char* kGitVersion = "v1.36.1+coracle";  // of the kubectl whose commands and flags these are

void add_explain(Commands& commands);
void add_api_resources(Commands& commands);  // api-resources, api-versions
void add_cluster_info(Commands& commands);   // cluster-info, cluster-info dump

// Of an answer of /version: of "36" or "36+"; nothing of others.
std::optional<int> minor_of(const json::value& server);
// --match-server-version. Errors: conflict if the server is of another version than the commands here; the server's.
Result<void> check_server_version(Session& session);

}  // namespace coracle::ctl
