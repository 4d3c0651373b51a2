// SPDX-License-Identifier: Apache-2.0
// From client-side to server-side apply: the fields that `apply` owned as an updater are handed to the manager that applies, so
// that a field taken out of the file is taken out of the object. Pure. Source: client-go util/csaupgrade, as kubectl apply uses
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::ctl {

// The managers of that operation ("Apply", "Update") that own the annotation of client-side apply, each once.
std::vector<std::string> owners_of_last_applied(const json::value& object, std::string_view operation);

// The JSON patch that gives `manager`, as one who applies, what `updaters` own as those who update, and takes these out;
// conditional on the object's revision. Nothing when there is nothing to hand over.
std::optional<json::value> handover_patch(const json::value& object, const std::vector<std::string>& updaters,
                                          std::string_view manager);

}  // namespace coracle::ctl
