// SPDX-License-Identifier: Apache-2.0
// Applies a strategic merge patch. See merge.h; diff.cc creates one.
//
// Objects merge field by field. A list with `merge` in the schema merges item by item: the patch's items are matched by the merge
// key (or by value) and changed, added or, with $patch: delete, removed; deletions are first. Then the list is ordered: items
// named by the patch (or $setElementOrder) get its order, and the others keep their positions as far as both orders allow. The
// run time grows with the sizes of list and patch, not with their product. A short list whose items and order stay is changed
// where it is.
#include "store/schema/merge.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

// Other names with a dollar are fields, though unknown ones.
bool is_directive(std::string_view name) {
  auto begins = [&](std::string_view prefix) { return name.starts_with(prefix.substr(0, prefix.size() - 1)); };
  return name == kPatch || name == kRetainKeys || begins(kOrderPrefix) || begins(kDeletePrefix);
}

// The value of $patch; nullptr: none.
const json::value* directive_of(const json::value& change) {
  const json::object* object = change.if_object();
  return object ? object->if_contains(kPatch) : nullptr;
}

bool is_deletion(const json::value& change) {
  const json::value* directive = directive_of(change);
  return directive && *directive == "delete";
}

bool has_directive(const json::value& change) {
  if (directive_of(change)) return true;
  if (const json::object* object = change.if_object())
    return std::ranges::any_of(*object, [](const auto& pair) { return has_directive(pair.value()); });
  const json::array* list = change.if_array();
  return list && std::ranges::any_of(*list, has_directive);
}

// What has nothing to change: without every object that has a $patch, whatever that says. Nothing: it is one itself. Source:
// apimachinery strategicpatch, removeDirectives.
std::optional<json::value> without_directives(const json::value& change) {
  if (directive_of(change)) return std::nullopt;
  if (const json::object* object = change.if_object()) {
    json::object out(object->storage());
    for (const auto& pair : *object)
      if (auto kept = without_directives(pair.value())) out.emplace(pair.key(), *std::move(kept));
    return out;
  }
  if (const json::array* list = change.if_array()) {
    json::array out(list->storage());
    for (const json::value& item : *list)
      if (auto kept = without_directives(item)) out.push_back(*std::move(kept));
    return out;
  }
  return change;
}

// "merge" is one of the names of the design, but Kubernetes refuses it.
Result<void> check_directive(const json::value& directive) {
  if (directive == "replace" || directive == "delete") return {};
  return bad_patch("unknown $patch " + coracle::quoted(shortened_path(to_text(directive))));
}

// Whether the patch's items come in this order. It may name others between them; an empty one says nothing. Source: apimachinery
// strategicpatch, validatePatchWithSetOrderList.
bool keeps_order(const Field& field, const json::array& patch, const json::array& order) {
  if (order.empty()) return true;
  ItemNumbers numbers = number_items(field, {&patch, &order});
  size_t at = 0;
  for (size_t i = 0; i < patch.size(); ++i) {
    if (directive_of(patch[i]) || numbers.of_list[0][i] == kNoItem) continue;  // the latter is refused for its missing key
    while (at < order.size() && numbers.of_list[1][at] != numbers.of_list[0][i]) ++at;
    if (at++ >= order.size()) return false;
  }
  return true;
}

// A list being merged: its current items, and their correspondence to items of the patch and of the requested order.
class MergedList {
 public:
  // `order_given`: the patch contains the order, and so the number of items with each key.
  MergedList(const Field& field, json::array original, const json::array& patch, const json::array& order, bool order_given)
      : further_(further_keys(field)), order_given_(order_given), items_(std::move(original)), original_size_(items_.size()) {
    ItemNumbers numbers = number_items(field, {&items_, &patch, &order});
    by_key_ = Numbered(numbers);
    if (!further_.empty()) by_all_ = Numbered(number_by_all_keys(field, {&items_, &patch}));
    ordered_.emplace(numbers.of_list[2], numbers.count);
    gone_.assign(items_.size(), false);
    taken_.assign(items_.size(), false);
    present_.assign(numbers.count, 0);
    for (size_t number : by_key_.of_items)
      if (number != kNoItem) ++present_[number];
  }

  // Removes the item that is the same as item `i` of the patch. If several items have its key, the patch does not identify one.
  // If its order contains the key, the first items remain, as many as the order names.
  void remove(size_t i, const json::value& item) {
    bool exact = says_which(item);
    Numbered& by = exact ? by_all_ : by_key_;
    size_t number = by.of_patch[i], key = by_key_.of_patch[i];
    size_t stay = order_given_ && !exact && present_[key] > 1 ? ordered_->count(key) : 0;
    if (by.removed[number]) return;
    by.removed[number] = true;
    for (size_t at = by.positions->first(number); at != kNoItem; at = by.positions->next(at)) {
      if (gone_[at]) continue;
      if (stay > 0) {
        --stay;
        continue;
      }
      gone_[at] = true;
      --present_[key];
    }
  }

