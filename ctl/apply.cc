// SPDX-License-Identifier: Apache-2.0
// apply, diff: bring the objects on the server to the state in the file. Client-side apply works as in kubectl: an annotation
// keeps the file as last applied. So a field that was removed from the file is removed from the object, and fields of other
// owners stay.
//   file ─┬─▶ strategic_diff3(last applied, file, live) ──PATCH──▶ server
//         └─▶ annotation kubectl.kubernetes.io/last-applied-configuration
// Server-side apply sends the file unchanged; the server finds in managedFields which fields the file owned before. Fields that
// client-side apply owned are migrated to the new manager (managed_fields.h).
// diff asks the server for a dry run of apply and compares the result with the live object.
// Source: Kubernetes "Declarative Management of Kubernetes Objects Using Configuration Files".
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ctl/command.h"
#include "ctl/last_applied.h"
#include "ctl/managed_fields.h"
#include "ctl/print.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/patch.h"
#include "store/object/yaml.h"
#include "store/schema/merge.h"

namespace coracle::ctl {
namespace {

constexpr int kConflictTries = 5;
constexpr const char* kServerSideManager = "kubectl";
constexpr int kDiffFailed = 2;  // status 1 means that there is a difference

struct ApplyFlags {
  FileFlags files;
  Output output;
  std::string field_manager, validate = "strict", kustomize;
  DryRun dry_run = DryRun::none;
  bool server_side = false, force_conflicts = false;
  bool quiet = false;  // no warning about the missing annotation

  std::string manager() const {
    return !field_manager.empty() ? field_manager : server_side ? kServerSideManager : "kubectl-client-side-apply";
  }
};

// The file's object, with the file itself in the last-applied annotation.
json::value with_last_applied(const json::value& wanted) {
  json::value remembered = wanted;
  if (auto* metadata = make(remembered, "metadata").if_object())
    if (auto* annotations = metadata->if_contains("annotations"); annotations && annotations->is_object())
      annotations->as_object().erase(kLastApplied);
  if (!find(remembered, "metadata.annotations")) make(remembered, "metadata.annotations").emplace_object();
  json::value modified = remembered;
  make(modified, "metadata.annotations").as_object()[kLastApplied] = to_text(remembered) + "\n";
  return modified;
}

json::value last_applied_of(const json::value& live) {
  const json::value* text = find_keys(live, {"metadata", "annotations", kLastApplied});
  if (!text || !text->is_string()) return nullptr;
  auto parsed = parse_json(text->get_string());
  return parsed ? std::move(*parsed) : json::value(nullptr);
}

struct Applied {
  json::value object;
  std::string what;  // "created", "configured", "unchanged", "serverside-applied"
};

std::string field_validation(const std::string& validate) {
  auto flag = parse_bool(validate);
  if (validate == "ignore" || (flag && !*flag)) return "Ignore";
  return validate == "warn" ? "Warn" : "Strict";
}

// ---- server-side ----

// Server-side apply of one object. object_ is the object as the server returned it last.
class ServerSide {
 public:
  ServerSide(Session& session, const ApplyFlags& flags, const Document& document, std::string path)
      : session_(session), flags_(flags), document_(document), path_(std::move(path)) {}

  Result<json::value> apply() {
    TRY(send(flags_.manager(), document_.object));
    // After client-side apply, another manager owns the fields. Without the migration, a field that the file drops would stay
    // forever.
    if (auto kept = keep_last_applied(); !kept) {
      warn("failed to migrate " + std::string(kLastApplied) + " for Server-Side Apply", kept.error());
      return std::move(object_);
    }
    auto handed_over = hand_over();
    if (!handed_over) {
      warn("server rejected managed fields migration to Server-Side Apply", handed_over.error());
    } else if (*handed_over) {  // apply again, so that fields missing from the file are removed
      auto again = send(flags_.manager(), document_.object);
      if (!again) warn("failed to re-apply configuration after performing Server-Side Apply migration", again.error());
    }
    return std::move(object_);
  }

