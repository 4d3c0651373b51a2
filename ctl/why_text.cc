// SPDX-License-Identifier: Apache-2.0
// The text of `why`, as a function of its input. See why.h.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ctl/print.h"
#include "ctl/why.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/selector.h"
#include "store/schema/catalog.h"

namespace coracle::ctl {
namespace {

constexpr size_t kPodsTold = 3;      // limit of listed pods with the same owner and the same trouble
constexpr size_t kWarningsTold = 3;  // the latest ones per object

std::string string_at(const json::value& object, std::string_view path) { return std::string(get_string(object, path)); }
std::string name_of(const json::value& object) { return string_at(object, "metadata.name"); }
std::string number(int64_t value) { return std::to_string(value); }

const json::value* condition(const json::value& object, std::string_view type) {
  for (const json::value& one : get_array(object, "status.conditions"))
    if (get_string(one, "type") == type) return &one;
  return nullptr;
}
bool is_true(const json::value* condition) { return condition && get_string(*condition, "status") == "True"; }

bool controlled_by(const json::value& object, const json::value& owner) {
  for (const json::value& reference : get_array(object, "metadata.ownerReferences"))
    if (get_bool(reference, "controller") && get_string(reference, "uid") == metadata_of(owner).uid()) return true;
  return false;
}

bool pod_ready(const json::value& pod) { return is_true(condition(pod, "Ready")); }
bool pod_finished(const json::value& pod) {
  std::string_view phase = get_string(pod, "status.phase");
  return phase == "Succeeded" || phase == "Failed";
}

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
    for (const json::value& one : get_array(object, "status.conditions")) {
      std::string message = string_at(one, "message");
      line(depth, string_at(one, "type") + "=" + string_at(one, "status") + " " + string_at(one, "reason") +
                      (message.empty() ? "" : ": " + message));
    }
  }

  // The latest warnings about the object, one for each reason.
  Result<void> tell_warnings(std::string_view kind, const json::value& object, int depth, std::string_view but = {}) {
    std::optional<json::array> events = TRY(list("Event", depth));
    if (!events) return {};
    std::vector<const json::value*> warnings;
    for (const json::value& event : *events)
      if (get_string(event, "type") == "Warning" && get_string(event, "involvedObject.kind") == kind &&
          get_string(event, "reason") != but && get_string(event, "involvedObject.uid") == uid_in_events(object))
        warnings.push_back(&event);
    auto when = [](const json::value* event) {
      return std::max(string_at(*event, "lastTimestamp"), string_at(*event, "eventTime"));
    };
    std::stable_sort(warnings.begin(), warnings.end(), [&](auto* a, auto* b) { return when(a) > when(b); });
    std::vector<std::string> told;
    for (const json::value* event : warnings) {
      std::string reason = string_at(*event, "reason");
      if (told.size() == kWarningsTold || std::find(told.begin(), told.end(), reason) != told.end()) continue;
      told.push_back(reason);
      line(depth, "event " + reason + ": " + std::string(trim(get_string(*event, "message"))));
    }
    return {};
  }

  // ---- pods ----

