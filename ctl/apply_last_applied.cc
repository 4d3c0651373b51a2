// SPDX-License-Identifier: Apache-2.0
// apply view-last-applied, set-last-applied, edit-last-applied: the annotation in which client-side apply stores the
// configuration that it applied last. Source: kubectl pkg/cmd/apply/apply_*_last_applied.go, pkg/cmd/util/editor.
#include <algorithm>

#include "ctl/apply.h"
#include "ctl/edit.h"
#include "ctl/editor.h"
#include "ctl/last_applied.h"
#include "ctl/record.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/patch.h"
#include "store/object/yaml.h"
#include "store/schema/decode.h"

namespace coracle::ctl {
namespace {

// A merge patch that stores `configuration` in the annotation, as it is.
json::value annotation_patch(const json::value& configuration) {
  json::object annotations;
  annotations[kLastApplied] = escaped_markup(to_sorted_text(configuration)) + "\n";
  return json::object{{"metadata", {{"annotations", std::move(annotations)}}}};
}

Error missing_annotation(const std::string& name) {
  return Error(Code::not_found, "no last-applied-configuration annotation found on resource: " + name);
}

// ---- view ----

struct ViewLastAppliedFlags : TargetFlags {
  std::string format = "yaml";
};

Result<int> view_last_applied(Commands& commands, const ViewLastAppliedFlags& flags) {
  if (flags.format != "yaml" && flags.format != "json")
    return Error(Code::bad_request, "Unexpected -o output mode: " + flags.format +
                                        ", the flag 'output' must be one of yaml|json\n"
                                        "See 'coraclectl apply view-last-applied -h' for help and examples");
  Session* session = TRY(commands.session());
  bool of_kind = flags.args.size() == 1;
  Targets targets = TRY(targets_of(*session, flags, flags.args, of_kind));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    auto text = last_applied_text(live.object);
    if (!text) return missing_annotation(live.name);
    json::value configuration = TRY(parse_json(*text).wrap("the annotation of " + message_name(*live.kind, live.name)));
    if (flags.format == "yaml") out(to_yaml(configuration));
    else out(escaped_markup(to_pretty(configuration, 2)) + "\n");
    return {};
  });
}

void add_view(Commands& commands, Command apply) {
  auto flags = std::make_shared<ViewLastAppliedFlags>();
  Command view = commands.add("view-last-applied", "Show the configurations that apply remembers of objects", apply);
  view.add_option("args", flags->args, "KIND NAME ..., KIND/NAME ..., KIND");
  flags->files.add_to(view);
  view.add_option("-l,--selector", flags->selector, "label selector");
  view.add_flag("--all", flags->all, "all of the kind in the namespace");
  view.add_option("-o,--output", flags->format, "yaml or json");
  commands.on(view, [&commands, flags] { return view_last_applied(commands, *flags); });
}

// ---- set ----

struct SetLastAppliedFlags : TargetFlags {
  bool create_annotation = false;
};

Result<int> set_last_applied(Commands& commands, const SetLastAppliedFlags& flags) {
  Session* session = TRY(commands.session());
  if (flags.files.empty()) TRY(targets_of(*session, flags, {}));  // it says that there are none
  std::vector<Document> documents = TRY(read_documents(flags.files));
  struct Pending {
    Live live;
    json::value configuration;
  };
  std::vector<Pending> pending;
  for (auto& document : documents) {  // all are looked at before the first one is changed
    std::string ns = TRY(settle_namespace(*session, document)), name(metadata_of(document.object).name());
    json::value live = TRY(session->json({.path = session->path(*document.kind, ns, name)}));
    bool has_one = last_applied_text(live).has_value();
    if (!has_one && !flags.create_annotation)
      return Error(Code::not_found, "no last-applied-configuration annotation found on resource: " + name +
                                        ", to create the annotation, run the command with --create-annotation");
    if (has_one && json_equal(last_applied_of(live), document.object)) {
      out("set-last-applied " + name + ": no changes required.\n");
      continue;
    }
    pending.push_back({{document.kind, ns, name, std::move(live)}, std::move(document.object)});
  }
  for (const auto& [live, configuration] : pending) {
    json::value object = TRY(send_patch(*session, flags, live, annotation_patch(configuration), kMergePatch));
    print_done(flags, live, std::move(object), "configured");
  }
  return 0;
}

void add_set_last_applied(Commands& commands, Command apply) {
  auto flags = std::make_shared<SetLastAppliedFlags>();
  Command set = commands.add("set-last-applied", "Let apply remember what files say, and change nothing else", apply);
  commands.ignore_words(set);
  flags->files.add_to(set);
  commands.add_output(set, flags->output);
  commands.add_dry_run(set, flags->dry_run);
  set.add_flag("--create-annotation", flags->create_annotation, "also for objects of which it remembers nothing");
  commands.on(set, [&commands, flags] { return set_last_applied(commands, *flags); });
}

// ---- edit ----

struct EditLastAppliedFlags : TargetFlags {
  std::string validate = "strict";
  bool windows_line_endings = false;
  Recorder recorder;
};

