// SPDX-License-Identifier: Apache-2.0
// What the server does with the example kind: a boat with people in it is not deleted.
#include "store/kinds/strategy.h"
#include "store/object/object.h"

namespace coracle::kinds {
namespace {

constexpr Kind kBoat{"boats.example.com", "v1", "Boat", "boats"};

Result<void> check_boat_delete(const Object& boat) {
  if (get_array(boat.json(), "spec.people").empty()) return {};
  return Error(Code::forbidden, "there are people in the boat");
}

}  // namespace

extern const StrategyFamily boat_strategies;
const StrategyFamily boat_strategies{{{.kind = &kBoat, .check_delete = check_boat_delete}}};

}  // namespace coracle::kinds
