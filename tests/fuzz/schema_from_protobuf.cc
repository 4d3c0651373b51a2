// SPDX-License-Identifier: Apache-2.0
// Fuzzes a protobuf body. An accepted object must survive encoding and decoding.
#include <cstdlib>

#include "store/schema/protobuf.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto object = schema::from_protobuf({reinterpret_cast<const char*>(data), size});
  if (!object) return 0;
  auto written = schema::to_protobuf(*object);
  if (!written) return 0;  // the kind has no protobuf encoding
  auto again = schema::from_protobuf(*written);
  if (!again || to_text(*again) != to_text(*object)) std::abort();
  return 0;
}
