// SPDX-License-Identifier: Apache-2.0
// What create, run and expose share: the flags of a new object, sending it, saying what became of it.
#pragma once

#include "ctl/command.h"

namespace coracle::ctl {

struct CreateFlags {
  FileFlags files;
  std::string output, field_manager = "kubectl-create", validate = "strict";
  DryRun dry_run = DryRun::none;
  bool save_config = false;

  void add_to(Commands& commands, Command command);
  Query query() const;  // of a request that writes
};

// Sends one new object, in the namespace in force when it names none, unless it is only tried. Gives it as it is now.
Result<json::value> send_new(Session& session, const CreateFlags& flags, json::value object, const schema::KindInfo& kind);
// Both.
Result<int> post_made(Commands& commands, const CreateFlags& flags, json::value object);

}  // namespace coracle::ctl
