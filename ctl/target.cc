// SPDX-License-Identifier: Apache-2.0
// See target.h.
#include "ctl/target.h"

#include "ctl/manifest_files.h"
#include "ctl/paged_list.h"
#include "ctl/print.h"
#include "ctl/selection.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/patch.h"
#include "store/object/selector.h"
#include "store/schema/merge.h"

namespace coracle::ctl {

void TargetFlags::add_to(Commands& commands, Command command) {
  command.add_option("args", args, "KIND NAME ..., KIND/NAME ..., then what to change");
  files.add_to(command);
  command.add_option("-l,--selector", selector, "label selector");
  commands.add_dry_run(command, dry_run);
  commands.add_output(command, output);
  command.add_option("--field-manager", field_manager, "who owns the fields");
  command.add_flag("--all", all, "all of the kind in the namespace");
}

Result<std::string> field_validation_of(const std::string& validate) {
  if (validate == "strict" || validate == "true") return std::string("Strict");
  if (validate == "warn") return std::string("Warn");
  if (validate == "ignore" || validate == "false") return std::string("Ignore");
  return Error(Code::bad_request, "invalid - validate option " + coracle::quoted(validate) +
                                      "; must be one of: strict (or true), warn, ignore (or false)");
}

std::string resource_name(const Live& live) {
  const auto& kind = live.kind->kind;
  return std::string(kind.resource) + (kind.group.empty() ? "" : "." + std::string(kind.group)) + " " +
         coracle::quoted(live.name);
}

namespace {

void read_live(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name, Targets& targets) {
  auto object = session.json({.path = session.path(kind, ns, name)});
  if (object) targets.found.push_back({&kind, ns, name, std::move(*object)});
  else targets.missing.push_back(object.take_error());
}

// Of the objects in the files, those whose labels the selector matches: of --local their own, else those that they have at the
// server.
Result<Targets> file_targets(Session& session, const TargetFlags& flags, const SelectionFlags& selection) {
  Targets targets;
  LabelSelector selector = TRY(LabelSelector::parse(selection.labels()));
  std::vector<Document> documents = TRY(read_documents(flags.files, &targets.missing));
  for (auto& document : documents) {
    json::value as_written = flags.local ? document.object : json::value();
    auto ns = settle_namespace(session, document);
    std::string name(metadata_of(document.object).name());
    if (!ns) targets.missing.push_back(ns.take_error());
    else if (flags.local) targets.found.push_back({document.kind, *ns, name, std::move(as_written)});
    else read_live(session, *document.kind, *ns, name, targets);
  }
  if (!selector.empty())
    std::erase_if(targets.found, [&](const Live& live) { return !selector.matches(metadata_of(live.object).labels()); });
  return targets;
}

Result<Targets> named_targets(Session& session, const TargetFlags& flags, const SelectionFlags& selection,
                              const std::vector<Named>& named) {
  Targets targets;
  for (const auto& one : named) {
    std::string ns = one.kind->kind.namespaced ? session.ns() : "";
    if (!one.name.empty()) {
      read_live(session, *one.kind, ns, one.name, targets);
      continue;
    }
    Request request{.path = session.path(*one.kind, selection.all_namespaces ? "" : ns)};
    if (!selection.labels().empty()) request.query.emplace_back("labelSelector", selection.labels());
    if (!selection.fields().empty()) request.query.emplace_back("fieldSelector", selection.fields());
    json::value list = TRY(paged_list(session, std::move(request), flags.chunk_size));
    for (const auto& item : items_of(list)) {
      targets.found.push_back(
          {one.kind, std::string(metadata_of(item).namespace_()), std::string(metadata_of(item).name()), item});
      name_kind(targets.found.back().object, *one.kind);
    }
  }
  return targets;
}

}  // namespace

Result<Targets> targets_of(Session& session, const TargetFlags& flags, const std::vector<std::string>& args, bool any,
                           bool all_namespaces) {
  if (flags.all && !trim(flags.selector).empty())
    return Error(Code::bad_request, "cannot set --all and --selector at the same time");
  if (flags.local && flags.files.empty())
    return Error(Code::bad_request,
                 "you must specify resources by --filename when --local is set.\nExample resource specifications include:\n"
                 "   '-f rsrc.yaml'\n   '--filename=rsrc.json'");
  if (args.empty() && flags.files.empty() && any) return Error(Code::bad_request, "required resource not specified");
  SelectionFlags selection{.files = flags.files,
                           .selector = flags.selector,
                           .field_selector = flags.field_selector,
                           .kind_means_all = any || flags.all,
                           .all_namespaces = all_namespaces};
  std::vector<Named> named = TRY(named_by(selection, args));
  if (!flags.files.empty()) return file_targets(session, flags, selection);
  return named_targets(session, flags, selection, named);
}

bool names_one(const TargetFlags& flags, const std::vector<std::string>& args) {
  if (!flags.files.files.empty()) {
    auto sources = manifest_sources(flags.files.files, flags.files.recursive);
    return sources && sources->size() == 1 && sources->front() != "-";
  }
  auto named = parse_named(args);
  return named && named->size() == 1 && !named->front().name.empty();
}

Result<Session*> target_session(Commands& commands, const TargetFlags& flags) {
  auto session = commands.session();
  if (session || !flags.local || session.error().code() != Code::not_found) return session;
  commands.flags().server = "https://localhost";
  return commands.session();
}

Result<int> act_on(Targets targets, const std::function<Result<void>(const Live&)>& act) {
  std::vector<Error> failures = std::move(targets.missing);
  for (const auto& live : targets.found)
    if (auto done = act(live); !done) failures.push_back(done.take_error());
  if (failures.size() == 1) return std::move(failures.front());
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

Result<json::value> send_patch(Session& session, const TargetFlags& flags, const Live& live, const json::value& patch,
                               const char* type, std::string_view subresource) {
  if (flags.dry_run == DryRun::client) return patched_here(live, patch, type);
  Request request{.method = "PATCH",
                  .path = session.path(*live.kind, live.ns, live.name, subresource),
                  .body = to_text(patch),
                  .content_type = type};
  if (!flags.field_manager.empty()) request.query.emplace_back("fieldManager", flags.field_manager);
  if (!flags.field_validation.empty()) request.query.emplace_back("fieldValidation", flags.field_validation);
  return session.json(request);
}

Result<json::value> patched_here(const Live& live, const json::value& patch, std::string_view type) {
  json::value object = live.object;
  if (type == kJsonPatch) TRY(apply_json_patch(object, patch));
  else if (type == kMergePatch) apply_merge_patch(object, patch);
  else object = TRY(schema::strategic_merge(*live.kind, std::move(object), patch));
  return object;
}

void print_done(const TargetFlags& flags, const Live& live, json::value object, std::string_view what) {
  print_outcome(flags.output, flags.dry_run, std::move(object), *live.kind, what);
}
}  // namespace coracle::ctl
