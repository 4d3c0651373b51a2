// SPDX-License-Identifier: Apache-2.0
// Node authorizer: a kubelet's permissions: what it needs to run the pods that are bound to its node. The admission plugin
// NodeRestriction restricts its writes further. Source: Kubernetes "Using Node Authorization"; plugin/pkg/auth/authorizer/node
// (rules and texts).
#pragma once

#include <optional>
#include <string>

#include "daemon/auth/rules.h"
#include "daemon/registry/registry.h"
#include "store/object/user.h"

namespace coracle::auth {

struct NodeDecision {
  bool allowed = false;
  std::string reason;  // of a rejection; "" if there is none to report
};

// The name of the node that the user is: a member of system:nodes called system:node:<name>. nullopt: not a node. "": a node
// without a name.
std::optional<std::string> node_identity(const User& user);

class NodeAuthorizer {
 public:
  explicit NodeAuthorizer(registry::Registry& registry) : registry_(registry) {}
  // nullopt if the user is not a node. Reads the pods of one namespace or of one node if the decision depends on them.
  std::optional<NodeDecision> authorize(const User& user, const Attributes& asked) const;

 private:
  NodeDecision of_resource(const std::string& node, const Attributes& asked) const;
  // For one kind of resource, in each of these: what the node may do with it.
  NodeDecision if_related(const std::string& node, const Attributes& asked) const;
  NodeDecision get_if_related(const std::string& node, const Attributes& asked) const;
  NodeDecision read_if_related(const std::string& node, const Attributes& asked) const;
  NodeDecision of_claim(const std::string& node, const Attributes& asked) const;
  NodeDecision of_attachment(const std::string& node, const Attributes& asked) const;
  NodeDecision of_account(const std::string& node, const Attributes& asked) const;
  NodeDecision of_lease(const std::string& node, const Attributes& asked) const;
  NodeDecision of_csi_node(const std::string& node, const Attributes& asked) const;
  NodeDecision of_resource_slice(const std::string& node, const Attributes& asked) const;
  NodeDecision of_node(const std::string& node, const Attributes& asked) const;
  NodeDecision of_pod(const std::string& node, const Attributes& asked) const;
  bool related(const std::string& node, const Attributes& asked) const;
  registry::Registry& registry_;
};

// The permissions of every node that do not depend on its pods.
const Rules& node_rules();

}  // namespace coracle::auth
