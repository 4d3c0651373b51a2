// SPDX-License-Identifier: Apache-2.0
// apply: brings what is there to what the file says. Client-side as kubectl does it: the file as last applied is kept in an
// annotation, so that a field taken out of the file is taken out of the object, and fields of others are left alone.
//   file ─┬─▶ strategic_diff3(last applied, file, live) ──PATCH──▶ server
//         └─▶ annotation kubectl.kubernetes.io/last-applied-configuration
// Source: Kubernetes "Declarative Management of Kubernetes Objects Using Configuration Files".
#include "ctl/command.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"
#include "store/schema/merge.h"

namespace coracle::ctl {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr int kConflictTries = 5;

struct ApplyFlags {
  FileFlags files;
  std::string output, dry_run, selector, field_manager = "kubectl-client-side-apply", validate = "strict";
  bool server_side = false, force_conflicts = false, overwrite = true;
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
    json::value object = TRY(session.json({.method = "PATCH", .path = path, .query = query, .body = to_text(document.object),
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
      if (!created && created.error().code() == Code::already_exists && attempt < kConflictTries) continue;  // somebody was faster
      json::value object = TRY(std::move(created));
      return Applied{std::move(object), "created"};
    }
    json::value last = last_applied_of(*live);
    if (last.is_null() && !find_keys(*live, {"metadata", "annotations", kLastApplied}))
      std::fprintf(stderr,
                   "Warning: resource %s is missing the %s annotation which is required by apply; it is added now.\n",
                   message_name(kind, name).c_str(), std::string(kLastApplied).c_str());
    json::value patch = schema::strategic_diff3(kind, last, modified, *live);
    if (const auto* object = patch.if_object(); object && object->empty()) return Applied{std::move(*live), "unchanged"};
    if (flags.dry_run == "client") return Applied{std::move(*live), "configured"};
    auto patched = session.json({.method = "PATCH", .path = path, .query = common, .body = to_text(patch),
                                 .content_type = "application/strategic-merge-patch+json"});
    if (!patched && patched.error().code() == Code::conflict && attempt < kConflictTries) continue;
    json::value object = TRY(std::move(patched));
    bool same = get_string(object, "metadata.resourceVersion") == get_string(*live, "metadata.resourceVersion");
    return Applied{std::move(object), same ? "unchanged" : "configured"};
  }
}

Result<int> run(Commands& commands, const ApplyFlags& flags) {
  if (flags.files.files.empty()) return Error(Code::bad_request, "must specify one of -f FILE, -f DIRECTORY or -f -");
  Session* session = TRY(commands.session());
  std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
  if (documents.empty()) return Error(Code::bad_request, "no objects passed to apply");
  int failures = 0;
  for (auto& document : documents) {
    std::string ns(get_string(document.object, "metadata.namespace"));
    if (document.kind->kind.namespaced) {
      if (ns.empty()) make(document.object, "metadata.namespace") = ns = session->ns();
      else if (!commands.flags().ns.empty() && ns != session->ns())
        return Error(Code::bad_request, "the namespace from the provided object " + coracle::quoted(ns) + " does not match the namespace " +
                                            coracle::quoted(session->ns()) + ". You must pass '--namespace=" + ns + "' to perform this operation.");
    }
    auto applied = apply_one(*session, flags, document, ns);
    if (!applied) {  // the others still get their turn
      std::fprintf(stderr, "Error from server (%s): error when applying %s: %s\n", code_name(applied.error().code()),
                   coracle::quoted(document.source).c_str(), applied.error().text().c_str());
      ++failures;
      continue;
    }
    std::string note = flags.dry_run == "client" ? " (dry run)" : flags.dry_run == "server" ? " (server dry run)" : "";
    if (flags.output == "yaml") out(to_yaml(applied->object));
    else if (flags.output == "json") out(to_pretty(applied->object) + "\n");
    else if (flags.output == "name") out(message_name(*document.kind, get_string(applied->object, "metadata.name")) + "\n");
    else out(message_name(*document.kind, get_string(applied->object, "metadata.name")) + " " + applied->what + note + "\n");
  }
  return failures ? 1 : 0;
}

}  // namespace

void add_apply(Commands& commands) {
  auto flags = std::make_shared<ApplyFlags>();
  CLI::App* apply = commands.add("apply", "Bring objects to what files say");
  flags->files.add_to(apply);
  apply->add_option("-o,--output", flags->output, "yaml, json or name");
  apply->add_option("--dry-run", flags->dry_run, "none, client or server")->expected(0, 1)->default_str("client")
      ->check(CLI::IsMember({"none", "client", "server"}));
  apply->add_option("--field-manager", flags->field_manager, "who owns the fields");
  apply->add_option("--validate", flags->validate, "strict, warn or ignore")->expected(0, 1);
  apply->add_flag("--server-side", flags->server_side, "let the server merge, with field ownership");
  apply->add_flag("--force-conflicts", flags->force_conflicts, "with --server-side: take over fields of others");
  commands.on(apply, [&commands, flags] { return run(commands, *flags); });
}

}  // namespace coracle::ctl
