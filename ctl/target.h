// SPDX-License-Identifier: Apache-2.0
// The objects that a command changes: by name, file, selector or all of a kind, as they are now; and sending each its patch.
// What edit, set, scale and rollout share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ctl/command.h"

namespace coracle::ctl {

constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";
constexpr const char* kJsonPatch = "application/json-patch+json";

struct TargetFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string selector, output, field_manager;
  DryRun dry_run = DryRun::none;
  bool all = false, overwrite = false, local = false;

  void add_to(Commands& commands, Command command);
};

struct Live {
  const schema::KindInfo* kind;
  std::string ns, name;
  json::value object;
};

struct Targets {
  std::vector<Live> found;
  std::vector<Error> missing;  // what was named and could not be read: the others still get their turn
};

// What args (or files, a selector, --all) name. `any`: a kind alone means all of it. With --local, files as they are. Errors:
// bad_request where nothing or no name is given; of reading files and lists.
Result<Targets> targets_of(Session& session, const TargetFlags& flags, const std::vector<std::string>& args, bool any = false,
                           bool all_namespaces = false);

// Does `act` to each. What fails is told at the end and the others still get their turn, as kubectl has it. Gives the exit code.
// Errors: the only one.
Result<int> act_on(Targets targets, const std::function<Result<void>(const Live&)>& act);

// The object after `patch`: as the server has it or, with --dry-run=client, as it would be by what we see of it. Errors: the
// server's; of a patch that cannot be applied.
Result<json::value> send_patch(Session& session, const TargetFlags& flags, const Live& live, const json::value& patch,
                               const char* type, std::string_view subresource = {});
// The same without a server: `live` with `patch` of that content type. Pure. Errors: as those of patches.
Result<json::value> patched_here(const Live& live, const json::value& patch, std::string_view type);
void print_done(const TargetFlags& flags, const Live& live, json::value object, std::string_view what);

}  // namespace coracle::ctl
