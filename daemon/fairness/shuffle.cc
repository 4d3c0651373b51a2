// SPDX-License-Identifier: Apache-2.0
// See shuffle.h.
#include "daemon/fairness/shuffle.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "daemon/access/sha256.h"

namespace coracle::fairness {

std::vector<int> deal(uint64_t hash, int deck_size, int hand_size) {
  hand_size = std::min(hand_size, deck_size);
  std::vector<int> hand, sorted;
  for (int left = deck_size; int(hand.size()) < hand_size; left--) {
    int card = int(hash % uint64_t(left));  // among those that are left
    hash /= uint64_t(left);
    for (int dealt : sorted)  // ascending: each one below it moves it up
      if (card >= dealt) card++;
    hand.push_back(card);
    sorted.insert(std::lower_bound(sorted.begin(), sorted.end(), card), card);
  }
  return hand;
}

uint64_t hash_flow(std::string_view schema, std::string_view distinguisher) {
  std::string text(schema);
  text += '\0';  // no name holds it
  text += distinguisher;
  const access::Sha256 digest = access::sha256_of(text);
  uint64_t out;
  std::memcpy(&out, digest.data(), sizeof out);
  return out;
}

}  // namespace coracle::fairness
