// SPDX-License-Identifier: Apache-2.0
// See default_roles.h. Parses default_policy.h and controller_policy.h and compares the objects with the stored ones.
#include "daemon/auth/default_roles.h"

#include <algorithm>
#include <iterator>

#include "daemon/auth/controller_policy.h"
#include "daemon/auth/default_policy.h"
#include "daemon/auth/node_authorizer.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"

namespace coracle::auth {
namespace {

constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io", kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";
constexpr std::string_view kAggregateTo = "rbac.authorization.k8s.io/aggregate-to-";

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view item : split(text, ',')) out.emplace_back(item == "core" ? std::string_view() : item);
  return out;
}

std::vector<std::string> verbs_of(std::string_view text) {
  if (text == "READ") return list_of("get,list,watch");
  if (text == "WRITE") return list_of("create,update,patch,delete,deletecollection");
  if (text == "READWRITE") return list_of("get,list,watch,create,update,patch,delete,deletecollection");
  if (text == "READUPDATE") return list_of("get,list,watch,update,patch");
  return list_of(text);
}

Rule rule_of(std::string_view line) {
  std::vector<std::string_view> parts = split(line, '|');
  for (std::string_view& part : parts) part = trim(part);
  Rule rule;
  rule.verbs = verbs_of(parts[0]);
  if (parts.size() == 2) return rule.urls = list_of(parts[1]), rule;
  rule.groups = list_of(parts[1]), rule.resources = list_of(parts[2]);
  if (parts.size() > 3) rule.names = list_of(parts[3]);
  return rule;
}

json::object metadata(std::string_view name, std::string_view ns = {}) {
  json::object out{{"name", name}};
  if (!ns.empty()) out["namespace"] = ns;
  out["labels"] = json::object{{"kubernetes.io/bootstrapping", "rbac-defaults"}};
  out["annotations"] = json::object{{kAutoUpdate, "true"}};
  return out;
}

json::value subject_of(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon), name = text.substr(colon + 1);
  if (kind != "ServiceAccount") return json::object{{"kind", kind}, {"apiGroup", kRbacGroup}, {"name", name}};
  size_t slash = name.find('/');
  return json::object{{"kind", kind}, {"name", name.substr(slash + 1)}, {"namespace", name.substr(0, slash)}};
}

DefaultObject binding_of(const std::vector<std::string_view>& words) {
  bool of_cluster = words.size() == 2 || words[2].starts_with("Group:") || words[2].starts_with("User:") ||
                    words[2].starts_with("ServiceAccount:");
  std::string_view ns = of_cluster ? "" : words[1], name = of_cluster ? words[1] : words[2],
                   role = of_cluster ? words[1] : words[3];
  json::array subjects;
  for (size_t i = of_cluster ? 2 : 4; i < words.size(); ++i) subjects.push_back(subject_of(words[i]));
  json::object body{
      {"metadata", metadata(name, ns)},
      {"roleRef", json::object{{"apiGroup", kRbacGroup}, {"kind", of_cluster ? "ClusterRole" : "Role"}, {"name", role}}}};
  if (!subjects.empty()) body["subjects"] = std::move(subjects);
  return {of_cluster ? &kClusterRoleBinding : &kRoleBinding, std::move(body)};
}

DefaultObject role_of(const std::vector<std::string_view>& words) {
  if (words[0] == "role") return {&kRole, json::object{{"metadata", metadata(words[2], words[1])}}};
  json::object meta = metadata(words[1]);
  if (words.size() > 2) meta["labels"].get_object()[std::string(kAggregateTo) + std::string(words[2].substr(3))] = "true";
  return {&kClusterRole, json::object{{"metadata", std::move(meta)}}};
}

// The lines of the text, joined with their continuation lines: directly after a comma, otherwise with a space.
std::vector<std::string> joined_lines(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    bool goes_on = line.starts_with("    ");
    if (goes_on) (out.back() += out.back().ends_with(',') ? "" : " ") += trim(line);
    else out.emplace_back(line);
  }
  return out;
}

