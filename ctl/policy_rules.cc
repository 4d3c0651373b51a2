// SPDX-License-Identifier: Apache-2.0
// See policy_rules.h.
#include "ctl/policy_rules.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::ctl {
namespace {

using Words = std::vector<std::string>;

bool holds(const Words& words, std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); }

bool holds_all(const Words& words, const Words& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& word) { return holds(words, word); });
}

bool covers_resource(const Words& resources, const std::string& wanted) {
  if (holds(resources, "*") || holds(resources, wanted)) return true;
  size_t slash = wanted.find('/');
  return slash != wanted.npos && holds(resources, "*" + wanted.substr(slash));
}

bool covers_url(const Words& urls, const std::string& wanted) {
  for (const auto& url : urls) {
    if (url == wanted) return true;
    if (url.ends_with('*') && wanted.starts_with(url.substr(0, url.find_last_not_of('*') + 1))) return true;
  }
  return false;
}

// `wanted` is broken down: it is covered by one rule or by none.
bool covers(const PolicyRule& had, const PolicyRule& wanted) {
  auto all = [](const Words& words, auto&& covered) { return std::all_of(words.begin(), words.end(), covered); };
  return (holds(had.verbs, "*") || holds_all(had.verbs, wanted.verbs)) &&
         (holds(had.api_groups, "*") || holds_all(had.api_groups, wanted.api_groups)) &&
         all(wanted.resources, [&](const auto& one) { return covers_resource(had.resources, one); }) &&
         all(wanted.non_resource_urls, [&](const auto& one) { return covers_url(had.non_resource_urls, one); }) &&
         (had.resource_names.empty() || (!wanted.resource_names.empty() && holds_all(had.resource_names, wanted.resource_names)));
}

// What kubectl sorts rules by: the text of a protobuf message.
std::string sort_text(const PolicyRule& rule) {
  return "&PolicyRule{Verbs:" + go_list(rule.verbs) + ",APIGroups:" + go_list(rule.api_groups) +
         ",Resources:" + go_list(rule.resources) + ",ResourceNames:" + go_list(rule.resource_names) +
         ",NonResourceURLs:" + go_list(rule.non_resource_urls) + ",}";
}

}  // namespace

PolicyRule policy_rule_of(const json::value& json) {
  view::PolicyRule rule(json);
  return {strings(rule.verbs()), strings(rule.api_groups()), strings(rule.resources()), strings(rule.resource_names()),
          strings(rule.non_resource_urls())};
}

std::vector<PolicyRule> policy_rules_of(const json::array& rules) {
  std::vector<PolicyRule> all;
  for (const auto& rule : rules) all.push_back(policy_rule_of(rule));
  return all;
}

json::array to_json(const std::vector<PolicyRule>& rules) {
  json::array all;
  for (const auto& rule : rules) {
    json::object object;
    auto put_words = [&](const char* name, const Words& words) {
      if (!words.empty()) object[name] = json::array(words.begin(), words.end());
    };
    object["verbs"] = json::array(rule.verbs.begin(), rule.verbs.end());
    put_words("apiGroups", rule.api_groups);
    put_words("resources", rule.resources);
    put_words("resourceNames", rule.resource_names);
    put_words("nonResourceURLs", rule.non_resource_urls);
    all.push_back(std::move(object));
  }
  return all;
}

std::string go_list(const std::vector<std::string>& words) { return "[" + join(words, " ") + "]"; }

std::string go_text(const PolicyRule& rule) {
  return "{Verbs:" + go_list(rule.verbs) + " APIGroups:" + go_list(rule.api_groups) + " Resources:" + go_list(rule.resources) +
         " ResourceNames:" + go_list(rule.resource_names) + " NonResourceURLs:" + go_list(rule.non_resource_urls) + "}";
}

std::vector<PolicyRule> broken_down(const PolicyRule& rule) {
  std::vector<PolicyRule> parts;
  for (const auto& group : rule.api_groups)
    for (const auto& resource : rule.resources)
      for (const auto& verb : rule.verbs) {
        PolicyRule part{{verb}, {group}, {resource}, {}, {}};
        if (rule.resource_names.empty()) parts.push_back(part);
        for (const auto& name : rule.resource_names) part.resource_names = {name}, parts.push_back(part);
      }
  for (const auto& url : rule.non_resource_urls)
    for (const auto& verb : rule.verbs) parts.push_back({{verb}, {}, {}, {}, {url}});
  return parts;
}

std::vector<PolicyRule> compacted(const std::vector<PolicyRule>& rules) {
  std::vector<PolicyRule> compact;
  for (const auto& rule : rules)
    for (const auto& part : broken_down(rule)) {
      auto same = [&](const PolicyRule& other) {
        return part.non_resource_urls.empty() && other.api_groups == part.api_groups && other.resources == part.resources &&
               other.resource_names == part.resource_names && other.non_resource_urls.empty();
      };
      auto found = std::find_if(compact.begin(), compact.end(), same);
      if (found == compact.end()) compact.push_back(part);
      else found->verbs.push_back(part.verbs.front());
    }
  std::stable_sort(compact.begin(), compact.end(), [](const auto& a, const auto& b) { return sort_text(a) < sort_text(b); });
  return compact;
}

std::vector<PolicyRule> uncovered(const std::vector<PolicyRule>& had, const std::vector<PolicyRule>& wanted) {
  std::vector<PolicyRule> lacking;
  for (const auto& rule : wanted)
    for (auto& part : broken_down(rule))
      if (std::none_of(had.begin(), had.end(), [&](const auto& one) { return covers(one, part); })) lacking.push_back(part);
  return lacking;
}

std::string resource_and_group(const PolicyRule& rule) {
  if (rule.resources.empty()) return {};
  const std::string& resource = rule.resources.front();
  size_t slash = std::min(resource.find('/'), resource.size());
  std::string group = rule.api_groups.empty() || rule.api_groups.front().empty() ? "" : "." + rule.api_groups.front();
  return resource.substr(0, slash) + group + resource.substr(slash);
}

}  // namespace coracle::ctl
