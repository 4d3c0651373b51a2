// SPDX-License-Identifier: Apache-2.0
// Fuzz: bytes as a protobuf body. What is accepted must survive being written and read again.
#include <cstdlib>

#include "store/schema/protobuf.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto object = schema::from_protobuf({reinterpret_cast<const char*>(data), size});
  if (!object) return 0;
  auto written = schema::to_protobuf(*object);
  if (!written) return 0;  // a kind without a protobuf form of its own
  auto again = schema::from_protobuf(*written);
  if (!again || to_text(*again) != to_text(*object)) std::abort();
  return 0;
}