constexpr const char* kLastAppliedHead =
    "# Please edit the 'last-applied-configuration' annotations below.\n"
    "# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.\n"
    "#\n";

// Fields that do not exist or have values of other types would make the next apply fail.
Result<void> check_configuration(const Live& live, const json::value& configuration, const std::string& validation) {
  if (validation == "Ignore") return {};
  schema::Decoded decoded = TRY(schema::decode(live.kind->type(), configuration));
  if (decoded.warnings.empty()) return {};
  if (validation == "Strict") return schema::strict_error(live.kind->type(), decoded.warnings);
  for (const auto& warning : decoded.warnings) tell("Warning: " + warning + "\n");
  return {};
}

// The edited configurations, as many as there were.
Result<std::vector<json::value>> edited_configurations(const EditedFile& file, const std::string& text,
                                                       const EditLastAppliedFlags& flags, const std::vector<Live>& lives) {
  size_t count = lives.size();
  std::vector<json::value> parsed = TRY(file.parse(text));
  if (parsed.size() == 1 && count > 1) {
    const json::array& items = items_of(parsed.front());
    parsed = std::vector<json::value>(items.begin(), items.end());
  }
  bool are_objects = std::all_of(parsed.begin(), parsed.end(), [](const json::value& one) { return one.is_object(); });
  if (parsed.size() != count || !are_objects)
    return Error(Code::invalid, "there must be " + std::to_string(count) + " objects, as before");
  for (size_t i = 0; i < count; ++i) {
    auto checked = check_configuration(lives[i], parsed[i], flags.field_validation);
    if (!checked) tell("error: " + resource_name(lives[i]) + " is invalid\n");
    TRY(std::move(checked));
    flags.recorder.record(parsed[i]);
  }
  return parsed;
}

Result<void> store_configurations(Session& session, const EditLastAppliedFlags& flags, const std::vector<Live>& lives,
                                  const std::vector<json::value>& before, const std::vector<json::value>& after) {
  for (size_t i = 0; i < lives.size(); ++i) {
    bool same = json_equal(before[i], after[i]);
    if (!same) TRY(send_patch(session, flags, lives[i], annotation_patch(after[i]), kMergePatch));
    print_done(flags, lives[i], after[i], same ? "skipped" : "edited");
  }
  return {};
}

// Lets the user edit all configurations in one file, until they can be stored or he gives up.
Result<int> edit_configurations(Session& session, const EditLastAppliedFlags& flags, const std::vector<Live>& lives,
                                const std::vector<json::value>& before) {
  EditedFile file = TRY(EditedFile::create(before, flags.output == "json", kLastAppliedHead, flags.windows_line_endings));
  for (;;) {
    std::optional<std::string> text = TRY(file.next());
    if (!text) return 0;
    auto after = edited_configurations(file, *text, flags, lives);
    if (!after) {
      file.refuse(after.error());
      continue;
    }
    auto stored = store_configurations(session, flags, lives, before, *after);
    if (!stored) return file.keep(stored.take_error());
    file.remove();
    return 0;
  }
}

Result<int> edit_last_applied(Commands& commands, EditLastAppliedFlags& flags) {
  flags.field_validation = TRY(field_validation_of(flags.validate));
  Session* session = TRY(commands.session());
  Targets targets = TRY(targets_of(*session, flags, flags.args, !flags.args.empty()));
  if (!targets.missing.empty()) {  // then nothing is edited
    print_failures(targets.missing);
    return 1;
  }
  std::vector<Live> lives;
  std::vector<json::value> before;
  for (auto& live : targets.found) {
    json::value configuration = last_applied_of(live.object);
    if (configuration.is_null()) continue;
    before.push_back(std::move(configuration));
    lives.push_back(std::move(live));
  }
  if (lives.empty())
    return Error(Code::not_found,
                 "no last-applied-configuration annotation found on resources, to create the annotation, use command `coraclectl "
                 "apply set-last-applied --create-annotation`");
  return edit_configurations(*session, flags, lives, before);
}

void add_edit_last_applied(Commands& commands, Command apply) {
  auto flags = std::make_shared<EditLastAppliedFlags>();
  flags->field_manager = "kubectl-client-side-apply";
  Command edit = commands.add("edit-last-applied", "Edit what apply remembers of objects", apply);
  edit.add_option("args", flags->args, "KIND NAME ..., KIND/NAME ...");
  flags->files.add_to(edit);
  commands.add_output(edit, flags->output);
  edit.add_option("--field-manager", flags->field_manager, "who owns the annotation");
  edit.add_option("--validate", flags->validate, "strict, warn or ignore").optional_value("strict");
  edit.add_flag("--windows-line-endings", flags->windows_line_endings, "lines of the file end in CR LF");
  flags->recorder.add_to(commands, edit);
  commands.on(edit, [&commands, flags] { return edit_last_applied(commands, *flags); });
}

}  // namespace

void add_last_applied(Commands& commands, Command apply) {
  add_view(commands, apply);
  add_set_last_applied(commands, apply);
  add_edit_last_applied(commands, apply);
}

}  // namespace coracle::ctl
