// SPDX-License-Identifier: Apache-2.0
// rollout: status, history, undo, restart, pause and resume for Deployments, StatefulSets and DaemonSets. See rollout.h.
#include "ctl/rollout.h"

#include <algorithm>

#include "ctl/describe.h"
#include "ctl/escape.h"
#include "ctl/last_applied.h"
#include "ctl/pods.h"
#include "ctl/print.h"
#include "ctl/record.h"
#include "ctl/target.h"
#include "ctl/wait.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/patch.h"
#include "store/schema/views.h"

namespace coracle::ctl {
namespace {

constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
constexpr std::string_view kRestartedAt = "kubectl.kubernetes.io/restartedAt";
constexpr std::string_view kTemplateHash = "pod-template-hash";
// Annotations that undo keeps from the Deployment, instead of those of the older revision.
constexpr std::string_view kStays[] = {kLastApplied,
                                       kRevision,
                                       "deployment.kubernetes.io/revision-history",
                                       "deployment.kubernetes.io/desired-replicas",
                                       "deployment.kubernetes.io/max-replicas",
                                       "deprecated.deployment.rollback.to"};

std::string annotation(const json::value& object, std::string_view name) {
  const json::value* value = metadata_of(object).annotations().if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

// Deployments, StatefulSets, DaemonSets and ReplicaSets have it at the same place.
view::PodTemplateSpec pod_template_of(const json::value& object) { return view::Deployment(object).spec().template_(); }

std::string count(int64_t number) { return std::to_string(number); }

template <typename Workload>
bool was_observed(Workload object) {
  return object.metadata().generation() <= object.status().observed_generation();
}

Result<Progress> deployment_progress(view::Deployment deployment, int64_t revision) {
  std::string name = coracle::quoted(deployment.metadata().name());
  int64_t running = parse_number<int64_t>(annotation(deployment.raw(), kRevision)).value_or(0);
  if (revision > 0 && revision != running)
    return Error(Code::conflict,
                 "desired revision (" + count(revision) + ") is different from the running revision (" + count(running) + ")");
  if (!was_observed(deployment)) return Progress{"Waiting for deployment spec update to be observed...\n"};
  view::DeploymentStatus status = deployment.status();
  for (view::DeploymentCondition condition : status.conditions())
    if (condition.type() == "Progressing" && condition.reason() == "ProgressDeadlineExceeded")
      return Error(Code::timeout, "deployment " + name + " exceeded its progress deadline");
  int64_t want = deployment.spec().replicas_or(1), updated = status.updated_replicas(), all = status.replicas(),
          available = status.available_replicas();
  auto waiting = [&](const std::string& what) {
    return Progress{"Waiting for deployment " + name + " rollout to finish: " + what + "...\n"};
  };
  if (updated < want) return waiting(count(updated) + " out of " + count(want) + " new replicas have been updated");
  if (all > updated) return waiting(count(all - updated) + " old replicas are pending termination");
  if (available < updated) return waiting(count(available) + " of " + count(updated) + " updated replicas are available");
  return Progress{"deployment " + name + " successfully rolled out\n", true};
}

Progress daemon_set_progress(view::DaemonSet set) {
  std::string name = coracle::quoted(set.metadata().name());
  if (!was_observed(set)) return {"Waiting for daemon set spec update to be observed...\n"};
  view::DaemonSetStatus status = set.status();
  int64_t want = status.desired_number_scheduled(), updated = status.updated_number_scheduled(),
          available = status.number_available();
  auto waiting = [&](const std::string& what) {
    return Progress{"Waiting for daemon set " + name + " rollout to finish: " + what + "...\n"};
  };
  if (updated < want) return waiting(count(updated) + " out of " + count(want) + " new pods have been updated");
  if (available < want) return waiting(count(available) + " of " + count(want) + " updated pods are available");
  return {"daemon set " + name + " successfully rolled out\n", true};
}

Progress stateful_set_progress(view::StatefulSet set) {
  view::StatefulSetStatus status = set.status();
  if (!was_observed(set) || status.observed_generation() == 0) return {"Waiting for statefulset spec update to be observed...\n"};
  int64_t want = set.spec().replicas_or(1), updated = status.updated_replicas();
  if (int64_t ready = status.ready_replicas(); ready < want)
    return {"Waiting for " + count(want - ready) + " pods to be ready...\n"};
  view::RollingUpdateStatefulSetStrategy rolling_update = set.spec().update_strategy().rolling_update();
  if (rolling_update.has_partition()) {
    int64_t partition = rolling_update.partition();
    if (updated < want - partition)
      return {"Waiting for partitioned roll out to finish: " + count(updated) + " out of " + count(want - partition) +
              " new pods have been updated...\n"};
    return {"partitioned roll out complete: " + count(updated) + " new pods have been updated...\n", true};
  }
  std::string revision(status.update_revision());
  if (revision != status.current_revision())
    return {"waiting for statefulset rolling update to complete " + count(updated) + " pods at revision " + revision + "...\n"};
  return {"statefulset rolling update complete " + count(status.current_replicas()) + " pods at revision " + revision + "...\n",
          true};
}

}  // namespace

Rolling rolling_of(std::string_view kind) {
  return kind == "Deployment"    ? Rolling::deployment
         : kind == "StatefulSet" ? Rolling::stateful_set
         : kind == "DaemonSet"   ? Rolling::daemon_set
                                 : Rolling::none;
}

Result<Progress> progress_of(const json::value& object, Rolling rolling, int64_t revision) {
  if (rolling == Rolling::deployment) return deployment_progress(view::Deployment(object), revision);
  view::DaemonSet daemon_set(object);
  view::StatefulSet stateful_set(object);
  bool is_daemon_set = rolling == Rolling::daemon_set;
  std::string_view type =
      is_daemon_set ? daemon_set.spec().update_strategy().type() : stateful_set.spec().update_strategy().type();
  if (type != "RollingUpdate")
    return Error(Code::unsupported, "rollout status is only available for RollingUpdate strategy type");
  return is_daemon_set ? daemon_set_progress(daemon_set) : stateful_set_progress(stateful_set);
}

std::vector<Revision> history_of(const json::value& object, const json::array& holders, Rolling rolling) {
  std::vector<Revision> history;
  for (const auto& holder : holders)
    for (view::OwnerReference owner : metadata_of(holder).owner_references())
      if (owner.controller() && owner.uid() == metadata_of(object).uid())
        history.push_back({rolling == Rolling::deployment ? parse_number<int64_t>(annotation(holder, kRevision)).value_or(0)
                                                          : view::ControllerRevision(holder).revision(),
                           holder});
  std::stable_sort(history.begin(), history.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return history;
}

json::value template_of(const Revision& revision, Rolling rolling) {
  // The data of a ControllerRevision is a patch with the template of its StatefulSet or DaemonSet.
  const json::value* set = rolling == Rolling::deployment ? &revision.holder : view::ControllerRevision(revision.holder).data();
  const json::value* found = set ? pod_template_of(*set).pointer() : nullptr;
  json::value pod_template = found ? *found : json::value(json::object());
  if (auto* object = pod_template.if_object()) object->erase("$patch");
  return pod_template;
}

std::string change_cause_of(const Revision& revision) { return annotation(revision.holder, kChangeCause); }

Result<const Revision*> revision_to_undo_to(const std::vector<Revision>& history, int64_t number, Rolling rolling,
                                            std::string_view name) {
  if (number == 0 && history.size() >= 2) return &history[history.size() - 2];
  for (const auto& revision : history)
    if (number > 0 && revision.number == number) return &revision;
  if (number != 0) return Error(Code::not_found, "unable to find specified revision " + count(number) + " in history");
  if (rolling == Rolling::deployment)
    return Error(Code::not_found, "no rollout history found for deployment " + coracle::quoted(name));
  return Error(Code::not_found, "no last revision to roll back to");
}

bool has_template(const json::value& object, const json::value& pod_template) {
  auto plain = [](json::value one) {  // removes what the controller adds; empty labels equal no labels
    json::value& labels = make(one, "metadata.labels");
    if (labels.is_object()) labels.as_object().erase(kTemplateHash);
    return one;
  };
  const json::value* now = pod_template_of(object).pointer();
  return now && json_equal(plain(*now), plain(pod_template));
}

Undo undo_to(const json::value& object, const Revision& revision, Rolling rolling) {
  if (rolling != Rolling::deployment) {
    const json::value* data = view::ControllerRevision(revision.holder).data();
    return {data ? *data : json::value(json::object()), kStrategicPatch};
  }
  json::value pod_template = template_of(revision, rolling);
  if (auto* labels = make(pod_template, "metadata.labels").if_object()) labels->erase(kTemplateHash);
  auto stays = [](std::string_view key) { return std::find(std::begin(kStays), std::end(kStays), key) != std::end(kStays); };
  json::object annotations;
  for (const auto& [key, value] : metadata_of(object).annotations())
    if (stays(key)) annotations[key] = value;
  for (const auto& [key, value] : metadata_of(revision.holder).annotations())
    if (!stays(key)) annotations[key] = value;
  json::array patch;
  patch.push_back(json::object{{"op", "replace"}, {"path", "/spec/template"}, {"value", std::move(pod_template)}});
  patch.push_back(json::object{{"op", "add"}, {"path", "/metadata/annotations"}, {"value", std::move(annotations)}});
  return {std::move(patch), kJsonPatch};
}

namespace {

struct RolloutFlags : TargetFlags {
  std::string timeout = "0s";
  int64_t revision = 0;
  bool watch = true;
};

Result<Rolling> rolling_of(const Live& live) {
  Rolling rolling = ctl::rolling_of(live.kind->kind.kind);
  if (rolling != Rolling::none) return rolling;
  const Kind& kind = live.kind->kind;
  return Error(Code::bad_request, "no status viewer has been implemented for " + std::string(kind.kind) +
                                      (kind.group.empty() ? "" : ".") + std::string(kind.group));
}

// The same, for `what` ("history", "rollbacker") of its revisions.
Result<Rolling> rolling_of(const Live& live, const std::string& what) {
  const Kind& kind = live.kind->kind;
  Rolling rolling = ctl::rolling_of(kind.kind);
  if (rolling != Rolling::none) return rolling;
  std::string group(kind.group), name(kind.kind);
  return Error(Code::bad_request, "error retrieving " + what + " for " +
                                      coracle::quoted(name + (group.empty() ? "" : "." + group)) +
                                      ", no visitor method exists for {" + group + " " + name + "}");
}

Result<std::vector<Revision>> history_of(Session& session, const Live& live, Rolling rolling) {
  const schema::KindInfo& kind =
      *schema::catalog().by_kind("apps/v1", rolling == Rolling::deployment ? "ReplicaSet" : "ControllerRevision");
  const json::value* selector = selector_of(live.object);
  json::value list = TRY(session.json(
      {.path = session.path(kind, live.ns), .query = {{"labelSelector", selector ? selector_text(*selector) : ""}}}));
  return history_of(live.object, items_of(list), rolling);
}

// Only Deployments can be paused.
bool is_paused(const Live& live) { return live.kind->kind == kDeployment && view::Deployment(live.object).spec().paused(); }

// Standard error is told where there are none.
Result<Targets> rolling_targets(Session& session, const RolloutFlags& flags) {
  Targets targets = TRY(targets_of(session, flags, flags.args, true));
  if (targets.found.empty() && targets.missing.empty()) tell("No resources found in " + session.ns() + " namespace.\n");
  return targets;
}

Result<void> check_revision(const RolloutFlags& flags) {
  if (flags.revision >= 0) return {};
  return Error(Code::bad_request, "revision must be a positive integer: " + count(flags.revision));
}

Result<int> run_status(Commands& commands, const RolloutFlags& flags) {
  TRY(check_revision(flags));
  auto timeout = TRY(parse_timeout(flags.timeout).wrap("--timeout"));
  Session* session = TRY(commands.session());
  Targets targets = TRY(rolling_targets(*session, flags));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    Rolling rolling = TRY(rolling_of(live));
    std::string last;
    auto done = wait_until(*session, *live.kind, live.ns, live.name, timeout, [&](const json::value* object) -> Result<bool> {
      // Another object with the same name is not this rollout.
      if (!object || metadata_of(*object).uid() != metadata_of(live.object).uid())
        return Error(Code::gone, "object has been deleted");
      Progress progress = TRY(progress_of(*object, rolling, flags.revision));
      if (progress.line != last) out(visible_lines(last = progress.line));
      return progress.done || !flags.watch;
    });
    if (!done && done.error().code() == Code::timeout && done.error().text().starts_with("timed out"))
      return Error(Code::timeout, "timed out waiting for the condition");
    return done;
  });
}

std::string history_text(const Live& live, const std::vector<Revision>& history) {
  std::string text = message_name(*live.kind, live.name) + " \n";
  if (history.empty()) return text + "No rollout history found.\n";
  std::string rows = "REVISION\tCHANGE-CAUSE\n";
  for (const auto& revision : history) {
    std::string cause = change_cause_of(revision);
    rows += count(revision.number) + "\t" + (cause.empty() ? "<none>" : cause) + "\n";
  }
  return text + align_tabs(rows) + "\n";
}

Result<int> run_history(Commands& commands, const RolloutFlags& flags) {
  TRY(check_revision(flags));
  Session* session = TRY(commands.session());
  Targets targets = TRY(rolling_targets(*session, flags));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    Rolling rolling = TRY(rolling_of(live, "history"));
    std::vector<Revision> history = TRY(history_of(*session, live, rolling));
    if (history.empty() && flags.revision > 0 && flags.output.empty()) {  // whichever it is
      out(message_name(*live.kind, live.name) + " with revision #" + count(flags.revision) + "\nNo rollout history found.\n");
      return {};
    }
    if (flags.revision > 0) std::erase_if(history, [&](const Revision& revision) { return revision.number != flags.revision; });
    if (flags.revision > 0 && history.empty()) return Error(Code::not_found, "unable to find the specified revision");
    if (!flags.output.empty()) {
      for (auto& revision : history) {
        const schema::KindInfo& kind =
            *schema::catalog().by_kind("apps/v1", rolling == Rolling::deployment ? "ReplicaSet" : "ControllerRevision");
        name_kind(revision.holder, kind);
        print_outcome(flags.output, DryRun::none, revision.holder, kind, "");
      }
    } else if (flags.revision > 0) {
      json::value pod_template = template_of(history.front(), rolling);
      std::string cause = change_cause_of(history.front());
      if (rolling == Rolling::deployment && !cause.empty()) {
        json::value& annotations = make(pod_template, "metadata.annotations");
        if (!annotations.is_object()) annotations.emplace_object();
        annotations.get_object()[kChangeCause] = cause;
      }
      out(message_name(*live.kind, live.name) + " with revision #" + count(flags.revision) + "\n" +
          template_text(view::PodTemplateSpec(pod_template)) + "\n");
    } else {
      out(history_text(live, history));
    }
    return {};
  });
}

