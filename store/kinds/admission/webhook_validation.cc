// SPDX-License-Identifier: Apache-2.0
// Validation of admissionregistration.k8s.io: webhooks, policies and match rules. CEL expressions must be present; their contents
// are not parsed. Source: Kubernetes 1.36, pkg/apis/admissionregistration/validation.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/admission/admission_kinds.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/validate/texts.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kMatchConditionsMax = 64, kAuditAnnotationsMax = 20, kAuditExpressionMax = 5 * 1024;

// ---- rules: operations on resources ----

void check_rule_resources(Findings& out, const std::string& path, view::Range<std::string_view> resources) {
  if (resources.empty()) return out.required(path);
  std::set<std::string_view> every_sub_of, of_every;  // x/*, */x
  bool every_one = false, every_plain = false, a_plain_one = false;
  for (size_t i = 0; i < resources.size(); ++i) {
    std::string_view text = resources[i];
    if (text.empty()) {
      out.required(item(path, i));
      continue;
    }
    every_one = every_one || text == "*/*";
    every_plain = every_plain || text == "*";
    size_t slash = text.find('/');
    if (slash == text.npos) {
      a_plain_one = text != "*";
      continue;
    }
    std::string_view resource = text.substr(0, slash), subresource = text.substr(slash + 1);
    if (every_sub_of.count(resource)) {
      out.invalid(item(path, i), text, "if '" + std::string(resource) + "/*' is present, must not specify " + std::string(text));
    }
    if (of_every.count(subresource)) {
      out.invalid(item(path, i), text,
                  "if '*/" + std::string(subresource) + "' is present, must not specify " + std::string(text));
    }
    if (subresource == "*") every_sub_of.insert(resource);
    if (resource == "*") of_every.insert(subresource);
  }
  const json::array& all = resources.raw();
  if (resources.size() > 1 && every_one) out.invalid_json(path, all, "if '*/*' is present, must not specify other resources");
  if (every_plain && a_plain_one) {
    out.invalid_json(path, all, "if '*' is present, must not specify other resources without subresources");
  }
}

void check_rule_with_operations(const json::value& value, const std::string& path, Findings& out) {
  view::RuleWithOperations rule(value);
  auto check_texts = [&](std::string_view field, std::string_view what, view::Range<std::string_view> texts) {
    if (texts.empty()) out.required(sub(path, field));
    if (texts.size() > 1 && has_wildcard(texts))
      out.invalid_json(sub(path, field), texts.raw(), "if '*' is present, must not specify other " + std::string(what));
  };
  check_texts("operations", "operations", rule.operations());
  check_texts("apiGroups", "API groups", rule.api_groups());
  check_texts("apiVersions", "API versions", rule.api_versions());
  for (size_t i = 0; i < rule.api_versions().size(); ++i) {
    if (rule.api_versions()[i].empty()) out.required(item(sub(path, "apiVersions"), i));
  }
  check_rule_resources(out, sub(path, "resources"), rule.resources());
}

void check_named_rule(const json::value& value, const std::string& path, Findings& out) {
  std::set<std::string_view> seen;
  view::Range<std::string_view> names = view::NamedRuleWithOperations(value).resource_names();
  for (size_t i = 0; i < names.size(); ++i) {
    std::string at = item(sub(path, "resourceNames"), i);
    out.invalid_all(at, names[i], path_segment_problems(names[i]));
    if (!seen.insert(names[i]).second) out.duplicate(at, names[i]);
  }
  check_rule_with_operations(value, path, out);  // has the same fields
}

void check_match_conditions(Findings& out, const std::string& path, view::Range<view::MatchCondition> conditions) {
  if (conditions.size() > kMatchConditionsMax) out.too_many(path, conditions.size(), kMatchConditionsMax);
  std::set<std::string_view> names;
  for (size_t i = 0; i < conditions.size(); ++i) {
    std::string at = item(path, i);
    std::string_view name = conditions[i].name(), expression = conditions[i].expression();
    if (!expression.empty() && is_blank(expression)) out.required(sub(at, "expression"));
    if (name.empty()) continue;
    check_qualified(out, sub(at, "name"), name);
    if (!names.insert(name).second) out.duplicate(sub(at, "name"), name);
  }
}

