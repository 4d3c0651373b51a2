// SPDX-License-Identifier: Apache-2.0
// Registers this folder. HorizontalPodAutoscalers, stored as autoscaling/v2.
#include "store/kinds/autoscaler/autoscaler_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kAutoscalerKinds[] = {
    {.api_version = "autoscaling/v2", .resource = "horizontalpodautoscalers", .status = check_autoscaler_status},
};
constexpr VersionConversion kAutoscalerConversions[] = {
    {"autoscaling/v1", "HorizontalPodAutoscaler", autoscaler_to_v2, autoscaler_from_v2}};

}  // namespace

extern const KindFamily autoscaler_family;
const KindFamily autoscaler_family{
    .defaults = {autoscaler_defaults},
    .validation = {autoscaler_rules},
    .cells = {autoscaler_cells},
    .kinds = kAutoscalerKinds,
    .conversions = kAutoscalerConversions,
};

}  // namespace coracle::schema