void warn_of_apply(const Live& live) {
  if (!metadata_of(live.object).annotations().contains(kLastApplied)) return;
  tell("Warning: resource " + std::string(live.kind->kind.resource) + "/" + live.name +
       " was previously managed with 'kubectl apply'. Rolling back will not update the " + std::string(kLastApplied) +
       " annotation, which may cause unexpected behavior on future 'kubectl apply' operations. Consider using 'kubectl apply' "
       "with your previous configuration file instead.\n");
}

Result<int> run_undo(Commands& commands, const RolloutFlags& flags) {
  Session* session = TRY(commands.session());
  Targets targets = TRY(rolling_targets(*session, flags));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    warn_of_apply(live);  // first of all, as kubectl does: it stays true where the rest fails
    Rolling rolling = TRY(rolling_of(live, "rollbacker"));
    std::vector<Revision> history = TRY(history_of(*session, live, rolling));
    const Revision* target = TRY(revision_to_undo_to(history, flags.revision, rolling, live.name));
    json::value pod_template = template_of(*target, rolling);
    if (flags.dry_run == DryRun::client) {
      out(message_name(*live.kind, live.name) + " " + template_text(view::PodTemplateSpec(pod_template)) + " (dry run)\n");
      return {};
    }
    if (is_paused(live))
      return Error(Code::conflict,
                   "you cannot rollback a paused deployment; resume it first with 'coraclectl rollout resume' and try again");
    if (has_template(live.object, pod_template)) {
      print_done(flags, live, live.object,
                 "skipped rollback (current template already matches revision " + count(flags.revision) + ")");
      return {};
    }
    Undo undo = undo_to(live.object, *target, rolling);
    json::value object = TRY(send_patch(*session, flags, live, undo.patch, undo.type));
    print_done(flags, live, std::move(object), "rolled back");
    return {};
  });
}

