// SPDX-License-Identifier: Apache-2.0
// Validation of flowcontrol.apiserver.k8s.io: the requests that a schema matches, the limits of a level. The mandatory objects
// have a fixed spec. Source: Kubernetes 1.36, pkg/apis/flowcontrol/validation.
#include <cmath>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/flowcontrol/flow_defaults.h"
#include "store/kinds/flowcontrol/flowcontrol_kinds.h"
#include "store/schema/validate/texts.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr int64_t kPrecedenceMax = 10000, kQueuesMax = 10'000'000;
constexpr double kHashBitsMax = 60;  // of shuffle sharding
constexpr std::string_view kVerbs[] = {"create", "delete", "deletecollection", "get",  "list",
                                       "patch",  "proxy",  "update",           "watch"};

void check_flow_schema(const json::value& value, const std::string&, Findings& out) {
  view::FlowSchema schema(value);
  view::FlowSchemaSpec spec = schema.spec();
  std::string_view name = schema.metadata().name();
  int64_t precedence = spec.matching_precedence();
  constexpr const char* kPrecedence = "spec.matchingPrecedence";
  if (precedence <= 0) out.invalid(kPrecedence, precedence, "must be a positive value");
  if (precedence > kPrecedenceMax) out.invalid(kPrecedence, precedence, "must not be greater than 10000");
  if (precedence == 1 && name != "exempt") {
    out.invalid(kPrecedence, precedence, "only the schema named 'exempt' may have matchingPrecedence 1");
  }
  if (spec.has_distinguisher_method()) {
    std::string_view method = spec.distinguisher_method().type();
    if (method != "ByUser" && method != "ByNamespace") {
      out.not_supported("spec.distinguisherMethod.type", method, {"ByNamespace", "ByUser"});
    }
  }
  std::string_view level = spec.priority_level_configuration().name();
  if (level.empty()) out.required("spec.priorityLevelConfiguration.name", "must reference a priority level");
  else out.invalid_all("spec.priorityLevelConfiguration.name", level, dns_subdomain_problems(level));
  const json::value* fixed = mandatory_flow_spec(kFlowSchema, name);
  if (fixed && spec && !same_json(spec.raw(), *fixed))
    out.invalid_json("spec", spec.raw(), "spec of '" + std::string(name) + "' must equal the fixed value");
}

void check_flow_rules(const json::value& value, const std::string& path, Findings& out) {
  view::PolicyRulesWithSubjects rules(value);
  if (rules.subjects().empty()) out.required(sub(path, "subjects"), "subjects must contain at least one value");
  if (rules.resource_rules().empty() && rules.non_resource_rules().empty()) {
    out.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
  }
}

void check_flow_subject(const json::value& value, const std::string& path, Findings& out) {
  view::FlowcontrolSubject subject(value);
  struct Form {
    std::string_view kind, field;
    bool given;
  };
  const Form forms[] = {{"ServiceAccount", "serviceAccount", subject.has_service_account()},
                        {"User", "user", subject.has_user()},
                        {"Group", "group", subject.has_group()}};
  std::string_view kind = subject.kind();
  bool known = false;
  for (const Form& form : forms) known = known || kind == form.kind;
  if (!known) return out.not_supported(sub(path, "kind"), kind, {"Group", "ServiceAccount", "User"});
  for (const Form& form : forms) {
    std::string field(form.field), of(form.kind);
    if (kind == form.kind && !form.given)
      out.required(sub(path, field), field + " is required when subject kind is '" + of + "'");
    if (kind != form.kind && form.given)
      out.forbidden(sub(path, field), field + " is forbidden when subject kind is not '" + of + "'");
  }
}

void check_account(const json::value& value, const std::string& path, Findings& out) {
  std::string_view name = view::ServiceAccountSubject(value).name(), ns = view::ServiceAccountSubject(value).namespace_();
  if (!name.empty() && name != "*") out.invalid_all(sub(path, "name"), name, dns_subdomain_problems(name));
  if (ns.empty()) out.required(sub(path, "namespace"), "must specify namespace for service account");
  else out.invalid_all(sub(path, "namespace"), ns, dns_label_problems(ns));
}