  // The item that corresponds to item `i` of the patch; kNoItem: a new item. Call after all removals.
  size_t find(size_t i, const json::value& item) {
    size_t key = by_key_.of_patch[i];
    size_t first = by_key_.skip(by_key_.alive, key, [&](size_t at) { return gone_[at]; });
    if (further_.empty() || first == kNoItem) return first;
    bool exact = says_which(item);
    Numbered& by = exact ? by_all_ : by_key_;
    size_t same = by.skip(by.free, by.of_patch[i], [&](size_t at) { return gone_[at] || taken_[at]; });
    // If no existing item matches exactly, Kubernetes changes the first one with that merge key. Here it becomes a new item if
    // the patch also describes the first one, or if the order has more items with that key than exist.
    bool is_new = same == kNoItem && exact && (taken_[first] || ordered_->count(key) > present_[key]);
    if (is_new) return kNoItem;
    size_t found = same != kNoItem ? same : first;
    taken_[found] = true;
    return found;
  }

  json::value& at(size_t position) { return items_[position]; }
  json::value& add(size_t i, json::value item) {
    size_t key = by_key_.of_patch[i];
    items_.push_back(std::move(item));
    gone_.push_back(false);
    taken_.push_back(true);
    by_key_.add(key);
    if (!further_.empty()) by_all_.add(by_all_.of_patch[i]);
    if (key != kNoItem) ++present_[key];
    return items_.back();
  }

  // The items in the requested order; the rest keeps its positions.
  json::array in_order() {
    struct Ranked {
      size_t rank, position;
    };
    std::vector<Ranked> ordered;
    std::vector<size_t> others;
    std::vector<size_t> seen(present_.size(), kNoItem);  // by number: the position of its last item in the order
    for (size_t at = 0; at < items_.size(); ++at) {
      if (gone_[at]) continue;
      size_t number = by_key_.of_items[at];
      if (ordered_->count(number) == 0) {
        others.push_back(at);
        continue;
      }
      size_t rank = seen[number] == kNoItem ? ordered_->first(number) : ordered_->next(seen[number]);
      if (rank == kNoItem) rank = seen[number];
      seen[number] = rank;
      ordered.push_back({rank, at});
    }
    std::stable_sort(ordered.begin(), ordered.end(), [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; });
    json::array out(items_.storage());
    out.reserve(ordered.size() + others.size());
    size_t other = 0, next = 0;
    while (other < others.size() || next < ordered.size()) {
      bool take_other = next >= ordered.size();
      if (!take_other && other < others.size()) {
        size_t left = others[other], right = ordered[next].position;
        take_other = left < original_size_ && right < original_size_ && left < right;
      }
      out.push_back(std::move(items_[take_other ? others[other++] : ordered[next++].position]));
    }
    return out;
  }

 private:
  struct Numbered {
    Numbered() = default;
    explicit Numbered(const ItemNumbers& numbers)
        : of_items(numbers.of_list[0]), of_patch(numbers.of_list[1]), removed(numbers.count, false) {
      positions.emplace(of_items, numbers.count);
      for (size_t number = 0; number < numbers.count; ++number) alive.push_back(positions->first(number));
      free = alive;
    }
    void add(size_t number) {
      of_items.push_back(number);
      positions->add(number);
      if (number != kNoItem && alive[number] == kNoItem) alive[number] = of_items.size() - 1;
    }
    // The first position with this number that is not skipped. `from` stores it: skipped positions are never revisited.
    template <typename F>
    size_t skip(std::vector<size_t>& from, size_t number, F&& passed_over) {
      if (number == kNoItem) return kNoItem;
      size_t& at = from[number];
      while (at != kNoItem && passed_over(at)) at = positions->next(at);
      return at;
    }

    std::vector<size_t> of_items, of_patch;
    std::optional<Positions> positions;  // positions of the items
    std::vector<bool> removed;           // by number
    std::vector<size_t> alive, free;     // by number: the first existing; the first not matched by the patch
  };

  bool says_which(const json::value& item) const {
    return !further_.empty() &&
           std::all_of(further_.begin(), further_.end(), [&](std::string_view key) { return find_keys(item, {key}); });
  }

