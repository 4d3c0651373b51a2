// SPDX-License-Identifier: Apache-2.0
// See rules.h.
#include "daemon/auth/rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "daemon/auth/string_lists.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::auth {
namespace {

bool has_or_all(const std::vector<std::string>& list, std::string_view item) {
  for (const std::string& each : list)
    if (each == "*" || each == item) return true;
  return false;
}

bool has_all(const std::vector<std::string>& list, const std::vector<std::string>& items) {
  return std::all_of(items.begin(), items.end(), [&](const std::string& item) { return has(list, item); });
}

// "*/scale" matches the subresource scale of all resources.
bool covers_resource(const std::vector<std::string>& held, std::string_view resource, std::string_view subresource) {
  for (const std::string& each : held) {
    if (each == "*") return true;
    std::string_view rest(each);
    if (!rest.starts_with(resource)) {
      if (!subresource.empty() && rest.starts_with("*/") && rest.substr(2) == subresource) return true;
      continue;
    }
    rest.remove_prefix(resource.size());
    bool same = subresource.empty() ? rest.empty()
                                    : rest.size() == subresource.size() + 1 && rest[0] == '/' && rest.substr(1) == subresource;
    if (same) return true;
  }
  return false;
}

bool covers_url(const std::vector<std::string>& held, std::string_view url) {
  for (const std::string& each : held) {
    if (each == "*" || each == url) return true;
    if (each.ends_with('*') && url.starts_with(std::string_view(each).substr(0, each.size() - 1))) return true;
  }
  return false;
}

// `part` has one verb and either one group, one resource and at most one name, or one URL.
bool covers(const Rule& held, const Rule& part) {
  if (!has(held.verbs, "*") && !has_all(held.verbs, part.verbs)) return false;
  if (!part.urls.empty()) return covers_url(held.urls, part.urls[0]);
  if (!has(held.groups, "*") && !has_all(held.groups, part.groups)) return false;
  std::string_view resource = part.resources[0], subresource;
  if (size_t slash = resource.find('/'); slash != resource.npos)
    subresource = resource.substr(slash + 1), resource = resource.substr(0, slash);
  if (!covers_resource(held.resources, resource, subresource)) return false;
  if (held.names.empty()) return true;
  return !part.names.empty() && has_all(held.names, part.names);
}

// Limits: a role may list a thousand verbs, groups, resources and names. Their product is not compared; such a rule counts as
// uncovered, unless everything is allowed. The same holds for many parts with many held rules.
constexpr uint64_t kPartsMax = 200'000, kComparedMax = 100'000'000;  // strings
uint64_t parts_of(const Rule& rule) {
  auto times = [](uint64_t a, uint64_t b) { return std::min(a * b, kPartsMax + 1); };  // saturates at the limit
  return times(rule.verbs.size(),
               times(times(rule.groups.size(), rule.resources.size()), std::max<size_t>(rule.names.size(), 1))) +
         times(rule.verbs.size(), rule.urls.size());
}
uint64_t strings_in(const Rules& rules) {
  uint64_t count = 0;
  for (const Rule& rule : rules)
    count += 1 + rule.verbs.size() + rule.groups.size() + rule.resources.size() + rule.names.size() + rule.urls.size();
  return count;
}
// Everything except non-resource URLs.
bool covers_everything(const Rule& held) {
  return has(held.verbs, "*") && has(held.groups, "*") && has(held.resources, "*") && held.names.empty();
}

template <typename Visit>
void visit_parts(const Rule& rule, Visit&& visit) {  // visit(Rule&&)
  for (const std::string& verb : rule.verbs) {
    for (const std::string& group : rule.groups)
      for (const std::string& resource : rule.resources) {
        if (rule.names.empty()) visit(Rule{{verb}, {group}, {resource}, {}, {}});
        for (const std::string& name : rule.names) visit(Rule{{verb}, {group}, {resource}, {name}, {}});
      }
    for (const std::string& url : rule.urls) visit(Rule{{verb}, {}, {}, {}, {url}});
  }
}

void put(json::object& rule, std::string_view name, const std::vector<std::string>& list) {
  if (list.empty()) return;
  json::array& to = rule[name].emplace_array();
  for (const std::string& text : list) to.emplace_back(text);
}

}  // namespace

