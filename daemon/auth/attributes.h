// SPDX-License-Identifier: Apache-2.0
// Attributes: the attributes of a request for authorization. Source: Kubernetes "Authorization Overview", request attributes.
#pragma once

#include <string>
#include <string_view>

namespace coracle::auth {

struct Attributes {
  std::string verb, group, resource, subresource, ns, name;
  std::string path;  // of a non-resource request
  bool is_resource = true;
  std::string field_selector;  // of list, watch and deletecollection: nodes may list their own pods only

  // "pods", or "pods/status" with a subresource.
  std::string combined() const { return subresource.empty() ? resource : resource + "/" + subresource; }
  bool is_combined(std::string_view name) const {
    if (subresource.empty()) return name == resource;
    return name.size() == resource.size() + 1 + subresource.size() && name.starts_with(resource) &&
           name[resource.size()] == '/' && name.ends_with(subresource);
  }
};

}  // namespace coracle::auth
