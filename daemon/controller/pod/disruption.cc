// SPDX-License-Identifier: Apache-2.0
// PodDisruptionBudgets: computes how many pods of a budget are healthy, how many should be, and so how many may be evicted now.
// An eviction charges the budget and adds the pod to disruptedPods. That pod counts as disrupted until it is deleted, or for two
// minutes; after that, its condition DisruptionTarget is removed too.
//   keys: {namespace, name} a budget · {"pod/<namespace>", name} a pod. Source: Kubernetes pkg/controller/disruption.
#include "daemon/quota/disruption.h"

#include <array>
#include <set>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/controller/shared/elapsed.h"
#include "store/object/selector.h"
#include "store/object/selector_index.h"
#include "store/schema/catalog.h"

namespace coracle::controller {
namespace {

using quota::kGoesWithin;
constexpr std::string_view kTarget = "DisruptionTarget", kPodKey = "pod/";

// The DisruptionTarget condition of a pod that is not being deleted. Termination by the node itself may take its time.
std::optional<view::PodCondition> unfulfilled(const Object& pod) {
  auto told = pod_condition(view::Pod(pod), kTarget);
  bool holds = told && told->status() == "True" && told->reason() != "TerminationByKubelet";
  return holds && pod_active(pod) ? told : std::nullopt;
}

class DisruptionController : public Controller {
 public:
  explicit DisruptionController(const Context& context)
      : client_(context.client),
        catalogs_(context.catalogs),
        clock_(context.clock),
        budgets_(context.informers.of(kPodDisruptionBudget)),
        pods_(context.informers.of(kPod)),
        scaled_{&context.informers.of(kDeployment), &context.informers.of(kReplicaSet),
                &context.informers.of(kReplicationController), &context.informers.of(kStatefulSet)},
        recorder_(context.events, "controllermanager"),
        elapsed_(context.clock) {}

  std::string_view name() const override { return "disruption"; }

