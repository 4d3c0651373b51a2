// SPDX-License-Identifier: Apache-2.0
// The AppArmor profile of a container by the annotation that named it before there was a field. Pure. Source: Kubernetes
// "Restrict a Container's Access to Resources with AppArmor".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/schema/views.h"

namespace coracle {

constexpr std::string_view kAppArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/";  // before a container's name

// The field that means the same; null if none does.
inline json::value app_armor_field_of(std::string_view annotation) {
  constexpr std::string_view kLocalhost = "localhost/";
  if (annotation == "unconfined") return json::object{{"type", "Unconfined"}};
  if (annotation == "runtime/default") return json::object{{"type", "RuntimeDefault"}};
  if (!annotation.starts_with(kLocalhost) || annotation == kLocalhost) return nullptr;
  return json::object{{"type", "Localhost"}, {"localhostProfile", annotation.substr(kLocalhost.size())}};
}

// What an annotation of `pod` says about `container`, if it has no field of its own: null for an annotation without meaning;
// nullopt if there is none, or if it says the same as the pod's field.
inline std::optional<json::value> app_armor_by_annotation(view::Pod pod, view::Container container) {
  std::string key = std::string(kAppArmorAnnotation).append(container.name());
  const json::value* annotation = pod.metadata().annotations().if_contains(key);
  bool counts = annotation && annotation->is_string() && !container.security_context().has_app_armor_profile() &&
                pod.spec().os().name() != "windows";
  if (!counts) return std::nullopt;
  json::value field = app_armor_field_of(annotation->get_string());
  view::AppArmorProfile of_pod = pod.spec().security_context().app_armor_profile();
  if (of_pod && same_json(of_pod.raw(), field)) return std::nullopt;
  return field;
}

}  // namespace coracle
