// SPDX-License-Identifier: Apache-2.0
// Which pod the user means: by its name, or one of those that a Deployment, ReplicaSet or Service selects.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/session.h"

namespace coracle::ctl {

// Running ones first, then by age. Errors: not_found when there is none.
Result<std::vector<json::value>> pods_by_selector(Session& session, const std::string& ns, const std::string& selector);
// "POD", "pod/POD", "deployment/NAME", "pods NAME". One of several is named on standard error when `tells_which`. Errors: as the
// server's; not_found.
Result<json::value> one_pod(Session& session, const std::vector<std::string>& args, bool tells_which = false);
// By annotation kubectl.kubernetes.io/default-container, else the first.
std::string default_container(const json::value& pod);
// The container called `name` of the pod, or its default one, saying which when there are several and not `quiet`. Into
// `pod`. Errors: bad_request, naming those there are.
Result<const json::value*> choose_container(const json::value& pod, const std::string& name, bool quiet);
// Of a pod that has ended: 0 when it succeeded, else what the container ended with. Nothing: it has not ended. Pure. Errors:
// internal, when it failed and the container's status does not tell with what.
Result<std::optional<int>> exit_code_of(const json::value& pod, std::string_view container);
// {"matchLabels": …, "matchExpressions": …} or a plain map, as the text form.
std::string selector_text(const json::value& selector);

}  // namespace coracle::ctl
