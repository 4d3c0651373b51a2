// SPDX-License-Identifier: Apache-2.0
// Applying a strategic merge patch. See merge.h; the other direction is diff.cc.
//
// Objects merge field by field. A list whose field says `merge` is merged item by item: items of the patch are looked up by
// the merge key (or by value), changed, added or, with $patch: delete, removed. Then it is put in order: items that the
// patch (or $setElementOrder) names stand as it names them, the others keep their places among the original's as well as
// both orders allow.
#include "store/schema/merge.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/text.h"
#include "store/schema/field_set.h"
#include "store/schema/merge_key.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kOrderPrefix = "$setElementOrder/";
constexpr std::string_view kDeletePrefix = "$deleteFromPrimitiveList/";

Error bad_patch(const std::string& what) { return Error(Code::bad_request, "strategic merge patch: " + what); }

int64_t place(const json::array& list, const json::value& item, std::string_view key) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (same_item(list[i], item, key)) return int64_t(i);
  }
  return -1;
}

// `merged` with what `order` names in that order, and the rest as it stood in `original`.
json::array in_element_order(json::array merged, const json::array& order, const json::array& original, std::string_view key) {
  json::array ordered, others;
  for (json::value& item : merged) (find_item(order, item, key) ? ordered : others).push_back(std::move(item));
  auto by = [&](const json::array& list) {
    return [&list, key](const json::value& a, const json::value& b) { return place(list, a, key) < place(list, b, key); };
  };
  std::stable_sort(ordered.begin(), ordered.end(), by(order));
  json::array out;
  size_t other = 0, next = 0;
  while (other < others.size() || next < ordered.size()) {
    bool take_other = next >= ordered.size();
    if (!take_other && other < others.size()) {
      int64_t left = place(original, others[other], key), right = place(original, ordered[next], key);
      take_other = left >= 0 && right >= 0 && left < right;
    }
    out.push_back(std::move(take_other ? others[other++] : ordered[next++]));
  }
  return out;
}

class Merger {
 public:
  Result<void> object(const Type* type, json::object& original, const json::object& patch) {
    if (const json::value* directive = patch.if_contains(kPatch)) {
      std::string_view word = directive->is_string() ? std::string_view(directive->get_string()) : "";
      if (word != "replace" && word != "delete" && word != "merge") return bad_patch("unknown $patch " + to_text(*directive));
      if (word != "merge") original.clear();
      if (word == "delete") return {};
    }
    if (const json::value* keys = patch.if_contains(kRetainKeys)) {
      TRY(retain(original, *keys));
    }
    TRY(delete_from_primitive_lists(original, patch));
    for (const auto& pair : patch) {
      std::string_view name = pair.key();
      if (name.starts_with("$")) continue;
      TRY(member(field_of(type, name), name, original, patch, pair.value()));
    }
    return order_untouched_lists(type, original, patch);
  }

 private:
  Result<void> member(const Field* field, std::string_view name, json::object& original, const json::object& patch,
                      const json::value& change) {
    if (change.is_null()) {
      drop(original, name);
      return {};
    }
    json::value& old = original[name];
    if (change.is_object()) {
      if (!old.is_object()) old.emplace_object();
      if (field && field->shape == Shape::map) return entries(*field, old.get_object(), change.get_object());
      return object(type_of(field), old.get_object(), change.get_object());
    }
    if (change.is_array() && field && field->shape == Shape::list && field->merges) {
      const json::value* order = patch.if_contains(std::string(kOrderPrefix) + std::string(name));
      if (!old.is_array()) old.emplace_array();
      json::array merged = TRY(list(*field, old.get_array(), change.get_array(), order));
      old = std::move(merged);
      return {};
    }
    old = TRY(cleaned(type_of(field), change));
    return {};
  }

  // A map from string: as an object, but its keys are no fields.
  Result<void> entries(const Field& field, json::object& original, const json::object& patch) {
    if (const json::value* directive = patch.if_contains(kPatch); directive && *directive == "replace") original.clear();
    for (const auto& pair : patch) {
      if (pair.key() == kPatch) continue;
      if (pair.value().is_null()) {
        drop(original, pair.key());
      } else if (pair.value().is_object()) {
        json::value& old = original[pair.key()];
        if (!old.is_object()) old.emplace_object();
        TRY(object(type_of(&field), old.get_object(), pair.value().get_object()));
      } else {
        original[pair.key()] = pair.value();
      }
    }
    return {};
  }

