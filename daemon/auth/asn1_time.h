// SPDX-License-Identifier: Apache-2.0
// A time in the format of X.509 certificates, for serving certificates and signed requests. Pure. Source: RFC 5280 section
// 4.1.2.5 (OpenSSL's ASN1_TIME_set_string_X509 selects one of its two forms).
#pragma once

#include <ctime>
#include <string>

#include "runtime/base/clock.h"

namespace coracle::auth {

inline std::string asn1_time(WallTime time) {  // "20060102150405Z"
  std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%d%H%M%SZ", &parts)};
}

}  // namespace coracle::auth
