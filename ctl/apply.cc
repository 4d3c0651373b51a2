// SPDX-License-Identifier: Apache-2.0
// apply: brings the objects on the server to the state in the file. Client-side apply works as in kubectl: an annotation
// keeps the file as last applied. So a field that was removed from the file is removed from the object, and fields of other
// owners stay.
//   file ─┬─▶ strategic_diff3(last applied, file, live) ──PATCH──▶ server
//         └─▶ annotation kubectl.kubernetes.io/last-applied-configuration
// Server-side apply sends the file unchanged; the server finds in managedFields which fields the file owned before. Fields that
// client-side apply owned are migrated to the new manager (managed_fields.h).
// Source: Kubernetes "Declarative Management of Kubernetes Objects Using Configuration Files"; kubectl pkg/cmd/apply.
#include "ctl/apply.h"

#include <chrono>
#include <optional>
#include <utility>

#include "ctl/apply_set.h"
#include "ctl/field_check.h"
#include "ctl/last_applied.h"
#include "ctl/managed_fields.h"
#include "ctl/merge_conflict.h"
#include "ctl/print.h"
#include "ctl/selection.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/patch.h"
#include "store/object/yaml.h"
#include "store/schema/merge.h"

namespace coracle::ctl {

namespace {

constexpr int kConflictTries = 5;
constexpr const char* kServerSideManager = "kubectl";
constexpr auto kGoneTimeout = std::chrono::minutes(5);  // for --force: a finalizer may hold an object for a while

}  // namespace

std::string ApplyFlags::manager() const { return server_side && !manager_given ? kServerSideManager : field_manager; }

namespace {

// ---- server-side ----

constexpr const char* kConflictAdvice =
    "\nPlease review the fields above--they currently have other managers. Here\n"
    "are the ways you can resolve this warning:\n"
    "* If you intend to manage all of these fields, please re-run the apply\n"
    "  command with the `--force-conflicts` flag.\n"
    "* If you do not intend to manage all of the fields, please edit your\n"
    "  manifest to remove references to the fields that should keep their\n"
    "  current managers.\n"
    "* You may co-own fields by updating your manifest to match the existing\n"
    "  value; in this case, you'll become the manager if the other manager(s)\n"
    "  stop managing the field (remove it from their configuration).\n"
    "See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts";

// Server-side apply of one object. object_ is the object as the server returned it last.
class ServerSide {
 public:
  ServerSide(Session& session, const ApplyFlags& flags, const Document& document, std::string path)
      : session_(session), flags_(flags), document_(document), path_(std::move(path)) {}

