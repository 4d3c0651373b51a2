// SPDX-License-Identifier: Apache-2.0
// Creates a strategic merge patch from three states, as `kubectl apply` does: the last applied, the new and the live
// configuration. Additions and changes are the differences between new and live. Deletions are what was applied last, is not in
// the new configuration, and is still live. Everything else belongs to other writers and is left unchanged. See merge.h.
#include <string>
#include <vector>

#include "store/object/quantity.h"
#include "store/schema/merge.h"
#include "store/schema/merge_key.h"

namespace coracle::schema {
namespace {

const json::object& object_or_empty(const json::value* value) {
  static const json::object empty;
  return value && value->is_object() ? value->get_object() : empty;
}

const json::array& array_or_empty(const json::value* value) {
  static const json::array empty;
  return value && value->is_array() ? value->get_array() : empty;
}

const json::value* present(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && !value->is_null() ? value : nullptr;
}

bool equal(const Field* field, const json::value& a, const json::value& b) {
  if (same_json(a, b)) return true;
  if (!field || field->form != Form::quantity) return false;
  auto left = Quantity::from_json(a), right = Quantity::from_json(b);
  return left && right && *left == *right;
}

// True if the server would not store the value: then it is not sent for an absent field.
bool vanishes(const Field* field, const json::value& value) {
  if (!field || field->pointer || field->always) return false;
  if (const bool* flag = value.if_bool()) return !*flag;
  if (const json::string* text = value.if_string()) return text->empty();
  if (const json::array* list = value.if_array()) return list->empty();
  if (field->shape == Shape::map) return value.is_object() && value.get_object().empty();
  return value.is_int64() && value.get_int64() == 0;
}

class Differ {
 public:
  json::object object(const Type* type, const json::object& last, const json::object& now, const json::object& live) {
    json::object patch;
    for (const auto& pair : now) {
      std::string_view name = pair.key();
      const Field* field = field_of(type, name);
      const json::value* there = present(live, name);
      if (pair.value().is_null()) {  // says that there is to be none
        if (there) patch[name] = nullptr;
        continue;
      }
      if (there) change(field, name, present(last, name), pair.value(), *there, patch);
      else if (!vanishes(field, pair.value())) patch[name] = pair.value();
    }
    for (const auto& pair : last) {
      if (!pair.value().is_null() && !present(now, pair.key()) && present(live, pair.key())) patch[pair.key()] = nullptr;
    }
    return patch;
  }

 private:
  void change(const Field* field, std::string_view name, const json::value* last, const json::value& now, const json::value& live,
              json::object& patch) {
    if (now.is_object() && live.is_object() && !(field && field->replaced)) {
      bool map = field && field->shape == Shape::map;
      json::object inner = map ? entries(*field, object_or_empty(last), now.get_object(), live.get_object())
                               : object(type_of(field), object_or_empty(last), now.get_object(), live.get_object());
      if (inner.empty()) return;
      if (field && field->retains_keys) inner["$retainKeys"] = keys_of(now.get_object());
      patch[name] = std::move(inner);
    } else if (now.is_array() && live.is_array() && field && field->merges) {
      if (field->merge_key().empty()) values(name, array_or_empty(last), now.get_array(), live.get_array(), patch);
      else items(*field, array_or_empty(last), now.get_array(), live.get_array(), patch);
    } else if (!equal(field, now, live)) {
      patch[name] = now;
    }
  }

  json::object entries(const Field& field, const json::object& last, const json::object& now, const json::object& live) {
    json::object patch;
    for (const auto& pair : now) {
      const json::value* there = present(live, pair.key());
      if (there && pair.value().is_object() && there->is_object()) {
        json::object inner =
            object(type_of(&field), object_or_empty(present(last, pair.key())), pair.value().get_object(), there->get_object());
        if (!inner.empty()) patch[pair.key()] = std::move(inner);
      } else if (pair.value().is_null() ? there != nullptr : !there || !equal(&field, pair.value(), *there)) {
        patch[pair.key()] = pair.value();
      }
    }
    for (const auto& pair : last) {
      if (!present(now, pair.key()) && present(live, pair.key())) patch[pair.key()] = nullptr;
    }
    return patch;
  }

  static json::array keys_of(const json::object& object) {
    json::array keys;
    for (const auto& pair : object) {
      if (!pair.value().is_null()) keys.emplace_back(pair.key());
    }
    return keys;
  }

  void values(std::string_view name, const json::array& last, const json::array& now, const json::array& live,
              json::object& patch) {
    ItemNumbers numbers = number_values({&last, &now, &live});
    const auto &of_last = numbers.of_list[0], &of_now = numbers.of_list[1], &of_live = numbers.of_list[2];
    Positions in_now(of_now, numbers.count), in_live(of_live, numbers.count);
    json::array added, removed;
    for (size_t i = 0; i < now.size(); ++i) {
      if (in_live.count(of_now[i]) == 0) added.push_back(now[i]);
    }
    for (size_t i = 0; i < last.size(); ++i) {
      if (in_now.count(of_last[i]) == 0 && in_live.count(of_last[i]) > 0) removed.push_back(last[i]);
    }
    if (added.empty() && removed.empty()) return;
    if (!removed.empty()) patch["$deleteFromPrimitiveList/" + std::string(name)] = std::move(removed);
    patch["$setElementOrder/" + std::string(name)] = now;
    if (!added.empty()) patch[name] = std::move(added);
  }

