// SPDX-License-Identifier: Apache-2.0
// LimitRanger: applies a namespace's LimitRanges: sets default resources of containers, and rejects pods and claims outside the
// bounds. Source: Kubernetes plugin/pkg/admission/limitranger.
#include <set>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/amounts.h"

namespace coracle::admission {
namespace {

using quota::Amounts;

constexpr std::string_view kAnnotation = "kubernetes.io/limit-ranger";

bool concerns(const Request& request) {
  bool resizes = request.kind == kPod && request.subresource == "resize" && request.operation == Operation::update;
  if (request.operation == Operation::remove || (!request.subresource.empty() && !resizes)) return false;
  if (request.kind == kPod) return resizes || request.operation == Operation::create;
  return request.kind == kPersistentVolumeClaim;
}

// ---- defaults ----

// The range's defaults for containers: `field` is `default` (limits) or `defaultRequest`.
Amounts defaults_of(view::LimitRange range, const json::object& (view::LimitRangeItem::*field)() const) {
  Amounts out;
  for (view::LimitRangeItem limit : range.spec().limits())
    if (limit.type() == "Container")
      for (auto& [name, amount] : quota::amounts_of((limit.*field)())) out[name] = amount;
  return out;
}

// Sets missing amounts. Returns the names of those that were set.
std::vector<std::string> fill(json::value& container, std::string_view list, const Amounts& defaults) {
  std::vector<std::string> set;
  if (defaults.empty()) return set;
  json::object& amounts = make_object(container, "resources." + std::string(list));
  for (const auto& [name, amount] : defaults) {
    if (amounts.contains(name)) continue;
    amounts[name] = amount.text();
    set.push_back(name);
  }
  return set;
}

void give_defaults(json::value& pod, view::LimitRange range) {
  Amounts limits = defaults_of(range, &view::LimitRangeItem::default_),
          requests = defaults_of(range, &view::LimitRangeItem::default_request);
  std::vector<std::string> told;
  for (auto [list, called] : {std::pair("spec.containers", "container"), std::pair("spec.initContainers", "init container")}) {
    json::value* containers = const_cast<json::value*>(find(pod, list));
    if (!containers || !containers->is_array()) continue;
    for (json::value& container : containers->get_array()) {
      if (!container.is_object()) continue;
      std::vector<std::string> limited = fill(container, "limits", limits), requested = fill(container, "requests", requests);
      std::string name = " for " + std::string(called) + " " + std::string(view::Container(container).name());
      if (!requested.empty()) told.push_back(join(requested, ", ") + " request" + name);
      if (!limited.empty()) told.push_back(join(limited, ", ") + " limit" + name);
    }
  }
  if (told.empty()) return;
  make_object(pod, "metadata.annotations")[kAnnotation] = "LimitRanger plugin set: " + join(told, "; ");
}

// ---- bounds ----

struct Asked {  // requests and limits of a container, pod or claim: now and, on an update, before
  Amounts requests, limits, old_requests, old_limits;
  bool is_change = false;

  const Quantity* of(const Amounts& amounts, const std::string& name) const {
    auto found = amounts.find(name);
    return found == amounts.end() ? nullptr : &found->second;
  }
  bool unchanged(const std::string& name) const {
    auto same = [&](const Amounts& a, const Amounts& b) {
      const Quantity *x = of(a, name), *y = of(b, name);
      return (!x && !y) || (x && y && *x == *y);
    };
    return is_change && same(requests, old_requests) && same(limits, old_limits);
  }
};

class Bounds {
 public:
  Bounds(view::LimitRangeItem limit, const Asked& asked, std::vector<std::string>& findings)
      : limit_(limit), type_(limit.type()), asked_(asked), findings_(findings) {}

  void check(bool with_limits) {
    each(limit_.min(), [&](const std::string& name, const Quantity& bound) { check_min(name, bound); });
    each(limit_.max(), [&](const std::string& name, const Quantity& bound) {
      with_limits ? check_max(name, bound) : check_max_request(name, bound);
    });
    if (with_limits)
      each(limit_.max_limit_request_ratio(), [&](const std::string& name, const Quantity& bound) { check_ratio(name, bound); });
  }

 private:
  template <typename F>
  void each(const json::object& bounds, F f) {
    for (const auto& [name, bound] : quota::amounts_of(bounds))
      if (!asked_.unchanged(name)) f(name, bound);
  }
  void say(std::string text) { findings_.push_back(std::move(text)); }
  std::string usage(const char* which, const std::string& name, const Quantity& bound) const {
    return std::string(which) + " " + name + " usage per " + type_ + " is " + bound.text();
  }

