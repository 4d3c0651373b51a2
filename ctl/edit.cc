// SPDX-License-Identifier: Apache-2.0
// Changes to objects that are there: patch, label, annotate, set image|env|resources, scale, edit.
#include "ctl/edit.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "ctl/command.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"
#include "store/schema/merge.h"

namespace coracle::ctl {
namespace {

const char* pod_spec_path(const schema::KindInfo& kind) { return kind.kind == kPod ? "spec" : "spec.template.spec"; }

}  // namespace

void split_changes(const std::vector<std::string>& args, std::vector<std::string>& objects, std::vector<Change>& changes) {
  for (const auto& arg : args) {
    size_t equals = arg.find('=');
    if (equals != arg.npos && equals > 0) changes.push_back({arg.substr(0, equals), arg.substr(equals + 1)});
    else if (arg.size() > 1 && arg.ends_with('-') && !objects.empty()) changes.push_back({arg.substr(0, arg.size() - 1), std::nullopt});
    else objects.push_back(arg);
  }
}

Result<Marks> marks_of(const json::object& present, const std::vector<Change>& changes, bool overwrite) {
  Marks marks;
  for (const auto& change : changes) {
    auto contradicts = [&](const Change& other) { return other.key == change.key && other.value.has_value() != change.value.has_value(); };
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

Result<json::object> image_patch(const json::value& object, const schema::KindInfo& kind, const std::vector<Change>& changes) {
  json::object spec;
  for (const auto& change : changes) {
    if (!change.value) return Error(Code::bad_request, "expected CONTAINER=IMAGE, got " + coracle::quoted(change.key + "-"));
    bool known = change.key == "*";
    std::vector<std::string> names;
    for (const char* list : {"containers", "initContainers"})
      for (const auto& container : get_array(object, std::string(pod_spec_path(kind)) + "." + list)) {
        std::string name(get_string(container, "name"));
        names.push_back(name);
        if (change.key != "*" && change.key != name) continue;
        known = true;
        if (get_string(container, "image") == *change.value) continue;
        if (!spec.contains(list)) spec[list] = json::array();
        spec[list].as_array().push_back(json::object{{"name", name}, {"image", *change.value}});
      }
    if (!known) return Error(Code::not_found, "unable to find container named " + coracle::quoted(change.key) + "; there are: " + join(names, ", "));
  }
  return spec;
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

struct TargetFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string selector, dry_run, output, field_manager;
  bool all = false, overwrite = false;

  void add_to(CLI::App* command) {
    command->add_option("args", args, "KIND NAME ..., KIND/NAME ..., then what to change");
    files.add_to(command);
    command->add_option("-l,--selector", selector, "label selector");
    command->add_option("--dry-run", dry_run, "none, client or server")->expected(0, 1)->default_str("client");
    command->add_option("-o,--output", output, "yaml, json or name");
    command->add_option("--field-manager", field_manager, "who owns the fields");
    command->add_flag("--all", all, "all of the kind in the namespace");
  }
};

struct Live {
  const schema::KindInfo* kind;
  std::string ns, name;
  json::value object;
};

// The objects that args (or files, a selector, --all) name, as they are now.
Result<std::vector<Live>> live_objects(Session& session, const TargetFlags& flags, const std::vector<std::string>& args) {
  std::vector<Live> found;
  auto add = [&](const schema::KindInfo& kind, std::string ns, const std::string& name) -> Result<void> {
    json::value object = TRY(session.json({.path = session.path(kind, ns, name)}));
    found.push_back({&kind, ns, name, std::move(object)});
    return {};
  };
  if (!flags.files.files.empty()) {
    std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
    for (const auto& document : documents) {
      std::string ns(get_string(document.object, "metadata.namespace"));
      if (ns.empty() && document.kind->kind.namespaced) ns = session.ns();
      TRY(add(*document.kind, ns, std::string(get_string(document.object, "metadata.name"))));
    }
    return found;
  }
  std::vector<Named> named = TRY(parse_named(args));
  for (const auto& one : named) {
    std::string ns = one.kind->kind.namespaced ? session.ns() : "";
    if (!one.name.empty()) {
      TRY(add(*one.kind, ns, one.name));
      continue;
    }
    if (flags.selector.empty() && !flags.all) return Error(Code::bad_request, "resource(s) were provided, but no name was specified");
    Request request{.path = session.path(*one.kind, ns)};
    if (!flags.selector.empty()) request.query.emplace_back("labelSelector", flags.selector);
    json::value list = TRY(session.json(request));
    for (const auto& item : get_array(list, "items")) found.push_back({one.kind, ns, std::string(get_string(item, "metadata.name")), item});
  }
  return found;
}

Result<json::value> send_patch(Session& session, const TargetFlags& flags, const Live& live, const json::value& patch, const char* type,
                               std::string_view subresource = {}) {
  if (flags.dry_run == "client") return live.object;
  Request request{.method = "PATCH", .path = session.path(*live.kind, live.ns, live.name, subresource), .body = to_text(patch), .content_type = type};
  if (!flags.field_manager.empty()) request.query.emplace_back("fieldManager", flags.field_manager);
  if (flags.dry_run == "server") request.query.emplace_back("dryRun", "All");
  return session.json(request);
}

void print_done(const TargetFlags& flags, const Live& live, json::value object, std::string_view what) {
  print_outcome(flags.output, flags.dry_run, std::move(object), *live.kind, what);
}

constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";
constexpr const char* kJsonPatch = "application/json-patch+json";

// ---- label, annotate ----

Result<int> run_mark(Commands& commands, const TargetFlags& flags, const std::string& field, bool list) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  split_changes(flags.args, objects, changes);
  std::string one = field == "labels" ? "label" : "annotation";
  Session* session = TRY(commands.session());
  if (changes.empty() && !list) return Error(Code::bad_request, "at least one " + one + " update is required");
  std::vector<Live> found = TRY(live_objects(*session, flags, objects));
  for (const auto& live : found) {
    const json::object& present = get_object(live.object, "metadata." + field);
    Marks marks = TRY(marks_of(present, changes, flags.overwrite));
    for (const auto& key : marks.absent) out(one + " " + coracle::quoted(key) + " not found.\n");
    bool changed = !marks.patch.empty();
    if (list) {
      for (const auto& [key, value] : present) out(std::string(key) + "=" + std::string(value.get_string()) + "\n");
      continue;
    }
    json::value object = live.object;
    if (changed) {
      json::value body(json::object{{"metadata", {{field, std::move(marks.patch)}}}});
      object = TRY(send_patch(*session, flags, live, body, kMergePatch));
    }
    std::string done = field == "labels" ? (changed && marks.removed_only ? "unlabeled" : changed ? "labeled" : "not labeled") : "annotated";
    print_done(flags, live, object, done);
  }
  return 0;
}

// ---- set ----

json::value pod_spec_patch(const schema::KindInfo& kind, json::object spec) {
  if (kind.kind == kPod) return json::object{{"spec", std::move(spec)}};
  return json::object{{"spec", {{"template", {{"spec", std::move(spec)}}}}}};
}

Result<int> run_set_image(Commands& commands, const TargetFlags& flags) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  split_changes(flags.args, objects, changes);
  if (changes.empty()) return Error(Code::bad_request, "at least one CONTAINER=IMAGE is required");
  Session* session = TRY(commands.session());
  std::vector<Live> found = TRY(live_objects(*session, flags, objects));
  for (const auto& live : found) {
    json::object spec = TRY(image_patch(live.object, *live.kind, changes));
    if (spec.empty()) continue;  // nothing to say, as kubectl
    json::value object = TRY(send_patch(*session, flags, live, pod_spec_patch(*live.kind, std::move(spec)), kStrategicPatch));
    print_done(flags, live, object, "image updated");
  }
  return 0;
}

Result<int> run_set_env(Commands& commands, const TargetFlags& flags, const std::string& container_name, bool list) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  split_changes(flags.args, objects, changes);
  Session* session = TRY(commands.session());
  std::vector<Live> found = TRY(live_objects(*session, flags, objects));
  for (const auto& live : found) {
    json::array containers;
    for (const auto& container : get_array(live.object, std::string(pod_spec_path(*live.kind)) + ".containers")) {
      std::string name(get_string(container, "name"));
      if (!container_name.empty() && container_name != "*" && container_name != name) continue;
      if (list) {
        out("# " + message_name(*live.kind, live.name) + ", container " + name + "\n");
        for (const auto& entry : get_array(container, "env")) out(std::string(get_string(entry, "name")) + "=" + std::string(get_string(entry, "value")) + "\n");
        continue;
      }
      json::array env;
      for (const auto& change : changes) {
        if (change.value) env.push_back(json::object{{"name", change.key}, {"value", *change.value}});
        else env.push_back(json::object{{"name", change.key}, {"$patch", "delete"}});
      }
      containers.push_back(json::object{{"name", name}, {"env", std::move(env)}});
    }
    if (list) continue;
    if (containers.empty()) return Error(Code::not_found, "unable to find container named " + coracle::quoted(container_name));
    json::value object = TRY(send_patch(*session, flags, live, pod_spec_patch(*live.kind, {{"containers", std::move(containers)}}), kStrategicPatch));
    print_done(flags, live, object, "env updated");
  }
  return 0;
}

