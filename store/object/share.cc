// SPDX-License-Identifier: Apache-2.0
// See share.h.
#include "store/object/share.h"

#include "runtime/base/text.h"

namespace coracle {

int64_t scaled(const json::value* value, int64_t total, bool round_up, int64_t otherwise) {
  if (!value) return otherwise;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return int64_t(value->get_uint64());
  const json::string* text = value->if_string();
  if (!text || !text->ends_with('%')) return otherwise;
  auto percent = parse_number<int64_t>(std::string_view(text->data(), text->size() - 1));
  if (!percent) return otherwise;
  return (*percent * total + (round_up ? 99 : 0)) / 100;
}

}  // namespace coracle
