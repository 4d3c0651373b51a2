// SPDX-License-Identifier: Apache-2.0
// edit, and what label, annotate and set make of their arguments. See edit.h.
#include "ctl/edit.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ctl/editor.h"
#include "ctl/escape.h"
#include "ctl/last_applied.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
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

Marks marks_of(const json::object& present, const std::vector<Change>& changes, bool overwrite) {
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
    } else if (now && !overwrite) {
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

constexpr const char* kEditHead =
    "# Edit the object below. Lines beginning with '#' are ignored, and an empty file aborts the edit.\n"
    "# If an error occurs while saving, this file is opened again with the failure.\n#\n";

struct EditFlags : TargetFlags {
  std::string subresource, validate = "strict";
  bool output_patch = false, save_config = false, windows_line_endings = false;
};

Result<void> edit_one(Session& session, const EditFlags& flags, const Live& live) {
  json::value shown = live.object;
  if (!flags.subresource.empty())
    shown = TRY(session.json({.path = session.path(*live.kind, live.ns, live.name, flags.subresource)}));
  if (auto* metadata = make(shown, "metadata").if_object()) metadata->erase("managedFields");
  bool json_text = flags.output == "json";
  std::string body = json_text ? to_pretty(shown) + "\n" : to_yaml(shown);
  std::string edit_head = json_text ? "" : kEditHead, head = edit_head;  // JSON has no comments
  std::string path = TRY(make_edit_file(json_text ? ".json" : ".yaml"));
  std::string before = without_comments(body);
  for (;;) {
    std::string saved = TRY(edit_in_editor(path, head + body, flags.windows_line_endings));
    std::string edited = without_comments(saved);
    if (trim(edited).empty() || edited == before) {
      std::filesystem::remove(path);
      tell("Edit cancelled, no changes made.\n");
      return {};
    }
    auto parsed = parse_yaml(edited);
    Result<json::value> patched = Error(Code::invalid, "one object is expected");
    if (!parsed) {
      patched = parsed.take_error();
    } else if (parsed->size() == 1) {
      if (flags.save_config) parsed->front() = with_last_applied(parsed->front());
      json::value patch = schema::strategic_diff(*live.kind, shown, parsed->front());
      if (flags.output_patch) out("Patch: " + to_text(patch) + "\n");
      patched = send_patch(session, flags, live, patch, kStrategicPatch, flags.subresource);
    }
    if (patched) {
      std::filesystem::remove(path);
      print_done(flags, live, *patched, "edited");
      return {};
    }
    std::string why = visible_lines(patched.error().text());
    for (size_t end = 0; (end = why.find('\n', end)) != why.npos; ++end) why.insert(end + 1, "# ");  // comments out every line
    if (edited == without_comments(body) || !::isatty(STDIN_FILENO))
      return Error(patched.error().code(), why + "; your text is kept in " + path);
    head = edit_head + (json_text ? "" : "# " + why + "\n#\n");
    body = edited;
  }
}

}  // namespace

void add_edit(Commands& commands) {
  add_label(commands);
  add_patch(commands);
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
  commands.on(edit, [&commands, edit_flags]() -> Result<int> {
    edit_flags->field_validation = TRY(field_validation_of(edit_flags->validate));
    Session* session = TRY(commands.session());
    Targets targets = TRY(targets_of(*session, *edit_flags, edit_flags->args));
    if (targets.found.empty() && targets.missing.empty()) return Error(Code::not_found, "edit cancelled, no objects found");
    return act_on(std::move(targets), [&](const Live& live) { return edit_one(*session, *edit_flags, live); });
  });
}

}  // namespace coracle::ctl
