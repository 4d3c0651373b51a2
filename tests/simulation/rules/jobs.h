// SPDX-License-Identifier: Apache-2.0
// What the rules about Jobs know that others ask for.
#pragma once

#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {

bool over(const Object& job);  // Complete or Failed

// A failed pod that its Job holds until another one of its index follows, which takes over how often the index has failed: for as
// long as none can be made. Source: KEP-3850.
bool waits_for_another(const ClusterState& cluster_state, const Object& pod);

}  // namespace coracle::simulation
