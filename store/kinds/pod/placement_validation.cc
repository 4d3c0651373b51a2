// SPDX-License-Identifier: Apache-2.0
// Validation of a pod's scheduling constraints: affinity to nodes and to other pods, topology spreading, and scheduling gates.
// Source: core/v1 API reference, Affinity and TopologySpreadConstraint.
#include <map>
#include <set>
#include <vector>

#include "store/kinds/pod/pod_kinds.h"
#include "store/kinds/pod/pod_validation.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

// Calls `visit` for each value of the selector's requirements that no label can have, with its path.
template <typename Visit>
void each_impossible_value(view::NodeSelector selector, const std::string& path, Visit visit) {
  view::Range<view::NodeSelectorTerm> terms = selector.node_selector_terms();
  for (size_t i = 0; i < terms.size(); ++i) {
    view::Range<view::NodeSelectorRequirement> requirements = terms[i].match_expressions();
    for (size_t j = 0; j < requirements.size(); ++j) {
      view::Range<std::string_view> values = requirements[j].values();
      for (size_t k = 0; k < values.size(); ++k) {
        std::vector<std::string> problems = label_value_problems(values[k]);
        if (problems.empty()) continue;
        std::string at = item(sub(item(sub(path, "nodeSelectorTerms"), i), "matchExpressions"), j);
        visit(values[k], item(sub(at, "values"), k), problems);
      }
    }
  }
}

// An object that has such values already, because they were allowed once, may keep them.
bool had_impossible_values(const json::value* old, const std::string& path) {
  const json::value* before = old ? find(*old, path) : nullptr;
  bool had = false;
  if (before) each_impossible_value(view::NodeSelector(*before), "", [&](auto&&...) { had = true; });
  return had;
}

void check_node_selector(const json::value& value, const std::string& path, Findings& out) {
  view::NodeSelector selector(value);
  if (selector.node_selector_terms().empty()) {
    out.required(sub(path, "nodeSelectorTerms"), "must have at least one node selector term");
  }
  if (had_impossible_values(out.old(), path)) return;
  each_impossible_value(selector, path, [&](std::string_view value, const std::string& at, const auto& problems) {
    out.invalid_all(at, value, problems);
  });
}

// The only selectable field of a node is its name.
void check_node_fields(const json::value& term, const std::string& path, Findings& out) {
  view::Range<view::NodeSelectorRequirement> fields = view::NodeSelectorTerm(term).match_fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    std::string at = item(sub(path, "matchFields"), i);
    std::string_view op = fields[i].operator_(), key = fields[i].key();
    view::Range<std::string_view> values = fields[i].values();
    if (op != "In" && op != "NotIn") {
      out.invalid(sub(at, "operator"), op, "not a valid selector operator");
    } else if (values.size() != 1) {
      out.required(sub(at, "values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
    }
    if (key != "metadata.name") {
      out.invalid(sub(at, "key"), key, "not a valid field selector key");
      continue;
    }
    for (size_t j = 0; j < values.size(); ++j) {
      out.invalid_all(item(sub(at, "values"), j), values[j], dns_subdomain_problems(values[j]));
    }
  }
}

void check_weight(const json::value& term, const std::string& path, Findings& out) {
  int64_t weight = view::WeightedPodAffinityTerm(term).weight();  // or of a PreferredSchedulingTerm
  if (weight < 1 || weight > 100) out.invalid(sub(path, "weight"), weight, "must be in the range 1-100");
}

// A selector that names a key of matchLabelKeys itself, and therefore twice: the server has added each of these keys to the
// selector of a pod (pod_strategy.cc). In a template, where it has not, the key is still named once. The path is Kubernetes' own.
void check_keys_are_new(view::Range<std::string_view> keys, view::LabelSelector selector, const std::string& path,
                        Findings& out) {
  if (keys.empty()) return;
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) places[keys[i]] = i;
  std::set<std::string_view> selected;
  for (const auto& pair : selector.match_labels()) selected.insert(pair.key());
  for (view::LabelSelectorRequirement requirement : selector.match_expressions()) {
    std::string_view key = requirement.key();
    auto place = places.find(key);
    if (!selected.insert(key).second && place != places.end())
      out.invalid(item(path, place->second), key, "exists in both matchLabelKeys and labelSelector");
  }
}

// Keys whose values come from the pod: names of labels, only allowed together with a selector.
void check_label_keys(view::Range<std::string_view> keys, bool has_selector, std::string_view field, const std::string& path,
                      Findings& out) {
  if (keys.empty()) return;
  if (!has_selector) return out.forbidden(sub(path, field), "must not be specified when labelSelector is not set");
  for (size_t i = 0; i < keys.size(); ++i) {
    out.invalid_all(item(sub(path, field), i), keys[i], qualified_name_problems(keys[i]));
  }
}

