// SPDX-License-Identifier: Apache-2.0
// Object: one committed state of one API object, immutable, shared by pointer between the store, API reads, watches,
// informers and controllers (decision 2). It holds its canonical JSON text, the metadata that everybody asks for, and its
// parsed form, made only when somebody looks inside.
//
// The parsed form takes several times the memory of the text. Caches therefore hold objects at rest, which nobody looks into, and
// hand them out awake:
//   a cache's at_rest() ──awake()──▶ one object for all who look at the same time ──json()──▶ parsed once
// It goes when the last of them lets go of it; what was looked at lately is kept, some megabytes of it (kKeptParsedBytes). Who
// hears of a write while it happens is spared the parsing: what was written is at hand, and goes along (with_revision).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/units.h"
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

class Object : public std::enable_shared_from_this<Object> {
  struct Private {
    explicit Private() = default;
  };
  struct Facts;

 public:
  Object(Private, std::shared_ptr<const Facts> facts, bool resting) : facts_(std::move(facts)), resting_(resting) {}

  // `body` is a complete object: apiVersion, kind, metadata.name (and namespace, uid, resourceVersion once committed).
  // Errors: invalid when metadata is malformed.
  static Result<ObjectPtr> make(const Kind& kind, const json::value& body);
  // From canonical JSON text (what text() returned). Parses lazily. Errors: internal when the text is damaged.
  static Result<ObjectPtr> from_text(const Kind& kind, Key key, Revision revision, std::string uid, std::string text);

  // The same object with another revision in metadata.resourceVersion (which the text must have a place for). `body`: what this
  // one was made from, if nobody needs it any more: it becomes the new one's parsed form.
  ObjectPtr with_revision(Revision revision, json::value body = {}) const;
  // The same, for keeping, one for all who keep it: whoever wants to look inside asks it for awake() and holds on to that.
  ObjectPtr at_rest() const;
  // The same, for looking inside. Thread-safe.
  ObjectPtr awake() const;
  // Whether `stored` says the same, its revision aside. For an object from make() only.
  bool same_as(const Object& stored) const;

  const Kind& kind() const;
  const Key& key() const;
  const std::string& name() const;
  const std::string& ns() const;
  const std::string& uid() const;
  Revision revision() const;        // 0 before commit
  const std::string& text() const;  // canonical JSON, with resourceVersion

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
  struct Facts {  // shared by all objects that are the same
    const Kind* kind = nullptr;
    Key key;
    std::string uid;
    Revision revision = 0;
    std::string text;
    size_t revision_at = 0;  // where in the text the revision's digits stand; 0 = not known
    size_t revision_size = 0;
    mutable std::weak_ptr<const Object> awake, resting;  // guarded, see object.cc
  };
  // Not make_shared: facts remember who is awake, and would keep its memory for as long as they live.
  static ObjectPtr wrap(std::shared_ptr<const Facts> facts) {
    return std::shared_ptr<const Object>(new Object(Private(), std::move(facts), false));
  }
  void take_over(json::value parsed) const;
  bool can_be_found() const;

  std::shared_ptr<const Facts> facts_;
  const bool resting_;
  mutable std::once_flag parse_once_;
  mutable json::value json_;
};

inline const Kind& Object::kind() const { return *facts_->kind; }
inline const Key& Object::key() const { return facts_->key; }
inline const std::string& Object::name() const { return facts_->key.name; }
inline const std::string& Object::ns() const { return facts_->key.ns; }
inline const std::string& Object::uid() const { return facts_->uid; }
inline Revision Object::revision() const { return facts_->revision; }
inline const std::string& Object::text() const { return facts_->text; }

}  // namespace coracle