Result<void> patch_one(Session& session, const RolloutFlags& flags, const Live& live, const json::value& patch,
                       const char* done) {
  auto object = send_patch(session, flags, live, patch, kStrategicPatch);
  if (!object) return Error(object.error().code(), "failed to patch: " + object.error().text());
  print_done(flags, live, *std::move(object), done);
  return {};
}

Error refused(const Live& live, const char* why) {  // with its head: as kubectl, it stands before each of several
  return Error(Code::conflict, "error: " + live.kind->kind.qualified_resource() + " " + coracle::quoted(live.name) + " " + why);
}

Result<int> run_restart(Commands& commands, const RolloutFlags& flags) {
  Session* session = TRY(commands.session());
  Targets targets = TRY(rolling_targets(*session, flags));
  std::string now = format_time(system_clock().now());
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    if (ctl::rolling_of(live.kind->kind.kind) == Rolling::none) return refused(live, "restarting is not supported");
    if (is_paused(live)) return refused(live, "can't restart paused deployment (run rollout resume first)");
    // All of these kinds have the template at the same place.
    view::PodTemplateSpec pod_template = view::Deployment(live.object).spec().template_();
    const json::value* before = pod_template.metadata().annotations().if_contains(kRestartedAt);
    if (before && *before == json::value(now))
      return Error(Code::conflict, "failed to create patch for " + live.name +
                                       ": if restart has already been triggered within the past second, please wait before "
                                       "attempting to trigger another");
    json::value patch;
    make(patch, "spec.template.metadata.annotations").emplace_object()[kRestartedAt] = now;
    return patch_one(*session, flags, live, patch, "restarted");
  });
}

