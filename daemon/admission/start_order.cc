// SPDX-License-Identifier: Apache-2.0
// StartOrder: converts the annotation coracle.io/after of a pod to a scheduling gate of the same name. Rejects invalid
// annotations of pods and of pod templates. See daemon/startup.
#include <algorithm>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "daemon/startup/dependencies.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::admission {
namespace {

// The annotation of the pod or of the pod template; null if absent.
const json::value* written_in(const schema::KindInfo& info, const json::value& object) {
  return pod_of(info, object).metadata().annotations().if_contains(startup::kAfter);
}

class StartOrder : public Plugin {
 public:
  std::string_view name() const override { return "StartOrder"; }

  Result<void> admit(Request& request, const ClusterState&) const override {
    if (!request.creates(kPod) || !written_in(request.info, *request.object)) return {};
    if (!view::Pod(*request.object).spec().node_name().empty()) return {};  // it is bound already: the node agent holds it back
    json::array& gates = make_array(*request.object, "spec.schedulingGates");
    bool there = std::any_of(gates.begin(), gates.end(),
                             [](const json::value& gate) { return view::PodSchedulingGate(gate).name() == startup::kAfter; });
    if (!there) gates.emplace_back(json::object{{"name", startup::kAfter}});
    return {};
  }

  Result<void> validate(const Request& request, const ClusterState&) const override {
    if (request.operation == Operation::remove || !request.object || !request.subresource.empty()) return {};
    const json::value* written = written_in(request.info, *request.object);
    if (!written || !written->is_string()) return {};
    const json::value* before = request.old ? written_in(request.info, request.old->json()) : nullptr;
    if (before && *before == *written) return {};
    auto read = startup::parse_after(written->get_string());
    if (read) return {};
    std::string path = request.kind == kPod ? std::string() : std::string(request.info.traits.pod_template) + ".";
    return invalid(request.kind, metadata_of(*request.object).name(),
                   {invalid_value(path + "metadata.annotations[" + std::string(startup::kAfter) + "]", json::serialize(*written),
                                  read.error().text())});
  }
};

}  // namespace

std::unique_ptr<Plugin> make_start_order() { return std::make_unique<StartOrder>(); }

}  // namespace coracle::admission
