// SPDX-License-Identifier: Apache-2.0
// Compressed texts of objects that are many and rarely read. Intended for events, which shrink to a third. The same process
// unpacks the text: the format may change with every version. Source: RFC 1951.
#pragma once

#include <string>
#include <string_view>

namespace coracle {

// Returns "" if nothing is gained. `beside`: text that is stored beside the packed text and also occurs in it; it serves as a
// dictionary. Takes tens of microseconds.
std::string pack_text(std::string_view text, std::string_view beside = "");
// The input of pack_text(); `size` is its length. Throws std::bad_alloc. Ends the process for damaged input.
std::string unpack_text(std::string_view packed, size_t size, std::string_view beside = "");

}  // namespace coracle
