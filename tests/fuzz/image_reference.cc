// SPDX-License-Identifier: Apache-2.0
// Fuzzes the small parsers of runtime/image: references (an accepted one must be stable when it is written and read again),
// authentication challenges, users.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/image/fetch/auth.h"
#include "runtime/image/reference.h"
#include "runtime/image/users.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace coracle::image;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (auto reference = parse_reference(text)) {
    auto again = parse_reference(reference->text());
    if (!again || again->text() != reference->text()) std::abort();
    if (reference->name().find("..") != std::string::npos) std::abort();
  }
  (void)parse_challenges(text);
  size_t half = text.find('\n');
  auto user = find_user(text.substr(0, half), half == text.npos ? "" : text.substr(half + 1), text);
  if (user && (user->uid > kIdMax || user->gid > kIdMax)) std::abort();
  return 0;
}
