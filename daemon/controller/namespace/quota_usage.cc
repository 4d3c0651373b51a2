// SPDX-License-Identifier: Apache-2.0
// ResourceQuota: recomputes a namespace's usage of each quota when objects are deleted, end, or change their usage. Admission
// charges new usage in the transaction of the write. This controller reads the store and writes the quota only if it was not
// charged in the meantime, so the usage is never too low. Source: Kubernetes pkg/controller/resourcequota.
#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/quota/usage.h"
#include "store/schema/catalog.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kClaimResource = "persistentvolumeclaims";
constexpr std::chrono::minutes kCountAgain{5};  // after a charge; Kubernetes counts all quotas that often

class ResourceQuotaController : public Controller {
 public:
  explicit ResourceQuotaController(const Context& context)
      : client_(context.client), clock_(context.clock), quotas_(context.informers.of(kResourceQuota)) {
    const schema::CatalogPtr catalog = context.catalogs.now();
    for (const schema::KindInfo& info : catalog->kinds())
      if (info.is_stored() && quota::counted(info) && info.has_verb("list") && info.has_verb("watch"))
        counted_.push_back({&info.kind, &context.informers.of(info.kind)});
  }

  std::string_view name() const override { return "resourcequota"; }

  void subscribe(const Enqueue& enqueue) override {
    quotas_.on_change([=](const Informer::Change& change) {
      if (!change.after) return;
      if (change.before && is_charge(*change.before, *change.after)) enqueue.after(change.after->key(), kCountAgain);
      else enqueue.now(change.after->key());
    });
    for (const Counted& each : counted_)
      each.cache->on_change([=, this](const Informer::Change& change) {
        std::vector<ObjectPtr> quotas = quotas_.list(change.any().ns());
        if (quotas.empty() || !gives_back(change)) return;
        for (const ObjectPtr& quota : quotas) enqueue.now(quota->key());
      });
  }

  Result<Outcome> reconcile(const Key& key) override {
    auto found = client_.get(kResourceQuota, key);  // read before the objects: a charge after this causes a conflict
    if (!found && found.error().code() == Code::not_found) return Outcome{};
    ObjectPtr quota = TRY(std::move(found));
    if (quota->deleting()) return Outcome{};
    std::optional<std::chrono::nanoseconds> again;
    quota::Amounts used = TRY(count(*quota, again));
    if (says(*quota, used)) return Outcome{again};
    quota::Amounts hard = quota::amounts_of(view::ResourceQuota(*quota).spec().hard());
    for (const auto& [name, amount] : quota::amounts_of(view::ResourceQuota(*quota).status().used()))
      if (hard.contains(name)) used.try_emplace(name, amount);  // what is not computed here stays unchanged
    json::value status = json::object{{"hard", quota::to_json(hard)}, {"used", quota::to_json(used)}};
    auto written = write_status(client_, *quota, std::move(status));
    if (!written && written.error().code() == Code::not_found) return Outcome{};
    TRY(std::move(written));
    return Outcome{again};
  }

 private:
  struct Counted {
    const Kind* kind;
    Informer* cache;
  };

  // Whether nothing changed but usage that grew, as where admission charges it: the objects agree with it. Otherwise each create
  // would count all objects of its namespace again. What no event tells, such as a pod that has left the scope of a quota, is
  // found later. Source: Kubernetes' controller looks at no change of a status, and counts everything now and then.
  static bool is_charge(const Object& before, const Object& after) {
    view::ResourceQuota was(before), is(after);
    const json::object &used_then = was.status().used(), &used_now = is.status().used();
    bool same_limits = before.uid() == after.uid() && same_json(was.spec().raw(), is.spec().raw()) &&
                       same_json(was.status().hard(), is.status().hard()) && used_then.size() == used_now.size();
    return same_limits && std::ranges::all_of(used_then, [&](const auto& then) {
             const json::value* now = used_now.if_contains(then.key());
             if (!now || *now == then.value()) return now != nullptr;
             auto less = Quantity::from_json(then.value()), more = Quantity::from_json(*now);
             return less && more && *more >= *less;
           });
  }

  // Whether the quota's status says that its limits are those of its spec, and `used` is in use.
  static bool says(const Object& object, const quota::Amounts& used) {
    view::ResourceQuota quota(object);
    const json::object &hard = quota.spec().hard(), &said = quota.status().used();
    return quota::same_amounts(quota.status().hard(), hard) &&
           std::ranges::all_of(said, [&](const auto& entry) { return hard.contains(entry.key()); }) &&
           std::ranges::all_of(used, [&](const auto& counted) { return amount_in(said, counted.first) == counted.second; });
  }

  // Whether an object uses less than before, or other resources than admission has charged.
  bool gives_back(const Informer::Change& change) const {
    const Object& object = change.any();
    if (!change.after) return true;
    if (!change.before) return false;
    if (object.kind() == kPod) {
      auto usage = [&](const Object& pod) { return quota::usage_of(kPod, pod.json(), clock_.now()); };
      return usage(*change.after) != usage(*change.before) || change.after->deleting() != change.before->deleting();
    }
    return object.kind() == kService || object.kind().resource == kClaimResource;
  }

  // The usage of the resources that are computed here. `again`: when a terminating pod stops counting.
  Result<quota::Amounts> count(const Object& quota, std::optional<std::chrono::nanoseconds>& again) {
    quota::Amounts used;
    for (const Counted& each : counted_) {
      std::vector<std::string> names = quota::tracked(*each.kind, view::ResourceQuota(quota).spec().hard());
      if (names.empty()) continue;
      quota::Amounts sum;
      ObjectList there = TRY(client_.list(*each.kind, {.ns = quota.ns()}));
      for (const ObjectPtr& object : there.items) {
        if (!quota::in_scopes(*each.kind, quota.json(), object->json())) continue;
        quota::add(sum, quota::usage_of(*each.kind, object->json(), clock_.now()));
        if (auto left = *each.kind == kPod ? time_left(*object) : std::nullopt) again = again ? std::min(*again, *left) : *left;
      }
      for (const std::string& name : names) used[name] = sum[name];
    }
    return used;
  }

  // The time until the end of a terminating pod's grace period; nullopt: it is not terminating, or the period is over.
  std::optional<std::chrono::nanoseconds> time_left(const Object& object) const {
    view::Pod pod(object);
    auto deleted = parse_time(pod.metadata().deletion_timestamp());
    if (!deleted || is_terminal(pod)) return std::nullopt;
    auto left = *deleted + bounded_seconds(pod.metadata().deletion_grace_period_seconds()) - clock_.now();
    if (left.count() < 0) return std::nullopt;
    return left + std::chrono::seconds(1);
  }

  Client& client_;
  const Clock& clock_;
  Informer& quotas_;
  std::vector<Counted> counted_;
};

}  // namespace

std::unique_ptr<Controller> make_resource_quota_controller(const Context& context) {
  return std::make_unique<ResourceQuotaController>(context);
}

}  // namespace coracle::controller
