// SPDX-License-Identifier: Apache-2.0
// JSON text as Go's encoding/json writes it: <, > and & and the line separators as \u003c. For where clients compare bytes.
#pragma once

#include <string>

namespace coracle {

void escape_markup(std::string& json_text, size_t from = 0);  // what is there from `from` on; stays the same JSON

}  // namespace coracle
