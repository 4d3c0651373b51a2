// SPDX-License-Identifier: Apache-2.0
// The text of `why`, as a function of its input. See why.h.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ctl/jsonpath.h"
#include "ctl/print.h"
#include "ctl/why.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/conditions.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/selector.h"
#include "store/schema/catalog.h"

namespace coracle::ctl {
namespace {

constexpr size_t kPodsTold = 3;      // limit of listed pods with the same owner and the same trouble
constexpr size_t kWarningsTold = 3;  // the latest ones per object

std::string name_of(const json::value& object) { return std::string(metadata_of(object).name()); }
std::string number(int64_t value) { return std::to_string(value); }

view::Condition condition(const json::value& object, std::string_view type) {  // absent if it has none
  return view::Condition(find_condition(object, type));
}
bool is_true(view::Condition condition) { return condition.status() == "True"; }
std::string reason_and_message(view::Condition condition) {
  return std::string(condition.reason()).append(": ").append(condition.message());
}

bool controlled_by(const json::value& object, const json::value& owner) {
  for (view::OwnerReference reference : metadata_of(object).owner_references())
    if (reference.controller() && reference.uid() == metadata_of(owner).uid()) return true;
  return false;
}

bool pod_ready(const json::value& pod) { return is_ready(view::Pod(pod)); }
bool pod_finished(const json::value& pod) { return is_terminal(view::Pod(pod)); }

// What a person can do about a container in this waiting or terminated state. Kubernetes has few reasons; the message is more
// precise.
std::string container_cure(std::string_view reason, std::string_view message, const std::string& pod,
                           const std::string& container) {
  auto says = [&](std::string_view words) { return message.find(words) != message.npos; };
  if (reason == "ErrImagePull" || reason == "ImagePullBackOff") {
    if (says("insecureRegistries") || says("the clock of this machine")) return {};  // the message includes the advice
    if (says("no space left on device") || says("No space left on device") || says("the disk is nearly full"))
      return "free space: coraclectl image prune";
    if (says("Read-only file system"))
      return "the disk can only be read, after errors most often: dmesg says which; check it with fsck, or replace it";
    if (says(" 401") || says(" 403"))
      return "if the image is private, name a secret of type kubernetes.io/dockerconfigjson in imagePullSecrets";
  }
  if (reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "InvalidImageName" || reason == "ErrImageNeverPull")
    return "check the image's name and that its registry can be reached; without a network: coraclectl image import FILE";
  if (reason == "CreateContainerConfigError") return "make what the message names, or mark it optional";
  if (reason == "OOMKilled")
    return "raise resources.limits.memory, or find what uses it: coraclectl logs " + pod + " -c " + container + " --previous";
  if (reason == "CrashLoopBackOff" || reason == "Error")
    return "see what it said last: coraclectl logs " + pod + " -c " + container + " --previous";
  if (reason == "StartError" && (says("Exec format error") || says("exec format error")))
    return "take an image for this machine's processor; a script must begin with #! and its interpreter";
  if (reason == "StartError" && (says("over a file") || says("over a directory")))
    return "mount one file of a volume with subPath, or a whole volume at a directory";
  if (reason == "StartError") return "check command, args and workingDir against what is in the image";
  return {};
}

class Answer {
 public:
  explicit Answer(const WhySource& source) : source_(source) {}

  Result<std::string> about(std::string_view kind, std::string_view name) {
    json::value object = TRY(source_.get(kind, name));
    if (object.is_null()) return Error(Code::not_found, to_lower(kind) + " " + coracle::quoted(name) + " not found");
    TRY(tell(kind, object, 0));
    return std::move(text_);
  }

 private:
  void line(int depth, std::string_view what) { text_.append(size_t(depth) * 2, ' ').append(what).append("\n"); }
  void cure(int depth, const std::string& what) {
    if (!what.empty()) line(depth, "→ " + what);
  }

