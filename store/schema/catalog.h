// SPDX-License-Identifier: Apache-2.0
// Catalog: the kinds, their names and their Types. It finds a KindInfo by URL, by apiVersion and kind, or by a name that a user
// has typed. Generated from the same text as the types (see type.h).
//   const KindInfo* info = catalog().by_resource("apps", "v1", "deployments");
// Thread-safe; nothing blocks or allocates unless stated.
#pragma once

#include <cstddef>
#include <functional>
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
  std::string_view group;  // of the body; for scale, eviction and token it differs from the kind's
  std::string_view version;
  std::string_view kind;     // of the body: "Deployment", "Scale", "PodExecOptions"
  std::string_view verbs;    // comma-separated
  int type_;                 // index of the body's type; -1: no schema
  const Type* type() const;  // of the body; null: no schema (options of a stream)
  bool has_verb(std::string_view verb) const;
};

struct Column {  // a column of the table that `kubectl get` prints
  std::string_view name;
  std::string_view type;    // "string", "integer", "date"
  std::string_view format;  // "name" or ""
  std::string_view cell;    // the rule for the cell and its arguments, see table/cells.h
  std::string_view doc;
  int priority;  // 1: only with -o wide
};

struct Selectable {  // a field for field selectors, beside metadata.name and metadata.namespace
  std::string_view name;
  std::string_view path;        // in the stored object
  std::string_view other_path;  // the fallback if that is absent; "": none
  std::string_view otherwise;   // the value if both are absent
};

// Properties of a kind from the schema text (generate/model.h). Those marked "of the requested version" differ by version; all
// others are only set for the stored version: use stored().traits.
struct KindTraits {
  bool created_by_update = false;      // a PUT creates a missing object; of the requested version
  bool update_needs_revision = false;  // a PUT without a resourceVersion fails; of the requested version
  bool returns_deleted = false;        // DELETE returns the object instead of a Status; of the requested version
  bool orphans_dependents = false;     // the default propagation of a deletion is Orphan
  bool counts_generations = false;     // metadata.generation: starts at 1, incremented with each change of the spec
  bool graceful = false;               // a deletion waits for the node agent
  bool awaits_finalize = false;        // spec.finalizers delay a deletion too
  bool keeps_first_status = false;     // a create keeps the status of its body
  bool from_template = false;          // created by a controller from a user's template: counts against the store's limit
  bool names_pods = false;             // pods and hosts get its name
  bool uncounted = false;              // not counted by quotas
  bool no_owners = false;              // ignored by the garbage collector: has no owners and no dependents
  bool review = false;                 // a POST returns a result, and nothing is stored

  // Metadata of the body that a write to the status ignores, comma-separated: "labels"; "all".
  std::string_view status_keeps;
  // When a write reaches the disk; "": before the response. "soft", "lazy": later (engine.h). "observed": a status write later.
  // "derived": a component's write later. "remeasured": a component's status write later, because it is repeated.
  std::string_view durability;
  // Path of the pod or pod template: "spec.template"; "." for a pod itself; "" for a kind without one.
  std::string_view pod_template;
  std::string_view heartbeat;  // a change of this field alone is not written at once: "status.conditions[].lastHeartbeatTime"
  std::string_view finalizer;  // added to each object on create
  std::string_view warns;      // the warning for a client that writes an object
  // The error for an unsupported field in a field selector, with % for its name; "": the default text. Of the requested version.
  std::string_view selectable_refusal;
  std::span<const Selectable> selectable;  // of the requested version
};

// The description of one served version of a kind. Constant; lives as long as a Catalog that contains it.
struct KindInfo {
  const Kind& kind;
  std::string_view list_kind;    // "PodList"; "" without a list
  std::string_view singular;     // "pod"
  std::string_view short_names;  // comma-separated
  std::string_view categories;   // comma-separated
  std::string_view verbs;        // comma-separated, sorted
  std::string_view names;        // syntax of object names: "subdomain", "label" or "1035" (DNS), "ip", "path"
  KindTraits traits;

  const Type& type() const { return *type_; }
  const Type* list_type() const { return list_type_; }  // null: there is no list
  std::span<const Subresource> subresources() const { return subresources_; }
  const Subresource* subresource(std::string_view name) const;
  std::span<const Column> columns() const { return stored_->columns_; }  // for objects of the stored version
  const KindInfo& stored() const { return *stored_; }  // the version in the store: this one or another (convert.h)
  bool is_stored() const { return stored_ == this; }
  const KindInfo* version(std::string_view api_version) const;  // of the same kind; null: not served
  bool has_verb(std::string_view verb) const;  // "create" "get" "list" "watch" "update" "patch" "delete" "deletecollection"

  const Type *type_, *list_type_;
  const KindInfo* stored_;
  const KindInfo* next_version_;  // the versions of a kind form a ring
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
  using Serves = std::function<bool(const Kind&)>;
  explicit Catalog(const Serves& serves = {});  // the built-in kinds, or those of them that are served
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  KindRange kinds() const { return KindRange(ordered_); }  // the served kinds, in the order of discovery

  // nullptr if there is none.
  const KindInfo* by_resource(std::string_view group, std::string_view version, std::string_view resource) const;
  const KindInfo* by_kind(std::string_view api_version, std::string_view kind) const;
  // A name that a user types: "pods", "pod", "po", "Pod", "deployments.apps", "deployments.v1.apps"; case-insensitive. Of a group
  // the beginning will do where it is no other group's name: "storageclasses.storage". Source: apimachinery
  // pkg/api/meta/restmapper.go, ResourcesFor.
  const KindInfo* by_name(std::string_view name) const;
  std::vector<const KindInfo*> by_category(std::string_view category) const;  // "all"
  const KindInfo* find(const Kind& kind) const { return by_resource(kind.group, kind.version, kind.resource); }
  // For a constant in store/object/kind.h of a built-in kind. Its absence is a bug.
  const KindInfo& of(const Kind& kind) const;

 private:
  std::vector<KindInfo> kinds_;
  std::vector<const KindInfo*> ordered_;
  std::vector<const KindInfo*> by_resource_, by_kind_;  // sorted for lookups

  friend const std::string& openapi_hash(const Catalog& catalog);
  mutable std::once_flag openapi_hashed_;
  mutable std::string openapi_hash_;  // of the documents of openapi.h, computed on first use
};

using CatalogPtr = std::shared_ptr<const Catalog>;
using KindPtr = std::shared_ptr<const KindInfo>;  // keeps its catalog alive

CatalogPtr built_in_catalog();
const Catalog& catalog();  // the same catalog

// Splits an apiVersion: "v1" → "", "v1"; "apps/v1" → "apps", "v1".
struct GroupVersion {
  std::string_view group, version;
};
GroupVersion split_api_version(std::string_view api_version);

}  // namespace coracle::schema
