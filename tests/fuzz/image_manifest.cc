// SPDX-License-Identifier: Apache-2.0
// Fuzzes the documents of a registry or an archive about an image: manifests, indexes, configurations.
#include <cstdint>
#include <string_view>

#include "runtime/image/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace coracle::image;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (auto manifest = parse_manifest(text, ""); manifest && manifest->index)
    (void)choose(*manifest->index, {"arm", "linux", "v7"});
  if (auto configuration = parse_configuration(text)) (void)chain_ids(configuration->diff_ids);
  return 0;
}
