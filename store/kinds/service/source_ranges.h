// SPDX-License-Identifier: Apache-2.0
// The sources that the load balancer of a Service admits: its field, or the annotation that named them before there was a field.
// Pure. Source: Kubernetes cloud-provider service/helpers, GetLoadBalancerSourceRanges.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle {

constexpr std::string_view kSourceRangesAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges";

// Networks, separated by commas and spaces. The annotation does not count if the field has a range. nullptr: it is not set.
inline const json::value* source_ranges_annotation(view::Service service) {
  if (!service.spec().load_balancer_source_ranges().empty()) return nullptr;
  const json::value* text = service.metadata().annotations().if_contains(kSourceRangesAnnotation);
  return text && text->is_string() ? text : nullptr;
}

// The ranges as they are written, without spaces around them; one may be malformed. Empty: all sources are admitted. Refers to
// the Service.
inline std::vector<std::string_view> source_ranges(view::Service service) {
  std::vector<std::string_view> out;
  for (std::string_view range : service.spec().load_balancer_source_ranges()) out.push_back(trim(range));
  const json::value* annotation = source_ranges_annotation(service);
  if (!annotation || trim(annotation->get_string()).empty()) return out;
  for (std::string_view range : split(annotation->get_string(), ',')) out.push_back(trim(range));
  return out;
}

}  // namespace coracle
