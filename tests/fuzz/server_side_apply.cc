// SPDX-License-Identifier: Apache-2.0
// A JSON array [object, configuration, written]: one manager applies the configuration to the object, another one writes the
// third over the result. The first element determines the kind (Pod if it declares none). A configuration in canonical form that
// is applied twice, when no other manager owns fields, changes nothing the second time.
#include <cstdint>
#include <string_view>

#include "runtime/base/clock.h"
#include "store/schema/apply.h"
#include "store/schema/decode.h"
#include "tests/fuzz/kind_said.h"

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto input = parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!input || !input->is_array() || input->get_array().size() < 2) return 0;
  const json::array& parts = input->get_array();
  const schema::KindInfo& kind = kind_said(parts[0]);
  auto live = schema::decode(kind.type(), parts[0]);
  if (!live) return 0;  // stored objects have this kind
  (void)schema::server_side_apply(kind, live->value, parts[1], {"fuzz", "", true, {}}, WallTime());
  auto configuration = schema::decode(kind.type(), parts[1]);
  if (!configuration) return 0;
  bool held = !get_array(live->value, "metadata.managedFields").empty();
  for (bool force : {false, true}) {
    auto applied = schema::server_side_apply(kind, live->value, configuration->value, {"fuzz", "", force, {}}, WallTime());
    if (!applied) continue;
    auto once = schema::decode(kind.type(), *applied);
    if (!once) continue;
    auto again = schema::server_side_apply(kind, once->value, configuration->value, {"fuzz", "", force, {}}, WallTime());
    if (!again) {
      if (!held) __builtin_trap();
      continue;
    }
    auto twice = schema::decode(kind.type(), *again);
    if (!held && (!twice || to_sorted_text(twice->value) != to_sorted_text(once->value))) __builtin_trap();
    if (parts.size() < 3) continue;
    auto written = schema::decode(kind.type(), parts[2]);
    if (written) schema::track_update(kind, once->value, written->value, {"other", "", false, {}}, WallTime());
  }
  return 0;
}