  // A value that replaces another: without directives and nulls.
  Result<json::value> cleaned(const Type* type, const json::value& value) {
    if (value.is_object()) {
      json::object out;
      TRY(object(type, out, value.get_object()));
      return json::value(std::move(out));
    }
    if (!value.is_array()) return value;
    json::array out;
    for (const json::value& item : value.get_array()) {
      json::value clean = TRY(cleaned(type, item));
      out.push_back(std::move(clean));
    }
    return json::value(std::move(out));
  }

  static Result<void> retain(json::object& original, const json::value& keys) {
    if (!keys.is_array()) return bad_patch("$retainKeys must be a list");
    std::vector<std::string> gone;
    for (const auto& pair : original) {
      if (!find_item(keys.get_array(), json::value(pair.key()), "")) gone.emplace_back(pair.key());
    }
    for (const std::string& name : gone) drop(original, name);
    return {};
  }

  static Result<void> delete_from_primitive_lists(json::object& original, const json::object& patch) {
    for (const auto& pair : patch) {
      std::string_view name = pair.key();
      if (!name.starts_with(kDeletePrefix)) continue;
      if (!pair.value().is_array()) return bad_patch(std::string(name) + " must be a list");
      json::value* list = original.if_contains(name.substr(kDeletePrefix.size()));
      if (!list || !list->is_array()) continue;
      json::array kept;
      for (json::value& item : list->get_array()) {
        if (!find_item(pair.value().get_array(), item, "")) kept.push_back(std::move(item));
      }
      *list = std::move(kept);
    }
    return {};
  }

  // $setElementOrder for a list that the patch does not otherwise touch.
  static Result<void> order_untouched_lists(const Type* type, json::object& original, const json::object& patch) {
    for (const auto& pair : patch) {
      std::string_view name = pair.key();
      if (!name.starts_with(kOrderPrefix)) continue;
      if (!pair.value().is_array()) return bad_patch(std::string(name) + " must be a list");
      name.remove_prefix(kOrderPrefix.size());
      const Field* field = field_of(type, name);
      json::value* list = original.if_contains(name);
      if (!field || !field->merges || !list || !list->is_array() || patch.contains(name)) continue;
      json::array before = list->get_array();
      *list = in_element_order(before, pair.value().get_array(), before, field->merge_key());
    }
    return {};
  }

  Result<json::array> list(const Field& field, const json::array& original, const json::array& patch, const json::value* order) {
    if (order && !order->is_array()) return bad_patch("$setElementOrder/" + std::string(field.name()) + " must be a list");
    std::string_view key = field.merge_key();
    json::array merged = original, named;
    for (const json::value& change : patch) {
      if (key.empty()) {
        named.push_back(change);
        if (!find_item(merged, change, "")) merged.push_back(change);
        continue;
      }
      if (!change.is_object()) return bad_patch("items of " + std::string(field.name()) + " must be objects");
      const json::object& item = change.get_object();
      const json::value* directive = item.if_contains(kPatch);
      if (directive && *directive == "replace") return replacement(field, patch);
      if (!item.contains(key)) {
        return bad_patch("an item of " + std::string(field.name()) + " does not contain its merge key " + std::string(key));
      }
      if (directive && *directive == "delete") {
        merged.erase(std::remove_if(merged.begin(), merged.end(), [&](auto& old) { return same_item(old, change, key); }),
                     merged.end());
        continue;
      }
      named.push_back(change);
      int64_t at = place(merged, change, key);
      if (at < 0) {
        at = int64_t(merged.size());
        merged.push_back(json::object());
      }
      TRY(object(type_of(&field), merged[size_t(at)].get_object(), item));
    }
    return in_element_order(std::move(merged), order ? order->get_array() : named, original, key);
  }

  // {"$patch": "replace"} as an item: the patch's other items are the list.
  Result<json::array> replacement(const Field& field, const json::array& patch) {
    json::array out;
    for (const json::value& item : patch) {
      if (item.is_object() && item.get_object().contains(kPatch)) continue;
      json::value clean = TRY(cleaned(type_of(&field), item));
      out.push_back(std::move(clean));
    }
    return out;
  }
};

}  // namespace

Result<json::value> strategic_merge(const Type& type, json::value original, const json::value& patch) {
  if (!patch.is_object()) return bad_patch("the patch must be an object");
  if (!original.is_object()) original.emplace_object();
  TRY(Merger().object(&type, original.get_object(), patch.get_object()));
  return original;
}

Result<json::value> strategic_merge(const KindInfo& kind, json::value original, const json::value& patch) {
  return strategic_merge(kind.type(), std::move(original), patch);
}

}  // namespace coracle::schema
