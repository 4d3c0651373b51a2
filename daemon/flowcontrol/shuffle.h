// SPDX-License-Identifier: Apache-2.0
// Shuffle sharding: selects the few queues of a level that a flow uses. Two flows rarely have the same queues, so that a flow
// with many requests leaves most other flows a short queue. Pure. Source: Kubernetes "API Priority and Fairness", queues and
// handSize.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace coracle::flowcontrol {

constexpr int kHandMax = 15;  // no larger one has enough bits in a hash. Source: apiserver shufflesharding, MaxHashBits

// Different numbers, in the order of dealing. It is no vector, because every request deals one.
class Hand {
 public:
  void add(int card) { cards_[size_++] = card; }
  size_t size() const { return size_; }
  int operator[](size_t at) const { return cards_[at]; }
  const int* begin() const { return cards_.data(); }
  const int* end() const { return cards_.data() + size_; }

 private:
  std::array<int, kHandMax> cards_{};
  size_t size_ = 0;
};

// Returns `hand_size` numbers below `deck_size`; fewer if the deck or kHandMax is smaller. All sets are equally likely over the
// values of `hash`.
Hand deal(uint64_t hash, int deck_size, int hand_size);

// The hash of a flow: of its schema's name and its distinguisher. Usually without allocation.
uint64_t hash_flow(std::string_view schema, std::string_view distinguisher);

}  // namespace coracle::flowcontrol
