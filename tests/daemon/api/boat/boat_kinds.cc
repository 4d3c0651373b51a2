// SPDX-License-Identifier: Apache-2.0
// The rules of the example kind: a default, a validation rule and a cell. Registers this folder.
#include "store/schema/kind_family.h"

namespace coracle::schema {
namespace {

void default_boat(json::object& spec) {
  if (unset(spec, "vests", true)) spec["vests"] = spec["seats"];
}

void check_boat(const json::value& spec, const std::string& path, Findings& out) {
  size_t seats = size_t(get_int(spec, "seats"));
  if (get_array(spec, "people").size() > seats) out.too_many(sub(path, "people"), get_array(spec, "people").size(), seats);
}

json::value free_seats(const CellInput& in) {
  return json::value(get_int(in.object, "spec.seats") - int64_t(get_array(in.object, "spec.people").size()));
}

constexpr NamedDefaultRule kBoatDefaults[] = {{"com.example.boats.v1.BoatSpec", default_boat}};
constexpr NamedValidationRule kBoatRules[] = {{"com.example.boats.v1.BoatSpec", check_boat}};
constexpr NamedCellRule kBoatCells[] = {{"boat.free", free_seats}};

std::span<const NamedDefaultRule> boat_defaults() { return kBoatDefaults; }
std::span<const NamedValidationRule> boat_rules() { return kBoatRules; }
std::span<const NamedCellRule> boat_cells() { return kBoatCells; }

}  // namespace

extern const KindFamily boat_family;
const KindFamily boat_family{.defaults = {boat_defaults}, .validation = {boat_rules}, .cells = {boat_cells}};

}  // namespace coracle::schema
