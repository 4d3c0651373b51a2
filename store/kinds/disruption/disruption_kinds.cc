// SPDX-License-Identifier: Apache-2.0
// Registers this folder. PodDisruptionBudgets.
#include "store/kinds/disruption/disruption_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kDisruptionKinds[] = {
    {.api_version = "policy/v1", .resource = "poddisruptionbudgets", .status = check_budget_status},
};

}  // namespace

extern const KindFamily disruption_family;
const KindFamily disruption_family{
    .validation = {disruption_rules},
    .kinds = kDisruptionKinds,
};

}  // namespace coracle::schema
