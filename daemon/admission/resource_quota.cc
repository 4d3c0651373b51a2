// SPDX-License-Identifier: Apache-2.0
// ResourceQuota: rejects a write that exceeds a quota. Otherwise the quota is charged in the same transaction as the object
// (Request::charges), so that charges and objects always agree. The quota controller recomputes the usage when objects are
// deleted. Source: apiserver admission/plugin/resourcequota; quota/v1.
#include <set>

#include "daemon/admission/plugin.h"
#include "daemon/quota/usage.h"
#include "runtime/base/text.h"
#include "store/object/object.h"

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

// The compute resources that a quota tracks and that a container does not set; "" if all are set.
std::string missing_amounts(const json::value& pod, const std::vector<std::string>& tracked) {
  static const std::set<std::string_view> kWanted = {"cpu",        "memory",       "requests.cpu", "requests.memory",
                                                     "limits.cpu", "limits.memory"};
  std::vector<std::string> parts;
  for (const std::string& name : tracked) {
    if (!kWanted.contains(name)) continue;
    bool limit = name.starts_with("limits.");
    std::string resource = name.substr(name.find('.') == name.npos ? 0 : name.find('.') + 1);
    std::set<std::string> without;
    for (const char* list : {"spec.containers", "spec.initContainers"})
      for (const json::value& container : get_array(pod, list))
        if (!get_object(container, limit ? "resources.limits" : "resources.requests").contains(resource))
          without.emplace(get_string(container, "name"));
    if (!without.empty()) parts.push_back(name + " for: " + join({without.begin(), without.end()}, ","));
  }
  return join(parts, "; ");
}

// Whether pod-level resources replace those of the containers.
bool says_for_all(const json::value& pod) { return find(pod, "spec.resources") != nullptr; }

class ResourceQuota : public Plugin {
 public:
  std::string_view name() const override { return "ResourceQuota"; }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    if (!handled(request)) return {};
    for (const ObjectPtr& quota : cluster.list(kResourceQuota, request.key.ns)) TRY(charge(request, *quota));
    return {};
  }

 private:
  static Result<void> charge(const Request& request, const Object& quota) {
    if (!quota::matches(request.kind, quota.json(), *request.object)) return {};
    Amounts hard = quota::amounts_of(get_object(quota.json(), "status.hard")),
            used = quota::amounts_of(get_object(quota.json(), "status.used"));
    std::vector<std::string> tracked = quota::tracked(request.kind, quota::names_of(get_object(quota.json(), "status.hard")));
    if (request.kind == kPod && !says_for_all(*request.object))
      if (std::string missing = missing_amounts(*request.object, tracked); !missing.empty())
        return refuse(request, "failed quota: " + quota.name() + ": must specify " + missing);
    for (const std::string& name : tracked)
      if (!used.contains(name))
        return refuse(request, "status unknown for quota: " + quota.name() + ", resources: " + join(tracked, ","));

    Amounts asked = TRY(more_than_before(request, quota));
    std::vector<std::string> exceeded;
    Amounts sum = used;
    for (const auto& [name, amount] : asked) {
      if (!hard.contains(name)) continue;
      sum[name] += amount;
      if (request.subresource != "status" && sum[name] > hard[name]) exceeded.push_back(name);
    }
    if (!exceeded.empty())
      return refuse(request, "exceeded quota: " + quota.name() + ", requested: " + shown(asked, exceeded) +
                                 ", used: " + shown(used, exceeded) + ", limited: " + shown(hard, exceeded));
    if (request.charges && !request.dry_run && sum != used) request.charges->push_back(charged(quota, sum));
    return {};
  }

  // The usage that the write adds to the quota, without zero amounts.
  static Result<Amounts> more_than_before(const Request& request, const Object& quota) {
    Amounts now = quota::usage_of(request.kind, *request.object, request.now), out;
    std::vector<std::string> below;
    for (const auto& [name, amount] : now)
      if (amount.negative()) below.push_back(name);
    if (!below.empty()) return refuse(request, "quota usage is negative for resource(s): " + join(below, ","));
    Amounts before;
    if (request.old && quota::matches(request.kind, quota.json(), request.old->json()))
      before = quota::usage_of(request.kind, request.old->json(), request.now);
    for (auto& [name, amount] : now) {
      if (auto found = before.find(name); found != before.end()) amount -= found->second;
      if (!amount.is_zero() && !amount.negative()) out[name] = amount;
    }
    return out;
  }

  static engine::Write charged(const Object& quota, const Amounts& used) {
    json::value body = quota.json();
    json::value& into = make(body, "status.used");
    if (!into.is_object()) into.emplace_object();
    for (const auto& [name, amount] : used) into.get_object()[name] = amount.text();
    return {&quota.kind(), quota.key(), std::move(body), quota.revision()};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_resource_quota() { return std::make_unique<ResourceQuota>(); }

}  // namespace coracle::admission
