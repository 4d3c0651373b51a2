// SPDX-License-Identifier: Apache-2.0
// Object: one committed state of one API object, immutable, shared by pointer between the store, API reads, watches,
// informers and controllers (decision 2). It is its canonical JSON text, the metadata that everybody asks for, and its
// parsed form, made only when somebody looks inside.
//
// The parsed form takes several times the memory of the text, and what stays for long takes more than it is long when it lies
// between what comes and goes. Caches therefore hold objects at rest, in one piece of memory each, and hand them out awake:
//   RestingObject, in a cache ──awake()──▶ one Object for all who look at the same time ──json()──▶ parsed once
//                            ◀──at_rest()──
// It goes when the last of them lets go of it; what was looked at lately is kept, some megabytes of it (kKeptParsedBytes). Who
// hears of a write while it happens is spared the parsing: what was written is at hand, and goes along (with_revision).
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

constexpr size_t kKeptParsedBytes = 4 << 20;  // of the process, about
// Lets go of all of it that nobody holds: for the memory, when nobody is going to look again soon. Thread-safe.
void forget_parsed();

// What the body of a request is parsed into: freed at once, and fit to become an object's parsed form (Object::with_revision).
json::storage_ptr body_memory(std::string_view text);

// What an object is, in one piece of memory, among others that stay (sys::SlabPool). Texts of kinds that are many and hardly ever
// read are packed. Views are good as long as it is held.
class RestingObject {
  struct Private {
    explicit Private() = default;
  };

 public:
  // From canonical JSON text (what text() returned). Parses nothing. Errors: internal when the text is damaged.
  static Result<RestingPtr> from_text(const Kind& kind, KeyView key, Revision revision, std::string_view uid,
                                      std::string_view text);

  // Where objects of this kind rest.
  static sys::SlabPool& pool(const Kind& kind);

  // For looking inside. Thread-safe.
  ObjectPtr awake() const;

  const Kind& kind() const { return *kind_; }
  KeyView key() const { return {ns(), name()}; }
  std::string_view ns() const { return at(0, ns_size_); }
  std::string_view name() const { return at(ns_size_, name_size_); }
  std::string_view uid() const { return at(ns_size_ + name_size_, uid_size_); }
  Revision revision() const { return revision_; }
  // Canonical JSON. One that is packed is unpacked into `room`, which stays empty otherwise.
  std::string_view text(std::string& room) const;
  size_t text_size() const { return text_size_; }
  size_t memory_size() const { return sizeof(RestingObject) + ns_size_ + name_size_ + uid_size_ + kept().size(); }
  bool mentions(std::string_view word) const;  // as Object's

  // What it is made of.
  struct Parts {
    const Kind* kind = nullptr;
    KeyView key;
    std::string_view uid;
    Revision revision = 0;
    std::string_view text[3];  // one after the other
    size_t revision_at = 0;    // where in the text the revision's digits stand; 0 = not known
    size_t revision_size = 0;
    size_t text_size = 0;  // when it is packed: of what it is unpacked to
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
  std::string_view head() const { return at(0, ns_size_ + name_size_ + uid_size_); }  // its names, which its text has, too
  std::string_view kept() const { return at(ns_size_ + name_size_ + uid_size_, is_packed() ? packed_size_ : text_size_); }
  std::string_view at(size_t from, size_t size) const { return {reinterpret_cast<const char*>(this + 1) + from, size}; }

  mutable std::atomic<uint32_t> holders_ = 0;
  const uint32_t ns_size_, name_size_, uid_size_, text_size_, packed_size_;
  const uint32_t revision_at_, revision_size_;
  const Kind* const kind_;
  const Revision revision_;
  mutable const Object* awake_ = nullptr;  // guarded, see object.cc
};

// <const Object>, since a weak_ptr<const Object> that is made of a weak_ptr<Object> holds the object for a moment: who does so
// under a lock may be the last to let it go, and then ends it there.
class Object : public std::enable_shared_from_this<const Object> {
  struct Private {
    explicit Private() = default;
  };

 public:
  Object(Private, RestingPtr resting, std::string text);  // `text`: of one that is packed
  ~Object();

  // `body` is a complete object: apiVersion, kind, metadata.name (and namespace, uid, resourceVersion once committed).
  // Errors: invalid when metadata is malformed.
  static Result<ObjectPtr> make(const Kind& kind, const json::value& body);

  // The same object with another revision in metadata.resourceVersion (which the text must have a place for). `body`: what this
  // one was made from, if nobody needs it any more: it becomes the new one's parsed form.
  ObjectPtr with_revision(Revision revision, json::value body = {}) const;
  // The same, for keeping: whoever wants to look inside asks it for awake() and holds on to that.
  RestingPtr at_rest() const { return resting_; }
  // Whether `stored` says the same, its revision aside. For an object from make() only.
  bool same_as(const Object& stored) const;

  const Kind& kind() const { return resting_->kind(); }
  const Key& key() const { return key_; }
  const std::string& name() const { return key_.name; }
  const std::string& ns() const { return key_.ns; }
  const std::string& uid() const { return uid_; }
  Revision revision() const { return resting_->revision(); }  // 0 before commit
  // Canonical JSON, with resourceVersion.
  std::string_view text() const { return resting_->is_packed() ? std::string_view(text_) : resting_->kept(); }

  // Whether the text holds `word`, quoted: without it there is no such member. Does not parse.
  bool mentions(std::string_view word) const;

  // The parsed form. Thread-safe; parsed on first use. The reference is good as long as this object is held.
  const json::value& json() const;

  // Conveniences over json().
  std::string_view label(std::string_view name) const;       // "" when absent
  std::string_view annotation(std::string_view name) const;  // "" when absent
  const json::object& labels() const;
  bool deleting() const;  // metadata.deletionTimestamp is set
  std::vector<OwnerReference> owners() const;
  std::optional<OwnerReference> controller() const;  // the owner with controller: true

 private:
  friend class RestingObject;
  void take_over(json::value parsed) const;
  bool can_be_found() const;

  const RestingPtr resting_;
  const Key key_;
  const std::string uid_;
  const std::string text_;  // when it rests packed
  mutable std::once_flag parse_once_;
  mutable json::value json_;
};

// The metadata of a patch that is meant for just this object as it is now, its uid and revision: a conflict when it was changed
// or made anew in the meantime. Source: Kubernetes API concepts, "Updates to existing resources".
json::object precondition_metadata(const Object& object);

// Objects at rest by their keys, of which there is no second copy.
struct ByKey {
  using is_transparent = void;
  static KeyView key(const RestingPtr& object) { return object->key(); }
  static KeyView key(KeyView key) { return key; }
  bool operator()(const auto& a, const auto& b) const { return key(a) < key(b); }
};
using RestingSet = std::set<RestingPtr, ByKey, sys::SlabAllocator<RestingPtr>>;

}  // namespace coracle