Result<int> run_pause(Commands& commands, const RolloutFlags& flags, bool pause) {
  Session* session = TRY(commands.session());
  Targets targets = TRY(rolling_targets(*session, flags));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    if (!(live.kind->kind == kDeployment)) return refused(live, pause ? "pausing is not supported" : "resuming is not supported");
    if (is_paused(live) == pause) return refused(live, pause ? "is already paused" : "is not paused");
    json::object spec;
    spec["paused"] = pause ? json::value(true) : json::value(nullptr);
    return patch_one(*session, flags, live, json::object{{"spec", std::move(spec)}}, pause ? "paused" : "resumed");
  });
}

}  // namespace

void add_rollout(Commands& commands) {
  Command rollout = commands.add("rollout", "Follow and steer the rollout of Deployments, StatefulSets and DaemonSets");
  rollout.require_command();
  auto add = [&](const char* word, const char* description, std::function<Result<int>(RolloutFlags&)> run) {
    auto flags = std::make_shared<RolloutFlags>();
    flags->field_manager = "kubectl-rollout";
    Command command = commands.add(word, description, rollout);
    command.add_option("args", flags->args, "KIND/NAME, as deployment/web");
    flags->files.add_to(command);
    command.add_option("-l,--selector", flags->selector, "label selector");
    commands.on(command, [flags, run] { return run(*flags); });
    return std::pair(command, flags);
  };
  auto [status, status_flags] =
      add("status", "Wait until a rollout has ended", [&commands](RolloutFlags& flags) { return run_status(commands, flags); });
  status.add_option("--timeout", status_flags->timeout, "how long to wait; 0s: as long as it takes").as_duration();
  status.add_option("--revision", status_flags->revision, "that it has to be this one");
  status.add_flag("-w,--watch", status_flags->watch, "wait (--watch=false: only look)");
  auto [history, history_flags] =
      add("history", "Show the revisions", [&commands](RolloutFlags& flags) { return run_history(commands, flags); });
  history.add_option("--revision", history_flags->revision, "show this one");
  commands.add_output(history, history_flags->output);
  for (auto [word, description, run] :
       {std::tuple{"undo", "Go back to an earlier revision",
                   +[](Commands&commands, RolloutFlags&flags) { return run_undo(commands, flags); }},
        std::tuple{"restart", "Replace all pods, in a rolling manner",
                   +[](Commands&commands, RolloutFlags&flags) { return run_restart(commands, flags); }},
        std::tuple{"pause", "Hold a Deployment's rollout",
                   +[](Commands&commands, RolloutFlags&flags) { return run_pause(commands, flags, true); }},
        std::tuple{"resume", "Let a held rollout go on",
                   +[](Commands&commands, RolloutFlags&flags) { return run_pause(commands, flags, false); }}}) {
    auto [command, flags] = add(word, description, [&commands, run = run](RolloutFlags& flags) { return run(commands, flags); });
    commands.add_dry_run(command, flags->dry_run);
    commands.add_output(command, flags->output);
    command.add_option("--field-manager", flags->field_manager, "who owns the fields");
    if (word == std::string_view("undo")) command.add_option("--to-revision", flags->revision, "to this one; 0: the one before");
  }
}

}  // namespace coracle::ctl
