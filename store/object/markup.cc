// SPDX-License-Identifier: Apache-2.0
// See markup.h. JSON has none of these characters outside of strings, so the text need not be parsed.
#include "store/object/markup.h"

#include <string_view>

namespace coracle {

void escape_markup(std::string& text, size_t from) {
  constexpr std::string_view kLine = "\xe2\x80\xa8", kParagraph = "\xe2\x80\xa9";  // U+2028, U+2029
  std::string_view rest(text);
  rest.remove_prefix(from);
  std::string out;
  size_t done = 0;
  auto put = [&](size_t at, size_t size, std::string_view escaped) {
    out.append(rest, done, at - done).append(escaped);
    done = at + size;
  };
  for (size_t at = rest.find_first_of("<>&\xe2"); at != rest.npos; at = rest.find_first_of("<>&\xe2", at + 1)) {
    switch (rest[at]) {
      case '<': put(at, 1, "\\u003c"); break;
      case '>': put(at, 1, "\\u003e"); break;
      case '&': put(at, 1, "\\u0026"); break;
      default:
        if (rest.substr(at, 3) == kLine) put(at, 3, "\\u2028");
        else if (rest.substr(at, 3) == kParagraph) put(at, 3, "\\u2029");
    }
  }
  if (!done) return;
  out.append(rest, done);
  text.replace(from, text.npos, out);
}

}  // namespace coracle
