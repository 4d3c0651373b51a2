// SPDX-License-Identifier: Apache-2.0
// See merge.h.
#include "ctl/kustomize/merge.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

using Values = std::vector<std::string>;
using Merged = std::optional<Node>;  // nothing: the value is removed

enum class Directive : uint8_t { merge, replace, remove };

bool missing(const Merged& node) { return !node || node->is_null(); }
bool missing(const Node* node) { return !node || node->is_null(); }

// The text of a key field; "" if it is absent.
std::string key_text(const Node& item, std::string_view key) {
  const Node* field = item.find(key);
  return field && !field->empty() ? field->text : std::string();
}

bool has_keys(const Node& item, const Values& keys, const Values& values) {
  for (size_t i = 0; i < keys.size() && i < values.size(); ++i) {
    if (keys[i].empty()) {
      if (!item.is_scalar() || item.value() != values[i]) return false;
      continue;
    }
    const Node* field = item.find(keys[i]);
    // An empty value stands for any: kustomize compares only if there is one.
    if (!field || (!values[i].empty() && field->text != values[i])) return false;
  }
  return true;
}

bool is_empty_item(const Node& item) { return item.is_null() || (item.is_map() && item.members.empty()); }

// Replaces the items with these keys by `item`, or removes them without one. A new item is appended.
void set_item(Node& list, const Values& keys, const Values& values, const Node* item) {
  std::vector<Node> kept;
  bool found = false;
  bool maps_only = !keys.empty() && !keys[0].empty() && !values.empty() && !values[0].empty();
  for (Node& one : list.items) {
    if (is_empty_item(one)) continue;
    if (!one.is_map() && maps_only) {
      kept.push_back(std::move(one));
      continue;
    }
    if (!has_keys(one, keys, values)) {
      if (!values.empty()) kept.push_back(std::move(one));
      continue;
    }
    found = true;
    if (item) kept.push_back(*item);
  }
  if (item && !found && !item->is_null()) kept.push_back(*item);
  list.items = std::move(kept);
}

// The item with just these values; kNone if there is none.
constexpr size_t kNone = size_t(-1);
size_t index_of(const Node* list, const Values& keys, const Values& values) {
  if (!list || !list->is_list()) return kNone;
  for (size_t at = 0; at < list->items.size(); ++at) {
    const Node& item = list->items[at];
    if (keys.empty() || keys[0].empty()) {
      if (item.is_scalar() && item.text == (values.empty() ? std::string() : values[0])) return at;
      continue;
    }
    bool equal = item.is_map();
    for (size_t i = 0; equal && i < keys.size(); ++i) {
      const Node* field = item.find(keys[i]);
      equal = field && i < values.size() && field->text == values[i];
    }
    if (equal) return at;
  }
  return kNone;
}

// Equal but for absent values, and with at least one in common: the same item, as {containerPort: 80} and {containerPort: 80,
// protocol: TCP}. Gives both all values.
bool unify(Values& left, Values& right) {
  bool common = false;
  Values all;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == right[i]) common = true;
    else if (!left[i].empty() && !right[i].empty()) return false;
    all.push_back(left[i].empty() ? right[i] : left[i]);
  }
  if (common) left = right = all;
  return common;
}

class Merger {
 public:
  explicit Merger(const OpenApi& schemas) : schemas_(schemas) {}

  Result<Merged> walk(Merged dest, const Node* patch, Schema schema, size_t depth) {
    if (depth > kTreeDepthMax) return Error(Code::too_large, "nested too deeply");
    if (!schema.known()) {
      const Node* before = dest ? &*dest : nullptr;
      for (const Node* node : {before, patch}) {
        if (schema.known() || missing(node) || !node->is_map()) continue;
        Gvk gvk = Gvk::of(*node);
        if (!gvk.kind.empty() && !gvk.version.empty()) schema = schemas_.of(gvk);
      }
    }
    if (missing(dest) && missing(patch)) return map(std::move(dest), patch, schema, depth);
    Node::Kind kind = missing(dest) ? patch->kind : dest->kind;
    if (!missing(dest) && !missing(patch) && patch->kind != kind)
      return Error(Code::invalid,
                   std::string("the patch has ") + kind_name(patch->kind) + " where the object has " + kind_name(kind));
    if (kind == Node::Kind::map) return map(std::move(dest), patch, schema, depth);
    if (kind == Node::Kind::list && schema.merges()) return list(std::move(dest), patch, schema, depth);
    return patch ? Merged(*patch) : std::move(dest);
  }

