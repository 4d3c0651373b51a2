// SPDX-License-Identifier: Apache-2.0
// HorizontalPodAutoscaler: syncs all autoscalers together every 15 s, while there are any. They share one key, and the times are
// multiples of 15 s, so that the usage of their targets' pods is measured once for all of them.
//   tick ─▶ scale of the target ─▶ metrics (requested once) ─▶ proposals ─▶ decision ─▶ scale, status, events
// The history of each autoscaler (recent proposals and changes) is lost with the daemon, as in Kubernetes: then the present
// number counts as a proposal. A failure is reported as an event when it begins, and again after kSaidAgain. Source: Kubernetes
// "Horizontal Pod Autoscaling"; its controller's conditions, reasons and messages.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "daemon/controller/autoscaler/horizontal_autoscaler_metrics.h"
#include "daemon/controller/controller.h"
#include "runtime/base/log.h"
#include "store/object/selector.h"
#include "store/schema/catalog.h"

namespace coracle::controller {
namespace {

constexpr std::chrono::minutes kSaidAgain{30};
constexpr size_t kOthersNamedMax = 10;  // other autoscalers of the same pods named in a message
constexpr size_t kMetricsMax = 100;     // per autoscaler, because each metric reads all its pods. Kubernetes has no limit

const Key kTick{"", "tick"};

struct Memory {  // the state of one autoscaler
  AutoscalerPast past;
  std::optional<LabelSelector> selector;   // of its target's pods
  std::string selector_text;               // as in the target's scale
  std::map<std::string, SteadyTime> said;  // reported warnings, and when
};

// Data of one tick that all autoscalers share.
struct Tick {
  AutoscalerMetrics metrics;
  // By namespace and pod: the autoscalers that select it, by the selector of their target in the last tick or in this one.
  // Ordered by name, and limited to little more than a message may name.
  std::map<std::string, std::unordered_map<std::string, std::vector<ObjectPtr>>> selecting = {};
};

class HorizontalAutoscaler : public Controller {
 public:
  explicit HorizontalAutoscaler(const Context& context)
      : client_(context.client),
        catalogs_(context.catalogs),
        clock_(context.clock),
        autoscalers_(context.informers.of(kHorizontalPodAutoscaler)),
        pods_(context.informers.of(kPod)),
        recorder_(context.events, "horizontal-pod-autoscaler") {}

  std::string_view name() const override { return "horizontal-autoscaler"; }

  void subscribe(const Enqueue& enqueue) override {
    autoscalers_.on_change([=, this](const Informer::Change& change) {
      if (!change.before) enqueue.after(kTick, until_next());
    });
  }

  Result<Outcome> reconcile(const Key&) override {
    std::vector<ObjectPtr> all = autoscalers_.list();
    std::set<std::string_view> uids;
    for (const ObjectPtr& autoscaler : all) uids.insert(autoscaler->uid());
    std::erase_if(memories_, [&](const auto& entry) { return !uids.contains(entry.first); });
    // For a new autoscaler the pods are not known yet. Then all pods are measured once: a measurement takes a second, for one pod
    // as for many.
    const bool all_known =
        std::all_of(all.begin(), all.end(), [&](const ObjectPtr& autoscaler) { return memories_.contains(autoscaler->uid()); });
    Tick tick{AutoscalerMetrics(client_, catalogs_, pods_, [&](AutoscalerMetrics&) -> std::optional<std::vector<Key>> {
      if (!all_known) return std::nullopt;
      return pods_of_targets(all, tick);
    })};
    for (const ObjectPtr& autoscaler : all) {
      if (autoscaler->deleting()) continue;
      auto looked = look(autoscaler, tick);
      if (!looked) log_info("controller", "horizontal-autoscaler " + autoscaler->key().text() + ": " + looked.error().text());
    }
    if (all.empty()) return Outcome{};
    return Outcome{until_next()};
  }

 private:
  auto& selecting(const std::string& ns, Tick& tick) const {
    auto [found, fresh] = tick.selecting.try_emplace(ns);
    if (!fresh) return found->second;
    for (const ObjectPtr& autoscaler : autoscalers_.list(ns)) {
      auto memory = memories_.find(autoscaler->uid());
      if (memory == memories_.end() || !memory->second.selector) continue;
      for (const ObjectPtr& pod : tick.metrics.pods(ns)) {
        if (!memory->second.selector->matches(*pod)) continue;
        if (auto& all = found->second[pod->name()]; all.size() <= kOthersNamedMax) all.push_back(autoscaler);
      }
    }
    return found->second;
  }

