// SPDX-License-Identifier: Apache-2.0
// A JSON array [document, patch]: the patch is applied as a JSON patch or as a merge patch, or refused. A merge patch computed
// from two states leads from one to the other (unless the second one contains nulls, which such a patch cannot express). No
// result is nested deeper than a document may be.
#include <cstdint>
#include <string_view>

#include "store/object/patch.h"
#include "tests/fuzz/nulls.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto input = parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!input || !input->is_array() || input->get_array().size() != 2) return 0;
  const json::value &document = input->get_array()[0], &patch = input->get_array()[1];
  json::value patched = document;
  bool applied = bool(apply_json_patch(patched, patch));  // any result is acceptable
  if (applied && deeper_than(patched, kJsonDepthMax)) __builtin_trap();
  json::value merged = document;
  apply_merge_patch(merged, patch);
  if (deeper_than(merged, kJsonDepthMax)) __builtin_trap();
  if (document.is_object() && patch.is_object() && !holds_null(patch)) {
    json::value led = document;
    apply_merge_patch(led, make_merge_patch(document, patch));
    if (!json_equal(led, patch)) __builtin_trap();
  }
  return 0;
}
