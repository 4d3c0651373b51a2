// SPDX-License-Identifier: Apache-2.0
// See merge_key.h.
#include "store/schema/merge_key.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <optional>
#include <string>

namespace coracle::schema {
namespace {

// The identity of an item, cheap to compare. Borrows the text of the item or of its serialised form.
struct ItemKey {
  enum class Kind : uint8_t { text, number, other };
  Kind kind = Kind::other;
  int64_t number = 0;
  std::string_view text;
  std::strong_ordering operator<=>(const ItemKey&) const = default;
};

ItemKey key_of(const json::value& value, std::deque<std::string>& texts) {
  if (const json::string* text = value.if_string()) return {ItemKey::Kind::text, 0, *text};
  if (const int64_t* number = value.if_int64()) return {ItemKey::Kind::number, *number, {}};
  if (const uint64_t* number = value.if_uint64(); number && *number <= uint64_t(INT64_MAX))
    return {ItemKey::Kind::number, int64_t(*number), {}};
  return {ItemKey::Kind::other, 0, texts.emplace_back(to_sorted_text(value))};  // equal objects may have another order of keys
}

// `key_of_item`: nullopt for an item that equals no other.
template <typename F>
ItemNumbers numbered(const Lists& lists, F&& key_of_item) {
  struct Entry {
    ItemKey key;
    size_t list, position;
  };
  ItemNumbers numbers;
  std::vector<Entry> entries;
  for (size_t i = 0; i < lists.size(); ++i) {
    const json::array& list = *lists[i];
    numbers.of_list.emplace_back(list.size(), kNoItem);
    for (size_t j = 0; j < list.size(); ++j)
      if (std::optional<ItemKey> key = key_of_item(list[j])) entries.push_back({*key, i, j});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i == 0 || entries[i].key != entries[i - 1].key) ++numbers.count;
    numbers.of_list[entries[i].list][entries[i].position] = numbers.count - 1;
  }
  return numbers;
}

}  // namespace

ItemNumbers number_values(const Lists& lists) {
  std::deque<std::string> texts;
  return numbered(lists, [&](const json::value& item) { return std::optional(key_of(item, texts)); });
}

ItemNumbers number_items(const Field& list, const Lists& lists) {
  if (list.merge_key().empty()) return number_values(lists);
  std::deque<std::string> texts;
  return numbered(lists, [&](const json::value& item) -> std::optional<ItemKey> {
    const json::value* found = find_keys(item, {list.merge_key()});
    if (!found) return std::nullopt;
    return key_of(*found, texts);
  });
}

ItemNumbers number_by_all_keys(const Field& list, const Lists& lists) {
  std::vector<std::string_view> further = further_keys(list);
  if (further.empty()) return number_items(list, lists);
  std::deque<std::string> texts;
  return numbered(lists, [&](const json::value& item) -> std::optional<ItemKey> {
    const json::value* found = find_keys(item, {list.merge_key()});
    if (!found) return std::nullopt;
    std::string text = to_text(*found);
    for (std::string_view name : further) {
      const json::value* value = find_keys(item, {name});
      const Field* field = field_of(type_of(&list), name);
      text += '\n';  // does not occur in one-line JSON
      if (value && !value->is_null()) text += to_text(*value);
      else if (field) text += field->default_json();
    }
    return ItemKey{ItemKey::Kind::other, 0, texts.emplace_back(std::move(text))};
  });
}

std::vector<std::string_view> further_keys(const Field& list) {
  std::vector<std::string_view> keys = list.list_keys();
  std::erase(keys, list.merge_key());
  return keys;
}

Positions::Positions(const std::vector<size_t>& numbers, size_t count)
    : first_(count, kNoItem), last_(count, kNoItem), counts_(count, 0) {
  next_.reserve(numbers.size());
  for (size_t number : numbers) add(number);
}

void Positions::add(size_t number) {
  size_t position = next_.size();
  next_.push_back(kNoItem);
  if (number == kNoItem) return;
  if (first_[number] == kNoItem) first_[number] = position;
  else next_[last_[number]] = position;
  last_[number] = position;
  ++counts_[number];
}

size_t Positions::first(size_t number) const { return number == kNoItem ? kNoItem : first_[number]; }

}  // namespace coracle::schema