  Result<void> tell_pod(const json::value& pod, int depth, bool whole) {
    std::string node = string_at(pod, "spec.nodeName"), phase = string_at(pod, "status.phase");
    bool ready = pod_ready(pod), leaving = find(pod, "metadata.deletionTimestamp");
    std::string state = phase + (node.empty() ? ", on no node" : ", on node " + node) +
                        (ready               ? ", ready"
                         : pod_finished(pod) ? ""
                                             : ", not ready");
    line(depth, "pod/" + name_of(pod) + ": " + state);
    if (leaving) tell_leaving(pod, depth + 1);
    if (std::string message = string_at(pod, "status.message"); !message.empty())
      line(depth + 1, string_at(pod, "status.reason") + ": " + message);
    bool gated = !get_array(pod, "spec.schedulingGates").empty();
    if (gated) {
      tell_gates(pod, depth + 1);
    } else if (node.empty() && !pod_finished(pod)) {
      if (const json::value* scheduled = condition(pod, "PodScheduled"))
        line(depth + 1, string_at(*scheduled, "reason") + ": " + string_at(*scheduled, "message"));
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
    for (const json::value& one : get_array(pod, "metadata.finalizers"))
      if (one.is_string()) finalizers.append(finalizers.empty() ? "" : ", ").append(one.get_string());
    line(depth, "is being deleted since " + string_at(pod, "metadata.deletionTimestamp") +
                    (finalizers.empty() ? "" : "; kept by the finalizers " + finalizers));
  }

  void tell_gates(const json::value& pod, int depth) {
    for (const json::value& gate : get_array(pod, "spec.schedulingGates"))
      line(depth, "held back by the scheduling gate " + string_at(gate, "name"));
    const json::value* scheduled = condition(pod, "PodScheduled");
    if (scheduled && !string_at(*scheduled, "message").empty()) line(depth, string_at(*scheduled, "message"));
  }

  // The pod's claims without a volume, with the latest event about each. This includes a pod that has a node and only waits for
  // the volume.
  Result<void> tell_claims(const json::value& pod, int depth) {
    for (const json::value& volume : get_array(pod, "spec.volumes")) {
      std::string name = string_at(volume, "persistentVolumeClaim.claimName");
      if (find(volume, "ephemeral")) name = name_of(pod) + "-" + string_at(volume, "name");
      if (name.empty()) continue;
      auto got = source_.get("PersistentVolumeClaim", name);
      if (!got && got.error().code() == Code::forbidden) {
        refuse("PersistentVolumeClaim " + name, got.error(), depth);
        continue;
      }
      json::value claim = TRY(std::move(got));
      if (claim.is_null() || get_string(claim, "status.phase") == "Bound") continue;
      std::string said = TRY(last_said_of("PersistentVolumeClaim", claim, depth));
      line(depth, "waits for a volume for the claim " + name + (said.empty() ? "" : ": " + said));
    }
    return {};
  }

  Result<std::string> last_said_of(std::string_view kind, const json::value& object, int depth) {
    std::optional<json::array> events = TRY(list("Event", depth));
    std::string said, at;
    if (!events) return said;
    for (const json::value& event : *events) {
      std::string when = std::max(string_at(event, "lastTimestamp"), string_at(event, "eventTime"));
      bool newer = get_string(event, "involvedObject.kind") == kind &&
                   get_string(event, "involvedObject.uid") == uid_in_events(object) && when >= at;
      if (newer) said = std::string(trim(get_string(event, "message"))), at = std::move(when);
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
    for (const char* list : {"status.initContainerStatuses", "status.containerStatuses"})
      for (const json::value& status : get_array(pod, list))
        tell_container(pod, status, std::string_view(list) == "status.initContainerStatuses", depth);
  }

  void tell_container(const json::value& pod, const json::value& status, bool init, int depth) {
    std::string name = string_at(status, "name"), head = std::string(init ? "init container " : "container ") + name + ": ";
    int64_t restarts = get_int(status, "restartCount");
    std::string often = restarts ? ", restarted " + number(restarts) + (restarts == 1 ? " time" : " times") : "";
    if (const json::value* waiting = find(status, "state.waiting")) {
      std::string reason = string_at(*waiting, "reason"), message = string_at(*waiting, "message");
      line(depth, head + "waits: " + reason + (message.empty() ? "" : ": " + message) + often);
      tell_end(find(status, "lastState.terminated"), "it ended before", depth + 1);
      std::string last = string_at(status, "lastState.terminated.reason");
      if (last == "OOMKilled" || last == "StartError") {
        reason = last;
        message = string_at(status, "lastState.terminated.message");
      }
      cure(depth + 1, container_cure(reason, message, name_of(pod), name));
    } else if (const json::value* ended = find(status, "state.terminated")) {
      bool fine = get_int(*ended, "exitCode") == 0;
      if (init && fine) return;
      line(depth, head + "ended" + often);
      tell_end(ended, "it ended", depth + 1);
      if (!fine) cure(depth + 1, container_cure(string_at(*ended, "reason"), string_at(*ended, "message"), name_of(pod), name));
    } else if (!get_bool(status, "ready")) {
      line(depth, head +
                      (get_bool(status, "started") ? "runs, but its readiness probe does not pass"
                                                   : "runs, but its startup probe has not passed") +
                      often);
    } else if (restarts) {
      line(depth, head + "runs and is ready" + often);
      tell_end(find(status, "lastState.terminated"), "it ended before", depth + 1);
    }
  }

  void tell_end(const json::value* ended, const std::string& when, int depth) {
    if (!ended) return;
    std::string message = string_at(*ended, "message");
    line(depth, when + " with " + number(get_int(*ended, "exitCode")) + ", " + string_at(*ended, "reason") +
                    (message.empty() ? "" : ": " + one_line(trim(message))));
  }

  // The pods of an owner that have a problem: a few for each kind of problem.
  Result<void> tell_pods(const json::value& owner, int depth) {
    std::optional<json::array> pods = TRY(list("Pod", depth));
    if (!pods) return {};
    std::map<std::string, std::vector<const json::value*>> troubles;
    for (const json::value& pod : *pods)
      if (controlled_by(pod, owner) && !pod_ready(pod) && string_at(pod, "status.phase") != "Succeeded")
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
    if (get_string(pod, "spec.nodeName").empty()) {
      const json::value* scheduled = condition(pod, "PodScheduled");
      return "unscheduled " + (scheduled ? string_at(*scheduled, "message") : "");
    }
    for (const char* list : {"status.initContainerStatuses", "status.containerStatuses"})
      for (const json::value& status : get_array(pod, list))
        if (const json::value* waiting = find(status, "state.waiting"))
          return string_at(status, "name") + " " + string_at(*waiting, "reason");
    return {};
  }

  // ---- workloads ----

  Result<void> tell_deployment(const json::value& deployment, int depth) {
    int64_t wanted = get_int(deployment, "spec.replicas", 1), available = get_int(deployment, "status.availableReplicas"),
            updated = get_int(deployment, "status.updatedReplicas");
    line(depth, "deployment/" + name_of(deployment) + ": " + number(available) + " of " + number(wanted) + " pods available, " +
                    number(updated) + " of the newest template");
    if (get_bool(deployment, "spec.paused")) {
      line(depth + 1, "its rollout is paused");
      cure(depth + 1, "coraclectl rollout resume deployment/" + name_of(deployment));
    }
    const json::value* progress = condition(deployment, "Progressing");
    if (progress && !is_true(progress)) line(depth + 1, string_at(*progress, "reason") + ": " + string_at(*progress, "message"));
    std::optional<json::array> sets = TRY(list("ReplicaSet", depth + 1));
    bool any = false;
    if (sets)
      for (const json::value& set : *sets) {
        if (!controlled_by(set, deployment) || get_int(set, "spec.replicas") == 0) continue;
        any = true;
        TRY(tell_replicas("ReplicaSet", set, depth + 1));
      }
    if (sets && !any && wanted > 0) line(depth + 1, "it has no ReplicaSet with pods yet");
    return available >= wanted && updated >= wanted ? Result<void>() : tell_warnings("Deployment", deployment, depth + 1);
  }

  Result<void> tell_replicas(std::string_view kind, const json::value& set, int depth) {
    int64_t wanted = get_int(set, "spec.replicas", 1), there = get_int(set, "status.replicas"),
            ready = get_int(set, "status.readyReplicas"), available = get_int(set, "status.availableReplicas");
    line(depth, to_lower(kind) + "/" + name_of(set) + ": " + number(there) + " of " + number(wanted) + " pods made, " +
                    number(ready) + " ready, " + number(available) + " available");
    if (const json::value* failure = condition(set, "ReplicaFailure"); is_true(failure)) {
      line(depth + 1, string_at(*failure, "reason") + ": " + string_at(*failure, "message"));
      cure(depth + 1, api_cure(string_at(*failure, "message")));
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
    int64_t wanted = daemon ? get_int(set, "status.desiredNumberScheduled") : get_int(set, "spec.replicas", 1);
    int64_t ready = get_int(set, daemon ? "status.numberReady" : "status.readyReplicas");
    line(depth, to_lower(kind) + "/" + name_of(set) + ": " + number(ready) + " of " + number(wanted) + " pods ready");
    if (daemon && wanted == 0)
      line(depth + 1, "no node is one that its pods may stand on: see nodeSelector, affinity and tolerations of its template");
    TRY(tell_pods(set, depth + 1));
    return ready >= wanted ? Result<void>() : tell_warnings(kind, set, depth + 1);
  }

  Result<void> tell_job(const json::value& job, int depth) {
    line(depth, "job/" + name_of(job) + ": " + number(get_int(job, "status.succeeded")) + " succeeded, " +
                    number(get_int(job, "status.failed")) + " failed, " + number(get_int(job, "status.active")) + " active");
    if (get_bool(job, "spec.suspend")) {
      line(depth + 1, "it is suspended");
      cure(depth + 1, "coraclectl patch job " + name_of(job) + " -p '{\"spec\":{\"suspend\":false}}'");
    }
    for (const char* type : {"Complete", "Failed"})
      if (const json::value* end = condition(job, type); is_true(end))
        line(depth + 1, std::string(type) + ": " + string_at(*end, "reason") + ": " + string_at(*end, "message"));
    TRY(tell_pods(job, depth + 1));
    return is_true(condition(job, "Complete")) ? Result<void>() : tell_warnings("Job", job, depth + 1);
  }

  Result<void> tell_cron_job(const json::value& cron, int depth) {
    std::string last = string_at(cron, "status.lastScheduleTime");
    line(depth, "cronjob/" + name_of(cron) + ": " + string_at(cron, "spec.schedule") + ", " +
                    (last.empty() ? "has not run yet" : "ran last at " + last));
    if (get_bool(cron, "spec.suspend")) line(depth + 1, "it is suspended");
    std::optional<json::array> jobs = TRY(list("Job", depth + 1));
    if (jobs)
      for (const json::value& job : *jobs)
        if (controlled_by(job, cron) && !is_true(condition(job, "Complete"))) TRY(tell_job(job, depth + 1));
    return tell_warnings("CronJob", cron, depth + 1);
  }

  Result<void> tell_service(const json::value& service, int depth) {
    const json::object& labels = get_object(service, "spec.selector");
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
      for (const json::value& port : get_array(service, "spec.ports")) tell_service_port(port, chosen, depth + 1);
    size_t told = 0;
    for (const json::value* pod : chosen)
      if (!pod_ready(*pod) && told++ < kPodsTold) TRY(tell_pod(*pod, depth + 1, false));
    return {};
  }

  // A service port whose target is not declared by any pod. A named target then has no endpoint; a numbered one may still work,
  // since containers need not declare their ports.
  void tell_service_port(const json::value& port, const std::vector<const json::value*>& pods, int depth) {
    auto protocol_of = [](const json::value& some) { return find(some, "protocol") ? string_at(some, "protocol") : "TCP"; };
    const json::value* to = find(port, "targetPort");
    bool named = to && to->is_string(), declares_any = false;
    std::string protocol = protocol_of(port),
                target = named ? string_at(port, "targetPort") : number(get_int(port, to ? "targetPort" : "port"));
    for (const json::value* pod : pods)
      for (const char* list : {"spec.containers", "spec.initContainers"})
        for (const json::value& container : get_array(*pod, list))
          for (const json::value& declared : get_array(container, "ports")) {
            declares_any = true;
            if (protocol_of(declared) != protocol) continue;
            if (named ? get_string(declared, "name") == target : number(get_int(declared, "containerPort")) == target) return;
          }
    std::string head = "port " + number(get_int(port, "port")) + "/" + protocol + " leads to ";
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

std::string reason_text(const json::value& reason) {
  std::string text = string_at(reason, "text"), figures = string_at(reason, "figures");
  return figures.empty() ? text : text + " (" + figures + ")";
}

std::string indented(const std::string& block, std::string_view indent) {
  std::string out;
  for (std::string_view one : split(block, '\n'))
    if (!one.empty()) out.append(indent).append(one).append("\n");
  return out;
}

void append_node(const json::value& node, std::string& out, std::string_view indent) {
  bool fits = get_bool(node, "fits");
  out.append(indent).append("node " + string_at(node, "name") +
                            (fits ? ": fits, score " + number(get_int(node, "total")) : ": does not fit") + "\n");
  Columns table;
  table.add({"FILTER", "SAYS"});
  for (const json::value& filter : get_array(node, "filters")) {
    std::string says;
    for (const json::value& reason : get_array(filter, "reasons"))
      says.append(says.empty() ? "" : "; ").append(reason_text(reason));
    table.add({string_at(filter, "plugin"), get_bool(filter, "ok") ? "ok" : says});
  }
  out += indented(table.text(), std::string(indent) + "  ");
  if (get_array(node, "scores").empty()) return;
  Columns scores;
  scores.add({"SCORE", "RAW", "NORMALIZED", "WEIGHT", "TOTAL"});
  for (const json::value& score : get_array(node, "scores"))
    scores.add({string_at(score, "plugin"), number(get_int(score, "raw")), number(get_int(score, "normalized")),
                number(get_int(score, "weight")), number(get_int(score, "total"))});
  out += indented(scores.text(), std::string(indent) + "  ");
}

}  // namespace

std::string placement_text(const json::value& placement, std::string_view indent) {
  std::string out;
  for (const json::value& node : get_array(placement, "nodes")) append_node(node, out, indent);
  auto list = [&](std::string_view name, std::string_view mark) {
    for (const json::value& text : get_array(placement, name))
      if (text.is_string()) out.append(indent).append(mark).append(text.get_string()).append("\n");
  };
  list("missing", "missing: ");
  list("cures", "→ ");
  std::string victims;
  for (const json::value& victim : get_array(placement, "preemption.victims"))
    if (victim.is_string()) victims.append(victims.empty() ? "" : ", ").append(victim.get_string());
  if (!victims.empty())
    out.append(indent).append("would take the place of " + victims + " on node " + string_at(placement, "preemption.node") +
                              "\n");
  return out;
}

Result<std::string> why(const WhySource& source, std::string_view kind, std::string_view name) {
  return Answer(source).about(kind, name);
}

}  // namespace coracle::ctl
