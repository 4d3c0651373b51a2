// SPDX-License-Identifier: Apache-2.0
// config: the kubeconfig in force, seen and changed.
#pragma once

#include "ctl/command.h"

namespace coracle::ctl {

void add_config(Commands& commands);  // config view, current-context, get-contexts, use-context, set-context

// ---- the changes, for their tests. Errors: not_found, naming the contexts there are ----

Result<void> use_context(json::value& config, const std::string& name);
struct ContextChange {
  std::string cluster, user, ns;  // "" = as it is
};
// Makes the context when there is none. True: it was there.
bool set_context(json::value& config, const std::string& name, const ContextChange& change);

}  // namespace coracle::ctl
