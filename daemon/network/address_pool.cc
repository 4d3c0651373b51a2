// SPDX-License-Identifier: Apache-2.0
// See address_pool.h.
#include "daemon/network/address_pool.h"

#include <algorithm>

namespace coracle::network {

Result<Ipv4> AddressPool::take(const std::string& owner) {
  if (Ipv4 has = of(owner)) return has;
  uint64_t end = range_.size() - 1;  // excludes the broadcast address
  for (uint64_t tried = kFirstOffset; tried < end; ++tried) {
    Ipv4 candidate = range_.at(next_);
    next_ = next_ + 1 >= end ? kFirstOffset : next_ + 1;
    if (owners_.contains(candidate)) continue;
    owners_[candidate] = owner;
    addresses_[owner] = candidate;
    return candidate;
  }
  return Error(Code::unavailable, "no free address in " + range_.text());
}

Result<void> AddressPool::restore(const std::string& owner, Ipv4 address) {
  uint32_t offset = address.value - range_.base.value;
  if (!range_.contains(address) || offset < kFirstOffset || address == range_.last())
    return Error(Code::invalid, address.text() + " is no pod address of " + range_.text());
  auto [taken, fresh] = owners_.try_emplace(address, owner);
  if (!fresh && taken->second != owner) return Error(Code::conflict, address.text() + " is " + taken->second + "'s");
  addresses_[owner] = address;
  next_ = std::max(next_, offset + 1);
  if (next_ >= range_.size() - 1) next_ = kFirstOffset;
  return {};
}

void AddressPool::give_back(const std::string& owner) {
  auto found = addresses_.find(owner);
  if (found == addresses_.end()) return;
  owners_.erase(found->second);
  addresses_.erase(found);
}

Ipv4 AddressPool::of(const std::string& owner) const {
  auto found = addresses_.find(owner);
  return found == addresses_.end() ? Ipv4{} : found->second;
}

}  // namespace coracle::network
