// SPDX-License-Identifier: Apache-2.0
// Untrusted quantities: the result is an error, or an amount whose canonical text has the same value and is its own canonical
// text.
#include "store/object/quantity.h"

#include <cstdint>
#include <string_view>

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto parsed = Quantity::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) return 0;
  auto again = Quantity::parse(parsed->text());
  if (!again || *again != *parsed || again->text() != parsed->text()) __builtin_trap();
  return 0;
}