  // Says once in place of what the user may not read that it is not shown.
  void refuse(std::string_view what, const Error& error, int depth) {
    if (refused_.emplace(what).second) line(depth, "not shown: " + error.text());
  }

  // The objects of a kind. nullopt: the user may not read them.
  Result<std::optional<json::array>> list(std::string_view kind, int depth) {
    auto got = source_.list(kind);
    if (got) return std::make_optional(std::move(*got));
    if (got.error().code() != Code::forbidden) return got.take_error();
    refuse(kind, got.error(), depth);
    return std::optional<json::array>();
  }

  Result<void> tell(std::string_view kind, const json::value& object, int depth) {
    if (kind == "Pod") return tell_pod(object, depth, depth == 0);
    if (kind == "Deployment") return tell_deployment(object, depth);
    if (kind == "ReplicaSet" || kind == "ReplicationController") return tell_replicas(kind, object, depth);
    if (kind == "StatefulSet" || kind == "DaemonSet") return tell_set(kind, object, depth);
    if (kind == "Job") return tell_job(object, depth);
    if (kind == "CronJob") return tell_cron_job(object, depth);
    if (kind == "Service") return tell_service(object, depth);
    line(depth, to_lower(kind) + "/" + name_of(object));
    tell_conditions(object, depth + 1);
    return tell_warnings(kind, object, depth + 1);
  }

  void tell_conditions(const json::value& object, int depth) {
    for (view::Condition one : conditions_of(object)) {
      std::string message(one.message());
      line(depth, std::string(one.type()) + "=" + std::string(one.status()) + " " + std::string(one.reason()) +
                      (message.empty() ? "" : ": " + message));
    }
  }

  // The latest warnings about the object, one for each reason.
  Result<void> tell_warnings(std::string_view kind, const json::value& object, int depth, std::string_view but = {}) {
    std::optional<json::array> events = TRY(list("Event", depth));
    if (!events) return {};
    std::vector<view::Event> warnings;
    for (const json::value& one : *events)
      if (view::Event event(one);
          event.type() == "Warning" && event.reason() != but && is_about(event.involved_object(), kind, object))
        warnings.push_back(event);
    std::stable_sort(warnings.begin(), warnings.end(), [](auto a, auto b) { return time_of(a) > time_of(b); });
    std::vector<std::string> told;
    for (view::Event event : warnings) {
      std::string reason(event.reason());
      if (told.size() == kWarningsTold || std::find(told.begin(), told.end(), reason) != told.end()) continue;
      told.push_back(reason);
      line(depth, "event " + reason + ": " + std::string(trim(event.message())));
    }
    return {};
  }

  static bool is_about(view::ObjectReference about, std::string_view kind, const json::value& object) {
    return about.kind() == kind && about.uid() == uid_in_events(object);
  }
  static std::string_view time_of(view::Event event) { return std::max(event.last_timestamp(), event.event_time()); }

  // ---- pods ----

  Result<void> tell_pod(const json::value& pod, int depth, bool whole) {
    view::PodSpec spec = view::Pod(pod).spec();
    view::PodStatus status = view::Pod(pod).status();
    std::string node(spec.node_name()), phase(status.phase());
    bool ready = pod_ready(pod), leaving = metadata_of(pod).has_deletion_timestamp();
    std::string state = phase + (node.empty() ? ", on no node" : ", on node " + node) +
                        (ready               ? ", ready"
                         : pod_finished(pod) ? ""
                                             : ", not ready");
    line(depth, "pod/" + name_of(pod) + ": " + state);
    if (leaving) tell_leaving(pod, depth + 1);
    if (!status.message().empty()) line(depth + 1, std::string(status.reason()).append(": ").append(status.message()));
    if (!spec.scheduling_gates().empty()) {
      tell_gates(pod, depth + 1);
    } else if (node.empty() && !pod_finished(pod)) {
      if (view::Condition scheduled = condition(pod, "PodScheduled")) line(depth + 1, reason_and_message(scheduled));
      tell_placement(pod, depth + 1);
    } else {
      tell_containers(pod, depth + 1);
      if (whole && !pod_finished(pod)) tell_placement(pod, depth + 1);
    }
    if (!ready && !pod_finished(pod)) TRY(tell_claims(pod, depth + 1));
    if (ready && !leaving) return {};
    return tell_warnings("Pod", pod, depth + 1, "FailedScheduling");
  }

