// SPDX-License-Identifier: Apache-2.0
// Firewall: applies a Ruleset to the kernel in one transaction, through libnftables. It keeps the last applied rules and sends
// only the difference. If the kernel's table was changed from outside (someone has reloaded the machine's firewall and flushed
// all tables), it replaces the whole table. The elements that packets have added to dynamic sets (the clients of session
// affinity) are copied to the new table. Not thread-safe. Source: libnftables(3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/network/ruleset.h"
#include "runtime/base/result.h"

namespace coracle::network {

inline constexpr size_t kCarriedElementsMax = 65536;  // of all dynamic sets; further elements are lost

class Firewall {
 public:
  // Applies `rules`; does nothing if they are equal to the last applied ones. Returns whether the whole table was replaced.
  // Blocks about 0.15 ms per changed element. Errors: internal with nft's message; then the kernel's rules are unchanged.
  Result<bool> apply(const Ruleset& rules);
  // Replaces one part of the applied rules by another; is_replaceable() must hold. Errors: as apply; then the next apply replaces
  // the table.
  Result<void> apply_part(const Ruleset& before, const Ruleset& after);
  const Ruleset* applied() const { return applied_ ? &*applied_ : nullptr; }  // null: they are not known
  void forget() { applied_.reset(); }                                         // the next apply replaces the table
  uint64_t transactions() const { return transactions_; }  // number of transactions that the kernel has accepted
  static Result<void> remove();                            // removes the table; succeeds if there is none
  static Result<void> run(const std::string& script);      // runs one nft script atomically. Errors: nft's message

 private:
  std::optional<Ruleset> applied_;
  uint64_t transactions_ = 0;
};

}  // namespace coracle::network
