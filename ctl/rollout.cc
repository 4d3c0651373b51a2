// SPDX-License-Identifier: Apache-2.0
// rollout: status, history, undo, restart, pause and resume of Deployments. A Deployment's past stands in its ReplicaSets, in
// the annotation deployment.kubernetes.io/revision; undo puts an old one's pod template back.
#include <algorithm>

#include "ctl/command.h"
#include "ctl/pods.h"
#include "ctl/print.h"
#include "ctl/wait.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/object/status.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
constexpr std::string_view kChangeCause = "kubernetes.io/change-cause";

struct RolloutFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string timeout = "0s";
  int64_t revision = 0;
  bool watch = true;
};

std::string annotation(const json::value& object, std::string_view name) {
  const json::value* value = find_keys(object, {"metadata", "annotations", name});
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

Result<std::vector<Named>> deployments_of(const RolloutFlags& flags) {
  std::vector<Named> named;
  if (!flags.files.files.empty()) {
    std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
    for (const auto& document : documents) named.push_back({document.kind, std::string(get_string(document.object, "metadata.name"))});
  } else {
    named = TRY(parse_named(flags.args));
  }
  for (const auto& one : named)
    if (!(one.kind->kind == kDeployment) || one.name.empty())
      return Error(Code::bad_request, one.name.empty() ? "required resource name not specified" : "no rollouts for " + message_name(*one.kind, one.name));
  return named;
}

// The line `rollout status` prints for a Deployment, and whether it has come to its end. Pure.
struct Progress {
  std::string line;
  bool done = false, failed = false;
};

Progress progress_of(const json::value& deployment) {
  std::string name(get_string(deployment, "metadata.name")), quoted_name = coracle::quoted(name);
  int64_t want = get_int(deployment, "spec.replicas", 1), updated = get_int(deployment, "status.updatedReplicas"),
          all = get_int(deployment, "status.replicas"), available = get_int(deployment, "status.availableReplicas");
  if (get_int(deployment, "metadata.generation") > get_int(deployment, "status.observedGeneration"))
    return {"Waiting for deployment spec update to be observed...\n"};
  for (const auto& condition : get_array(deployment, "status.conditions"))
    if (get_string(condition, "type") == "Progressing" && get_string(condition, "reason") == "ProgressDeadlineExceeded")
      return {"error: deployment " + quoted_name + " exceeded its progress deadline\n", false, true};
  auto waiting = [&](const std::string& what) { return Progress{"Waiting for deployment " + quoted_name + " rollout to finish: " + what + "...\n"}; };
  if (updated < want) return waiting(std::to_string(updated) + " out of " + std::to_string(want) + " new replicas have been updated");
  if (all > updated) return waiting(std::to_string(all - updated) + " old replicas are pending termination");
  if (available < updated) return waiting(std::to_string(available) + " of " + std::to_string(updated) + " updated replicas are available");
  return {"deployment " + quoted_name + " successfully rolled out\n", true};
}

Result<int> run_status(Commands& commands, const RolloutFlags& flags) {
  auto timeout = TRY(parse_duration(flags.timeout).wrap("--timeout"));
  std::vector<Named> named = TRY(deployments_of(flags));
  Session* session = TRY(commands.session());
  bool failed = false;
  for (const auto& one : named) {
    std::string last;
    TRY(wait_until(*session, *one.kind, session->ns(), one.name, timeout, [&](const json::value* object) -> Result<bool> {
      if (!object) return not_found(kDeployment, one.name);
      Progress progress = progress_of(*object);
      if (progress.line != last) out(last = progress.line);
      failed = failed || progress.failed;
      return progress.done || progress.failed || !flags.watch;
    }));
  }
  return failed ? 1 : 0;
}

// The Deployment's ReplicaSets by revision, oldest first.
Result<std::vector<std::pair<int64_t, json::value>>> history_of(Session& session, const json::value& deployment) {
  const json::value* selector = find(deployment, "spec.selector");
  json::value list = TRY(session.json({.path = session.path(schema::catalog().of(kReplicaSet), session.ns()),
                                       .query = {{"labelSelector", selector ? selector_text(*selector) : ""}}}));
  std::vector<std::pair<int64_t, json::value>> history;
  for (const auto& set : get_array(list, "items"))
    for (const auto& owner : get_array(set, "metadata.ownerReferences"))
      if (get_string(owner, "uid") == get_string(deployment, "metadata.uid"))
        history.emplace_back(parse_number<int64_t>(annotation(set, kRevision)).value_or(0), set);
  std::sort(history.begin(), history.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return history;
}

Result<int> run_history(Commands& commands, const RolloutFlags& flags) {
  std::vector<Named> named = TRY(deployments_of(flags));
  Session* session = TRY(commands.session());
  for (const auto& one : named) {
    json::value deployment = TRY(session->json({.path = session->path(*one.kind, session->ns(), one.name)}));
    auto history = TRY(history_of(*session, deployment));
    out("deployment.apps/" + one.name + " \n");
    if (flags.revision) {
      for (const auto& [revision, set] : history)
        if (revision == flags.revision) {
          out("Pod Template:\n" + to_yaml(*find(set, "spec.template")));
          return 0;
        }
      return Error(Code::not_found, "unable to find the specified revision");
    }
    Columns columns;
    columns.add({"REVISION", "CHANGE-CAUSE"});
    for (const auto& [revision, set] : history) {
      std::string cause = annotation(set, kChangeCause);
      columns.add({std::to_string(revision), cause.empty() ? "<none>" : cause});
    }
    out(columns.text() + "\n");
  }
  return 0;
}

Result<int> run_undo(Commands& commands, const RolloutFlags& flags) {
  std::vector<Named> named = TRY(deployments_of(flags));
  Session* session = TRY(commands.session());
  for (const auto& one : named) {
    std::string path = session->path(*one.kind, session->ns(), one.name);
    json::value deployment = TRY(session->json({.path = path}));
    if (get_bool(deployment, "spec.paused"))
      return Error(Code::conflict, "you cannot rollback a paused deployment; resume it first with 'coraclectl rollout resume' and try again");
    auto history = TRY(history_of(*session, deployment));
    const json::value* target = nullptr;
    if (flags.revision) {
      for (const auto& [revision, set] : history)
        if (revision == flags.revision) target = &set;
      if (!target) return Error(Code::not_found, "unable to find specified revision " + std::to_string(flags.revision) + " in history");
    } else {
      if (history.size() < 2) return Error(Code::not_found, "no rollout history found for deployment " + coracle::quoted(one.name));
      target = &history[history.size() - 2].second;
    }
    json::value pod_template = *find(*target, "spec.template");
    if (auto* labels = make(pod_template, "metadata.labels").if_object()) labels->erase("pod-template-hash");
    json::array patch;
    patch.push_back(json::object{{"op", "replace"}, {"path", "/spec/template"}, {"value", std::move(pod_template)}});
    TRY(session->json({.method = "PATCH", .path = path, .query = {{"fieldManager", "kubectl-rollout"}}, .body = to_text(patch),
                       .content_type = "application/json-patch+json"}));
    out("deployment.apps/" + one.name + " rolled back\n");
  }
  return 0;
}

Result<int> patch_all(Commands& commands, const RolloutFlags& flags, const json::value& patch, const std::string& done) {
  std::vector<Named> named = TRY(deployments_of(flags));
  Session* session = TRY(commands.session());
  for (const auto& one : named) {
    TRY(session->json({.method = "PATCH", .path = session->path(*one.kind, session->ns(), one.name),
                       .query = {{"fieldManager", "kubectl-rollout"}}, .body = to_text(patch),
                       .content_type = "application/strategic-merge-patch+json"}));
    out("deployment.apps/" + one.name + " " + done + "\n");
  }
  return 0;
}

}  // namespace

void add_rollout(Commands& commands) {
  CLI::App* rollout = commands.add("rollout", "Follow and steer the rollout of Deployments");
  rollout->require_subcommand(1);
  auto add = [&](const char* word, const char* description, std::function<Result<int>(RolloutFlags&)> run, auto more) {
    auto flags = std::make_shared<RolloutFlags>();
    CLI::App* command = commands.add(word, description, rollout);
    command->add_option("args", flags->args, "KIND/NAME, as deployment/web");
    flags->files.add_to(command);
    more(command, *flags);
    commands.on(command, [flags, run] { return run(*flags); });
  };
  auto nothing = [](CLI::App*, RolloutFlags&) {};
  add("status", "Wait until a rollout has ended", [&commands](RolloutFlags& flags) { return run_status(commands, flags); },
      [](CLI::App* command, RolloutFlags& flags) {
        command->add_option("--timeout", flags.timeout, "how long to wait; 0s: as long as it takes");
        command->add_flag("-w,--watch", flags.watch, "wait (--watch=false: only look)");
      });
  add("history", "Show the revisions", [&commands](RolloutFlags& flags) { return run_history(commands, flags); },
      [](CLI::App* command, RolloutFlags& flags) { command->add_option("--revision", flags.revision, "show this one"); });
  add("undo", "Go back to an earlier revision", [&commands](RolloutFlags& flags) { return run_undo(commands, flags); },
      [](CLI::App* command, RolloutFlags& flags) { command->add_option("--to-revision", flags.revision, "to this one; 0: the one before"); });
  add("restart", "Replace all pods, in a rolling manner",
      [&commands](RolloutFlags& flags) {
        json::value patch;
        make(patch, "spec.template.metadata.annotations").emplace_object()["kubectl.kubernetes.io/restartedAt"] = format_time(system_clock().now());
        return patch_all(commands, flags, patch, "restarted");
      },
      nothing);
  add("pause", "Hold a rollout", [&commands](RolloutFlags& flags) { return patch_all(commands, flags, json::object{{"spec", {{"paused", true}}}}, "paused"); }, nothing);
  add("resume", "Let a held rollout go on", [&commands](RolloutFlags& flags) { return patch_all(commands, flags, json::object{{"spec", {{"paused", nullptr}}}}, "resumed"); }, nothing);
}

}  // namespace coracle::ctl