  std::vector<Key> pods_of_targets(const std::vector<ObjectPtr>& autoscalers, Tick& tick) const {
    std::set<std::string> namespaces;
    for (const ObjectPtr& autoscaler : autoscalers) namespaces.insert(autoscaler->ns());
    std::vector<Key> pods;
    for (const std::string& ns : namespaces) {
      const auto& by_pod = selecting(ns, tick);
      for (const ObjectPtr& pod : tick.metrics.pods(ns)) {
        auto all = by_pod.find(pod->name());
        bool wanted =
            all != by_pod.end() && std::ranges::any_of(all->second, [](const ObjectPtr& one) { return !one->deleting(); });
        if (wanted) pods.push_back(pod->key());
      }
    }
    return pods;
  }

  std::chrono::nanoseconds until_next() const {
    auto since = clock_.steady().time_since_epoch();
    return std::chrono::nanoseconds(kAutoscalerPeriod) - since % std::chrono::nanoseconds(kAutoscalerPeriod);
  }

  // The state of one autoscaler's sync, which becomes its status.
  struct Look {
    const ObjectPtr& object;
    const Object& autoscaler;
    Memory& memory;
    json::array conditions;
    int64_t current = 0, desired = 0;
    json::array measured;
    std::optional<WallTime> scaled_at;
  };

  void set(Look& look, const Condition& condition) const { set_condition(look.conditions, condition, clock_.now()); }

  void warn(const Look& look, std::string_view reason, const std::string& text) {
    if (look.memory.said.emplace(std::string(reason) + ": " + text, clock_.steady()).second)
      recorder_.warning(look.autoscaler, reason, text);
  }

  Result<void> look(const ObjectPtr& object, Tick& tick) {
    const Object& autoscaler = *object;
    bool is_new = !memories_.contains(autoscaler.uid());
    Memory& memory = memories_[autoscaler.uid()];
    std::erase_if(memory.said, [now = clock_.steady()](const auto& said) { return now - said.second >= kSaidAgain; });
    view::HorizontalPodAutoscalerSpec spec = view::HorizontalPodAutoscaler(autoscaler).spec();
    view::HorizontalPodAutoscalerStatus status = view::HorizontalPodAutoscaler(autoscaler).status();
    Look look{object,
              autoscaler,
              memory,
              status.conditions().raw(),
              status.current_replicas(),
              status.desired_replicas(),
              status.current_metrics().raw(),
              std::nullopt};
    const Kind* kind = nullptr;
    auto scale = read_scale(autoscaler, kind);
    if (!scale) {
      warn(look, "FailedGetScale", scale.error().text());
      set(look, {"AbleToScale", "False", "FailedGetScale",
                 "the HPA controller was unable to get the target's current scale: " + scale.error().text()});
      return write(look);
    }
    set(look, {"AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale"});
    look.current = view::Scale(*scale).spec().replicas();
    if (is_new) memory.past.advice.push_back({clock_.steady(), look.current});

    Limits limits{look.current, spec.min_replicas_or(1), spec.max_replicas()};
    look.measured.clear();
    std::string reason;
    int64_t desired = look.current;
    if (look.current == 0 && limits.min != 0) {
      set(look,
          {"ScalingActive", "False", "ScalingDisabled", "scaling is disabled since the replica count of the target is zero"});
    } else if (look.current > limits.max) {
      reason = "Current number of replicas above Spec.MaxReplicas";
      desired = limits.max;
    } else if (look.current < limits.min) {
      reason = "Current number of replicas below Spec.MinReplicas";
      desired = limits.min;
    } else {
      auto wanted = ask(look, *scale, tick, reason);
      if (!wanted) return write(look);  // unchanged; the conditions have the reason
      Decision decision = decide_replicas(memory.past, behavior_of(autoscaler.json()), limits, *wanted, clock_.steady());
      set(look, decision.able);
      set(look, decision.limited);
      desired = decision.replicas;
    }
    if (desired != look.current) TRY(rescale(look, *kind, std::move(*scale), desired, reason));
    else look.desired = desired;
    return write(look);
  }

