// SPDX-License-Identifier: Apache-2.0
// AddressPool: the assignment of addresses to pods. Pure, no I/O: it is restored from the records (attachment.h) after a restart.
// Addresses are assigned in turn, so that a released address is reused as late as possible: peers and the kernel (connection
// tracking, a veth that is still being removed) may still refer to its last owner.
#pragma once

#include <map>
#include <string>

#include "daemon/network/address.h"

namespace coracle::network {

class AddressPool {
 public:
  // The first address after the network address is the gateway's. The last one (broadcast) is not assigned.
  explicit AddressPool(Ipv4Range range) : range_(range), next_(kFirstOffset) {}

  Ipv4 gateway() const { return range_.at(1); }
  const Ipv4Range& range() const { return range_; }
  size_t used() const { return owners_.size(); }

  // Assigns an address; an owner that has one already gets the same. Errors: unavailable if all addresses are assigned.
  Result<Ipv4> take(const std::string& owner);
  // Restores an assignment from a record. Errors: invalid outside the range, conflict if the address has another owner.
  Result<void> restore(const std::string& owner, Ipv4 address);
  void give_back(const std::string& owner);
  Ipv4 of(const std::string& owner) const;  // empty if it has none

 private:
  static constexpr uint32_t kFirstOffset = 2;

  Ipv4Range range_;
  uint32_t next_;  // offset to try first
  std::map<Ipv4, std::string> owners_;
  std::map<std::string, Ipv4> addresses_;
};

}  // namespace coracle::network
