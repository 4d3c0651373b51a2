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

std::string number_or_unset(bool has, int64_t number, std::string_view unit = {}) {
  return has ? std::to_string(number).append(unit) : "<unset>";
}

void put_pods(std::string& text, const json::value& object, const RelatedList& pods) {
  if (!pods.error.empty()) return put(text, 0, "Pods Status", "error in fetching pods: " + pods.error);
  size_t running = 0, waiting = 0, succeeded = 0, failed = 0;
  for (const auto& pod : pods.items) {
    bool ours = false;
    for (view::OwnerReference owner : metadata_of(pod).owner_references())
      ours = ours || (owner.controller() && owner.uid() == metadata_of(object).uid());
    std::string_view phase = view::Pod(pod).status().phase();
    if (ours) ++(phase == "Running" ? running : phase == "Succeeded" ? succeeded : phase == "Failed" ? failed : waiting);
  }
  put(text, 0, "Pods Status",
      std::to_string(running) + " Running / " + std::to_string(waiting) + " Waiting / " + std::to_string(succeeded) +
          " Succeeded / " + std::to_string(failed) + " Failed");
}

void put_creation(std::string& text, const json::value& object) {
  put(text, 0, "CreationTimestamp", time_text(metadata_of(object).creation_timestamp()));
}

// ---- apps ----

void put_sets(std::string& text, std::string_view name, const std::vector<view::ReplicaSet>& sets) {
  std::vector<std::string> parts;
  for (view::ReplicaSet set : sets)
    parts.push_back(std::string(set.metadata().name()) + " (" + std::to_string(set.status().replicas()) + "/" +
                    std::to_string(set.spec().replicas()) + " replicas created)");
  put(text, 0, name, parts.empty() ? "<none>" : join(parts, ", "));
}

std::string deployment_text(const json::value& object, const Related& related) {
  view::DeploymentSpec spec = view::Deployment(object).spec();
  view::DeploymentStatus status = view::Deployment(object).status();
  std::string text;
  put_name(text, object);
  put_creation(text, object);
  put_marks(text, object);
  put(text, 0, "Selector", selector_or(spec.selector(), "<none>"));
  put(text, 0, "Replicas",
      std::to_string(spec.replicas()) + " desired | " + std::to_string(status.updated_replicas()) + " updated | " +
          std::to_string(status.replicas()) + " total | " + std::to_string(status.available_replicas()) + " available | " +
          std::to_string(status.unavailable_replicas()) + " unavailable");
  put(text, 0, "StrategyType", spec.strategy().type());
  put(text, 0, "MinReadySeconds", std::to_string(spec.min_ready_seconds()));
  if (view::RollingUpdateDeployment rolling = spec.strategy().rolling_update())
    put(text, 0, "RollingUpdateStrategy",
        text_of_value(rolling.max_unavailable()) + " max unavailable, " + text_of_value(rolling.max_surge()) + " max surge");
  text += template_text(spec.template_());
  put_conditions(text, object, false);
  if (const std::string& error = related.replica_sets.error; !error.empty()) {
    for (const char* name : {"OldReplicaSets", "NewReplicaSet"}) put(text, 0, name, unread_text(error));
    return text;
  }
  std::vector<view::ReplicaSet> old_sets, new_sets;
  for (const auto& one : related.replica_sets.items) {
    view::ReplicaSet set(one);
    for (view::OwnerReference owner : set.metadata().owner_references())
      if (owner.uid() == metadata_of(object).uid())
        (new_sets.empty() && has_template(object, set.spec().template_().raw()) ? new_sets : old_sets).push_back(set);
  }
  if (old_sets.empty() && new_sets.empty()) return text;
  put_sets(text, "OldReplicaSets", old_sets);
  put_sets(text, "NewReplicaSet", new_sets);
  return text;
}

// Or a ReplicationController, which has the fields that are read here, too.
std::string replica_set_text(const json::value& object, const Related& related) {
  view::ReplicaSet set(object);
  std::string text;
  put_name(text, object);
  put(text, 0, "Selector", selector_or(set.spec().selector(), "<none>"));
  put_marks(text, object);
  put_controller(text, object);
  put(text, 0, "Replicas",
      std::to_string(set.status().replicas()) + " current / " + std::to_string(set.spec().replicas()) + " desired");
  put_pods(text, object, related.pods);
  text += template_text(set.spec().template_());
  put_conditions(text, object, false);
  return text;
}

