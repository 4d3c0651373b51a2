// SPDX-License-Identifier: Apache-2.0
// See token_cache.h.
#include "daemon/auth/token_cache.h"

namespace coracle::auth {

FindingPtr TokenCache::find(const TokenDigest& token, SteadyTime now) {
  return entries_.with([&](Entries& entries) -> FindingPtr {
    auto found = entries.by_token.find(token);
    if (found == entries.by_token.end()) return nullptr;
    auto entry = found->second;
    if (entry->until <= now) return entries.erase(entry), nullptr;
    entries.by_use.splice(entries.by_use.begin(), entries.by_use, entry);
    return entry->finding;
  });
}

void TokenCache::put(const TokenDigest& token, FindingPtr finding, SteadyTime now) {
  entries_.with([&](Entries& entries) {
    if (auto found = entries.by_token.find(token); found != entries.by_token.end()) entries.erase(found->second);
    while (!entries.by_use.empty() && entries.by_use.size() >= most_) entries.erase(std::prev(entries.by_use.end()));
    entries.by_use.push_front({token, std::move(finding), now + kTokenRemembered});
    entries.by_token.emplace(token, entries.by_use.begin());
  });
}

void TokenCache::forget(const TokenDigest& token) {
  entries_.with([&](Entries& entries) {
    if (auto found = entries.by_token.find(token); found != entries.by_token.end()) entries.erase(found->second);
  });
}

void TokenCache::clear() {
  Entries none;  // freed outside the lock
  entries_.with([&](Entries& entries) { std::swap(entries, none); });
}

size_t TokenCache::size() const {
  return entries_.with([](const Entries& entries) { return entries.by_use.size(); });
}

}  // namespace coracle::auth