void check_verbs(Findings& out, const std::string& path, view::Range<std::string_view> verbs) {
  if (verbs.empty()) return out.required(path, "verbs must contain at least one value");
  if (has_wildcard(verbs)) {
    if (verbs.size() > 1) out.invalid_json(path, verbs.raw(), "if '*' is present, must not specify other verbs");
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
  out.add({"FieldValueNotSupported", "Unsupported value: " + to_text(verbs.raw()) + ": supported values: " + supported, path});
}

void check_one_or_star(Findings& out, const std::string& path, view::Range<std::string_view> texts, std::string_view what,
                       std::string_view none) {
  if (texts.empty()) return out.required(path, none);
  if (texts.size() < 2 || !has_wildcard(texts)) return;
  out.invalid_json(path, texts.raw(), "if '*' is present, must not specify other " + std::string(what));
}

void check_resource_rule(const json::value& value, const std::string& path, Findings& out) {
  view::ResourcePolicyRule rule(value);
  check_verbs(out, sub(path, "verbs"), rule.verbs());
  check_one_or_star(out, sub(path, "apiGroups"), rule.api_groups(), "api groups",
                    "resource rules must supply at least one api group");
  check_one_or_star(out, sub(path, "resources"), rule.resources(), "resources",
                    "resource rules must supply at least one resource");
  view::Range<std::string_view> spaces = rule.namespaces();
  std::string at = sub(path, "namespaces");
  if (spaces.empty() && !rule.cluster_scope()) {
    return out.required(at, "resource rules that are not cluster scoped must supply at least one namespace");
  }
  if (has_wildcard(spaces)) {
    if (spaces.size() > 1) out.invalid_json(at, spaces.raw(), "if '*' is present, must not specify other namespaces");
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
  view::NonResourcePolicyRule rule(value);
  check_verbs(out, sub(path, "verbs"), rule.verbs());
  view::Range<std::string_view> urls = rule.non_resource_urls();
  std::string at = sub(path, "nonResourceURLs");
  if (urls.empty()) return out.required(at, "nonResourceURLs must contain at least one value");
  if (has_wildcard(urls)) {
    if (urls.size() > 1) out.invalid_json(at, urls.raw(), "if '*' is present, must not specify other non-resource URLs");
    return;
  }
  for (size_t i = 0; i < urls.size(); ++i) {
    if (std::string_view problem = url_problem(urls[i]); !problem.empty()) out.invalid(item(at, i), urls[i], problem);
  }
}

// ---- levels ----

// A limited level has these fields, too.
void check_shares(Findings& out, const std::string& path, view::ExemptPriorityLevelConfiguration level) {
  if (int64_t shares = level.nominal_concurrency_shares(); shares < 0) {
    out.invalid(sub(path, "nominalConcurrencyShares"), shares, "must be a non-negative integer");
  }
  if (int64_t lends = level.lendable_percent(); lends < 0 || lends > 100) {
    out.invalid(sub(path, "lendablePercent"), lends, "must be between 0 and 100, inclusive");
  }
}

void check_limited(const json::value& value, const std::string& path, Findings& out) {
  check_shares(out, path, view::ExemptPriorityLevelConfiguration(value));
  if (int64_t borrows = view::LimitedPriorityLevelConfiguration(value).borrowing_limit_percent(); borrows < 0) {
    out.invalid(sub(path, "borrowingLimitPercent"), borrows, "if specified, must be a non-negative integer");
  }
}

void check_response(const json::value& value, const std::string& path, Findings& out) {
  std::string_view type = view::LimitResponse(value).type();
  bool queues = view::LimitResponse(value).has_queuing();
  if (type != "Reject" && type != "Queue") return out.not_supported(sub(path, "type"), type, {"Queue", "Reject"});
  if (type == "Reject" && queues) out.forbidden(sub(path, "queuing"), "must be nil if limited.limitResponse.type is not Limited");
  if (type == "Queue" && !queues)
    out.required(sub(path, "queuing"), "must not be empty if limited.limitResponse.type is Limited");
}

void check_queuing(const json::value& value, const std::string& path, Findings& out) {
  view::QueuingConfiguration queuing(value);
  int64_t queues = queuing.queues(), hand = queuing.hand_size(), length = queuing.queue_length_limit();
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
  view::PriorityLevelConfiguration level(value);
  view::PriorityLevelConfigurationSpec spec = level.spec();
  std::string_view name = level.metadata().name(), type = spec.type();
  bool limited = spec.has_limited(), exempt = spec.has_exempt();
  if ((name == "exempt") != (type == "Exempt"))
    out.invalid("spec.type", type, "type must be 'Exempt' if and only if name is 'exempt'");
  if (type == "Exempt") {
    if (limited) out.forbidden("spec.limited", "must be nil if the type is not Limited");
    if (exempt) check_shares(out, "spec.exempt", spec.exempt());
  } else if (type == "Limited") {
    if (exempt) out.forbidden("spec.exempt", "must be nil if the type is Limited");
    if (!limited) out.required("spec.limited", "must not be empty when type is Limited");
  } else {
    out.not_supported("spec.type", type, {"Exempt", "Limited"});
  }
  const json::value* fixed = mandatory_flow_spec(kPriorityLevelConfiguration, name);
  if (!fixed || !spec) return;
  if (name == "exempt") {
    if (!same_json(without_exempt(spec.raw()), without_exempt(*fixed))) {
      out.invalid_json("spec", spec.raw(), "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value");
    }
  } else if (!same_json(spec.raw(), *fixed)) {
    out.invalid_json("spec", spec.raw(), "spec of '" + std::string(name) + "' must equal the fixed value");
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
  // Those of a PriorityLevelConfiguration have a type, too.
  view::Range<view::FlowSchemaCondition> conditions = view::FlowSchema(now).status().conditions();
  for (size_t i = 0; i < conditions.size(); ++i) {
    std::string at = sub(item("status.conditions", i), "type");
    std::string_view type = conditions[i].type();
    if (!types.insert(type).second) out.duplicate(at, type);
    if (type.empty()) out.required(at, "must not be empty");
  }
}

}  // namespace coracle::schema
