// SPDX-License-Identifier: Apache-2.0
// Field sets: the fields of an object that a manager owns, as the tree of path elements in metadata.managedFields (FieldsV1):
// f:<field or map key>, k:<keys of a list item, as JSON>, v:<item of a set, as JSON>. A node is a member itself if it is empty or
// contains ".". An atomic value is one leaf. Sets are created in the order in which Kubernetes writes them, and use the memory
// resource of the value that they are created from; of two states, that of the present one. Pure.
// Source: structured-merge-diff, fieldpath; Kubernetes "Server-Side Apply".
#pragma once

#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/schema/type.h"

namespace coracle::schema {

// Keeps the order: Boost's erase moves the last member into the gap.
inline void drop(json::object& object, std::string_view name) {
  auto found = object.find(name);
  if (found != object.end()) object.stable_erase(found);
}

// Whether the node of a set is a member itself, and not only a way to its children.
inline bool is_member(const json::object& node) { return node.empty() || node.contains("."); }

// True if every element of a set, at any depth, is ".", or begins with f:, k:, v: or i:, and contains a set.
bool is_field_set(const json::object& fields);

// The schema of one place in an object, as merging needs it.
struct Place {
  enum class Kind : uint8_t { leaf, object, map, list_map, list_set };
  Kind kind = Kind::leaf;
  const Type* type = nullptr;    // object
  const Field* field = nullptr;  // map, list_map, list_set: of the container; object: its own field, nullptr for an item

  static Place of(const Type& type) { return {Kind::object, &type, nullptr}; }
  static Place of_field(const Field& field);
  static Place of_item(const Field& container);
};

enum class Nulls { no, yes };  // whether null fields of an object are included

// A place in an object as the elements on the way to it, the innermost last. Borrows them and its parent; becomes text only for a
// message.
struct ElementPath {
  const ElementPath* parent = nullptr;  // nullptr: the root
  std::string_view prefix, name;        // together the element
  std::string text() const;             // ".spec.containers[name=\"web\"]", shortened
};

// Says which list has two equal items, which is ambiguous in an applied configuration; "" if none has. `path`: of the value.
// Source: structured-merge-diff, typed (error text).
std::string find_duplicate(const Place& place, const json::value& value, const ElementPath* path = nullptr);

// A value whose children are looked up by element, repeatedly: each list is indexed once. Borrows the value, which must not
// change, and `memory`, of which the children take theirs: it is freed with that.
class IndexedValue {
 public:
  IndexedValue(const Place& place, const json::value& value, std::pmr::monotonic_buffer_resource& memory)
      : place_(place), value_(value), memory_(memory) {}
  const json::value& value() const { return value_; }
  const Place& place() const { return place_; }
  bool has_children();
  IndexedValue* child(std::string_view element);  // nullptr if there is none
  // True if `other` is equal. `other` must be the same in each call; the comparison is done once.
  bool equals(const IndexedValue* other);

 private:
  struct Destroy {  // but leave the memory
    void operator()(IndexedValue* value) const;
  };
  IndexedValue* add(std::string_view element, const Place& place, const json::value& value);
  void index_list();

  const Place place_;
  const json::value& value_;
  std::pmr::monotonic_buffer_resource& memory_;
  std::pmr::map<std::pmr::string, std::unique_ptr<IndexedValue, Destroy>, std::less<>> children_{&memory_};
  bool listed_ = false;
  std::optional<bool> has_children_, equals_;
};

// yes: as writers other than apply record: maps, lists and objects that are there and need not be are members themselves, empty
// objects that are always written are none. no: as apply does: what it says is null is a member, too, and an
// empty list that merges is none.
enum class Dots { no, yes };
json::object fields_of(const Place& place, const json::value& value, Dots dots);

// The fields of `now` that are new or different from `before`; and those that have been removed.
json::object changed_fields(const Place& place, const json::value& before, const json::value& now);
json::object removed_fields(const Place& place, const json::value& before, const json::value& now);

json::object union_of(json::object left, const json::object& right);
// Takes from a set, in place, the members of `what`: a member of `what` is not its children. Source: structured-merge-diff,
// fieldpath/set.go.
void subtract(json::object& from, const json::object& what);
json::object difference_of(const json::object& left, const json::object& right);

// Sorts a set in Kubernetes' order: "." first, then by element.
json::object in_order(json::object set);
// An element as shown in a path: ".spec", "[name=\"web\"]", "[=\"example.com/finalizer\"]".
std::string step_of(std::string_view element);

// Removes the fields that have no owner: apiVersion, kind, names, versions and times.
void strip_unowned(json::object& fields);

// Merges `applied` into `live`: lists and maps merge as in the schema. A leaf that is applied as null becomes null, so that its
// default is set; a list or map that is applied as null keeps its contents. Source: structured-merge-diff, merge.go.
json::value laid_over(const Place& place, json::value live, const json::value& applied);
// The part of `value` that is in `fields`: members with their whole contents, and the keys of list items. The order of members is
// unspecified.
json::value only(IndexedValue& value, const json::object& fields);
// Removes from `value` what is in `before` but neither in `now` nor in `others`, the union of the other managers' fields. A field
// stays for what others hold in it. An item of a list or map goes with that, unless they hold the item itself: its keys are not
// theirs. Returns whether it has removed anything. Source: structured-merge-diff, merge/update.go, addBackOwnedItems.
bool prune(const Place& place, json::value& value, const json::object& before, const json::object& now,
           const json::object& others);

}  // namespace coracle::schema
