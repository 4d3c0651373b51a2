// SPDX-License-Identifier: Apache-2.0
// SHA-256. Source: FIPS 180-4.
#pragma once

#include <array>
#include <string_view>

namespace coracle {

using Sha256 = std::array<unsigned char, 32>;
// Ends the process if OpenSSL has no SHA-256, or cannot be loaded.
Sha256 sha256_of(std::string_view text);
// The bytes of `digest`; valid as long as it is.
inline std::string_view as_text(const Sha256& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

}  // namespace coracle