 private:
  static void warn(const std::string& what, const Error& error) {
    tell("Warning: " + what + ". This is non-fatal and will be retried next time you apply. Error: " + error.text() + "\n");
  }

  Result<void> send(const std::string& manager, const json::value& wanted) {
    Request request{.method = "PATCH",
                    .path = path_,
                    .query = {{"fieldManager", manager}, {"fieldValidation", field_validation(flags_.validate)}},
                    .body = to_text(wanted),
                    .content_type = "application/apply-patch+yaml"};
    if (flags_.force_conflicts) request.query.emplace_back("force", "true");
    object_ = TRY(session_.json(request));
    return {};
  }

  // Gives the annotation a manager of its own. Otherwise applying a file without the annotation would remove it.
  Result<void> keep_last_applied() {
    const json::value* remembered = find_keys(object_, {"metadata", "annotations", kLastApplied});
    if (flags_.manager() != kServerSideManager || !remembered || !owners_of_last_applied(object_, "Apply").empty()) return {};
    json::object annotations, metadata{{"name", get_string(object_, "metadata.name")}};
    annotations[kLastApplied] = *remembered;
    if (find(object_, "metadata.namespace")) metadata["namespace"] = get_string(object_, "metadata.namespace");
    metadata["annotations"] = std::move(annotations);
    return send("kubectl-last-applied", json::object{{"apiVersion", document_.kind->kind.api_version()},
                                                     {"kind", document_.kind->kind.kind},
                                                     {"metadata", std::move(metadata)}});
  }

  // Returns true if fields were handed to our manager.
  Result<bool> hand_over() {
    std::vector<std::string> managers = owners_of_last_applied(object_, "Update");
    for (int attempt = 1;; ++attempt) {
      auto patch = handover_patch(object_, managers, flags_.manager());
      if (!patch) return false;
      auto patched = session_.json({.method = "PATCH",
                                    .path = path_,
                                    .query = {{"fieldManager", flags_.manager()}},
                                    .body = to_text(*patch),
                                    .content_type = "application/json-patch+json"});
      if (patched) return object_ = std::move(*patched), true;
      if (patched.error().code() != Code::conflict || attempt == kConflictTries) return patched.take_error();
      object_ = TRY(session_.json({.path = path_}));
    }
  }

