// SPDX-License-Identifier: Apache-2.0
// Lookups for both applying (merge.cc) and creating (diff.cc) a strategic merge patch: fields and their types, if the schema has
// them, and items of merged lists. Two items are the same if their merge keys are equal, or their values for a list without a
// key. Lists may be as long as a request allows, so items are not compared pairwise: the items of all merged lists are sorted
// once and numbered.
//
// Some lists have a second key beside the merge key: ports are identified by number and protocol, so a number may occur twice.
// Kubernetes' strategic merge ignores the second key and confuses such ports. Here the patch's second key decides; without it,
// the order of the ports with that number.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/schema/type.h"

namespace coracle::schema {

inline const Field* field_of(const Type* type, std::string_view name) { return type ? type->field(name) : nullptr; }

inline const Type* type_of(const Field* field) { return field && field->form == Form::object ? &field->type() : nullptr; }

constexpr size_t kNoItem = size_t(-1);

// For each list, a number for each item, counted from 0: equal numbers for the same item. kNoItem for an item without a merge
// key.
struct ItemNumbers {
  std::vector<std::vector<size_t>> of_list;
  size_t count = 0;  // number of different values
};
using Lists = std::vector<const json::array*>;
ItemNumbers number_values(const Lists& lists);                          // whole values
ItemNumbers number_items(const Field& list, const Lists& lists);        // by merge key, or by value for a list without one
ItemNumbers number_by_all_keys(const Field& list, const Lists& lists);  // by merge key and further_keys(), with defaults

// The additional keys of a list beside its merge key: a port's protocol.
std::vector<std::string_view> further_keys(const Field& list);

// The positions in one list by item number, in order. Positions can be appended.
class Positions {
 public:
  Positions(const std::vector<size_t>& numbers, size_t count);
  void add(size_t number);                                        // appends the next position
  size_t first(size_t number) const;                              // kNoItem: none
  size_t next(size_t position) const { return next_[position]; }  // the next position with the same number; kNoItem: none
  size_t count(size_t number) const { return number == kNoItem ? 0 : counts_[number]; }

 private:
  std::vector<size_t> first_, last_, counts_;  // by number
  std::vector<size_t> next_;                   // by position
};

}  // namespace coracle::schema
