// SPDX-License-Identifier: Apache-2.0
// Resource: one object of a kustomization, with what the build has to remember about it: the names that it had, and how it was
// made. Resources: all objects, in order. Pure. Source: kustomize's resource and resmap.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/kustomize/id.h"
#include "ctl/kustomize/regex.h"

namespace coracle::kustomize {

constexpr size_t kResourcesMax = 50'000;

enum class Behavior : uint8_t { unspecified, create, replace, merge };

// Where an object or a change of it comes from. Source: kustomize's buildMetadata.
struct Origin {
  std::string path;           // of a file
  std::string configured_in;  // the file with the configuration of a generator or transformer
  Gvk configured_by;          // "builtin" and the kind
  std::string name, ns;       // of a configuration that is a document of its own
  std::string yaml(std::string_view first = "", std::string_view indent = "") const;
};

class Resource {
 public:
  explicit Resource(Node object) : object(std::move(object)) {}

  Gvk gvk() const { return Gvk::of(object); }
  std::string name() const { return std::string(metadata("name")); }
  std::string ns() const { return std::string(metadata("namespace")); }
  ResId id() const { return {gvk(), name(), ns()}; }
  std::vector<ResId> previous_ids() const;  // the oldest first
  ResId original_id() const;
  bool had_name(std::string_view name) const;
  bool has_previous() const { return !previous_.empty(); }

  void store_previous_id();  // before the name, namespace or kind changes
  void set_name(std::string_view name);
  void set_ns(std::string_view ns);
  void set_kind(std::string_view kind);

  // Metadata's labels or annotations: texts by key, in order.
  std::vector<std::pair<std::string, std::string>> map_of(std::string_view field) const;
  void set_map(std::string_view field, std::vector<std::pair<std::string, std::string>> values);
  std::string_view annotation(std::string_view key) const;

  bool gone() const { return object.empty(); }
  void remove() { object = Node::null(); }

  Node object;
  std::vector<std::string> prefixes, suffixes, var_names;
  Behavior behavior = Behavior::unspecified;
  bool needs_hash = false;
  bool may_change_name = false, may_change_kind = false;  // of a patch
  std::shared_ptr<const Origin> origin;
  std::vector<std::shared_ptr<const Origin>> transformations;

 private:
  friend class Resources;
  struct Previous {
    std::string name, ns, kind;
  };
  std::string_view metadata(std::string_view field) const;
  std::vector<Previous> previous_;
};

// The objects that a patch or replacement changes. Name, namespace and type are regular expressions.
struct Selector {
  ResId id;
  std::string annotations, labels;
};

class CompiledSelector {
 public:
  // Errors: invalid, for a wrong regular expression or label selector.
  static Result<CompiledSelector> compile(const Selector& selector);
  bool matches_gvk(const Gvk& gvk) const;
  bool matches_name(std::string_view name) const { return name_.finds(name); }
  bool matches_ns(std::string_view ns) const { return ns_.finds(ns); }
  bool matches_id(const ResId& id) const { return matches_gvk(id.gvk) && matches_name(id.name) && matches_ns(id.ns); }
  bool matches_labels(const Resource& resource) const;  // labels and annotations

 private:
  Regex group_, version_, kind_, name_, ns_;
  std::function<bool(const Resource&)> labels_;
};

using ResourcePtr = std::shared_ptr<Resource>;

class Resources {
 public:
  const std::vector<ResourcePtr>& all() const { return all_; }
  std::vector<ResourcePtr>& all() { return all_; }

  // Errors: conflict if there is one with that id; too_large.
  Result<void> append(ResourcePtr resource);
  Result<void> append_all(const Resources& other);
  // Appends a generated object, or merges it into the one that it names. Errors: not_found, conflict.
  Result<void> absorb(ResourcePtr resource);
  void drop_gone();

  std::vector<ResourcePtr> with_id(const std::function<bool(const ResId&)>& matches) const;  // now or before
  // The one with that id, now or before. Errors: not_found, conflict.
  Result<ResourcePtr> get(const ResId& id) const;
  size_t count_current(const ResId& id) const;
  std::vector<ResourcePtr> select(const CompiledSelector& selector) const;

 private:
  std::vector<ResourcePtr> all_;
};

}  // namespace coracle::kustomize
