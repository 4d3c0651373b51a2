// SPDX-License-Identifier: Apache-2.0
// Identities of resources: group, version and kind; with name and namespace. Pure. Source: kustomize's resid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/kustomize/node.h"

namespace coracle::kustomize {

constexpr std::string_view kNoNamespace = "_non_namespaceable_";  // as the namespace of an object that is in none

struct Gvk {
  std::string group, version, kind;

  static Gvk of(const Node& object);
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  // Empty fields of the selector match everything.
  bool is_selected(const Gvk& selector) const;
  bool operator==(const Gvk&) const = default;
  std::string text() const;  // "Deployment.v1.apps"
  bool is_cluster_scoped() const;
  bool is_known() const;  // built in, in the schema that kustomize has
};

// Kustomize's order of kinds: what others need comes first. The rank is 0 for most kinds.
int default_rank(std::string_view kind);
bool precedes(const Gvk& left, const Gvk& right);

struct ResId {
  Gvk gvk;
  std::string name, ns;

  // The namespace for comparisons: "default" for none, kNoNamespace for a kind that is certainly in none.
  std::string effective_ns() const;
  bool same_ns(const ResId& other) const { return effective_ns() == other.effective_ns(); }
  bool equals(const ResId& other) const { return name == other.name && gvk == other.gvk && same_ns(other); }
  bool is_selected_by(const ResId& selector) const;
  bool empty() const { return gvk == Gvk() && name.empty() && ns.empty(); }
  std::string text() const;  // "Deployment.v1.apps/web.[noNs]"
};

void split_group_version(std::string_view api_version, std::string& group, std::string& version);

}  // namespace coracle::kustomize
