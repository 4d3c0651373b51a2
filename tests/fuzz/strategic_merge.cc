// SPDX-License-Identifier: Apache-2.0
// A JSON array [object, patch, file]: the patch is applied as a strategic merge patch to the object, whose kind is the declared
// one (Pod if it declares none), or refused. The third element is the configuration that a user applies next: the patch of apply
// leads to it, and applying once more changes nothing.
#include <cstdint>
#include <string_view>

#include "store/schema/decode.h"
#include "store/schema/merge.h"
#include "tests/fuzz/kind_said.h"
#include "tests/fuzz/nulls.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto input = parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!input || !input->is_array() || input->get_array().size() < 2) return 0;
  const json::array& parts = input->get_array();
  const schema::KindInfo& kind = kind_said(parts[0]);
  auto merged = schema::strategic_merge(kind, parts[0], parts[1]);
  if (merged && deeper_than(*merged, kJsonDepthMax)) __builtin_trap();
  if (parts.size() < 3 || holds_null(parts[2], true)) return 0;
  auto live = schema::decode(kind.type(), parts[0]), file = schema::decode(kind.type(), parts[2]);
  if (!live || !file) return 0;  // stored objects have this kind, and so do those that get this far
  static const json::value none;
  auto next = schema::strategic_merge(kind, live->value, schema::strategic_diff3(kind, none, file->value, live->value));
  if (next) (void)schema::strategic_diff3(kind, file->value, file->value, *next);
  return 0;
}
