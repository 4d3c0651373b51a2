// SPDX-License-Identifier: Apache-2.0
// DynamicResources: pods with ResourceClaims. This cluster does not allocate devices, so such a pod stays pending with a reason
// and never runs without its devices. Source: Kubernetes "Dynamic Resource Allocation", kube-scheduler's plugin of this name.
#include "daemon/scheduler/plugins/plugins.h"

namespace coracle::scheduler {
namespace {

class DynamicResources : public Plugin {
 public:
  std::string_view name() const override { return "DynamicResources"; }
  uint32_t points() const override { return pre_filter_point; }
  Answer pre_filter(CycleState& cycle, Reasons& why) const override {
    if (view::Pod(*cycle.object).spec().resource_claims().empty()) return Answer::skip;
    why.push_back(
        {"cannot allocate all claims: this cluster has no dynamic resource allocation", "", "a pod without resourceClaims"});
    return Answer::unresolvable;
  }
  bool could_help(const ClusterEvent&, const PodInfo&, Cluster&) const override { return false; }
};

}  // namespace

std::unique_ptr<Plugin> make_dynamic_resources() { return std::make_unique<DynamicResources>(); }

}  // namespace coracle::scheduler
