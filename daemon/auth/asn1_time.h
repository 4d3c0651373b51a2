// SPDX-License-Identifier: Apache-2.0
// A time in the format of X.509 certificates, for serving certificates and signed requests. Pure. Source: RFC 5280 section
// 4.1.2.5 (OpenSSL's ASN1_TIME_set_string_X509 selects one of its two forms).
#pragma once

#include <string>

#include "runtime/base/clock.h"

namespace coracle::auth {

inline std::string asn1_time(WallTime time) {  // "20060102150405Z"
  std::string text = format_time(time);        // time_t may have 32 bits
  std::erase_if(text, [](char c) { return c == '-' || c == ':' || c == 'T'; });
  return text;
}

}  // namespace coracle::auth
