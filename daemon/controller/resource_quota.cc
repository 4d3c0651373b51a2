// SPDX-License-Identifier: Apache-2.0
// Resource quota: what a namespace uses of each quota, counted anew when something goes, ends or changes what it uses.
// Admission charges what comes, in the transaction that makes it; here the store itself is read and the quota written back
// only if nobody charged it meanwhile, so that nothing is ever counted too low. Source: Kubernetes pkg/controller/resourcequota.
#include <algorithm>

#include "daemon/controller/common.h"
#include "daemon/controller/controller.h"
#include "daemon/quota/usage.h"
#include "store/schema/catalog.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kClaimResource = "persistentvolumeclaims";

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

  void subscribe(const LookAt& look_at) override {
    quotas_.on_change([=](const Informer::Change& change) {
      if (change.after) look_at.now(change.after->key());
    });
    for (const Counted& each : counted_)
      each.cache->on_change([=, this](const Informer::Change& change) {
        std::vector<ObjectPtr> quotas = quotas_.list(change.any().ns());
        if (quotas.empty() || !gives_back(change)) return;
        for (const ObjectPtr& quota : quotas) look_at.now(quota->key());
      });
  }

  Result<Outcome> reconcile(const Key& key) override {
    auto found = client_.get(kResourceQuota, key);  // before what it counts: a charge after this is a conflict
    if (!found && found.error().code() == Code::not_found) return Outcome{};
    ObjectPtr quota = TRY(std::move(found));
    if (quota->deleting()) return Outcome{};
    quota::Amounts hard = quota::amounts_of(get_object(quota->json(), "spec.hard"));
    std::optional<std::chrono::nanoseconds> again;
    quota::Amounts used = TRY(count(*quota, hard, again));
    bool level = find(quota->json(), "status.hard") && find(quota->json(), "status.used") &&
                 quota::amounts_of(get_object(quota->json(), "status.hard")) == hard &&
                 quota::amounts_of(get_object(quota->json(), "status.used")) == used;
    if (level) return Outcome{again};
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

  // Something that was charged is charged no more, or otherwise than admission knew.
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

  // `again`: when a pod that should have been gone by then counts no more.
  Result<quota::Amounts> count(const Object& quota, const quota::Amounts& hard, std::optional<std::chrono::nanoseconds>& again) {
    std::vector<std::string> limited = quota::names_of(quota::to_json(hard));
    quota::Amounts used, known = quota::amounts_of(get_object(quota.json(), "status.used"));
    for (const std::string& name : limited)  // what nobody counts stays as it is
      if (auto found = known.find(name); found != known.end()) used.insert(*found);
    for (const Counted& each : counted_) {
      std::vector<std::string> names = quota::tracked(*each.kind, limited);
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

  // Until a pod that is on its way out should be gone; nothing: it is not, or should be already.
  std::optional<std::chrono::nanoseconds> time_left(const Object& pod) const {
    auto deleted = parse_time(get_string(pod.json(), "metadata.deletionTimestamp"));
    if (!deleted || pod_finished(view::Pod(pod))) return std::nullopt;
    auto left = *deleted + bounded_seconds(get_int(pod.json(), "metadata.deletionGracePeriodSeconds")) - clock_.now();
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
