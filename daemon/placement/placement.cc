// SPDX-License-Identifier: Apache-2.0
// See placement.h.
#include "daemon/placement/placement.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/selector.h"

namespace coracle::placement {
namespace {

std::string_view text_of(const json::value& value) {
  const json::string* text = value.if_string();
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

bool requirement_holds(const view::NodeSelectorRequirement& requirement, std::optional<std::string_view> value) {
  auto listed = [&] {
    auto values = requirement.values();
    return std::any_of(values.begin(), values.end(), [&](std::string_view v) { return v == *value; });
  };
  auto number = [&]() -> std::optional<std::pair<int64_t, int64_t>> {
    if (!value || requirement.values().size() != 1) return std::nullopt;
    auto have = parse_number<int64_t>(*value), want = parse_number<int64_t>(requirement.values()[0]);
    if (!have || !want) return std::nullopt;
    return std::pair(*have, *want);
  };
  std::string_view op = requirement.operator_();
  if (op == "In") return value && listed();
  if (op == "NotIn") return !value || !listed();
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value;
  if (op == "Gt") return number() && number()->first > number()->second;
  if (op == "Lt") return number() && number()->first < number()->second;
  return false;
}

}  // namespace

std::string zone_of(const json::object& labels) {
  auto region = label_value(labels, kRegionLabel), zone = label_value(labels, kZoneLabel);
  if (!region && !zone) return "";
  return std::string(region.value_or("")) + "\n" + std::string(zone.value_or(""));
}

bool node_matches(const view::NodeSelectorTerm& term, const Object& node) {
  return node_matches(term, node.labels(), node.name());
}

bool node_matches(const view::NodeSelectorTerm& term, const json::object& labels, std::string_view name) {
  if (term.match_expressions().empty() && term.match_fields().empty()) return false;  // an empty term matches nothing
  for (view::NodeSelectorRequirement requirement : term.match_expressions())
    if (!requirement_holds(requirement, label_value(labels, requirement.key()))) return false;
  for (view::NodeSelectorRequirement requirement : term.match_fields())
    if (requirement.key() != "metadata.name" || !requirement_holds(requirement, name)) return false;
  return true;
}

bool node_wanted(const view::Pod& pod, const Object& node) { return node_wanted(pod, node.labels(), node.name()); }

bool node_wanted(const view::Pod& pod, const json::object& labels, std::string_view name) {
  for (const auto& [key, value] : pod.spec().node_selector())
    if (label_value(labels, key) != text_of(value)) return false;
  view::NodeAffinity affinity = pod.spec().affinity().node_affinity();
  if (!affinity.has_required_during_scheduling_ignored_during_execution()) return true;
  auto terms = affinity.required_during_scheduling_ignored_during_execution().node_selector_terms();
  return std::any_of(terms.begin(), terms.end(), [&](view::NodeSelectorTerm term) { return node_matches(term, labels, name); });
}

std::optional<view::Toleration> toleration_of(const view::Pod& pod, const view::Taint& taint) {
  for (view::Toleration toleration : pod.spec().tolerations()) {
    if (!toleration.effect().empty() && toleration.effect() != taint.effect()) continue;
    if (!toleration.key().empty() && toleration.key() != taint.key()) continue;
    bool exists = toleration.operator_() == "Exists";
    if (toleration.key().empty() && !exists) continue;
    if (exists || toleration.value() == taint.value()) return toleration;
  }
  return std::nullopt;
}

}  // namespace coracle::placement
