// SPDX-License-Identifier: Apache-2.0
// What containers say, as the API can carry it: any bytes may come, of any length, and a status or an event is UTF-8 and short.
// Kubernetes' encoder replaces what is none, and its messages are the end of a long file; so do we.
#pragma once

#include <string>
#include <string_view>

namespace coracle::node {

// Well-formed UTF-8; every byte that belongs to no character becomes U+FFFD.
std::string as_utf8(std::string_view bytes);

// The last bytes of a file, at most `max`. "" when there is none.
std::string end_of_file(const std::string& path, size_t max);

}  // namespace coracle::node