  void check_min(const std::string& name, const Quantity& bound) {
    const Quantity *request = asked_.of(asked_.requests, name), *limit = asked_.of(asked_.limits, name);
    if (!request) say(usage("minimum", name, bound) + ".  No request is specified");
    else if (*request < bound) say(usage("minimum", name, bound) + ", but request is " + request->text());
    else if (limit && *limit < bound) say(usage("minimum", name, bound) + ", but limit is " + limit->text());
  }
  void check_max(const std::string& name, const Quantity& bound) {
    const Quantity *request = asked_.of(asked_.requests, name), *limit = asked_.of(asked_.limits, name);
    if (!limit) say(usage("maximum", name, bound) + ".  No limit is specified");
    else if (*limit > bound) say(usage("maximum", name, bound) + ", but limit is " + limit->text());
    else if (request && *request > bound) say(usage("maximum", name, bound) + ", but request is " + request->text());
  }
  void check_max_request(const std::string& name, const Quantity& bound) {
    const Quantity* request = asked_.of(asked_.requests, name);
    if (!request) say(usage("maximum", name, bound) + ".  No request is specified");
    else if (*request > bound) say(usage("maximum", name, bound) + ", but request is " + request->text());
  }
  void check_ratio(const std::string& name, const Quantity& bound) {
    const Quantity *request = asked_.of(asked_.requests, name), *limit = asked_.of(asked_.limits, name);
    std::string text = name + " max limit to request ratio per " + type_ + " is " + bound.text();
    if (!request || request->is_zero()) return say(text + ", but no request is specified or request is 0");
    if (!limit || limit->is_zero()) return say(text + ", but no limit is specified or limit is 0");
    double ratio = double(limit->milli_value()) / double(request->milli_value());
    if (ratio * 1000 > double(bound.milli_value())) say(text + ", but provided ratio is " + std::to_string(ratio));
  }

  view::LimitRangeItem limit_;
  std::string type_;
  const Asked& asked_;
  std::vector<std::string>& findings_;
};

view::Container named(view::Range<view::Container> containers, std::string_view name) {
  for (view::Container container : containers)
    if (container.name() == name) return container;
  return {};
}

void check_containers(view::LimitRangeItem limit, view::PodSpec pod, view::PodSpec old, std::vector<std::string>& findings) {
  for (auto list : {&view::PodSpec::containers, &view::PodSpec::init_containers})
    for (view::Container container : (pod.*list)()) {
      Asked asked{quota::amounts_of(container.resources().requests()), quota::amounts_of(container.resources().limits()), {}, {}};
      if (view::Container before = named((old.*list)(), container.name())) {
        asked.is_change = true;
        asked.old_requests = quota::amounts_of(before.resources().requests());
        asked.old_limits = quota::amounts_of(before.resources().limits());
      }
      Bounds(limit, asked, findings).check(true);
    }
}

void check_pod(view::LimitRangeItem limit, view::Pod pod, view::Pod old, std::vector<std::string>& findings) {
  Asked asked{quota::pod_requests(pod, false), quota::pod_limits(pod, false), {}, {}};
  if (old)
    asked.is_change = true, asked.old_requests = quota::pod_requests(old, false),
    asked.old_limits = quota::pod_limits(old, false);
  Bounds(limit, asked, findings).check(true);
}

void check_claim(view::LimitRangeItem limit, view::PersistentVolumeClaim claim, view::PersistentVolumeClaim old,
                 std::vector<std::string>& findings) {
  Asked asked{quota::amounts_of(claim.spec().resources().requests()), {}, {}, {}};
  if (old) asked.is_change = true, asked.old_requests = quota::amounts_of(old.spec().resources().requests());
  Bounds(limit, asked, findings).check(false);
}

// A single problem as it is; several in brackets, without duplicates. Source: apimachinery util/errors Aggregate.
std::string together(const std::vector<std::string>& findings) {
  std::vector<std::string> once;
  std::set<std::string> seen;
  for (const std::string& finding : findings)
    if (seen.insert(finding).second) once.push_back(finding);
  return once.size() == 1 ? once.front() : "[" + join(once, ", ") + "]";
}

class LimitRanger : public Plugin {
 public:
  std::string_view name() const override { return "LimitRanger"; }

  Result<void> admit(Request& request, const ClusterState& cluster) const override {
    if (!concerns(request) || !(request.kind == kPod)) return {};
    for (const ObjectPtr& range : cluster.list(kLimitRange, request.key.ns))
      give_defaults(*request.object, view::LimitRange(*range));
    return {};
  }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    if (!concerns(request)) return {};
    const json::value* old = request.old ? &request.old->json() : nullptr;
    for (const ObjectPtr& range : cluster.list(kLimitRange, request.key.ns)) {
      std::vector<std::string> findings;
      for (view::LimitRangeItem limit : view::LimitRange(*range).spec().limits()) {
        std::string_view type = limit.type();
        if (request.kind == kPod && type == "Container")
          check_containers(limit, view::Pod(*request.object).spec(), view::Pod(old).spec(), findings);
        if (request.kind == kPod && type == "Pod") check_pod(limit, view::Pod(*request.object), view::Pod(old), findings);
        if (request.kind == kPersistentVolumeClaim && type == "PersistentVolumeClaim")
          check_claim(limit, view::PersistentVolumeClaim(*request.object), view::PersistentVolumeClaim(old), findings);
      }
      if (!findings.empty()) return refuse(request, together(findings));
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_limit_ranger() { return std::make_unique<LimitRanger>(); }

}  // namespace coracle::admission
