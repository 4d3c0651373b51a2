// SPDX-License-Identifier: Apache-2.0
// What create, run and expose share: the flags for a new object, the request that creates it, and the output about it.
#pragma once

#include "ctl/command.h"

namespace coracle::ctl {

struct CreateFlags {
  FileFlags files;
  Output output;
  std::string field_manager = "kubectl-create", validate = "strict";
  DryRun dry_run = DryRun::none;
  bool save_config = false;

  void add_to(Commands& commands, Command command);
  Query query() const;  // query parameters of a request that writes
};

// Creates one object. An object without a namespace goes to the current one. With --dry-run=client nothing is sent. Returns the
// object as the server stored it, or as it would be sent. Errors: the server's.
Result<json::value> send_new(Session& session, const CreateFlags& flags, json::value object, const schema::KindInfo& kind);
// Creates the object with send_new() and prints the outcome. Returns the exit code.
Result<int> post_made(Commands& commands, const CreateFlags& flags, json::value object);

}  // namespace coracle::ctl