  Result<json::value> read_scale(const Object& autoscaler, const Kind*& kind) {
    view::CrossVersionObjectReference target = view::HorizontalPodAutoscaler(autoscaler).spec().scale_target_ref();
    std::string_view version = target.api_version();
    if (std::count(version.begin(), version.end(), '/') > 1)
      return Error(Code::invalid, "unexpected GroupVersion string: " + std::string(version));
    std::string_view group = schema::split_api_version(version).group;
    const schema::CatalogPtr catalog = catalogs_.now();
    for (const schema::KindInfo& info : catalog->kinds())
      if (!kind && info.kind.group == group && info.kind.kind == target.kind()) kind = &info.stored().kind;
    if (!kind)
      return Error(Code::not_found,
                   "no matches for kind \"" + std::string(target.kind()) + "\" in group \"" + std::string(group) + "\"");
    return client_.read(*kind, {autoscaler.ns(), std::string(target.name())}, "scale");
  }

  // The replicas that the metrics call for, and the reason if that differs from now. nullopt: unknown; the conditions have the
  // error. A failed metric prevents scaling down by the others, but not scaling up.
  std::optional<int64_t> ask(Look& look, const json::value& scale, Tick& tick, std::string& reason) {
    view::ScaleStatus there = view::Scale(scale).status();
    std::string selector_text(there.selector());
    Target target{look.current, there.replicas(), {}, tolerance_of(look.autoscaler.json()), clock_.now()};
    if (!find_pods(look, tick, selector_text, target.pods)) return std::nullopt;
    MetricQuestion question{tick.metrics, target, look.autoscaler.ns(), selector_text};
    view::Range<view::MetricSpec> wanted = view::HorizontalPodAutoscaler(look.autoscaler).spec().metrics();
    std::optional<int64_t> most;
    std::string by;
    size_t failed = 0;
    std::string first_failure;
    Condition inactive;
    for (view::MetricSpec metric : wanted) {
      MetricFailure failure;
      auto answered = look.measured.size() < kMetricsMax ? answer_metric(question, metric, failure) : refuse_metric(failure);
      if (answered) {
        look.measured.push_back(std::move(answered->status));
        if (!most || answered->proposal.replicas > *most) most = answered->proposal.replicas, by = answered->name;
        continue;
      }
      std::string text = answered.error().text();
      look.measured.push_back(json::object{{"type", ""}});  // a placeholder, as in Kubernetes
      warn(look, failure.reason, text);
      if (failed++ == 0) {
        first_failure = failure.beginning + text;
        inactive = {"ScalingActive", "False", std::string(failure.reason),
                    "the HPA was unable to compute the replica count: " + text};
      }
    }
    if (failed == wanted.size() || (failed > 0 && *most < look.current)) {
      set(look, inactive);
      warn(look, "FailedComputeMetricsReplicas",
           "invalid metrics (" + std::to_string(failed) + " invalid out of " + std::to_string(wanted.size()) +
               "), first error is: " + first_failure);
      return std::nullopt;
    }
    set(look,
        {"ScalingActive", "True", "ValidMetricFound", "the HPA was able to successfully calculate a replica count from " + by});
    if (*most > look.current) reason = by + " above target";
    if (*most < look.current) reason = "All metrics below target";
    return most;
  }

  static Result<MetricAnswer> refuse_metric(MetricFailure& failure) {
    failure = {"InvalidMetricSourceType", ""};
    return Error(Code::invalid, "metrics beyond " + std::to_string(kMetricsMax) + " are not looked at");
  }

