// SPDX-License-Identifier: Apache-2.0
// RoleIndex: roles and bindings as authorization needs them, by subject. It follows the engine by watches of its own that
// are emptied when somebody asks, so an answer never trails behind a write that was acknowledged, no request lists
// anything, and there is no thread.
//   engine ── watches ──▶ refresh ──▶ bindings by user, group, account; rules by role ──▶ visit
// Thread-safe. Source: Kubernetes "Using RBAC Authorization"; registry/rbac/validation (order and words).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/access/rules.h"
#include "daemon/admission/user.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "store/engine/engine.h"

namespace coracle::access {

struct RoleRef {
  std::string kind, name;
  auto operator<=>(const RoleRef&) const = default;
};

// A role that applies to a user, and the first of the bindings that give it. The pointers live as long as the call of the
// visitor.
struct Grant {
  const std::string& binding;  // name; of a RoleBinding name/namespace
  bool of_cluster;
  const RoleRef& role;
  const std::string& subject;  // Group "system:masters"
  const Rules* rules;          // nullptr: there is no such role
  std::string text() const;    // ClusterRoleBinding "a" of ClusterRole "b" to Group "c"
};

class RoleIndex {
 public:
  explicit RoleIndex(engine::Engine& engine);
  ~RoleIndex();

  // What is granted in the cluster first, then in `ns` (unless it is ""): to the user, then to each group. A role comes once for
  // each of them, however many bindings give it. False from `visitor` ends it. The visitor runs without the index's lock.
  void visit(const User& user, const std::string& ns, const std::function<bool(const Grant&)>& visitor) const;
  // The rules behind a roleRef. Errors: not_found, in Kubernetes' words.
  Result<Rules> rules_of(const RoleRef& role, const std::string& ns) const;

 private:
  struct State;
  mutable Guarded<std::unique_ptr<State>> state_;
  engine::Engine& engine_;
};

}  // namespace coracle::access
