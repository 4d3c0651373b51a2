// SPDX-License-Identifier: Apache-2.0
// Validation of a pod's scheduling constraints: affinity to nodes and to other pods, topology spreading, and scheduling gates.
// Source: core/v1 API reference, Affinity and TopologySpreadConstraint.
#include <map>
#include <set>
#include <vector>

#include "store/kinds/pod/pod_kinds.h"
#include "store/kinds/pod/pod_validation.h"

namespace coracle::schema {
namespace {

std::string_view text_of(const json::value& value) {
  return value.is_string() ? std::string_view(value.get_string()) : std::string_view();
}

// Calls `visit` for each value of the selector's requirements that no label can have, with its path.
template <typename Visit>
void each_impossible_value(const json::value& selector, const std::string& path, Visit visit) {
  const json::array& terms = get_array(selector, "nodeSelectorTerms");
  for (size_t i = 0; i < terms.size(); ++i) {
    const json::array& requirements = get_array(terms[i], "matchExpressions");
    for (size_t j = 0; j < requirements.size(); ++j) {
      const json::array& values = get_array(requirements[j], "values");
      for (size_t k = 0; k < values.size(); ++k) {
        std::vector<std::string> problems = label_value_problems(text_of(values[k]));
        if (problems.empty()) continue;
        std::string at = item(sub(item(sub(path, "nodeSelectorTerms"), i), "matchExpressions"), j);
        visit(text_of(values[k]), item(sub(at, "values"), k), problems);
      }
    }
  }
}

// An object that has such values already, because they were allowed once, may keep them.
bool had_impossible_values(const json::value* old, const std::string& path) {
  const json::value* before = old ? find(*old, path) : nullptr;
  bool had = false;
  if (before) each_impossible_value(*before, "", [&](auto&&...) { had = true; });
  return had;
}

void check_node_selector(const json::value& selector, const std::string& path, Findings& out) {
  if (get_array(selector, "nodeSelectorTerms").empty()) {
    out.required(sub(path, "nodeSelectorTerms"), "must have at least one node selector term");
  }
  if (had_impossible_values(out.old(), path)) return;
  each_impossible_value(selector, path, [&](std::string_view value, const std::string& at, const auto& problems) {
    out.invalid_all(at, value, problems);
  });
}

// The only selectable field of a node is its name.
void check_node_fields(const json::value& term, const std::string& path, Findings& out) {
  const json::array& fields = get_array(term, "matchFields");
  for (size_t i = 0; i < fields.size(); ++i) {
    std::string at = item(sub(path, "matchFields"), i);
    std::string_view op = get_string(fields[i], "operator"), key = get_string(fields[i], "key");
    const json::array& values = get_array(fields[i], "values");
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
      out.invalid_all(item(sub(at, "values"), j), text_of(values[j]), dns_subdomain_problems(text_of(values[j])));
    }
  }
}

void check_weight(const json::value& term, const std::string& path, Findings& out) {
  int64_t weight = get_int(term, "weight");
  if (weight < 1 || weight > 100) out.invalid(sub(path, "weight"), weight, "must be in the range 1-100");
}

// A selector that names a key of matchLabelKeys itself, and therefore twice: the server has added each of these keys to the
// selector of a pod (pod_strategy.cc). In a template, where it has not, the key is still named once. The path is Kubernetes' own.
void check_keys_are_new(const json::value& owner, const std::string& path, Findings& out) {
  const json::array& keys = get_array(owner, "matchLabelKeys");
  if (keys.empty()) return;
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) places[text_of(keys[i])] = i;
  std::set<std::string_view> selected;
  for (const auto& pair : get_object(owner, "labelSelector.matchLabels")) selected.insert(pair.key());
  for (const json::value& requirement : get_array(owner, "labelSelector.matchExpressions")) {
    std::string_view key = get_string(requirement, "key");
    auto place = places.find(key);
    if (!selected.insert(key).second && place != places.end())
      out.invalid(item(path, place->second), key, "exists in both matchLabelKeys and labelSelector");
  }
}

