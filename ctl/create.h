// SPDX-License-Identifier: Apache-2.0
// What create, run and expose share: the flags for a new object, the request that creates it, and the output about it.
// create.cc has create -f, replace.cc replace; create_kinds.cc, create_rbac.cc and create_token.cc have the subcommands of
// create.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ctl/command.h"
#include "ctl/record.h"
#include "ctl/target.h"

namespace coracle::ctl {

struct CreateFlags {
  FileFlags files;
  Output output;
  std::string field_manager = "kubectl-create", validate = "strict";
  DryRun dry_run = DryRun::none;
  bool save_config = false;
  Recorder recorder;  // of commands that have --record: not of the subcommands of create

  void add_to(Commands& commands, Command command);
  // As run, expose and autoscale have it: what --dry-run=client shows does not remember itself.
  void save_only_what_is_sent() { save_config = save_config && dry_run != DryRun::client; }
  Query query() const;         // query parameters of a request that writes
  Result<void> check() const;  // Errors: bad_request for another --validate
};
// Creates one object. An object without a namespace goes to the current one. With --dry-run=client nothing is sent. Returns the
// object as the server stored it, or as it would be sent. Errors: the server's.
Result<json::value> send_new(Session& session, const CreateFlags& flags, json::value object, const schema::KindInfo& kind);
// Creates the object with send_new() and prints the outcome. Returns the exit code. An error of the server begins with `failing`,
// as kubectl's does for most kinds.
Result<int> post_made(Commands& commands, const CreateFlags& flags, json::value object, const std::string& failing = {});

// ---- files ----

using ActOnDocument = std::function<Result<void>(Session&, Document&)>;
// Does `act` to each object of the files. Failures are printed at the end, and the other objects are processed all the same.
// Returns the exit code. Errors: bad_request if there is no object, but for "replace".
// With a selector (-l), only to the objects that it matches.
Result<int> each_document(Commands& commands, const FileFlags& files, const std::string& verb, const ActOnDocument& act,
                          const std::string& selector = {});
// Sends the file to a path as it is. Errors: bad_request; the server's.
Result<int> send_raw(Commands& commands, const CreateFlags& flags, const char* method, const std::string& path);

// ---- subcommands of create ----

struct NewObjectFlags : CreateFlags {
  std::vector<std::string> names;
  std::vector<Flag> required;
};
// Makes the object of that name. It may refer to the flags by a plain pointer: the command owns them. Errors: bad_request and
// what else can go wrong.
using MakeObject = std::function<Result<json::value>(const std::string& name)>;
// Gives `command` the argument NAME and the flags of a new object. When it runs, it makes the object and creates it.
void add_new_object(Commands& commands, Command command, const std::shared_ptr<NewObjectFlags>& flags, std::string failing,
                    MakeObject make);
// The argument NAME. Errors: bad_request unless there is one.
Result<std::string> only_name(Command command, const std::vector<std::string>& names);
// Errors: bad_request, with the flags that the line lacks.
Result<void> require_flags(const std::vector<Flag>& flags);

void add_create_kinds(Commands& commands, Command create);
void add_create_rbac(Commands& commands, Command create);  // role, clusterrole, rolebinding, clusterrolebinding
void add_create_token(Commands& commands, Command create);
void add_replace(Commands& commands);

}  // namespace coracle::ctl
