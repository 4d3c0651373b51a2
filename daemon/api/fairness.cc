// SPDX-License-Identifier: Apache-2.0
// See fairness.h.
#include "daemon/api/fairness.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/text.h"

namespace coracle::api {

struct Fairness::Rule {  // of a schema: some of these subjects, doing some of that
  struct Subject {
    std::string kind, name, ns;
  };
  struct Resources {
    std::vector<std::string> verbs, groups, resources, namespaces;
    bool cluster_scope = false;
  };
  struct Paths {
    std::vector<std::string> verbs, urls;
  };
  std::vector<Subject> subjects;
  std::vector<Resources> resources;
  std::vector<Paths> paths;
};

struct Fairness::Schema {
  std::string name, uid, level, level_uid, distinguisher;
  bool exempt = false;
  int64_t precedence = 0;
  std::vector<Rule> rules;
};

namespace {

constexpr int64_t kPrecedence = 1000, kShares = 30, kQueueLength = 50;  // Source: flowcontrol v1 defaults

std::vector<std::string> words(const json::value& value, std::string_view path) {
  std::vector<std::string> out;
  for (const json::value& word : get_array(value, path))
    if (word.is_string()) out.emplace_back(word.get_string());
  return out;
}

bool covers(const std::vector<std::string>& listed, std::string_view what) {
  return std::any_of(listed.begin(), listed.end(), [&](const std::string& one) { return one == "*" || one == what; });
}

bool covers_path(const std::vector<std::string>& urls, std::string_view path) {
  return std::any_of(urls.begin(), urls.end(), [&](const std::string& url) {
    if (url == "*" || url == path) return true;
    return url.ends_with("/*") && path.starts_with(std::string_view(url).substr(0, url.size() - 1));
  });
}

bool is_subject(const std::string& kind, const std::string& name, const std::string& ns, const User& user) {
  if (kind == "User") return name == "*" || user.name == name;
  if (kind == "Group") return name == "*" || user.in(name);
  if (kind != "ServiceAccount") return false;
  std::string prefix = "system:serviceaccount:" + ns + ":";
  return name == "*" ? user.name.starts_with(prefix) : user.name == prefix + name;
}

// An object that is stored has a uid; of those that are built in, one follows from the name.
std::string uid_of(const json::value& object, std::string_view kind) {
  if (std::string_view uid = get_string(object, "metadata.uid"); !uid.empty()) return std::string(uid);
  std::string text = std::string(kind) + "/" + std::string(get_string(object, "metadata.name"));
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  digest[6] = (digest[6] & 0x0f) | 0x80, digest[8] = (digest[8] & 0x3f) | 0x80;  // RFC 9562, version 8
  std::string digits = hex({reinterpret_cast<char*>(digest), 16});
  for (size_t at : {8, 13, 18, 23}) digits.insert(at, "-");
  return digits;
}

Error come_back() {
  ErrorDetails details;
  details.retry_after_seconds = 1;
  return Error(Code::too_many_requests, "Too many requests, please try again later.").with(std::move(details));
}

}  // namespace

Fairness::Fairness(const FlowRules& rules, FairnessLimits limits) : limits_(limits) { set_rules(rules); }

void Fairness::set_rules(const FlowRules& rules) {
  std::vector<Level> levels;
  int64_t shares = 0;
  for (const json::value& object : rules.levels) {
    Level level;
    level.name = get_string(object, "metadata.name");
    level.uid = uid_of(object, "PriorityLevelConfiguration");
    level.exempt = get_string(object, "spec.type") == "Exempt";
    level.queues = get_string(object, "spec.limited.limitResponse.type") == "Queue";
    level.shares = level.exempt ? 0 : int(std::clamp<int64_t>(get_int(object, "spec.limited.nominalConcurrencyShares", kShares), 0, 1'000'000));
    level.lendable_percent = int(std::clamp<int64_t>(get_int(object, "spec.limited.lendablePercent"), 0, 100));
    level.queue_length = int(std::clamp<int64_t>(get_int(object, "spec.limited.limitResponse.queuing.queueLengthLimit", kQueueLength), 1, 1'000'000));
    shares += level.shares;
    levels.push_back(std::move(level));
  }
  for (Level& level : levels)
    if (!level.exempt && shares > 0) level.seats = int(std::ceil(double(limits_.seats) * level.shares / double(shares)));

  auto schemas = std::make_shared<Schemas>();
  for (const json::value& object : rules.schemas) {
    Schema schema;
    schema.name = get_string(object, "metadata.name");
    schema.uid = uid_of(object, "FlowSchema");
    schema.level = get_string(object, "spec.priorityLevelConfiguration.name");
    schema.distinguisher = get_string(object, "spec.distinguisherMethod.type");
    schema.precedence = get_int(object, "spec.matchingPrecedence", kPrecedence);
    auto level = std::find_if(levels.begin(), levels.end(), [&](const Level& one) { return one.name == schema.level; });
    if (level == levels.end()) continue;  // it dangles
    schema.level_uid = level->uid;
    schema.exempt = level->exempt;
    for (const json::value& entry : get_array(object, "spec.rules")) {
      Rule rule;
      for (const json::value& subject : get_array(entry, "subjects")) {
        std::string kind(get_string(subject, "kind"));
        std::string of = kind == "User" ? "user" : kind == "Group" ? "group" : "serviceAccount";
        rule.subjects.push_back({kind, std::string(get_string(subject, of + ".name")), std::string(get_string(subject, of + ".namespace"))});
      }
      for (const json::value& one : get_array(entry, "resourceRules"))
        rule.resources.push_back({words(one, "verbs"), words(one, "apiGroups"), words(one, "resources"), words(one, "namespaces"), get_bool(one, "clusterScope")});
      for (const json::value& one : get_array(entry, "nonResourceRules")) rule.paths.push_back({words(one, "verbs"), words(one, "nonResourceURLs")});
      schema.rules.push_back(std::move(rule));
    }
    schemas->push_back(std::move(schema));
  }
  std::stable_sort(schemas->begin(), schemas->end(), [](const Schema& a, const Schema& b) {
    return a.precedence != b.precedence ? a.precedence < b.precedence : a.name < b.name;
  });

  std::lock_guard lock(mutex_);
  for (Level& now : levels_) {  // who runs and who waits stays, also in a level that is gone
    auto next = std::find_if(levels.begin(), levels.end(), [&](const Level& level) { return level.name == now.name; });
    if (next == levels.end()) {
      if (now.executing == 0 && now.waiting == 0) continue;
      next = levels.insert(levels.end(), Level());
      next->name = now.name, next->uid = now.uid, next->seats = 1;
    }
    next->executing = now.executing, next->waiting = now.waiting;
    next->dispatched = now.dispatched, next->rejected = now.rejected;
    next->flows = std::move(now.flows);
  }
  levels_ = std::move(levels);
  schemas_ = std::move(schemas);
  seat_those_who_wait();
}

Classified Fairness::classify(const User& user, const access::Attributes& attributes) const {
  std::shared_ptr<const Schemas> schemas;
  {
    std::lock_guard lock(mutex_);
    schemas = schemas_;
  }
  std::string resource = attributes.resource + (attributes.subresource.empty() ? "" : "/" + attributes.subresource);
  auto does_this = [&](const Rule& rule) {
    if (!attributes.is_resource)
      return std::any_of(rule.paths.begin(), rule.paths.end(), [&](const Rule::Paths& one) {
        return covers(one.verbs, attributes.verb) && covers_path(one.urls, attributes.path);
      });
    return std::any_of(rule.resources.begin(), rule.resources.end(), [&](const Rule::Resources& one) {
      bool here = attributes.ns.empty() ? one.cluster_scope : covers(one.namespaces, attributes.ns);
      return here && covers(one.verbs, attributes.verb) && covers(one.groups, attributes.group) && covers(one.resources, resource);
    });
  };
  for (const Schema& schema : *schemas) {
    bool matches = std::any_of(schema.rules.begin(), schema.rules.end(), [&](const Rule& rule) {
      auto is_him = [&](const Rule::Subject& subject) { return is_subject(subject.kind, subject.name, subject.ns, user); };
      return std::any_of(rule.subjects.begin(), rule.subjects.end(), is_him) && does_this(rule);
    });
    if (!matches) continue;
    std::string flow = schema.name;
    if (schema.distinguisher == "ByUser") flow += "/" + user.name;
    if (schema.distinguisher == "ByNamespace") flow += "/" + attributes.ns;
    return {schema.name, schema.level, schema.uid, schema.level_uid, std::move(flow), schema.exempt};
  }
  return {};  // no rule: not limited. The standard ones end with one that takes everybody.
}

Fairness::Level* Fairness::level_named(const std::string& name) {
  for (Level& level : levels_)
    if (level.name == name) return &level;
  return nullptr;
}

// Its own seats, and those that others may lend and do not use.
bool Fairness::has_room(const Level& level) const {
  if (level.executing < level.seats) return true;
  if (executing_ >= limits_.seats) return false;
  int lent = 0;
  for (const Level& other : levels_) {
    if (&other == &level) continue;
    int lendable = other.seats * other.lendable_percent / 100;
    lent += std::clamp(other.seats - other.executing, 0, lendable);
  }
  return level.executing < level.seats + lent;
}

// Under the lock. One of each flow, then the next of each.
void Fairness::seat_those_who_wait() {
  for (bool seated = true; std::exchange(seated, false);) {
    for (Level& level : levels_) {
      if (level.flows.empty() || !has_room(level)) continue;
      auto flow = level.flows.begin();
      Waiter* next = flow->second.front();
      flow->second.pop_front();
      if (flow->second.empty()) level.flows.erase(flow);
      else level.flows.splice(level.flows.end(), level.flows, flow);
      next->seated = true;
      level.waiting--, waiting_--;
      level.executing++, executing_++;
      level.dispatched++;
      next->turn.notify_one();
      seated = true;
    }
  }
}

void Fairness::leave(const std::string& name) {
  std::lock_guard lock(mutex_);
  if (Level* level = level_named(name)) level->executing--;
  executing_--;
  seat_those_who_wait();
}

Fairness::Seat::~Seat() {
  if (house_) house_->leave(level_);
}

Result<Fairness::Seat> Fairness::enter(const Classified& who) {
  if (who.exempt || who.level.empty()) return Seat();
  std::unique_lock lock(mutex_);
  Level* level = level_named(who.level);
  if (!level) return Seat();
  if (level->flows.empty() && has_room(*level)) {
    level->executing++, executing_++;
    level->dispatched++;
    return Seat(*this, who.level);
  }
  auto flow = std::find_if(level->flows.begin(), level->flows.end(), [&](const auto& one) { return one.first == who.flow; });
  size_t before = flow == level->flows.end() ? 0 : flow->second.size();
  bool waits = level->queues && waiting_ < limits_.waiting && int(before) < level->queue_length && int(before) < std::max(limits_.waiting / 2, 1);
  if (!waits) {
    level->rejected++;
    return come_back();
  }
  Waiter waiter;
  if (flow == level->flows.end()) flow = level->flows.insert(level->flows.end(), {who.flow, {}});
  flow->second.push_back(&waiter);
  level->waiting++, waiting_++;
  waiter.turn.wait_for(lock, limits_.patience, [&] { return waiter.seated; });
  if (waiter.seated) return Seat(*this, who.level);
  level = level_named(who.level);  // the rules may have changed meanwhile
  for (auto one = level->flows.begin(); one != level->flows.end(); ++one) {
    if (std::erase(one->second, &waiter) == 0) continue;
    if (one->second.empty()) level->flows.erase(one);
    break;
  }
  level->waiting--, waiting_--;
  level->rejected++;
  return come_back();
}

std::vector<Fairness::Count> Fairness::counts() const {
  std::lock_guard lock(mutex_);
  std::vector<Count> out;
  for (const Level& level : levels_) out.push_back({level.name, level.seats, level.executing, level.waiting, level.dispatched, level.rejected});
  return out;
}

}  // namespace coracle::api
