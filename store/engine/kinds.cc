// SPDX-License-Identifier: Apache-2.0
// See kinds.h.
#include "store/engine/kinds.h"

#include "runtime/base/json.h"

namespace coracle::engine {

const Kind* StoredKinds::of(std::string_view group, std::string_view resource, bool namespaced, std::string_view text) {
  if (const Kind* known = find_ ? find_(group, resource) : nullptr) return known;
  for (const Foreign& foreign : foreign_)
    if (foreign.group == group && foreign.resource == resource) return &foreign.value;
  json::value body = parse_json(text).value_or(json::object());
  std::string_view api_version = get_string(body, "apiVersion");
  Foreign& added = foreign_.emplace_back();
  added.group = group;
  added.version = api_version.substr(api_version.find('/') + 1);
  added.kind = get_string(body, "kind");
  added.resource = resource;
  added.value = Kind{added.group, added.version, added.kind, added.resource, namespaced};
  return &added.value;
}

}  // namespace coracle::engine