  // One of the three states of a list.
  struct ListState {
    ListState(const ItemNumbers& by_key, const ItemNumbers& by_all, size_t list)
        : numbers(by_key.of_list[list]), keyed(numbers, by_key.count), whole(by_all.of_list[list], by_all.count) {}
    std::vector<size_t> numbers;
    Positions keyed, whole;  // by merge key; by all keys
  };

  // For each item of `of` the same item in `in`; kNoItem if there is none. Several items with equal keys are matched in order. An
  // item whose merge key is unique in both lists may have changed its further keys.
  static std::vector<size_t> counterparts(const ListState& of, const ListState& in, const ItemNumbers& by_key,
                                          const ItemNumbers& by_all) {
    std::vector<size_t> found(of.numbers.size(), kNoItem);
    for (size_t number = 0; number < by_all.count; ++number) {
      size_t there = in.whole.first(number);
      for (size_t at = of.whole.first(number); at != kNoItem && there != kNoItem; at = of.whole.next(at)) {
        found[at] = there;
        there = in.whole.next(there);
      }
    }
    for (size_t number = 0; number < by_key.count; ++number) {
      if (of.keyed.count(number) == 1 && in.keyed.count(number) == 1) found[of.keyed.first(number)] = in.keyed.first(number);
    }
    return found;
  }

  void items(const Field& field, const json::array& last, const json::array& now, const json::array& live, json::object& patch) {
    std::string_view key = field.merge_key();
    std::vector<std::string_view> further = further_keys(field);
    ItemNumbers by_key = number_items(field, {&last, &now, &live}), by_all = number_by_all_keys(field, {&last, &now, &live});
    ListState in_last(by_key, by_all, 0), in_now(by_key, by_all, 1), in_live(by_key, by_all, 2);
    std::vector<size_t> live_of_now = counterparts(in_now, in_live, by_key, by_all),
                        last_of_now = counterparts(in_now, in_last, by_key, by_all),
                        now_of_last = counterparts(in_last, in_now, by_key, by_all),
                        live_of_last = counterparts(in_last, in_live, by_key, by_all);
    // The keys beside the merge key are only included if the merge key is ambiguous.
    auto ambiguous = [&](size_t number) { return in_now.keyed.count(number) > 1 || in_live.keyed.count(number) > 1; };
    auto name_further = [&](size_t number, const json::value& item, json::object& named) {
      if (!ambiguous(number)) return;
      for (std::string_view name : further) {
        const json::value* value = item.get_object().if_contains(name);
        const Field* known = field_of(type_of(&field), name);
        if (named.contains(name)) continue;
        if (value) named[name] = *value;
        else if (known && !known->default_json().empty()) named[name] = *parse_json(known->default_json());
      }
    };
    json::array changes, order;
    std::vector<size_t> common;                       // numbers of the common items, in the order of `now`
    std::vector<bool> is_common(live.size(), false);  // by position in `live`
    for (size_t i = 0; i < now.size(); ++i) {
      const json::value& item = now[i];
      if (in_now.numbers[i] == kNoItem) {  // no merge key: the server reports the error
        changes.push_back(item);
        continue;
      }
      const json::value& id = item.get_object().at(key);
      order.push_back(json::object{{key, id}});
      size_t at = live_of_now[i];
      if (at == kNoItem) {
        changes.push_back(item);
        if (changes.back().is_object()) name_further(in_now.numbers[i], item, changes.back().get_object());
        continue;
      }
      common.push_back(in_now.numbers[i]);
      is_common[at] = true;
      size_t before = last_of_now[i];
      json::object inner = object(type_of(&field), object_or_empty(before == kNoItem ? nullptr : &last[before]),
                                  item.get_object(), object_or_empty(&live[at]));
      if (inner.empty()) continue;
      if (field.retains_keys) inner["$retainKeys"] = keys_of(item.get_object());
      inner[key] = id;
      name_further(in_now.numbers[i], item, inner);
      changes.push_back(std::move(inner));
    }
    for (size_t i = 0; i < last.size(); ++i) {
      if (in_last.numbers[i] == kNoItem || now_of_last[i] != kNoItem) continue;
      size_t at = live_of_last[i];
      if (at == kNoItem) continue;
      json::object deletion{{"$patch", "delete"}, {key, last[i].get_object().at(key)}};
      name_further(in_last.numbers[i], live[at], deletion);
      changes.push_back(std::move(deletion));
    }
    std::vector<size_t> common_in_live;
    for (size_t at = 0; at < live.size(); ++at)
      if (is_common[at]) common_in_live.push_back(in_live.numbers[at]);
    if (changes.empty() && common == common_in_live) return;  // the order of items with equal keys is not changed
    patch["$setElementOrder/" + std::string(field.name())] = std::move(order);
    if (!changes.empty()) patch[field.name()] = std::move(changes);
  }
};

}  // namespace

json::value strategic_diff3(const KindInfo& kind, const json::value& last_applied, const json::value& modified,
                            const json::value& current) {
  return Differ().object(&kind.type(), object_or_empty(&last_applied), object_or_empty(&modified), object_or_empty(&current));
}

json::value strategic_diff(const KindInfo& kind, const json::value& original, const json::value& modified) {
  return strategic_diff3(kind, original, modified, original);
}

}  // namespace coracle::schema
