// SPDX-License-Identifier: Apache-2.0
// Field sets: which fields of an object somebody set, as the tree of path elements that metadata.managedFields holds
// (FieldsV1): f:<field or map key>, k:<keys of a list item, as JSON>, v:<item of a set, as JSON>. A node that is empty, or
// has ".", is itself a member. What is atomic to the schema is one leaf. Sets are made in the order in which Kubernetes writes
// them, and lie in the memory of the value that they were made from. Pure.
// Source: structured-merge-diff, fieldpath; Kubernetes "Server-Side Apply".
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/schema/type.h"

namespace coracle::schema {

// Without moving the others: Boost's erase puts the last in the gap.
inline void drop(json::object& object, std::string_view name) {
  auto found = object.find(name);
  if (found != object.end()) object.stable_erase(found);
}

// Whether every element of a set, however deep, is one of the three kinds or ".", and holds a set.
bool is_field_set(const json::object& fields);

// What stands at a place of an object, as far as merging goes.
struct Place {
  enum class Kind : uint8_t { leaf, object, map, list_map, list_set };
  Kind kind = Kind::leaf;
  const Type* type = nullptr;    // object
  const Field* field = nullptr;  // map, list_map, list_set: of the container; object: that it is, nullptr for an item

  static Place of(const Type& type) { return {Kind::object, &type, nullptr}; }
  static Place of_field(const Field& field);
  static Place of_item(const Field& container);
};

struct Child {
  std::string element;  // "f:spec"
  Place place;
  const json::value* value;
};

enum class Nulls { no, yes };  // whether fields of an object that are null count

// The children of a value; none for a leaf, or for a value of another type than the schema says.
std::vector<Child> children_of(const Place& place, const json::value& value, Nulls nulls = Nulls::no);

// A value whose children are looked up by element, by one asker after the other: lists are searched through once. Borrows the
// value, which must stay as it is.
class IndexedValue {
 public:
  IndexedValue(const Place& place, const json::value& value) : place_(place), value_(value) {}
  const json::value& value() const { return value_; }
  const Place& place() const { return place_; }
  bool has_children();
  IndexedValue* child(std::string_view element);  // nullptr: there is none
  // Whether `other`, always the same one, is equal; compared once.
  bool equals(const IndexedValue* other);

 private:
  void index_list();

  const Place place_;
  const json::value& value_;
  std::map<std::string, std::unique_ptr<IndexedValue>, std::less<>> children_;
  bool listed_ = false;
  std::optional<bool> has_children_, equals_;
};

// yes: as writers other than apply record: maps and lists that are there are members themselves, empty objects that are always
// written are none. no: as apply does: what it says is null is a member, too.
enum class Dots { no, yes };
json::object fields_of(const Place& place, const json::value& value, Dots dots);

// What `now` has that `before` has not, or has otherwise; and what is gone.
json::object changed_fields(const Place& place, const json::value& before, const json::value& now);
json::object removed_fields(const Place& place, const json::value& before, const json::value& now);

json::object union_of(json::object left, const json::object& right);
json::object difference_of(const json::object& left, const json::object& right);

// As Kubernetes writes a set: "." first, then by element.
json::object in_order(json::object set);
// An element as people read it in a path: ".spec", "[name=\"web\"]", "[=\"example.com/finalizer\"]".
std::string step_of(std::string_view element);

// apiVersion, kind, names, versions and times belong to nobody.
void strip_unowned(json::object& fields);

// `live` with `applied` laid over it: lists and maps merge as the schema says. A leaf that is applied as null becomes null, for
// the default to take its place; a list or map that is applied as null leaves what is in it. Source: structured-merge-diff,
// merge.go.
json::value laid_over(const Place& place, json::value live, const json::value& applied);
// What of `value` is in `fields`: with all of what is a member as a whole, and the keys of list items. Members stand in any
// order.
json::value only(IndexedValue& value, const json::object& fields);
// Takes out of `value` what is in `before` but neither in `now` nor in `others`, the union of what others hold.
void prune(const Place& place, json::value& value, const json::object& before, const json::object& now,
           const json::object& others);

}  // namespace coracle::schema