  const std::vector<std::string_view> further_;
  const bool order_given_;
  json::array items_;
  const size_t original_size_;
  Numbered by_key_, by_all_;  // by merge key; by all keys if there are further ones
  std::optional<Positions> ordered_;
  std::vector<size_t> present_;     // by number of the key
  std::vector<bool> gone_, taken_;  // by position: removed; matched by the patch
};

std::set<std::string_view> texts_of(const json::array& list) {
  std::set<std::string_view> texts;
  for (const json::value& item : list)
    if (const json::string* text = item.if_string()) texts.insert(*text);
  return texts;
}

class Merger {
 public:
  // `as_is`: `patch` is the new value, and changes nothing. A $patch in it is no directive there.
  Result<void> object(const Type* type, json::object& original, const json::object& patch, bool as_is = false) {
    bool goes_on = TRY(directives(original, patch, as_is));
    if (!goes_on) return {};
    as_is = as_is || patch.contains(kPatch);
    TRY(check_lists(type, patch));
    TRY(delete_from_primitive_lists(original, patch));
    for (const auto& pair : patch) {
      std::string_view name = pair.key();
      if (is_directive(name) || pair.value().is_null()) continue;
      TRY(member(field_of(type, name), name, original, patch, pair.value(), as_is));
    }
    drop_nulls_of(patch, original);
    return order_untouched_lists(type, original, patch);
  }

 private:
  // Handles directives for the whole object. False: nothing is left to merge.
  static Result<bool> directives(json::object& original, const json::object& patch, bool as_is) {
    if (const json::value* directive = as_is ? nullptr : patch.if_contains(kPatch)) {
      TRY(check_directive(*directive));
      original.clear();
      if (*directive == "delete") return false;
    }
    if (const json::value* keys = patch.if_contains(kRetainKeys)) TRY(retain(original, patch, *keys));
    return true;
  }

  // Checks the directives about lists of one object.
  static Result<void> check_lists(const Type* type, const json::object& patch) {
    for (const auto& pair : patch) {
      const std::string_view directive = pair.key();
      if (!is_directive(directive) || directive == kPatch || directive == kRetainKeys) continue;
      const bool orders = directive.starts_with(kOrderPrefix);
      if (!orders && !directive.starts_with(kDeletePrefix))
        return bad_patch(coracle::quoted(shortened_path(std::string(directive))) + " names no list");
      if (!pair.value().is_array()) return bad_patch(shortened_path(std::string(directive)) + " must be a list");
      if (orders) TRY(check_order(type, directive.substr(kOrderPrefix.size()), patch, pair.value().get_array()));
    }
    return {};
  }

  static Result<void> check_order(const Type* type, std::string_view name, const json::object& patch, const json::array& order) {
    if (!type) return {};
    auto wrong = [&](std::string_view why) {
      return bad_patch("$setElementOrder/" + shortened_path(std::string(name)) + std::string(why));
    };
    const Field* field = field_of(type, name);
    if (!field || field->shape != Shape::list) return wrong(" is the order of no list");
    bool keyed = field->merges && !field->merge_key().empty();
    if (keyed && !std::all_of(order.begin(), order.end(), [](const json::value& item) { return item.is_object(); }))
      return wrong(" must be a list of objects");
    const json::value* change = patch.if_contains(name);
    if (!change) return {};
    if (!change->is_array()) return wrong(" is given, but the patch has no list of that name");
    if (!keeps_order(*field, change->get_array(), order)) return wrong(" does not have the patch's items in their order");
    return {};
  }

  Result<void> member(const Field* field, std::string_view name, json::object& original, const json::object& patch,
                      const json::value& change, bool as_is) {
    json::value* there = original.if_contains(name);
    if (!as_is && has_no_counterpart(there, change)) {
      if (!has_directive(change)) return member(field, name, original, patch, change, true);
      if (auto rest = without_directives(change)) return member(field, name, original, patch, *rest, true);
      if (there) original.stable_erase(original.find(name));
      return {};
    }
    json::value& old = there ? *there : original[name];  // [] makes room even for a member that is there
    if (change.is_object() && !(field && field->replaced)) {
      if (!old.is_object()) old.emplace_object();
      if (field && field->shape == Shape::map) return entries(*field, old.get_object(), change.get_object(), as_is);
      return object(type_of(field), old.get_object(), change.get_object(), as_is);
    }
    if (change.is_array() && field && field->shape == Shape::list && field->merges) {
      const json::value* order = patch.if_contains(std::string(kOrderPrefix).append(name));
      if (!old.is_array()) old.emplace_array();
      json::array merged = TRY(list(*field, std::move(old.get_array()), change.get_array(), order));
      old = std::move(merged);
      return {};
    }
    old = TRY(cleaned(type_of(field), change, old.storage()));
    return {};
  }

