// SPDX-License-Identifier: Apache-2.0
// delete: removes objects and, unless told otherwise, waits until they are gone.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "ctl/command.h"
#include "ctl/deletion.h"
#include "ctl/raw.h"
#include "ctl/selection.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

struct DeleteFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string selector, field_selector, cascade = "background", output, timeout = "0s", raw;
  DryRun dry_run = DryRun::none;
  int64_t grace_period = -1;  // seconds; -1: the object's own
  bool all = false, all_namespaces = false, force = false, now = false, ignore_not_found = false, wait = true;
  bool interactive = false;
  Flag ignore_not_found_flag;

  SelectionFlags selection() const {
    return {.files = files, .selector = selector, .field_selector = field_selector, .all = all, .all_namespaces = all_namespaces};
  }
};

struct Doomed {
  const schema::KindInfo* kind;
  std::string ns, name, uid;
  std::string source;  // "web.yaml:1"; "": it was not in a file
};

Result<void> collect(Session& session, const DeleteFlags& flags, const schema::KindInfo& kind, std::vector<Doomed>& doomed) {
  Request request{.path = session.path(kind, flags.all_namespaces || !kind.kind.namespaced ? "" : session.ns())};
  SelectionFlags selection = flags.selection();
  if (!selection.labels().empty()) request.query.emplace_back("labelSelector", selection.labels());
  if (!selection.fields().empty()) request.query.emplace_back("fieldSelector", selection.fields());
  json::value list = TRY(session.json(request));
  for (const auto& item : items_of(list))
    doomed.push_back({&kind, std::string(metadata_of(item).namespace_()), std::string(metadata_of(item).name()), {}, {}});
  return {};
}

// What is to go. Files, documents and kinds that cannot be read are told in `failures`, the others are processed all the same.
Result<std::vector<Doomed>> doomed_of(Session& session, const DeleteFlags& flags, const std::vector<Named>& named,
                                      std::vector<Error>& failures) {
  std::vector<Doomed> doomed;
  if (!flags.files.empty()) {
    std::vector<Document> documents = TRY(read_documents(flags.files, &failures));
    TRY(select_documents(flags.selection().labels(), documents));
    for (auto& document : documents) {
      auto ns = settle_namespace(session, document);
      if (!ns) failures.push_back(ns.take_error());
      else doomed.push_back({document.kind, *ns, std::string(metadata_of(document.object).name()), {}, document.source});
    }
    return doomed;
  }
  for (const auto& one : named) {
    if (!one.name.empty()) doomed.push_back({one.kind, one.kind->kind.namespaced ? session.ns() : "", one.name, {}, {}});
    else if (auto found = collect(session, flags, *one.kind, doomed); !found) failures.push_back(found.take_error());
  }
  return doomed;
}

Result<void> check_delete_flags(const DeleteFlags& flags) {
  if (!flags.output.empty() && flags.output != "name")
    return Error(Code::bad_request, "unexpected -o output mode: " + flags.output + ". We only support '-o name'");
  if (flags.force && (flags.now || flags.grace_period > 0))
    return Error(Code::bad_request, "--force and --grace-period greater than 0 cannot be specified together");
  return {};
}

// What was selected may be gone by now, so that it is absent is no failure unless the line says so.
bool ignores_absent(const DeleteFlags& flags) {
  if (flags.ignore_not_found_flag.count() > 0) return flags.ignore_not_found;
  return flags.all || flags.selection().has_selector();
}

// Seconds that a pod gets to stop; -1: its own. Nothing is killed at once unless --force says that this is meant.
int64_t grace_of(const DeleteFlags& flags) {
  if (flags.now) return 1;
  if (flags.force) return 0;
  return flags.grace_period == 0 ? 1 : flags.grace_period;
}

json::object options_of(const Session& session, const DeleteFlags& flags) {
  json::object options = session.delete_options();
  if (int64_t grace = grace_of(flags); grace >= 0) options["gracePeriodSeconds"] = grace;
  options["propagationPolicy"] = *propagation_of(flags.cascade);  // was checked
  return options;
}

void print_deleted(const DeleteFlags& flags, const Doomed& one) {
  if (flags.output == "name") return out(message_name(*one.kind, one.name) + "\n");
  std::string group = one.kind->kind.group.empty() ? "" : "." + std::string(one.kind->kind.group);
  out(std::string(one.kind->singular) + group + " " + coracle::quoted(one.name) + (flags.force ? " force deleted" : " deleted") +
      (one.ns.empty() ? "" : " from " + one.ns + " namespace") + dry_run_note(flags.dry_run) + "\n");
}

// Shows what is to go and asks. Nothing is deleted by anything but a "y".
bool is_confirmed(const std::vector<Doomed>& doomed) {
  out("You are about to delete the following " + std::to_string(doomed.size()) + " resource(s):\n");
  for (const auto& one : doomed) {
    std::string group = one.kind->kind.group.empty() ? "" : "." + std::string(one.kind->kind.group);
    out(to_lower(one.kind->kind.kind) + group + "/" + one.name + "\n");
  }
  out("Do you want to continue? (y/N): ");
  std::string answer;
  for (int c; (c = std::getchar()) != EOF && c != '\n';) answer += char(c);
  return to_lower(trim(answer)) == "y";
}

// Of an interactive deletion: names that are not there are told before anybody is asked.
Result<void> check_presence(Session& session, const DeleteFlags& flags, std::vector<Doomed>& doomed) {
  std::vector<Doomed> there;
  for (auto& one : doomed) {
    auto object = session.json({.path = session.path(*one.kind, one.ns, one.name)});
    if (object) there.push_back(std::move(one));
    else if (object.error().code() != Code::not_found || !ignores_absent(flags)) return object.take_error();
  }
  doomed = std::move(there);
  return {};
}

