// SPDX-License-Identifier: Apache-2.0
// See audit_policy.h.
#include "daemon/auth/audit_policy.h"

#include <algorithm>
#include <map>
#include <set>

#include "daemon/auth/string_lists.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::auth {
namespace {

constexpr std::string_view kVersion = "audit.k8s.io/v1";

Error wrong(const std::string& path, const std::string& what) { return Error(Code::invalid, path + ": " + what); }

Result<AuditLevel> level_of(const std::string& text, const std::string& path) {
  if (text.empty()) return wrong(path, "Required value");
  for (AuditLevel level : {AuditLevel::none, AuditLevel::metadata, AuditLevel::request, AuditLevel::request_response})
    if (text_of(level) == text) return level;
  return wrong(path, "Unsupported value: " + coracle::quoted(std::string_view(text)) +
                         ": supported values: \"Metadata\", \"None\", \"Request\", \"RequestResponse\"");
}

Result<unsigned> stages_of(const json::value& of, const std::string& path) {
  unsigned out = 0;
  size_t index = 0;
  for (const std::string& text : strings_at(of, "omitStages")) {
    unsigned before = out;
    for (AuditStage stage :
         {AuditStage::request_received, AuditStage::response_started, AuditStage::response_complete, AuditStage::panic})
      if (text_of(stage) == text) out |= unsigned(stage);
    bool known =
        out != before || text == "RequestReceived" || text == "ResponseStarted" || text == "ResponseComplete" || text == "Panic";
    std::string at = (path.empty() ? "" : path + ".") + std::string("omitStages[") + std::to_string(index++) + "]";
    if (!known)
      return wrong(at, "Invalid value: " + coracle::quoted(std::string_view(text)) +
                           ": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic");
  }
  return out;
}

// Rejects unknown fields: a typing mistake could disable the audit.
Result<void> known_fields(const json::value& value, const std::string& path, std::initializer_list<std::string_view> known) {
  const json::object* object = value.if_object();
  if (!object) return wrong(path.empty() ? "policy" : path, "an object is needed");
  for (const auto& [name, ignored] : *object)
    if (std::find(known.begin(), known.end(), std::string_view(name)) == known.end())
      return wrong(path.empty() ? std::string(name) : path + "." + std::string(name), "unknown field");
  return {};
}

// "*/scale": the subresource scale of all resources; "pods/*": all of pods.
bool covers_subresources(std::string_view spec, const Attributes& asked) {
  if (spec.starts_with("*/")) return !asked.subresource.empty() && spec.substr(2) == asked.subresource;
  return spec.ends_with("/*") && spec.substr(0, spec.size() - 2) == asked.resource;
}

bool covers_path(const std::string& spec, std::string_view path) {
  if (spec == "*" || spec == path) return true;
  return spec.ends_with('*') && path.starts_with(std::string_view(spec).substr(0, spec.size() - 1));
}

}  // namespace

std::string_view text_of(AuditLevel level) {
  switch (level) {
    case AuditLevel::none: return "None";
    case AuditLevel::metadata: return "Metadata";
    case AuditLevel::request: return "Request";
    case AuditLevel::request_response: break;
  }
  return "RequestResponse";
}

std::string_view text_of(AuditStage stage) {
  switch (stage) {
    case AuditStage::request_received: return "RequestReceived";
    case AuditStage::response_started: return "ResponseStarted";
    case AuditStage::response_complete: return "ResponseComplete";
    case AuditStage::panic: break;
  }
  return "Panic";
}

