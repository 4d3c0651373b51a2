// SPDX-License-Identifier: Apache-2.0
// Registers this folder. FlowSchemas and PriorityLevelConfigurations.
#include "store/kinds/flowcontrol/flowcontrol_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kFlowcontrolKinds[] = {
    {.api_version = "flowcontrol.apiserver.k8s.io/v1", .resource = "flowschemas", .status = check_flow_status},
    {.api_version = "flowcontrol.apiserver.k8s.io/v1", .resource = "prioritylevelconfigurations", .status = check_flow_status},
};

}  // namespace

extern const KindFamily flowcontrol_family;
const KindFamily flowcontrol_family{
    .defaults = {flow_defaults},
    .validation = {flow_rules},
    .cells = {flow_cells},
    .kinds = kFlowcontrolKinds,
};

}  // namespace coracle::schema
