// SPDX-License-Identifier: Apache-2.0
// JSON as Go's decoder reads it, where that differs from the standard, and numbers as Go writes them again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

// As parse_json, but what is no Unicode becomes U+FFFD: each byte that is not part of UTF-8, and the escaped half of a surrogate
// pair. For the bodies of requests. `bytes_max`: of the text that is then read, where U+FFFD takes three bytes. Errors: as
// parse_json; too_large. Source: Go encoding/json, unquote
Result<json::value> parse_json_as_go(std::string_view text, size_t bytes_max, std::vector<DuplicateKey>* duplicates = nullptr,
                                     json::storage_ptr storage = {});

// The integer for a number without a fraction, 1e3 or 1000.0, that fits into 64 bits.
std::optional<int64_t> integer_if_whole(double number);
// Stores such numbers as integers, everywhere in `value`, as Go writes a number that it has read into an interface.
void store_whole_numbers_as_integers(json::value& value);

}  // namespace coracle