  void tell_leaving(const json::value& pod, int depth) {
    std::string finalizers;
    for (std::string_view one : metadata_of(pod).finalizers()) finalizers.append(finalizers.empty() ? "" : ", ").append(one);
    line(depth, "is being deleted since " + std::string(metadata_of(pod).deletion_timestamp()) +
                    (finalizers.empty() ? "" : "; kept by the finalizers " + finalizers));
  }

  void tell_gates(const json::value& pod, int depth) {
    for (view::PodSchedulingGate gate : view::Pod(pod).spec().scheduling_gates())
      line(depth, "held back by the scheduling gate " + std::string(gate.name()));
    view::Condition scheduled = condition(pod, "PodScheduled");
    if (!scheduled.message().empty()) line(depth, scheduled.message());
  }

  // The pod's claims without a volume, with the latest event about each. This includes a pod that has a node and only waits for
  // the volume.
  Result<void> tell_claims(const json::value& pod, int depth) {
    for (view::Volume volume : view::Pod(pod).spec().volumes()) {
      std::string name(volume.persistent_volume_claim().claim_name());
      if (volume.has_ephemeral()) name = name_of(pod) + "-" + std::string(volume.name());
      if (name.empty()) continue;
      auto got = source_.get("PersistentVolumeClaim", name);
      if (!got && got.error().code() == Code::forbidden) {
        refuse("PersistentVolumeClaim " + name, got.error(), depth);
        continue;
      }
      json::value claim = TRY(std::move(got));
      if (claim.is_null() || view::PersistentVolumeClaim(claim).status().phase() == "Bound") continue;
      std::string said = TRY(last_said_of("PersistentVolumeClaim", claim, depth));
      line(depth, "waits for a volume for the claim " + name + (said.empty() ? "" : ": " + said));
    }
    return {};
  }

  Result<std::string> last_said_of(std::string_view kind, const json::value& object, int depth) {
    std::optional<json::array> events = TRY(list("Event", depth));
    std::string said, at;
    if (!events) return said;
    for (const json::value& one : *events) {
      view::Event event(one);
      std::string_view when = time_of(event);
      if (is_about(event.involved_object(), kind, object) && when >= at) said = trim(event.message()), at = when;
    }
    return said;
  }

  // The scheduler's reason. A user without permission to read it gets a note about the missing permission.
  void tell_placement(const json::value& pod, int depth) {
    auto placement = source_.placement(name_of(pod));
    if (!placement) return line(depth, "the scheduler's view: " + placement.error().text());
    text_ += placement_text(*placement, std::string(size_t(depth) * 2, ' '));
  }

  void tell_containers(const json::value& pod, int depth) {
    view::PodStatus status = view::Pod(pod).status();
    for (view::ContainerStatus one : status.init_container_statuses()) tell_container(pod, one, true, depth);
    for (view::ContainerStatus one : status.container_statuses()) tell_container(pod, one, false, depth);
  }