Rules read_rules(const json::value& role) {
  Rules out;
  for (view::PolicyRule rule : view::ClusterRole(role).rules())  // a Role has them too
    out.push_back({strings_of(rule.verbs().raw()), strings_of(rule.api_groups().raw()), strings_of(rule.resources().raw()),
                   strings_of(rule.resource_names().raw()), strings_of(rule.non_resource_urls().raw())});
  return out;
}

json::array write_rules(const Rules& rules) {
  json::array out;
  for (const Rule& rule : rules) {
    json::object to;
    put(to, "verbs", rule.verbs), put(to, "apiGroups", rule.groups), put(to, "resources", rule.resources);
    put(to, "resourceNames", rule.names), put(to, "nonResourceURLs", rule.urls);
    out.push_back(std::move(to));
  }
  return out;
}

bool allows_some(const Rule& rule, const Attributes& asked) {
  if (!has_or_all(rule.verbs, asked.verb)) return false;
  if (!asked.is_resource) return covers_url(rule.urls, asked.path);
  return has_or_all(rule.groups, asked.group) && covers_resource(rule.resources, asked.resource, asked.subresource);
}

bool allows(const Rule& rule, const Attributes& asked) {
  return allows_some(rule, asked) && (!asked.is_resource || rule.names.empty() || has(rule.names, asked.name));
}

Rules uncovered(const Rules& held, const Rules& wanted, bool* compared_all) {
  Rules out;
  const bool has_everything = std::any_of(held.begin(), held.end(), covers_everything);
  uint64_t left = std::min(kPartsMax, kComparedMax / (strings_in(held) + 1));
  for (const Rule& rule : wanted) {
    if (rule.urls.empty() && has_everything) continue;
    const uint64_t parts = parts_of(rule);
    if (parts > left) {
      if (compared_all) *compared_all = false;
      out.push_back(rule);
      continue;
    }
    left -= parts;
    visit_parts(rule, [&](Rule&& part) {
      bool covered = std::any_of(held.begin(), held.end(), [&](const Rule& each) { return covers(each, part); });
      if (!covered) out.push_back(std::move(part));
    });
  }
  return out;
}

Rules compacted(const Rules& rules) {
  struct Simple {
    size_t at;  // index in `out`
    std::set<std::string_view> verbs;
  };
  Rules out;
  std::map<std::pair<std::string_view, std::string_view>, Simple> simple;  // by group and resource
  for (const Rule& rule : rules) {
    bool is_simple = rule.groups.size() == 1 && rule.resources.size() == 1 && rule.names.empty() && rule.urls.empty();
    if (!is_simple) {
      out.push_back(rule);
      continue;
    }
    auto [found, fresh] = simple.try_emplace({rule.groups[0], rule.resources[0]}, Simple{out.size(), {}});
    Simple& one = found->second;
    if (fresh) out.push_back(rule);
    for (const std::string& verb : rule.verbs)
      if (one.verbs.insert(verb).second && !fresh) out[one.at].verbs.push_back(verb);
  }
  return out;
}

std::string describe(const std::vector<std::string>& list) {
  std::vector<std::string> all;
  for (const std::string& item : list) all.push_back(coracle::quoted(std::string_view(item)));
  return "[" + join(all, " ") + "]";
}

std::string describe(const Rule& rule) {
  std::vector<std::string> parts;
  auto part = [&](std::string_view name, const std::vector<std::string>& list) {
    if (!list.empty()) parts.push_back(std::string(name) + ":" + describe(list));
  };
  part("APIGroups", rule.groups), part("Resources", rule.resources), part("NonResourceURLs", rule.urls);
  part("ResourceNames", rule.names), part("Verbs", rule.verbs);
  return "{" + join(parts, ", ") + "}";
}

}  // namespace coracle::auth
