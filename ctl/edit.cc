// SPDX-License-Identifier: Apache-2.0
// edit, and what label, annotate and set make of their arguments. See edit.h.
#include "ctl/edit.h"

#include <algorithm>

#include "ctl/editor.h"
#include "ctl/escape.h"
#include "ctl/field_check.h"
#include "ctl/last_applied.h"
#include "ctl/record.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/patch.h"
#include "store/object/yaml.h"
#include "store/schema/merge.h"

namespace coracle::ctl {

Result<void> split_pairs(const std::vector<std::string>& args, const std::string& what, std::vector<std::string>& objects,
                         std::vector<Change>& changes) {
  for (const auto& arg : args) {
    size_t equals = arg.find('=');
    bool sets = equals != arg.npos && equals > 0, removes = !sets && arg.size() > 1 && arg.ends_with('-');
    if (sets) changes.push_back({arg.substr(0, equals), arg.substr(equals + 1)});
    else if (removes) changes.push_back({arg.substr(0, arg.size() - 1), std::nullopt});
    else if (changes.empty()) objects.push_back(arg);
    else return Error(Code::bad_request, "all resources must be specified before " + what + " changes: " + arg);
  }
  return {};
}

std::vector<std::string> contradictions_of(const std::vector<Change>& changes) {
  std::vector<std::string> keys;
  for (const auto& change : changes) {
    auto contradicts = [&](const Change& other) { return other.key == change.key && other.value; };
    if (!change.value && std::any_of(changes.begin(), changes.end(), contradicts)) keys.push_back(change.key);
  }
  return keys;
}

Marks marks_of(const json::object& present, const std::vector<Change>& changes, bool overwrite, std::string_view free_key) {
  Marks marks;
  for (const auto& change : changes) {
    const json::value* now = present.if_contains(change.key);
    std::string before = now && now->is_string() ? std::string(now->get_string()) : "";
    if (!change.value && !now) {
      marks.absent.push_back(change.key);
    } else if (!change.value) {
      marks.patch[change.key] = nullptr;
      marks.removes = true;
    } else if (now && before == *change.value) {
      continue;
    } else if (now && !overwrite && change.key != free_key) {
      marks.taken.push_back("'" + change.key + "' already has a value (" + before + ")");
    } else {
      marks.patch[change.key] = *change.value;
      marks.adds = true;
    }
  }
  return marks;
}

std::string without_comments(const std::string& text) {
  std::string kept;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size() - 1);
    if (!rest.starts_with('#')) kept.append(rest.substr(0, end + 1));
    rest.remove_prefix(end + 1);
  }
  return kept;
}

