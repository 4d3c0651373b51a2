// SPDX-License-Identifier: Apache-2.0
// What the other rules need from the rules about Jobs.
#pragma once

#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {

bool over(const Object& job);  // Complete or Failed

// A failed pod that its Job keeps until the next pod of its index exists, which takes over the index's failure count: for as long
// as none can be created. Source: KEP-3850.
bool waits_for_another(const ClusterState& cluster_state, const Object& pod);

}  // namespace coracle::simulation
