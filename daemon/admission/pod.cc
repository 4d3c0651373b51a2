// SPDX-License-Identifier: Apache-2.0
// See pod.h.
#include "daemon/admission/pod.h"

namespace coracle::admission {

view::PodTemplateSpec pod_of(const schema::KindInfo& info, const json::value& object) {
  std::string_view path = info.traits.pod_template;
  if (path.empty()) return {};
  return view::PodTemplateSpec(path == "." ? &object : find(object, path));
}

}  // namespace coracle::admission