// ---- webhooks ----

void check_webhook(const json::value& value, const std::string& path, Findings& out) {
  view::ValidatingWebhook hook(value);  // a MutatingWebhook has these fields, too
  std::string_view name = hook.name();
  std::vector<std::string> problems = dns_subdomain_problems(name);
  if (!name.empty() && !problems.empty()) invalid_joined(out, sub(path, "name"), name, problems);
  else if (!name.empty() && split(name, '.').size() < 3) {
    out.invalid(sub(path, "name"), name, "should be a domain with at least three segments separated by dots");
  }
  std::string_view effects = hook.side_effects();
  if (effects.empty()) out.required(sub(path, "sideEffects"), "must specify one of None, NoneOnDryRun");
  else if (effects != "None" && effects != "NoneOnDryRun")
    out.not_supported(sub(path, "sideEffects"), effects, {"None", "NoneOnDryRun"});
  if (int64_t seconds = hook.timeout_seconds_or(1); seconds < 1 || seconds > 30) {
    out.invalid(sub(path, "timeoutSeconds"), seconds, "the timeout value must be between 1 and 30 seconds");
  }
  if (hook.has_client_config()) check_client_config(out, sub(path, "clientConfig"), hook.client_config());
  check_match_conditions(out, sub(path, "matchConditions"), hook.match_conditions());
  std::string versions = sub(path, "admissionReviewVersions");
  if (hook.admission_review_versions().empty()) out.required(versions, "must specify one of v1, v1beta1");
  else check_review_versions(out, versions, hook.admission_review_versions());
}

void check_webhooks(const json::value& value, const std::string&, Findings& out) {
  std::set<std::string_view> names;
  view::Range<view::ValidatingWebhook> hooks = view::ValidatingWebhookConfiguration(value).webhooks();  // names of both kinds
  for (size_t i = 0; i < hooks.size(); ++i) {
    std::string_view name = hooks[i].name();
    if (!name.empty() && !names.insert(name).second) out.duplicate(sub(item("webhooks", i), "name"), name);
  }
}

// ---- policies ----

bool is_cel_identifier(std::string_view text) {
  constexpr std::string_view kReserved[] = {"true",     "false",   "null",      "in",       "as",  "break",  "const",
                                            "continue", "else",    "for",       "function", "if",  "import", "let",
                                            "loop",     "package", "namespace", "return",   "var", "void",   "while"};
  for (std::string_view word : kReserved) {
    if (text == word) return false;
  }
  bool first = true;
  for (char c : text) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (first || c < '0' || c > '9')) return false;
    first = false;
  }
  return !text.empty();
}

void check_param_kind(const json::value& value, const std::string& path, Findings& out) {
  std::string_view version = view::ParamKind(value).api_version(), kind = view::ParamKind(value).kind();
  std::string at = sub(path, "apiVersion");
  std::vector<std::string_view> parts = split(version, '/');
  if (version.empty()) {
    out.required(at);
  } else if (parts.size() > 2) {
    out.invalid(at, version, "unexpected GroupVersion string: " + std::string(version));
  } else {
    std::string_view group = parts.size() == 2 ? parts[0] : std::string_view();
    if (!group.empty()) invalid_joined(out, at, group, dns_subdomain_problems(group));
    if (parts.back().empty()) out.invalid(at, version, "version must be specified");
    else invalid_joined(out, at, parts.back(), dns_1035_problems(parts.back()));
  }
  if (kind.empty()) return out.required(sub(path, "kind"));
  invalid_joined(out, sub(path, "kind"), kind, dns_1035_problems(to_lower(kind)),
                 "may have mixed case, but should otherwise match: ");
}

void check_variable(const json::value& value, const std::string& path, Findings& out) {
  view::Variable variable(value);
  std::string_view name = variable.name();
  if (is_blank(name)) out.required(sub(path, "name"), "name is not specified");
  else if (!is_cel_identifier(name)) out.invalid(sub(path, "name"), name, "name is not a valid CEL identifier");
  if (is_blank(variable.expression())) out.required(sub(path, "expression"), "expression is not specified");
}

