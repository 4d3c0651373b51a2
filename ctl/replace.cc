// SPDX-License-Identifier: Apache-2.0
// replace: objects become what files say. With --force they are deleted, and created anew once they are gone.
// Source: kubectl pkg/cmd/replace.
#include "ctl/create.h"
#include "ctl/deletion.h"
#include "ctl/field_check.h"
#include "ctl/last_applied.h"
#include "ctl/selection.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr auto kReplacedTimeout = std::chrono::minutes(5);  // a finalizer may hold an object for a while

struct ReplaceFlags : CreateFlags {
  DeletionFlags deletion;
  std::string subresource, raw;
  std::vector<std::string> args;  // mean nothing, but for --force
};

Result<void> check_replace_flags(const ReplaceFlags& flags) {
  bool timeout_given = flags.deletion.timeout != "0s" && flags.deletion.timeout != "0";
  if (flags.deletion.grace_period >= 0 && !flags.deletion.force)
    return Error(Code::bad_request, "--grace-period must have --force specified");
  if (timeout_given && !flags.deletion.force) return Error(Code::bad_request, "--timeout must have --force specified");
  if (flags.deletion.force && flags.dry_run != DryRun::none)  // the new one cannot be tried while the old one is there
    return Error(Code::bad_request, "--dry-run can not be used when --force is set");
  if (flags.files.empty()) return Error(Code::bad_request, "must specify one of -f and -k");
  TRY(check_cascade(flags.deletion.cascade));
  return flags.check();
}

Result<void> check_document_name(const Document& document) {
  if (!metadata_of(document.object).name().empty()) return {};
  return Error(Code::invalid, "metadata.name is missing");
}

void remember_if(const ReplaceFlags& flags, json::value& object) {
  if (flags.save_config || last_applied_text(object)) object = with_last_applied(object);
  flags.recorder.record(object);
}

Result<void> replace_one(Session& session, const ReplaceFlags& flags, Document& document) {
  TRY(check_document_name(document));
  remember_if(flags, document.object);
  if (flags.dry_run != DryRun::client) {
    std::string ns(metadata_of(document.object).namespace_()), name(metadata_of(document.object).name());
    std::string path = session.path(*document.kind, ns, name, flags.subresource);
    if (metadata_of(document.object).resource_version().empty())  // some kinds cannot be replaced without
      if (auto live = session.json({.path = path}))
        if (std::string_view version = metadata_of(*live).resource_version(); !version.empty())
          make(document.object, "metadata.resourceVersion") = version;
    document.object =
        TRY(session.json({.method = "PUT", .path = path, .query = flags.query(), .body = to_text(document.object)}));
  }
  print_outcome(flags.output, flags.dry_run, std::move(document.object), *document.kind, "replaced");
  return {};
}

void print_deletion(const ReplaceFlags& flags, const Document& document, const std::string& ns, const std::string& name) {
  if (flags.output.prints_objects()) return;  // whoever reads these expects the objects alone
  if (flags.output == "name") return out(message_name(*document.kind, name) + "\n");
  std::string group = document.kind->kind.group.empty() ? "" : "." + std::string(document.kind->kind.group);
  out(std::string(document.kind->singular) + group + " " + coracle::quoted(name) + " deleted" +
      (ns.empty() ? "" : " from " + ns + " namespace") + "\n");
}

// All are deleted before the first one is created, so that they do not stand in each other's way.
Result<int> force_replace(Commands& commands, const ReplaceFlags& flags) {
  DeletionFlags deletion = flags.deletion;
  if (deletion.grace_period == 0) deletion.grace_period = 1;  // as kubectl: the object is waited for, and is not abandoned
  auto timeout = TRY(deletion_timeout_of(deletion, kReplacedTimeout));
  Session* session = TRY(commands.session());
  json::object options = TRY(deletion_options_of(*session, deletion));
  std::vector<Error> failures;
  std::vector<Document> documents = TRY(read_documents(flags.files, &failures)), gone;
  if (documents.empty() && failures.empty()) {
    out("No resources found\n");
    return Error(Code::bad_request, "no objects passed to replace");
  }
  auto place = [](const Document& document) {
    return std::pair(std::string(metadata_of(document.object).namespace_()), std::string(metadata_of(document.object).name()));
  };
  const bool is_strict = flags.files.validated(flags.validate).is_strict;
  for (auto& document : documents) {
    if (auto checked = is_strict ? check_fields(*session, document) : Result<void>(); !checked) {  // before the old one is gone
      failures.push_back(checked.take_error());
      continue;
    }
    auto removed = [&]() -> Result<void> {
      TRY(settle_namespace(*session, document));
      TRY(check_document_name(document));
      auto [ns, name] = place(document);
      auto answer =
          session->json({.method = "DELETE", .path = session->path(*document.kind, ns, name), .body = to_text(options)});
      if (!answer && answer.error().code() != Code::not_found) return answer.take_error();
      if (answer) print_deletion(flags, document, ns, name);
      return {};
    }();
    if (removed) gone.push_back(std::move(document));
    else failures.push_back(removed.take_error().wrap("error when deleting " + coracle::quoted(document.source)));
  }
  for (auto& document : gone) {
    auto created = [&]() -> Result<void> {
      auto [ns, name] = place(document);
      TRY(wait_gone(*session, *document.kind, ns, name, "", timeout));
      remember_if(flags, document.object);
      json::value made = TRY(session->json({.method = "POST",
                                            .path = session->path(*document.kind, ns),
                                            .query = flags.query(),
                                            .body = to_text(document.object)}));
      print_outcome(flags.output, flags.dry_run, std::move(made), *document.kind, "replaced");
      return {};
    }();
    if (!created) failures.push_back(created.take_error());  // kubectl does not say of which file
  }
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

}  // namespace

void add_replace(Commands& commands) {
  auto flags = std::make_shared<ReplaceFlags>();
  Command replace = commands.add("replace", "Replace objects by what files say");
  flags->files.add_to(replace);
  flags->field_manager = "kubectl-replace";
  flags->add_to(commands, replace);
  flags->deletion.add_to(replace);
  flags->recorder.add_to(commands, replace);
  replace.add_option("args", flags->args, "none").hide();
  replace.add_option("--subresource", flags->subresource, "replace this part only: status, scale, ...");
  replace.add_option("--raw", flags->raw, "a path to send the file to as it is");
  commands.on(replace, [&commands, flags]() -> Result<int> {
    if (!flags->raw.empty()) return send_raw(commands, *flags, "PUT", flags->raw);
    TRY(check_replace_flags(*flags));
    if (flags->deletion.force && !flags->args.empty()) TRY(named_by({.files = flags->files}, flags->args));  // it refuses them
    if (flags->deletion.force) return force_replace(commands, *flags);
    return each_document(commands, flags->files.validated(flags->validate), "replace",
                         [flags](Session& session, Document& document) { return replace_one(session, *flags, document); });
  });
}

}  // namespace coracle::ctl
