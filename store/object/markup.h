// SPDX-License-Identifier: Apache-2.0
// JSON text in the form of Go's encoding/json: <, >, & and the line separators as \u003c. For clients that compare bytes.
#pragma once

#include <string>

namespace coracle {

void escape_markup(std::string& json_text, size_t from = 0);  // escapes the text from `from` on; it stays the same JSON

}  // namespace coracle