 private:
  static Result<Directive> directive_of(std::string_view text) {
    if (text == "delete") return Directive::remove;
    if (text == "replace") return Directive::replace;
    if (text == "merge") return Directive::merge;
    return Error(Code::invalid, "unknown patch strategy " + quoted(text) + ": $patch is delete, replace or merge");
  }

  // Takes the directive out of the patch. `plain` receives the patch without it, if it had one.
  static Result<Directive> take_directive(const Node* patch, std::optional<Node>& plain) {
    if (!patch) return Directive::merge;
    if (patch->is_map()) {
      const Node* field = patch->find("$patch");
      if (!field) return Directive::merge;
      Directive found = TRY(directive_of(field->text));
      plain = *patch;
      plain->erase("$patch");
      return found;
    }
    if (!patch->is_list()) return Directive::merge;
    for (size_t i = 0; i < patch->items.size(); ++i) {
      const Node* field = patch->items[i].find("$patch");
      if (!field) continue;
      if (patch->items[i].members.size() > 1) return Directive::merge;
      Directive found = TRY(directive_of(field->text));
      plain = *patch;
      std::erase_if(plain->items, [&](const Node& item) {
        const Node* same = item.find("$patch");
        return is_empty_item(item) || (same && same->text == field->text);
      });
      return found;
    }
    return Directive::merge;
  }

  Result<Merged> map(Merged dest, const Node* patch, const Schema& schema, size_t depth) {
    std::optional<Node> plain;
    if (missing(dest)) {
      if (patch && patch->is_null()) return Merged(*patch);
      Directive directive = TRY(take_directive(patch, plain));
      if (directive == Directive::remove) return Merged();
      if (!patch) {
        if (!dest || dest->text.empty()) return Merged();
        dest->kept = true;  // a null of the object that no patch mentions
        return dest;
      }
      if (plain) patch = &*plain;
      dest = *patch;
    } else {
      if (patch && patch->is_null()) return Merged();
      Directive directive = TRY(take_directive(patch, plain));
      if (directive == Directive::remove) return Merged();
      if (plain) {
        patch = &*plain;
        dest->erase("$patch");  // of a map that the patch added, and is merged with itself
      }
      if (directive == Directive::replace) dest = *patch;
    }
    if (!dest->is_map()) return dest;
    return members(std::move(*dest), patch, schema, depth);
  }

  // The fields in sorted order, as kustomize visits them.
  Result<Merged> members(Node dest, const Node* patch, const Schema& schema, size_t depth) {
    std::map<std::string, const Node*, std::less<>> patches;
    if (patch)
      for (const Member& member : patch->members) patches[member.key] = &member.value;
    std::set<std::string, std::less<>> known;
    std::vector<Member> kept;
    kept.reserve(dest.members.size() + patches.size());
    for (Member& member : dest.members) {
      known.insert(member.key);
      auto change = patches.find(member.key);
      bool was_quoted = member.value.is_scalar() && member.value.quoted;
      Merged merged = TRY(
          walk(std::move(member.value), change == patches.end() ? nullptr : change->second, schema.field(member.key), depth + 1)
              .wrap(member.key));
      if (!merged || (merged->is_null() && !merged->kept)) continue;
      if (merged->is_scalar()) merged->quoted = was_quoted;
      kept.push_back({std::move(member.key), std::move(*merged)});
    }
    for (const auto& [key, change] : patches) {
      if (known.contains(key)) continue;
      Merged merged = TRY(walk(Merged(), change, schema.field(key), depth + 1).wrap(key));
      if (!merged || (merged->is_null() && !merged->kept)) continue;
      kept.push_back({key, std::move(*merged)});
    }
    dest.members = std::move(kept);
    return Merged(std::move(dest));
  }

  Result<Merged> list(Merged dest, const Node* patch, const Schema& schema, size_t depth) {
    std::optional<Node> plain;
    if (missing(dest)) {
      if (!patch) return dest;
      dest = *patch;
    } else {
      if (patch && patch->is_null()) return Merged();
      Directive directive = TRY(take_directive(patch, plain));
      if (directive == Directive::remove) return Merged();
      if (plain) patch = &*plain;
      if (directive == Directive::replace) dest = *patch;
    }
    if (!dest->is_list()) return dest;
    Values keys = schema.keys();
    std::vector<Values> wanted = keys.empty() ? scalar_values(patch, *dest) : key_values(keys, patch, *dest);
    if (keys.empty()) keys = {""};
    return merge_items(std::move(*dest), patch, schema.elements(), keys, std::move(wanted), depth);
  }

