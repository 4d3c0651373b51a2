// SPDX-License-Identifier: Apache-2.0
// --prune of apply and diff: objects that an earlier apply created and the files no longer have.
// Source: kubectl pkg/cmd/apply/prune.go, pkg/util/prune, pkg/cmd/diff/prune.go.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ctl/command.h"
#include "ctl/deletion.h"
#include "ctl/discovery.h"

namespace coracle::ctl {

struct PruneFlags {
  bool prune = false;
  std::vector<std::string> allowlist;  // "core/v1/ConfigMap": the kinds to look at, instead of the usual ones

  void add_to(Command command);
};

struct Visited {  // what the files have
  std::set<std::string> uids, namespaces;
};

struct Prunable {
  ApiResource resource;
  json::value object;
};

// The kinds to look at. Errors: bad_request for a malformed one; not_found for one that the server does not have.
Result<std::vector<ApiResource>> prune_resources_of(Session& session, const std::vector<std::string>& allowlist);
// The objects of these kinds with the labels, in the visited namespaces or in none, that apply created and that were not visited.
// Errors: the server's.
Result<std::vector<Prunable>> prunable_objects(Session& session, const std::vector<ApiResource>& resources,
                                               const std::string& selector, const Visited& visited);
// What is being done with the object, for errors: "error pruning namespaced object /v1, Kind=ConfigMap".
std::string pruning_of_kind(const Prunable& object);
// Deletes them, or only says so in a dry run. Errors: the first one, behind what `doing` says of its object.
Result<void> prune_objects(Session& session, const DeletionFlags& flags, DryRun dry_run, const Output& output,
                           const std::vector<Prunable>& objects, std::string (*doing)(const Prunable&));

// The resource of a kind that we know.
ApiResource resource_of(const schema::KindInfo& info);

}  // namespace coracle::ctl
