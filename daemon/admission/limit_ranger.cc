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

// The range's defaults for containers: `field` is "default" (limits) or "defaultRequest".
Amounts defaults_of(const json::value& range, std::string_view field) {
  Amounts out;
  for (const json::value& limit : get_array(range, "spec.limits"))
    if (get_string(limit, "type") == "Container")
      for (auto& [name, amount] : quota::amounts_of(get_object(limit, field))) out[name] = amount;
  return out;
}

// Sets missing amounts. Returns the names of those that were set.
std::vector<std::string> fill(json::value& container, std::string_view list, const Amounts& defaults) {
  std::vector<std::string> set;
  if (defaults.empty()) return set;
  json::value& amounts = make(container, "resources." + std::string(list));
  if (!amounts.is_object()) amounts.emplace_object();
  for (const auto& [name, amount] : defaults) {
    if (amounts.get_object().contains(name)) continue;
    amounts.get_object()[name] = amount.text();
    set.push_back(name);
  }
  return set;
}

void give_defaults(json::value& pod, const json::value& range) {
  Amounts limits = defaults_of(range, "default"), requests = defaults_of(range, "defaultRequest");
  std::vector<std::string> told;
  for (auto [list, called] : {std::pair("spec.containers", "container"), std::pair("spec.initContainers", "init container")}) {
    json::value* containers = const_cast<json::value*>(find(pod, list));
    if (!containers || !containers->is_array()) continue;
    for (json::value& container : containers->get_array()) {
      if (!container.is_object()) continue;
      std::vector<std::string> limited = fill(container, "limits", limits), requested = fill(container, "requests", requests);
      std::string name = " for " + std::string(called) + " " + std::string(get_string(container, "name"));
      if (!requested.empty()) told.push_back(join(requested, ", ") + " request" + name);
      if (!limited.empty()) told.push_back(join(limited, ", ") + " limit" + name);
    }
  }
  if (told.empty()) return;
  json::value& annotations = make(pod, "metadata.annotations");
  if (!annotations.is_object()) annotations.emplace_object();
  annotations.get_object()[kAnnotation] = "LimitRanger plugin set: " + join(told, "; ");
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
  Bounds(const json::value& limit, const Asked& asked, std::vector<std::string>& findings)
      : limit_(limit), type_(get_string(limit, "type")), asked_(asked), findings_(findings) {}

  void check(bool with_limits) {
    each("min", [&](const std::string& name, const Quantity& bound) { check_min(name, bound); });
    each("max", [&](const std::string& name, const Quantity& bound) {
      with_limits ? check_max(name, bound) : check_max_request(name, bound);
    });
    if (with_limits)
      each("maxLimitRequestRatio", [&](const std::string& name, const Quantity& bound) { check_ratio(name, bound); });
  }

 private:
  template <typename F>
  void each(std::string_view field, F f) {
    for (const auto& [name, bound] : quota::amounts_of(get_object(limit_, field)))
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

  const json::value& limit_;
  std::string type_;
  const Asked& asked_;
  std::vector<std::string>& findings_;
};

const json::value* named(const json::array& containers, std::string_view name) {
  for (const json::value& container : containers)
    if (get_string(container, "name") == name) return &container;
  return nullptr;
}

void check_containers(const json::value& limit, const json::value& pod, const json::value* old,
                      std::vector<std::string>& findings) {
  for (std::string_view list : {"spec.containers", "spec.initContainers"})
    for (const json::value& container : get_array(pod, list)) {
      Asked asked{quota::amounts_of(get_object(container, "resources.requests")),
                  quota::amounts_of(get_object(container, "resources.limits")),
                  {},
                  {}};
      if (const json::value* before = old ? named(get_array(*old, list), get_string(container, "name")) : nullptr) {
        asked.is_change = true;
        asked.old_requests = quota::amounts_of(get_object(*before, "resources.requests"));
        asked.old_limits = quota::amounts_of(get_object(*before, "resources.limits"));
      }
      Bounds(limit, asked, findings).check(true);
    }
}

void check_pod(const json::value& limit, const json::value& pod, const json::value* old, std::vector<std::string>& findings) {
  Asked asked{quota::pod_requests(view::Pod(pod), false), quota::pod_limits(view::Pod(pod), false), {}, {}};
  if (old)
    asked.is_change = true, asked.old_requests = quota::pod_requests(view::Pod(*old), false),
    asked.old_limits = quota::pod_limits(view::Pod(*old), false);
  Bounds(limit, asked, findings).check(true);
}

void check_claim(const json::value& limit, const json::value& claim, const json::value* old, std::vector<std::string>& findings) {
  Asked asked{quota::amounts_of(get_object(claim, "spec.resources.requests")), {}, {}, {}};
  if (old) asked.is_change = true, asked.old_requests = quota::amounts_of(get_object(*old, "spec.resources.requests"));
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
    for (const ObjectPtr& range : cluster.list(kLimitRange, request.key.ns)) give_defaults(*request.object, range->json());
    return {};
  }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    if (!concerns(request)) return {};
    const json::value* old = request.old ? &request.old->json() : nullptr;
    for (const ObjectPtr& range : cluster.list(kLimitRange, request.key.ns)) {
      std::vector<std::string> findings;
      for (const json::value& limit : get_array(range->json(), "spec.limits")) {
        std::string_view type = get_string(limit, "type");
        if (request.kind == kPod && type == "Container") check_containers(limit, *request.object, old, findings);
        if (request.kind == kPod && type == "Pod") check_pod(limit, *request.object, old, findings);
        if (request.kind == kPersistentVolumeClaim && type == "PersistentVolumeClaim")
          check_claim(limit, *request.object, old, findings);
      }
      if (!findings.empty()) return refuse(request, together(findings));
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_limit_ranger() { return std::make_unique<LimitRanger>(); }

}  // namespace coracle::admission
