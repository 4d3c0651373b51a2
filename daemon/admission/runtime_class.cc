// SPDX-License-Identifier: Apache-2.0
// RuntimeClass: sets a pod's overhead, node selector and tolerations from its RuntimeClass. Source: Kubernetes
// plugin/pkg/admission/runtimeclass; util/tolerations.
#include <algorithm>
#include <set>

#include "daemon/admission/plugin.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/amounts.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

// Whether `wide` tolerates everything that `narrow` does.
bool covers(view::Toleration wide, view::Toleration narrow) {
  if (same_json(wide.raw(), narrow.raw())) return true;
  std::string_view op = wide.operator_(), key = wide.key(), effect = wide.effect();
  if (key != narrow.key() && (!key.empty() || op != "Exists")) return false;
  if (!effect.empty() && effect != narrow.effect()) return false;
  if (effect == "NoExecute" && wide.has_toleration_seconds()) {
    bool forever = !narrow.has_toleration_seconds();
    if (forever || narrow.toleration_seconds() > wide.toleration_seconds()) return false;
  }
  if (op == "Exists") return true;
  bool equal = op.empty() || op == "Equal";
  return equal && narrow.operator_() == "Equal" && narrow.value() == wide.value();
}

// Removes tolerations that others cover. Above the limit only duplicates are removed: comparing all pairs would take too long,
// and a superfluous toleration does no harm.
constexpr size_t kComparedMax = 500;

json::array merged(const json::array& first, const json::array& second) {
  json::array all = first, out;
  all.insert(all.end(), second.begin(), second.end());
  if (all.size() > kComparedMax) {
    std::set<std::string> seen;
    for (json::value& toleration : all)
      if (seen.insert(to_text(toleration)).second) out.push_back(std::move(toleration));
    return out;
  }
  for (size_t i = 0; i < all.size(); i++) {
    view::Toleration one(all[i]);
    bool needless =
        std::any_of(out.begin(), out.end(), [&](const json::value& other) { return covers(view::Toleration(other), one); });
    for (size_t j = i + 1; j < all.size(); j++) needless |= !same_json(all[j], all[i]) && covers(view::Toleration(all[j]), one);
    if (!needless) out.push_back(all[i]);
  }
  return out;
}

Result<ObjectPtr> runtime_class_of(const Request& request, const ClusterState& cluster) {
  std::string name(view::Pod(*request.object).spec().runtime_class_name());
  if (name.empty()) return ObjectPtr();
  ObjectPtr found = cluster.get(kRuntimeClass, {"", name});
  if (!found) return refuse(request, "pod rejected: RuntimeClass " + coracle::quoted(name) + " not found");
  return found;
}

Result<void> set_overhead(Request& request, const Object& runtime_class) {
  view::Overhead overhead = view::RuntimeClass(runtime_class).overhead();
  if (!overhead) return {};
  const json::object& fixed = overhead.pod_fixed();
  view::PodSpec spec = view::Pod(*request.object).spec();
  if (spec.has_overhead() && quota::amounts_of(spec.overhead()) != quota::amounts_of(fixed))
    return refuse(request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  if (!fixed.empty()) make(*request.object, "spec.overhead") = fixed;
  return {};
}

Result<void> set_scheduling(Request& request, const Object& runtime_class) {
  view::Scheduling scheduling = view::RuntimeClass(runtime_class).scheduling();
  if (!scheduling) return {};
  json::value& pod = *request.object;
  for (const auto& wanted : scheduling.node_selector()) {
    const json::value* own = view::Pod(pod).spec().node_selector().if_contains(wanted.key());
    if (own && *own != wanted.value()) {
      std::string key(wanted.key()), theirs(wanted.value().is_string() ? wanted.value().get_string().c_str() : ""),
          ours(own->is_string() ? own->get_string().c_str() : "");
      return refuse(request, "conflict: runtimeClass.scheduling.nodeSelector[" + key + "] = " + theirs +
                                 "; pod.spec.nodeSelector[" + key + "] = " + ours);
    }
    json::object& selector = make_object(pod, "spec.nodeSelector");
    selector[wanted.key()] = wanted.value();
  }
  json::array tolerations = merged(view::Pod(pod).spec().tolerations().raw(), scheduling.tolerations().raw());
  if (!tolerations.empty()) make(pod, "spec.tolerations") = std::move(tolerations);
  return {};
}

class RuntimeClass : public Plugin {
 public:
  std::string_view name() const override { return "RuntimeClass"; }

  Result<void> admit(Request& request, const ClusterState& cluster) const override {
    if (!request.creates(kPod)) return {};
    ObjectPtr found = TRY(runtime_class_of(request, cluster));
    if (!found) return {};
    TRY(set_overhead(request, *found));
    return set_scheduling(request, *found);
  }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    if (!request.creates(kPod)) return {};
    ObjectPtr found = TRY(runtime_class_of(request, cluster));
    view::PodSpec spec = view::Pod(*request.object).spec();
    if (!found || !view::RuntimeClass(*found).has_overhead())
      return spec.has_overhead()
                 ? refuse(request, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
                 : Result<void>();
    if (quota::amounts_of(spec.overhead()) != quota::amounts_of(view::RuntimeClass(*found).overhead().pod_fixed()))
      return refuse(request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_runtime_class() { return std::make_unique<RuntimeClass>(); }

}  // namespace coracle::admission
