// SPDX-License-Identifier: Apache-2.0
// See role_index.h.
#include "daemon/auth/role_index.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::auth {
namespace {

constexpr const Kind* kKinds[] = {&kRole, &kClusterRole, &kRoleBinding, &kClusterRoleBinding};

struct Subject {
  bool group = false;
  std::string name;  // of the user, as authenticated, or of the group
  std::string text;  // User "jane"
};

struct Binding {
  std::string name;
  bool of_cluster = false;
  RoleRef role;
  std::vector<Subject> subjects;
};

// A review may ask about somebody in a hundred thousand groups, each with thousands of roles. Other requests do not wait for all
// of them, and a group that is named again and again is looked up once.
constexpr size_t kLooksAtOnce = 1000;  // groups and roles, under one lock
// If a role or binding changes between two looks, all are looked up again, so often at most.
constexpr int kLooksAgainMax = 8;
std::vector<std::string_view> distinct(const std::vector<std::string>& groups) {
  constexpr size_t kFew = 16;
  if (groups.size() <= kFew) return {groups.begin(), groups.end()};
  std::vector<std::string_view> out;
  std::set<std::string_view> known;
  for (std::string_view group : groups)
    if (known.insert(group).second) out.push_back(group);
  return out;
}

Subject read_subject(view::Subject from, const std::string& ns) {
  std::string kind(from.kind()), name(from.name()), where(from.namespace_());
  if (kind == "Group") return {true, name, "Group " + coracle::quoted(std::string_view(name))};
  if (kind == "User") return {false, name, "User " + coracle::quoted(std::string_view(name))};
  if (where.empty()) where = ns;
  return {false, "system:serviceaccount:" + where + ":" + name,
          "ServiceAccount " + coracle::quoted(std::string_view(name + "/" + where))};
}

std::shared_ptr<const Binding> read_binding(const Object& object) {
  auto out = std::make_shared<Binding>();
  out->of_cluster = object.kind() == kClusterRoleBinding;
  out->name = out->of_cluster ? object.name() : object.name() + "/" + object.ns();
  view::RoleBinding binding(object);  // a ClusterRoleBinding has the same fields
  out->role = {std::string(binding.role_ref().kind()), std::string(binding.role_ref().name())};
  for (view::Subject subject : binding.subjects()) out->subjects.push_back(read_subject(subject, object.ns()));
  return out;
}

}  // namespace

std::string Grant::text() const {
  return std::string(of_cluster ? "ClusterRoleBinding " : "RoleBinding ") + coracle::quoted(std::string_view(binding)) + " of " +
         role.kind + " " + coracle::quoted(std::string_view(role.name)) + " to " + subject;
}

struct RoleIndex::State {
  template <typename T>
  using Named = std::map<std::string, T, std::less<>>;  // allows lookups without copying the name
  using SharedRules = std::shared_ptr<const Rules>;
  struct Applied {  // a binding, for one of its subjects
    std::shared_ptr<const Binding> binding;
    const Subject* subject = nullptr;
  };
  using Bindings =
      std::map<RoleRef, Named<Applied>>;  // of one subject: a role may be bound ten thousand times and is visited once
  struct Found {
    Applied applied;
    SharedRules rules;
  };
  struct Granted {  // in one scope; each role once
    std::vector<Found> all;
    std::set<std::pair<std::string_view, std::string_view>> roles;  // kind and name, in the bindings of `all`
  };

  std::array<std::unique_ptr<engine::Watcher>, std::size(kKinds)> watchers;
  Revision seen = 0;
  bool broken = true;
  uint64_t generation = 0;
  std::map<Key, std::shared_ptr<const Binding>> bindings;
  struct Scope {  // the contents of one namespace, or of the cluster
    Named<SharedRules> roles;
    Named<Bindings> of_users, of_groups;
    Named<Bindings>& of(const Subject& subject) { return subject.group ? of_groups : of_users; }
    bool empty() const { return roles.empty() && of_users.empty() && of_groups.empty(); }
  };
  Named<Scope> scopes;  // by namespace; "" for the cluster

  void put(const Object& object, bool gone);
  void unlink(const Key& key);
  void refresh(engine::Engine& engine);
  SharedRules find(const RoleRef& role, std::string_view ns) const;
  // Returns the number of roles that it looked at.
  size_t find_granted(std::string_view where, const Named<Bindings>& of_all, std::string_view who, Granted& to) const;
  void find_for_user(std::string_view where, const std::string& name, Granted& to) const;
  // Returns the number of groups that it looked up: not all, if there are many.
  size_t find_for_groups(std::string_view where, std::span<const std::string_view> groups, Granted& to) const;
};

void RoleIndex::State::unlink(const Key& key) {
  auto found = bindings.find(key);
  if (found == bindings.end()) return;
  auto scope = scopes.find(key.ns);
  for (const Subject& subject : found->second->subjects) {
    Named<Bindings>& of_all = scope->second.of(subject);
    auto of = of_all.find(subject.name);
    if (of == of_all.end()) continue;  // a duplicate subject
    if (auto role = of->second.find(found->second->role); role != of->second.end()) {
      role->second.erase(key.name);
      if (role->second.empty()) of->second.erase(role);
    }
    if (of->second.empty()) of_all.erase(of);
  }
  if (scope != scopes.end() && scope->second.empty()) scopes.erase(scope);
  bindings.erase(found);
}

