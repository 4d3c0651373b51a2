// SPDX-License-Identifier: Apache-2.0
// Changes to existing objects: patch, label, annotate, edit.
#include "ctl/edit.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "ctl/escape.h"
#include "ctl/jsonpath.h"
#include "ctl/last_applied.h"
#include "ctl/target.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "store/object/patch.h"
#include "store/object/yaml.h"
#include "store/schema/merge.h"

namespace coracle::ctl {

void split_changes(const std::vector<std::string>& args, std::vector<std::string>& objects, std::vector<Change>& changes) {
  for (const auto& arg : args) {
    size_t equals = arg.find('=');
    if (equals != arg.npos && equals > 0) changes.push_back({arg.substr(0, equals), arg.substr(equals + 1)});
    else if (arg.size() > 1 && arg.ends_with('-') && !objects.empty())
      changes.push_back({arg.substr(0, arg.size() - 1), std::nullopt});
    else objects.push_back(arg);
  }
}

Result<Marks> marks_of(const json::object& present, const std::vector<Change>& changes, bool overwrite) {
  Marks marks;
  for (const auto& change : changes) {
    auto contradicts = [&](const Change& other) {
      return other.key == change.key && other.value.has_value() != change.value.has_value();
    };
    if (std::any_of(changes.begin(), changes.end(), contradicts))
      return Error(Code::bad_request, "can not both modify and remove " + coracle::quoted(change.key) + " in the same command");
    const json::value* now = present.if_contains(change.key);
    if (!change.value) {
      if (!now) marks.absent.push_back(change.key);
      else marks.patch[change.key] = nullptr;
      continue;
    }
    marks.removed_only = false;
    std::string before = now && now->is_string() ? std::string(now->get_string()) : "";
    if (now && !overwrite && before != *change.value)
      return Error(Code::bad_request, "'" + change.key + "' already has a value (" + before + "), and --overwrite is false");
    if (!now || before != *change.value) marks.patch[change.key] = *change.value;
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

// ---- label, annotate ----

Result<int> run_mark(Commands& commands, const TargetFlags& flags, const std::string& field, bool list) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  split_changes(flags.args, objects, changes);
  std::string one = field == "labels" ? "label" : "annotation";
  Session* session = TRY(commands.session());
  if (changes.empty() && !list) return Error(Code::bad_request, "at least one " + one + " update is required");
  Targets targets = TRY(targets_of(*session, flags, objects));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    const json::object& present = get_object(live.object, "metadata." + field);
    Marks marks = TRY(marks_of(present, changes, flags.overwrite));
    for (const auto& key : marks.absent) out(one + " " + coracle::quoted(key) + " not found.\n");
    bool changed = !marks.patch.empty();
    if (list) {
      for (const auto& [key, value] : present) out(visible_lines(std::string(key) + "=" + jsonpath_text(value)) + "\n");
      return {};
    }
    json::value object = live.object;
    if (changed) {
      json::value body(json::object{{"metadata", {{field, std::move(marks.patch)}}}});
      object = TRY(send_patch(*session, flags, live, body, kMergePatch));
    }
    std::string done = field == "labels" ? (changed && marks.removed_only ? "unlabeled"
                                            : changed                     ? "labeled"
                                                                          : "not labeled")
                                         : "annotated";
    print_done(flags, live, object, done);
    return {};
  });
}

// ---- patch ----

Result<int> run_patch(Commands& commands, const TargetFlags& flags, const std::string& text, const std::string& file,
                      const std::string& type, const std::string& subresource) {
  static const std::map<std::string, const char*> types = {
      {"strategic", kStrategicPatch}, {"merge", kMergePatch}, {"json", kJsonPatch}};
  std::string source = text;
  if (!file.empty()) {
    std::ifstream in(file);
    if (!in) return Error::from_errno("read " + file);
    source.assign(std::istreambuf_iterator<char>(in), {});
  }
  if (source.empty()) return Error(Code::bad_request, "must specify -p PATCH or --patch-file FILE");
  std::vector<json::value> parsed = TRY(parse_yaml(source).wrap("patch"));
  if (parsed.size() != 1) return Error(Code::bad_request, "patch: expected one document");
  Session* session = TRY(commands.session());
  Targets targets = TRY(targets_of(*session, flags, flags.args));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    json::value object = TRY(send_patch(*session, flags, live, parsed.front(), types.at(type), subresource));
    bool same = json_equal(object, live.object);  // a dry run leaves the revision unchanged
    print_done(flags, live, object, same ? "patched (no change)" : "patched");
    return {};
  });
}

// ---- edit ----

constexpr const char* kEditHead =
    "# Edit the object below. Lines beginning with '#' are ignored, and an empty file aborts the edit.\n"
    "# If an error occurs while saving, this file is opened again with the failure.\n#\n";

