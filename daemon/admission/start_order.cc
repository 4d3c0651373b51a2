// SPDX-License-Identifier: Apache-2.0
// StartOrder: coracle.io/after on a pod becomes a scheduling gate of the same name; what the annotation cannot mean is refused
// where it is written, on a pod or on the template of a workload. See daemon/order.
#include <algorithm>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "daemon/order/order.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::admission {
namespace {

// Where annotations of pods are written: in the pod, in a template, in a template's template.
constexpr std::string_view kPlaces[] = {"metadata.annotations", "spec.template.metadata.annotations",
                                        "spec.jobTemplate.spec.template.metadata.annotations"};

const json::value* written_at(const json::value& object, std::string_view place) {
  return get_object(object, place).if_contains(order::kAfter);
}

class StartOrder : public Plugin {
 public:
  std::string_view name() const override { return "StartOrder"; }

  Result<void> admit(Request& request, const World&) const override {
    if (!request.creates(kPod) || !written_at(*request.object, kPlaces[0])) return {};
    if (!get_string(*request.object, "spec.nodeName").empty()) return {};  // it has its node: the node agent holds it back
    json::array& gates = array_at(*request.object, "spec.schedulingGates");
    bool there = std::any_of(gates.begin(), gates.end(),
                             [](const json::value& gate) { return get_string(gate, "name") == order::kAfter; });
    if (!there) gates.emplace_back(json::object{{"name", order::kAfter}});
    return {};
  }

  Result<void> validate(const Request& request, const World&) const override {
    if (request.operation == Operation::remove || !request.object || !request.subresource.empty()) return {};
    for (std::string_view place : kPlaces) {
      bool of_pods = place != kPlaces[0] || request.kind == kPod;
      const json::value* written = of_pods ? written_at(*request.object, place) : nullptr;
      if (!written || !written->is_string()) continue;
      const json::value* before = request.old ? written_at(request.old->json(), place) : nullptr;
      if (before && *before == *written) continue;
      auto read = order::parse_after(written->get_string());
      if (read) continue;
      std::string field = std::string(place) + "[" + std::string(order::kAfter) + "]";
      return invalid(request.kind, get_string(*request.object, "metadata.name"),
                     {invalid_value(field, json::serialize(*written), read.error().text())});
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_start_order() { return std::make_unique<StartOrder>(); }

}  // namespace coracle::admission
