// SPDX-License-Identifier: Apache-2.0
// What edit, set, scale and rollout share: finding the objects to change (by name, file, selector or --all) and patching them.
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
  std::string selector, field_selector, field_manager;
  Output output;
  DryRun dry_run = DryRun::none;
  bool all = false, overwrite = false, local = false;
  int64_t chunk_size = 0;        // of lists; see paged_list.h
  std::string field_validation;  // "Strict", "Warn" or "Ignore" for patches; "": the server's default

  void add_to(Commands& commands, Command command);
};

// What --validate means to the server. Errors: bad_request, in kubectl's words.
Result<std::string> field_validation_of(const std::string& validate);

struct Live {
  const schema::KindInfo* kind;
  std::string ns, name;
  json::value object;
};

// "deployments.apps \"web\"", as edit names an object.
std::string resource_name(const Live& live);

struct Targets {
  std::vector<Live> found;
  std::vector<Error> missing;  // one for each object that could not be read; the others are still processed
};

// The objects that the arguments, files, selector or --all refer to. With `any`, a kind without a name means all its objects.
// With --local, objects are taken from the files and the server is not used. Errors: bad_request if no object is named, or if
// what is given contradicts itself (selection.h); errors of reading files and lists.
Result<Targets> targets_of(Session& session, const TargetFlags& flags, const std::vector<std::string>& args, bool any = false,
                           bool all_namespaces = false);

// True if the arguments or files refer to one object by its name.
bool names_one(const TargetFlags& flags, const std::vector<std::string>& args);
// The command's session. With --local none is needed: then it is one that reaches no server if there is no kubeconfig.
Result<Session*> target_session(Commands& commands, const TargetFlags& flags);

// Calls `act` for each object, as kubectl does: a failure does not stop the others. Returns the exit code after printing the
// errors. Errors: if there is exactly one failure, it is returned instead.
Result<int> act_on(Targets targets, const std::function<Result<void>(const Live&)>& act);

// Sends the patch and returns the object as the server stored it. With --dry-run=client, applies the patch locally instead.
// Errors: the server's; those of a patch that cannot be applied.
Result<json::value> send_patch(Session& session, const TargetFlags& flags, const Live& live, const json::value& patch,
                               const char* type, std::string_view subresource = {});
// Applies a patch of that content type to `live` without a server. Pure. Errors: those of a patch that cannot be applied.
Result<json::value> patched_here(const Live& live, const json::value& patch, std::string_view type);
void add_label(Commands& commands);  // label, annotate
void add_patch(Commands& commands);
void print_done(const TargetFlags& flags, const Live& live, json::value object, std::string_view what);

}  // namespace coracle::ctl
