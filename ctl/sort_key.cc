// SPDX-License-Identifier: Apache-2.0
// See sort_key.h.
#include "ctl/sort_key.h"

#include <algorithm>
#include <vector>

#include "ctl/go_format.h"
#include "runtime/base/text.h"
#include "store/object/quantity.h"

namespace coracle::ctl {
namespace {

struct SortKey {
  enum class Rank : uint8_t { absent, boolean, amount, text };  // sorted in this order
  Rank rank = Rank::absent;
  bool flag = false;
  bool exact = true;  // true: use `amount`; false: use `number`
  Quantity amount;
  double number = 0;
  std::string text;
};

double amount_of(const SortKey& key) { return key.exact ? double(key.amount.value()) : key.number; }

SortKey key_of(const GoValue& value) {
  SortKey key;
  switch (value.kind()) {
    case GoValue::Kind::nothing: return key;
    case GoValue::Kind::boolean: key.rank = SortKey::Rank::boolean, key.flag = value.boolean(); return key;
    case GoValue::Kind::integer:
    case GoValue::Kind::octet:
    case GoValue::Kind::real: {
      bool real = value.kind() == GoValue::Kind::real;
      json::value number = real ? json::value(value.real()) : json::value(value.integer());
      auto amount = Quantity::from_json(number);
      key.rank = SortKey::Rank::amount, key.exact = bool(amount);
      if (amount) key.amount = *amount;
      else key.number = number.to_number<double>();  // outside the range of a quantity
      return key;
    }
    case GoValue::Kind::text:
      key.text = std::string(value.text());
      if (auto amount = Quantity::parse(key.text)) key.rank = SortKey::Rank::amount, key.amount = *amount;
      else key.rank = SortKey::Rank::text;
      return key;
    default: key.rank = SortKey::Rank::text, key.text = go_text(value.unboxed()); return key;
  }
}

bool key_less(const SortKey& a, const SortKey& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  switch (a.rank) {
    case SortKey::Rank::absent: return false;
    case SortKey::Rank::boolean: return a.flag < b.flag;
    case SortKey::Rank::amount: return a.exact && b.exact ? a.amount < b.amount : amount_of(a) < amount_of(b);
    case SortKey::Rank::text: return a.text < b.text;
  }
  return false;
}

}  // namespace

bool sorts_before(const json::value* a, const json::value* b) {
  auto key = [](const json::value* value) { return key_of(value ? GoValue::of_json(*value, true) : GoValue()); };
  return key_less(key(a), key(b));
}

Result<SortPath> SortPath::parse(const std::string& expression, bool of_table) {
  auto text = relaxed_jsonpath(expression);
  if (!text && !of_table) return text.take_error();
  auto path = JsonPath::parse(text ? *text : expression);
  if (path) return SortPath(std::move(*path));
  return Error(Code::bad_request, (of_table ? "sorting error: " : "") + path.error().text());
}

Result<void> SortPath::sort(json::array& values, std::string_view under) const {
  struct Keyed {
    SortKey key;
    json::value value;
  };
  std::vector<Keyed> keyed;
  bool found_one = false;
  for (auto& value : values) {
    const json::value* object = under.empty() ? &value : find(value, under);
    std::vector<GoValue> found;
    if (object) found = TRY(path_.select(*object));
    found_one = found_one || !found.empty();
    keyed.push_back({key_of(found.empty() ? GoValue() : found.front()), value});
  }
  if (!values.empty() && !found_one)
    return Error(Code::invalid, "couldn't find any field with path " + coracle::quoted(path_.text()) + " in the list of objects");
  std::stable_sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) { return key_less(a.key, b.key); });
  for (size_t i = 0; i < keyed.size(); ++i) values[i] = std::move(keyed[i].value);
  return {};
}

Result<void> sort_by(json::array& values, std::string_view under, const std::string& path) {
  SortPath parsed = TRY(SortPath::parse(path, !under.empty()));
  return parsed.sort(values, under);
}

}  // namespace coracle::ctl