  // The different values of the keys: the patch's first.
  static std::vector<Values> key_values(const Values& keys, const Node* patch, const Node& dest) {
    std::vector<Values> all;
    std::set<Values> seen;
    for (const Node* list : {patch, &dest}) {
      if (!list) continue;
      for (const Node& item : list->items) {
        Values values;
        for (const std::string& key : keys) values.push_back(key_text(item, key));
        if (seen.insert(values).second) all.push_back(std::move(values));
      }
    }
    return all;
  }
  static std::vector<Values> scalar_values(const Node* patch, const Node& dest) {
    std::vector<Values> all;
    std::set<std::string> seen;
    for (const Node* list : {patch, &dest}) {
      if (!list) continue;
      for (const Node& item : list->items)
        if (seen.insert(item.text).second) all.push_back({item.text});
    }
    return all;
  }

  Result<Merged> merge_items(Node dest, const Node* patch, const Schema& schema, const Values& keys, std::vector<Values> wanted,
                             size_t depth) {
    if (wanted.size() > kListItemsMax) return Error(Code::too_large, "a list that merges has too many items");
    if (keys.size() > 1)
      for (Values& left : wanted)
        for (Values& right : wanted) unify(left, right);
    // Keys that no item has are not compared.
    Values used_keys;
    std::vector<size_t> used;
    for (size_t i = 0; i < keys.size(); ++i)
      if (std::any_of(wanted.begin(), wanted.end(), [&](const Values& values) { return !values[i].empty(); })) used.push_back(i);
    if (used.empty())
      for (size_t i = 0; i < keys.size(); ++i) used.push_back(i);
    for (size_t i : used) used_keys.push_back(keys[i]);

    Node added = Node::list();
    std::optional<Node> copy;
    if (patch) copy = *patch;
    Node* changes = copy ? &*copy : nullptr;
    for (const Values& all : wanted) {
      Values values;
      for (size_t i : used) values.push_back(all[i]);
      // Within one item, keys without a value are not compared either.
      Values item_keys, item_values;
      for (size_t i = 0; i < values.size(); ++i)
        if (!values[i].empty()) item_keys.push_back(used_keys[i]), item_values.push_back(values[i]);
      if (item_keys.empty()) item_keys = used_keys, item_values = values;
      size_t before = index_of(&dest, item_keys, item_values), change = index_of(changes, item_keys, item_values);
      Merged merged = TRY(walk(before == kNone ? Merged() : Merged(dest.items[before]),
                               change == kNone ? nullptr : &changes->items[change], schema, depth + 1)
                              .wrap(shown(item_keys, item_values)));
      if (missing(merged) || (merged->is_map() && merged->members.empty())) {
        set_item(dest, used_keys, values, nullptr);
        continue;
      }
      if (merged->is_map())
        for (size_t i = 0; i < used_keys.size(); ++i)
          if (!merged->find(used_keys[i]) && !values[i].empty()) merged->set(used_keys[i], Node::scalar(values[i]));
      set_item(added, used_keys, values, &*merged);
      // The same item may be wanted again, by its other values.
      if (before != kNone) dest.items[before] = std::move(*merged);
      else if (change != kNone) changes->items[change] = std::move(*merged);
    }
    if (wanted.empty()) return Merged(std::move(dest));
    append_rest(added, dest, used_keys);
    return Merged(std::move(added));
  }

  // Puts the items of `from` to those of `into`: an item with the same keys takes the place.
  static void append_rest(Node& into, const Node& from, const Values& keys) {
    for (const Node& item : from.items) {
      if (keys[0].empty()) {
        set_item(into, {""}, {item.text}, &item);
        continue;
      }
      Values values;
      for (const std::string& key : keys) {
        const Node* field = item.find(key);
        if (!field) into.items.push_back(item);
        else values.push_back(field->text);
      }
      if (keys.size() > 1) set_item(into, keys, values, nullptr);
      set_item(into, keys, values, &item);
    }
  }

  static std::string shown(const Values& keys, const Values& values) {
    std::string text = "[";
    for (size_t i = 0; i < keys.size() && i < values.size(); ++i) text += (i ? "," : "") + keys[i] + "=" + values[i];
    return shortened_path(text + "]");
  }

  static constexpr size_t kListItemsMax = 3000;  // items are compared with each other
  const OpenApi& schemas_;
};

}  // namespace

Result<std::optional<Node>> strategic_merge(Node object, const Node& patch, const OpenApi& schemas) {
  return Merger(schemas).walk(Merged(std::move(object)), &patch, Schema(), 0);
}

}  // namespace coracle::kustomize
