// SPDX-License-Identifier: Apache-2.0
// How describe shows the kinds that create pods, autoscalers and budgets; and any other kind, field by field. See describe.h.
#include <algorithm>
#include <cctype>

#include "ctl/describe.h"
#include "ctl/jsonpath.h"
#include "ctl/rollout.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/schema/table.h"

namespace coracle::ctl {
namespace {

std::string number_at(const json::value& object, std::string_view path) { return std::to_string(get_int(object, path)); }
std::string flag_at(const json::value& object, std::string_view path) { return get_bool(object, path) ? "True" : "False"; }
std::string number_or_unset(const json::value& object, std::string_view path, std::string_view unit = {}) {
  return find(object, path) ? text_at(object, path) + std::string(unit) : "<unset>";
}

std::string of_template(const json::value& object) {
  const json::value* pod_template = find(object, "spec.template");
  return template_text(pod_template ? *pod_template : json::value());
}

void put_pods(std::string& text, const json::value& object, const RelatedList& pods) {
  if (!pods.error.empty()) return put(text, 0, "Pods Status", "error in fetching pods: " + pods.error);
  size_t running = 0, waiting = 0, succeeded = 0, failed = 0;
  for (const auto& pod : pods.items) {
    bool ours = false;
    for (const auto& owner : get_array(pod, "metadata.ownerReferences"))
      ours = ours || (get_bool(owner, "controller") && get_string(owner, "uid") == get_string(object, "metadata.uid"));
    std::string_view phase = get_string(pod, "status.phase");
    if (ours) ++(phase == "Running" ? running : phase == "Succeeded" ? succeeded : phase == "Failed" ? failed : waiting);
  }
  put(text, 0, "Pods Status",
      std::to_string(running) + " Running / " + std::to_string(waiting) + " Waiting / " + std::to_string(succeeded) +
          " Succeeded / " + std::to_string(failed) + " Failed");
}

// ---- apps ----

void put_sets(std::string& text, std::string_view name, const std::vector<const json::value*>& sets) {
  std::vector<std::string> parts;
  for (const auto* set : sets)
    parts.push_back(text_at(*set, "metadata.name") + " (" + number_at(*set, "status.replicas") + "/" +
                    number_at(*set, "spec.replicas") + " replicas created)");
  put(text, 0, name, parts.empty() ? "<none>" : join(parts, ", "));
}

std::string deployment_text(const json::value& object, const Related& related) {
  std::string text;
  put_name(text, object);
  put(text, 0, "CreationTimestamp", time_text(text_at(object, "metadata.creationTimestamp")));
  put_marks(text, object);
  put(text, 0, "Selector", selector_or(object, "spec.selector", "<none>"));
  put(text, 0, "Replicas",
      number_at(object, "spec.replicas") + " desired | " + number_at(object, "status.updatedReplicas") + " updated | " +
          number_at(object, "status.replicas") + " total | " + number_at(object, "status.availableReplicas") + " available | " +
          number_at(object, "status.unavailableReplicas") + " unavailable");
  put(text, 0, "StrategyType", text_at(object, "spec.strategy.type"));
  put(text, 0, "MinReadySeconds", number_at(object, "spec.minReadySeconds"));
  if (const json::value* rolling = find(object, "spec.strategy.rollingUpdate"))
    put(text, 0, "RollingUpdateStrategy",
        text_at(*rolling, "maxUnavailable") + " max unavailable, " + text_at(*rolling, "maxSurge") + " max surge");
  text += of_template(object);
  put_conditions(text, object, false);
  if (const std::string& error = related.replica_sets.error; !error.empty()) {
    for (const char* name : {"OldReplicaSets", "NewReplicaSet"}) put(text, 0, name, unread_text(error));
    return text;
  }
  std::vector<const json::value*> old_sets, new_sets;
  for (const auto& set : related.replica_sets.items)
    for (const auto& owner : get_array(set, "metadata.ownerReferences"))
      if (get_string(owner, "uid") == get_string(object, "metadata.uid"))
        (new_sets.empty() && has_template(object, *find(set, "spec.template")) ? new_sets : old_sets).push_back(&set);
  put_sets(text, "OldReplicaSets", old_sets);
  put_sets(text, "NewReplicaSet", new_sets);
  return text;
}

std::string replica_set_text(const json::value& object, const Related& related) {
  std::string text;
  put_name(text, object);
  put(text, 0, "Selector", selector_or(object, "spec.selector", "<none>"));
  put_marks(text, object);
  put_controller(text, object);
  put(text, 0, "Replicas",
      number_at(object, "status.replicas") + " current / " + number_at(object, "spec.replicas") + " desired");
  put_pods(text, object, related.pods);
  text += of_template(object);
  put_conditions(text, object, false);
  return text;
}

void put_claims(std::string& text, const json::array& claims) {
  text += claims.empty() ? "Volume Claims:\t<none>\n" : "Volume Claims:\n";
  for (const auto& claim : claims) {
    put(text, 1, "Name", text_at(claim, "metadata.name"));
    put(text, 1, "StorageClass", text_at(claim, "spec.storageClassName"));
    put_labels(text, "  Labels", get_object(claim, "metadata.labels"));
    put_annotations(text, "  Annotations", get_object(claim, "metadata.annotations"));
    put(text, 1, "Capacity", or_else(text_at(claim, "spec.resources.requests.storage"), "<default>"));
    std::vector<std::string> modes;
    for (const auto& mode : get_array(claim, "spec.accessModes")) modes.push_back(jsonpath_text(mode));
    put(text, 1, "Access Modes", "[" + join(modes, " ") + "]");
  }
}

std::string stateful_set_text(const json::value& object, const Related& related) {
  std::string text;
  put_name(text, object);
  put(text, 0, "CreationTimestamp", time_text(text_at(object, "metadata.creationTimestamp")));
  put(text, 0, "Selector", selector_or(object, "spec.selector", "<none>"));
  put_marks(text, object);
  put(text, 0, "Replicas", number_at(object, "spec.replicas") + " desired | " + number_at(object, "status.replicas") + " total");
  put(text, 0, "Update Strategy", text_at(object, "spec.updateStrategy.type"));
  for (auto [field, label] : {std::pair{"partition", "Partition"}, std::pair{"maxUnavailable", "MaxUnavailable"}})
    if (std::string value = text_at(object, std::string("spec.updateStrategy.rollingUpdate.") + field); !value.empty())
      put(text, 1, label, value);
  put_pods(text, object, related.pods);
  text += of_template(object);
  put_claims(text, get_array(object, "spec.volumeClaimTemplates"));
  return text;
}

std::string daemon_set_text(const json::value& object, const Related& related) {
  std::string text;
  put_name(text, object);
  put(text, 0, "Selector", selector_or(object, "spec.selector", "<none>"));
  put(text, 0, "Node-Selector", map_text(get_object(object, "spec.template.spec.nodeSelector")));
  put_marks(text, object);
  for (auto [what, field] : {std::pair{"Desired Number of Nodes Scheduled", "desiredNumberScheduled"},
                             std::pair{"Current Number of Nodes Scheduled", "currentNumberScheduled"},
                             std::pair{"Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"},
                             std::pair{"Number of Nodes Scheduled with Available Pods", "numberAvailable"},
                             std::pair{"Number of Nodes Misscheduled", "numberMisscheduled"}})
    text += std::string(what) + ": " + number_at(object, std::string("status.") + field) + "\n";
  put_pods(text, object, related.pods);
  return text + of_template(object);
}

// ---- batch ----

std::string job_text(const json::value& object, WallTime now) {
  std::string text;
  put_name(text, object);
  if (find(object, "spec.selector")) put(text, 0, "Selector", selector_or(object, "spec.selector", "<none>"));
  put_marks(text, object);
  put_controller(text, object);
  put(text, 0, "Parallelism", number_or_unset(object, "spec.parallelism"));
  put(text, 0, "Completions", number_or_unset(object, "spec.completions"));
  if (find(object, "spec.completionMode")) put(text, 0, "Completion Mode", text_at(object, "spec.completionMode"));
  if (find(object, "spec.suspend")) put(text, 0, "Suspend", get_bool(object, "spec.suspend") ? "true" : "false");
  if (find(object, "spec.backoffLimit")) put(text, 0, "Backoff Limit", text_at(object, "spec.backoffLimit"));
  if (find(object, "spec.ttlSecondsAfterFinished"))
    put(text, 0, "TTL Seconds After Finished", text_at(object, "spec.ttlSecondsAfterFinished"));
  std::string start = text_at(object, "status.startTime"), end = text_at(object, "status.completionTime");
  if (!start.empty()) put(text, 0, "Start Time", time_text(start));
  if (!end.empty()) put(text, 0, "Completed At", time_text(end));
  if (auto from = parse_time(start)) {
    auto to = parse_time(end);
    if (to) put(text, 0, "Duration", schema::human_duration(std::chrono::duration_cast<std::chrono::seconds>(*to - *from)));
    else if (!start.empty())
      put(text, 0, "Duration", schema::human_duration(std::chrono::duration_cast<std::chrono::seconds>(now - *from)));
  }
  if (find(object, "spec.activeDeadlineSeconds"))
    put(text, 0, "Active Deadline Seconds", text_at(object, "spec.activeDeadlineSeconds") + "s");
  put(text, 0, "Pods Statuses",
      number_at(object, "status.active") + " Active" +
          (find(object, "status.ready") ? " (" + number_at(object, "status.ready") + " Ready)" : "") + " / " +
          number_at(object, "status.succeeded") + " Succeeded / " + number_at(object, "status.failed") + " Failed");
  if (text_at(object, "spec.completionMode") == "Indexed")
    put(text, 0, "Completed Indexes", or_else(text_at(object, "status.completedIndexes"), "<none>"));
  if (std::string failed = text_at(object, "status.failedIndexes"); !failed.empty()) put(text, 0, "Failed Indexes", failed);
  return text + of_template(object);
}

std::string cron_job_text(const json::value& object) {
  std::string text;
  put_name(text, object);
  put_marks(text, object);
  put(text, 0, "Schedule", text_at(object, "spec.schedule"));
  put(text, 0, "Concurrency Policy", text_at(object, "spec.concurrencyPolicy"));
  put(text, 0, "Suspend", find(object, "spec.suspend") ? flag_at(object, "spec.suspend") : "<unset>");
  if (find(object, "spec.timeZone")) put(text, 0, "Time Zone", text_at(object, "spec.timeZone"));
  put(text, 0, "Successful Job History Limit", number_or_unset(object, "spec.successfulJobsHistoryLimit"));
  put(text, 0, "Failed Job History Limit", number_or_unset(object, "spec.failedJobsHistoryLimit"));
  put(text, 0, "Starting Deadline Seconds", number_or_unset(object, "spec.startingDeadlineSeconds", "s"));
  json::value job = json::value(get_object(object, "spec.jobTemplate"));
  put(text, 0, "Selector", selector_or(job, "spec.selector", "<unset>"));
  put(text, 0, "Parallelism", number_or_unset(job, "spec.parallelism"));
  put(text, 0, "Completions", number_or_unset(job, "spec.completions"));
  if (find(job, "spec.activeDeadlineSeconds"))
    put(text, 0, "Active Deadline Seconds", text_at(job, "spec.activeDeadlineSeconds") + "s");
  text += of_template(job);
  put(text, 0, "Last Schedule Time", or_else(time_text(text_at(object, "status.lastScheduleTime")), "<unset>"));
  std::vector<std::string> active;
  for (const auto& one : get_array(object, "status.active")) active.push_back(text_at(one, "name"));
  put(text, 0, "Active Jobs", active.empty() ? "<none>" : join(active, ", "));
  return text;
}

// ---- autoscaling ----

std::string target_text(const json::value& metric, const json::value& current) {
  const json::value* target = find(metric, "target");
  if (!target) return {};
  for (const char* field : {"averageValue", "value"})
    if (find(*target, field))
      return or_else(text_at(current, std::string("current.") + field), "<unknown>") + " / " + text_at(*target, field);
  std::string now = text_at(current, "current.averageUtilization"), amount = text_at(current, "current.averageValue");
  return (now.empty() ? "<unknown>" : now + "%" + (amount.empty() ? "" : " (" + amount + ")")) + " / " +
         text_at(*target, "averageUtilization") + "%";
}

void put_metrics(std::string& text, const json::value& object) {
  const json::array &metrics = get_array(object, "spec.metrics"), &currents = get_array(object, "status.currentMetrics");
  put(text, 0, "Metrics", "( current / target )");
  for (size_t i = 0; i < metrics.size(); ++i) {
    std::string type = text_at(metrics[i], "type"), field = type;
    field[0] = char(std::tolower(field[0]));
    json::value metric(get_object(metrics[i], field)),
        current(i < currents.size() ? get_object(currents[i], field) : json::object());
    std::string what, name = text_at(metric, "metric.name");
    if (type == "Resource")
      what = "resource " + text_at(metric, "name") + " on pods" +
             (find(metric, "target.averageUtilization") ? "  (as a percentage of request)" : "");
    else if (type == "ContainerResource")
      what = "resource " + text_at(metric, "name") + " of container \"" + text_at(metric, "container") + "\" on pods" +
             (find(metric, "target.averageUtilization") ? "  (as a percentage of request)" : "");
    else if (type == "Pods") what = coracle::quoted(name) + " on pods";
    else if (type == "Object")
      what = coracle::quoted(name) + " on " + text_at(metric, "describedObject.kind") + "/" +
             text_at(metric, "describedObject.name") +
             (text_at(metric, "target.type") == "AverageValue" ? " (target average value)" : " (target value)");
    else
      what = coracle::quoted(name) +
             (text_at(metric, "target.type") == "AverageValue" ? " (target average value)" : " (target value)");
    put(text, 1, what, target_text(metric, current));
  }
}

void put_behavior(std::string& text, const json::value& object) {
  if (!find(object, "spec.behavior")) return;
  text += "Behavior:\n";
  for (auto [field, label] : {std::pair{"scaleUp", "Scale Up"}, std::pair{"scaleDown", "Scale Down"}}) {
    const json::value* rules = find(object, std::string("spec.behavior.") + field);
    if (!rules) continue;
    text += "  " + std::string(label) + ":\n";
    if (find(*rules, "stabilizationWindowSeconds"))
      text += "    Stabilization Window: " + text_at(*rules, "stabilizationWindowSeconds") + " seconds\n";
    if (const json::array& policies = get_array(*rules, "policies"); !policies.empty()) {
      text += "    Select Policy: " + or_else(text_at(*rules, "selectPolicy"), "Max") + "\n    Policies:\n";
      for (const auto& policy : policies)
        text += "      - Type: " + text_at(policy, "type") + "\tValue: " + text_at(policy, "value") +
                "\tPeriod: " + text_at(policy, "periodSeconds") + " seconds\n";
    }
  }
}

std::string autoscaler_text(const json::value& object) {
  std::string text;
  put_name(text, object);
  put_marks(text, object);
  put(text, 0, "CreationTimestamp", time_text(text_at(object, "metadata.creationTimestamp")));
  put(text, 0, "Reference", text_at(object, "spec.scaleTargetRef.kind") + "/" + text_at(object, "spec.scaleTargetRef.name"));
  put_metrics(text, object);
  put(text, 0, "Min replicas", number_or_unset(object, "spec.minReplicas"));
  put(text, 0, "Max replicas", number_at(object, "spec.maxReplicas"));
  put_behavior(text, object);
  put(text, 0, text_at(object, "spec.scaleTargetRef.kind") + " pods",
      number_at(object, "status.currentReplicas") + " current / " + number_at(object, "status.desiredReplicas") + " desired");
  put_conditions(text, object, true);
  return text;
}

// ---- policy, scheduling ----

std::string budget_text(const json::value& object) {
  std::string text;
  put_name(text, object);
  if (find(object, "spec.minAvailable")) put(text, 0, "Min available", text_at(object, "spec.minAvailable"));
  else if (find(object, "spec.maxUnavailable")) put(text, 0, "Max unavailable", text_at(object, "spec.maxUnavailable"));
  put(text, 0, "Selector", find(object, "spec.selector") ? selector_or(object, "spec.selector", "<none>") : "<unset>");
  text += "Status:\n";
  for (auto [label, field] : {std::pair{"Allowed disruptions", "disruptionsAllowed"}, std::pair{"Current", "currentHealthy"},
                              std::pair{"Desired", "desiredHealthy"}, std::pair{"Total", "expectedPods"}})
    put(text, 2, label, number_at(object, std::string("status.") + field));
  return text;
}

std::string priority_text(const json::value& object) {
  std::string text;
  put(text, 0, "Name", text_at(object, "metadata.name"));
  put(text, 0, "Value", number_at(object, "value"));
  put(text, 0, "GlobalDefault", get_bool(object, "globalDefault") ? "true" : "false");
  put(text, 0, "PreemptionPolicy", text_at(object, "preemptionPolicy"));
  put(text, 0, "Description", text_at(object, "description"));
  put(text, 0, "Annotations", map_text(get_object(object, "metadata.annotations")));
  return text;
}

// ---- other kinds ----

// "apiVersion" → "API Version". Names with characters other than letters and dashes stay unchanged.
std::string label_of(std::string_view field) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < field.size(); ++i) {
    char c = field[i];
    if (!std::isalpha(static_cast<unsigned char>(c)) && c != '-') return std::string(field);
    bool is_upper = c >= 'A' && c <= 'Z', after_upper = i > 0 && field[i - 1] >= 'A' && field[i - 1] <= 'Z',
         before_lower = i + 1 < field.size() && field[i + 1] >= 'a' && field[i + 1] <= 'z';
    if (i > 0 && is_upper && (!after_upper || before_lower)) words.emplace_back();
    words.back() += c;
  }
  for (auto& word : words) {
    std::string lower = to_lower(word);
    bool acronym = lower == "api" || lower == "url" || lower == "uid" || lower == "osb" || lower == "guid";
    for (size_t i = 0; i < word.size(); ++i)
      if (acronym || i == 0) word[i] = char(std::toupper(word[i]));
  }
  return join(words, " ");
}