  void tell_container(const json::value& pod, view::ContainerStatus status, bool init, int depth) {
    std::string name(status.name()), head = std::string(init ? "init container " : "container ") + name + ": ";
    int64_t restarts = status.restart_count();
    view::ContainerStateTerminated before = status.last_state().terminated();
    std::string often = restarts ? ", restarted " + number(restarts) + (restarts == 1 ? " time" : " times") : "";
    if (view::ContainerStateWaiting waiting = status.state().waiting()) {
      std::string reason(waiting.reason()), message(waiting.message());
      line(depth, head + "waits: " + reason + (message.empty() ? "" : ": " + message) + often);
      tell_end(before, "it ended before", depth + 1);
      if (before.reason() == "OOMKilled" || before.reason() == "StartError") {
        reason = before.reason();
        message = before.message();
      }
      cure(depth + 1, container_cure(reason, message, name_of(pod), name));
    } else if (view::ContainerStateTerminated ended = status.state().terminated()) {
      bool fine = ended.exit_code() == 0;
      if (init && fine) return;
      line(depth, head + "ended" + often);
      tell_end(ended, "it ended", depth + 1);
      if (!fine) cure(depth + 1, container_cure(ended.reason(), ended.message(), name_of(pod), name));
    } else if (!status.ready()) {
      line(depth,
           head +
               (status.started() ? "runs, but its readiness probe does not pass" : "runs, but its startup probe has not passed") +
               often);
    } else if (restarts) {
      line(depth, head + "runs and is ready" + often);
      tell_end(before, "it ended before", depth + 1);
    }
  }

  void tell_end(view::ContainerStateTerminated ended, const std::string& when, int depth) {
    if (!ended) return;
    std::string message(ended.message());
    line(depth, when + " with " + number(ended.exit_code()) + ", " + std::string(ended.reason()) +
                    (message.empty() ? "" : ": " + one_line(trim(message))));
  }

  // The pods of an owner that have a problem: a few for each kind of problem.
  Result<void> tell_pods(const json::value& owner, int depth) {
    std::optional<json::array> pods = TRY(list("Pod", depth));
    if (!pods) return {};
    std::map<std::string, std::vector<const json::value*>> troubles;
    for (const json::value& pod : *pods)
      if (controlled_by(pod, owner) && !pod_ready(pod) && view::Pod(pod).status().phase() != "Succeeded")
        troubles[trouble_of(pod)].push_back(&pod);
    for (const auto& [trouble, alike] : troubles) {
      for (size_t i = 0; i < std::min(alike.size(), trouble.empty() ? kPodsTold : size_t(1)); ++i)
        TRY(tell_pod(*alike[i], depth, false));
      size_t told = std::min(alike.size(), trouble.empty() ? kPodsTold : size_t(1));
      if (alike.size() > told) line(depth, "and " + number(int64_t(alike.size() - told)) + " more like it");
    }
    return {};
  }

  // A key that is equal for pods with the same problem.
  static std::string trouble_of(const json::value& pod) {
    if (view::Pod(pod).spec().node_name().empty()) return "unscheduled " + std::string(condition(pod, "PodScheduled").message());
    view::PodStatus status = view::Pod(pod).status();
    for (const auto& list : {status.init_container_statuses(), status.container_statuses()})
      for (view::ContainerStatus one : list)
        if (view::ContainerStateWaiting waiting = one.state().waiting())
          return std::string(one.name()) + " " + std::string(waiting.reason());
    return {};
  }

  // ---- workloads ----

  Result<void> tell_deployment(const json::value& deployment, int depth) {
    view::DeploymentSpec spec = view::Deployment(deployment).spec();
    view::DeploymentStatus status = view::Deployment(deployment).status();
    int64_t wanted = spec.replicas_or(1), available = status.available_replicas(), updated = status.updated_replicas();
    line(depth, "deployment/" + name_of(deployment) + ": " + number(available) + " of " + number(wanted) + " pods available, " +
                    number(updated) + " of the newest template");
    if (spec.paused()) {
      line(depth + 1, "its rollout is paused");
      cure(depth + 1, "coraclectl rollout resume deployment/" + name_of(deployment));
    }
    view::Condition progress = condition(deployment, "Progressing");
    if (progress && !is_true(progress)) line(depth + 1, reason_and_message(progress));
    std::optional<json::array> sets = TRY(list("ReplicaSet", depth + 1));
    bool any = false;
    if (sets)
      for (const json::value& set : *sets) {
        if (!controlled_by(set, deployment) || view::ReplicaSet(set).spec().replicas() == 0) continue;
        any = true;
        TRY(tell_replicas("ReplicaSet", set, depth + 1));
      }
    if (sets && !any && wanted > 0) line(depth + 1, "it has no ReplicaSet with pods yet");
    return available >= wanted && updated >= wanted ? Result<void>() : tell_warnings("Deployment", deployment, depth + 1);
  }