  // Merges a map: like an object, but its keys are not fields.
  Result<void> entries(const Field& field, json::object& original, const json::object& patch, bool as_is) {
    bool goes_on = TRY(directives(original, patch, as_is));
    if (!goes_on) return {};
    as_is = as_is || patch.contains(kPatch);
    for (const auto& pair : patch) {
      if (pair.key() == kPatch || pair.key() == kRetainKeys || pair.value().is_null()) continue;
      TRY(entry(field, pair.key(), original, pair.value(), as_is));
    }
    drop_nulls_of(patch, original);
    return {};
  }

  Result<void> entry(const Field& field, std::string_view key, json::object& original, const json::value& change, bool as_is) {
    if (!as_is && has_no_counterpart(original.if_contains(key), change)) {
      if (!has_directive(change)) return entry(field, key, original, change, true);
      if (auto rest = without_directives(change)) return entry(field, key, original, *rest, true);
      if (auto at = original.find(key); at != original.end()) original.stable_erase(at);
      return {};
    }
    json::value& old = original[key];
    if (!change.is_object()) {
      old = change;
      return {};
    }
    if (!old.is_object()) old.emplace_object();
    return object(type_of(&field), old.get_object(), change.get_object(), as_is);
  }

  // Whether the patch's object or list is put where there is none.
  static bool has_no_counterpart(const json::value* there, const json::value& change) {
    return change.is_structured() && !(there && there->kind() == change.kind());
  }

  static void drop_nulls_of(const json::object& patch, json::object& original) {
    auto deletes = [&](const auto& pair) { return pair.value().is_null() && !is_directive(pair.key()); };
    bool any =
        std::any_of(patch.begin(), patch.end(), [&](const auto& pair) { return deletes(pair) && original.contains(pair.key()); });
    if (!any) return;
    erase_members_if(original, [&](const auto& pair) {
      auto named = patch.find(pair.key());
      return named != patch.end() && deletes(*named);
    });
  }

  // A value that replaces another, without directives and nulls. `memory`: of the other.
  Result<json::value> cleaned(const Type* type, const json::value& value, const json::storage_ptr& memory) {
    if (value.is_object()) {
      json::object out(memory);
      TRY(object(type, out, value.get_object(), true));
      return json::value(std::move(out));
    }
    if (!value.is_array()) return json::value(value, memory);
    json::array out(memory);
    out.reserve(value.get_array().size());
    for (const json::value& item : value.get_array()) {
      json::value clean = TRY(cleaned(type, item, memory));
      out.push_back(std::move(clean));
    }
    return json::value(std::move(out));
  }

  static Result<void> retain(json::object& original, const json::object& patch, const json::value& keys) {
    if (!keys.is_array()) return bad_patch("$retainKeys must be a list");
    std::set<std::string_view> kept = texts_of(keys.get_array());
    for (const auto& pair : patch)
      if (!is_directive(pair.key()) && !pair.value().is_null() && !kept.contains(pair.key()))
        return bad_patch("$retainKeys does not contain " + coracle::quoted(shortened_path(pair.key())) +
                         ", which the patch sets");
    erase_members_if(original, [&](const auto& pair) { return !kept.contains(pair.key()); });
    return {};
  }

  static Result<void> delete_from_primitive_lists(json::object& original, const json::object& patch) {
    for (const auto& pair : patch) {
      std::string_view name = pair.key();
      if (!name.starts_with(kDeletePrefix)) continue;
      json::value* list = original.if_contains(name.substr(kDeletePrefix.size()));
      if (!list || !list->is_array()) continue;
      ItemNumbers numbers = number_values({&list->get_array(), &pair.value().get_array()});
      Positions named(numbers.of_list[1], numbers.count);
      json::array kept(list->storage());
      for (size_t i = 0; i < list->get_array().size(); ++i) {
        if (named.count(numbers.of_list[0][i]) == 0) kept.push_back(std::move(list->get_array()[i]));
      }
      *list = std::move(kept);
    }
    return {};
  }

  // $setElementOrder for a list that the patch does not change otherwise.
  static Result<void> order_untouched_lists(const Type* type, json::object& original, const json::object& patch) {
    for (const auto& pair : patch) {
      std::string_view name = pair.key();
      if (!name.starts_with(kOrderPrefix)) continue;
      name.remove_prefix(kOrderPrefix.size());
      const Field* field = field_of(type, name);
      json::value* list = original.if_contains(name);
      if (!field || !field->merges || !list || !list->is_array() || patch.contains(name)) continue;
      *list = MergedList(*field, std::move(list->get_array()), {}, pair.value().get_array(), true).in_order();
    }
    return {};
  }