Result<AuditPolicy::Rule> AuditPolicy::read_rule(const json::value& value, const std::string& path, const AuditDecision& all) {
  TRY(known_fields(value, path,
                   {"level", "users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs", "omitStages",
                    "omitManagedFields"}));
  Rule rule;
  rule.decision = all;
  rule.decision.level = TRY(level_of(std::string(get_string(value, "level")), path + ".level"));
  unsigned omitted = TRY(stages_of(value, path));
  rule.decision.omitted |= omitted;
  if (value.get_object().contains("omitManagedFields")) rule.decision.omit_managed_fields = get_bool(value, "omitManagedFields");
  rule.users = strings_at(value, "users"), rule.groups = strings_at(value, "userGroups"), rule.verbs = strings_at(value, "verbs");
  rule.namespaces = strings_at(value, "namespaces"), rule.urls = strings_at(value, "nonResourceURLs");
  size_t index = 0;
  for (const json::value& group : get_array(value, "resources")) {
    std::string at = path + ".resources[" + std::to_string(index++) + "]";
    TRY(known_fields(group, at, {"group", "resources", "resourceNames"}));
    rule.resources.push_back(
        {std::string(get_string(group, "group")), strings_at(group, "resources"), strings_at(group, "resourceNames")});
    const Group& read = rule.resources.back();
    if (read.group.find('/') != read.group.npos)
      return wrong(at + ".group", "Invalid value: " + coracle::quoted(std::string_view(read.group)) + ": must not include '/'");
    if (!read.names.empty() && read.resources.empty())
      return wrong(at + ".resourceNames", "Invalid value: using resourceNames requires at least one resource");
  }
  bool of_resources = !rule.resources.empty() || !rule.namespaces.empty();
  if (!rule.urls.empty() && of_resources)
    return wrong(path + ".nonResourceURLs", "Invalid value: rules cannot apply to both regular resources and non-resource URLs");
  for (size_t i = 0; i < rule.urls.size(); ++i) {
    const std::string& url = rule.urls[i];
    if (url == "*") continue;
    std::string at = path + ".nonResourceURLs[" + std::to_string(i) + "]";
    if (!url.starts_with('/'))
      return wrong(at, "Invalid value: " + coracle::quoted(std::string_view(url)) +
                           ": non-resource URL rules must begin with a '/' character");
    if (url.find('*') < url.size() - 1)
      return wrong(at, "Invalid value: " + coracle::quoted(std::string_view(url)) +
                           ": non-resource URL wildcards '*' must be the final character of the rule");
  }
  return rule;
}

Result<AuditPolicy> AuditPolicy::parse(std::string_view text) {
  std::vector<json::value> documents = TRY(parse_yaml(text));
  if (documents.size() != 1) return Error(Code::invalid, "one document is needed");
  const json::value& policy = documents.front();
  TRY(known_fields(policy, "", {"apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"}));
  if (get_string(policy, "apiVersion") != kVersion) return wrong("apiVersion", "must be " + std::string(kVersion));
  if (get_string(policy, "kind") != "Policy") return wrong("kind", "must be Policy");
  AuditDecision all;
  all.omitted = TRY(stages_of(policy, ""));
  all.omit_managed_fields = get_bool(policy, "omitManagedFields");
  AuditPolicy out;
  size_t index = 0;
  for (const json::value& value : get_array(policy, "rules")) {
    Rule rule = TRY(read_rule(value, "rules[" + std::to_string(index++) + "]", all));
    out.rules_.push_back(std::move(rule));
  }
  if (out.rules_.empty()) return wrong("rules", "a policy without rules writes nothing down");
  return out;
}

bool AuditPolicy::Rule::fits_resource(const Attributes& asked) const {
  if (!asked.is_resource) return false;
  if (!namespaces.empty() && !has(namespaces, asked.ns)) return false;
  if (resources.empty()) return true;
  for (const Group& group : resources) {
    if (group.group != asked.group) continue;
    if (group.resources.empty()) return true;
    if (!group.names.empty() && !has(group.names, asked.name)) continue;
    for (const std::string& resource : group.resources) {
      if (resource == "*" || asked.is_combined(resource) || covers_subresources(resource, asked)) return true;
    }
  }
  return false;
}

bool AuditPolicy::Rule::fits(const User& user, const Attributes& asked) const {
  if (!users.empty() && !has(users, user.name)) return false;
  bool in_group = std::any_of(groups.begin(), groups.end(), [&](const std::string& group) { return user.in(group); });
  if (!groups.empty() && !in_group) return false;
  if (!verbs.empty() && !has(verbs, asked.verb)) return false;
  if (!namespaces.empty() || !resources.empty()) return fits_resource(asked);
  if (urls.empty()) return true;
  return !asked.is_resource &&
         std::any_of(urls.begin(), urls.end(), [&](const std::string& url) { return covers_path(url, asked.path); });
}

AuditDecision AuditPolicy::decide(const User& user, const Attributes& asked) const {
  for (const Rule& rule : rules_)
    if (rule.fits(user, asked)) return rule.decision;
  return {};
}

}  // namespace coracle::auth
