// SPDX-License-Identifier: Apache-2.0
// patch: changes fields of objects, at the server or in files. Source: kubectl pkg/cmd/patch.
#include "store/object/patch.h"

#include <fstream>
#include <map>

#include "ctl/flag_values.h"
#include "ctl/record.h"
#include "ctl/target.h"
#include "runtime/base/read_rest.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

struct PatchFlags : TargetFlags {
  std::string patch, file, type = "strategic", subresource;
  Recorder recorder;
};

const std::map<std::string, const char*>& patch_types() {
  static const std::map<std::string, const char*> all = {
      {"strategic", kStrategicPatch}, {"merge", kMergePatch}, {"json", kJsonPatch}};
  return all;
}

Result<void> check_patch_flags(const PatchFlags& flags) {
  if (!flags.patch.empty() && !flags.file.empty())
    return Error(Code::bad_request, "cannot specify --patch and --patch-file together");
  if (flags.patch.empty() && flags.file.empty())
    return Error(Code::bad_request, "must specify --patch or --patch-file containing the contents of the patch");
  if (flags.local && !flags.args.empty()) return Error(Code::bad_request, "cannot specify --local and server resources");
  if (flags.local && flags.dry_run == DryRun::server)
    return Error(Code::bad_request, "cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
  if (!flags.type.empty() && !patch_types().contains(to_lower(flags.type)))
    return Error(Code::bad_request, "--type must be one of [json merge strategic], not " + coracle::quoted(flags.type));
  return {};
}

Result<json::value> read_patch(const PatchFlags& flags) {
  std::string text = flags.patch;
  if (!flags.file.empty()) {
    std::ifstream in(flags.file);
    if (!in) return Error(Code::not_found, "unable to read patch file: open " + flags.file + ": " + errno_text(errno));
    text = TRY(read_rest(in, flags.file).wrap("unable to read patch file"));
  }
  std::vector<json::value> parsed = TRY(parse_yaml(text).wrap("unable to parse " + coracle::quoted(text)));
  if (parsed.size() != 1) return Error(Code::bad_request, "unable to parse " + coracle::quoted(text) + ": expected one document");
  return std::move(parsed.front());
}

// A subresource may be of another kind: "scale.autoscaling/web patched".
void print_patched(const PatchFlags& flags, const Live& live, json::value object, const std::string& what) {
  std::string_view kind = kind_in(object), api_version = api_version_in(object);
  bool is_message = flags.output.empty() || flags.output == "name";
  if (!is_message || kind.empty() || kind == live.kind->kind.kind) return print_done(flags, live, std::move(object), what);
  std::string group(api_version.substr(0, api_version.find('/') == api_version.npos ? 0 : api_version.find('/')));
  out(to_lower(kind) + (group.empty() ? "" : "." + group) + "/" + live.name +
      (flags.output.empty() ? " " + what + dry_run_note(flags.dry_run) : "") + "\n");
}

Result<int> run_patch(Commands& commands, const PatchFlags& flags) {
  TRY(check_patch_flags(flags));
  const char* type = flags.type.empty() ? kStrategicPatch : patch_types().at(to_lower(flags.type));
  json::value patch = TRY(read_patch(flags));
  Session* session = TRY(target_session(commands, flags));
  Targets targets = TRY(targets_of(*session, flags, flags.args));
  if (targets.found.empty() && targets.missing.empty()) return Error(Code::not_found, "no objects passed to patch");
  return act_on(std::move(targets), [&](const Live& found) -> Result<void> {
    Live live = found;
    if (!flags.subresource.empty() && !flags.local)
      live.object = TRY(session->json({.path = session->path(*live.kind, live.ns, live.name, flags.subresource)}));
    auto patched =
        flags.local ? patched_here(live, patch, type) : send_patch(*session, flags, live, patch, type, flags.subresource);
    json::value object = TRY(std::move(patched));
    bool same = json_equal(object, live.object);                                     // a dry run leaves the revision unchanged
    if (flags.recorder.wanted() && !flags.local && flags.dry_run != DryRun::client)  // as kubectl: it was patched in any case
      if (auto recorded = send_patch(*session, flags, live, flags.recorder.patch(), kMergePatch, flags.subresource))
        object = *std::move(recorded);
    print_patched(flags, live, std::move(object), same ? "patched (no change)" : "patched");
    return {};
  });
}

}  // namespace

void add_patch(Commands& commands) {
  auto flags = std::make_shared<PatchFlags>();
  flags->field_manager = "kubectl-patch";
  Command patch = commands.add("patch", "Change fields of objects");
  flags->add_to(commands, patch);
  patch.add_option("-p,--patch", flags->patch, "the patch, JSON or YAML");
  patch.add_option("--patch-file", flags->file, "a file with the patch");
  patch.add_option("--type", flags->type, "strategic, merge or json");
  patch.add_option("--subresource", flags->subresource, "status, scale or resize");
  patch.add_flag("--local", flags->local, "change what the files say, without asking the server");
  flags->recorder.add_to(commands, patch);
  commands.on(patch, [&commands, flags] { return run_patch(commands, *flags); });
}

}  // namespace coracle::ctl