void put_fields(std::string& text, size_t level, const json::object& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  for (const auto& key : keys) {
    const json::value& value = object.at(key);
    if (!value.is_structured()) {
      put(text, level, label_of(key), value.is_null() ? "<nil>" : jsonpath_text(value));
      continue;
    }
    text.append(2 * level, ' ').append(label_of(key)).append(":\n");
    if (value.is_object()) put_fields(text, level + 1, value.get_object());
    else
      for (const auto& item : value.get_array()) {
        if (item.is_object()) put_fields(text, level + 1, item.get_object());
        else text.append(2 * level + 2, ' ').append(jsonpath_text(item)).append("\n");
      }
  }
}

}  // namespace

std::string workload_text(const json::value& object, const Related& related, WallTime now) {
  std::string_view kind = kind_in(object);
  if (kind == "Deployment") return deployment_text(object, related);
  if (kind == "ReplicaSet" || kind == "ReplicationController") return replica_set_text(object, related);
  if (kind == "StatefulSet") return stateful_set_text(object, related);
  if (kind == "DaemonSet") return daemon_set_text(object, related);
  if (kind == "Job") return job_text(object, now);
  if (kind == "CronJob") return cron_job_text(object);
  if (kind == "HorizontalPodAutoscaler") return autoscaler_text(object);
  if (kind == "PodDisruptionBudget") return budget_text(object);
  if (kind == "PriorityClass") return priority_text(object);
  return {};
}

std::string plain_text(const json::value& object) {
  std::string text;
  put(text, 0, "Name", text_at(object, "metadata.name"));
  put(text, 0, "Namespace", text_at(object, "metadata.namespace"));
  put_marks(text, object);
  json::object rest = object.is_object() ? object.get_object() : json::object();
  if (json::value* metadata = rest.if_contains("metadata"); metadata && metadata->is_object())
    for (const char* told : {"name", "namespace", "labels", "annotations", "managedFields"}) metadata->as_object().erase(told);
  put_fields(text, 0, rest);
  return text;
}

}  // namespace coracle::ctl