void check_validation(const json::value& value, const std::string& path, Findings& out) {
  view::Validation validation(value);
  std::string_view message = validation.message(), made = validation.message_expression(), reason = validation.reason();
  if (is_blank(validation.expression())) out.required(sub(path, "expression"), "expression is not specified");
  if (!made.empty() && is_blank(made)) out.invalid(sub(path, "messageExpression"), made, "must be non-empty if specified");
  if (!message.empty() && is_blank(message)) out.invalid(sub(path, "message"), message, "message must be non-empty if specified");
  else if (trim(message).find_first_of("\r\n") != message.npos)
    out.invalid(sub(path, "message"), message, "message must not contain line breaks");
  bool known = reason == "Forbidden" || reason == "Invalid" || reason == "RequestEntityTooLarge";
  if (validation.has_reason() && !known) {
    out.not_supported(sub(path, "reason"), reason, {"Forbidden", "Invalid", "RequestEntityTooLarge"});
  }
}

void check_constraints(Findings& out, view::MatchResources constraints, view::Range<view::MatchCondition> conditions) {
  if (!constraints) out.required("spec.matchConstraints");
  else if (constraints.resource_rules().empty()) out.required("spec.matchConstraints.resourceRules");
  check_match_conditions(out, "spec.matchConditions", conditions);
}

void check_validating_policy(const json::value& value, const std::string&, Findings& out) {
  view::ValidatingAdmissionPolicy policy(value);
  view::ValidatingAdmissionPolicySpec spec = policy.spec();
  check_constraints(out, spec.match_constraints(), spec.match_conditions());
  view::Range<view::AuditAnnotation> annotations = spec.audit_annotations();
  if (spec.validations().empty() && annotations.empty()) {
    for (const char* path : {"spec.validations", "spec.auditAnnotations"}) {
      out.required(path, "validations or auditAnnotations must contain at least one item");
    }
  }
  if (annotations.size() > kAuditAnnotationsMax) {
    out.invalid_json("spec.auditAnnotations", annotations.raw(), "must not have more than 20 auditAnnotations");
  }
  std::set<std::string_view> keys;
  for (size_t i = 0; i < annotations.size(); ++i) {
    std::string at = item("spec.auditAnnotations", i);
    std::string_view key = annotations[i].key(), expression = trim(annotations[i].value_expression());
    check_qualified(out, sub(at, "key"), std::string(policy.metadata().name()) + "/" + std::string(key));
    if (expression.empty()) out.required(sub(at, "valueExpression"), "valueExpression is not specified");
    if (expression.size() > kAuditExpressionMax) out.required(sub(at, "valueExpression"), "must not exceed 5120 bytes in length");
    if (!keys.insert(key).second) out.duplicate(sub(at, "key"), key);
  }
}

// `field`: where the resources stand.
void check_mutating_operations(Findings& out, view::MatchResources resources, const std::string& field) {
  for (view::NamedRuleWithOperations rule : resources.resource_rules()) {
    for (std::string_view operation : rule.operations()) {
      if (operation == "DELETE")
        out.not_supported(field + ".resourceRules.operations", operation, {"*", "CONNECT", "CREATE", "UPDATE"});
    }
  }
}

void check_mutating_policy(const json::value& value, const std::string&, Findings& out) {
  view::MutatingAdmissionPolicySpec spec = view::MutatingAdmissionPolicy(value).spec();
  check_constraints(out, spec.match_constraints(), spec.match_conditions());
  check_mutating_operations(out, spec.match_constraints(), "spec.matchConstraints");
  if (spec.mutations().empty()) out.required("spec.mutations", "mutations must contain at least one item");
  if (spec.reinvocation_policy().empty()) out.required("spec.reinvocationPolicy");
}

