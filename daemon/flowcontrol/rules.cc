// SPDX-License-Identifier: Apache-2.0
// See rules.h.
#include "daemon/flowcontrol/rules.h"

#include <algorithm>
#include <tuple>

namespace coracle::flowcontrol {
namespace {

constexpr int64_t kPrecedence = 1000, kShares = 30, kQueues = 64, kHandSize = 8, kQueueLength = 50;  // defaults of flowcontrol v1
constexpr int64_t kMost = 1'000'000;
constexpr std::string_view kCatchAll = "catch-all";

std::vector<std::string> words(const json::value& value, std::string_view path) {
  std::vector<std::string> out;
  for (const json::value& word : get_array(value, path))
    if (word.is_string()) out.emplace_back(word.get_string());
  return out;
}

bool covers_word(const std::vector<std::string>& listed, std::string_view what) {
  return std::any_of(listed.begin(), listed.end(), [&](const std::string& one) { return one == "*" || one == what; });
}

// Matches the path itself and all paths below it, with or without a trailing *.
bool covers_path(const std::vector<std::string>& urls, std::string_view path) {
  return std::any_of(urls.begin(), urls.end(), [&](std::string_view url) {
    if (url == "*" || url == path) return true;
    if (url.ends_with('*')) url.remove_suffix(1);
    std::string below(url);
    if (!below.ends_with('/')) below += '/';
    return path.starts_with(below);
  });
}

int bounded(const json::value& object, std::string_view path, int64_t otherwise, int64_t least, int64_t most) {
  return int(std::clamp(get_int(object, path, otherwise), least, most));
}

}  // namespace

LevelRule read_level(const json::value& object) {
  LevelRule level;
  level.name = get_string(object, "metadata.name");
  level.uid = get_string(object, "metadata.uid");
  bool exempt = get_string(object, "spec.type") == "Exempt";
  std::string part = exempt ? "spec.exempt." : "spec.limited.";
  level.shares.exempt = level.queues.unlimited = exempt;
  level.shares.shares = bounded(object, part + "nominalConcurrencyShares", exempt ? 0 : kShares, 0, kMost);
  level.shares.lendable_percent = bounded(object, part + "lendablePercent", 0, 0, 100);
  if (const json::value* percent = find(object, "spec.limited.borrowingLimitPercent"); percent && !percent->is_null())
    level.shares.borrowing_percent = bounded(object, "spec.limited.borrowingLimitPercent", 0, 0, kMost);
  if (get_string(object, "spec.limited.limitResponse.type") != "Queue") return level;
  constexpr std::string_view kQueuing = "spec.limited.limitResponse.queuing.";
  level.queues.queues = bounded(object, std::string(kQueuing) + "queues", kQueues, 1, kMost);
  level.queues.hand_size = bounded(object, std::string(kQueuing) + "handSize", kHandSize, 1, level.queues.queues);
  level.queues.length_limit = bounded(object, std::string(kQueuing) + "queueLengthLimit", kQueueLength, 1, kMost);
  return level;
}

SchemaRule::SchemaRule(const json::value& object)
    : name(get_string(object, "metadata.name")),
      uid(get_string(object, "metadata.uid")),
      level(get_string(object, "spec.priorityLevelConfiguration.name")),
      precedence_(get_int(object, "spec.matchingPrecedence", kPrecedence)),
      method_(get_string(object, "spec.distinguisherMethod.type")) {
  for (const json::value& entry : get_array(object, "spec.rules")) {
    Rule rule;
    for (const json::value& subject : get_array(entry, "subjects")) rule.subjects.push_back(read_subject(subject));
    for (const json::value& one : get_array(entry, "resourceRules")) {
      rule.resources.push_back({words(one, "verbs"), words(one, "apiGroups"), words(one, "resources"), words(one, "namespaces"),
                                get_bool(one, "clusterScope")});
    }
    for (const json::value& one : get_array(entry, "nonResourceRules"))
      rule.paths.push_back({words(one, "verbs"), words(one, "nonResourceURLs")});
    rules_.push_back(std::move(rule));
  }
}

bool SchemaRule::operator<(const SchemaRule& other) const {
  return std::tie(precedence_, name) < std::tie(other.precedence_, other.name);
}

SchemaRule::Subject SchemaRule::read_subject(const json::value& from) {
  using Of = Subject::Of;
  std::string_view kind = get_string(from, "kind");
  if (kind == "User" || kind == "Group") {
    std::string name(get_string(from, kind == "User" ? "user.name" : "group.name"));
    return {name == "*" ? Of::everybody : kind == "User" ? Of::user : Of::group, name};
  }
  if (kind != "ServiceAccount") return {};
  std::string accounts = "system:serviceaccount:" + std::string(get_string(from, "serviceAccount.namespace")) + ":";
  std::string_view name = get_string(from, "serviceAccount.name");
  if (name == "*") return {Of::accounts, accounts};
  return {Of::user, accounts + std::string(name)};
}

bool SchemaRule::Subject::is(const User& user) const {
  switch (of) {
    case Of::nobody: return false;
    case Of::everybody: return true;
    case Of::user: return user.name == name;
    case Of::group: return user.in(name);
    case Of::accounts: return user.name.starts_with(name);
  }
  return false;
}

bool SchemaRule::Rule::covers(const auth::Attributes& asked) const {
  if (!asked.is_resource) {
    return std::any_of(paths.begin(), paths.end(),
                       [&](const Paths& one) { return covers_word(one.verbs, asked.verb) && covers_path(one.urls, asked.path); });
  }
  auto named = [&](const std::string& resource) { return resource == "*" || asked.is_combined(resource); };
  return std::any_of(resources.begin(), resources.end(), [&](const Resources& one) {
    bool here = asked.ns.empty() ? one.cluster_scope : covers_word(one.namespaces, asked.ns);
    return here && covers_word(one.verbs, asked.verb) && covers_word(one.groups, asked.group) &&
           std::any_of(one.resources.begin(), one.resources.end(), named);
  });
}

bool SchemaRule::matches(const User& user, const auth::Attributes& asked) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return std::any_of(rule.subjects.begin(), rule.subjects.end(), [&](const Subject& subject) { return subject.is(user); }) &&
           rule.covers(asked);
  });
}

std::string SchemaRule::distinguisher(const User& user, const auth::Attributes& asked) const {
  return method_ == "ByUser" ? user.name : method_ == "ByNamespace" ? asked.ns : std::string();
}

Classified classify(const std::vector<SchemaRule>& schemas, const User& user, const auth::Attributes& asked) {
  auto found =
      std::find_if(schemas.begin(), schemas.end(), [&](const SchemaRule& schema) { return schema.matches(user, asked); });
  if (found == schemas.end())
    found = std::find_if(schemas.begin(), schemas.end(), [](const SchemaRule& schema) { return schema.name == kCatchAll; });
  if (found == schemas.end()) return {};
  return {found->name, found->level, found->uid, found->level_uid, found->distinguisher(user, asked), found->exempt};
}

}  // namespace coracle::flowcontrol
