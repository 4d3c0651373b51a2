// SPDX-License-Identifier: Apache-2.0
// What the commands of set share: the object is changed here, and the difference is sent as a patch; a dry run prints the same
// result. set.cc has image, resources, serviceaccount and selector, set_env.cc env, set_subject.cc subject.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ctl/record.h"
#include "ctl/target.h"

namespace coracle::ctl {

struct SetFlags : TargetFlags {
  Recorder recorder;  // of commands that have --record: not of env and subject
  SetFlags() { field_manager = "kubectl-set"; }
  // All have --local.
  void add_to(Commands& commands, Command command) {
    TargetFlags::add_to(commands, command);
    command.add_flag("--local", local, "of the files, without asking the server");
  }
};

struct ChangeAll {
  const char* done;                                       // "image updated"
  std::function<Result<void>(json::value& object)> edit;  // changes the object
  bool tells_always = false;                              // also of an object that was not changed
  bool names_object = false;                              // in an error of `edit`, unless it is that a part is not found
  std::string resource_version = {};                      // the object must be at this version; "": at any
  const char* failing = "";                               // before what the server says of a patch that it refuses
};
// Changes the objects that the flags and `args` refer to. Returns the exit code. Errors: those of reading objects; bad_request.
Result<int> change_all(Commands& commands, const SetFlags& flags, const std::vector<std::string>& args, const ChangeAll& change);

void add_set_env(Commands& commands, Command set);
void add_set_subject(Commands& commands, Command set);

}  // namespace coracle::ctl