Result<std::string> edit_text(const std::string& path) {
  const char* editor = std::getenv("KUBE_EDITOR");
  if (!editor || !*editor) editor = std::getenv("EDITOR");
  if (!editor || !*editor) editor = "vi";
  std::string command = std::string(editor) + " " + path;
  std::vector<std::string> argv = {"sh", "-c", command};
  int status = TRY(run_program(argv));
  if (status != 0)
    return Error(Code::cancelled, "edit: the editor " + coracle::quoted(editor) + " ended with status " + std::to_string(status));
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

struct EditFlags : TargetFlags {
  std::string subresource, validate = "strict";
  bool output_patch = false, save_config = false, windows_line_endings = false;
};

std::string with_line_endings(const std::string& text, bool windows) {
  if (!windows) return text;
  std::string changed;
  for (char c : text) changed += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return changed;
}

std::string without_returns(std::string text) {
  for (size_t at = 0; (at = text.find("\r\n", at)) != text.npos;) text.erase(at, 1);
  return text;
}

// With --save-config, the annotation by which apply knows what was wanted.
void remember_edited(json::value& object) {
  json::value kept = object;
  if (json::object* annotations = make(kept, "metadata.annotations").if_object()) annotations->erase(kLastApplied);
  make(object, "metadata.annotations").as_object()[kLastApplied] = to_sorted_text(kept) + "\n";
}

Result<void> edit_one(Session& session, const EditFlags& flags, const Live& live) {
  json::value shown = live.object;
  if (!flags.subresource.empty())
    shown = TRY(session.json({.path = session.path(*live.kind, live.ns, live.name, flags.subresource)}));
  if (auto* metadata = make(shown, "metadata").if_object()) metadata->erase("managedFields");
  bool json_text = flags.output == "json";
  std::string body = json_text ? to_pretty(shown) + "\n" : to_yaml(shown);
  std::string edit_head = json_text ? "" : kEditHead, head = edit_head;  // JSON has no comments
  std::string path =
      std::filesystem::temp_directory_path() / (json_text ? "coraclectl-edit-XXXXXX.json" : "coraclectl-edit-XXXXXX.yaml");
  Fd created(::mkstemps(path.data(), 5));  // an unpredictable name, readable only by us
  if (!created) return Error::from_errno("create " + path);
  std::string before = without_comments(body);
  for (;;) {
    {
      std::ofstream file(path, std::ios::trunc);
      file << with_line_endings(head + body, flags.windows_line_endings);
    }
    std::string saved = TRY(edit_text(path));
    std::string edited = without_comments(without_returns(std::move(saved)));
    if (trim(edited).empty() || edited == before) {
      std::filesystem::remove(path);
      out("Edit cancelled, no changes made.\n");
      return {};
    }
    auto parsed = parse_yaml(edited);
    Result<json::value> patched = Error(Code::invalid, "one object is expected");
    if (!parsed) {
      patched = parsed.take_error();
    } else if (parsed->size() == 1) {
      if (flags.save_config) remember_edited(parsed->front());
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
  for (auto [word, field] : {std::pair{"label", "labels"}, std::pair{"annotate", "annotations"}}) {
    auto flags = std::make_shared<TargetFlags>();
    auto list = std::make_shared<bool>(false);
    flags->field_manager = std::string("kubectl-") + word;
    Command command = commands.add(word, std::string("Set or remove ") + field + ": KIND NAME KEY=VALUE KEY-");
    flags->add_to(commands, command);
    command.add_flag("--overwrite", flags->overwrite, "replace values that are there");
    command.add_flag("--list", *list, "show them");
    commands.on(command,
                [&commands, flags, list, field = std::string(field)] { return run_mark(commands, *flags, field, *list); });
  }

  struct PatchFlags : TargetFlags {
    std::string patch, file, type = "strategic", subresource;
  };
  auto patch_flags = std::make_shared<PatchFlags>();
  patch_flags->field_manager = "kubectl-patch";
  Command patch = commands.add("patch", "Change fields of objects");
  patch_flags->add_to(commands, patch);
  patch.add_option("-p,--patch", patch_flags->patch, "the patch, JSON or YAML");
  patch.add_option("--patch-file", patch_flags->file, "a file with the patch");
  patch.add_option("--type", patch_flags->type, "strategic, merge or json").one_of({"strategic", "merge", "json"});
  patch.add_option("--subresource", patch_flags->subresource, "status or scale");
  commands.on(patch, [&commands, patch_flags] {
    return run_patch(commands, *patch_flags, patch_flags->patch, patch_flags->file, patch_flags->type, patch_flags->subresource);
  });

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
    return act_on(std::move(targets), [&](const Live& live) { return edit_one(*session, *edit_flags, live); });
  });
}

}  // namespace coracle::ctl