// ---- scale ----

Result<int> run_scale(Commands& commands, const TargetFlags& flags, int64_t replicas, int64_t current) {
  if (replicas < 0) return Error(Code::bad_request, "--replicas=COUNT is required, and COUNT must be greater than or equal to 0");
  Session* session = TRY(commands.session());
  std::vector<Live> found = TRY(live_objects(*session, flags, flags.args));
  for (const auto& live : found) {
    if (!live.kind->subresource("scale")) return Error(Code::bad_request, message_name(*live.kind, live.name) + " cannot be scaled");
    int64_t now = get_int(live.object, "spec.replicas", 1);
    if (current >= 0 && now != current)
      return Error(Code::conflict, "Expected replicas to be " + std::to_string(current) + ", was " + std::to_string(now));
    json::value patch(json::object{{"spec", {{"replicas", replicas}}}});
    json::value object = TRY(send_patch(*session, flags, live, patch, kMergePatch, "scale"));
    print_done(flags, live, object, "scaled");
  }
  return 0;
}

// ---- patch ----

Result<int> run_patch(Commands& commands, const TargetFlags& flags, const std::string& text, const std::string& file, const std::string& type,
                      const std::string& subresource) {
  static const std::map<std::string, const char*> types = {{"strategic", kStrategicPatch}, {"merge", kMergePatch}, {"json", kJsonPatch}};
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
  std::vector<Live> found = TRY(live_objects(*session, flags, flags.args));
  for (const auto& live : found) {
    json::value object = TRY(send_patch(*session, flags, live, parsed.front(), types.at(type), subresource));
    bool same = get_string(object, "metadata.resourceVersion") == get_string(live.object, "metadata.resourceVersion");
    print_done(flags, live, object, same ? "patched (no change)" : "patched");
  }
  return 0;
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
  if (status != 0) return Error(Code::cancelled, "edit: the editor " + coracle::quoted(editor) + " ended with status " + std::to_string(status));
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Result<void> edit_one(Session& session, const TargetFlags& flags, const Live& live) {
  json::value shown = live.object;
  if (auto* metadata = make(shown, "metadata").if_object()) metadata->erase("managedFields");
  std::string body = to_yaml(shown), head = kEditHead;
  std::string path = std::filesystem::temp_directory_path() / "coraclectl-edit-XXXXXX.yaml";
  Fd created(::mkstemps(path.data(), 5));  // its name cannot be guessed, and only we may read it
  if (!created) return Error::from_errno("create " + path);
  std::string before = without_comments(body);
  for (;;) {
    {
      std::ofstream file(path, std::ios::trunc);
      file << head << body;
    }
    std::string saved = TRY(edit_text(path));
    std::string edited = without_comments(saved);
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
      json::value patch = schema::strategic_diff(*live.kind, shown, parsed->front());
      patched = send_patch(session, flags, live, patch, kStrategicPatch);
    }
    if (patched) {
      std::filesystem::remove(path);
      print_done(flags, live, *patched, "edited");
      return {};
    }
    std::string why = patched.error().text();
    if (edited == without_comments(body) || !::isatty(STDIN_FILENO))
      return Error(patched.error().code(), why + "; your text is kept in " + path);
    head = std::string(kEditHead) + "# " + why + "\n#\n";
    body = edited;
  }
}

}  // namespace

