// SPDX-License-Identifier: Apache-2.0
// apply, diff: brings what is there to what the file says. Client-side as kubectl does it: the file as last applied is kept in an
// annotation, so that a field taken out of the file is taken out of the object, and fields of others are left alone.
//   file ─┬─▶ strategic_diff3(last applied, file, live) ──PATCH──▶ server
//         └─▶ annotation kubectl.kubernetes.io/last-applied-configuration
// diff asks the server for the same without doing it, and compares with what is there now.
// Source: Kubernetes "Declarative Management of Kubernetes Objects Using Configuration Files".
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ctl/command.h"
#include "ctl/last_applied.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/yaml.h"
#include "store/schema/merge.h"

namespace coracle::ctl {
namespace {

constexpr int kConflictTries = 5;
constexpr int kDiffFailed = 2;  // 1 means that there is a difference

struct ApplyFlags {
  FileFlags files;
  std::string output, dry_run, selector, field_manager = "kubectl-client-side-apply", validate = "strict";
  std::string kustomize;
  bool server_side = false, force_conflicts = false, overwrite = true;
  bool quiet = false;  // no warning about the missing annotation
};

// The file's object with the annotation that remembers it.
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
  if (validate == "false" || validate == "ignore") return "Ignore";
  return validate == "warn" ? "Warn" : "Strict";
}

Result<Applied> apply_one(Session& session, const ApplyFlags& flags, const Document& document, const std::string& ns) {
  const auto& kind = *document.kind;
  std::string name(get_string(document.object, "metadata.name"));
  if (name.empty()) return Error(Code::invalid, document.source + ": metadata.name is missing (apply needs a name)");
  Query common{{"fieldManager", flags.field_manager}, {"fieldValidation", field_validation(flags.validate)}};
  if (flags.dry_run == "server") common.emplace_back("dryRun", "All");
  std::string path = session.path(kind, ns, name);

  if (flags.server_side) {
    Query query = common;
    if (flags.force_conflicts) query.emplace_back("force", "true");
    json::value object = TRY(session.json({.method = "PATCH",
                                           .path = path,
                                           .query = query,
                                           .body = to_text(document.object),
                                           .content_type = "application/apply-patch+yaml"}));
    return Applied{std::move(object), "serverside-applied"};
  }
  json::value modified = with_last_applied(document.object);
  for (int attempt = 1;; ++attempt) {
    auto live = session.json({.path = path});
    if (!live) {
      if (live.error().code() != Code::not_found) return live.take_error();
      if (flags.dry_run == "client") return Applied{std::move(modified), "created"};
      auto created = session.json({.method = "POST", .path = session.path(kind, ns), .query = common, .body = to_text(modified)});
      if (!created && created.error().code() == Code::already_exists && attempt < kConflictTries)
        continue;  // somebody was faster
      json::value object = TRY(std::move(created));
      return Applied{std::move(object), "created"};
    }
    json::value last = last_applied_of(*live);
    if (!flags.quiet && last.is_null() && !find_keys(*live, {"metadata", "annotations", kLastApplied}))
      std::fprintf(stderr, "Warning: resource %s is missing the %s annotation which is required by apply; it is added now.\n",
                   message_name(kind, name).c_str(), std::string(kLastApplied).c_str());
    json::value patch = schema::strategic_diff3(kind, last, modified, *live);
    if (const auto* object = patch.if_object(); object && object->empty()) return Applied{std::move(*live), "unchanged"};
    if (flags.dry_run == "client") return Applied{std::move(*live), "configured"};
    auto patched = session.json({.method = "PATCH",
                                 .path = path,
                                 .query = common,
                                 .body = to_text(patch),
                                 .content_type = "application/strategic-merge-patch+json"});
    if (!patched && patched.error().code() == Code::conflict && attempt < kConflictTries) continue;
    json::value object = TRY(std::move(patched));
    bool same = get_string(object, "metadata.resourceVersion") == get_string(*live, "metadata.resourceVersion");
    return Applied{std::move(object), same ? "unchanged" : "configured"};
  }
}

Result<int> run_apply(Commands& commands, const ApplyFlags& flags) {
  if (!flags.kustomize.empty())
    return Error(Code::unsupported, "-k: kustomizations are not read here; build them with kustomize: kustomize build " +
                                        flags.kustomize + " | coraclectl apply -f -");
  if (flags.files.files.empty()) return Error(Code::bad_request, "must specify one of -f FILE, -f DIRECTORY or -f -");
  Session* session = TRY(commands.session());
  std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
  if (documents.empty()) return Error(Code::bad_request, "no objects passed to apply");
  int failures = 0;
  for (auto& document : documents) {
    std::string ns = TRY(settle_namespace(*session, document));
    auto applied = apply_one(*session, flags, document, ns);
    if (!applied) {  // the others still get their turn
      print_failure(std::move(applied.take_error()).wrap("error when applying " + coracle::quoted(document.source)));
      ++failures;
      continue;
    }
    print_outcome(flags.output, flags.dry_run, std::move(applied->object), *document.kind, applied->what);
  }
  return failures ? 1 : 0;
}

// ---- diff ----

// Secrets are told apart, not shown.
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
  if (annotations && annotations->is_object()) {  // the file again; of a Secret, with what is masked elsewhere
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
  flags.dry_run = "server", flags.quiet = true;
  Session* session = TRY(commands.session());
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
  apply.add_option("-o,--output", flags->output, "yaml, json or name");
  add_dry_run(apply, flags->dry_run);
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