  // ReplicationControllers have the fields that are read here, too.
  Result<void> tell_replicas(std::string_view kind, const json::value& set, int depth) {
    view::ReplicaSetStatus status = view::ReplicaSet(set).status();
    int64_t wanted = view::ReplicaSet(set).spec().replicas_or(1), there = status.replicas(), ready = status.ready_replicas(),
            available = status.available_replicas();
    line(depth, to_lower(kind) + "/" + name_of(set) + ": " + number(there) + " of " + number(wanted) + " pods made, " +
                    number(ready) + " ready, " + number(available) + " available");
    if (view::Condition failure = condition(set, "ReplicaFailure"); is_true(failure)) {
      line(depth + 1, reason_and_message(failure));
      cure(depth + 1, api_cure(std::string(failure.message())));
    }
    return tell_pods(set, depth + 1);
  }

  static std::string api_cure(const std::string& message) {
    if (message.find("exceeded quota") != message.npos)
      return "raise the quota (coraclectl describe quota), or let something else go";
    if (message.find("violates PodSecurity") != message.npos)
      return "meet the namespace's pod security level, or change its label pod-security.kubernetes.io/enforce";
    if (message.find("error looking up service account") != message.npos) return "make the service account, or name another";
    return {};
  }

  Result<void> tell_set(std::string_view kind, const json::value& set, int depth) {
    bool daemon = kind == "DaemonSet";
    view::DaemonSetStatus on_nodes = view::DaemonSet(set).status();
    view::StatefulSet replicas(set);
    int64_t wanted = daemon ? on_nodes.desired_number_scheduled() : replicas.spec().replicas_or(1);
    int64_t ready = daemon ? on_nodes.number_ready() : replicas.status().ready_replicas();
    line(depth, to_lower(kind) + "/" + name_of(set) + ": " + number(ready) + " of " + number(wanted) + " pods ready");
    if (daemon && wanted == 0)
      line(depth + 1, "no node is one that its pods may stand on: see nodeSelector, affinity and tolerations of its template");
    TRY(tell_pods(set, depth + 1));
    return ready >= wanted ? Result<void>() : tell_warnings(kind, set, depth + 1);
  }

  Result<void> tell_job(const json::value& job, int depth) {
    view::JobStatus status = view::Job(job).status();
    line(depth, "job/" + name_of(job) + ": " + number(status.succeeded()) + " succeeded, " + number(status.failed()) +
                    " failed, " + number(status.active()) + " active");
    if (view::Job(job).spec().suspend()) {
      line(depth + 1, "it is suspended");
      cure(depth + 1, "coraclectl patch job " + name_of(job) + " -p '{\"spec\":{\"suspend\":false}}'");
    }
    for (const char* type : {"Complete", "Failed"})
      if (view::Condition end = condition(job, type); is_true(end))
        line(depth + 1, std::string(type) + ": " + reason_and_message(end));
    TRY(tell_pods(job, depth + 1));
    return is_true(condition(job, "Complete")) ? Result<void>() : tell_warnings("Job", job, depth + 1);
  }

