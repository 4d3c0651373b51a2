// SPDX-License-Identifier: Apache-2.0
// delete: removes objects and, unless told otherwise, waits until they are gone.

#include "ctl/command.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

struct DeleteFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string selector, field_selector, cascade = "background", output, dry_run, timeout = "0s";
  int64_t grace_period = -1;
  bool all = false, all_namespaces = false, force = false, now = false, ignore_not_found = false, wait = true;
};

struct Doomed {
  const schema::KindInfo* kind;
  std::string ns, name, uid;
};

Result<void> collect(Session& session, const DeleteFlags& flags, const schema::KindInfo& kind, std::vector<Doomed>& doomed) {
  Request request{.path = session.path(kind, flags.all_namespaces || !kind.kind.namespaced ? "" : session.ns())};
  if (!flags.selector.empty()) request.query.emplace_back("labelSelector", flags.selector);
  if (!flags.field_selector.empty()) request.query.emplace_back("fieldSelector", flags.field_selector);
  json::value list = TRY(session.json(request));
  for (const auto& item : get_array(list, "items"))
    doomed.push_back(
        {&kind, std::string(get_string(item, "metadata.namespace")), std::string(get_string(item, "metadata.name")), {}});
  return {};
}

Result<std::vector<Doomed>> doomed_of(Session& session, const DeleteFlags& flags) {
  std::vector<Doomed> doomed;
  if (!flags.files.files.empty()) {
    std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
    for (auto& document : documents) {
      std::string ns = TRY(settle_namespace(session, document));
      doomed.push_back({document.kind, ns, std::string(get_string(document.object, "metadata.name")), {}});
    }
    return doomed;
  }
  if (flags.args.empty()) return Error(Code::bad_request, "You must provide one or more resources by argument or filename.");
  std::vector<Named> named = TRY(parse_named(flags.args));
  for (const auto& one : named) {
    if (!one.name.empty()) {
      doomed.push_back({one.kind, one.kind->kind.namespaced ? session.ns() : "", one.name, {}});
    } else if (flags.all || !flags.selector.empty() || !flags.field_selector.empty()) {
      TRY(collect(session, flags, *one.kind, doomed));
    } else {
      return Error(Code::bad_request, "resource(s) were provided, but no name was specified (use --all to delete all of them)");
    }
  }
  return doomed;
}

std::string options_body(const DeleteFlags& flags) {
  json::object options{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  int64_t grace = flags.now ? 1 : flags.force && flags.grace_period < 0 ? 0 : flags.grace_period;
  if (grace >= 0) options["gracePeriodSeconds"] = grace;
  options["propagationPolicy"] = flags.cascade == "orphan" || flags.cascade == "false" ? "Orphan"
                                 : flags.cascade == "foreground"                       ? "Foreground"
                                                                                       : "Background";
  return to_text(options);
}

Result<int> run_delete(Commands& commands, const DeleteFlags& flags) {
  if (flags.grace_period == 0 && !flags.force && !flags.now)
    std::fputs("warning: --grace-period=0 kills at once; add --force to say that this is meant\n", stderr);
  Session* session = TRY(commands.session());
  auto timeout = TRY(parse_timeout(flags.timeout).wrap("--timeout"));
  std::vector<Doomed> doomed = TRY(doomed_of(*session, flags));
  if (doomed.empty()) {
    out("No resources found\n");
    return 0;
  }
  int failures = 0;
  std::vector<Doomed> waiting;
  for (auto& one : doomed) {
    Request request{.method = "DELETE", .path = session->path(*one.kind, one.ns, one.name), .body = options_body(flags)};
    if (flags.dry_run == "server") request.query.emplace_back("dryRun", "All");
    if (flags.dry_run != "client") {
      auto answer = session->json(request);
      if (!answer) {
        if (answer.error().code() == Code::not_found && flags.ignore_not_found) continue;
        if (doomed.size() == 1) return answer.take_error();
        print_failure(answer.error());
        ++failures;
        continue;
      }
      one.uid = get_string(*answer, get_string(*answer, "kind") == "Status" ? "details.uid" : "metadata.uid");
      waiting.push_back(one);
    }
    std::string how = flags.force ? " force deleted" : " deleted";
    std::string group = one.kind->kind.group.empty() ? "" : "." + std::string(one.kind->kind.group);
    if (flags.output == "name") out(message_name(*one.kind, one.name) + "\n");
    else
      out(std::string(one.kind->singular) + group + " " + coracle::quoted(one.name) + how +
          (one.ns.empty() ? "" : " from " + one.ns + " namespace") +
          (flags.dry_run.empty() || flags.dry_run == "none" ? "" : " (dry run)") + "\n");
  }
  if (flags.wait && flags.dry_run.empty())
    for (const auto& one : waiting) TRY(wait_gone(*session, *one.kind, one.ns, one.name, one.uid, timeout));
  return failures ? 1 : 0;
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
  command.add_option("--grace-period", flags->grace_period, "seconds a pod gets to stop; -1: its own");
  command.add_option("--timeout", flags->timeout, "how long to wait; 0s: as long as it takes");
  command.add_option("-o,--output", flags->output, "name");
  command.add_option("--dry-run", flags->dry_run, "client or server").optional_value("client");
  command.add_flag("--all", flags->all, "all of the kind in the namespace");
  command.add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
  command.add_flag("--force", flags->force, "kill at once");
  command.add_flag("--now", flags->now, "one second of grace");
  command.add_flag("--ignore-not-found", flags->ignore_not_found, "an absent object is no failure");
  command.add_flag("--wait,!--no-wait", flags->wait, "wait until they are gone (--wait=false: do not)");
  commands.on(command, [&commands, flags] { return run_delete(commands, *flags); });
}

}  // namespace coracle::ctl
