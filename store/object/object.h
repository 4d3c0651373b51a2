// SPDX-License-Identifier: Apache-2.0
// Object: one committed state of one API object, immutable, shared by pointer between the store, API reads, watches, informers
// and controllers. It consists of its canonical JSON text, frequently used metadata, and its parsed form, which is created on
// first use.
//
// The parsed form takes several times the memory of the text. Also, long-lived blocks between short-lived ones fragment the heap.
// Caches therefore hold RestingObjects, one block of memory each, and create Objects on demand:
//   RestingObject, in a cache ──awake()──▶ one Object for all concurrent users ──json()──▶ parsed once
//                            ◀──at_rest()──
// The Object is freed with its last user; recently used ones are kept, up to some megabytes (kKeptParsedBytes), and the last two
// that alone would need more. Receivers of a change avoid the parsing, because the written JSON is passed along (with_revision);
// so does the next change, because what was written takes the place of the state that it was made from among those kept.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/units.h"
#include "runtime/sys/slab_pool.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle {

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  bool block_owner_deletion = false;
};

constexpr size_t kKeptParsedBytes = 4 << 20;  // per process, approximate, without the large ones
// Frees kept Objects that have no other user, for idle times. Thread-safe.
void forget_parsed();

// Memory for parsing a request's body: freed at once, and suitable as an object's parsed form (Object::with_revision).
json::storage_ptr body_memory(std::string_view text);

// An object in one block of memory, in a pool for long-lived blocks (sys::SlabPool). The text of kinds with many, rarely read
// objects is compressed. Views are valid while the object is held.
class RestingObject {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Creates an object from canonical JSON text (from text()). Does not parse. Errors: internal if the text is damaged.
  static Result<RestingPtr> from_text(const Kind& kind, KeyView key, Revision revision, std::string_view uid,
                                      std::string_view text);

  // The pool for objects of this kind.
  static sys::SlabPool& pool(const Kind& kind);

  // The Object for reading the contents. Thread-safe.
  ObjectPtr awake() const;

  const Kind& kind() const { return *kind_; }
  KeyView key() const { return {ns(), name()}; }
  std::string_view ns() const { return at(0, ns_size_); }
  std::string_view name() const { return at(ns_size_, name_size_); }
  std::string_view uid() const { return at(ns_size_ + name_size_, uid_size_); }
  Revision revision() const { return revision_; }
  // Canonical JSON. Compressed text is unpacked into `buffer`; otherwise that stays empty.
  std::string_view text(std::string& buffer) const;
  size_t text_size() const { return text_size_; }
  size_t memory_size() const { return sizeof(RestingObject) + ns_size_ + name_size_ + uid_size_ + kept().size(); }
  bool mentions(std::string_view word) const;  // as Object's

  // The parts of an object.
  struct Parts {
    const Kind* kind = nullptr;
    KeyView key;
    std::string_view uid;
    Revision revision = 0;
    std::string_view text[3];  // concatenated
    size_t revision_at = 0;    // offset of the revision's digits in the text; 0: unknown
    size_t revision_size = 0;
    size_t text_size = 0;  // if packed: the unpacked size
  };
  RestingObject(Private, const Parts& parts);

 private:
  friend class Object;
  friend void intrusive_ptr_add_ref(const RestingObject* object) noexcept;
  friend void intrusive_ptr_release(const RestingObject* object) noexcept;
  static RestingPtr make(const Parts& parts);
  static RestingPtr make_packed(const Parts& parts, std::string_view whole_text);
  static size_t memory_size(const Parts& parts);
  bool is_packed() const { return packed_size_ > 0; }
  std::string_view head() const { return at(0, ns_size_ + name_size_ + uid_size_); }  // its names, which also occur in the text
  std::string_view kept() const { return at(ns_size_ + name_size_ + uid_size_, is_packed() ? packed_size_ : text_size_); }
  std::string_view at(size_t from, size_t size) const { return {reinterpret_cast<const char*>(this + 1) + from, size}; }

