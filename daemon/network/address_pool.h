// SPDX-License-Identifier: Apache-2.0
// AddressPool: which pod has which address. Pure bookkeeping, no I/O: the records (records.h) say after a restart who has
// what. Addresses are handed out in turn, so that one that has just been given back rests as long as possible: peers and
// the kernel (connection tracking, a veth still being torn down) may remember its last owner.
#pragma once

#include <map>
#include <string>

#include "daemon/network/address.h"

namespace coracle::network {

class AddressPool {
 public:
  // The first address after the network's own is the gateway's; the last is left alone (broadcast).
  explicit AddressPool(Ipv4Range range) : range_(range), next_(kFirstOffset) {}

  Ipv4 gateway() const { return range_.at(1); }
  const Ipv4Range& range() const { return range_; }
  size_t used() const { return owners_.size(); }

  // The same owner gets what it has. Errors: unavailable when every address is taken.
  Result<Ipv4> take(const std::string& owner);
  // As told by a record. Errors: invalid outside the range, conflict when somebody else has it.
  Result<void> restore(const std::string& owner, Ipv4 address);
  void give_back(const std::string& owner);
  Ipv4 of(const std::string& owner) const;  // none when it has none

 private:
  static constexpr uint32_t kFirstOffset = 2;

  Ipv4Range range_;
  uint32_t next_;  // offset to try first
  std::map<Ipv4, std::string> owners_;
  std::map<std::string, Ipv4> addresses_;
};

}  // namespace coracle::network