// Parses a text into `out`. The bindings of controllers come last.
void parse_policy(std::string_view text, std::vector<DefaultObject>& out) {
  std::vector<DefaultObject> bindings;
  for (const std::string& joined : joined_lines(text)) {
    std::string_view line = joined;
    if (line[0] != ' ') {
      std::vector<std::string_view> words = split(line, ' ');
      if (words[0] != "controller") {
        out.push_back(words[0] == "bind" ? binding_of(words) : role_of(words));
        continue;
      }
      std::string role = "system:controller:" + std::string(words[1]);
      std::string account = "ServiceAccount:kube-system/" + std::string(words[1]);
      out.push_back(role_of({"clusterrole", role}));
      bindings.push_back(binding_of({"bind", role, account}));
      continue;
    }
    json::object& role = out.back().body.get_object();
    if (trim(line) == "aggregate") {
      std::string label = std::string(kAggregateTo) + std::string(metadata_of(out.back().body).name());
      role["aggregationRule"] =
          json::object{{"clusterRoleSelectors", json::array{json::object{{"matchLabels", json::object{{label, "true"}}}}}}};
      continue;
    }
    if (!role.contains("rules")) role["rules"].emplace_array();
    role["rules"].get_array().push_back(write_rules({rule_of(trim(line))})[0]);
  }
  std::move(bindings.begin(), bindings.end(), std::back_inserter(out));
}

std::vector<DefaultObject> parsed() {
  std::vector<DefaultObject> out;
  parse_policy(kDefaultPolicy, out);
  parse_policy(kControllerPolicy, out);
  return out;
}

// Adds the entries of the map at `path` that `there` lacks; labels that a user changed stay.
bool add_missing(json::value& there, const json::value& wanted, std::string_view path) {
  bool changed = false;
  for (const auto& [key, value] : get_object(wanted, path)) {
    json::object& at = make_object(there, path);
    if (!at.contains(key)) at[key] = value, changed = true;
  }
  return changed;
}

// Appends the items of the list at `path` that `there` lacks.
bool append_missing(json::value& there, const json::value& wanted, std::string_view path) {
  bool changed = false;
  for (const json::value& item : get_array(wanted, path)) {
    json::array& list = make_array(there, path);
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item), changed = true;
  }
  return changed;
}

bool left_alone(const json::value& there) {
  const json::value* update = metadata_of(there).annotations().if_contains(kAutoUpdate);
  return update && *update == json::value("false");
}

}  // namespace

std::vector<DefaultObject> default_roles() { return parsed(); }

Rules default_rules(std::string_view cluster_role) {
  for (const DefaultObject& object : parsed())
    if (*object.kind == kClusterRole && metadata_of(object.body).name() == cluster_role) return read_rules(object.body);
  return {};
}

const Rules& node_rules() {
  static const Rules rules = default_rules("system:node");
  return rules;
}

std::optional<json::value> reconciled(const DefaultObject& wanted, const json::value& there) {
  if (left_alone(there)) return {};
  json::value out = there;
  bool changed = add_missing(out, wanted.body, "metadata.labels");
  changed |= add_missing(out, wanted.body, "metadata.annotations");
  if (*wanted.kind == kRole || *wanted.kind == kClusterRole) {
    bool aggregated = wanted.body.get_object().contains("aggregationRule");  // its rules come from the aggregation
    // False for a role with thousands of rules, which an administrator maintains: it is not compared completely.
    bool compared_all = true;
    Rules missing = aggregated ? Rules{} : uncovered(read_rules(there), read_rules(wanted.body), &compared_all);
    if (!missing.empty() && compared_all) {
      json::array& rules = make_array(out, "rules");
      for (json::value& rule : write_rules(compacted(missing))) rules.push_back(std::move(rule));
      changed = true;
    }
    changed |= append_missing(out, wanted.body, "aggregationRule.clusterRoleSelectors");
  } else {
    changed |= append_missing(out, wanted.body, "subjects");
  }
  return changed ? std::optional(std::move(out)) : std::nullopt;
}

Result<void> ensure_default_roles(registry::Registry& registry) {
  registry::Writer internal = registry::internal_writer();
  for (const DefaultObject& wanted : parsed()) {
    std::string name(metadata_of(wanted.body).name()), ns(metadata_of(wanted.body).namespace_());
    auto there = registry.get(*wanted.kind, {ns, name});
    if (there) {
      view::RoleRef role = view::RoleBinding(wanted.body).role_ref();  // no role has it, every binding does
      bool elsewhere = role && view::RoleBinding(**there).role_ref().name() != role.name() && !left_alone((*there)->json());
      if (!elsewhere) {
        auto better = reconciled(wanted, (*there)->json());
        if (better) TRY(registry.update(*wanted.kind, {ns, name}, {}, *std::move(better), internal).wrap("mend " + name));
        continue;
      }
      TRY(registry.remove(*wanted.kind, {ns, name}, {}, internal).wrap("remove " + name));  // the role of a binding is immutable
    }
    auto made = registry.create(*wanted.kind, {ns, ""}, wanted.body, internal);
    if (!made && made.error().code() != Code::already_exists) return made.take_error().wrap("make " + name);
  }
  return {};
}

}  // namespace coracle::auth
