// SPDX-License-Identifier: Apache-2.0
// Shuffle sharding: selects the few queues of a level that a flow uses. Two flows rarely have the same queues, so that a flow
// with many requests leaves most other flows a short queue. Pure. Source: Kubernetes "API Priority and Fairness", queues and
// handSize.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace coracle::flowcontrol {

// Returns `hand_size` different numbers below `deck_size`. All sets are equally likely over the values of `hash`. The hand must
// not be larger than the deck.
std::vector<int> deal(uint64_t hash, int deck_size, int hand_size);

// The hash of a flow: of its schema's name and its distinguisher.
uint64_t hash_flow(std::string_view schema, std::string_view distinguisher);

}  // namespace coracle::flowcontrol
