// SPDX-License-Identifier: Apache-2.0
// Untrusted YAML: the result is an error or documents, and a document is the same after writing and reading it.
#include "store/object/yaml.h"

#include <cstdint>
#include <string_view>

#include "store/object/patch.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto documents = parse_yaml(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!documents) return 0;
  for (const json::value& document : *documents) {
    auto again = parse_yaml(to_yaml(document));
    if (!again || again->size() != 1 || !json_equal(again->front(), document)) __builtin_trap();
  }
  return 0;
}
