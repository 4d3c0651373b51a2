// SPDX-License-Identifier: Apache-2.0
// See shuffle.h.
#include "daemon/flowcontrol/shuffle.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/sha256.h"

namespace coracle::flowcontrol {

std::vector<int> deal(uint64_t hash, int deck_size, int hand_size) {
  hand_size = std::min(hand_size, deck_size);
  std::vector<int> hand, sorted;
  hand.reserve(size_t(hand_size)), sorted.reserve(size_t(hand_size));
  for (int left = deck_size; int(hand.size()) < hand_size; left--) {
    int card = int(hash % uint64_t(left));  // index among the remaining cards
    hash /= uint64_t(left);
    for (int dealt : sorted)  // ascending: each dealt card below it moves it up
      if (card >= dealt) card++;
    hand.push_back(card);
    sorted.insert(std::lower_bound(sorted.begin(), sorted.end(), card), card);
  }
  return hand;
}

uint64_t hash_flow(std::string_view schema, std::string_view distinguisher) {
  thread_local struct {
    std::string text;
    uint64_t hash = 0;
  } last;  // cached per thread, because a thread often serves one connection, usually of one user
  if (last.text.size() != schema.size() + 1 + distinguisher.size() || !last.text.starts_with(schema) ||
      last.text[schema.size()] != '\0' || !last.text.ends_with(distinguisher)) {
    last.text.assign(schema).push_back('\0');  // names do not contain it
    last.text.append(distinguisher);
    const Sha256 digest = sha256_of(last.text);
    std::memcpy(&last.hash, digest.data(), sizeof last.hash);
  }
  return last.hash;
}

}  // namespace coracle::flowcontrol
