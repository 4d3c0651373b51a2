// SPDX-License-Identifier: Apache-2.0
// Fuzzes an object and a patch, as a JSON list of two (a third element is the last applied configuration). A patch of apply must
// lead to the requested state, so that applying again changes nothing.
#include <cstdlib>

#include "runtime/base/clock.h"
#include "store/schema/apply.h"
#include "store/schema/merge.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto parsed = parse_json({reinterpret_cast<const char*>(data), size});
  if (!parsed || !parsed->is_array() || parsed->get_array().size() < 2) return 0;
  const json::array& parts = parsed->get_array();
  const schema::KindInfo& kind = schema::catalog().of(kPod);
  (void)schema::strategic_merge(kind, parts[0], parts[1]);
  static const json::value none;
  const json::value& last = parts.size() > 2 ? parts[2] : none;
  (void)schema::strategic_merge(kind, parts[0], schema::strategic_diff3(kind, last, parts[1], parts[0]));
  auto applied = schema::server_side_apply(kind, parts[0], parts[1], {"fuzz", "", true}, WallTime());
  if (applied) schema::track_update(kind, parts[0], *applied, {"other"}, WallTime());
  return 0;
}
