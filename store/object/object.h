// SPDX-License-Identifier: Apache-2.0
// Object: one committed state of one API object, immutable, shared by pointer between the store, API reads, watches,
// informers and controllers (decision 2). It holds its canonical JSON text, the metadata that everybody asks for, and its
// parsed form, made at most once and only when somebody looks inside.
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

namespace coracle {

class Object;
using ObjectPtr = std::shared_ptr<const Object>;

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  bool block_owner_deletion = false;
};

class Object {
 public:
  // `body` is a complete object: apiVersion, kind, metadata.name (and namespace, uid, resourceVersion once committed).
  // Errors: invalid when metadata is malformed.
  static Result<ObjectPtr> make(const Kind& kind, json::value body);
  // From canonical JSON text (what text() returned). Parses lazily. Errors: internal when the text is damaged.
  static Result<ObjectPtr> from_text(const Kind& kind, Key key, Revision revision, std::string uid, std::string text);

  // The same object with another revision in metadata.resourceVersion (which the text must have a place for).
  ObjectPtr with_revision(Revision revision) const;
  // The same text without what json() made of it: for keeping old states cheaply.
  ObjectPtr unparsed() const;
  // Whether `stored` says the same, its revision aside. For an object from make() only.
  bool same_as(const Object& stored) const;

  const Kind& kind() const { return *kind_; }
  const Key& key() const { return key_; }
  const std::string& name() const { return key_.name; }
  const std::string& ns() const { return key_.ns; }
  const std::string& uid() const { return uid_; }
  Revision revision() const { return revision_; }  // 0 before commit
  const std::string& text() const { return *text_; }  // canonical JSON, with resourceVersion

  // The parsed form. Thread-safe; parsed on first use.
  const json::value& json() const;

  // Conveniences over json().
  std::string_view label(std::string_view name) const;       // "" when absent
  std::string_view annotation(std::string_view name) const;  // "" when absent
  const json::object& labels() const;
  bool deleting() const;  // metadata.deletionTimestamp is set
  std::vector<OwnerReference> owners() const;
  std::optional<OwnerReference> controller() const;  // the owner with controller: true

 private:
  Object() = default;
  const Kind* kind_ = nullptr;
  Key key_;
  std::string uid_;
  Revision revision_ = 0;
  std::shared_ptr<const std::string> text_;
  size_t revision_at_ = 0;  // where in the text the revision's digits stand; 0 = not known
  size_t revision_size_ = 0;
  mutable std::once_flag parse_once_;
  mutable json::value json_;
};

}  // namespace coracle
