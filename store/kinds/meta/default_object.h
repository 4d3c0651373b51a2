// SPDX-License-Identifier: Apache-2.0
// Selects the default among classes (StorageClasses, IngressClasses): the one with an annotation; of several the newest, then the
// first by name. Source: Kubernetes pkg/volume/util GetDefaultClass; plugin/pkg/admission/network/defaultingressclass.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "store/kinds/meta/metadata.h"

namespace coracle {

inline constexpr std::string_view kDefaultStorageClass[] = {"storageclass.kubernetes.io/is-default-class",
                                                            "storageclass.beta.kubernetes.io/is-default-class"};
inline constexpr std::string_view kDefaultIngressClass[] = {"ingressclass.kubernetes.io/is-default-class"};

// `objects`: sorted by name. Null if none has an annotation.
inline ObjectPtr default_object(const std::vector<ObjectPtr>& objects, std::span<const std::string_view> annotations) {
  ObjectPtr found;
  for (const ObjectPtr& one : objects) {
    bool marked = std::ranges::any_of(annotations, [&](std::string_view name) { return one->annotation(name) == "true"; });
    auto made = [](const Object& object) { return metadata_of(object).creation_timestamp(); };
    if (marked && (!found || made(*one) > made(*found))) found = one;
  }
  return found;
}

}  // namespace coracle
