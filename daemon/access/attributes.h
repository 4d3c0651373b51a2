// SPDX-License-Identifier: Apache-2.0
// Attributes: one request as authorization sees it. Source: Kubernetes "Authorization Overview", request attributes.
#pragma once

#include <string>

namespace coracle::access {

struct Attributes {
  std::string verb, group, resource, subresource, ns, name;
  std::string path;  // of what is no resource
  bool is_resource = true;
  std::string field_selector;  // of list, watch and deletecollection: nodes may list their own pods only

  std::string combined() const { return subresource.empty() ? resource : resource + "/" + subresource; }
};

}  // namespace coracle::access