void put_claims(std::string& text, view::Range<view::PersistentVolumeClaim> claims) {
  text += claims.empty() ? "Volume Claims:\t<none>\n" : "Volume Claims:\n";
  for (view::PersistentVolumeClaim claim : claims) {
    put(text, 1, "Name", claim.metadata().name());
    put(text, 1, "StorageClass", claim.spec().storage_class_name());
    put_labels(text, "  Labels", claim.metadata().labels());
    put_labels(text, "  Annotations", claim.metadata().annotations());  // as kubectl: of each the whole, whatever it is
    put(text, 1, "Capacity", or_else(amount_text(claim.spec().resources().requests().if_contains("storage")), "<default>"));
    put(text, 1, "Access Modes", "[" + join(strings(claim.spec().access_modes()), " ") + "]");
  }
}

std::string stateful_set_text(const json::value& object, const Related& related) {
  view::StatefulSetSpec spec = view::StatefulSet(object).spec();
  std::string text;
  put_name(text, object);
  put_creation(text, object);
  put(text, 0, "Selector", selector_or(spec.selector(), "<none>"));
  put_marks(text, object);
  put(text, 0, "Replicas",
      std::to_string(spec.replicas()) + " desired | " + std::to_string(view::StatefulSet(object).status().replicas()) + " total");
  put(text, 0, "Update Strategy", spec.update_strategy().type());
  view::RollingUpdateStatefulSetStrategy rolling = spec.update_strategy().rolling_update();
  if (rolling.has_partition()) put(text, 1, "Partition", std::to_string(rolling.partition()));
  if (std::string most = text_of_value(rolling.max_unavailable()); !most.empty()) put(text, 1, "MaxUnavailable", most);
  put_pods(text, object, related.pods);
  text += template_text(spec.template_());
  put_claims(text, spec.volume_claim_templates());
  return text;
}

std::string daemon_set_text(const json::value& object, const Related& related) {
  view::DaemonSetSpec spec = view::DaemonSet(object).spec();
  view::DaemonSetStatus status = view::DaemonSet(object).status();
  std::string text;
  put_name(text, object);
  put(text, 0, "Selector", selector_or(spec.selector(), "<none>"));
  put(text, 0, "Node-Selector", map_text(spec.template_().spec().node_selector()));
  put_marks(text, object);
  for (auto [what, number] : {std::pair{"Desired Number of Nodes Scheduled", status.desired_number_scheduled()},
                              std::pair{"Current Number of Nodes Scheduled", status.current_number_scheduled()},
                              std::pair{"Number of Nodes Scheduled with Up-to-date Pods", status.updated_number_scheduled()},
                              std::pair{"Number of Nodes Scheduled with Available Pods", status.number_available()},
                              std::pair{"Number of Nodes Misscheduled", status.number_misscheduled()}})
    text += std::string(what) + ": " + std::to_string(number) + "\n";
  put_pods(text, object, related.pods);
  return text + template_text(spec.template_());
}

// ---- batch ----

constexpr size_t kIndexesShown = 50;  // characters, and what is left of the last number

std::string indexes_text(std::string_view indexes) {
  const size_t comma = indexes.find(',', kIndexesShown);
  if (comma != indexes.npos) return std::string(indexes.substr(0, comma + 1)) + "...";
  return or_else(indexes, "<none>");
}

void put_duration(std::string& text, view::JobStatus status) {
  auto from = parse_time(status.start_time()), to = parse_time(status.completion_time());
  if (from && to) put(text, 0, "Duration", schema::human_duration(std::chrono::duration_cast<std::chrono::seconds>(*to - *from)));
}