  mutable std::atomic<uint32_t> holders_ = 0;
  const uint32_t ns_size_, name_size_, uid_size_, text_size_, packed_size_;
  const uint32_t revision_at_, revision_size_;
  const Kind* const kind_;
  const Revision revision_;
  mutable const Object* awake_ = nullptr;  // guarded, see object.cc
};

// <const Object>: converting a weak_ptr<Object> to weak_ptr<const Object> holds the object for a moment. Under a lock, that could
// release the last reference and run the destructor there.
class Object : public std::enable_shared_from_this<const Object> {
  struct Private {
    explicit Private() = default;
  };

 public:
  Object(Private, RestingPtr resting, std::string text);  // `text`: the unpacked text of a packed one
  ~Object();

  // `body` is a complete object: apiVersion, kind, metadata.name (and namespace, uid, resourceVersion once committed). Errors:
  // invalid for malformed metadata.
  static Result<ObjectPtr> make(const Kind& kind, const json::value& body);

  // The same object with another revision in metadata.resourceVersion (for which the text must have space). `body`: the JSON from
  // which this object was made, if it is not needed any more: it becomes the new object's parsed form. `replaced`: the state
  // before, which nobody reads from now on: if it is kept parsed, the new object is kept instead.
  ObjectPtr with_revision(Revision revision, json::value body = {}, const Object* replaced = nullptr) const;
  // The same object for storing. To read the contents later, call awake() and keep the result.
  RestingPtr at_rest() const { return resting_; }
  // True if `stored` is equal except for the revision. Only for an object from make().
  bool same_as(const Object& stored) const;

  const Kind& kind() const { return resting_->kind(); }
  const Key& key() const { return key_; }
  const std::string& name() const { return key_.name; }
  const std::string& ns() const { return key_.ns; }
  const std::string& uid() const { return uid_; }
  Revision revision() const { return resting_->revision(); }  // 0 before commit
  // Canonical JSON, with resourceVersion.
  std::string_view text() const { return resting_->is_packed() ? std::string_view(text_) : resting_->kept(); }

  // True if the text contains `word` in quotes; if not, there is no such member. Does not parse.
  bool mentions(std::string_view word) const;

  // The parsed form. Thread-safe; parses on first use. The reference is valid while this object is held.
  const json::value& json() const;

  // Shortcuts for json(). An object whose text lacks what is asked for is not parsed, except for its labels.
  std::string_view label(std::string_view name) const;       // "" if absent
  std::string_view annotation(std::string_view name) const;  // "" if absent
  const json::object& labels() const;
  bool deleting() const;  // metadata.deletionTimestamp is set
  std::vector<OwnerReference> owners() const;
  std::optional<OwnerReference> controller() const;  // the owner with controller: true

 private:
  friend class RestingObject;
  size_t take_over(json::value parsed) const;
  bool can_be_found() const;
  bool may_have(std::string_view member) const { return is_parsed_.load(std::memory_order_acquire) || mentions(member); }

  const RestingPtr resting_;
  const Key key_;
  const std::string uid_;
  const std::string text_;  // if the RestingObject is packed
  mutable std::once_flag parse_once_;
  mutable json::value json_;
  mutable std::atomic<bool> is_parsed_ = false;
};

// A copy of its JSON to change, in memory of its own (body_memory). A plain copy would take the object's memory, and keep all of
// it for as long as the copy lives.
json::value changeable_copy(const Object& object);

// Metadata for a patch with this object's uid and revision as preconditions: the patch fails with conflict if the object has been
// changed or created again meanwhile. Source: Kubernetes API concepts, "Updates to existing resources".
json::object precondition_metadata(const Object& object);

// Objects at rest, sorted by the keys inside them.
struct ByKey {
  using is_transparent = void;
  static KeyView key(const RestingPtr& object) { return object->key(); }
  static KeyView key(KeyView key) { return key; }
  bool operator()(const auto& a, const auto& b) const { return key(a) < key(b); }
};
using RestingSet = std::set<RestingPtr, ByKey, sys::SlabAllocator<RestingPtr>>;

}  // namespace coracle
