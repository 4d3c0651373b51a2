// SPDX-License-Identifier: Apache-2.0
// DecisionMemory: what roles have decided since they last changed, because clients ask the same again and again. Each change of a
// role or binding begins a new generation, and nothing of an older one is found: a revoked right ends with the next request.
//   User, Attributes ──▶ key ──find──▶ Decision, or unknown ──▶ roles decide ──put──▶ remembered
// Bounded in entries and bytes: the entries are in two halves, and when one is full, the one that was not used since is dropped.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "daemon/auth/attributes.h"
#include "store/object/user.h"

namespace coracle::auth {

struct Decision {
  bool allowed = false;
  std::string reason;  // RBAC: allowed by ...; or why no decision was possible
};

constexpr size_t kDecisionsRememberedMax = 1024, kDecisionBytesRememberedMax = 256 << 10, kDecisionKeyBytesMax = 2048;

class DecisionMemory {
 public:
  struct Size {
    size_t entries = 0, bytes = 0;  // bytes: about the memory that they take
  };
  explicit DecisionMemory(Size most = {kDecisionsRememberedMax, kDecisionBytesRememberedMax}) : most_(most) {}

  // The key of all requests of this user that differ in the name of the object or in field selectors only; both play no part in
  // what is remembered. "": the key would be too long, and the decision is not to be remembered. Uses the memory of `key`, an
  // earlier one.
  static std::string key_of(const User& user, const Attributes& asked, std::string key = {});

  std::optional<Decision> find(uint64_t generation, const std::string& key);
  // Ignored if the roles have changed since `generation`.
  void put(uint64_t generation, const std::string& key, const Decision& decision);
  Size size() const { return {young_.size.entries + old_.size.entries, young_.size.bytes + old_.size.bytes}; }

 private:
  struct Half {
    std::unordered_map<std::string, Decision> decisions;
    Size size;
  };
  bool is_of(uint64_t generation);
  void add(std::string key, Decision decision);
  const Size most_;
  uint64_t generation_ = 0;
  Half young_, old_;
};

}  // namespace coracle::auth
