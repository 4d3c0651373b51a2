// SPDX-License-Identifier: Apache-2.0
// See service_index.h.
#include "store/kinds/service/server/service_index.h"

#include "store/kinds/service/server/address_range.h"
#include "store/object/object.h"

namespace coracle::kinds {
namespace {

ServiceIndex::Allocated allocated_to(const Object& service) {
  ServiceIndex::Allocated out;
  for (const json::value& text : get_array(service.json(), "spec.clusterIPs"))
    if (auto address = text.is_string() ? parse_address(text.get_string()) : std::nullopt) out.addresses.insert(*address);
  for (const json::value& port : get_array(service.json(), "spec.ports"))
    if (int64_t number = get_int(port, "nodePort")) out.ports.emplace(number, get_string(port, "protocol"));
  if (int64_t number = get_int(service.json(), "spec.healthCheckNodePort")) out.ports.emplace(number, "TCP");
  return out;
}

template <typename Counts, typename Held>
void count_out(Counts& counts, const Held& held) {
  for (const auto& one : held)
    if (auto found = counts.find(one); --found->second == 0) counts.erase(found);
}

}  // namespace

bool ServiceIndex::AllocatedByOthers::has(uint32_t address) const {
  auto found = index_.addresses_.find(address);
  return found != index_.addresses_.end() && found->second > size_t(own_ && own_->addresses.contains(address));
}

bool ServiceIndex::AllocatedByOthers::has(const Port& port) const {
  auto found = index_.ports_.find(port);
  return found != index_.ports_.end() && found->second > size_t(own_ && own_->ports.contains(port));
}

std::optional<uint32_t> ServiceIndex::AllocatedByOthers::free_address(uint32_t first, uint32_t last) const {
  uint32_t at = first;
  for (auto taken = index_.addresses_.lower_bound(first); taken != index_.addresses_.end() && taken->first == at; ++taken) {
    if (at > last || (own_ && !has(at))) break;
    ++at;
  }
  return at <= last ? std::optional(at) : std::nullopt;
}

Result<ServiceIndex::AllocatedByOthers> ServiceIndex::allocated_by_others(std::string_view uid) {
  TRY(refresh());
  auto own = allocated_.find(uid);
  return AllocatedByOthers(*this, own == allocated_.end() ? nullptr : &own->second);
}

void ServiceIndex::release(const std::string& uid) {
  auto found = allocated_.find(uid);
  if (found == allocated_.end()) return;
  count_out(addresses_, found->second.addresses);
  count_out(ports_, found->second.ports);
  allocated_.erase(found);
}

void ServiceIndex::put(const Object& service, bool gone) {
  release(service.uid());
  if (gone) return;
  Allocated allocated = allocated_to(service);
  if (allocated.addresses.empty() && allocated.ports.empty()) return;
  for (uint32_t address : allocated.addresses) ++addresses_[address];
  for (const Port& port : allocated.ports) ++ports_[port];
  allocated_.emplace(service.uid(), std::move(allocated));
}

Result<void> ServiceIndex::refresh() {
  while (!watcher_ || !drain(*watcher_, [this](const Object& service, bool is_gone) { put(service, is_gone); })) {
    allocated_.clear(), addresses_.clear(), ports_.clear();
    watcher_.reset();
    watcher_ = TRY(engine_.watch(kService, "", 0).wrap("the Services' addresses and ports are not known"));
  }
  return {};
}

}  // namespace coracle::kinds