void RoleIndex::State::put(const Object& object, bool gone) {
  ++generation;
  bool is_role = object.kind() == kRole || object.kind() == kClusterRole;
  if (!is_role) unlink(object.key());
  if (gone) {
    auto scope = scopes.find(object.ns());
    if (!is_role || scope == scopes.end()) return;
    scope->second.roles.erase(object.name());
    if (scope->second.empty()) scopes.erase(scope);
    return;
  }
  Scope& scope = scopes[object.ns()];
  if (is_role) {
    scope.roles[object.name()] = std::make_shared<const Rules>(read_rules(object.json()));
    return;
  }
  auto binding = read_binding(object);
  bindings[object.key()] = binding;
  for (const Subject& subject : binding->subjects)
    scope.of(subject)[subject.name][binding->role].try_emplace(object.name(), Applied{binding, &subject});
}

void RoleIndex::State::refresh(engine::Engine& engine) {
  if (!broken && engine.revision() == seen) return;
  for (bool again = true; again;) {
    again = false;
    if (broken) {
      bindings.clear(), scopes.clear(), ++generation;
      for (size_t i = 0; i < std::size(kKinds); ++i) {
        auto watcher = engine.watch(*kKinds[i], "", 0);
        if (!watcher) return log_error("auth", "roles cannot be watched: " + watcher.error().text());
        watchers[i] = *std::move(watcher);
      }
      broken = false;
    }
    for (auto& watcher : watchers)
      if (!drain(*watcher, [this](const Object& object, bool gone) { put(object, gone); }))
        again = broken = true;  // it fell too far behind: start again
  }
  seen = watchers[0]->progress();
  for (auto& watcher : watchers) seen = std::min(seen, watcher->progress());
}

RoleIndex::State::SharedRules RoleIndex::State::find(const RoleRef& role, std::string_view ns) const {
  auto scope = scopes.find(role.kind == "Role" ? ns : std::string_view());
  if (scope == scopes.end()) return nullptr;
  auto found = scope->second.roles.find(role.name);
  return found == scope->second.roles.end() ? nullptr : found->second;
}

size_t RoleIndex::State::find_granted(std::string_view where, const Named<Bindings>& of_all, std::string_view who,
                                      Granted& to) const {
  auto of = of_all.find(who);
  if (of == of_all.end()) return 0;
  for (const auto& [role, bindings] : of->second) {
    const Applied& applied = bindings.begin()->second;
    const RoleRef& kept = applied.binding->role;
    if (to.roles.emplace(kept.kind, kept.name).second) to.all.push_back({applied, find(role, where)});
  }
  return of->second.size();
}

void RoleIndex::State::find_for_user(std::string_view where, const std::string& name, Granted& to) const {
  if (auto scope = scopes.find(where); scope != scopes.end()) find_granted(where, scope->second.of_users, name, to);
}

size_t RoleIndex::State::find_for_groups(std::string_view where, std::span<const std::string_view> groups, Granted& to) const {
  auto scope = scopes.find(where);
  if (scope == scopes.end()) return groups.size();
  size_t taken = 0;
  for (size_t looks = 0; taken < groups.size() && looks < kLooksAtOnce; ++taken)
    looks += 1 + find_granted(where, scope->second.of_groups, groups[taken], to);
  return taken;
}

RoleIndex::RoleIndex(engine::Engine& engine) : state_(std::make_unique<State>()), engine_(engine) {}
RoleIndex::~RoleIndex() = default;

void RoleIndex::visit(const User& user, const std::string& ns, const std::function<bool(const Grant&)>& visitor) const {
  const std::vector<std::string_view> groups = distinct(user.groups);
  for (std::string_view where : {std::string_view(), std::string_view(ns)}) {
    State::Granted granted;
    std::span<const std::string_view> left = groups;
    uint64_t begun_at = 0;
    int begun = 0;
    bool begins = true;
    do {
      state_.with([&](std::unique_ptr<State>& state) {
        if (begins && begun == 0 && where.empty()) state->refresh(engine_);
        // A binding whose subject changes between two looks, from what is still to come to what was looked up, is not missed.
        if (!begins && state->generation != begun_at && begun <= kLooksAgainMax) begins = true;
        if (begins) {
          granted = {}, left = groups;
          begun_at = state->generation, ++begun;
          state->find_for_user(where, user.name, granted);
        }
        left = left.subspan(state->find_for_groups(where, left, granted));
      });
      begins = false;
    } while (!left.empty());
    for (const State::Found& one : granted.all) {  // without the lock, because there may be many rules
      const Binding& binding = *one.applied.binding;
      if (!visitor({binding.name, binding.of_cluster, binding.role, one.applied.subject->text, one.rules.get()})) return;
    }
    if (ns.empty()) return;
  }
}

uint64_t RoleIndex::generation() const {
  if (engine_.revision() == known_at_) return known_;  // one that is newer by now is as good
  return state_.with([&](std::unique_ptr<State>& state) {
    state->refresh(engine_);
    known_ = state->generation;
    known_at_ = state->seen;
    return state->generation;
  });
}

Result<Rules> RoleIndex::rules_of(const RoleRef& role, const std::string& ns) const {
  auto found = state_.with([&](std::unique_ptr<State>& state) {
    state->refresh(engine_);
    return state->find(role, ns);
  });
  if (!found) return not_found(role.kind == "Role" ? kRole : kClusterRole, role.name);
  return *found;
}

}  // namespace coracle::auth
