// SPDX-License-Identifier: Apache-2.0
// See field_set.h.
#include "store/schema/field_set.h"

#include <algorithm>
#include <array>
#include <memory_resource>
#include <set>
#include <span>
#include <utility>

namespace coracle::schema {
namespace {

const json::object kNothing;

const json::object& subtree(const json::object& set, std::string_view element) {
  const json::value* found = set.if_contains(element);
  return found && found->is_object() ? found->get_object() : kNothing;
}

bool is_list(const Place& place) { return place.kind == Place::Kind::list_map || place.kind == Place::Kind::list_set; }

// Memory for notes, which are small and many: of the stack, as long as they fit.
template <size_t kBytes>
struct NoteMemory {
  std::array<std::byte, kBytes> block;
  std::pmr::monotonic_buffer_resource resource{block.data(), block.size()};
};

// As to_text(), without a string of its own: keys are mostly short.
void append_json(std::string& out, const json::value& value) {
  char piece[128];
  json::serializer serializer;
  serializer.reset(&value);
  while (!serializer.done()) {
    json::string_view text = serializer.read(piece);
    out.append(text.data(), text.size());
  }
}

// The elements of one list's items.
class ItemElements {
 public:
  explicit ItemElements(const Place& place) : of_map_(place.kind == Place::Kind::list_map ? place.field : nullptr) {
    if (!of_map_) return;
    keys_ = of_map_->list_keys();
    std::sort(keys_.begin(), keys_.end());
  }
  std::string_view of(const json::value& item) {  // valid until the next call
    text_ = of_map_ ? "k:{" : "v:";
    if (of_map_) append_keys(item);
    else append_json(text_, item);
    return text_;
  }

 private:
  void append_keys(const json::value& item) {
    for (std::string_view name : keys_) {
      const json::value* found = find_keys(item, {name});
      const Field* key = of_map_->form == Form::object ? of_map_->type().field(name) : nullptr;
      if (!found && (!key || key->default_json().empty())) continue;
      if (text_.back() != '{') text_ += ',';
      text_.append(1, '"').append(name).append("\":");
      if (found) append_json(text_, *found);
      else text_ += key->default_json();
    }
    text_ += '}';
  }