std::string job_text(const json::value& object) {
  view::JobSpec spec = view::Job(object).spec();
  view::JobStatus status = view::Job(object).status();
  std::string text;
  put_name(text, object);
  if (spec.has_selector()) put(text, 0, "Selector", selector_or(spec.selector(), "<none>"));
  put_marks(text, object);
  put_controller(text, object);
  put(text, 0, "Parallelism", number_or_unset(spec.has_parallelism(), spec.parallelism()));
  put(text, 0, "Completions", number_or_unset(spec.has_completions(), spec.completions()));
  if (spec.has_completion_mode()) put(text, 0, "Completion Mode", spec.completion_mode());
  if (spec.has_suspend()) put(text, 0, "Suspend", spec.suspend() ? "true" : "false");
  if (spec.has_backoff_limit()) put(text, 0, "Backoff Limit", std::to_string(spec.backoff_limit()));
  if (spec.has_ttl_seconds_after_finished())
    put(text, 0, "TTL Seconds After Finished", std::to_string(spec.ttl_seconds_after_finished()));
  if (!status.start_time().empty()) put(text, 0, "Start Time", time_text(status.start_time()));
  if (!status.completion_time().empty()) put(text, 0, "Completed At", time_text(status.completion_time()));
  put_duration(text, status);
  if (spec.has_active_deadline_seconds())
    put(text, 0, "Active Deadline Seconds", std::to_string(spec.active_deadline_seconds()) + "s");
  put(text, 0, "Pods Statuses",
      std::to_string(status.active()) + " Active" +
          (status.has_ready() ? " (" + std::to_string(status.ready()) + " Ready)" : "") + " / " +
          std::to_string(status.succeeded()) + " Succeeded / " + std::to_string(status.failed()) + " Failed");
  if (spec.completion_mode() == "Indexed") put(text, 0, "Completed Indexes", indexes_text(status.completed_indexes()));
  return text + template_text(spec.template_());
}

std::string cron_job_text(const json::value& object) {
  view::CronJobSpec spec = view::CronJob(object).spec();
  view::CronJobStatus status = view::CronJob(object).status();
  view::JobSpec job = spec.job_template().spec();
  std::string text;
  put_name(text, object);
  put_marks(text, object);
  put(text, 0, "Schedule", spec.schedule());
  put(text, 0, "Concurrency Policy", spec.concurrency_policy());
  put(text, 0, "Suspend", !spec.has_suspend() ? "<unset>" : spec.suspend() ? "True" : "False");
  put(text, 0, "Time Zone", spec.has_time_zone() ? spec.time_zone() : "<unset>");
  put(text, 0, "Successful Job History Limit",
      number_or_unset(spec.has_successful_jobs_history_limit(), spec.successful_jobs_history_limit()));
  put(text, 0, "Failed Job History Limit",
      number_or_unset(spec.has_failed_jobs_history_limit(), spec.failed_jobs_history_limit()));
  put(text, 0, "Starting Deadline Seconds",
      number_or_unset(spec.has_starting_deadline_seconds(), spec.starting_deadline_seconds(), "s"));
  put(text, 0, "Selector", selector_or(job.selector(), "<unset>"));
  put(text, 0, "Parallelism", number_or_unset(job.has_parallelism(), job.parallelism()));
  put(text, 0, "Completions", number_or_unset(job.has_completions(), job.completions()));
  if (job.has_active_deadline_seconds())
    put(text, 0, "Active Deadline Seconds", std::to_string(job.active_deadline_seconds()) + "s");
  text += template_text(job.template_());
  put(text, 0, "Last Schedule Time", or_else(time_text(status.last_schedule_time()), "<unset>"));
  std::vector<std::string> active;
  for (view::ObjectReference one : status.active()) active.emplace_back(one.name());
  put(text, 0, "Active Jobs", active.empty() ? "<none>" : join(active, ", "));
  return text;
}

// ---- autoscaling ----

std::string target_text(view::MetricTarget target, view::MetricValueStatus current) {
  if (!target) return {};
  std::string average = amount_text(current.average_value());
  if (target.has_average_value()) return or_else(average, "<unknown>") + " / " + amount_text(target.average_value());
  if (target.has_value()) return or_else(amount_text(current.value()), "<unknown>") + " / " + amount_text(target.value());
  std::string used = "<unknown>";
  if (current.has_average_utilization())
    used = std::to_string(current.average_utilization()) + "%" + (average.empty() ? "" : " (" + average + ")");
  return used + " / " + (target.has_average_utilization() ? std::to_string(target.average_utilization()) + "%" : "<auto>");
}

std::string of_request_text(view::MetricTarget target) {
  return target.has_average_value() ? "" : "  (as a percentage of request)";
}
std::string target_type_text(view::MetricTarget target) {
  return target.type() == "AverageValue" ? " (target average value)" : " (target value)";
}

