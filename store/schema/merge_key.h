// SPDX-License-Identifier: Apache-2.0
// What applying a strategic merge patch (merge.cc) and making one (diff.cc) look up alike: fields and their types, where the
// schema has them; and items of merged lists, two of which are the same one when their merge keys are equal, or their values
// where there is no key. Lists are as long as a request allows, so nothing here compares each item with each: the items of all
// lists that are merged are sorted once, and get numbers.
//
// Some lists have a second key beside the merge key: ports are told apart by number and protocol, and one number may be there
// twice. Kubernetes' strategic merge takes no notice of it and mixes them up; here what a patch says of it, and how often it
// names the number in the list's order, decides.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/schema/type.h"

namespace coracle::schema {

inline const Field* field_of(const Type* type, std::string_view name) { return type ? type->field(name) : nullptr; }

inline const Type* type_of(const Field* field) { return field && field->form == Form::object ? &field->type() : nullptr; }

constexpr size_t kNoItem = size_t(-1);

// For each of some lists, a number for each item: equal for items that are the same one, counted from 0. kNoItem for an item that
// has no merge key.
struct ItemNumbers {
  std::vector<std::vector<size_t>> of_list;
  size_t count = 0;  // of different numbers
};
using Lists = std::vector<const json::array*>;
ItemNumbers number_values(const Lists& lists);                          // whole values
ItemNumbers number_items(const Field& list, const Lists& lists);        // the merge key, or whole values where there is none
ItemNumbers number_by_all_keys(const Field& list, const Lists& lists);  // the merge key and further_keys(), defaults filled in

// The keys of a list beside its merge key: a port's protocol.
std::vector<std::string_view> further_keys(const Field& list);

// The positions in one list that have a number, in order. Positions can be added at the end.
class Positions {
 public:
  Positions(const std::vector<size_t>& numbers, size_t count);
  void add(size_t number);                                        // the next position
  size_t first(size_t number) const;                              // kNoItem: none
  size_t next(size_t position) const { return next_[position]; }  // with the same number; kNoItem: none
  size_t count(size_t number) const { return number == kNoItem ? 0 : counts_[number]; }

 private:
  std::vector<size_t> first_, last_, counts_;  // by number
  std::vector<size_t> next_;                   // by position
};

}  // namespace coracle::schema
