// SPDX-License-Identifier: Apache-2.0
// See horizontal_autoscaler.h. Pure: the caller keeps the history.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "daemon/controller/autoscaler/horizontal_autoscaler.h"
#include "store/object/quantity.h"

namespace coracle::controller {
namespace {

constexpr int64_t kScaleUpAtLeast = 4;
constexpr double kScaleUpFactor = 2;
constexpr std::chrono::seconds kPolicyPeriodMost{1800};
constexpr int64_t kNoticed = 50;  // a fiftieth of the target

int64_t whole(double replicas) {  // Kubernetes uses 32 bits
  return int64_t(std::clamp(std::ceil(replicas), -2147483648.0, 2147483647.0));
}

// ---- pods by available data ----

struct Groups {
  int64_t ready = 0;
  std::set<std::string> unready, missing, ignored;
};

// Whether a CPU sample is ignored, because the pod is starting and uses CPU for that.
bool is_starting(view::Pod pod, const PodMetric& metric, WallTime now) {
  auto condition = pod_condition(pod, "Ready");
  auto started = parse_time(pod.status().start_time());
  if (!condition || !started) return true;
  auto changed = parse_time(condition->last_transition_time()).value_or(WallTime{});
  bool is_unready = condition->status() == "False";
  if (*started + kCpuInitializationPeriod > now)
    return is_unready || metric.at < changed + std::chrono::duration_cast<WallTime::duration>(metric.window);
  return is_unready && *started + kInitialReadinessDelay > changed;  // it was never ready
}

Groups group(const Target& target, const PodMetrics& metrics, bool is_cpu) {
  Groups out;
  for (const ObjectPtr& object : target.pods) {
    view::Pod pod(*object);
    std::string_view phase = pod.status().phase();
    auto metric = metrics.find(object->name());
    if (object->deleting() || phase == "Failed") out.ignored.insert(object->name());
    else if (phase == "Pending" || phase.empty()) out.unready.insert(object->name());
    else if (metric == metrics.end()) out.missing.insert(object->name());
    else if (is_cpu && is_starting(pod, metric->second, target.now)) out.unready.insert(object->name());
    else ++out.ready;
  }
  return out;
}

Error no_pods() { return Error(Code::not_found, "no pods returned by selector while calculating replica count"); }

struct Ratio {
  double of_target = 0;
  int64_t average = 0;
  std::optional<int64_t> utilization;
};
using RatioOf = std::function<Result<Ratio>(const PodMetrics& metrics)>;
using AllItMay = std::function<int64_t(const std::string& pod)>;

// The common part of both pod metrics. `ratio_of` is called again with assumed values for missing ones.
Result<Proposal> propose(const Target& target, PodMetrics metrics, bool is_cpu, const RatioOf& ratio_of,
                         const AllItMay& all_it_may) {
  if (target.pods.empty()) return no_pods();
  Groups groups = group(target, metrics, is_cpu);
  for (const auto* names : {&groups.ignored, &groups.unready})
    for (const std::string& name : *names) metrics.erase(name);
  if (metrics.empty()) return Error(Code::not_found, "did not receive metrics for any ready pods");
  Ratio seen = TRY(ratio_of(metrics));
  auto stay = [&] { return Proposal{target.wanted, seen.average, seen.utilization}; };
  auto change = [&](double replicas) { return Proposal{whole(replicas), seen.average, seen.utilization}; };
  bool grows = seen.of_target > 1, shrinks = seen.of_target < 1;
  bool guesses_unready = grows && !groups.unready.empty();
  if (!guesses_unready && groups.missing.empty())
    return target.tolerance.covers(seen.of_target) ? stay() : change(seen.of_target * double(groups.ready));
  if (grows || shrinks)
    for (const std::string& name : groups.missing) metrics[name].value = shrinks ? all_it_may(name) : 0;
  if (guesses_unready)
    for (const std::string& name : groups.unready) metrics[name].value = 0;
  Ratio guessed = TRY(ratio_of(metrics));
  bool turned = (shrinks && guessed.of_target > 1) || (grows && guessed.of_target < 1);
  if (turned || target.tolerance.covers(guessed.of_target)) return stay();
  Proposal proposal = change(guessed.of_target * double(metrics.size()));
  bool contradicts =
      guessed.of_target < 1 ? proposal.replicas > target.wanted : guessed.of_target > 1 && proposal.replicas < target.wanted;
  return contradicts ? stay() : proposal;
}

Result<int64_t> request_of_pod(const Object& pod, std::string_view resource, std::string_view container) {
  view::PodSpec spec = view::Pod(pod).spec();
  const json::value* of_all = container.empty() ? spec.resources().requests().if_contains(resource) : nullptr;
  if (of_all) return milli_value_of(*of_all);
  int64_t sum = 0;
  bool found = false;
  for (bool init : {false, true}) {
    for (view::Container one : init ? spec.init_containers() : spec.containers()) {
      if (init && one.restart_policy() != "Always") continue;
      if (!container.empty() && one.name() != container) continue;
      found = true;
      const json::value* request = one.resources().requests().if_contains(resource);
      if (!request)
        return Error(Code::invalid, "missing request for " + std::string(resource) + " in container " + std::string(one.name()) +
                                        " of Pod " + pod.name());
      sum += milli_value_of(*request);
    }
  }
  if (!container.empty() && !found)
    return Error(Code::invalid, "container " + std::string(container) + " not found in Pod " + pod.name());
  return sum;
}

}  // namespace

bool Tolerance::covers(double ratio) const { return 1 - down <= ratio && ratio <= 1 + up; }

int64_t milli_value_of(const json::value& quantity) {
  auto amount = Quantity::from_json(quantity);
  return amount ? amount->milli_value() : 0;
}

Result<std::map<std::string, int64_t>> pod_requests(const std::vector<ObjectPtr>& pods, std::string_view resource,
                                                    std::string_view container) {
  std::map<std::string, int64_t> out;
  for (const ObjectPtr& pod : pods) {
    int64_t request = TRY(request_of_pod(*pod, resource, container));
    out[pod->name()] = request;
  }
  return out;
}

Result<Proposal> propose_by_utilization(const Target& target, PodMetrics metrics, const std::map<std::string, int64_t>& requests,
                                        int64_t percent, bool is_cpu) {
  auto request = [&](const std::string& pod) {
    auto found = requests.find(pod);
    return found == requests.end() ? 0 : found->second;
  };
  auto ratio_of = [&](const PodMetrics& of) -> Result<Ratio> {
    int64_t used = 0, asked = 0, count = 0;
    for (const auto& [pod, metric] : of) {
      if (!requests.contains(pod)) continue;
      used += metric.value, asked += request(pod), ++count;
    }
    if (asked == 0) return Error(Code::not_found, "no metrics returned matched known pods");
    int64_t utilization = used * 100 / asked;
    return Ratio{double(utilization) / double(percent), used / count, utilization};
  };
  return propose(target, std::move(metrics), is_cpu, ratio_of,
                 [&](const std::string& pod) { return request(pod) * std::max<int64_t>(100, percent) / 100; });
}

Result<Proposal> propose_by_average(const Target& target, PodMetrics metrics, int64_t amount, bool is_cpu) {
  auto ratio_of = [&](const PodMetrics& of) -> Result<Ratio> {
    int64_t used = 0;
    for (const auto& [pod, metric] : of) used += metric.value;
    int64_t average = used / int64_t(of.size());
    return Ratio{double(average) / double(amount), average, std::nullopt};
  };
  return propose(target, std::move(metrics), is_cpu, ratio_of, [&](const std::string&) { return amount; });
}

Result<Proposal> propose_by_value(const Target& target, int64_t measured, int64_t amount) {
  double ratio = double(measured) / double(amount);
  if (target.wanted == 0) return Proposal{whole(ratio), measured, std::nullopt};  // there are no pods to relate it to
  if (target.tolerance.covers(ratio)) return Proposal{target.wanted, measured, std::nullopt};
  if (target.pods.empty()) return no_pods().wrap("unable to calculate ready pods");
  auto ready = std::count_if(target.pods.begin(), target.pods.end(), [](const ObjectPtr& pod) {
    return view::Pod(*pod).status().phase() == "Running" && is_ready(view::Pod(*pod));
  });
  return Proposal{whole(ratio * double(ready)), measured, std::nullopt};
}

Proposal propose_per_pod(const Target& target, int64_t measured, int64_t amount) {
  Proposal out{target.there, measured, std::nullopt};
  double ratio = double(measured) / (double(amount) * double(target.there));  // with no pods: infinite, or NaN
  if (!target.tolerance.covers(ratio)) out.replicas = whole(double(measured) / double(amount));
  out.amount = target.there > 0 ? int64_t(std::ceil(double(measured) / double(target.there))) : measured;
  return out;
}

// ---- limits ----

namespace {

ScalingRules rules_of(view::HPAScalingRules rules, std::chrono::seconds window) {
  ScalingRules out;
  std::string_view select = rules.select_policy();
  out.select = select == "Disabled" ? ScalingRules::Select::disabled
               : select == "Min"    ? ScalingRules::Select::min
                                    : ScalingRules::Select::max;
  for (view::HPAScalingPolicy policy : rules.policies())
    out.policies.push_back({policy.type() == "Percent", policy.value(), std::chrono::seconds(policy.period_seconds())});
  out.window = std::chrono::seconds(rules.stabilization_window_seconds_or(window.count()));
  return out;
}

int64_t changed_within(const std::vector<AutoscalerPast::Entry>& changes, std::chrono::seconds period, SteadyTime now) {
  int64_t sum = 0;
  for (const auto& change : changes)
    if (change.at > now - period) sum += change.replicas;
  return sum;
}

// The limit of changes from `current`, up or down, by the policies of that direction.
int64_t rate_limit(const AutoscalerPast& past, const ScalingRules& rules, bool up, int64_t current, SteadyTime now) {
  if (rules.select == ScalingRules::Select::disabled || rules.policies.empty()) return current;
  bool farthest = rules.select == ScalingRules::Select::max;
  std::optional<int64_t> limit;
  for (const ScalingPolicy& policy : rules.policies) {
    int64_t began = current - changed_within(past.ups, policy.period, now) + changed_within(past.downs, policy.period, now);
    int64_t allowed;
    if (!policy.percent) allowed = up ? began + policy.value : began - policy.value;
    else if (up) allowed = whole(double(began) * (1 + double(policy.value) / 100));  // rounded up, so that small numbers can grow
    else allowed = int64_t(double(began) * (1 - double(policy.value) / 100));
    limit = !limit ? allowed : farthest == up ? std::max(*limit, allowed) : std::min(*limit, allowed);
  }
  return up ? std::max(*limit, current) : std::min(*limit, current);
}

struct Limited {
  int64_t replicas;
  std::string_view reason, message;
};
constexpr std::string_view kTooFast = "the desired replica count is increasing faster than the maximum scale rate",
                           kTooFastDown = "the desired replica count is decreasing faster than the maximum scale rate",
                           kTooMany = "the desired replica count is more than the maximum replica count",
                           kTooFew = "the desired replica count is less than the minimum replica count",
                           kWithin = "the desired count is within the acceptable range";

Limited limit_by_behavior(const AutoscalerPast& past, const Behavior& behavior, const Limits& limits, int64_t wanted,
                          SteadyTime now) {
  if (wanted > limits.current) {
    int64_t rate = rate_limit(past, behavior.up, true, limits.current, now);
    if (wanted > std::min(rate, limits.max))
      return limits.max > rate ? Limited{rate, "ScaleUpLimit", kTooFast} : Limited{limits.max, "TooManyReplicas", kTooMany};
  } else if (wanted < limits.current) {
    int64_t rate = rate_limit(past, behavior.down, false, limits.current, now);
    if (wanted < std::max(rate, limits.min))
      return limits.min < rate ? Limited{rate, "ScaleDownLimit", kTooFastDown} : Limited{limits.min, "TooFewReplicas", kTooFew};
  }
  return {wanted, "DesiredWithinRange", kWithin};
}

Limited limit_by_default(const Limits& limits, int64_t wanted) {
  int64_t rate = std::max(int64_t(kScaleUpFactor * double(limits.current)), kScaleUpAtLeast);
  if (wanted < limits.min) return {limits.min, "TooFewReplicas", kTooFew};
  if (wanted > std::min(rate, limits.max))
    return limits.max > rate ? Limited{rate, "ScaleUpLimit", kTooFast} : Limited{limits.max, "TooManyReplicas", kTooMany};
  return {wanted, "DesiredWithinRange", kWithin};
}

void forget_before(std::vector<AutoscalerPast::Entry>& entries, SteadyTime before) {
  std::erase_if(entries, [&](const auto& entry) { return entry.at < before; });
}

}  // namespace

std::optional<Behavior> behavior_of(const json::value& autoscaler) {
  view::HorizontalPodAutoscalerBehavior behavior = view::HorizontalPodAutoscaler(autoscaler).spec().behavior();
  if (!behavior) return std::nullopt;
  return Behavior{rules_of(behavior.scale_up(), std::chrono::seconds(0)), rules_of(behavior.scale_down(), kDownscaleWindow)};
}

Tolerance tolerance_of(const json::value& autoscaler) {
  Tolerance out;
  view::HorizontalPodAutoscalerBehavior behavior = view::HorizontalPodAutoscaler(autoscaler).spec().behavior();
  for (auto [rules, to] : {std::pair(behavior.scale_up(), &out.up), std::pair(behavior.scale_down(), &out.down)})
    if (const json::value* given = rules.tolerance()) *to = double(milli_value_of(*given)) / 1000;
  return out;
}

Decision decide_replicas(AutoscalerPast& past, const std::optional<Behavior>& behavior, const Limits& limits, int64_t proposed,
                         SteadyTime now) {
  int64_t lowest = proposed, highest = proposed, stabilised;
  std::chrono::seconds up = behavior ? behavior->up.window : std::chrono::seconds(0),
                       down = behavior ? behavior->down.window : kDownscaleWindow;
  for (const auto& advice : past.advice) {
    if (advice.at > now - up) lowest = std::min(lowest, advice.replicas);
    if (behavior ? advice.at > now - down : advice.at >= now - down) highest = std::max(highest, advice.replicas);
  }
  if (behavior) stabilised = std::min(std::max(limits.current, lowest), highest);
  else stabilised = highest;
  past.advice.push_back({now, proposed});
  forget_before(past.advice, now - std::max({up, down, kAutoscalerPeriod}));

  Decision out;
  out.able = {"AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size"};
  if (stabilised != proposed) {
    bool upwards = behavior && proposed >= limits.current;
    out.able.reason = upwards ? "ScaleUpStabilized" : "ScaleDownStabilized";
    out.able.message = upwards
                           ? "recent recommendations were lower than current one, applying the lowest recent recommendation"
                           : "recent recommendations were higher than current one, applying the highest recent recommendation";
  }
  Limited limited = behavior ? limit_by_behavior(past, *behavior, limits, stabilised, now) : limit_by_default(limits, stabilised);
  out.replicas = limited.replicas;
  out.limited = {"ScalingLimited", limited.replicas == stabilised ? "False" : "True", std::string(limited.reason),
                 std::string(limited.message)};
  return out;
}

void remember_change(AutoscalerPast& past, int64_t from, int64_t to, SteadyTime now) {
  for (auto* changes : {&past.ups, &past.downs}) forget_before(*changes, now - kPolicyPeriodMost);
  if (to > from) past.ups.push_back({now, to - from});
  else past.downs.push_back({now, from - to});
}

// ---- status ----

namespace {

// What two metrics have in common to be compared: of a MetricSpec or a MetricStatus, whose type names the member that is set.
struct SourceParts {
  const json::value* source = nullptr;  // null: nothing was measured
  view::MetricValueStatus current;
  view::MetricTarget target;
};

template <typename Metric, typename Parts>
SourceParts with_source(Metric metric, Parts parts) {
  std::string_view type = metric.type();
  if (type == "Object") return parts(metric.object());
  if (type == "Pods") return parts(metric.pods());
  if (type == "Resource") return parts(metric.resource());
  if (type == "ContainerResource") return parts(metric.container_resource());
  if (type == "External") return parts(metric.external());
  return {};
}

SourceParts source_of(view::MetricStatus metric) {
  return with_source(metric, [](auto source) { return SourceParts{source.pointer(), source.current(), {}}; });
}

SourceParts source_of(view::MetricSpec metric) {
  return with_source(metric, [](auto source) { return SourceParts{source.pointer(), {}, source.target()}; });
}

bool near(view::MetricValueStatus before, view::MetricValueStatus now, view::MetricTarget target) {
  if (target.has_average_utilization()) {
    int64_t apart = std::abs(before.average_utilization() - now.average_utilization());
    return before.has_average_utilization() && apart * kNoticed <= target.average_utilization();
  }
  auto is_near = [](const json::value* was, const json::value* is, const json::value* aim) {
    if ((was != nullptr) != (is != nullptr)) return false;
    if (!is) return true;
    int64_t apart = std::abs(milli_value_of(*was) - milli_value_of(*is));
    return aim ? double(apart) * double(kNoticed) <= double(milli_value_of(*aim)) : apart == 0;
  };
  return is_near(before.average_value(), now.average_value(), target.average_value()) &&
         is_near(before.value(), now.value(), target.value());
}

}  // namespace

bool same_measurement(const json::array& before, const json::array& now, const json::array& metrics) {
  if (before.size() != now.size() || now.size() != metrics.size()) return same_json(before, now);
  for (size_t i = 0; i < now.size(); ++i) {
    view::MetricStatus earlier(before[i]), later(now[i]);
    SourceParts was = source_of(earlier), is = source_of(later), aim = source_of(view::MetricSpec(metrics[i]));
    if (earlier.type() != later.type() || !was.source != !is.source) return false;
    if (!is.source) continue;  // not measured, as before
    if (!was.current || !is.current || !aim.target) return false;
    json::value same_name = *was.source;
    same_name.get_object()["current"] = is.current.raw();
    if (!same_json(same_name, *is.source) || !near(was.current, is.current, aim.target)) return false;
  }
  return true;
}

}  // namespace coracle::controller