void check_mutation(const json::value& value, const std::string& path, Findings& out) {
  view::Mutation mutation(value);
  std::string_view type = mutation.patch_type();
  if (type != "ApplyConfiguration" && type != "JSONPatch") return;  // the tables report it
  auto check_form = [&](const std::string& field, bool asked, bool given, std::string_view expression) {
    std::string at = sub(path, field);
    if (asked && !given) out.required(at, "must be specified when patchType is " + std::string(type));
    if (asked && given && is_blank(expression)) out.required(sub(at, "expression"));
    if (!asked && given) out.invalid(at, "{" + field + "}", "must not be specified when patchType is " + std::string(type));
  };
  check_form("applyConfiguration", type == "ApplyConfiguration", mutation.has_apply_configuration(),
             mutation.apply_configuration().expression());
  check_form("jsonPatch", type == "JSONPatch", mutation.has_json_patch(), mutation.json_patch().expression());
}

void check_param_ref(const json::value& value, const std::string& path, Findings& out) {
  view::ParamRef ref(value);
  std::string_view name = ref.name(), action = ref.parameter_not_found_action();
  bool selects = ref.has_selector();
  if (!name.empty()) out.invalid_all(sub(path, "name"), name, path_segment_problems(name));
  if (!name.empty() && selects) {
    for (const char* field : {"name", "selector"}) out.forbidden(sub(path, field), "name and selector are mutually exclusive");
  }
  if (name.empty() && !selects) out.required(path, "one of name or selector must be specified");
  if (action.empty()) out.required(sub(path, "parameterNotFoundAction"));
  else if (action != "Deny" && action != "Allow")
    unsupported(out, sub(path, "parameterNotFoundAction"), action, {"Deny", "Allow"});
}

void check_policy_name(Findings& out, std::string_view name, bool by_tables) {
  if (!name.empty()) out.invalid_all("spec.policyName", name, dns_subdomain_problems(name));
  else if (!by_tables) out.required("spec.policyName");
}

void check_validating_binding(const json::value& value, const std::string&, Findings& out) {
  view::ValidatingAdmissionPolicyBindingSpec spec = view::ValidatingAdmissionPolicyBinding(value).spec();
  check_policy_name(out, spec.policy_name(), true);
  view::Range<std::string_view> actions = spec.validation_actions();
  std::set<std::string_view> seen;
  for (size_t i = 0; i < actions.size(); ++i) {
    std::string at = item("spec.validationActions", i);
    if (actions[i] != "Deny" && actions[i] != "Warn" && actions[i] != "Audit")
      out.not_supported(at, actions[i], {"Audit", "Deny", "Warn"});
    if (!seen.insert(actions[i]).second) out.duplicate(at, actions[i]);
  }
  if (seen.count("Deny") && seen.count("Warn")) {
    out.invalid_json(
        "spec.validationActions", actions.raw(),
        "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
        "headers serves no purpose)");
  }
  if (seen.empty()) out.required("spec.validationActions", "at least one validation action is required");
}

void check_mutating_binding(const json::value& value, const std::string&, Findings& out) {
  view::MutatingAdmissionPolicyBindingSpec spec = view::MutatingAdmissionPolicyBinding(value).spec();
  check_policy_name(out, spec.policy_name(), false);
  check_mutating_operations(out, spec.match_resources(), "spec.matchResources");
}

constexpr NamedValidationRule kWebhookChecks[] = {
    {"io.k8s.api.admissionregistration.v1.RuleWithOperations", check_rule_with_operations},
    {"io.k8s.api.admissionregistration.v1.NamedRuleWithOperations", check_named_rule},
    {"io.k8s.api.admissionregistration.v1.MutatingWebhook", check_webhook},
    {"io.k8s.api.admissionregistration.v1.ValidatingWebhook", check_webhook},
    {"io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration", check_webhooks},
    {"io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration", check_webhooks},
    {"io.k8s.api.admissionregistration.v1.ParamKind", check_param_kind},
    {"io.k8s.api.admissionregistration.v1.Variable", check_variable},
    {"io.k8s.api.admissionregistration.v1.Validation", check_validation},
    {"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy", check_validating_policy},
    {"io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy", check_mutating_policy},
    {"io.k8s.api.admissionregistration.v1.Mutation", check_mutation},
    {"io.k8s.api.admissionregistration.v1.ParamRef", check_param_ref},
    {"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding", check_validating_binding},
    {"io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding", check_mutating_binding},
};

}  // namespace

std::span<const NamedValidationRule> webhook_rules() { return kWebhookChecks; }

}  // namespace coracle::schema
