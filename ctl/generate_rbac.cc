// SPDX-License-Identifier: Apache-2.0
// See generate_rbac.h.
#include "ctl/generate_rbac.h"

#include <algorithm>
#include <map>

#include "ctl/flag_values.h"
#include "ctl/generate.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

constexpr const char* kRbac = "rbac.authorization.k8s.io";
constexpr const char* kRbacV1 = "rbac.authorization.k8s.io/v1";

using RuleWords = std::vector<std::string>;

bool has_rule_word(const RuleWords& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

RuleWords without_repeats(const RuleWords& words) {
  RuleWords kept;
  for (const auto& word : words)
    if (!has_rule_word(kept, word)) kept.push_back(word);
  return kept;
}

// "*" is all verbs.
RuleWords verbs_of(const RuleWords& verbs) { return has_rule_word(verbs, "*") ? RuleWords{"*"} : without_repeats(verbs); }

// "pods", "rs.apps", "pods/log". "*" alone is all resources.
std::vector<RuleResource> resources_of(const RuleWords& words) {
  std::vector<RuleResource> resources;
  for (const auto& word : words) {
    if (word == "*") return {{"*", "", ""}};
    size_t slash = std::min(word.find('/'), word.size());
    std::string whole = word.substr(0, slash);
    size_t dot = std::min(whole.find('.'), whole.size());
    resources.push_back(
        {whole.substr(0, dot), whole.substr(std::min(dot + 1, whole.size())), word.substr(std::min(slash + 1, word.size()))});
  }
  return resources;
}

struct SpecialVerb {
  const char* verb;
  std::vector<std::pair<const char*, const char*>> resources;  // group, name
};

// Verbs that only some resources have.
const std::vector<SpecialVerb>& special_verbs() {
  static const std::vector<SpecialVerb> all = {
      {"use", {{"policy", "podsecuritypolicies"}, {"extensions", "podsecuritypolicies"}}},
      {"bind", {{kRbac, "roles"}, {kRbac, "clusterroles"}}},
      {"escalate", {{kRbac, "roles"}, {kRbac, "clusterroles"}}},
      {"impersonate", {{"", "users"}, {"", "serviceaccounts"}, {"", "groups"}, {"authentication.k8s.io", "userextras"}}}};
  return all;
}

void warn_of_verbs(const RuleWords& verbs, const std::function<void(std::string)>& warn) {
  static const RuleWords usual = {"*",     "get",   "delete",           "list", "create", "update",   "patch",
                                  "watch", "proxy", "deletecollection", "use",  "bind",   "escalate", "impersonate"};
  for (const auto& verb : verbs)
    if (!has_rule_word(usual, verb)) warn("'" + verb + "' is not a standard resource verb");
}

// Checks the verbs for one resource, and returns its full name. What only a special verb knows needs not exist.
Result<RuleResource> checked_resource(const RuleResource& typed, const RuleWords& verbs, const FindResource& find) {
  auto found = find(typed);
  RuleResource resource = found ? *found : typed;
  bool is_known = bool(found);
  for (const SpecialVerb& special : special_verbs()) {
    if (!has_rule_word(verbs, special.verb)) continue;
    bool fits = std::any_of(special.resources.begin(), special.resources.end(),
                            [&](const auto& one) { return resource.group == one.first && resource.name == one.second; });
    if (!fits)
      return Error(Code::bad_request, "can not perform '" + std::string(special.verb) + "' on '" + resource.name +
                                          "' in group '" + resource.group + "'");
    is_known = true;
  }
  if (!is_known) return found.take_error();
  resource.subresource = typed.subresource;
  return resource;
}

json::object rule_with(const RuleWords& verbs) { return {{"verbs", json::value_from(verbs)}}; }

// One rule for each group.
Result<json::array> role_rules_of(const RoleFlags& flags, const RuleWords& verbs, const FindResource& find) {
  std::map<std::string, RuleWords> by_group;
  bool all_later = false;  // after "*" kubectl looks nothing up
  for (const RuleResource& typed : resources_of(flags.resources)) {
    if (typed.name.empty()) return Error(Code::bad_request, "resource must be specified if apiGroup/subresource specified");
    all_later |= typed.name == "*";
    RuleResource resource = typed;
    if (!all_later) {
      resource = TRY(checked_resource(typed, verbs, find));
    } else if (auto found = find(typed); typed.name != "*" && found) {
      resource.name = found->name, resource.group = found->group;
    }
    std::string whole = resource.name + (resource.subresource.empty() ? "" : "/" + resource.subresource);
    RuleWords& names = by_group[resource.group];
    if (!has_rule_word(names, whole)) names.push_back(whole);
  }
  json::array rules;
  for (const auto& [group, names] : by_group) {
    json::object rule = rule_with(verbs);
    rule["apiGroups"] = json::array{json::string(group)};
    rule["resources"] = json::value_from(names);
    if (!flags.resource_names.empty()) rule["resourceNames"] = json::value_from(without_repeats(flags.resource_names));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Result<void> check_urls(const RuleWords& urls, const RuleWords& verbs) {
  static const RuleWords of_urls = {"*", "get", "post", "put", "delete", "patch", "head", "options"};
  for (const auto& verb : verbs)
    if (!has_rule_word(of_urls, verb)) return Error(Code::bad_request, "invalid verb: '" + verb + "' for nonResourceURL");
  for (const auto& url : urls) {
    if (url == "*") continue;
    if (!url.starts_with('/')) return Error(Code::bad_request, "nonResourceURL should start with /");
    if (url.find('*') < url.size() - 1)
      return Error(Code::bad_request, "nonResourceURL only supports wildcard matches when '*' is at the end");
  }
  return {};
}

Result<json::object> aggregation_of(const RuleWords& pairs) {
  json::object labels;
  std::map<std::string, std::string> sorted;
  for (const auto& pair : pairs) {
    size_t equals = pair.find('=');
    if (equals == pair.npos)
      return Error(Code::bad_request, "invalid argument " + coracle::quoted(pair) +
                                          " for \"--aggregation-rule\" flag: malformed pair, expect string=string");
    sorted[std::string(trim(pair.substr(0, equals)))] = trim(pair.substr(equals + 1));
  }
  for (const auto& [key, value] : sorted) labels[key] = value;
  return labels;
}

json::object reference_to(const char* kind, const std::string& name) {
  return {{"apiGroup", kRbac}, {"kind", kind}, {"name", name}};
}

Result<json::value> binding_of(const BindingFlags& flags, const char* kind) {
  json::array subjects = TRY(subjects_of(flags, ""));
  json::object object = named_object(kRbacV1, kind, flags.name);
  if (!subjects.empty()) object["subjects"] = std::move(subjects);
  object["roleRef"] = flags.role.empty() ? reference_to("ClusterRole", flags.cluster_role) : reference_to("Role", flags.role);
  return json::value(std::move(object));
}

}  // namespace

Result<json::value> role_of(const RoleFlags& flags, const FindResource& find, const std::function<void(std::string)>& warn) {
  RuleWords verbs = verbs_of(flags.verbs);
  if (verbs.empty()) return Error(Code::bad_request, "at least one verb must be specified");
  warn_of_verbs(verbs, warn);
  if (flags.resources.empty()) return Error(Code::bad_request, "at least one resource must be specified");
  json::object object = named_object(kRbacV1, "Role", flags.name);
  object["rules"] = TRY(role_rules_of(flags, verbs, find));
  return json::value(std::move(object));
}

Result<json::value> cluster_role_of(const RoleFlags& flags, const FindResource& find,
                                    const std::function<void(std::string)>& warn) {
  json::object object = named_object(kRbacV1, "ClusterRole", flags.name);
  json::object aggregation = TRY(aggregation_of(flags.aggregation));
  if (!aggregation.empty()) {
    if (!flags.verbs.empty() || !flags.resources.empty() || !flags.resource_names.empty() || !flags.non_resource_urls.empty())
      return Error(Code::bad_request,
                   "aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames");
    object["rules"] = nullptr;
    object["aggregationRule"] =
        json::object{{"clusterRoleSelectors", json::array{json::object{{"matchLabels", std::move(aggregation)}}}}};
    return json::value(std::move(object));
  }
  RuleWords verbs = verbs_of(flags.verbs), urls = without_repeats(flags.non_resource_urls);
  if (verbs.empty()) return Error(Code::bad_request, "at least one verb must be specified");
  if (flags.resources.empty() && urls.empty())
    return Error(Code::bad_request, "one of resource or nonResourceURL must be specified");
  if (!flags.resources.empty()) warn_of_verbs(verbs, warn);
  json::array rules = TRY(role_rules_of(flags, verbs, find));
  if (!urls.empty()) {
    TRY(check_urls(urls, verbs));
    json::object rule = rule_with(verbs);
    rule["nonResourceURLs"] = json::value_from(urls);
    rules.push_back(std::move(rule));
  }
  object["rules"] = std::move(rules);
  return json::value(std::move(object));
}

Result<json::array> subjects_of(const SubjectFlags& flags, const std::string& ns) {
  json::array subjects;
  for (const auto& user : flags.users) subjects.push_back(json::object{{"kind", "User"}, {"apiGroup", kRbac}, {"name", user}});
  for (const auto& group : flags.groups)
    subjects.push_back(json::object{{"kind", "Group"}, {"apiGroup", kRbac}, {"name", group}});
  for (const auto& account : flags.service_accounts) {
    RuleWords parts = split_words(account, ':');
    if (parts.size() != 2 || (parts[0].empty() && ns.empty()) || parts[1].empty())
      return Error(Code::bad_request, "serviceaccount must be <namespace>:<name>");
    subjects.push_back(
        json::object{{"kind", "ServiceAccount"}, {"name", parts[1]}, {"namespace", parts[0].empty() ? ns : parts[0]}});
  }
  return subjects;
}

Result<json::value> role_binding_of(const BindingFlags& flags) {
  if (flags.cluster_role.empty() == flags.role.empty())
    return Error(Code::bad_request, "exactly one of clusterrole or role must be specified");
  return binding_of(flags, "RoleBinding");
}

Result<json::value> cluster_role_binding_of(const BindingFlags& flags) { return binding_of(flags, "ClusterRoleBinding"); }

}  // namespace coracle::ctl