  Result<void> tell_cron_job(const json::value& cron, int depth) {
    view::CronJobSpec spec = view::CronJob(cron).spec();
    std::string last(view::CronJob(cron).status().last_schedule_time());
    line(depth, "cronjob/" + name_of(cron) + ": " + std::string(spec.schedule()) + ", " +
                    (last.empty() ? "has not run yet" : "ran last at " + last));
    if (spec.suspend()) line(depth + 1, "it is suspended");
    std::optional<json::array> jobs = TRY(list("Job", depth + 1));
    if (jobs)
      for (const json::value& job : *jobs)
        if (controlled_by(job, cron) && !is_true(condition(job, "Complete"))) TRY(tell_job(job, depth + 1));
    return tell_warnings("CronJob", cron, depth + 1);
  }

  Result<void> tell_service(const json::value& service, int depth) {
    view::ServiceSpec spec = view::Service(service).spec();
    const json::object& labels = spec.selector();
    if (labels.empty()) {
      line(depth, "service/" + name_of(service) + ": selects no pods; its endpoints are somebody else's to write");
      return {};
    }
    LabelSelector selector = LabelSelector::from_map(labels);
    const std::string name = "service/" + name_of(service);
    auto got = source_.list("Pod");
    if (!got && got.error().code() == Code::forbidden) {
      line(depth, name + ": selects pods with " + selector.text());
      refuse("Pod", got.error(), depth + 1);
      return {};
    }
    json::array pods = TRY(std::move(got));
    std::vector<const json::value*> chosen;
    for (const json::value& pod : pods)
      if (selector.matches(metadata_of(pod).labels()) && !pod_finished(pod)) chosen.push_back(&pod);
    size_t ready = size_t(std::count_if(chosen.begin(), chosen.end(), [](auto* pod) { return pod_ready(*pod); }));
    line(depth, name + ": " + number(int64_t(ready)) + " of " + number(int64_t(chosen.size())) + " pods with " + selector.text() +
                    " are ready");
    if (chosen.empty())
      cure(depth + 1, "no pod has these labels: compare the selector with the pods' labels (coraclectl get pods --show-labels)");
    if (!chosen.empty())
      for (view::ServicePort port : spec.ports()) tell_service_port(port, chosen, depth + 1);
    size_t told = 0;
    for (const json::value* pod : chosen)
      if (!pod_ready(*pod) && told++ < kPodsTold) TRY(tell_pod(*pod, depth + 1, false));
    return {};
  }

  // A service port whose target is not declared by any pod. A named target then has no endpoint; a numbered one may still work,
  // since containers need not declare their ports.
  void tell_service_port(view::ServicePort port, const std::vector<const json::value*>& pods, int depth) {
    auto protocol_of = [](auto some) { return std::string(some.has_protocol() ? some.protocol() : "TCP"); };
    const json::value* to = port.target_port();
    bool named = to && to->is_string(), declares_any = false;
    std::string protocol = protocol_of(port), target = to ? jsonpath_text(*to) : number(port.port());
    for (const json::value* pod : pods) {
      view::PodSpec spec = view::Pod(*pod).spec();
      for (const auto& list : {spec.containers(), spec.init_containers()})
        for (view::Container container : list)
          for (view::ContainerPort declared : container.ports()) {
            declares_any = true;
            if (protocol_of(declared) != protocol) continue;
            if (named ? declared.name() == target : number(declared.container_port()) == target) return;
          }
    }
    std::string head = "port " + number(port.port()) + "/" + protocol + " leads to ";
    if (named) {
      line(depth, head + "the pods' port " + coracle::quoted(target) + ", and no container of theirs has a " + protocol +
                      " port of that name");
      cure(depth + 1, "name a port so in the containers, or give targetPort a number");
    } else if (declares_any) {
      line(depth, head + target + "/" + protocol + ", which no container of these pods declares");
      cure(depth + 1, "if nothing listens there, correct the service's targetPort");
    }
  }

  const WhySource& source_;
  std::string text_;
  std::set<std::string, std::less<>> refused_;  // what the user may not read and was told so
};

}  // namespace

Result<std::string> why(const WhySource& source, std::string_view kind, std::string_view name) {
  return Answer(source).about(kind, name);
}

}  // namespace coracle::ctl