namespace {

// ---- edit ----

struct EditFlags : TargetFlags {
  std::string subresource, validate = "strict";
  bool output_patch = false, save_config = false, windows_line_endings = false;
  Recorder recorder;
};

// What becomes of a saved file. `reasons` are for the head of the file, when it is opened again: it has what the server found.
struct SaveResult {
  std::string reasons;
  bool gone = false, refused = false;  // an object is not there any more; a change failed for another reason
};

struct EditedObject {
  const Live& live;
  const json::value& before;
  json::value after;
};

void note_failure(const Live& live, const Error& error, SaveResult& result) {
  std::string name = resource_name(live);
  const ErrorDetails* details = error.details();
  if (details && error.code() == Code::invalid) {
    std::string reason = name + " was not valid" + (details->causes.empty() ? "" : ":");
    for (const Cause& cause : details->causes) reason += "\n* " + cause.field + ": " + cause.message;
    result.reasons += commented(reason) + "#\n";
    tell("error: " + name + " is invalid\n");
  } else if (error.code() == Code::not_found) {
    result.gone = true;
    tell("error: " + name + " could not be found on the server\n");
  } else {
    result.refused = true;
    tell("error: " + name + " could not be patched: " + error.text() + "\n");
  }
}

void save_one(Session& session, const EditFlags& flags, const EditedObject& edited, SaveResult& result) {
  const Live& live = edited.live;
  if (json_equal(edited.before, edited.after)) return print_done(flags, live, edited.after, "skipped");
  json::value patch = schema::strategic_diff(*live.kind, edited.before, edited.after);
  if (flags.output_patch) out("Patch: " + to_text(patch) + "\n");
  auto patched = send_patch(session, flags, live, patch, kStrategicPatch, flags.subresource);
  if (patched) print_done(flags, live, *std::move(patched), "edited");
  else note_failure(live, patched.error(), result);
}

// The objects of a text, also of the Lists in it. Errors: invalid.
Result<std::vector<json::value>> objects_of(const EditedFile& file, const std::string& text) {
  std::vector<json::value> objects;
  std::vector<json::value> parsed = TRY(file.parse(text));
  for (json::value& one : parsed) {
    if (!one.is_object()) return Error(Code::invalid, "an object with apiVersion and kind is expected");
    if (kind_in(one) != "List") {
      objects.push_back(std::move(one));
      continue;
    }
    const json::value* items = one.get_object().if_contains("items");
    if (!items || !items->is_array()) return Error(Code::invalid, "the items of a List have to be a list");
    for (const json::value& item : items->get_array()) {
      if (!item.is_object()) return Error(Code::invalid, "an object with apiVersion and kind is expected");
      objects.push_back(item);
    }
  }
  return objects;
}

std::string identity_of(const json::value& object) {
  std::string_view uid = metadata_of(object).uid();
  if (!uid.empty()) return std::string(uid);
  return std::string(kind_in(object)) + "/" + std::string(metadata_of(object).namespace_()) + "/" +
         std::string(metadata_of(object).name());
}

// A namespace that was taken out is what it was. Errors: invalid for a change that no patch can make.
Result<void> settle_identity(const Live& live, const json::value& before, json::value& after) {
  std::string ns(metadata_of(after).namespace_());
  if (live.kind->kind.namespaced && !ns.empty() && ns != live.ns)
    return Error(Code::invalid, "the namespace from the provided object " + coracle::quoted(ns) +
                                    " does not match the namespace " + coracle::quoted(live.ns) +
                                    ". You must pass '--namespace=" + ns + "' to perform this operation.");
  for (const char* field : {"apiVersion", "kind", "metadata.name"})
    if (get_string(before, field) != get_string(after, field))
      return Error(Code::invalid, "At least one of apiVersion, kind and name was changed");
  if (std::string_view was = metadata_of(before).namespace_(); ns.empty() && !was.empty())
    make(after, "metadata.namespace") = std::string(was);
  return {};
}

// The saved objects, each with what it was: they are known by their UID. Those that were taken out stay as they are. Looks at all
// of them, before the first one is patched. Errors: invalid.
Result<std::vector<EditedObject>> edited_objects(std::vector<json::value> objects, const EditFlags& flags,
                                                 const std::vector<Live>& lives, const std::vector<json::value>& shown) {
  std::vector<EditedObject> edited;
  for (json::value& object : objects) {
    auto before = std::find_if(shown.begin(), shown.end(),
                               [id = identity_of(object)](const json::value& one) { return identity_of(one) == id; });
    if (before == shown.end())
      return Error(Code::invalid, "no original object found for " + std::string(kind_in(object)) + " " +
                                      coracle::quoted(metadata_of(object).name()));
    const Live& live = lives[size_t(before - shown.begin())];
    TRY(settle_identity(live, *before, object));
    if (flags.save_config) object = with_last_applied(object);
    flags.recorder.record(object);
    edited.push_back({live, *before, std::move(object)});
  }
  return edited;
}

// Of the fields that do not exist, what stands in the head of the file, where the server would drop them.
std::string unknown_fields(Session& session, const EditFlags& flags, const std::vector<EditedObject>& edited) {
  std::string reasons;
  if (flags.field_validation != "Strict" || !flags.subresource.empty()) return reasons;
  for (const EditedObject& one : edited) {
    if (api_version_in(one.after) != one.live.kind->kind.api_version()) continue;  // an older server's
    const std::string found = unknown_fields_of(one.live.kind->type(), one.after);
    if (found.empty() || session.server_checks_fields()) continue;
    const std::string name = resource_name(one.live);
    tell("error: " + name + " is invalid\n");
    reasons +=
        commented(name + " was not valid:\n* <nil>: Invalid value: \"The edited file failed validation\": " + found) + "#\n";
  }
  return reasons;
}

// Lets the user edit all of `lives` in one file, until the server takes them or he gives up. Gives the exit code. Source: kubectl
// pkg/cmd/util/editor/editoptions.go.
Result<int> edit_all(Session& session, const EditFlags& flags, const std::vector<Live>& lives) {
  std::vector<json::value> shown;
  for (const Live& live : lives) {
    shown.push_back(live.object);
    if (!flags.subresource.empty())
      shown.back() = TRY(session.json({.path = session.path(*live.kind, live.ns, live.name, flags.subresource)}));
    if (auto* metadata = make(shown.back(), "metadata").if_object()) metadata->erase("managedFields");
  }
  EditedFile file = TRY(EditedFile::create(shown, flags.output == "json", kEditHead, flags.windows_line_endings));
  for (;;) {
    std::optional<std::string> text = TRY(file.next());
    if (!text) return 0;
    auto objects = objects_of(file, *text);
    if (!objects) {
      file.refuse(objects.error());
      continue;
    }
    auto edited = edited_objects(std::move(*objects), flags, lives, shown);
    if (!edited) return file.keep(edited.take_error());
    SaveResult result;
    if (std::string faults = unknown_fields(session, flags, *edited); !faults.empty()) {
      file.set_reasons(std::move(faults));
      continue;
    }
    for (const EditedObject& one : *edited) save_one(session, flags, one, result);
    if (result.refused) {
      tell("You can run `coraclectl replace -f " + file.path() + "` to try this update again.\n");
      return 1;
    }
    if (result.gone) {
      tell("The edits you made on deleted resources have been saved to " + coracle::quoted(file.path()) + "\n");
      return 1;
    }
    if (result.reasons.empty()) {
      file.remove();
      return 0;
    }
    file.set_reasons(std::move(result.reasons));
  }
}

}  // namespace

