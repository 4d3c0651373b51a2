// SPDX-License-Identifier: Apache-2.0
// Validation of Jobs: consistent counts, policies for failures and success, a generated selector and labels, and changes while it
// runs. Source: batch/v1 API reference, Job.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/job/job_indexes.h"
#include "store/kinds/job/job_kinds.h"
#include "store/kinds/workload/workload_validation.h"
#include "store/object/selector.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr int64_t kParallelismMax = 100'000, kFailedIndexesMax = 100'000, kCompletionsMany = 100'000;
constexpr int64_t kParallelismMaxForMany = 10'000, kFailedIndexesMaxForMany = 10'000;
constexpr size_t kRulesMax = 20, kExitCodesMax = 255, kOnPodConditionsMax = 20, kManagedByMax = 63, kIndexesBytesMax = 64 * 1024;

void check_indexed(view::JobSpec spec, const std::string& path, Findings& out) {
  int64_t completions = spec.completions(), parallelism = spec.parallelism(), failed = spec.max_failed_indexes();
  bool has_failed = spec.has_max_failed_indexes(), has_completions = spec.has_completions();
  if (!has_completions) out.required(sub(path, "completions"), "when completion mode is Indexed");
  if (parallelism > kParallelismMax) {
    out.invalid(sub(path, "parallelism"), parallelism, "must be less than or equal to 100000 when completion mode is Indexed");
  }
  if (has_completions && has_failed && failed > completions) {
    out.invalid(sub(path, "maxFailedIndexes"), failed, "must be less than or equal to completions");
  }
  if (failed > kFailedIndexesMax) out.invalid(sub(path, "maxFailedIndexes"), failed, "must be less than or equal to 100000");
  if (completions <= kCompletionsMany || !spec.has_backoff_limit_per_index()) return;
  constexpr std::string_view kWords =
      "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index";
  if (!has_failed) out.required(sub(path, "maxFailedIndexes"), "must be specified when completions is above 100000");
  if (parallelism > kParallelismMaxForMany) out.invalid(sub(path, "parallelism"), parallelism, kWords);
  if (failed > kFailedIndexesMaxForMany) out.invalid(sub(path, "maxFailedIndexes"), failed, kWords);
}

