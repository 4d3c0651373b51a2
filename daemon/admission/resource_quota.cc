// SPDX-License-Identifier: Apache-2.0
// ResourceQuota: rejects a write that exceeds a quota. Otherwise the quota is charged in the same transaction as the object
// (Request::charges), so that charges and objects always agree. What is left is decided in the writer's turn, where the usage of
// all earlier writes is known: no lock is held from here to the commit, and writes of one namespace share a commit. The quota
// controller recomputes the usage when objects are deleted. Source: apiserver admission/plugin/resourcequota; quota/v1.
//   validate: demand of the object ▸ check against the usage of now ─▶ commit: check against the usage of then ▸ charge
#include <map>
#include <optional>
#include <set>

#include "daemon/admission/plugin.h"
#include "daemon/quota/usage.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

using quota::Amounts;

// "limits.cpu=1,pods=2"
std::string shown(const Amounts& amounts, const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names)
    if (auto found = amounts.find(name); found != amounts.end()) parts.push_back(name + "=" + found->second.text());
  return join(parts, ",");
}

bool handled(const Request& request) {
  const Kind& kind = request.kind;
  bool creates = request.operation == Operation::create, updates = request.operation == Operation::update;
  if (!quota::counted(request.info) || request.key.ns.empty()) return false;
  if (kind == kPod) return (request.subresource.empty() && creates) || (request.subresource == "resize" && updates);
  if (kind == kService) return creates || updates;
  if (kind == kPersistentVolumeClaim)
    return (request.subresource.empty() && creates) ||
           ((request.subresource.empty() || request.subresource == "status") && updates);
  return request.subresource.empty() && creates;
}

// The compute resources that some container does not set, with the names of these containers: "c,d".
std::map<std::string, std::string> unset_amounts(view::PodSpec pod) {
  std::map<std::string, std::string> out;
  for (const char* name : {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}) {
    std::string_view resource = name;
    bool limit = resource.starts_with("limits.");
    resource.remove_prefix(resource.find('.') == resource.npos ? 0 : resource.find('.') + 1);
    std::set<std::string> without;
    for (auto list : {&view::PodSpec::containers, &view::PodSpec::init_containers})
      for (view::Container container : (pod.*list)())
        if (!(limit ? container.resources().limits() : container.resources().requests()).contains(resource))
          without.emplace(container.name());
    if (!without.empty()) out.emplace(name, join({without.begin(), without.end()}, ","));
  }
  return out;
}

// What one write demands of one quota. It needs the object no more, so it can be decided again when the object is committed.
class Demand {
 public:
  // `quota`: one whose scopes the object is in.
  Demand(const Request& request, const ObjectPtr& quota)
      : kind_(request.kind), name_(name_of(request)), quota_(quota), refuses_(request.subresource != "status") {
    if (kind_ == kPod)  // a pod's own resources replace those of its containers
      if (view::PodSpec pod = view::Pod(*request.object).spec(); !pod.has_resources()) unset_ = unset_amounts(pod);
    Amounts before;
    if (request.old && quota::in_scopes(kind_, quota->json(), request.old->json()))
      before = quota::usage_of(kind_, request.old->json(), request.now);
    for (auto& [name, amount] : quota::usage_of(kind_, *request.object, request.now)) {
      if (amount.negative()) below_.push_back(name);
      Quantity more = amount;
      if (auto found = before.find(name); found != before.end()) more -= found->second;
      if (!more.is_zero() && !more.negative()) asked_[name] = more;
    }
  }

  // Whether the quota can get a larger usage.
  bool uses_more() const { return !asked_.empty(); }