void add_edit(Commands& commands) {
  auto edit_flags = std::make_shared<EditFlags>();
  edit_flags->field_manager = "kubectl-edit";
  Command edit = commands.add("edit", "Edit objects in $EDITOR");
  edit_flags->add_to(commands, edit);
  edit.add_option("--subresource", edit_flags->subresource, "status or scale: edit that part");
  edit.add_option("--validate", edit_flags->validate, "strict, warn or ignore: what the server does about unknown fields")
      .optional_value("strict");
  edit.add_flag("--output-patch", edit_flags->output_patch, "show what changed, too");
  edit.add_flag("--save-config", edit_flags->save_config, "remember it for apply");
  edit.add_flag("--windows-line-endings", edit_flags->windows_line_endings, "lines end as on Windows");
  edit_flags->recorder.add_to(commands, edit);
  commands.on(edit, [&commands, edit_flags]() -> Result<int> {
    edit_flags->field_validation = TRY(field_validation_of(edit_flags->validate));
    Session* session = TRY(commands.session());
    Targets targets = TRY(targets_of(*session, *edit_flags, edit_flags->args, !edit_flags->args.empty()));
    if (!targets.missing.empty()) {  // then nothing is edited
      print_failures(targets.missing);
      return 1;
    }
    if (targets.found.empty()) return Error(Code::not_found, "edit cancelled, no objects found");
    return edit_all(*session, *edit_flags, targets.found);
  });
}

}  // namespace coracle::ctl
