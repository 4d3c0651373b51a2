// SPDX-License-Identifier: Apache-2.0
// Fuzzes JSON text through the pure part of the write pipeline: decoding, defaults, validation, and what reads show of it.
// Decoding must be idempotent for any input.
#include <cstdlib>

#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/protobuf.h"
#include "store/schema/table.h"
#include "store/schema/validate.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto parsed = parse_json({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  const schema::KindInfo* kind = schema::catalog().by_kind(get_string(*parsed, "apiVersion"), get_string(*parsed, "kind"));
  if (!kind) kind = &schema::catalog().of(kPod);
  auto decoded = schema::decode(kind->type(), std::move(*parsed));
  if (!decoded) return 0;
  schema::begin_life(*kind, decoded->value);
  schema::apply_defaults(*kind, decoded->value);
  auto again = schema::decode(kind->type(), decoded->value);
  if (!again || to_text(again->value) != to_text(decoded->value)) std::abort();
  (void)schema::validate_create(*kind, decoded->value);
  (void)schema::validate_update(*kind, decoded->value, decoded->value);
  (void)schema::cells_of(*kind, decoded->value, WallTime());
  if (!schema::message_to_protobuf(kind->type(), decoded->value)) std::abort();
  return 0;
}
