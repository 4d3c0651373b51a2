// SPDX-License-Identifier: Apache-2.0
// Token cache: recent results of token checks, because a signature check takes three times as long as answering a request.
//   token ──SHA-256──▶ digest ──find──▶ Finding, with the revisions of the objects that it depends on; the user of the finding
//   checks that they are unchanged
// So a cached token is as valid as a newly checked one: deletion or recreation of its account, pod, node or secret ends it with
// the next request, and so does its expiry time. Tokens themselves are not stored here; a connection keeps its last one
// (recent_token.h). A cache belongs to one signing key.
// Thread-safe. Source: Kubernetes apiserver authentication/token/cache (ten seconds, successes only).
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/base/sha256.h"
#include "store/engine/engine.h"
#include "store/object/user.h"

namespace coracle::auth {

constexpr size_t kTokensRememberedMax = 1024;  // beyond, the least recently used one is removed
constexpr std::chrono::seconds kTokenRemembered{10};

using TokenDigest = Sha256;

struct Finding {  // the result for an accepted token
  User user;
  std::vector<std::string> audiences;  // that it is valid for
  // Validity in seconds since 1970: from `from`, until before `until`.
  std::chrono::seconds from = std::chrono::seconds::min(), until = std::chrono::seconds::max();
  std::vector<engine::Seen> rests_on;
};
using FindingPtr = std::shared_ptr<const Finding>;

class TokenCache {
 public:
  explicit TokenCache(size_t most = kTokensRememberedMax) : most_(most) {}
  // Null if there is no entry or it is too old.
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
    std::list<Entry> by_use;  // the most recently used first
    std::map<TokenDigest, std::list<Entry>::iterator> by_token;
    void erase(std::list<Entry>::iterator entry) {
      by_token.erase(entry->token);
      by_use.erase(entry);
    }
  };
  const size_t most_;
  Guarded<Entries> entries_;
};

}  // namespace coracle::auth
