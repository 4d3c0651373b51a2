// SPDX-License-Identifier: Apache-2.0
// Migration from client-side to server-side apply: the fields that client-side apply owns by operation Update move to the manager
// of the server-side apply. Then a field that is removed from the file is removed from the object. Pure. Source: client-go
// util/csaupgrade, which kubectl apply uses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::ctl {

// The managers that own the last-applied annotation by that operation ("Apply" or "Update"), without duplicates.
std::vector<std::string> owners_of_last_applied(const json::value& object, std::string_view operation);

// A JSON patch that moves the fields of `updaters` (operation Update) to `manager` (operation Apply). It holds the object's
// resourceVersion, so it fails after another change. Returns nothing if there is nothing to move.
std::optional<json::value> handover_patch(const json::value& object, const std::vector<std::string>& updaters,
                                          std::string_view manager);

}  // namespace coracle::ctl
