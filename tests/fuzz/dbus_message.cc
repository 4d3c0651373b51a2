// SPDX-License-Identifier: Apache-2.0
// Fuzzes D-Bus messages: an accepted message stays the same when it is written and read again.
#include "runtime/cgroup/dbus_message.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace coracle::cgroup;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  auto length = message_length(text.substr(0, kMessageHead));
  auto message = decode(text);
  if (!message) return 0;
  if (!length || *length != size) std::abort();
  auto again = decode(encode(*message));
  if (!again || *again != *message) std::abort();
  (void)first_words(*message);
  return 0;
}
