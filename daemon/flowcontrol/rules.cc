// SPDX-License-Identifier: Apache-2.0
// See rules.h.
#include "daemon/flowcontrol/rules.h"

#include <algorithm>
#include <tuple>

#include "daemon/flowcontrol/shuffle.h"

namespace coracle::flowcontrol {
namespace {

constexpr int64_t kPrecedence = 1000, kShares = 30, kQueues = 64, kHandSize = 8, kQueueLength = 50;  // defaults of flowcontrol v1
constexpr int64_t kMost = 1'000'000;
constexpr std::string_view kCatchAll = "catch-all";

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

int bounded(bool given, int64_t value, int64_t otherwise, int64_t least, int64_t most) {
  return int(std::clamp(given ? value : otherwise, least, most));
}

}  // namespace

LevelRule read_level(const json::value& object) {
  LevelRule level;
  view::PriorityLevelConfiguration view(object);
  level.name = view.metadata().name();
  level.uid = view.metadata().uid();
  view::ExemptPriorityLevelConfiguration exempt = view.spec().exempt();
  view::LimitedPriorityLevelConfiguration limited = view.spec().limited();
  if (view.spec().type() == "Exempt") {
    level.shares.exempt = level.queues.unlimited = true;
    level.shares.shares = bounded(exempt.has_nominal_concurrency_shares(), exempt.nominal_concurrency_shares(), 0, 0, kMost);
    level.shares.lendable_percent = bounded(exempt.has_lendable_percent(), exempt.lendable_percent(), 0, 0, 100);
  } else {
    level.shares.shares =
        bounded(limited.has_nominal_concurrency_shares(), limited.nominal_concurrency_shares(), kShares, 0, kMost);
    level.shares.lendable_percent = bounded(limited.has_lendable_percent(), limited.lendable_percent(), 0, 0, 100);
  }
  if (limited.has_borrowing_limit_percent())
    level.shares.borrowing_percent = bounded(true, limited.borrowing_limit_percent(), 0, 0, kMost);
  if (limited.limit_response().type() != "Queue") return level;
  view::QueuingConfiguration queuing = limited.limit_response().queuing();
  level.queues.queues = bounded(queuing.has_queues(), queuing.queues(), kQueues, 1, kMost);
  level.queues.hand_size =
      bounded(queuing.has_hand_size(), queuing.hand_size(), kHandSize, 1, std::min(level.queues.queues, kHandMax));
  level.queues.length_limit = bounded(queuing.has_queue_length_limit(), queuing.queue_length_limit(), kQueueLength, 1, kMost);
  return level;
}

SchemaRule::SchemaRule(view::FlowSchema schema)
    : name(schema.metadata().name()),
      uid(schema.metadata().uid()),
      level(schema.spec().priority_level_configuration().name()),
      precedence_(schema.spec().has_matching_precedence() ? schema.spec().matching_precedence() : kPrecedence),
      method_(schema.spec().distinguisher_method().type()) {
  for (view::PolicyRulesWithSubjects entry : schema.spec().rules()) {
    Rule rule;
    for (view::FlowcontrolSubject subject : entry.subjects()) rule.subjects.push_back(read_subject(subject));
    for (view::ResourcePolicyRule one : entry.resource_rules())
      rule.resources.push_back({strings(one.verbs()), strings(one.api_groups()), strings(one.resources()),
                                strings(one.namespaces()), one.cluster_scope()});
    for (view::NonResourcePolicyRule one : entry.non_resource_rules())
      rule.paths.push_back({strings(one.verbs()), strings(one.non_resource_urls())});
    rules_.push_back(std::move(rule));
  }
}

bool SchemaRule::operator<(const SchemaRule& other) const {
  return std::tie(precedence_, name) < std::tie(other.precedence_, other.name);
}

SchemaRule::Subject SchemaRule::read_subject(view::FlowcontrolSubject from) {
  using Of = Subject::Of;
  std::string_view kind = from.kind();
  if (kind == "User" || kind == "Group") {
    std::string name(kind == "User" ? from.user().name() : from.group().name());
    return {name == "*" ? Of::everybody : kind == "User" ? Of::user : Of::group, name};
  }
  if (kind != "ServiceAccount") return {};
  std::string accounts = "system:serviceaccount:" + std::string(from.service_account().namespace_()) + ":";
  std::string_view name = from.service_account().name();
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

std::string_view SchemaRule::distinguisher(const User& user, const auth::Attributes& asked) const {
  if (method_ == "ByUser") return user.name;
  return method_ == "ByNamespace" ? std::string_view(asked.ns) : std::string_view();
}

const SchemaRule& Classified::no_rule() {
  static const SchemaRule none{view::FlowSchema(nullptr)};
  return none;
}

Classified classify(const SchemaRules& schemas, const User& user, const auth::Attributes& asked) {
  auto found =
      std::find_if(schemas->begin(), schemas->end(), [&](const SchemaRule& schema) { return schema.matches(user, asked); });
  if (found == schemas->end())
    found = std::find_if(schemas->begin(), schemas->end(), [](const SchemaRule& schema) { return schema.name == kCatchAll; });
  if (found == schemas->end()) return {};
  const uint64_t flow = found->exempt ? 0 : hash_flow(found->name, found->distinguisher(user, asked));
  return {std::shared_ptr<const SchemaRule>(schemas, &*found), flow};
}

}  // namespace coracle::flowcontrol