// Keys whose values come from the pod: names of labels, only allowed together with a selector.
void check_label_keys(const json::value& owner, std::string_view field, const std::string& path, Findings& out) {
  const json::array& keys = get_array(owner, field);
  if (keys.empty()) return;
  if (!find(owner, "labelSelector"))
    return out.forbidden(sub(path, field), "must not be specified when labelSelector is not set");
  for (size_t i = 0; i < keys.size(); ++i) {
    out.invalid_all(item(sub(path, field), i), text_of(keys[i]), qualified_name_problems(text_of(keys[i])));
  }
}

void check_affinity_term(const json::value& term, const std::string& path, Findings& out) {
  const json::array& namespaces = get_array(term, "namespaces");
  for (const json::value& ns : namespaces) out.invalid_all(sub(path, "namespace"), text_of(ns), dns_label_problems(text_of(ns)));
  check_label_keys(term, "matchLabelKeys", path, out);
  check_label_keys(term, "mismatchLabelKeys", path, out);
  check_keys_are_new(term, path, out);
  const json::array &match = get_array(term, "matchLabelKeys"), &mismatch = get_array(term, "mismatchLabelKeys");
  std::set<std::string_view> mismatched;
  for (const json::value& key : mismatch) mismatched.insert(text_of(key));
  for (size_t i = 0; i < match.size(); ++i) {
    if (!mismatched.contains(text_of(match[i]))) continue;
    out.invalid(item(sub(path, "matchLabelKeys"), i), text_of(match[i]), "exists in both matchLabelKeys and mismatchLabelKeys");
  }
  std::string_view key = get_string(term, "topologyKey");
  if (key.empty()) out.required(sub(path, "topologyKey"), "can not be empty");
  out.invalid_all(sub(path, "topologyKey"), key, qualified_name_problems(key));
}

void check_spread(const json::value& constraint, const std::string& path, Findings& out) {
  int64_t skew = get_int(constraint, "maxSkew"), domains = get_int(constraint, "minDomains");
  std::string_view when = get_string(constraint, "whenUnsatisfiable");
  if (skew <= 0) out.invalid(sub(path, "maxSkew"), skew, "must be greater than zero");
  if (get_string(constraint, "topologyKey").empty()) out.required(sub(path, "topologyKey"), "can not be empty");
  if (find(constraint, "minDomains")) {
    if (domains <= 0) out.invalid(sub(path, "minDomains"), domains, "must be greater than zero");
    if (when != "DoNotSchedule") {
      out.invalid(sub(path, "minDomains"), domains,
                  "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + std::string(when));
    }
  }
  check_label_keys(constraint, "matchLabelKeys", path, out);
  check_keys_are_new(constraint, path, out);
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

void check_placement(const json::value& spec, const std::string& path, Findings& out) {
  std::set<std::string> seen;
  const json::array& spreads = get_array(spec, "topologySpreadConstraints");
  for (size_t i = spreads.size(); i-- > 0;) {  // reports the earlier one of two
    std::string pair = "{" + std::string(get_string(spreads[i], "topologyKey")) + ", " +
                       std::string(get_string(spreads[i], "whenUnsatisfiable")) + "}";
    if (!seen.insert(pair).second)
      out.duplicate(sub(item(sub(path, "topologySpreadConstraints"), i), "{topologyKey, whenUnsatisfiable}"), pair);
  }
  std::set<std::string_view> gates;
  const json::array& scheduling = get_array(spec, "schedulingGates");
  for (size_t i = 0; i < scheduling.size(); ++i) {
    std::string_view name = get_string(scheduling[i], "name");
    std::string at = item(sub(path, "schedulingGates"), i);
    out.invalid_all(at, name, qualified_name_problems(name));
    if (!gates.insert(name).second) out.duplicate(at, name);
  }
  const json::array& readiness = get_array(spec, "readinessGates");
  for (size_t i = 0; i < readiness.size(); ++i) {
    std::string_view type = get_string(readiness[i], "conditionType");
    out.invalid_all(sub(item(sub(path, "readinessGates"), i), "conditionType"), type, qualified_name_problems(type));
  }
}

}  // namespace coracle::schema
