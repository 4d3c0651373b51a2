// SPDX-License-Identifier: Apache-2.0
// Catalog: which kinds there are, what they are called and of which Type they are. The one place to go from a URL, an
// apiVersion and kind, or what a user typed, to a KindInfo. Built from the same text as the types (see type.h).
//   const KindInfo* info = catalog().by_resource("apps", "v1", "deployments");
// Thread-safe; nothing blocks or allocates unless said.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/object/kind.h"
#include "store/schema/type.h"

namespace coracle::schema {

struct Subresource {
  std::string_view name;   // "status", "scale", "log"
  std::string_view group;  // of the body: differs from the kind's for scale, eviction, token
  std::string_view version;
  std::string_view kind;     // of the body: "Deployment", "Scale", "PodExecOptions"
  std::string_view verbs;    // comma-separated
  int type_;                 // of the body, its position; -1: no schema
  const Type* type() const;  // of the body; null: no schema (options of a stream)
  bool has_verb(std::string_view verb) const;
};

struct Column {  // of the table that `kubectl get` shows
  std::string_view name;
  std::string_view type;    // "string", "integer", "date"
  std::string_view format;  // "name" or ""
  std::string_view cell;    // the rule for the cell and its arguments, see table/cells.h
  std::string_view doc;
  int priority;  // 1: only with -o wide
};

struct Selectable {  // what a field selector may name beside metadata.name and metadata.namespace
  std::string_view name;
  std::string_view path;        // in the object as it is stored
  std::string_view other_path;  // where it stands when it is not there; "": nowhere else
  std::string_view otherwise;   // what it is when it stands nowhere
};

// What is known of a kind without code: facts in the schema text (generate/model.h). Of the version that was asked for where that
// is said; all others stand at the version that is stored alone: ask stored().facts.
struct KindFacts {
  bool created_by_update = false;      // a PUT makes what is not there; of the version asked for
  bool update_needs_revision = false;  // a PUT without a resourceVersion is refused; of the version asked for
  bool returns_deleted = false;        // DELETE answers with the object instead of a Status; of the version asked for
  bool orphans_dependents = false;     // a deletion that says nothing of dependents leaves them alone
  bool counts_generations = false;     // metadata.generation: from 1, up with each change of what is wanted
  bool graceful = false;               // a deletion waits for the node agent
  bool awaits_finalize = false;        // spec.finalizers hold a deletion as well
  bool keeps_first_status = false;     // a create keeps the status that it came with
  bool from_template = false;          // made by a controller, but from a user's template: it counts against the store's limit
  bool names_pods = false;             // pods and hosts are named after it
  bool uncounted = false;              // quotas do not count it
  bool no_owners = false;              // owns nothing, and nothing owns it: the garbage collector leaves it alone
  bool review = false;                 // a POST of one is answered, and nothing is stored

  // Metadata of the body that a write of the status does not take, comma-separated: "labels"; "all".
  std::string_view status_keeps;
  // When a write is on the disk; "": before it is answered. "soft", "lazy": later. "observed": its status later. "derived": later
  // when a component writes it. "remeasured": its status later when a component writes it, since that comes again.
  std::string_view durability;
  // Where a pod or its template stands: "spec.template"; "." for a pod itself; "" for a kind without one.
  std::string_view pod_template;
  std::string_view heartbeat;  // a change of this field alone does not wear the disk: "status.conditions[].lastHeartbeatTime"
  std::string_view finalizer;  // each object begins with it
  std::string_view warns;      // what a client that writes one is told
  // For an unknown field of a field selector, with the field's name for %; "": the general one. Of the version asked for.
  std::string_view selectable_refusal;
  std::span<const Selectable> selectable;  // of the version asked for
};

// All that is known of one served version of a kind. Constant; lives as long as a Catalog that holds it.
struct KindInfo {
  const Kind& kind;
  std::string_view list_kind;    // "PodList", "" where there is no list
  std::string_view singular;     // "pod"
  std::string_view short_names;  // comma-separated
  std::string_view categories;   // comma-separated
  std::string_view verbs;        // comma-separated, sorted
  std::string_view names;        // syntax of an object's name: "subdomain", "label" or "1035" (DNS), "ip", "path"
  KindFacts facts;

  const Type& type() const { return *type_; }
  const Type* list_type() const { return list_type_; }  // null: there is no list
  std::span<const Subresource> subresources() const { return subresources_; }
  const Subresource* subresource(std::string_view name) const;
  std::span<const Column> columns() const { return stored_->columns_; }  // of objects as they are stored
  const KindInfo& stored() const { return *stored_; }  // the version that the store holds: itself, or another one (convert.h)
  bool is_stored() const { return stored_ == this; }
  const KindInfo* version(std::string_view api_version) const;  // of the same kind; null: none is served
  bool has_verb(std::string_view verb) const;  // "create" "get" "list" "watch" "update" "patch" "delete" "deletecollection"

  const Type *type_, *list_type_;
  const KindInfo* stored_;
  const KindInfo* next_version_;  // all versions of one kind are a ring
  std::span<const Subresource> subresources_;
  std::span<const Column> columns_;
};

class KindRange {  // for (const KindInfo& info : catalog.kinds())
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = const KindInfo;
    using difference_type = ptrdiff_t;
    using pointer = const KindInfo*;
    using reference = const KindInfo&;
    explicit Iterator(const KindInfo* const* at = nullptr) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return *at_; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const KindInfo* const* at_;
  };
  explicit KindRange(std::span<const KindInfo* const> all) : all_(all) {}
  Iterator begin() const { return Iterator(all_.data()); }
  Iterator end() const { return Iterator(all_.data() + all_.size()); }
  size_t size() const { return all_.size(); }

 private:
  std::span<const KindInfo* const> all_;
};

class Catalog {
 public:
  Catalog();  // of the built-in kinds
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  KindRange kinds() const { return KindRange(ordered_); }  // what is served, in the order of discovery

  // nullptr when there is none.
  const KindInfo* by_resource(std::string_view group, std::string_view version, std::string_view resource) const;
  const KindInfo* by_kind(std::string_view api_version, std::string_view kind) const;
  // What a user types: "pods", "pod", "po", "Pod", "deployments.apps", "deployments.v1.apps"; case does not matter.
  const KindInfo* by_name(std::string_view name) const;
  std::vector<const KindInfo*> by_category(std::string_view category) const;  // "all"
  const KindInfo* find(const Kind& kind) const { return by_resource(kind.group, kind.version, kind.resource); }
  // Of a constant in store/object/kind.h that is built in. A bug when there is none.
  const KindInfo& of(const Kind& kind) const;

 private:
  std::vector<KindInfo> kinds_;
  std::vector<const KindInfo*> ordered_;
  std::vector<const KindInfo*> by_resource_, by_kind_;  // sorted for the lookups

  friend const std::string& openapi_hash(const Catalog& catalog);
  mutable std::once_flag openapi_hashed_;
  mutable std::string openapi_hash_;  // of what openapi.h makes of it, once somebody asks
};

using CatalogPtr = std::shared_ptr<const Catalog>;
using KindPtr = std::shared_ptr<const KindInfo>;  // keeps the catalog that it is of

CatalogPtr built_in_catalog();
const Catalog& catalog();  // the same

// Splits an apiVersion: "v1" → "", "v1"; "apps/v1" → "apps", "v1".
struct GroupVersion {
  std::string_view group, version;
};
GroupVersion split_api_version(std::string_view api_version);

}  // namespace coracle::schema