  void subscribe(const Enqueue& enqueue) override {
    follow(budgets_, selectors_);
    budgets_.on_change([=, this](const Informer::Change& change) { enqueue.now(change.any().key()); });
    for (Informer* owners : scaled_)
      owners->on_change([=, this](const Informer::Change& change) {
        if (!change.before || !change.after || wanted(*change.before) == wanted(*change.after)) return;
        const json::object& labels = view::Deployment(*change.after).spec().template_().metadata().labels();
        for (const ObjectPtr& budget : budgets_.list(change.after->ns()))
          if (auto selector = selectors_.of(*budget); selector && selector->matches(labels)) enqueue.now(budget->key());
      });
    pods_.on_change([=, this](const Informer::Change& change) {
      for (const ObjectPtr& pod : {change.before, change.after})
        if (pod)
          for (Key& budget : selectors_.matching(*pod)) enqueue.now(std::move(budget));
      bool was = change.before && unfulfilled(*change.before), is = change.after && unfulfilled(*change.after);
      if (was && !is) elapsed_.forget(change.before->uid());
      if (is) enqueue.now({std::string(kPodKey) + change.after->ns(), change.after->name()});
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    if (key.ns.starts_with(kPodKey)) return take_back(pods_.get({key.ns.substr(kPodKey.size()), key.name}));
    ObjectPtr budget = budgets_.get(key);
    if (!budget) selectors_.forget(key);
    if (!budget || budget->deleting()) return Outcome{};
    std::vector<ObjectPtr> pods;
    auto selector = selectors_.of(*budget);
    for (ObjectPtr& pod : pods_.list(key.ns))
      if (selector && selector->matches(*pod)) pods.push_back(std::move(pod));
    if (pods.empty()) recorder_.normal(*budget, "NoPods", "No matching pods found");
    auto expected = expectation(*budget, pods);
    // transient: it may be known in the next sync.
    if (!expected && expected.error().code() != Code::invalid) return expected.take_error();
    if (!expected) {
      recorder_.warning(*budget, "CalculateExpectedPodCountFailed",
                        "Failed to calculate the number of expected pods: " + expected.error().text());
      TRY(write(*budget, [&](json::value& body) {
        view::PodDisruptionBudget before(*budget);
        make(body, "status.disruptionsAllowed") = 0;
        make(body, "status.observedGeneration") = before.metadata().generation();
        make(body, "status.currentHealthy") = before.status().current_healthy();
        make(body, "status.desiredHealthy") = before.status().desired_healthy();
        make(body, "status.expectedPods") = before.status().expected_pods();
        quota::set_sync_failed(body, expected.error().text(), clock_.now());
      }));
      return Outcome{};
    }
    Disrupted disrupted = disrupted_of(*budget, pods);
    TRY(write(*budget, [&](json::value& body) { tell(body, *expected, healthy(pods, disrupted.pods), disrupted.pods); }));
    if (!disrupted.look_again) return Outcome{};
    return Outcome{*disrupted.look_again - clock_.now() + std::chrono::seconds(1)};
  }

 private:
  // It has this place in all kinds with a scale.
  static int64_t wanted(const Object& owner) { return view::Deployment(owner).spec().replicas_or(1); }

  // Removes an outdated DisruptionTarget condition. Errors: the API's.
  Result<Outcome> take_back(const ObjectPtr& pod) {
    auto told = pod ? unfulfilled(*pod) : std::nullopt;
    auto since = parse_time(told ? told->last_transition_time() : std::string_view());
    if (!since) return Outcome{};
    std::chrono::nanoseconds left = kGoesWithin - elapsed_.since(pod->uid(), std::string(kTarget), *since);
    if (left.count() > 0) return Outcome{left};
    json::value status = view::Pod(*pod).status().raw();
    for (json::value& condition : make(status, "conditions").get_array())
      if (view::PodCondition(condition).type() == kTarget)
        condition = {{"type", kTarget}, {"status", "False"}, {"lastTransitionTime", format_time(clock_.now())}};
    auto written = write_status(client_, *pod, std::move(status));
    if (!written && written.error().code() != Code::not_found) return written.take_error();
    return Outcome{};
  }

  struct Expectation {
    int64_t pods = 0, healthy = 0;
  };
  struct Disrupted {
    json::object pods;  // name → time of the eviction
    std::optional<WallTime> look_again;
  };

  // ---- expected pods ----

  Result<Expectation> expectation(const Object& budget, const std::vector<ObjectPtr>& pods) {
    view::PodDisruptionBudgetSpec spec = view::PodDisruptionBudget(budget).spec();
    const json::value *most = spec.max_unavailable(), *least = spec.min_available();
    if (most) {
      int64_t scale = TRY(expected_scale(budget, pods));
      return Expectation{scale, std::max<int64_t>(0, scale - scaled(most, scale, true))};
    }
    if (!least) return Expectation{};
    if (least->is_int64()) return Expectation{int64_t(pods.size()), least->get_int64()};
    int64_t scale = TRY(expected_scale(budget, pods));
    return Expectation{scale, scaled(least, scale, true)};
  }

  // The sum of the replicas that the pods' controllers desire; pods without a controller do not count.
  Result<int64_t> expected_scale(const Object& budget, const std::vector<ObjectPtr>& pods) {
    std::set<std::string> known;
    int64_t sum = 0;
    bool unmanaged = false;
    for (const ObjectPtr& pod : pods) {
      auto controller = pod->controller();
      if (!controller) {
        unmanaged = true;
        continue;
      }
      ObjectPtr scales = TRY(scaling_owner(*pod, *controller));
      if (known.insert(scales->uid()).second) sum += wanted(*scales);
    }
    if (unmanaged)
      recorder_.warning(budget, "UnmanagedPods",
                        "Pods selected by this PodDisruptionBudget (selector: " +
                            to_text(view::PodDisruptionBudget(budget).spec().selector().raw()) +
                            ") were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, "
                            "which may result in "
                            "undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to "
                            "an integer value.");
    return sum;
  }

  // The object with the scale of the pod's controller: the controller itself or its own controller (a Deployment). Errors:
  // invalid if there is none.
  Result<ObjectPtr> scaling_owner(const Object& pod, OwnerReference reference) {
    ObjectPtr last;
    const schema::CatalogPtr catalog = catalogs_.now();
    for (int depth = 0; depth < 4; depth++) {
      const schema::KindInfo* info = catalog->by_kind(reference.api_version, reference.kind);
      bool scales = info && info->subresource("scale");
      if (!scales && last) return last;
      if (!scales) {
        std::string_view group = schema::split_api_version(reference.api_version).group;
        std::string resource = info ? std::string(info->kind.resource) : to_plural(reference.kind);
        return Error(Code::invalid,
                     resource + (group.empty() ? "" : "." + std::string(group)) + " does not implement the scale subresource");
      }
      auto found = client_.get(info->kind, {pod.ns(), reference.name});
      if (!found && found.error().code() != Code::not_found) return found.take_error();
      bool ours = found && (*found)->uid() == reference.uid;
      if (!ours && last) return last;
      if (!ours) return Error(Code::invalid, "found no controllers for pod \"" + pod.name() + "\"");
      last = *found;
      auto above = last->controller();
      if (!above) return last;
      reference = *above;
    }
    return last;
  }
  static std::string to_plural(const std::string& kind) {
    std::string out;
    for (char c : kind) out += char(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return out + "s";
  }

  // ---- present pods ----

  Disrupted disrupted_of(const Object& budget, const std::vector<ObjectPtr>& pods) {
    Disrupted out;
    const json::object& marked = view::PodDisruptionBudget(budget).status().disrupted_pods();
    for (const ObjectPtr& pod : pods) {
      const json::value* since = marked.if_contains(pod->name());
      auto time = since && since->is_string() && !pod->deleting() ? parse_time(since->get_string())
                                                                  : Result<WallTime>(Error(Code::invalid, ""));
      if (!time) continue;
      WallTime until = *time + kGoesWithin;
      if (until < clock_.now()) {
        recorder_.warning(*pod, "NotDeleted", "Pod was expected by PDB " + budget.key().text() + " to be deleted but it wasn't");
        continue;
      }
      if (!out.look_again || until < *out.look_again) out.look_again = until;
      out.pods[pod->name()] = *since;
    }
    return out;
  }

  static int64_t healthy(const std::vector<ObjectPtr>& pods, const json::object& disrupted) {
    int64_t count = 0;
    for (const ObjectPtr& pod : pods) count += pod_active(*pod) && !disrupted.contains(pod->name()) && is_ready(view::Pod(*pod));
    return count;
  }

  void tell(json::value& body, const Expectation& expected, int64_t healthy, const json::object& disrupted) {
    int64_t allowed = expected.pods <= 0 ? 0 : std::max<int64_t>(0, healthy - expected.healthy);
    make(body, "status.currentHealthy") = healthy;
    make(body, "status.desiredHealthy") = expected.healthy;
    make(body, "status.expectedPods") = expected.pods;
    make(body, "status.disruptionsAllowed") = allowed;
    if (disrupted.empty()) make(body, "status").get_object().erase("disruptedPods");
    else make(body, "status.disruptedPods") = disrupted;
    make(body, "status.observedGeneration") = view::PodDisruptionBudget(body).metadata().generation();
    quota::set_allowed_condition(body, clock_.now());
  }

  template <typename Change>
  Result<void> write(const Object& budget, Change change) {
    json::value body = budget.json();
    change(body);
    auto written = write_status(client_, budget, make(body, "status"));
    if (!written && written.error().code() == Code::not_found) return {};
    return written;
  }

  Client& client_;
  const schema::CatalogSource& catalogs_;
  const Clock& clock_;
  SelectorIndex selectors_{selector_in_spec};
  Informer& budgets_;
  Informer& pods_;
  std::array<Informer*, 4> scaled_;  // their spec.replicas is the number of pods that there should be
  EventRecorder recorder_;
  Elapsed elapsed_;
};

}  // namespace

std::unique_ptr<Controller> make_disruption_controller(const Context& context) {
  return std::make_unique<DisruptionController>(context);
}

}  // namespace coracle::controller