  // False: the selector is unusable; the condition has the reason.
  bool find_pods(Look& look, Tick& tick, const std::string& text, std::vector<ObjectPtr>& pods) {
    auto refuse = [&](std::string_view event, std::string_view reason, const std::string& said, const std::string& message) {
      warn(look, event, said);
      set(look, {"ScalingActive", "False", std::string(reason), message});
      return false;
    };
    if (text.empty())
      return refuse("SelectorRequired", "InvalidSelector", "selector is required",
                    "the HPA target's scale is missing a selector");
    Memory& memory = look.memory;
    auto& by_pod = selecting(look.autoscaler.ns(), tick);
    const bool is_changed = !memory.selector || memory.selector_text != text;
    if (is_changed) {
      auto selector = LabelSelector::parse(text);
      if (!selector) {
        std::string why = "couldn't convert selector into a corresponding internal selector object: " + selector.error().text();
        return refuse("InvalidSelector", "InvalidSelector", why, why);
      }
      memory.selector = *std::move(selector), memory.selector_text = text;
    }
    std::set<std::string> names{look.autoscaler.name()};  // names of the autoscalers that select any of the pods
    for (const ObjectPtr& pod : tick.metrics.pods(look.autoscaler.ns())) {
      if (!memory.selector->matches(*pod)) continue;
      pods.push_back(pod);
      std::vector<ObjectPtr>& all = by_pod[pod->name()];
      for (const ObjectPtr& one : all) {
        if (names.size() > kOthersNamedMax) break;
        if (memories_.at(one->uid()).selector->matches(*pod)) names.insert(one->name());  // its selector may have changed since
      }
      if (is_changed && all.size() <= kOthersNamedMax) all.push_back(look.object);
    }
    if (names.size() < 2) return true;
    std::string others;
    size_t named = 0;
    for (const std::string& name : names) {
      if (named++ == kOthersNamedMax) break;
      others += (others.empty() ? "{" : " {") + name + " " + look.autoscaler.ns() + "}";
    }
    std::string why = "pods by selector " + text + " are controlled by multiple HPAs: [" + others + "]";
    return refuse("AmbiguousSelector", "AmbiguousSelector", why, why);
  }

  Result<void> rescale(Look& look, const Kind& kind, json::value scale, int64_t desired, const std::string& reason) {
    std::string size = "New size: " + std::to_string(desired) + "; reason: " + reason;
    make(scale, "spec.replicas") = desired;
    auto updated = client_.update(kind, scale, {.subresource = "scale", .field_manager = "kube-controller-manager"});
    if (!updated) {
      warn(look, "FailedRescale", size + "; error: " + updated.error().text());
      set(look, {"AbleToScale", "False", "FailedUpdateScale",
                 "the HPA controller was unable to update the target scale: " + updated.error().text()});
      return {};
    }
    set(look, {"AbleToScale", "True", "SucceededRescale",
               "the HPA controller was able to update the target scale to " + std::to_string(desired)});
    recorder_.normal(look.autoscaler, "SuccessfulRescale", size);
    remember_change(look.memory.past, look.current, desired, clock_.steady());
    look.desired = desired;
    look.scaled_at = clock_.now();
    return {};
  }

  Result<void> write(Look& look) {
    view::HorizontalPodAutoscaler autoscaler(look.autoscaler);
    const json::value* old = autoscaler.status().pointer();
    json::object status = autoscaler.status().members();
    if (look.current != 0) status["currentReplicas"] = look.current;
    else status.erase("currentReplicas");  // the API does not store a 0 there
    status["desiredReplicas"] = look.desired;
    status["conditions"] = look.conditions;
    if (look.scaled_at) status["lastScaleTime"] = format_time(*look.scaled_at);
    if (int64_t generation = autoscaler.metadata().generation()) status["observedGeneration"] = generation;
    const json::array& before = autoscaler.status().current_metrics().raw();
    json::value unchanged = status;
    if (old && same_measurement(before, look.measured, autoscaler.spec().metrics().raw()) && unchanged == *old) return {};
    if (look.measured.empty()) status["currentMetrics"] = nullptr;
    else status["currentMetrics"] = std::move(look.measured);
    auto written = write_status(client_, look.autoscaler, std::move(status));
    if (written || written.error().code() == Code::not_found || written.error().code() == Code::conflict)
      return {};  // deleted, or synced again
    warn(look, "FailedUpdateStatus", written.error().text());
    return written.take_error().wrap("write status");
  }

  Client& client_;
  const schema::CatalogSource& catalogs_;
  const Clock& clock_;
  Informer& autoscalers_;
  Informer& pods_;
  EventRecorder recorder_;
  std::map<std::string, Memory> memories_;  // by uid; used by the tick only, which runs once at a time
};

}  // namespace

std::unique_ptr<Controller> make_horizontal_autoscaler(const Context& context) {
  return std::make_unique<HorizontalAutoscaler>(context);
}

}  // namespace coracle::controller
