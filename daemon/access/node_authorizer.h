// SPDX-License-Identifier: Apache-2.0
// Node authorizer: what a node's kubelet may, which is to serve the pods that are bound to it and nothing beyond. What it
// writes is narrowed down further by the admission of NodeRestriction.
// Source: Kubernetes "Using Node Authorization"; plugin/pkg/auth/authorizer/node (rules and words).
#pragma once

#include <optional>
#include <string>

#include "daemon/access/rules.h"
#include "daemon/admission/user.h"
#include "daemon/registry/registry.h"

namespace coracle::access {

struct Opinion {
  bool allowed = false;
  std::string reason;  // why not, "" when there is nothing to say
};

// The node that a user is: in system:nodes and called system:node:<name>. Nothing: no node. "": a node without a name.
std::optional<std::string> node_identity(const User& user);

class NodeAuthorizer {
 public:
  explicit NodeAuthorizer(registry::Registry& registry) : registry_(registry) {}
  // Nothing: not a node, nothing to say. Reads the pods of one namespace, or of one node, where the answer depends on them.
  std::optional<Opinion> authorize(const User& user, const Attributes& asked) const;

 private:
  Opinion of_resource(const std::string& node, const Attributes& asked) const;
  bool related(const std::string& node, const Attributes& asked) const;
  registry::Registry& registry_;
};

// What every node may, beside what depends on its pods.
const Rules& node_rules();

}  // namespace coracle::access