void check_template(view::JobSpec spec, const std::string& path, Findings& out) {
  std::string at = sub(path, "template.spec.restartPolicy");
  std::string_view policy = spec.template_().spec().restart_policy();
  if (policy.empty() || policy == "Always") out.required(at, "valid values: \"OnFailure\", \"Never\"");
  else if (policy == "OnFailure" && spec.has_pod_failure_policy()) {
    out.invalid(at, policy, "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

void check_exit_codes(view::PodFailurePolicyOnExitCodesRequirement codes, const std::set<std::string_view>& containers,
                      const std::string& path, Findings& out) {
  std::string_view op = codes.operator_();
  if (op.empty()) out.required(sub(path, "operator"), "valid values: [\"In\" \"NotIn\"]");
  else if (op != "In" && op != "NotIn") out.not_supported(sub(path, "operator"), op, {"In", "NotIn"});
  if (codes.has_container_name() && !containers.contains(codes.container_name())) {
    out.invalid(sub(path, "containerName"), codes.container_name(),
                "must be one of the container or initContainer names in the pod template");
  }
  std::string at = sub(path, "values");
  const json::array& values = codes.values().raw();
  if (values.empty()) out.invalid_json(at, values, "at least one value is required");
  if (values.size() > kExitCodesMax) out.too_many(at, values.size(), kExitCodesMax);
  std::set<int64_t> seen;
  bool ordered = true;
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t value = values[i].is_int64() ? values[i].get_int64() : 0;
    if (op == "In" && value == 0) out.invalid(item(at, i), value, "must not be 0 for the In operator");
    if (!seen.insert(value).second) out.duplicate_json(item(at, i), values[i]);
    ordered = ordered && value == *seen.rbegin();
  }
  if (!ordered) out.invalid_json(at, values, "must be ordered");
}

void check_on_pod_conditions(view::Range<view::PodFailurePolicyOnPodConditionsPattern> conditions, const std::string& path,
                             Findings& out) {
  if (conditions.size() > kOnPodConditionsMax) out.too_many(path, conditions.size(), kOnPodConditionsMax);
  for (size_t i = 0; i < conditions.size(); ++i) {
    std::string_view type = conditions[i].type(), status = conditions[i].status();
    out.invalid_all(sub(item(path, i), "type"), type, qualified_name_problems(type));
    std::string at = sub(item(path, i), "status");
    if (status.empty()) out.required(at, "valid values: [\"False\" \"True\" \"Unknown\"]");
    else if (status != "True" && status != "False" && status != "Unknown")
      out.not_supported(at, status, {"True", "False", "Unknown"});
  }
}

void check_failure_policy(view::JobSpec spec, const std::string& path, Findings& out) {
  std::string at = sub(path, "rules");
  view::Range<view::PodFailurePolicyRule> rules = spec.pod_failure_policy().rules();
  if (rules.size() > kRulesMax) out.too_many(at, rules.size(), kRulesMax);
  std::set<std::string_view> containers;
  view::PodSpec pod = spec.template_().spec();
  for (const auto& list : {pod.containers(), pod.init_containers()}) {
    for (view::Container container : list) containers.insert(container.name());
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    std::string here = item(at, i);
    std::string_view action = rules[i].action();
    if (action.empty()) {
      out.required(sub(here, "action"), "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
    } else if (action == "FailIndex" && !spec.has_backoff_limit_per_index()) {
      out.invalid(sub(here, "action"), action, "requires the backoffLimitPerIndex to be set");
    } else if (action != "FailIndex" && action != "FailJob" && action != "Ignore" && action != "Count") {
      out.not_supported(sub(here, "action"), action, {"Count", "FailIndex", "FailJob", "Ignore"});
    }
    view::PodFailurePolicyOnExitCodesRequirement codes = rules[i].on_exit_codes();
    view::Range<view::PodFailurePolicyOnPodConditionsPattern> conditions = rules[i].on_pod_conditions();
    if (codes) check_exit_codes(codes, containers, sub(here, "onExitCodes"), out);
    if (!conditions.empty()) check_on_pod_conditions(conditions, sub(here, "onPodConditions"), out);
    if (codes && !conditions.empty())
      out.invalid_without(here, "specifying both OnExitCodes and OnPodConditions is not supported");
    if (!codes && conditions.empty()) out.invalid_without(here, "specifying one of OnExitCodes and OnPodConditions is required");
  }
}

void check_success_policy(view::JobSpec spec, const std::string& path, Findings& out) {
  std::string at = sub(path, "rules");
  view::Range<view::SuccessPolicyRule> rules = spec.success_policy().rules();
  int64_t completions = spec.completions();
  if (rules.empty()) out.required(at, "at least one rules must be specified when the successPolicy is specified");
  if (rules.size() > kRulesMax) out.too_many(at, rules.size(), kRulesMax);
  for (size_t i = 0; i < rules.size(); ++i) {
    std::string here = item(at, i);
    bool indexes = rules[i].has_succeeded_indexes(), count = rules[i].has_succeeded_count();
    if (!indexes && !count) out.required(here, "at least one of succeededCount or succeededIndexes must be specified");
    int64_t named = 0;
    if (indexes) {
      std::string_view text = rules[i].succeeded_indexes();
      if (text.size() > kIndexesBytesMax) out.too_long(sub(here, "succeededIndexes"), kIndexesBytesMax);
      Indexes parsed = parse_indexes(text, completions);
      named = parsed.count;
      if (!parsed.problem.empty())
        out.invalid(sub(here, "succeededIndexes"), text, "error parsing succeededIndexes: " + parsed.problem);
    }
    if (!count) continue;
    int64_t wanted = rules[i].succeeded_count();
    std::string place = sub(here, "succeededCount");
    out.not_negative(place, wanted);
    if (wanted > completions) {
      out.invalid(place, wanted,
                  "must be less than or equal to " + std::to_string(completions) + " (the number of specified completions)");
    }
    if (indexes && wanted > named) {
      out.invalid(place, wanted,
                  "must be less than or equal to " + std::to_string(named) +
                      " (the number of indexes in the specified succeededIndexes field)");
    }
  }
}

void check_job_spec(const json::value& value, const std::string& path, Findings& out) {
  view::JobSpec spec(value);
  for (std::string_view name : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
                                "backoffLimitPerIndex", "maxFailedIndexes"}) {
    out.not_negative(sub(path, name), get_int(value, name));
  }
  if (spec.has_max_failed_indexes() && !spec.has_backoff_limit_per_index()) {
    out.required(sub(path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  }
  if (spec.has_managed_by()) {
    std::string_view manager = spec.managed_by();
    check_domain_path(out, sub(path, "managedBy"), manager);
    if (manager.size() > kManagedByMax) out.too_long(sub(path, "managedBy"), kManagedByMax);
  }
  bool indexed = spec.completion_mode() == "Indexed";
  if (indexed) check_indexed(spec, path, out);
  for (std::string_view name : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
    if (!indexed && find(value, name)) out.invalid(sub(path, name), get_int(value, name), "requires indexed completion mode");
  }
  if (spec.has_pod_failure_policy()) check_failure_policy(spec, sub(path, "podFailurePolicy"), out);
  if (spec.has_success_policy()) {
    if (indexed) check_success_policy(spec, sub(path, "successPolicy"), out);
    else out.invalid_json(sub(path, "successPolicy"), spec.success_policy().raw(), "requires indexed completion mode");
  }
  std::string_view replacement = spec.pod_replacement_policy();
  if (!replacement.empty() && replacement != "Failed" &&
      (spec.has_pod_failure_policy() || replacement != "TerminatingOrFailed")) {
    bool only_failed = spec.has_pod_failure_policy();
    out.not_supported(
        sub(path, "podReplacementPolicy"), replacement,
        only_failed ? std::vector<std::string>{"Failed"} : std::vector<std::string>{"Failed", "TerminatingOrFailed"});
  }
  check_template(spec, path, out);
}

// The generated labels that separate a job's pods from all others.
void check_generated(view::Job job, Findings& out) {
  const json::value* selector = job.spec().selector().pointer();
  if (!selector || job.spec().manual_selector()) return;
  std::string uid(job.metadata().uid()), name(job.metadata().name());
  if (uid.empty()) out.required("metadata.uid");
  const json::object& labels = job.spec().template_().metadata().labels();
  json::object expected;
  for (auto [key, want] :
       {std::pair{"controller-uid", &uid}, std::pair{"job-name", &name}, std::pair{"batch.kubernetes.io/controller-uid", &uid},
        std::pair{"batch.kubernetes.io/job-name", &name}}) {
    expected[key] = *want;
    std::string at = entry("spec.template.metadata.labels", key);
    const json::value* found = labels.if_contains(key);
    if (!found) out.required(at, "must be '" + *want + "'");
    else if (*found != json::value(*want)) out.invalid_json(at, json::value(labels), "must be '" + *want + "'");
  }
  auto matches = LabelSelector::matches_once(selector, expected);
  if (matches && !*matches) out.invalid_json("spec.selector", *selector, "`selector` not auto-generated");
}

void check_job(const json::value& value, const std::string& path, Findings& out) {
  if (!path.empty()) return;
  view::Job job(value);
  view::JobSpec spec = job.spec();
  check_generated(job, out);
  const json::value* selector = spec.selector().pointer();
  if (!selector) out.required("spec.selector");
  auto matches = LabelSelector::matches_once(selector, spec.template_().metadata().labels());
  if (matches && spec.pointer()) check_template_labels(spec.raw(), *matches, "spec", out);
  int64_t completions = spec.completions();
  if (spec.completion_mode() != "Indexed" || completions <= 0) return;
  std::string host = std::string(job.metadata().name()) + "-" + std::to_string(completions - 1);
  if (!dns_label_problems(host).empty()) {
    out.invalid("metadata.name", job.metadata().name(), "will not able to create pod with invalid DNS label: " + host);
  }
}

constexpr NamedValidationRule kJobChecks[] = {
    {"io.k8s.api.batch.v1.JobSpec", check_job_spec},
    {"io.k8s.api.batch.v1.Job", check_job},
};

bool is_suspended(view::Job job) {
  for (view::JobCondition condition : job.status().conditions()) {
    if (condition.type() == "Suspended") return condition.status() == "True";
  }
  return false;
}

// The template without its mutable parts: scheduling fields while the job is suspended and has no pods, and resource amounts.
json::value fixed_template(const json::value& job, bool places, bool amounts) {
  const json::value* found = view::Job(job).spec().template_().pointer();
  json::value out = found ? *found : json::value();
  if (!out.is_object()) return out;
  for (std::string_view list : {"spec.containers", "spec.initContainers"}) {
    json::array* containers = amounts && find(out, list) ? make(out, list).if_array() : nullptr;
    if (!containers) continue;
    for (json::value& container : *containers) {
      if (container.is_object()) container.get_object().erase("resources");
    }
  }
  if (!places) return out;
  for (std::string_view field : {"annotations", "labels"}) make(out, "metadata").get_object().erase(field);
  json::object& spec = make(out, "spec").get_object();
  for (std::string_view field : {"nodeSelector", "tolerations", "schedulingGates"}) spec.erase(field);
  if (json::value* affinity = spec.if_contains("affinity"); affinity && affinity->is_object()) {
    affinity->get_object().erase("nodeAffinity");
    if (affinity->get_object().empty()) spec.erase("affinity");
  }
  return out;
}

}  // namespace

Indexes parse_indexes(std::string_view text, int64_t completions) {
  Indexes out;
  if (text.empty()) return out;
  int64_t last = -1;
  auto fail = [&](std::string words) {
    out.problem = std::move(words);
    out.count = 0;
    return out;
  };
  for (std::string_view part : split(text, ',')) {
    std::vector<std::string_view> limits = split(part, '-');
    if (limits.size() > 2) {
      return fail("the fragment " + quoted(part) +
                  " violates the requirement that an index interval can have at most two parts separated by '-'");
    }
    int64_t bounds[2] = {0, 0};
    for (size_t i = 0; i < limits.size(); ++i) {
      auto number = parse_number<uint32_t>(limits[i]);
      if (!number) return fail("cannot convert string to integer for index: " + quoted(limits[i]));
      if (int64_t(*number) >= completions) return fail("too large index: " + quoted(limits[i]));
      bounds[i] = *number;
    }
    if (limits.size() == 1) bounds[1] = bounds[0];
    else if (bounds[0] >= bounds[1]) {
      return fail("non-increasing order, previous: " + std::to_string(bounds[0]) + ", current: " + std::to_string(bounds[1]));
    }
    if (last >= bounds[0])
      return fail("non-increasing order, previous: " + std::to_string(last) + ", current: " + std::to_string(bounds[0]));
    out.intervals.emplace_back(bounds[0], bounds[1]);
    out.count += bounds[1] - bounds[0] + 1;
    last = bounds[1];
  }
  return out;
}

std::span<const NamedValidationRule> job_rules() { return kJobChecks; }

void check_job_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  auto immutable = [&](std::string_view name) {
    std::string path = sub("spec", name);
    check_immutable(out, path, find(now, path), find(before, path));
  };
  view::JobSpec spec = view::Job(now).spec(), old = view::Job(before).spec();
  view::JobStatus old_status = view::Job(before).status();
  bool changed = spec.has_completions() && old.has_completions() && spec.completions() != old.completions();
  if (spec.completion_mode() != "Indexed") immutable("completions");
  else if (changed && spec.completions() != spec.parallelism()) {
    out.invalid_json("spec.completions", spec.completions(), "can only be modified in tandem with spec.parallelism");
  }
  immutable("selector");
  bool suspended = is_suspended(view::Job(before)), still = old.suspend() && old_status.active() == 0;
  bool places = still && (!old_status.has_start_time() || suspended), amounts = still && suspended;
  if (fixed_template(now, places, amounts) != fixed_template(before, places, amounts)) {
    out.invalid_json("spec.template", spec.template_().raw(), "field is immutable");
  }
  for (std::string_view name : {"completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"})
    immutable(name);
}

}  // namespace coracle::schema
