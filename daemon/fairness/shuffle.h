// SPDX-License-Identifier: Apache-2.0
// Shuffle sharding: which few of a level's queues are a flow's own. Two flows seldom have the same ones, so that a crowd in one
// flow's queues leaves most others at least one short queue. Pure.
// Source: Kubernetes "API Priority and Fairness", queues and handSize.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace coracle::fairness {

// `hand_size` different numbers below `deck_size`, each set of them as likely as any other over all values of `hash`. The
// hand is no larger than the deck.
std::vector<int> deal(uint64_t hash, int deck_size, int hand_size);

// A flow's number: of its schema's name and of what tells its flows apart.
uint64_t hash_flow(std::string_view schema, std::string_view distinguisher);

}  // namespace coracle::fairness