void add_edit(Commands& commands) {
  for (auto [word, field] : {std::pair{"label", "labels"}, std::pair{"annotate", "annotations"}}) {
    auto flags = std::make_shared<TargetFlags>();
    auto list = std::make_shared<bool>(false);
    flags->field_manager = std::string("kubectl-") + word;
    CLI::App* command = commands.add(word, std::string("Set or remove ") + field + ": KIND NAME KEY=VALUE KEY-");
    flags->add_to(command);
    command->add_flag("--overwrite", flags->overwrite, "replace values that are there");
    command->add_flag("--list", *list, "show them");
    commands.on(command, [&commands, flags, list, field = std::string(field)] { return run_mark(commands, *flags, field, *list); });
  }

  CLI::App* set = commands.add("set", "Set parts of objects");
  set->require_subcommand(1);
  auto image_flags = std::make_shared<TargetFlags>();
  image_flags->field_manager = "kubectl-set";
  CLI::App* image = commands.add("image", "Images of containers: KIND/NAME CONTAINER=IMAGE", set);
  image_flags->add_to(image);
  commands.on(image, [&commands, image_flags] { return run_set_image(commands, *image_flags); });
  auto env_flags = std::make_shared<TargetFlags>();
  auto env_container = std::make_shared<std::string>();
  auto env_list = std::make_shared<bool>(false);
  env_flags->field_manager = "kubectl-set";
  CLI::App* env = commands.add("env", "Environment of containers: KIND/NAME NAME=VALUE NAME-", set);
  env_flags->add_to(env);
  env->add_option("-c,--containers", *env_container, "only this container");
  env->add_flag("--list", *env_list, "show it");
  commands.on(env, [&commands, env_flags, env_container, env_list] { return run_set_env(commands, *env_flags, *env_container, *env_list); });

  auto scale_flags = std::make_shared<TargetFlags>();
  auto replicas = std::make_shared<std::pair<int64_t, int64_t>>(-1, -1);
  CLI::App* scale = commands.add("scale", "Set the number of replicas");
  scale_flags->add_to(scale);
  scale->add_option("--replicas", replicas->first, "how many")->required();
  scale->add_option("--current-replicas", replicas->second, "only when there are this many now");
  commands.on(scale, [&commands, scale_flags, replicas] { return run_scale(commands, *scale_flags, replicas->first, replicas->second); });

  struct PatchFlags : TargetFlags {
    std::string patch, file, type = "strategic", subresource;
  };
  auto patch_flags = std::make_shared<PatchFlags>();
  patch_flags->field_manager = "kubectl-patch";
  CLI::App* patch = commands.add("patch", "Change fields of objects");
  patch_flags->add_to(patch);
  patch->add_option("-p,--patch", patch_flags->patch, "the patch, JSON or YAML");
  patch->add_option("--patch-file", patch_flags->file, "a file with the patch");
  patch->add_option("--type", patch_flags->type, "strategic, merge or json")->check(CLI::IsMember({"strategic", "merge", "json"}));
  patch->add_option("--subresource", patch_flags->subresource, "status or scale");
  commands.on(patch, [&commands, patch_flags] {
    return run_patch(commands, *patch_flags, patch_flags->patch, patch_flags->file, patch_flags->type, patch_flags->subresource);
  });

  auto edit_flags = std::make_shared<TargetFlags>();
  edit_flags->field_manager = "kubectl-edit";
  CLI::App* edit = commands.add("edit", "Edit objects in $EDITOR");
  edit_flags->add_to(edit);
  commands.on(edit, [&commands, edit_flags]() -> Result<int> {
    Session* session = TRY(commands.session());
    std::vector<Live> found = TRY(live_objects(*session, *edit_flags, edit_flags->args));
    for (const auto& live : found) TRY(edit_one(*session, *edit_flags, live));
    return 0;
  });
}

}  // namespace coracle::ctl
