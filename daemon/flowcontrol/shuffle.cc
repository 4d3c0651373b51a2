// SPDX-License-Identifier: Apache-2.0
// See shuffle.h.
#include "daemon/flowcontrol/shuffle.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/sha256.h"

namespace coracle::flowcontrol {

Hand deal(uint64_t hash, int deck_size, int hand_size) {
  hand_size = std::min({hand_size, deck_size, kHandMax});
  Hand hand;
  std::array<int, kHandMax> sorted;  // the dealt cards, ascending
  for (int dealt = 0; dealt < hand_size; dealt++) {
    const uint64_t left = uint64_t(deck_size - dealt);
    int card = int(hash % left);  // index among the remaining cards
    hash /= left;
    int at = 0;
    for (; at < dealt && card >= sorted[size_t(at)]; at++) card++;  // each dealt card below it moves it up
    std::copy_backward(sorted.begin() + at, sorted.begin() + dealt, sorted.begin() + dealt + 1);
    sorted[size_t(at)] = card;
    hand.add(card);
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
