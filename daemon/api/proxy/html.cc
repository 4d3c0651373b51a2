// SPDX-License-Identifier: Apache-2.0
// See html.h.
#include "daemon/api/proxy/html.h"

namespace coracle::api {

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      case '\r': out += "&#13;"; break;  // a parser would convert it to a line feed
      default: out += c;
    }
  }
  return out;
}

}  // namespace coracle::api