  // The position of the only item with the merge key of `named`; kNoItem: there is none. Nothing: there are several, or the key
  // is no text.
  static std::optional<size_t> place_of(const json::array& items, std::string_view key, const json::value& named) {
    const json::value* wanted = find_keys(named, {key});
    if (!wanted || !wanted->is_string()) return std::nullopt;
    size_t found = kNoItem;
    for (size_t i = 0; i < items.size(); ++i) {
      const json::value* its = find_keys(items[i], {key});
      if (!its || !its->is_string() || its->get_string() != wanted->get_string()) continue;
      if (found != kNoItem) return std::nullopt;
      found = i;
    }
    return found;
  }

  // The usual patch of a short list, such as a pod's conditions: each of its items changes one that is there, and the order is
  // the present one. Then nothing is numbered or moved. False: it is another patch; nothing has been changed.
  Result<bool> change_in_place(const Field& field, json::array& items, const json::array& patch, const json::array* order) {
    constexpr uint64_t kComparedMax = 4096;  // items with items
    const std::string_view key = field.merge_key(), all_keys = field.list_keys_.view();
    const bool is_short = uint64_t(items.size()) * (patch.size() + (order ? order->size() : 0)) <= kComparedMax;
    if (key.empty() || !is_short || !(all_keys.empty() || all_keys == key)) return false;
    size_t next = 0;  // the least position that a further item of the order may have
    auto follows = [&](size_t at) { return std::exchange(next, at + 1) <= at; };
    for (const json::value& change : patch) {
      const std::optional<size_t> at = place_of(items, key, change);
      if (!at || *at == kNoItem || change.get_object().contains(kPatch) || (!order && !follows(*at))) return false;
    }
    for (size_t i = 0; order && i < order->size(); ++i) {
      const std::optional<size_t> at = place_of(items, key, (*order)[i]);
      if (!at || (*at != kNoItem && !follows(*at))) return false;
    }
    for (const json::value& change : patch)
      TRY(object(type_of(&field), items[*place_of(items, key, change)].get_object(), change.get_object()));
    return true;
  }

  Result<json::array> list(const Field& field, json::array original, const json::array& patch, const json::value* order) {
    std::string_view key = field.merge_key();
    if (!key.empty()) {
      bool replaces = false;
      for (const json::value& change : patch) {
        if (!change.is_object()) return bad_patch("items of " + std::string(field.name()) + " must be objects");
        const json::value* directive = directive_of(change);
        if (directive) TRY(check_directive(*directive));
        bool is_mark = directive && *directive == "replace";
        replaces |= is_mark;
        if (!is_mark && !change.get_object().contains(key)) {
          return bad_patch("an item of " + std::string(field.name()) + " does not contain its merge key " + std::string(key));
        }
      }
      if (replaces) return replacement(field, patch, original.storage());
    }
    const bool is_done = TRY(change_in_place(field, original, patch, order ? &order->get_array() : nullptr));
    if (is_done) return original;
    auto deletes = [&](const json::value& item) { return !key.empty() && is_deletion(item); };
    json::array named(patch.storage());  // the order of the patch's items, if it has no explicit order
    for (size_t i = 0; !order && i < patch.size(); ++i)
      if (!deletes(patch[i]))
        named.push_back(key.empty() ? patch[i] : json::object({{key, patch[i].get_object().at(key)}}, patch.storage()));
    const json::storage_ptr memory = original.storage();
    MergedList merged(field, std::move(original), patch, order ? order->get_array() : named, order != nullptr);
    for (size_t i = 0; i < patch.size(); ++i)
      if (deletes(patch[i])) merged.remove(i, patch[i]);
    for (size_t i = 0; i < patch.size(); ++i) {
      if (deletes(patch[i])) continue;
      size_t at = merged.find(i, patch[i]);
      if (key.empty()) {
        if (at == kNoItem) merged.add(i, json::value(patch[i], memory));
        continue;
      }
      const bool is_new = at == kNoItem;
      json::value& item = is_new ? merged.add(i, json::object(memory)) : merged.at(at);
      if (!item.is_object()) item.emplace_object();
      TRY(object(type_of(&field), item.get_object(), patch[i].get_object(), is_new));
    }
    return merged.in_order();
  }

  // {"$patch": "replace"} as an item: the patch's other items become the list.
  Result<json::array> replacement(const Field& field, const json::array& patch, const json::storage_ptr& memory) {
    json::array out(memory);
    for (const json::value& item : patch) {
      if (directive_of(item)) continue;
      json::value clean = TRY(cleaned(type_of(&field), item, memory));
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
