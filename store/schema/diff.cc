// SPDX-License-Identifier: Apache-2.0
// Making a strategic merge patch from three states, as `kubectl apply` does: what the user applied last, what they apply
// now, and what is live. Additions and changes are what differs between now and live; deletions are what was applied last
// and is not any more, and is still live. Everything else belongs to others and is left alone. See merge.h.
#include <string>

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
  if (a == b) return true;
  if (!field || field->form != Form::quantity) return false;
  auto left = Quantity::from_json(a), right = Quantity::from_json(b);
  return left && right && *left == *right;
}

// Not worth sending when it is not there: the server would not keep it.
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
      if (pair.value().is_null()) continue;
      std::string_view name = pair.key();
      const Field* field = field_of(type, name);
      const json::value* there = present(live, name);
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
    if (now.is_object() && live.is_object()) {
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
      } else if (!pair.value().is_null() && (!there || !equal(&field, pair.value(), *there))) {
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

  // Does `live` hold what `now` holds in another order?
  static bool reordered(const json::array& now, const json::array& live, std::string_view key) {
    size_t at = 0;
    for (const json::value& item : live) {
      if (!find_item(now, item, key)) continue;
      while (at < now.size() && !find_item(live, now[at], key)) ++at;
      if (at >= now.size() || !same_item(now[at], item, key)) return true;
      ++at;
    }
    return false;
  }

  void values(std::string_view name, const json::array& last, const json::array& now, const json::array& live,
              json::object& patch) {
    json::array added, removed;
    for (const json::value& item : now) {
      if (!find_item(live, item, "")) added.push_back(item);
    }
    for (const json::value& item : last) {
      if (!find_item(now, item, "") && find_item(live, item, "")) removed.push_back(item);
    }
    if (added.empty() && removed.empty()) return;
    if (!removed.empty()) patch["$deleteFromPrimitiveList/" + std::string(name)] = std::move(removed);
    patch["$setElementOrder/" + std::string(name)] = now;
    if (!added.empty()) patch[name] = std::move(added);
  }

  void items(const Field& field, const json::array& last, const json::array& now, const json::array& live, json::object& patch) {
    std::string_view key = field.merge_key();
    json::array changes, order;
    for (const json::value& item : now) {
      const json::value* id = item.is_object() ? item.get_object().if_contains(key) : nullptr;
      if (!id) {  // cannot be told from others: the server will say so
        changes.push_back(item);
        continue;
      }
      order.push_back(json::object{{key, *id}});
      const json::value* there = find_item(live, item, key);
      if (!there) {
        changes.push_back(item);
        continue;
      }
      json::object inner =
          object(type_of(&field), object_or_empty(find_item(last, item, key)), item.get_object(), object_or_empty(there));
      if (inner.empty()) continue;
      if (field.retains_keys) inner["$retainKeys"] = keys_of(item.get_object());
      inner[key] = *id;
      changes.push_back(std::move(inner));
    }
    for (const json::value& item : last) {
      if (find_item(now, item, key) || !find_item(live, item, key)) continue;
      changes.push_back(json::object{{"$patch", "delete"}, {key, item.get_object().at(key)}});
    }
    if (changes.empty() && !reordered(now, live, key)) return;
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
