// SPDX-License-Identifier: Apache-2.0
// Generates uids and suffixes of generated names. Source: RFC 9562 (UUID version 4); apimachinery util/rand, apiserver
// names/generate.
#pragma once

#include <string>
#include <string_view>

namespace coracle::registry {

constexpr size_t kGeneratedPrefixMax = 58;  // 63 less the five added characters

std::string make_uid();                        // random, in lower case
std::string random_suffix(size_t length = 5);  // of letters and digits that cannot form words
std::string generate_name(std::string_view prefix);

}  // namespace coracle::registry
