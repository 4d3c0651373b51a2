// SPDX-License-Identifier: Apache-2.0
// See role_index.h.
#include "daemon/access/role_index.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::access {
namespace {

constexpr const Kind* kKinds[] = {&kRole, &kClusterRole, &kRoleBinding, &kClusterRoleBinding};

struct Subject {
  std::string key;   // what a user is looked up by: "u:jane", "g:ops"
  std::string text;  // User "jane"
};

struct Binding {
  std::string name;
  bool of_cluster = false;
  RoleRef role;
  std::vector<Subject> subjects;
};

Subject read_subject(const json::value& from, const std::string& ns) {
  std::string kind(get_string(from, "kind")), name(get_string(from, "name")), where(get_string(from, "namespace"));
  if (kind == "Group") return {"g:" + name, "Group " + coracle::quoted(std::string_view(name))};
  if (kind == "User") return {"u:" + name, "User " + coracle::quoted(std::string_view(name))};
  if (where.empty()) where = ns;
  return {"u:system:serviceaccount:" + where + ":" + name,
          "ServiceAccount " + coracle::quoted(std::string_view(name + "/" + where))};
}

std::shared_ptr<const Binding> read_binding(const Object& object) {
  auto out = std::make_shared<Binding>();
  out->of_cluster = object.kind() == kClusterRoleBinding;
  out->name = out->of_cluster ? object.name() : object.name() + "/" + object.ns();
  out->role = {std::string(get_string(object.json(), "roleRef.kind")), std::string(get_string(object.json(), "roleRef.name"))};
  for (const json::value& subject : get_array(object.json(), "subjects"))
    out->subjects.push_back(read_subject(subject, object.ns()));
  return out;
}

}  // namespace

std::string Grant::text() const {
  return std::string(of_cluster ? "ClusterRoleBinding " : "RoleBinding ") + coracle::quoted(std::string_view(binding)) + " of " +
         role.kind + " " + coracle::quoted(std::string_view(role.name)) + " to " + subject;
}

struct RoleIndex::State {
  std::array<std::unique_ptr<engine::Watcher>, std::size(kKinds)> watchers;
  Revision seen = 0;
  bool broken = true;
  std::map<Key, Rules> roles;  // ClusterRoles have no namespace
  std::map<Key, std::shared_ptr<const Binding>> bindings;
  // namespace ("" the cluster's) and subject → bindings, each once, in the order of their names
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::shared_ptr<const Binding>>> by_subject;

  void put(const Object& object, bool gone);
  void unlink(const Key& key);
  void refresh(engine::Engine& engine);
  bool drain(engine::Watcher& watcher);
  const Rules* find(const RoleRef& role, const std::string& ns) const;
};

void RoleIndex::State::unlink(const Key& key) {
  auto found = bindings.find(key);
  if (found == bindings.end()) return;
  for (const Subject& subject : found->second->subjects) {
    auto of = by_subject.find({key.ns, subject.key});
    if (of == by_subject.end()) continue;
    of->second.erase(key.name);
    if (of->second.empty()) by_subject.erase(of);
  }
  bindings.erase(found);
}

void RoleIndex::State::put(const Object& object, bool gone) {
  bool is_role = object.kind() == kRole || object.kind() == kClusterRole;
  if (is_role && gone) roles.erase(object.key());
  else if (is_role) roles[object.key()] = read_rules(object.json());
  if (is_role) return;
  unlink(object.key());
  if (gone) return;
  auto binding = read_binding(object);
  bindings[object.key()] = binding;
  for (const Subject& subject : binding->subjects) by_subject[{object.ns(), subject.key}][object.name()] = binding;
}

// False: the watch has ended.
bool RoleIndex::State::drain(engine::Watcher& watcher) {
  for (;;) {
    auto event = watcher.take({}, {});
    if (!event) return false;
    if (!*event) return true;
    if ((*event)->object) put(*(*event)->object, (*event)->type == engine::EventType::deleted);
  }
}

void RoleIndex::State::refresh(engine::Engine& engine) {
  if (!broken && engine.revision() == seen) return;
  for (bool again = true; again;) {
    again = false;
    if (broken) {
      roles.clear(), bindings.clear(), by_subject.clear();
      for (size_t i = 0; i < std::size(kKinds); ++i) {
        auto watcher = engine.watch(*kKinds[i], "", 0);
        if (!watcher) return log_error("access", "roles cannot be watched: " + watcher.error().text());
        watchers[i] = *std::move(watcher);
      }
      broken = false;
    }
    for (auto& watcher : watchers)
      if (!drain(*watcher)) again = broken = true;  // it fell too far behind: from the beginning
  }
  seen = watchers[0]->progress();
  for (auto& watcher : watchers) seen = std::min(seen, watcher->progress());
}

const Rules* RoleIndex::State::find(const RoleRef& role, const std::string& ns) const {
  auto found = roles.find({role.kind == "Role" ? ns : std::string(), role.name});
  return found == roles.end() ? nullptr : &found->second;
}

RoleIndex::RoleIndex(engine::Engine& engine) : state_(std::make_unique<State>()), engine_(engine) {}
RoleIndex::~RoleIndex() = default;

void RoleIndex::visit(const User& user, const std::string& ns, const std::function<bool(const Grant&)>& visitor) const {
  std::vector<std::string> keys{"u:" + user.name};
  for (const std::string& group : user.groups) keys.push_back("g:" + group);
  state_.with([&](std::unique_ptr<State>& state) {
    state->refresh(engine_);
    for (const std::string& where : ns.empty() ? std::vector<std::string>{""} : std::vector<std::string>{"", ns}) {
      for (const std::string& key : keys) {
        auto of = state->by_subject.find({where, key});
        if (of == state->by_subject.end()) continue;
        for (const auto& [name, binding] : of->second) {
          auto subject =
              std::find_if(binding->subjects.begin(), binding->subjects.end(), [&](const Subject& s) { return s.key == key; });
          if (!visitor({binding->name, binding->of_cluster, binding->role, subject->text, state->find(binding->role, where)}))
            return;
        }
      }
    }
  });
}

Result<Rules> RoleIndex::rules_of(const RoleRef& role, const std::string& ns) const {
  auto found = state_.with([&](std::unique_ptr<State>& state) -> std::optional<Rules> {
    state->refresh(engine_);
    const Rules* rules = state->find(role, ns);
    return rules ? std::optional(*rules) : std::nullopt;
  });
  if (!found) return not_found(role.kind == "Role" ? kRole : kClusterRole, role.name);
  return *std::move(found);
}

}  // namespace coracle::access