// `current`: what the status says of the same metric; absent if nothing.
void put_metric(std::string& text, view::MetricSpec metric, view::MetricStatus current) {
  std::string_view type = metric.type();
  if (type == "Resource") {
    view::ResourceMetricSource source = metric.resource();
    put(text, 1, "resource " + std::string(source.name()) + " on pods" + of_request_text(source.target()),
        target_text(source.target(), current.resource().current()));
  } else if (type == "ContainerResource") {
    view::ContainerResourceMetricSource source = metric.container_resource();
    put(text, 1,
        "resource " + std::string(source.name()) + " of container \"" + std::string(source.container()) + "\" on pods" +
            of_request_text(source.target()),
        target_text(source.target(), current.container_resource().current()));
  } else if (type == "Pods") {
    view::PodsMetricSource source = metric.pods();
    put(text, 1, coracle::quoted(source.metric().name()) + " on pods", target_text(source.target(), current.pods().current()));
  } else if (type == "Object") {
    view::ObjectMetricSource source = metric.object();
    put(text, 1,
        coracle::quoted(source.metric().name()) + " on " + std::string(source.described_object().kind()) + "/" +
            std::string(source.described_object().name()) + target_type_text(source.target()),
        target_text(source.target(), current.object().current()));
  } else if (type == "External") {
    view::ExternalMetricSource source = metric.external();
    put(text, 1, coracle::quoted(source.metric().name()) + target_type_text(source.target()),
        target_text(source.target(), current.external().current()));
  } else {
    text += "  <unknown metric type " + coracle::quoted(type) + ">\n";
  }
}

void put_scaling_rules(std::string& text, std::string_view label, view::HPAScalingRules rules) {
  if (!rules) return;
  text += "  " + std::string(label) + ":\n";
  if (rules.has_stabilization_window_seconds())
    text += "    Stabilization Window: " + std::to_string(rules.stabilization_window_seconds()) + " seconds\n";
  if (rules.policies().empty()) return;
  text += "    Select Policy: " + or_else(rules.select_policy(), "Max") + "\n    Policies:\n";
  for (view::HPAScalingPolicy policy : rules.policies())
    text += "      - Type: " + std::string(policy.type()) + "\tValue: " + std::to_string(policy.value()) +
            "\tPeriod: " + std::to_string(policy.period_seconds()) + " seconds\n";
}

std::string autoscaler_text(const json::value& object) {
  view::HorizontalPodAutoscalerSpec spec = view::HorizontalPodAutoscaler(object).spec();
  view::HorizontalPodAutoscalerStatus status = view::HorizontalPodAutoscaler(object).status();
  std::string text, target_kind(spec.scale_target_ref().kind());
  put_name(text, object);
  put_marks(text, object);
  put_creation(text, object);
  put(text, 0, "Reference", target_kind + "/" + std::string(spec.scale_target_ref().name()));
  put(text, 0, "Metrics", "( current / target )");
  view::Range<view::MetricStatus> currents = status.current_metrics();
  size_t at = 0;
  for (view::MetricSpec metric : spec.metrics()) {
    put_metric(text, metric, at < currents.size() ? currents[at] : view::MetricStatus());
    ++at;
  }
  put(text, 0, "Min replicas", number_or_unset(spec.has_min_replicas(), spec.min_replicas()));
  put(text, 0, "Max replicas", std::to_string(spec.max_replicas()));
  if (view::HorizontalPodAutoscalerBehavior behavior = spec.behavior()) {
    text += "Behavior:\n";
    put_scaling_rules(text, "Scale Up", behavior.scale_up());
    put_scaling_rules(text, "Scale Down", behavior.scale_down());
  }
  put(text, 0, target_kind + " pods",
      std::to_string(status.current_replicas()) + " current / " + std::to_string(status.desired_replicas()) + " desired");
  put_conditions(text, object, true);
  return text;
}

// ---- policy, scheduling ----