  // The quota's usage of what this kind uses, with this write; nothing: it stays the same. Errors: forbidden.
  Result<std::optional<Amounts>> charge(const Object& quota) const {
    view::ResourceQuotaStatus status = view::ResourceQuota(quota).status();
    std::vector<std::string> tracked = quota::tracked(kind_, status.hard());
    if (tracked.empty()) return std::optional<Amounts>();
    if (std::string missing = missing_of(tracked); !missing.empty())
      return refused("failed quota: " + quota.name() + ": must specify " + missing);
    Amounts hard = quota::amounts_of(status.hard(), tracked), used = quota::amounts_of(status.used(), tracked);
    for (const std::string& name : tracked)
      if (!used.contains(name))
        return refused("status unknown for quota: " + quota.name() + ", resources: " + join(tracked, ","));
    if (!below_.empty()) return refused("quota usage is negative for resource(s): " + join(below_, ","));

    std::vector<std::string> exceeded;
    Amounts sum = used;
    for (const auto& [name, amount] : asked_) {
      if (!hard.contains(name)) continue;
      sum[name] += amount;
      if (refuses_ && sum[name] > hard[name]) exceeded.push_back(name);
    }
    if (!exceeded.empty())
      return refused("exceeded quota: " + quota.name() + ", requested: " + shown(asked_, exceeded) +
                     ", used: " + shown(used, exceeded) + ", limited: " + shown(hard, exceeded));
    return sum == used ? std::optional<Amounts>() : std::optional<Amounts>(std::move(sum));
  }

  // The quota's new body at the commit. Errors: forbidden; conflict if the quota counts other objects by now.
  Result<std::optional<json::value>> amend(const Object& quota) const {
    if (!counts_the_same(quota)) return stale_conflict(quota.kind(), quota.name());
    std::optional<Amounts> sum = TRY(charge(quota));
    if (!sum) return std::optional<json::value>();
    json::value body = changeable_copy(quota);
    json::object& into = make_object(body, "status.used");
    for (const auto& [name, amount] : *sum) into[name] = amount.text();
    return std::optional<json::value>(std::move(body));
  }

 private:
  bool counts_the_same(const Object& quota) const {
    view::ResourceQuotaSpec now = view::ResourceQuota(quota).spec(), then = view::ResourceQuota(*quota_).spec();
    return quota.uid() == quota_->uid() && same_json(now.scopes().raw(), then.scopes().raw()) &&
           same_json(now.scope_selector().raw(), then.scope_selector().raw());
  }
  std::string missing_of(const std::vector<std::string>& tracked) const {
    std::vector<std::string> parts;
    for (const std::string& name : tracked)
      if (auto found = unset_.find(name); found != unset_.end()) parts.push_back(name + " for: " + found->second);
    return join(parts, "; ");
  }
  Error refused(std::string_view why) const { return forbidden(kind_, name_, why); }

  const Kind& kind_;
  std::string name_;
  ObjectPtr quota_;  // as admission has seen it
  bool refuses_;     // false: the write is only counted
  std::map<std::string, std::string> unset_;
  std::vector<std::string> below_;  // the negative amounts
  Amounts asked_;                   // more than before; without zero amounts
};

// Whether the quota limits what this kind uses, now or when its controller has seen the new spec.
bool may_track(const Kind& kind, const Object& quota) {
  view::ResourceQuota limits(quota);
  auto tracks = [&](const json::object& hard) { return !quota::tracked(kind, hard).empty(); };
  return tracks(limits.spec().hard()) || tracks(limits.status().hard());
}

class ResourceQuota : public Plugin {
 public:
  std::string_view name() const override { return "ResourceQuota"; }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    if (!handled(request)) return {};
    for (const ObjectPtr& quota : cluster.list(kResourceQuota, request.key.ns)) {
      if (!may_track(request.kind, *quota) || !quota::in_scopes(request.kind, quota->json(), *request.object)) continue;
      Demand demand(request, quota);
      TRY(demand.charge(*quota));
      if (!request.charges || request.dry_run || !demand.uses_more()) continue;
      auto amend = [demand = std::move(demand)](const Object& now) { return demand.amend(now); };
      request.charges->push_back({&quota->kind(), quota->key(), std::nullopt, std::nullopt, false, std::move(amend)});
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_resource_quota() { return std::make_unique<ResourceQuota>(); }

}  // namespace coracle::admission
