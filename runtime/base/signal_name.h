// SPDX-License-Identifier: Apache-2.0
// Signals by name. Source: signal(7), kill(1).
#pragma once

#include <optional>
#include <string_view>

namespace coracle {

// Accepts "SIGTERM", "TERM", "15", "RTMIN+3", in any case of letters. Returns nothing for any other text.
std::optional<int> signal_number(std::string_view name);

}  // namespace coracle
