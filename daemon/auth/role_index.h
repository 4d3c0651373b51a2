// SPDX-License-Identifier: Apache-2.0
// RoleIndex: roles and bindings, indexed by subject for authorization. It has watches on the engine and processes their events on
// each query. So a decision reflects every acknowledged write, no request lists objects, and there is no thread.
//   engine ── watches ──▶ refresh ──▶ bindings by user, group, account; rules by role ──▶ visit
// Thread-safe. Source: Kubernetes "Using RBAC Authorization"; registry/rbac/validation (order and texts).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "daemon/auth/rules.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "store/engine/engine.h"
#include "store/object/user.h"

namespace coracle::auth {

struct RoleRef {
  std::string kind, name;
  auto operator<=>(const RoleRef&) const = default;
};

// A role that applies to a user, and the first binding that grants it. The references are valid during the visitor's call.
struct Grant {
  const std::string& binding;  // its name; of a RoleBinding name/namespace
  bool of_cluster;
  const RoleRef& role;
  const std::string& subject;  // for example Group "system:masters"
  const Rules* rules;          // nullptr: the role does not exist
  std::string text() const;    // ClusterRoleBinding "a" of ClusterRole "b" to Group "c"
};

class RoleIndex {
 public:
  explicit RoleIndex(engine::Engine& engine);
  ~RoleIndex();

  // Visits the grants of the cluster first, then those of `ns` (unless it is ""): for the user, then for each group. A role is
  // visited once in each of the two, even if several bindings grant it, to the user and to groups. The visit ends when `visitor`
  // returns false. The visitor is called without the index's lock.
  void visit(const User& user, const std::string& ns, const std::function<bool(const Grant&)>& visitor) const;
  // A number that is greater after each change of a role or binding: all acknowledged writes are in it. What visit finds after
  // this call is at least as new.
  uint64_t generation() const;
  // The rules of a roleRef. Errors: not_found, with Kubernetes' text.
  Result<Rules> rules_of(const RoleRef& role, const std::string& ns) const;

 private:
  struct State;
  mutable Guarded<std::unique_ptr<State>> state_;
  // The generation at a revision of the store, readable without the lock: nearly every request asks, and few find a new one.
  mutable std::atomic<Revision> known_at_ = 0;
  mutable std::atomic<uint64_t> known_ = 0;
  engine::Engine& engine_;
};

}  // namespace coracle::auth
