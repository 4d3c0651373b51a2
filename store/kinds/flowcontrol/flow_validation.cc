// SPDX-License-Identifier: Apache-2.0
// Validation of flowcontrol.apiserver.k8s.io: the requests that a schema matches, the limits of a level. The mandatory objects
// have a fixed spec. Source: Kubernetes 1.36, pkg/apis/flowcontrol/validation.
#include <cmath>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/flowcontrol/flow_defaults.h"
#include "store/kinds/flowcontrol/flowcontrol_kinds.h"
#include "store/schema/validate/texts.h"

namespace coracle::schema {
namespace {

constexpr int64_t kPrecedenceMax = 10000, kQueuesMax = 10'000'000;
constexpr double kHashBitsMax = 60;  // of shuffle sharding
constexpr std::string_view kVerbs[] = {"create", "delete", "deletecollection", "get",  "list",
                                       "patch",  "proxy",  "update",           "watch"};

void check_flow_schema(const json::value& value, const std::string&, Findings& out) {
  std::string_view name = get_string(value, "metadata.name");
  int64_t precedence = get_int(value, "spec.matchingPrecedence");
  constexpr const char* kPrecedence = "spec.matchingPrecedence";
  if (precedence <= 0) out.invalid(kPrecedence, precedence, "must be a positive value");
  if (precedence > kPrecedenceMax) out.invalid(kPrecedence, precedence, "must not be greater than 10000");
  if (precedence == 1 && name != "exempt") {
    out.invalid(kPrecedence, precedence, "only the schema named 'exempt' may have matchingPrecedence 1");
  }
  if (has(value, "spec.distinguisherMethod")) {
    std::string_view method = get_string(value, "spec.distinguisherMethod.type");
    if (method != "ByUser" && method != "ByNamespace") {
      out.not_supported("spec.distinguisherMethod.type", method, {"ByNamespace", "ByUser"});
    }
  }
  std::string_view level = get_string(value, "spec.priorityLevelConfiguration.name");
  if (level.empty()) out.required("spec.priorityLevelConfiguration.name", "must reference a priority level");
  else out.invalid_all("spec.priorityLevelConfiguration.name", level, dns_subdomain_problems(level));
  const json::value* fixed = mandatory_flow_spec(kFlowSchema, name);
  if (fixed && find(value, "spec") && *find(value, "spec") != *fixed) {
    out.invalid_json("spec", *find(value, "spec"), "spec of '" + std::string(name) + "' must equal the fixed value");
  }
}

void check_flow_rules(const json::value& value, const std::string& path, Findings& out) {
  if (get_array(value, "subjects").empty()) out.required(sub(path, "subjects"), "subjects must contain at least one value");
  if (get_array(value, "resourceRules").empty() && get_array(value, "nonResourceRules").empty()) {
    out.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
  }
}

void check_flow_subject(const json::value& value, const std::string& path, Findings& out) {
  struct Form {
    std::string_view kind, field;
  };
  constexpr Form kForms[] = {{"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}};
  std::string_view kind = get_string(value, "kind");
  bool known = false;
  for (const Form& form : kForms) known = known || kind == form.kind;
  if (!known) return out.not_supported(sub(path, "kind"), kind, {"Group", "ServiceAccount", "User"});
  for (const Form& form : kForms) {
    std::string field(form.field), of(form.kind);
    if (kind == form.kind && !has(value, field))
      out.required(sub(path, field), field + " is required when subject kind is '" + of + "'");
    if (kind != form.kind && has(value, field))
      out.forbidden(sub(path, field), field + " is forbidden when subject kind is not '" + of + "'");
  }
}

void check_account(const json::value& value, const std::string& path, Findings& out) {
  std::string_view name = get_string(value, "name"), ns = get_string(value, "namespace");
  if (!name.empty() && name != "*") out.invalid_all(sub(path, "name"), name, dns_subdomain_problems(name));
  if (ns.empty()) out.required(sub(path, "namespace"), "must specify namespace for service account");
  else out.invalid_all(sub(path, "namespace"), ns, dns_label_problems(ns));
}

void check_verbs(Findings& out, const std::string& path, const json::value& value) {
  std::vector<std::string_view> verbs = texts_at(value, "verbs");
  if (verbs.empty()) return out.required(path, "verbs must contain at least one value");
  if (has_wildcard(verbs)) {
    if (verbs.size() > 1) out.invalid_json(path, *find(value, "verbs"), "if '*' is present, must not specify other verbs");
    return;
  }
  bool all_known = true;
  for (std::string_view verb : verbs) {
    bool known = false;
    for (std::string_view one : kVerbs) known = known || verb == one;
    all_known = all_known && known;
  }
  if (all_known) return;
  std::string supported;
  for (std::string_view verb : kVerbs) supported += (supported.empty() ? "" : ", ") + coracle::quoted(verb);
  out.add({"FieldValueNotSupported", "Unsupported value: " + to_text(*find(value, "verbs")) + ": supported values: " + supported,
           path});
}

void check_one_or_star(Findings& out, const std::string& path, const json::value& value, std::string_view field,
                       std::string_view what, std::string_view none) {
  std::vector<std::string_view> texts = texts_at(value, field);
  if (texts.empty()) return out.required(path, none);
  if (texts.size() < 2 || !has_wildcard(texts)) return;
  out.invalid_json(path, *find(value, field), "if '*' is present, must not specify other " + std::string(what));
}

void check_resource_rule(const json::value& value, const std::string& path, Findings& out) {
  check_verbs(out, sub(path, "verbs"), value);
  check_one_or_star(out, sub(path, "apiGroups"), value, "apiGroups", "api groups",
                    "resource rules must supply at least one api group");
  check_one_or_star(out, sub(path, "resources"), value, "resources", "resources",
                    "resource rules must supply at least one resource");
  std::vector<std::string_view> spaces = texts_at(value, "namespaces");
  std::string at = sub(path, "namespaces");
  if (spaces.empty() && !get_bool(value, "clusterScope")) {
    return out.required(at, "resource rules that are not cluster scoped must supply at least one namespace");
  }
  if (has_wildcard(spaces)) {
    if (spaces.size() > 1)
      out.invalid_json(at, *find(value, "namespaces"), "if '*' is present, must not specify other namespaces");
    return;
  }
  for (size_t i = 0; i < spaces.size(); ++i) {
    for (const std::string& problem : dns_label_problems(spaces[i])) {
      out.invalid(item(at, i), spaces[i], "each member of this list must be '*' or a DNS-1123 label; " + problem);
    }
  }
}

std::string_view url_problem(std::string_view url) {
  if (url.empty()) return "must not be empty";
  if (url == "/") return {};
  if (!url.starts_with('/')) return "must start with slash";
  if (url.find(' ') != url.npos) return "must not contain white-space";
  if (url.find("//") != url.npos) return "must not contain double slash";
  size_t star = url.find('*');
  bool at_the_end = star == url.size() - 1 && url.ends_with("/*");
  return star == url.npos || at_the_end ? std::string_view() : "wildcard can only do suffix matching";
}

void check_url_rule(const json::value& value, const std::string& path, Findings& out) {
  check_verbs(out, sub(path, "verbs"), value);
  std::vector<std::string_view> urls = texts_at(value, "nonResourceURLs");
  std::string at = sub(path, "nonResourceURLs");
  if (urls.empty()) return out.required(at, "nonResourceURLs must contain at least one value");
  if (has_wildcard(urls)) {
    if (urls.size() > 1)
      out.invalid_json(at, *find(value, "nonResourceURLs"), "if '*' is present, must not specify other non-resource URLs");
    return;
  }
  for (size_t i = 0; i < urls.size(); ++i) {
    if (std::string_view problem = url_problem(urls[i]); !problem.empty()) out.invalid(item(at, i), urls[i], problem);
  }
}

// ---- levels ----

void check_shares(Findings& out, const std::string& path, const json::value& value) {
  if (int64_t shares = get_int(value, "nominalConcurrencyShares"); shares < 0) {
    out.invalid(sub(path, "nominalConcurrencyShares"), shares, "must be a non-negative integer");
  }
  if (int64_t lends = get_int(value, "lendablePercent"); lends < 0 || lends > 100) {
    out.invalid(sub(path, "lendablePercent"), lends, "must be between 0 and 100, inclusive");
  }
}

void check_limited(const json::value& value, const std::string& path, Findings& out) {
  check_shares(out, path, value);
  if (int64_t borrows = get_int(value, "borrowingLimitPercent"); borrows < 0) {
    out.invalid(sub(path, "borrowingLimitPercent"), borrows, "if specified, must be a non-negative integer");
  }
}

void check_response(const json::value& value, const std::string& path, Findings& out) {
  std::string_view type = get_string(value, "type");
  bool queues = has(value, "queuing");
  if (type != "Reject" && type != "Queue") return out.not_supported(sub(path, "type"), type, {"Queue", "Reject"});
  if (type == "Reject" && queues) out.forbidden(sub(path, "queuing"), "must be nil if limited.limitResponse.type is not Limited");
  if (type == "Queue" && !queues)
    out.required(sub(path, "queuing"), "must not be empty if limited.limitResponse.type is Limited");
}

void check_queuing(const json::value& value, const std::string& path, Findings& out) {
  int64_t queues = get_int(value, "queues"), hand = get_int(value, "handSize"), length = get_int(value, "queueLengthLimit");
  if (length <= 0) out.invalid(sub(path, "queueLengthLimit"), length, "must be positive");
  if (queues <= 0) out.invalid(sub(path, "queues"), queues, "must be positive");
  else if (queues > kQueuesMax) out.invalid(sub(path, "queues"), queues, "must not be greater than 10000000");
  std::string at = sub(path, "handSize");
  if (hand <= 0) out.invalid(at, hand, "must be positive");
  else if (hand > queues) out.invalid(at, hand, "should not be greater than queues (" + std::to_string(queues) + ")");
  else if (std::ceil(std::log2(double(queues)) * double(hand)) > kHashBitsMax) {
    out.invalid(at, hand,
                "required entropy bits of deckSize " + std::to_string(queues) + " and handSize " + std::to_string(hand) +
                    " should not be greater than 60");
  }
}

json::value without_exempt(const json::value& spec) {
  json::value copy = spec;
  if (copy.is_object()) copy.get_object().erase("exempt");
  return copy;
}

void check_level(const json::value& value, const std::string&, Findings& out) {
  std::string_view name = get_string(value, "metadata.name"), type = get_string(value, "spec.type");
  bool limited = has(value, "spec.limited"), exempt = has(value, "spec.exempt");
  if ((name == "exempt") != (type == "Exempt"))
    out.invalid("spec.type", type, "type must be 'Exempt' if and only if name is 'exempt'");
  if (type == "Exempt") {
    if (limited) out.forbidden("spec.limited", "must be nil if the type is not Limited");
    if (exempt) check_shares(out, "spec.exempt", *find(value, "spec.exempt"));
  } else if (type == "Limited") {
    if (exempt) out.forbidden("spec.exempt", "must be nil if the type is Limited");
    if (!limited) out.required("spec.limited", "must not be empty when type is Limited");
  } else {
    out.not_supported("spec.type", type, {"Exempt", "Limited"});
  }
  const json::value* spec = find(value, "spec");
  const json::value* fixed = mandatory_flow_spec(kPriorityLevelConfiguration, name);
  if (!fixed || !spec) return;
  if (name == "exempt") {
    if (without_exempt(*spec) != without_exempt(*fixed)) {
      out.invalid_json("spec", *spec, "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value");
    }
  } else if (*spec != *fixed) {
    out.invalid_json("spec", *spec, "spec of '" + std::string(name) + "' must equal the fixed value");
  }
}

constexpr NamedValidationRule kFlowChecks[] = {
    {"io.k8s.api.flowcontrol.v1.FlowSchema", check_flow_schema},
    {"io.k8s.api.flowcontrol.v1.PolicyRulesWithSubjects", check_flow_rules},
    {"io.k8s.api.flowcontrol.v1.Subject", check_flow_subject},
    {"io.k8s.api.flowcontrol.v1.ServiceAccountSubject", check_account},
    {"io.k8s.api.flowcontrol.v1.ResourcePolicyRule", check_resource_rule},
    {"io.k8s.api.flowcontrol.v1.NonResourcePolicyRule", check_url_rule},
    {"io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration", check_level},
    {"io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration", check_limited},
    {"io.k8s.api.flowcontrol.v1.LimitResponse", check_response},
    {"io.k8s.api.flowcontrol.v1.QueuingConfiguration", check_queuing},
};

}  // namespace

std::span<const NamedValidationRule> flow_rules() { return kFlowChecks; }

void check_flow_status(const json::value& now, const json::value&, Findings& out) {
  std::set<std::string_view> types;
  const json::array& conditions = get_array(now, "status.conditions");
  for (size_t i = 0; i < conditions.size(); ++i) {
    std::string at = sub(item("status.conditions", i), "type");
    std::string_view type = get_string(conditions[i], "type");
    if (!types.insert(type).second) out.duplicate(at, type);
    if (type.empty()) out.required(at, "must not be empty");
  }
}

}  // namespace coracle::schema