std::string budget_text(const json::value& object) {
  view::PodDisruptionBudgetSpec spec = view::PodDisruptionBudget(object).spec();
  view::PodDisruptionBudgetStatus status = view::PodDisruptionBudget(object).status();
  std::string text;
  put_name(text, object);
  if (spec.has_min_available()) put(text, 0, "Min available", text_of_value(spec.min_available()));
  else if (spec.has_max_unavailable()) put(text, 0, "Max unavailable", text_of_value(spec.max_unavailable()));
  put(text, 0, "Selector", spec.has_selector() ? selector_or(spec.selector(), "<none>") : "<unset>");
  text += "Status:\n";
  for (auto [label, number] :
       {std::pair{"Allowed disruptions", status.disruptions_allowed()}, std::pair{"Current", status.current_healthy()},
        std::pair{"Desired", status.desired_healthy()}, std::pair{"Total", status.expected_pods()}})
    put(text, 2, label, std::to_string(number));
  return text;
}

std::string priority_text(const json::value& object) {
  view::PriorityClass priority(object);
  std::string text;
  put(text, 0, "Name", priority.metadata().name());
  put(text, 0, "Value", std::to_string(priority.value()));
  put(text, 0, "GlobalDefault", priority.global_default() ? "true" : "false");
  put(text, 0, "PreemptionPolicy", priority.preemption_policy());
  put(text, 0, "Description", priority.description());
  put(text, 0, "Annotations", map_text(priority.metadata().annotations()));
  return text;
}

// ---- other kinds ----

int letter_class(char c) { return c >= 'a' && c <= 'z' ? 1 : c >= 'A' && c <= 'Z' ? 2 : 3; }
bool is_capital(char c) { return letter_class(c) == 2; }

// "podCIDRs" → "pod", "CID", "Rs": runs of one class, but the last capital goes to the small letters behind it. Source: the Go
// module fatih/camelcase.
std::vector<std::string> camel_words(std::string_view field) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < field.size(); ++i) {
    if (i == 0 || letter_class(field[i]) != letter_class(field[i - 1])) runs.emplace_back();
    runs.back() += field[i];
  }
  for (size_t i = 0; i + 1 < runs.size(); ++i) {
    if (!is_capital(runs[i].front()) || letter_class(runs[i + 1].front()) != 1) continue;
    runs[i + 1].insert(0, 1, runs[i].back());
    runs[i].pop_back();
  }
  std::erase(runs, "");
  return runs;
}

// "apiVersion" → "API Version", "podCIDRs" → "Pod CIDRs". Names with characters other than letters and dashes stay unchanged.
std::string label_of(std::string_view field) {
  if (!std::ranges::all_of(field, [](char c) { return letter_class(c) < 3 || c == '-'; })) return std::string(field);
  std::vector<std::string> words;
  bool joins = false;  // the word before is an abbreviation, and this one its end
  for (const std::string& word : camel_words(field)) {
    if (std::exchange(joins, false) && is_capital(word.front())) {
      words.back() += word;
      continue;
    }
    words.push_back(word);
    joins = word.size() > 1 && std::ranges::all_of(word, is_capital);
  }
  for (std::string& word : words) {
    std::string lower = to_lower(word);
    bool acronym = lower == "api" || lower == "url" || lower == "uid" || lower == "guid";
    for (size_t i = 0; i < word.size(); ++i)
      if (acronym || (i == 0 && word == lower)) word[i] = char(std::toupper(word[i]));
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

std::string workload_text(const json::value& object, const Related& related) {
  std::string_view kind = kind_in(object);
  if (kind == "Deployment") return deployment_text(object, related);
  if (kind == "ReplicaSet" || kind == "ReplicationController") return replica_set_text(object, related);
  if (kind == "StatefulSet") return stateful_set_text(object, related);
  if (kind == "DaemonSet") return daemon_set_text(object, related);
  if (kind == "Job") return job_text(object);
  if (kind == "CronJob") return cron_job_text(object);
  if (kind == "HorizontalPodAutoscaler") return autoscaler_text(object);
  if (kind == "PodDisruptionBudget") return budget_text(object);
  if (kind == "PriorityClass") return priority_text(object);
  return {};
}

std::string plain_text(const json::value& object) {
  std::string text;
  put(text, 0, "Name", metadata_of(object).name());
  put(text, 0, "Namespace", metadata_of(object).namespace_());
  put_marks(text, object);
  json::object rest = object.is_object() ? object.get_object() : json::object();
  if (json::value* metadata = rest.if_contains("metadata"); metadata && metadata->is_object())
    for (const char* told : {"name", "namespace", "labels", "annotations", "managedFields"}) metadata->as_object().erase(told);
  put_fields(text, 0, rest);
  return text;
}

}  // namespace coracle::ctl