  const Field* const of_map_;  // nullptr: of a set
  std::vector<std::string_view> keys_;
  std::string text_;
};

// Sorts in Kubernetes' order.
void sort_by_element(auto& all) {
  auto is_before = [](const auto& a, const auto& b) { return a.element < b.element; };
  if (!std::is_sorted(all.begin(), all.end(), is_before)) std::sort(all.begin(), all.end(), is_before);  // as maps mostly are
}

// Calls each(prefix, element without prefix, place, value) for the children of a value; for none of a leaf, or of a value that
// does not match the schema. The texts are valid during the call.
template <typename F>
void for_each_child(const Place& place, const json::value& value, F&& each, Nulls nulls = Nulls::no) {
  const json::object* object = value.if_object();
  const json::array* items = value.if_array();
  if (place.kind == Place::Kind::object && object) {
    const Field* last = nullptr;
    for (const auto& pair : *object) {
      const Field* field = place.type->field_after(last, pair.key());
      if (field) last = field;
      if (field && (nulls == Nulls::yes || !pair.value().is_null()))
        each("f:", pair.key(), Place::of_field(*field), pair.value());
    }
  } else if (place.kind == Place::Kind::map && object) {
    for (const auto& pair : *object) each("f:", pair.key(), Place::of_item(*place.field), pair.value());
  } else if (is_list(place) && items) {
    Place inner = place.kind == Place::Kind::list_map ? Place::of_item(*place.field) : Place{};
    ItemElements elements(place);
    for (const json::value& item : *items) each("", elements.of(item), inner, item);
  }
}

// True for an object that is always written and contains nothing but such objects. The client need not have sent it, and its
// owner would own everything that others add to it.
bool is_implied(const Place& place, const json::value& value) {
  if (place.kind != Place::Kind::object || !place.field || !place.field->always || !value.is_object()) return false;
  bool said = false;
  for_each_child(place, value, [&](std::string_view, std::string_view, const Place& child, const json::value& at) {
    said = said || !is_implied(child, at);
  });
  return !said;
}

// The member of an object, or of what should be one.
const json::value* member_of(const json::value& value, std::string_view name) {
  const json::object* object = value.if_object();
  return object ? object->if_contains(name) : nullptr;
}

// An item of a list, with its element.
struct ListItem {
  std::pmr::string element;
  const json::value* value;
};

// The items of two versions of a list that have one element. Several in one version are one item that is repeated.
struct SameItems {
  std::span<const ListItem> before, now;
  bool equal() const {
    return std::ranges::equal(before, now, [](const ListItem& a, const ListItem& b) { return same_json(*a.value, *b.value); });
  }
};

// Calls each(element, place of an item, SameItems) for every element of two versions of a list, in order.
template <typename F>
void for_each_element(const Place& place, const json::value& before, const json::value& now, F&& each) {
  NoteMemory<2048> memory;
  ItemElements elements(place);
  auto sorted = [&](const json::value& list) {
    std::pmr::vector<ListItem> items(&memory.resource);
    const json::array* array = list.if_array();
    if (!array) return items;
    items.reserve(array->size());
    for (const json::value& item : *array) items.push_back({std::pmr::string(elements.of(item), &memory.resource), &item});
    std::sort(items.begin(), items.end(), [](const ListItem& a, const ListItem& b) {
      return a.element != b.element ? a.element < b.element : a.value < b.value;  // both are in one list: in its order
    });
    return items;
  };
  const std::pmr::vector<ListItem> olds = sorted(before), news = sorted(now);
  const Place inner = place.kind == Place::Kind::list_map ? Place::of_item(*place.field) : Place{};
  auto old = olds.begin(), fresh = news.begin();
  while (old != olds.end() || fresh != news.end()) {
    bool is_gone = fresh == news.end() || (old != olds.end() && old->element < fresh->element);
    const std::string_view element = is_gone ? old->element : fresh->element;
    auto other = [&](const ListItem& item) { return item.element != element; };
    auto old_end = std::find_if(old, olds.end(), other), fresh_end = std::find_if(fresh, news.end(), other);
    each(element, inner, SameItems{{old, old_end}, {fresh, fresh_end}});
    old = old_end;
    fresh = fresh_end;
  }
}

// A set that is made one element after the other, in any order. Only elements that are in it get a name.
class GrowingSet {
 public:
  void add(std::string_view prefix, std::string_view name, json::object fields) {
    std::pmr::string element(&memory_.resource);
    element.reserve(prefix.size() + name.size());
    element.append(prefix).append(name);
    parts_.push_back({std::move(element), std::move(fields)});
  }
  json::object take(json::storage_ptr storage) {
    sort_by_element(parts_);
    json::object set(std::move(storage));
    set.reserve(parts_.size());
    for (Part& part : parts_) set.insert_or_assign(part.element, std::move(part.fields));
    return set;
  }

 private:
  struct Part {
    std::pmr::string element;
    json::object fields;
  };
  NoteMemory<1024> memory_;
  std::pmr::vector<Part> parts_{&memory_.resource};
};

// What has members and may be left out: that it is there says something, too.
bool may_be_absent(const Place& place) { return place.kind != Place::Kind::object || (place.field && !place.field->always); }

// All fields of a whole object, as every create records them. Temporary notes use one block, because there are hundreds.
class Members {
 public:
  Members(Dots dots, json::storage_ptr storage) : dots_(dots), storage_(std::move(storage)) {}

  // `itself`: a node with members is a member too.
  json::object of(const Place& place, const json::value& value, bool itself) {
    json::object set(storage_);
    if (place.kind == Place::Kind::leaf) return set;
    std::pmr::vector<Note> notes(&memory_.resource);
    auto note = [&](std::string_view prefix, std::string_view name, const Place& child, const json::value& at) {
      if (dots_ == Dots::yes && is_implied(child, at)) return;
      if (dots_ == Dots::no && is_list(child) && at.is_array() && at.get_array().empty()) return;
      if (notes.empty()) notes.reserve(value.is_object() ? value.get_object().size() : value.get_array().size());
      std::pmr::string& element = notes.emplace_back(std::pmr::string(&memory_.resource), child, &at).element;
      element.reserve(prefix.size() + name.size());
      element.append(prefix).append(name);
    };
    for_each_child(place, value, note, dots_ == Dots::no ? Nulls::yes : Nulls::no);
    if (notes.empty()) return set;
    sort_by_element(notes);
    set.reserve(notes.size() + 1);
    if (itself || (dots_ == Dots::yes && may_be_absent(place))) set["."].emplace_object();
    bool inner = place.kind != Place::Kind::object;
    for (size_t i = 0; i < notes.size(); ++i) {
      const Note& note = notes[i];
      bool repeats = i > 0 && notes[i - 1].element == note.element;
      bool repeated = i + 1 < notes.size() && notes[i + 1].element == note.element;
      if (repeats || repeated) set.insert_or_assign(note.element, json::object());  // items that are the same one: as a whole
      else set.insert_or_assign(note.element, of(note.place, *note.value, inner));
    }
    return set;
  }

