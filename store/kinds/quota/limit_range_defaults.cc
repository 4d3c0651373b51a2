// SPDX-License-Identifier: Apache-2.0
// Defaults of LimitRanges: the defaults for a container follow from its limits. Source: core/v1 API reference, LimitRangeItem.
#include <algorithm>
#include <string>
#include <vector>

#include "store/kinds/quota/quota_kinds.h"

namespace coracle::schema {
namespace {

// Copies what `from` has and `into` lacks; map keys are sorted.
void copy_missing(json::object& item, std::string_view into, std::string_view from) {
  json::object* source = object_at(item, from);
  if (!source || source->empty()) return;
  json::object copied = *source, merged;
  if (json::object* target = object_at(item, into)) {
    for (auto& pair : *target) copied[pair.key()] = pair.value();
  }
  std::vector<std::string> names;
  for (const auto& pair : copied) names.emplace_back(pair.key());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) merged[name] = copied[name];
  item[into] = std::move(merged);
}

void default_item(json::object& item) {
  if (text_at(item, "type") != "Container") return;
  copy_missing(item, "default", "max");
  copy_missing(item, "defaultRequest", "default");
  copy_missing(item, "defaultRequest", "min");
}

constexpr NamedDefaultRule kLimitDefaults[] = {{"io.k8s.api.core.v1.LimitRangeItem", default_item}};

}  // namespace

std::span<const NamedDefaultRule> limit_defaults() { return kLimitDefaults; }

}  // namespace coracle::schema
