// SPDX-License-Identifier: Apache-2.0
// Which of several classes (of storage, of ingresses) is everybody's default: the one that an annotation marks; of several
// the newest, then the first by name. Source: Kubernetes pkg/volume/util GetDefaultClass; plugin/pkg/admission/network/
// defaultingressclass.
#pragma once

#include <initializer_list>

#include "daemon/admission/plugin.h"

namespace coracle::admission {

inline ObjectPtr default_class(const World& world, const Kind& kind, std::initializer_list<std::string_view> annotations) {
  ObjectPtr found;
  for (ObjectPtr& one : world.list(kind)) {  // sorted by name
    bool marked = std::any_of(annotations.begin(), annotations.end(),
                              [&](std::string_view name) { return one->annotation(name) == "true"; });
    auto made = [](const Object& object) { return get_string(object.json(), "metadata.creationTimestamp"); };
    if (marked && (!found || made(*one) > made(*found))) found = std::move(one);
  }
  return found;
}

}  // namespace coracle::admission
