// SPDX-License-Identifier: Apache-2.0
// Packed texts: of objects that are many and hardly ever read, as they rest in memory. Meant for events, which take a third of
// their length. What is packed is read by the same process: the form may change with every version. Source: RFC 1951.
#pragma once

#include <string>
#include <string_view>

namespace coracle {

// "" when nothing is gained. `beside`: what is kept beside the packed text anyway, and stands in it: it takes next to nothing
// there. Tens of microseconds.
std::string pack_text(std::string_view text, std::string_view beside = "");
// What pack_text() was given: `size` bytes. Throws std::bad_alloc.
std::string unpack_text(std::string_view packed, size_t size, std::string_view beside = "");

}  // namespace coracle
