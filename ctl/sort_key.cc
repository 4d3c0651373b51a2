// SPDX-License-Identifier: Apache-2.0
// See sort_key.h.
#include "ctl/sort_key.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ctl/jsonpath.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/object/quantity.h"

namespace coracle::ctl {
namespace {

struct SortKey {
  enum class Rank : uint8_t { absent, boolean, amount, time, text };  // sorted in this order
  Rank rank = Rank::absent;
  bool flag = false;
  bool exact = true;  // true: use `amount`; false: use `number`
  Quantity amount;
  double number = 0;
  WallTime time;
  std::string text;
};

double amount_of(const SortKey& key) { return key.exact ? double(key.amount.value()) : key.number; }

SortKey key_of(const json::value* value) {
  SortKey key;
  if (!value || value->is_null()) return key;
  if (const bool* flag = value->if_bool()) {
    key.rank = SortKey::Rank::boolean, key.flag = *flag;
    return key;
  }
  auto amount = Quantity::from_json(*value);
  if (amount || value->is_number()) {
    key.rank = SortKey::Rank::amount, key.exact = bool(amount);
    if (amount) key.amount = *amount;
    else key.number = value->to_number<double>();  // outside the range of a quantity
    return key;
  }
  key.text = jsonpath_text(*value);
  if (auto time = parse_time(key.text); time && value->is_string()) key.rank = SortKey::Rank::time, key.time = *time;
  else key.rank = SortKey::Rank::text;
  return key;
}

bool key_less(const SortKey& a, const SortKey& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  switch (a.rank) {
    case SortKey::Rank::absent: return false;
    case SortKey::Rank::boolean: return a.flag < b.flag;
    case SortKey::Rank::amount: return a.exact && b.exact ? a.amount < b.amount : amount_of(a) < amount_of(b);
    case SortKey::Rank::time: return a.time < b.time;
    case SortKey::Rank::text: return natural_less(a.text, b.text);
  }
  return false;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t digits_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    size_t m = digits_at(a, i), n = digits_at(b, j);
    if (m == 0 || n == 0) {
      if (a[i] != b[j]) return uint8_t(a[i]) < uint8_t(b[j]);
      ++i, ++j;
      continue;
    }
    std::string_view left = a.substr(i, m), right = b.substr(j, n);
    i += m, j += n;
    left.remove_prefix(std::min(left.find_first_not_of('0'), left.size()));
    right.remove_prefix(std::min(right.find_first_not_of('0'), right.size()));
    if (left.size() != right.size()) return left.size() < right.size();
    if (left != right) return left < right;
  }
  if (i < a.size() || j < b.size()) return i >= a.size();
  return a.size() != b.size() ? a.size() < b.size() : a > b;  // equal except for leading zeros: fewer come first
}

bool sorts_before(const json::value* a, const json::value* b) { return key_less(key_of(a), key_of(b)); }

Result<void> sort_by(json::array& values, std::string_view under, const std::string& path) {
  struct Keyed {
    SortKey key;
    json::value value;
  };
  std::vector<Keyed> keyed;
  bool found_one = false;
  for (auto& value : values) {
    const json::value* object = under.empty() ? &value : find(value, under);
    std::vector<const json::value*> found;
    if (object) found = TRY(jsonpath_select(path, *object).wrap("--sort-by"));
    found_one = found_one || !found.empty();
    keyed.push_back({key_of(found.empty() ? nullptr : found.front()), value});
  }
  if (!values.empty() && !found_one) {
    std::string_view bare = path;
    if (bare.starts_with('{') && bare.ends_with('}')) bare = bare.substr(1, bare.size() - 2);
    if (bare.starts_with('.')) bare.remove_prefix(1);
    return Error(Code::invalid, "couldn't find any field with path " + coracle::quoted("{." + std::string(bare) + "}") +
                                    " in the list of objects");
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) { return key_less(a.key, b.key); });
  for (size_t i = 0; i < keyed.size(); ++i) values[i] = std::move(keyed[i].value);
  return {};
}

}  // namespace coracle::ctl