  Result<json::value> apply() {
    TRY(send_document());
    if (flags_.quiet) return std::move(object_);  // to be compared only
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

  Result<void> send_document() {
    auto sent = send(flags_.manager(), document_.object);
    if (!sent && sent.error().code() == Code::conflict) return Error(Code::conflict, sent.error().text() + kConflictAdvice);
    return sent;
  }

  Result<void> send(const std::string& manager, const json::value& wanted) {
    Request request{.method = "PATCH",
                    .path = path_ + (flags_.subresource.empty() ? "" : "/" + flags_.subresource),
                    .query = {{"fieldManager", manager}, {"fieldValidation", *field_validation_of(flags_.validate)}},
                    .body = to_text(wanted),
                    .content_type = "application/apply-patch+yaml"};
    if (flags_.force_conflicts) request.query.emplace_back("force", "true");
    object_ = TRY(session_.json(request));
    return {};
  }

  // Gives the annotation a manager of its own. Otherwise applying a file without the annotation would remove it.
  Result<void> keep_last_applied() {
    const json::value* remembered = metadata_of(object_).annotations().if_contains(kLastApplied);
    if (flags_.manager() != kServerSideManager || !remembered || !owners_of_last_applied(object_, "Apply").empty()) return {};
    json::object annotations, metadata{{"name", metadata_of(object_).name()}};
    annotations[kLastApplied] = *remembered;
    if (metadata_of(object_).has_namespace_()) metadata["namespace"] = metadata_of(object_).namespace_();
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

// ---- client-side ----

void erase_nulls(json::value& value) {
  if (json::object* object = value.if_object()) {
    erase_members_if(*object, [](const auto& member) { return member.value().is_null(); });
    for (auto& member : *object) erase_nulls(member.value());
  } else if (json::array* items = value.if_array()) {
    for (auto& item : *items) erase_nulls(item);
  }
}

// Messages may be kept, where a Secret's values must not be.
void hide_values(json::value& changes) {
  for (const char* field : {"data", "stringData"})
    if (const json::value* values = find(changes, field); values && values->is_object())
      for (auto& member : make(changes, field).get_object())
        if (!member.value().is_null()) member.value() = "***";
}

// Client-side apply of one object.
class ClientSide {
 public:
  ClientSide(Session& session, const ApplyFlags& flags, const Document& document, std::string ns)
      : session_(session),
        flags_(flags),
        kind_(*document.kind),
        ns_(std::move(ns)),
        name_(metadata_of(document.object).name()),
        path_(session.path(kind_, ns_, name_)),
        source_(document.source),
        modified_(with_last_applied(document.object)) {}

  Result<Applied> apply() {
    for (int attempt = 1;; ++attempt) {
      auto live = session_.json({.path = path_});
      if (!live && live.error().code() != Code::not_found) {
        if (!live.error().details()) return live.take_error();  // no server answered: that is not about this object
        return told("retrieving current configuration of:\n" + description() + "\nfrom server for:", live.take_error());
      }
      auto applied = live ? patch(*live) : create();
      if (applied) return applied;
      bool is_late = applied.error().code() == Code::already_exists || applied.error().code() == Code::conflict;
      if (is_late && applied.error().details() && attempt < kConflictTries) continue;  // another client was faster
      bool may_force = flags_.deletion.force && live && applied.error().details() &&
                       (applied.error().code() == Code::conflict || applied.error().code() == Code::invalid);
      if (may_force) applied = delete_and_create(*live);
      if (applied) return applied;
      return told(live ? "applying" : "creating", applied.take_error());
    }
  }

 private:
  // What was being done of which file, but where it is only compared.
  Error told(const std::string& doing, Error error) const {
    if (flags_.quiet) return error;
    return std::move(error).wrap("error when " + doing + " " + coracle::quoted(source_));
  }
  std::string description() const {  // as Go shows the object
    const auto& kind = kind_.kind;
    std::string version = std::string(kind.group) + "/" + std::string(kind.version);
    return "Resource: " + coracle::quoted(version + ", Resource=" + std::string(kind.resource)) +
           ", GroupVersionKind: " + coracle::quoted(version + ", Kind=" + std::string(kind.kind)) +
           "\nName: " + coracle::quoted(name_) + ", Namespace: " + coracle::quoted(ns_);
  }

  Query query() const { return {{"fieldManager", flags_.manager()}, {"fieldValidation", *field_validation_of(flags_.validate)}}; }
  Result<json::value> post(const json::value& object) {
    return session_.json({.method = "POST", .path = session_.path(kind_, ns_), .query = query(), .body = to_text(object)});
  }

  Result<Applied> create() {
    json::value object = modified_;
    erase_nulls(object);  // as an update would treat them
    if (flags_.dry_run == DryRun::client) return Applied{std::move(object), "created"};
    json::value created = TRY(post(object));
    return Applied{std::move(created), "created"};
  }

  void warn_of_missing_annotation(const json::value& live) {
    if (flags_.quiet || last_applied_text(live) || std::exchange(warned_, true)) return;
    tell("Warning: resource " + std::string(kind_.kind.resource) + "/" + name_ + " is missing the " + std::string(kLastApplied) +
         " annotation which is required by coraclectl apply. coraclectl apply should only be used on resources created "
         "declaratively by either coraclectl create --save-config or coraclectl apply. The missing annotation will be patched "
         "automatically.\n");
  }

  // With --overwrite=false: nothing that others have changed since the last apply may be changed.
  Result<void> check_overwrite(const json::value& last, const json::value& live, const json::value& patch) const {
    if (flags_.overwrite) return {};
    json::value theirs = schema::strategic_diff(kind_, last.is_null() ? json::value(json::object()) : last, live), ours = patch;
    for (json::value* changes : {&theirs, &ours})
      if (!metadata_of(*changes).annotations().empty()) make(*changes, "metadata.annotations").get_object().erase(kLastApplied);
    if (!patches_conflict(&kind_.type(), ours, theirs)) return {};
    if (kind_.kind == kSecret)
      for (json::value* changes : {&theirs, &ours}) hide_values(*changes);
    return Error(Code::conflict, "--overwrite=false: the patch\n" + to_yaml(ours) +
                                     "conflicts with changes that others made since the last apply:\n" + to_yaml(theirs));
  }

  Result<Applied> patch(const json::value& live) {
    warn_of_missing_annotation(live);
    json::value last = last_applied_of(live);
    json::value patch = schema::strategic_diff3(kind_, last, modified_, live);
    if (const auto* object = patch.if_object(); object && object->empty()) return Applied{live, "unchanged"};
    TRY(check_overwrite(last, live, patch));
    if (flags_.dry_run == DryRun::client) {
      json::value merged = TRY(schema::strategic_merge(kind_, live, patch));
      return Applied{std::move(merged), "configured"};
    }
    json::value object = TRY(session_.json({.method = "PATCH",
                                            .path = path_,
                                            .query = query(),
                                            .body = to_text(patch),
                                            .content_type = "application/strategic-merge-patch+json"}));
    bool same = json_equal(object, live);  // a dry run leaves the revision unchanged
    return Applied{std::move(object), same ? "unchanged" : "configured"};
  }

  // --force: for changes that the server refuses. If the new object is refused too, the old one is created again.
  Result<Applied> delete_and_create(const json::value& live) {
    json::object options = TRY(deletion_options_of(session_, flags_.deletion));
    auto timeout = TRY(deletion_timeout_of(flags_.deletion, kGoneTimeout));
    TRY(session_.json({.method = "DELETE", .path = path_, .body = to_text(options)}));
    TRY(wait_gone(session_, kind_, ns_, name_, std::string(metadata_of(live).uid()), timeout));
    auto created = post(modified_);
    if (created) return Applied{std::move(*created), "configured"};
    json::value before = live;
    if (json::object* metadata = make(before, "metadata").if_object())
      erase_members_if(*metadata, [](const auto& member) {
        std::string_view name = member.key();
        return name == "uid" || name == "resourceVersion" || name == "creationTimestamp" || name == "managedFields";
      });
    auto restored = post(before);
    std::string text =
        "An error occurred force-replacing the existing object with the newly provided one:\n\n" + created.error().text();
    if (!restored)
      text += ".\n\nAdditionally, an error occurred attempting to restore the original object:\n\n" + restored.error().text();
    return Error(created.error().code(), text);
  }

  Session& session_;
  const ApplyFlags& flags_;
  const schema::KindInfo& kind_;
  std::string ns_, name_, path_, source_;
  json::value modified_;
  bool warned_ = false;
};

}  // namespace

void warn_of_deletion(const std::string& name) {
  tell("Warning: Detected changes to resource " + name + " which is currently being deleted.\n");
}

Result<Applied> apply_one(Session& session, const ApplyFlags& flags, const Document& document, const std::string& ns) {
  std::string name(metadata_of(document.object).name()), prefix(metadata_of(document.object).generate_name());
  if (name.empty() && !prefix.empty()) return Error(Code::invalid, "from " + prefix + ": cannot use generate name with apply");
  if (name.empty()) return Error(Code::invalid, document.source + ": metadata.name is missing (apply needs a name)");
  TRY(field_validation_of(flags.validate));
  Applied applied;
  if (flags.server_side) {
    applied.object = TRY(ServerSide(session, flags, document, session.path(*document.kind, ns, name)).apply());
    applied.what = "serverside-applied";
  } else {
    applied = TRY(ClientSide(session, flags, document, ns).apply());
  }
  if (!flags.quiet && metadata_of(applied.object).has_deletion_timestamp()) warn_of_deletion(name);
  return applied;
}

namespace {

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

Result<void> check_apply_flags(const ApplyFlags& flags) {
  auto wrong = [](const char* text) { return Error(Code::bad_request, text); };
  if (flags.files.empty()) return wrong("must specify one of -f and -k");
  if (flags.force_conflicts && !flags.server_side) return wrong("--force-conflicts only works with --server-side");
  if (flags.server_side && flags.dry_run == DryRun::client)  // client-side there is no server-side merge
    return wrong("--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)");
  if (flags.server_side && flags.deletion.force) return wrong("--force cannot be used with --server-side");
  if (flags.dry_run == DryRun::server && flags.deletion.force) return wrong("--dry-run=server cannot be used with --force");
  if (flags.all && !flags.selector.empty()) return wrong("cannot set --all and --selector at the same time");
  if (!flags.subresource.empty() && !flags.server_side) return wrong("--subresource can only be specified for --server-side");
  TRY(field_validation_of(flags.validate));
  TRY(check_cascade(flags.deletion.cascade));
  if (!flags.prune.prune) return flags.apply_set.empty() ? Result<void>() : wrong("--applyset requires --prune");
  if (flags.deletion.force) return wrong("--force cannot be used with --prune");
  if (!flags.apply_set.empty()) {
    if (flags.all) return wrong("--all is incompatible with --applyset");
    if (!flags.selector.empty()) return wrong("--selector is incompatible with --applyset");
    if (!flags.prune.allowlist.empty()) return wrong("--prune-allowlist is incompatible with --applyset");
    return {};
  }
  if (!flags.all && trim(flags.selector).empty())  // spaces would select everything
    return wrong(
        "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. If you "
        "did not mean to prune all resources, specify a label selector");
  if (flags.server_side) return wrong("--prune is in alpha and doesn't currently work on objects created by server-side apply");
  return {};
}

struct PlacedDocument {
  Document document;
  std::string ns;
};

// The documents with their namespaces. Those that cannot have theirs are told in `failures`.
std::vector<PlacedDocument> place_documents(Session& session, std::vector<Document> documents, bool is_strict,
                                            std::vector<Error>& failures) {
  std::vector<PlacedDocument> placed;
  for (Document& document : documents) {
    auto ns = settle_namespace(session, document);
    auto checked = ns && is_strict ? check_fields(session, document) : Result<void>();
    if (!ns) failures.push_back(ns.take_error());
    else if (!checked) failures.push_back(checked.take_error());
    else placed.push_back({std::move(document), *std::move(ns)});
  }
  return placed;
}

Result<void> prune_set(Session& session, const ApplyFlags& flags, const ApplySet& set, const Visited& visited) {
  std::vector<Prunable> objects = TRY(set.prunable(session, visited.uids));
  TRY(prune_objects(session, flags.deletion, flags.dry_run, flags.output, objects, pruning_of_member));
  return set.finish(session, flags.dry_run, *field_validation_of(flags.validate));
}

Result<int> run_apply(Commands& commands, const ApplyFlags& flags) {
  TRY(check_apply_flags(flags));
  Session* session = TRY(commands.session());
  std::optional<ApplySet> set;
  if (!flags.apply_set.empty()) {
    set = TRY(ApplySet::named(*session, flags.apply_set));
    if (auto faults = set->faults(); !faults.empty()) return print_failures(faults), 1;
  }
  std::vector<ApiResource> prune_resources;
  if (flags.prune.prune && !set) prune_resources = TRY(prune_resources_of(*session, flags.prune.allowlist));
  Visited visited;
  if (session->ns_given()) visited.namespaces.insert(session->ns());
  std::vector<Error> failures;
  std::vector<Document> documents = TRY(read_documents(flags.files.validated(flags.validate), &failures));
  TRY(select_documents(flags.selector, documents));
  if (documents.empty() && failures.empty()) return Error(Code::bad_request, "no objects passed to apply");
  std::vector<PlacedDocument> placed =
      place_documents(*session, std::move(documents), field_validation_of(flags.validate).value_or("") == "Strict", failures);
  if (set) {
    for (auto& [document, ns] : placed) TRY(set->add(*document.kind, ns, document.object));
    TRY(set->begin(*session, flags.dry_run, *field_validation_of(flags.validate)));
  }
  bool whole = flags.output.prints_objects();
  std::vector<std::pair<const schema::KindInfo*, json::value>> wholes;
  for (auto& [document, ns] : placed) {  // a failure is reported at the end; the other documents are still applied
    if (!ns.empty()) visited.namespaces.insert(ns);
    flags.recorder.record(document.object);
    auto applied = apply_one(*session, flags, document, ns);
    if (!applied) {
      failures.push_back(applied.take_error());
      continue;
    }
    visited.uids.insert(std::string(metadata_of(applied->object).uid()));
    if (whole) wholes.emplace_back(document.kind, std::move(applied->object));
    else print_outcome(flags.output, flags.dry_run, std::move(applied->object), *document.kind, applied->what);
  }
  if (!wholes.empty()) print_applied(flags, std::move(wholes));
  print_failures(failures);
  if (!failures.empty()) return 1;  // and nothing is pruned: an object that failed is not to be missed
  if (set) {
    TRY(prune_set(*session, flags, *set, visited));
  } else if (flags.prune.prune) {
    std::vector<Prunable> objects = TRY(prunable_objects(*session, prune_resources, flags.selector, visited));
    TRY(prune_objects(*session, flags.deletion, flags.dry_run, flags.output, objects, pruning_of_kind));
  }
  return 0;
}

}  // namespace

void add_apply(Commands& commands) {
  auto flags = std::make_shared<ApplyFlags>();
  Command apply = commands.add("apply", "Bring objects to what files say");
  flags->files.add_to(apply);
  commands.add_output(apply, flags->output);
  commands.add_dry_run(apply, flags->dry_run);
  apply.add_option("-l,--selector", flags->selector, "only the objects in the files with these labels");
  Flag manager = apply.add_option("--field-manager", flags->field_manager, "who owns the fields");
  apply.add_option("--validate", flags->validate, "strict, warn or ignore").optional_value("strict");
  apply.add_flag("--server-side", flags->server_side, "let the server merge, with field ownership");
  apply.add_flag("--force-conflicts", flags->force_conflicts, "with --server-side: take over fields of others");
  apply.add_option("--subresource", flags->subresource, "with --server-side: apply to this part only: status, scale");
  apply.add_flag("--overwrite", flags->overwrite, "change what others have changed too (--overwrite=false: do not)");
  apply.add_flag("--openapi-patch", flags->openapi_patch,
                 "taken for the sake of scripts: merge keys are those of the API in any case");
  flags->prune.add_to(apply);
  if (ApplySet::is_enabled())
    apply.add_option("--applyset", flags->apply_set,
                     "with --prune: [RESOURCE/]NAME of the object that keeps what belongs together, a Secret if not said");
  apply.add_flag("--all", flags->all, "with --prune: whatever labels the objects have");
  flags->deletion.add_to(apply);
  flags->recorder.add_to(commands, apply);
  commands.on(apply, [&commands, flags, manager] {
    flags->manager_given = manager.count() > 0;
    return run_apply(commands, *flags);
  });
  add_last_applied(commands, apply);
}

}  // namespace coracle::ctl