  Session& session_;
  const ApplyFlags& flags_;
  const Document& document_;
  std::string path_;
  json::value object_;
};

Result<Applied> apply_one(Session& session, const ApplyFlags& flags, const Document& document, const std::string& ns) {
  const auto& kind = *document.kind;
  std::string name(get_string(document.object, "metadata.name"));
  if (name.empty()) return Error(Code::invalid, document.source + ": metadata.name is missing (apply needs a name)");
  Query common{{"fieldManager", flags.manager()}, {"fieldValidation", field_validation(flags.validate)}};
  std::string path = session.path(kind, ns, name);

  if (flags.server_side) {
    json::value object = TRY(ServerSide(session, flags, document, path).apply());
    return Applied{std::move(object), "serverside-applied"};
  }
  json::value modified = with_last_applied(document.object);
  for (int attempt = 1;; ++attempt) {
    auto live = session.json({.path = path});
    if (!live) {
      if (live.error().code() != Code::not_found) return live.take_error();
      if (flags.dry_run == DryRun::client) return Applied{std::move(modified), "created"};
      auto created = session.json({.method = "POST", .path = session.path(kind, ns), .query = common, .body = to_text(modified)});
      if (!created && created.error().code() == Code::already_exists && attempt < kConflictTries)
        continue;  // another client was faster
      json::value object = TRY(std::move(created));
      return Applied{std::move(object), "created"};
    }
    json::value last = last_applied_of(*live);
    if (!flags.quiet && last.is_null() && !find_keys(*live, {"metadata", "annotations", kLastApplied}))
      tell("Warning: resource " + message_name(kind, name) + " is missing the " + std::string(kLastApplied) +
           " annotation which is required by apply; it is added now.\n");
    json::value patch = schema::strategic_diff3(kind, last, modified, *live);
    if (const auto* object = patch.if_object(); object && object->empty()) return Applied{std::move(*live), "unchanged"};
    if (flags.dry_run == DryRun::client) {
      json::value merged = TRY(schema::strategic_merge(kind, std::move(*live), patch));
      return Applied{std::move(merged), "configured"};
    }
    auto patched = session.json({.method = "PATCH",
                                 .path = path,
                                 .query = common,
                                 .body = to_text(patch),
                                 .content_type = "application/strategic-merge-patch+json"});
    if (!patched && patched.error().code() == Code::conflict && attempt < kConflictTries) continue;
    json::value object = TRY(std::move(patched));
    bool same = json_equal(object, *live);  // a dry run leaves the revision unchanged
    return Applied{std::move(object), same ? "unchanged" : "configured"};
  }
}

// Several whole objects are printed as one List, as kubectl does.
void print_applied(const ApplyFlags& flags, std::vector<std::pair<const schema::KindInfo*, json::value>> applied) {
  if (applied.size() == 1) {
    name_kind(applied.front().second, *applied.front().first);
    return print_outcome(flags.output, flags.dry_run, std::move(applied.front().second), *applied.front().first, "");
  }
  json::array items;
  for (auto& [kind, object] : applied) {
    name_kind(object, *kind);
    items.push_back(std::move(object));
  }
  json::value list =
      json::object{{"apiVersion", "v1"}, {"items", std::move(items)}, {"kind", "List"}, {"metadata", {{"resourceVersion", ""}}}};
  flags.output.print(std::move(list));
}

Result<int> run_apply(Commands& commands, const ApplyFlags& flags) {
  if (!flags.kustomize.empty())
    return Error(Code::unsupported, "-k: kustomizations are not read here; build them with kustomize: kustomize build " +
                                        flags.kustomize + " | coraclectl apply -f -");
  if (flags.files.files.empty()) return Error(Code::bad_request, "must specify one of -f FILE, -f DIRECTORY or -f -");
  if (flags.server_side && flags.dry_run == DryRun::client)  // client-side there is no server-side merge
    return Error(Code::bad_request, "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)");
  Session* session = TRY(commands.session());
  std::vector<Error> failures;
  std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive, &failures));
  if (documents.empty() && failures.empty()) return Error(Code::bad_request, "no objects passed to apply");
  bool whole = flags.output.prints_objects();
  std::vector<std::pair<const schema::KindInfo*, json::value>> wholes;
  for (auto& document : documents) {  // a failure is reported at the end; the other documents are still applied
    auto ns = settle_namespace(*session, document);
    if (!ns) {
      failures.push_back(ns.take_error());
      continue;
    }
    auto applied = apply_one(*session, flags, document, *ns);
    if (!applied)
      failures.push_back(std::move(applied.take_error()).wrap("error when applying " + coracle::quoted(document.source)));
    else if (whole) wholes.emplace_back(document.kind, std::move(applied->object));
    else print_outcome(flags.output, flags.dry_run, std::move(applied->object), *document.kind, applied->what);
  }
  if (!wholes.empty()) print_applied(flags, std::move(wholes));
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

// ---- diff ----

// Secret values are not shown. The mask only shows whether two values differ.
void mask(json::value& live, json::value& merged) {
  for (const char* field : {"data", "stringData"}) {
    const json::object before = get_object(live, field), after = get_object(merged, field);
    for (json::value* side : {&live, &merged}) {
      json::object* root = side->if_object();
      json::value* data = root ? root->if_contains(field) : nullptr;
      if (!data || !data->is_object()) continue;
      for (auto& [key, value] : data->as_object()) {
        const json::value *a = before.if_contains(key), *b = after.if_contains(key);
        value = a && b && *a != *b ? (side == &live ? "*** (before)" : "*** (after)") : "***";
      }
    }
  }
}

Result<void> write_side(const std::string& directory, const std::string& name, json::value object) {
  if (!object.is_object()) return {};
  json::object& metadata = make(object, "metadata").as_object();
  metadata.erase("managedFields");
  json::value* annotations = metadata.if_contains("annotations");
  if (annotations && annotations->is_object()) {  // the annotation repeats the file, and so a Secret's values
    annotations->as_object().erase(kLastApplied);
    if (annotations->as_object().empty()) metadata.erase("annotations");
  }
  return sys::replace_file(directory + "/" + name, to_yaml(object), 0600, sys::Durability::volatile_);
}

Result<void> write_both(Session& session, const ApplyFlags& flags, Document& document, const std::string& ns,
                        const std::string& place) {
  const auto& kind = *document.kind;
  std::string name(get_string(document.object, "metadata.name"));
  json::value live;
  auto found = session.json({.path = session.path(kind, ns, name)});
  if (found) live = std::move(*found);
  else if (found.error().code() != Code::not_found) return found.take_error();
  Applied merged = TRY(apply_one(session, flags, document, ns));
  if (kind.kind == kSecret) mask(live, merged.object);
  std::string version = kind.kind.api_version(), file = version + "." + std::string(kind.kind.kind) + "." + ns + "." + name;
  std::replace(file.begin(), file.end(), '/', '.');
  TRY(write_side(place + "/LIVE", file, std::move(live)));
  return write_side(place + "/MERGED", file, std::move(merged.object));
}

Result<int> run_diff(Commands& commands, ApplyFlags flags) {
  if (flags.files.files.empty()) return Error(Code::bad_request, "must specify one of -f FILE, -f DIRECTORY or -f -");
  flags.quiet = true;
  Session* session = TRY(commands.session());
  session->set_dry_run(flags.dry_run = DryRun::server);
  std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
  std::string place = std::filesystem::temp_directory_path() / "coraclectl-diff-XXXXXX";
  if (!::mkdtemp(place.data())) return Error::from_errno("create " + place);
  Scope remove([&] { (void)sys::remove_tree(place); });
  for (const char* side : {"/LIVE", "/MERGED"}) TRY(sys::make_directories(place + side, 0700));
  for (auto& document : documents) {
    std::string ns = TRY(settle_namespace(*session, document));
    TRY(write_both(*session, flags, document, ns, place).wrap(document.source));
  }
  const char* chosen = std::getenv("KUBECTL_EXTERNAL_DIFF");
  std::vector<std::string> argv;
  for (std::string_view word : split(chosen && *chosen ? chosen : "diff -u -N", ' '))
    if (!word.empty()) argv.emplace_back(word);
  argv.push_back(place + "/LIVE");
  argv.push_back(place + "/MERGED");
  int status = TRY(run_program(argv));
  return status;
}

}  // namespace

