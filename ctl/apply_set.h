// SPDX-License-Identifier: Apache-2.0
// --applyset of apply: what it may prune stands in an object on the server, the set's parent: the kinds and the namespaces of the
// members. Each member has a label with the parent's ID. So no kind is forgotten and none looked through in vain, and objects of
// server-side apply are pruned too. As kubectl, we have it where the environment says KUBECTL_APPLYSET=true, and each of the two
// goes on with sets of the other.
//   begin()      parent ──▶ what it has had ──┬─▶ PATCH: all of that, and what the files have
//   prunable()   members, by kind and place ──┘  without those that were applied
//   finish()     PATCH: what the files have
// Source: KEP-3659; kubectl pkg/cmd/apply/applyset.go, applyset_pruner.go.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ctl/prune.h"

namespace coracle::ctl {

class ApplySet {
 public:
  static bool is_enabled();

  // Of "[RESOURCE][.GROUP]/NAME", or of "NAME" of a Secret, in the namespace that the line gives. Errors: bad_request.
  static Result<ApplySet> named(const Session& session, const std::string& reference);

  // Why the parent cannot be one.
  std::vector<Error> faults() const;
  std::string id() const;  // the value of the members' label

  // Makes the object a member, as which it is to be applied to `ns`. Errors: bad_request if it is marked already.
  Result<void> add(const schema::KindInfo& kind, const std::string& ns, json::value& object);

  // Reads the parent, and writes it before anything is applied: whatever breaks off then, the set knows its members. In the
  // client's dry run nothing is written. Errors: conflict if the parent is not one, or another tool's; the server's.
  Result<void> begin(Session& session, DryRun dry_run, const std::string& field_validation);
  // The members that were not `visited`, by their UIDs. Errors: the server's; invalid for a parent with an empty namespace.
  Result<std::vector<Prunable>> prunable(Session& session, const std::set<std::string>& visited) const;
  // Errors: the server's.
  Result<void> finish(Session& session, DryRun dry_run, const std::string& field_validation) const;

 private:
  using Kinds = std::map<std::string, const schema::KindInfo*>;  // by "Deployment.apps"
  struct Content {
    Kinds kinds;
    std::set<std::string> namespaces;
  };
  ApplySet(const schema::KindInfo& kind, std::string name) : kind_(&kind), name_(std::move(name)) {}
  std::string shown() const;  // "secrets./web"
  Result<void> read_parent(const json::value& parent);
  json::value parent_with(const Content& content) const;
  Result<void> write_parent(Session& session, const Content& content, DryRun dry_run, const std::string& field_validation) const;
  Result<void> send_parent(Session& session, const json::value& parent, const std::string& field_validation, bool force) const;

  const schema::KindInfo* kind_;
  std::string name_, ns_;
  Content before_, applied_;
};

// "pruning Deployment.apps web/front": what failed.
std::string pruning_of_member(const Prunable& object);

}  // namespace coracle::ctl
