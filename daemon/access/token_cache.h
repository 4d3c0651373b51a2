// SPDX-License-Identifier: Apache-2.0
// Token cache: what was found out about tokens lately, for their signature takes three times as long as the answer to a request.
//   token ──SHA-256──▶ digest ──find──▶ Finding, which says what it rests on: whoever uses it asks the engine whether that is
//   unchanged
// So a remembered token is as good as one that is checked: an account, pod, node or secret that was removed or made anew ends it
// with the next request, and the time that it says itself ends it too. Tokens themselves are not kept.
// One belongs to one signing key: another key gets another cache. Thread-safe.
// Source: Kubernetes apiserver authentication/token/cache (ten seconds, good answers only).
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admission/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/base/sha256.h"
#include "store/engine/engine.h"

namespace coracle::access {

constexpr size_t kTokensRememberedMax = 1024;  // beyond, the one that was not used for the longest goes
constexpr std::chrono::seconds kTokenRemembered{10};

using TokenDigest = Sha256;

struct Finding {  // of a token that was believed
  User user;
  std::vector<std::string> audiences;  // whom it is meant for
  // When it may be used, in seconds since 1970: from the first, before the second.
  std::chrono::seconds from = std::chrono::seconds::min(), until = std::chrono::seconds::max();
  std::vector<engine::Seen> rests_on;
};
using FindingPtr = std::shared_ptr<const Finding>;

class TokenCache {
 public:
  explicit TokenCache(size_t most = kTokensRememberedMax) : most_(most) {}
  // Null: nothing is remembered, or it is too old.
  FindingPtr find(const TokenDigest& token, SteadyTime now);
  void put(const TokenDigest& token, FindingPtr finding, SteadyTime now);
  void forget(const TokenDigest& token);
  void clear();
  size_t size() const;

 private:
  struct Entry {
    TokenDigest token;
    FindingPtr finding;
    SteadyTime until;
  };
  struct Entries {
    std::list<Entry> by_use;  // the last used first
    std::map<TokenDigest, std::list<Entry>::iterator> by_token;
    void erase(std::list<Entry>::iterator entry) {
      by_token.erase(entry->token);
      by_use.erase(entry);
    }
  };
  const size_t most_;
  Guarded<Entries> entries_;
};

}  // namespace coracle::access