void add_apply(Commands& commands) {
  auto flags = std::make_shared<ApplyFlags>();
  Command apply = commands.add("apply", "Bring objects to what files say");
  flags->files.add_to(apply);
  commands.add_output(apply, flags->output);
  commands.add_dry_run(apply, flags->dry_run);
  apply.add_option("--field-manager", flags->field_manager, "who owns the fields");
  apply.add_option("--validate", flags->validate, "strict, warn or ignore").optional_value("strict");
  apply.add_flag("--server-side", flags->server_side, "let the server merge, with field ownership");
  apply.add_flag("--force-conflicts", flags->force_conflicts, "with --server-side: take over fields of others");
  apply.add_option("-k,--kustomize", flags->kustomize, "a directory with a kustomization: not supported");
  commands.on(apply, [&commands, flags] { return run_apply(commands, *flags); });

  auto diff_flags = std::make_shared<ApplyFlags>();
  Command diff = commands.add("diff", "What apply would change. Exit status 0: nothing, 1: something, more: an error");
  diff_flags->files.add_to(diff);
  diff.add_option("--field-manager", diff_flags->field_manager, "who owns the fields");
  diff.add_flag("--server-side", diff_flags->server_side, "let the server merge, with field ownership");
  diff.add_flag("--force-conflicts", diff_flags->force_conflicts, "with --server-side: take over fields of others");
  commands.on(diff, [&commands, diff_flags]() -> Result<int> {
    auto done = run_diff(commands, *diff_flags);
    if (done) return done;
    print_failure(done.error());
    return kDiffFailed;
  });
}

}  // namespace coracle::ctl
