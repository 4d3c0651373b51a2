// SPDX-License-Identifier: Apache-2.0
// What apply and diff share: applying one object.
#pragma once

#include <string>

#include "ctl/command.h"
#include "ctl/create.h"
#include "ctl/deletion.h"
#include "ctl/prune.h"
#include "ctl/record.h"

namespace coracle::ctl {

struct ApplyFlags {
  FileFlags files;
  Output output;
  std::string field_manager = "kubectl-client-side-apply", validate = "strict", selector, subresource;
  DryRun dry_run = DryRun::none;
  bool server_side = false, force_conflicts = false;
  bool overwrite = true;       // values that others have changed
  bool openapi_patch = true;   // the types' own tables are used in any case
  bool all = false;            // with --prune: no selector is meant
  std::string apply_set;       // with --prune: the parent of the set that is pruned
  bool manager_given = false;  // by --field-manager
  bool quiet = false;          // for diff: no warnings about the live object, and fields keep their managers
  DeletionFlags deletion;
  PruneFlags prune;
  Recorder recorder;

  std::string manager() const;
};

struct Applied {
  json::value object;
  std::string what;  // "created", "configured", "unchanged", "serverside-applied"
};

// Brings one object to what the document says. Errors: invalid for a document without a name; conflict; the server's, of
// client-side apply with the file that it is about, unless `flags` are quiet.
Result<Applied> apply_one(Session& session, const ApplyFlags& flags, const Document& document, const std::string& ns);

void warn_of_deletion(const std::string& name);  // of an object that is going, and yet would be changed

void add_diff(Commands& commands);
void add_last_applied(Commands& commands, Command apply);  // view-last-applied, set-last-applied, edit-last-applied

}  // namespace coracle::ctl
