// SPDX-License-Identifier: Apache-2.0
// See merge_conflict.h.
#include "ctl/merge_conflict.h"

#include <algorithm>

#include "store/object/patch.h"

namespace coracle::ctl {
namespace {

bool lists_conflict(const schema::Field* field, const schema::Type* item_type, const json::array& left,
                    const json::array& right) {
  if (field && field->merges) {
    std::string_view key = field->merge_key();
    if (key.empty()) return false;  // sets of values: both add theirs
    for (const json::value& one : left)
      for (const json::value& other : right) {
        const json::value *left_key = find(one, key), *right_key = find(other, key);
        if (left_key && right_key && json_equal(*left_key, *right_key) && patches_conflict(item_type, one, other)) return true;
      }
    return false;
  }
  if (left.size() != right.size()) return true;
  return !std::equal(left.begin(), left.end(), right.begin(),
                     [&](const json::value& one, const json::value& other) { return !patches_conflict(item_type, one, other); });
}

bool fields_conflict(const schema::Field* field, const json::value& left, const json::value& right) {
  const schema::Type* type = field && field->form == schema::Form::object ? &field->type() : nullptr;
  const json::array *left_list = left.if_array(), *right_list = right.if_array();
  if (left_list && right_list) return lists_conflict(field, type, *left_list, *right_list);
  bool is_map = field && field->shape == schema::Shape::map;
  if (!is_map || !left.is_object() || !right.is_object()) return patches_conflict(type, left, right);
  for (const auto& [key, value] : left.get_object()) {
    const json::value* other = right.get_object().if_contains(key);
    if (other && patches_conflict(type, value, *other)) return true;
  }
  return false;
}

}  // namespace

bool patches_conflict(const schema::Type* type, const json::value& left, const json::value& right) {
  const json::object *one = left.if_object(), *other = right.if_object();
  if (!one || !other) return !json_equal(left, right);
  const json::value *left_directive = one->if_contains("$patch"), *right_directive = other->if_contains("$patch");
  if (bool(left_directive) != bool(right_directive)) return true;  // one replaces the whole, the other changes a part
  if (left_directive && *left_directive != *right_directive) return true;
  for (const auto& [key, value] : *one) {
    const json::value* contrary = std::string_view(key).starts_with('$') ? nullptr : other->if_contains(key);
    if (contrary && fields_conflict(type ? type->field(key) : nullptr, value, *contrary)) return true;
  }
  return false;
}

}  // namespace coracle::ctl
