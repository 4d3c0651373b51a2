// SPDX-License-Identifier: Apache-2.0
// Firewall: brings a Ruleset into the kernel as one transaction, through libnftables. It remembers what it applied last
// and sends only what differs; when the kernel no longer has what it should (somebody reloaded the machine's firewall, and
// with it flushed everybody's tables), it replaces the whole table. What packets have put into its dynamic sets (the clients that
// session affinity remembers) goes over into the new one. Not thread-safe: one thread's.
// Source: libnftables(3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/network/ruleset.h"
#include "runtime/base/result.h"

namespace coracle::network {

inline constexpr size_t kCarriedElementsMax = 65536;  // of all dynamic sets; further ones are forgotten

class Firewall {
 public:
  // Nothing happens when `rules` is what was applied last. Returns whether the whole table was replaced. Blocks some 0.15 ms
  // per changed element. Errors: internal with nft's own words; then the kernel has what it had.
  Result<bool> apply(const Ruleset& rules);
  void forget() { applied_.reset(); }                      // the next apply replaces the table
  uint64_t transactions() const { return transactions_; }  // how often the kernel took a change from us
  static Result<void> remove();                            // the table; succeeds when there is none
  static Result<void> run(const std::string& script);      // one script of nft, all or nothing. Errors: nft's own words

 private:
  std::optional<Ruleset> applied_;
  uint64_t transactions_ = 0;
};

}  // namespace coracle::network