void check_affinity_term(const json::value& value, const std::string& path, Findings& out) {
  view::PodAffinityTerm term(value);
  for (std::string_view ns : term.namespaces()) out.invalid_all(sub(path, "namespace"), ns, dns_label_problems(ns));
  view::Range<std::string_view> match = term.match_label_keys(), mismatch = term.mismatch_label_keys();
  check_label_keys(match, term.has_label_selector(), "matchLabelKeys", path, out);
  check_label_keys(mismatch, term.has_label_selector(), "mismatchLabelKeys", path, out);
  check_keys_are_new(match, term.label_selector(), path, out);
  std::set<std::string_view> mismatched(mismatch.begin(), mismatch.end());
  for (size_t i = 0; i < match.size(); ++i) {
    if (!mismatched.contains(match[i])) continue;
    out.invalid(item(sub(path, "matchLabelKeys"), i), match[i], "exists in both matchLabelKeys and mismatchLabelKeys");
  }
  std::string_view key = term.topology_key();
  if (key.empty()) out.required(sub(path, "topologyKey"), "can not be empty");
  out.invalid_all(sub(path, "topologyKey"), key, qualified_name_problems(key));
}

void check_spread(const json::value& value, const std::string& path, Findings& out) {
  view::TopologySpreadConstraint constraint(value);
  int64_t skew = constraint.max_skew(), domains = constraint.min_domains();
  std::string_view when = constraint.when_unsatisfiable();
  if (skew <= 0) out.invalid(sub(path, "maxSkew"), skew, "must be greater than zero");
  if (constraint.topology_key().empty()) out.required(sub(path, "topologyKey"), "can not be empty");
  if (constraint.has_min_domains()) {
    if (domains <= 0) out.invalid(sub(path, "minDomains"), domains, "must be greater than zero");
    if (when != "DoNotSchedule") {
      out.invalid(sub(path, "minDomains"), domains,
                  "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + std::string(when));
    }
  }
  check_label_keys(constraint.match_label_keys(), constraint.has_label_selector(), "matchLabelKeys", path, out);
  check_keys_are_new(constraint.match_label_keys(), constraint.label_selector(), path, out);
}

constexpr NamedValidationRule kPlacementChecks[] = {
    {"io.k8s.api.core.v1.NodeSelector", check_node_selector},
    {"io.k8s.api.core.v1.NodeSelectorTerm", check_node_fields, "matchFields"},
    {"io.k8s.api.core.v1.PreferredSchedulingTerm", check_weight},
    {"io.k8s.api.core.v1.WeightedPodAffinityTerm", check_weight},
    {"io.k8s.api.core.v1.PodAffinityTerm", check_affinity_term},
    {"io.k8s.api.core.v1.TopologySpreadConstraint", check_spread},
};

}  // namespace

std::span<const NamedValidationRule> placement_rules() { return kPlacementChecks; }

void check_placement(const json::value& value, const std::string& path, Findings& out) {
  view::PodSpec spec(value);
  std::set<std::string> seen;
  view::Range<view::TopologySpreadConstraint> spreads = spec.topology_spread_constraints();
  for (size_t i = spreads.size(); i-- > 0;) {  // reports the earlier one of two
    std::string pair = "{" + std::string(spreads[i].topology_key()) + ", " + std::string(spreads[i].when_unsatisfiable()) + "}";
    if (!seen.insert(pair).second)
      out.duplicate(sub(item(sub(path, "topologySpreadConstraints"), i), "{topologyKey, whenUnsatisfiable}"), pair);
  }
  std::set<std::string_view> gates;
  view::Range<view::PodSchedulingGate> scheduling = spec.scheduling_gates();
  for (size_t i = 0; i < scheduling.size(); ++i) {
    std::string_view name = scheduling[i].name();
    std::string at = item(sub(path, "schedulingGates"), i);
    out.invalid_all(at, name, qualified_name_problems(name));
    if (!gates.insert(name).second) out.duplicate(at, name);
  }
  view::Range<view::PodReadinessGate> readiness = spec.readiness_gates();
  for (size_t i = 0; i < readiness.size(); ++i) {
    std::string_view type = readiness[i].condition_type();
    out.invalid_all(sub(item(sub(path, "readinessGates"), i), "conditionType"), type, qualified_name_problems(type));
  }
}

}  // namespace coracle::schema