// Waits until all are gone, for no longer than `timeout` together; 0 is no limit. Who may not watch need not wait. Errors: of the
// first that does not go, as kubectl.
Result<void> wait_for_all(Session& session, const std::vector<Doomed>& doomed, std::chrono::milliseconds timeout) {
  using std::chrono::milliseconds, std::chrono::steady_clock;
  auto deadline = steady_clock::now() + timeout;
  for (const auto& one : doomed) {
    auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    auto gone = wait_gone(session, *one.kind, one.ns, one.name, one.uid,
                          timeout.count() == 0 ? timeout : std::max(left, milliseconds(1)));
    bool may_not = !gone && (gone.error().code() == Code::forbidden || gone.error().code() == Code::method_not_allowed);
    if (may_not) return {};
    TRY(std::move(gone));
  }
  return {};
}

Result<int> run_delete(Commands& commands, const DeleteFlags& flags) {
  if (!flags.raw.empty()) {
    if (!flags.args.empty()) return Error(Code::bad_request, "--raw and arguments are mutually exclusive");
    if (flags.files.recursive) return Error(Code::bad_request, "--raw and --recursive are mutually exclusive");
    if (!flags.output.empty()) return Error(Code::bad_request, "--raw and --output are mutually exclusive");
    if (flags.interactive) return Error(Code::bad_request, "--interactive can not be used with --raw");
    return run_raw(commands, {.method = "DELETE", .path = flags.raw, .files = flags.files.files});
  }
  TRY(check_cascade(flags.cascade));
  if (flags.now && flags.grace_period != -1)
    return Error(Code::bad_request, "--now and --grace-period cannot be specified together");
  std::vector<Named> named = TRY(named_by(flags.selection(), flags.args));
  TRY(check_delete_flags(flags));
  if (flags.force)
    tell(
        "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource "
        "may continue to run on the cluster indefinitely.\n");
  Session* session = TRY(commands.session());
  auto timeout = TRY(parse_timeout(flags.timeout).wrap("--timeout"));
  std::vector<Error> failures;
  std::vector<Doomed> doomed = TRY(doomed_of(*session, flags, named, failures)), waiting;
  if (flags.interactive) TRY(check_presence(*session, flags, doomed));
  if (doomed.empty() && failures.empty()) {
    out("No resources found\n");
    return 0;
  }
  if (flags.interactive && !is_confirmed(doomed)) {
    out("deletion is cancelled\n");
    print_failures(failures);
    return failures.empty() ? 0 : 1;
  }
  std::string options = to_text(options_of(*session, flags));
  auto failed = [&](const Doomed& one, Error error) {
    if (one.source.empty()) failures.push_back(std::move(error));
    else failures.push_back(std::move(error).wrap("error when deleting " + coracle::quoted(one.source)));
  };
  bool tells_scope = session->ns_given() && !flags.all_namespaces;
  for (auto& one : doomed) {
    if (one.name.empty()) {  // in a dry run, too
      failed(one, Error(Code::bad_request, "resource name may not be empty"));
      continue;
    }
    if (tells_scope && !one.kind->kind.namespaced) {
      tell("Warning: deleting cluster-scoped resources, not scoped to the provided namespace\n");
      tells_scope = false;
    }
    if (flags.dry_run != DryRun::client) {
      auto answer = session->json({.method = "DELETE", .path = session->path(*one.kind, one.ns, one.name), .body = options});
      if (!answer) {
        if (answer.error().code() != Code::not_found || !ignores_absent(flags)) failed(one, answer.take_error());
        continue;
      }
      one.uid = kind_in(*answer) == "Status" ? view::Status(*answer).details().uid() : metadata_of(*answer).uid();
      waiting.push_back(one);
    }
    print_deleted(flags, one);
  }
  print_failures(failures);
  if (!failures.empty()) return 1;  // at once: who reads that something failed need not wait for the rest
  if (flags.wait && flags.dry_run == DryRun::none) TRY(wait_for_all(*session, waiting, timeout));
  return 0;
}

}  // namespace

void add_delete(Commands& commands) {
  auto flags = std::make_shared<DeleteFlags>();
  Command command = commands.add("delete", "Remove objects");
  command.add_option("args", flags->args, "KIND NAME ..., KIND/NAME ..., KIND -l SELECTOR, KIND --all");
  flags->files.add_to(command);
  command.add_option("-l,--selector", flags->selector, "label selector");
  command.add_option("--field-selector", flags->field_selector, "field selector");
  command.add_option("--cascade", flags->cascade, "background, foreground or orphan").optional_value("background");
  command.add_option("--grace-period", flags->grace_period, "seconds a pod gets to stop; -1: its own; 0 needs --force");
  command.add_option("--timeout", flags->timeout, "how long to wait; 0s: as long as it takes").as_duration();
  command.add_option("-o,--output", flags->output, "name");
  command.add_option("--raw", flags->raw, "a path to delete as it is");
  commands.add_dry_run(command, flags->dry_run);
  command.add_flag("-i,--interactive", flags->interactive, "show what is to go, and ask first");
  command.add_flag("--all", flags->all, "all of the kind in the namespace");
  command.add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
  command.add_flag("--force", flags->force, "kill at once");
  command.add_flag("--now", flags->now, "one second of grace");
  flags->ignore_not_found_flag =
      command.add_flag("--ignore-not-found", flags->ignore_not_found, "an absent object is no failure");
  command.add_flag("--wait,!--no-wait", flags->wait, "wait until they are gone (--wait=false: do not)");
  commands.on(command, [&commands, flags] { return run_delete(commands, *flags); });
}

}  // namespace coracle::ctl
