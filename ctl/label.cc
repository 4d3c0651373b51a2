// SPDX-License-Identifier: Apache-2.0
// label and annotate. Source: kubectl pkg/cmd/label, pkg/cmd/annotate.
#include <algorithm>

#include "ctl/edit.h"
#include "ctl/escape.h"
#include "ctl/flag_values.h"
#include "ctl/jsonpath.h"
#include "ctl/record.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/patch.h"

namespace coracle::ctl {
namespace {

struct MarkFlags : TargetFlags {
  std::string field;  // of the metadata: "labels", "annotations"
  std::string resource_version;
  bool all_namespaces = false, list = false;
  Recorder recorder;

  bool of_labels() const { return field == "labels"; }
  std::string what() const { return of_labels() ? "label" : "annotation"; }
};

Result<void> check_changes(const MarkFlags& flags, const std::vector<Change>& changes) {
  for (const auto& change : changes) {
    if (!flags.of_labels() || !change.value) continue;
    std::string spec = change.key + "=" + *change.value;
    if (change.value->find('=') != std::string::npos) return Error(Code::bad_request, "invalid label spec: " + spec);
    if (std::string fault = fault_of_label(*change.value); !fault.empty())
      return Error(Code::bad_request, "invalid label value: " + coracle::quoted(spec) + ": " + fault);
  }
  std::vector<std::string> both = contradictions_of(changes);
  if (both.empty()) return {};
  return Error(Code::bad_request,
               flags.of_labels()
                   ? "can not both modify and remove a label in the same command"
                   : "can not both modify and remove the following annotation(s) in the same command: " + join(both, ", "));
}

Result<void> check_mark_flags(const MarkFlags& flags, const std::vector<std::string>& objects,
                              const std::vector<Change>& changes) {
  if (flags.list && !flags.output.empty()) return Error(Code::bad_request, "--list and --output may not be specified together");
  for (auto [name, value] : {std::pair{"selector", &flags.selector}, std::pair{"field-selector", &flags.field_selector}})
    if (flags.all && !value->empty())
      return Error(Code::bad_request, "cannot set --all and --" + std::string(name) + " at the same time");
  if (flags.local && flags.dry_run == DryRun::server)
    return Error(Code::bad_request, "cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
  const char* example = flags.of_labels() ? "-f pod.yaml or --filename=pod.json" : "-f rsrc.yaml or --filename=rsrc.json";
  if (flags.local && !objects.empty())
    return Error(Code::bad_request, "can only use local files by " + std::string(example) + " when --local=true is set");
  if (flags.files.empty() && flags.local)
    return Error(Code::bad_request, "one or more files must be specified as " + std::string(example));
  if (flags.files.empty() && objects.empty())
    return Error(Code::bad_request, "one or more resources must be specified as <resource> <name> or <resource>/<name>");
  if (changes.empty() && !flags.list) return Error(Code::bad_request, "at least one " + flags.what() + " update is required");
  return {};
}

Result<void> check_taken(const MarkFlags& flags, const Marks& marks) {
  if (marks.taken.empty()) return {};
  if (!flags.of_labels())
    return Error(Code::bad_request,
                 "--overwrite is false but found the following declared annotation(s): " + join(marks.taken, "; "));
  return Error(Code::bad_request, join(marks.taken, ", and --overwrite is false, ") + ", and --overwrite is false");
}

const json::object& marks_in(const json::value& object, const MarkFlags& flags) {
  return flags.of_labels() ? metadata_of(object).labels() : metadata_of(object).annotations();
}

void print_marks(const MarkFlags& flags, const Live& live, const json::value& object, bool is_only_one) {
  if (!is_only_one)
    out("Listing " + flags.field + " for " + std::string(live.kind->kind.kind) + "." + std::string(live.kind->kind.group) + "/" +
        live.name + ":\n");
  for (const auto& [key, value] : marks_in(object, flags))
    out((is_only_one ? "" : " ") + visible_lines(std::string(key) + "=" + jsonpath_text(value)) + "\n");
}

// What the line says of the cause itself is kept.
void add_cause(const Recorder& recorder, json::value& patch) {
  json::value& annotations = make(patch, "metadata.annotations");
  if (!annotations.is_object()) annotations.emplace_object();
  annotations.get_object().emplace(kChangeCause, recorder.line());
}

const char* done_text(const MarkFlags& flags, const Marks& marks) {
  if (!flags.of_labels()) return "annotated";
  if (marks.adds && marks.removes) return "modified";
  return marks.adds ? "labeled" : marks.removes ? "unlabeled" : "not labeled";
}

Result<int> run_mark(Commands& commands, const MarkFlags& flags) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  TRY(split_pairs(flags.args, flags.what(), objects, changes));
  TRY(check_changes(flags, changes));
  TRY(check_mark_flags(flags, objects, changes));
  bool is_only_one = names_one(flags, objects);
  if (!is_only_one && !flags.resource_version.empty())
    return Error(Code::bad_request, "--resource-version may only be used with a single resource");
  Session* session = TRY(target_session(commands, flags));
  Targets targets = TRY(targets_of(*session, flags, objects, false, flags.all_namespaces));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    Marks marks = marks_of(marks_in(live.object, flags), changes, flags.overwrite,
                           flags.of_labels() ? std::string_view() : kChangeCause);
    TRY(check_taken(flags, marks));
    bool writes = !flags.local && !flags.list && flags.dry_run != DryRun::client;
    if (writes && flags.of_labels())
      for (const auto& key : marks.absent) out("label " + coracle::quoted(key) + " not found.\n");
    json::value object = live.object;
    bool changes_nothing = marks.patch.empty() && flags.of_labels();  // then kubectl does not ask the server either
    bool records = writes && flags.recorder.wanted() && !changes_nothing;
    if (!marks.patch.empty() || (writes && !flags.resource_version.empty() && !changes_nothing) || records) {
      json::value body(json::object{{"metadata", {{flags.field, marks.patch}}}});
      if (records) add_cause(flags.recorder, body);
      if (!flags.resource_version.empty()) make(body, "metadata.resourceVersion") = flags.resource_version;
      if (writes) object = TRY(send_patch(*session, flags, live, body, kMergePatch));
      else apply_merge_patch(object, body);
    }
    if (flags.list) print_marks(flags, live, object, is_only_one);
    else print_done(flags, live, std::move(object), done_text(flags, marks));
    return {};
  });
}

}  // namespace

void add_label(Commands& commands) {
  for (auto [word, field] : {std::pair{"label", "labels"}, std::pair{"annotate", "annotations"}}) {
    auto flags = std::make_shared<MarkFlags>();
    flags->field = field;
    flags->field_manager = std::string("kubectl-") + word;
    Command command = commands.add(word, std::string("Set or remove ") + field + ": KIND NAME KEY=VALUE KEY-");
    flags->add_to(commands, command);
    command.add_option("--field-selector", flags->field_selector, "field selector");
    command.add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
    command.add_flag("--overwrite", flags->overwrite, "replace values that are there");
    command.add_flag("--list", flags->list, "show them");
    command.add_flag("--local", flags->local, "of the files, without asking the server");
    command.add_option("--resource-version", flags->resource_version, "only when the object is at this version");
    flags->recorder.add_to(commands, command);
    commands.on(command, [&commands, flags] { return run_mark(commands, *flags); });
  }
}

}  // namespace coracle::ctl