 private:
  struct Note {
    std::pmr::string element;
    Place place;
    const json::value* value;
  };
  const Dots dots_;
  const json::storage_ptr storage_;  // of the set
  NoteMemory<16 << 10> memory_;
};

// All fields of a part that is only in one of two states, with itself if `itself`. Never inlined: whoever compares parts of parts
// must not have its memory on the stack at each level.
[[gnu::noinline]] json::object all_fields(const Place& place, const json::value& value, bool itself, json::storage_ptr storage) {
  return Members(Dots::yes, std::move(storage)).of(place, value, itself);
}

bool is_in_order(const json::object& set) {
  std::string_view last;
  for (const auto& pair : set) {
    std::string_view element = pair.key();  // "." is before "f:", "k:" and "v:"
    if (element < last || (pair.value().is_object() && !is_in_order(pair.value().get_object()))) return false;
    last = element;
  }
  return true;
}

}  // namespace

Place Place::of_field(const Field& field) {
  if (field.shape == Shape::list && field.list == ListKind::map) return {Kind::list_map, nullptr, &field};
  if (field.shape == Shape::list && field.list == ListKind::set) return {Kind::list_set, nullptr, &field};
  if (field.shape == Shape::list || field.atomic) return {};
  if (field.shape == Shape::map) return {Kind::map, nullptr, &field};
  if (field.form != Form::object || (field.type().atomic && !field.granular)) return {};
  return {Kind::object, &field.type(), &field};
}

Place Place::of_item(const Field& container) {
  return container.form == Form::object && !container.type().atomic ? of(container.type()) : Place{};
}

bool is_field_set(const json::object& fields) {
  return std::all_of(fields.begin(), fields.end(), [](const auto& pair) {
    std::string_view element = pair.key();
    bool known = element == "." || element.starts_with("f:") || element.starts_with("k:") || element.starts_with("v:") ||
                 element.starts_with("i:");
    return known && pair.value().is_object() && is_field_set(pair.value().get_object());
  });
}

void IndexedValue::Destroy::operator()(IndexedValue* value) const { std::destroy_at(value); }

IndexedValue* IndexedValue::add(std::string_view element, const Place& place, const json::value& value) {
  void* at = memory_.allocate(sizeof(IndexedValue), alignof(IndexedValue));
  std::unique_ptr<IndexedValue, Destroy> child(new (at) IndexedValue(place, value, memory_));
  return children_.try_emplace(std::pmr::string(element, &memory_), std::move(child)).first->second.get();
}

void IndexedValue::index_list() {
  if (std::exchange(listed_, true)) return;
  for_each_child(place_, value_, [&](std::string_view, std::string_view element, const Place& inner, const json::value& item) {
    add(element, inner, item);  // of duplicates the first stays
  });
}

bool IndexedValue::has_children() {
  if (has_children_) return *has_children_;
  bool any = false;
  for_each_child(place_, value_, [&](auto&&...) { any = true; });
  has_children_ = any;
  return any;
}

IndexedValue* IndexedValue::child(std::string_view element) {
  if (place_.kind == Place::Kind::leaf || element.size() < 2) return nullptr;
  if (is_list(place_)) index_list();
  auto found = children_.find(element);
  if (found != children_.end()) return found->second.get();
  const json::object* object = is_list(place_) ? nullptr : value_.if_object();
  if (!object || !element.starts_with("f:")) return nullptr;
  std::string_view name = element.substr(2);
  const json::value* at = object->if_contains(name);
  const Field* field = place_.kind == Place::Kind::map ? place_.field : place_.type->field(name);
  if (!at || !field) return nullptr;
  Place inner = place_.kind == Place::Kind::map ? Place::of_item(*field) : Place::of_field(*field);
  if (at->is_null() && place_.kind == Place::Kind::object && inner.kind != Place::Kind::leaf) return nullptr;
  return add(element, inner, *at);
}

bool IndexedValue::equals(const IndexedValue* other) {
  if (!equals_) equals_ = other && same_json(value_, other->value_);
  return *equals_;
}

json::object fields_of(const Place& place, const json::value& value, Dots dots) {
  return Members(dots, value.storage()).of(place, value, false);
}

// Repeated items are compared, added and removed together, as one leaf. Source: structured-merge-diff, typed/compare.go,
// visitListItems.
json::object changed_fields(const Place& place, const json::value& before, const json::value& now) {
  GrowingSet set;
  auto compare = [&](std::string_view prefix, std::string_view name, const Place& child, const json::value* old,
                     const json::value& value) {
    if (old ? same_json(*old, value) : is_implied(child, value)) return;
    bool whole = !old || child.kind == Place::Kind::leaf;
    json::object inner =
        whole ? all_fields(child, value, place.kind != Place::Kind::object, now.storage()) : changed_fields(child, *old, value);
    if (whole || !inner.empty()) set.add(prefix, name, std::move(inner));
  };
  if (is_list(place)) {
    for_each_element(place, before, now, [&](std::string_view element, const Place& item, const SameItems& same) {
      bool is_leaf = same.now.size() > 1, was_leaf = same.before.size() > 1;
      if (same.now.size() == 1)
        compare("", element, item, same.before.size() == 1 ? same.before[0].value : nullptr, *same.now[0].value);
      else if (is_leaf && !(was_leaf && same.equal())) set.add("", element, json::object(now.storage()));
    });
  } else {
    for_each_child(place, now, [&](std::string_view prefix, std::string_view name, const Place& child, const json::value& value) {
      compare(prefix, name, child, member_of(before, name), value);
    });
  }
  return set.take(now.storage());
}

json::object removed_fields(const Place& place, const json::value& before, const json::value& now) {
  GrowingSet set;
  if (is_list(place)) {
    for_each_element(place, before, now, [&](std::string_view element, const Place& item, const SameItems& same) {
      bool is_leaf = same.now.size() > 1, was_leaf = same.before.size() > 1;
      if (same.before.empty() || (was_leaf && is_leaf)) return;
      if (was_leaf) return set.add("", element, json::object(now.storage()));
      const json::value& value = *same.before[0].value;
      if (same.now.size() != 1) return set.add("", element, all_fields(item, value, true, now.storage()));
      json::object inner = removed_fields(item, value, *same.now[0].value);
      if (!inner.empty()) set.add("", element, std::move(inner));
    });
    return set.take(now.storage());
  }
  for_each_child(place, before,
                 [&](std::string_view prefix, std::string_view name, const Place& child, const json::value& value) {
                   const json::value* left = member_of(now, name);
                   if (!left) return set.add(prefix, name, all_fields(child, value, true, now.storage()));
                   if (child.kind == Place::Kind::leaf || same_json(*left, value)) return;
                   json::object inner = removed_fields(child, value, *left);
                   if (!inner.empty()) set.add(prefix, name, std::move(inner));
                 });
  return set.take(now.storage());
}

json::object union_of(json::object left, const json::object& right) {
  for (const auto& pair : right) {
    json::value* found = left.if_contains(pair.key());
    if (!found) {
      left[pair.key()] = pair.value();
      continue;
    }
    if (!found->is_object() || !pair.value().is_object()) continue;
    bool member = found->get_object().empty() || pair.value().get_object().empty();
    json::object both = union_of(std::move(found->get_object()), pair.value().get_object());
    if (member && !both.empty()) both["."].emplace_object();
    left[pair.key()] = std::move(both);
  }
  return left;
}

void subtract(json::object& from, const json::object& what) {
  if (what.empty()) return;
  bool any = false;
  for (auto& pair : from) {
    const json::value* other = what.if_contains(pair.key());
    if (!other) continue;
    bool is_gone = true;
    if (pair.value().is_object() && other->is_object() && pair.key() != ".") {
      json::object& inner = pair.value().get_object();
      const json::object& gone = other->get_object();
      const bool stays = is_member(inner) && !is_member(gone);
      subtract(inner, gone);
      if (!stays) drop(inner, ".");
      const bool has_children = inner.size() > (stays && inner.contains(".") ? 1 : 0);
      if (!has_children && stays) inner.clear();  // a member without children is empty
      is_gone = !has_children && !stays;
    }
    if (!is_gone) continue;
    pair.value() = nullptr;  // a mark: what is in both sets and is no set goes anyway
    any = true;
  }
  if (any) erase_members_if(from, [&](const auto& pair) { return pair.value().is_null() && what.contains(pair.key()); });
}

json::object difference_of(const json::object& left, const json::object& right) {
  json::object out(left, left.storage());
  subtract(out, right);
  return out;
}

json::object in_order(json::object set) {
  if (is_in_order(set)) return set;
  std::vector<std::string> elements;
  for (const auto& pair : set) elements.emplace_back(pair.key());
  std::sort(elements.begin(), elements.end());
  json::object out(set.storage());
  out.reserve(set.size());
  for (const std::string& element : elements) {
    json::value& inner = set[element];
    if (inner.is_object()) out.insert_or_assign(element, in_order(std::move(inner.get_object())));
    else out.insert_or_assign(element, std::move(inner));
  }
  return out;
}

std::string step_of(std::string_view element) {
  std::string_view rest = element.substr(2);
  if (element[0] == 'f') return "." + std::string(rest);
  if (element[0] == 'v') return "[=" + std::string(rest) + "]";
  auto keys = parse_json(rest);
  if (!keys || !keys->is_object()) return "[" + std::string(rest) + "]";
  std::string list;
  for (const auto& pair : keys->get_object())
    list += (list.empty() ? "" : ",") + std::string(pair.key()) + "=" + to_text(pair.value());
  return "[" + list + "]";
}

std::string ElementPath::text() const {
  std::string before = parent ? parent->text() : std::string();
  return shortened_path(before + step_of(std::string(prefix).append(name)));
}

std::string find_duplicate(const Place& place, const json::value& value, const ElementPath* path) {
  if (place.kind == Place::Kind::leaf) return {};
  NoteMemory<512> memory;
  std::pmr::set<std::pmr::string> seen(&memory.resource);
  std::string found;
  for_each_child(place, value, [&](std::string_view prefix, std::string_view name, const Place& inner, const json::value& at) {
    if (!found.empty()) return;
    if (is_list(place) && !seen.emplace(name).second)
      found = (path ? path->text() : "") + ": duplicate entries for key " + shortened_path(step_of(name));
    if (!found.empty() || inner.kind == Place::Kind::leaf) return;
    ElementPath here{path, prefix, name};
    found = find_duplicate(inner, at, &here);
  });
  return found;
}

void strip_unowned(json::object& fields) {
  drop(fields, "f:apiVersion");
  drop(fields, "f:kind");
  json::value* metadata = fields.if_contains("f:metadata");
  if (!metadata || !metadata->is_object()) return;
  json::object& inner = metadata->get_object();
  for (std::string_view name : {"f:name", "f:namespace", "f:uid", "f:resourceVersion", "f:generation", "f:creationTimestamp",
                                "f:selfLink", "f:managedFields", "f:deletionTimestamp", "f:deletionGracePeriodSeconds"}) {
    drop(inner, name);
  }
  if (inner.empty()) drop(fields, "f:metadata");
}

namespace {

// Both lists in one: what is applied in the order in which it is applied, each item laid over the live one that is the same; what
// only the live list has stays before the next item that both have. Source: structured-merge-diff, merge.go, visitListItems.
json::array laid_over_list(const Place& place, json::array live, const json::array& applied) {
  const Place inner = place.kind == Place::Kind::list_map ? Place::of_item(*place.field) : Place{};
  auto elements_of = [&](const json::array& list) {
    std::vector<std::string> elements;
    elements.reserve(list.size());
    ItemElements of_items(place);
    for (const json::value& item : list) elements.emplace_back(of_items.of(item));
    return elements;
  };
  constexpr size_t kSeveral = size_t(-1);  // which of them is meant, nobody knows: they go
  std::vector<std::string> ours = elements_of(live), theirs = elements_of(applied);
  std::map<std::string_view, size_t> at_live, at_applied;
  for (size_t i = 0; i < ours.size(); ++i)
    if (auto [found, fresh] = at_live.emplace(ours[i], i); !fresh) found->second = kSeveral;
  std::vector<std::string_view> shared;
  for (size_t i = 0; i < theirs.size(); ++i) {
    at_applied.emplace(theirs[i], i);
    if (at_live.contains(theirs[i])) shared.push_back(theirs[i]);
  }
  json::array out(live.storage());
  out.reserve(std::max(live.size(), applied.size()));
  size_t l = 0, a = 0, next = 0;  // of the live list, the applied one, the shared items
  auto take_applied = [&] {
    if (next < shared.size() && shared[next] == theirs[a]) ++next;
    auto found = at_live.find(theirs[a]);
    bool merges = found != at_live.end() && found->second != kSeveral;
    out.push_back(merges ? laid_over(inner, std::move(live[found->second]), applied[a]) : applied[a]);
    ++a;
  };
  while (l < ours.size() || a < theirs.size()) {
    bool ours_alone = l < ours.size() && !at_applied.contains(ours[l]);
    bool same = l < ours.size() && a < theirs.size() && ours[l] == theirs[a];
    if (same) {
      take_applied(), ++l;
    } else if (ours_alone) {
      out.push_back(std::move(live[l++]));
    } else if (l < ours.size() && (a == theirs.size() || (next < shared.size() && shared[next] != ours[l]))) {
      ++l;  // it has its turn elsewhere
    } else {
      if (l < ours.size() && at_applied.at(ours[l]) < a) ++l;  // one of several that had their turn
      take_applied();
    }
  }
  return out;
}

}  // namespace

json::value laid_over(const Place& place, json::value live, const json::value& applied) {
  bool empty = live.is_object() ? live.get_object().empty() : !live.is_array() || live.get_array().empty();
  if (applied.is_null() && place.kind != Place::Kind::leaf && !empty) return live;
  bool fits = (live.is_object() && applied.is_object()) || (live.is_array() && applied.is_array());
  if (place.kind == Place::Kind::leaf || !fits) return json::value(applied, live.storage());
  if (live.is_array()) return laid_over_list(place, std::move(live.get_array()), applied.get_array());
  auto lay = [&](std::string_view, std::string_view name, const Place& inner, const json::value& value) {
    if (json::value* old = live.get_object().if_contains(name)) {
      json::value merged = laid_over(inner, std::move(*old), value);
      *old = std::move(merged);
    } else {
      live.get_object()[name] = value;
    }
  };
  for_each_child(place, applied, lay, Nulls::yes);
  return live;
}

json::value only(IndexedValue& value, const json::object& fields) {
  if (fields.empty() || value.place().kind == Place::Kind::leaf) return value.value();
  const Place& place = value.place();
  json::value out = value.value().is_array() ? json::value(json::array_kind) : json::value(json::object_kind);
  for (const auto& pair : fields) {
    IndexedValue* child = pair.value().is_object() ? value.child(pair.key()) : nullptr;
    if (!child) continue;
    json::value kept = only(*child, pair.value().get_object());
    if (!out.is_array()) {
      out.get_object()[std::string_view(pair.key()).substr(2)] = std::move(kept);
      continue;
    }
    const json::object* item = child->value().if_object();
    if (place.kind == Place::Kind::list_map && kept.is_object() && item) {
      for (std::string_view key : place.field->list_keys()) {
        if (const json::value* named = item->if_contains(key)) kept.get_object()[key] = *named;
      }
    }
    out.get_array().push_back(std::move(kept));
  }
  return out;
}

bool prune(const Place& place, json::value& value, const json::object& before, const json::object& now,
           const json::object& others) {
  std::set<const json::value*> gone;
  std::string element;
  bool removes = false;
  for_each_child(place, value, [&](std::string_view prefix, std::string_view name, const Place& inner, const json::value& at) {
    element.assign(prefix).append(name);
    if (!before.contains(element)) return;
    const bool is_field = place.kind == Place::Kind::object;
    const bool is_held = others.contains(element) && (is_field || is_member(subtree(others, element)));
    if (!now.contains(element) && !is_held) {
      gone.insert(&at);
      return;
    }
    const json::object &held = subtree(before, element), &said = subtree(now, element), &of_others = subtree(others, element);
    removes |= prune(inner, const_cast<json::value&>(at), held, said, of_others);
  });
  if (gone.empty()) return removes;
  if (json::object* object = value.if_object()) {
    erase_members_if(*object, [&](const auto& member) { return gone.contains(&member.value()); });
    return true;
  }
  json::array kept(value.storage());
  for (json::value& item : value.get_array())
    if (!gone.contains(&item)) kept.push_back(std::move(item));
  value = std::move(kept);
  return true;
}

}  // namespace coracle::schema
