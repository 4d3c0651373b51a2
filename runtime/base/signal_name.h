// SPDX-License-Identifier: Apache-2.0
// Signals by name. Source: signal(7), kill(1).
#pragma once

#include <optional>
#include <string_view>

namespace coracle {

// "SIGTERM", "TERM", "15", "RTMIN+3". Nothing when it is no signal.
std::optional<int> signal_number(std::string_view name);

}  // namespace coracle
