// SPDX-License-Identifier: Apache-2.0
// See pod.h.
#include "daemon/admission/pod.h"

namespace coracle::admission {

view::PodTemplateSpec pod_of(const schema::KindInfo& info, const json::value& object) {
  std::string_view path = info.traits.pod_template;
  if (path.empty()) return {};
  return view::PodTemplateSpec(path == "." ? &object : find(object, path));
}

json::array& array_at(json::value& root, std::string_view dotted) {
  json::value& list = make(root, dotted);
  if (!list.is_array()) list.emplace_array();
  return list.get_array();
}

}  // namespace coracle::admission
