// SPDX-License-Identifier: Apache-2.0
// config: the kubeconfig in force, seen and changed.
#pragma once

#include "ctl/command.h"

namespace coracle::ctl {

// config view, current-context, get-contexts, get-clusters, get-users, use-context, rename-context, set, unset, set-context,
// set-cluster, set-credentials, delete-context, delete-cluster, delete-user
void add_config(Commands& commands);
void add_config_setters(Commands& commands, Command config);  // set-context, set-cluster, set-credentials

// What kubectl says of arguments that are too many or too few: "Unexpected args: [a b]", and where help is.
Error unexpected_arguments(std::string_view command, const std::vector<std::string>& args);

}  // namespace coracle::ctl
