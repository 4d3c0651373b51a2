// SPDX-License-Identifier: Apache-2.0
// TaintNodesByCondition: adds the taint not-ready to a new node; the node lifecycle controller removes it when the node is ready.
// Source: Kubernetes plugin/pkg/admission/nodetaint.
#include "daemon/admission/plugin.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready", kNoSchedule = "NoSchedule";

class TaintNodesByCondition : public Plugin {
 public:
  std::string_view name() const override { return "TaintNodesByCondition"; }

  Result<void> admit(Request& request, const ClusterState&) const override {
    if (!request.creates(kNode)) return {};
    for (view::Taint taint : view::Node(*request.object).spec().taints())
      if (taint.key() == kNotReady && taint.effect() == kNoSchedule) return {};
    make_array(*request.object, "spec.taints").push_back(json::object{{"key", kNotReady}, {"effect", kNoSchedule}});
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_taint_nodes_by_condition() { return std::make_unique<TaintNodesByCondition>(); }

}  // namespace coracle::admission
