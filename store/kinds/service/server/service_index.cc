// SPDX-License-Identifier: Apache-2.0
// See service_index.h.
#include "store/kinds/service/server/service_index.h"

#include "store/kinds/service/server/address_range.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

// `begin` is called with values that nobody had before, `end` with those that nobody has now.
template <typename Counts, typename Values, typename F>
void count_in(Counts& counts, const Values& values, F&& begin) {
  for (const auto& one : values)
    if (++counts[one] == 1) begin(one);
}

template <typename Counts, typename Values, typename F>
void count_out(Counts& counts, const Values& values, F&& end) {
  for (const auto& one : values)
    if (auto found = counts.find(one); --found->second == 0) counts.erase(found), end(one);
}

template <typename Counts, typename Value>
size_t count_of(const Counts& counts, const Value& value) {
  auto found = counts.find(value);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

ServiceIndex::Allocated ServiceIndex::Allocated::of(const json::value& service) {
  Allocated out;
  view::ServiceSpec spec = view::Service(service).spec();
  for (std::string_view text : spec.cluster_ips())
    if (auto address = parse_address(text)) out.addresses.insert(*address);
  for (view::ServicePort port : spec.ports())
    if (int64_t number = port.node_port()) out.ports.insert(number);
  if (int64_t number = spec.health_check_node_port()) out.ports.insert(number);
  return out;
}

void ServiceIndex::Counts::add(const Allocated& allocated) {
  count_in(addresses, allocated.addresses, [this](uint32_t address) { taken_addresses.add(address); });
  count_in(ports, allocated.ports, [this](int64_t port) { taken_ports.add(port); });
}

void ServiceIndex::Counts::take(const Allocated& allocated) {
  count_out(addresses, allocated.addresses, [this](uint32_t address) { taken_addresses.remove(address); });
  count_out(ports, allocated.ports, [this](int64_t port) { taken_ports.remove(port); });
}

bool ServiceIndex::AllocatedByOthers::has_address(uint32_t address) const {
  return count_of(index_.counts_.addresses, address) > count_of(own_.addresses, address);
}

bool ServiceIndex::AllocatedByOthers::has_port(int64_t port) const {
  return count_of(index_.counts_.ports, port) > count_of(own_.ports, port);
}

std::optional<uint32_t> ServiceIndex::AllocatedByOthers::free_address(uint32_t first, uint32_t last) const {
  int64_t found = index_.counts_.taken_addresses.lowest_free(first);
  for (auto own = own_.addresses.lower_bound(first); own != own_.addresses.end() && own->first < found; ++own)
    if (!has_address(own->first)) found = own->first;  // free for the Service that has it
  return found <= last ? std::optional(uint32_t(found)) : std::nullopt;
}

std::optional<int64_t> ServiceIndex::AllocatedByOthers::free_port(int64_t first, int64_t last) const {
  int64_t found = index_.counts_.taken_ports.lowest_free(first);
  for (auto own = own_.ports.lower_bound(first); own != own_.ports.end() && own->first < found; ++own)
    if (!has_port(own->first)) found = own->first;
  return found <= last ? std::optional(found) : std::nullopt;
}

Result<ServiceIndex::AllocatedByOthers> ServiceIndex::allocated_by_others(std::string_view uid) {
  TRY(refresh());
  AllocatedByOthers others(*this);
  if (auto own = allocated_.find(uid); own != allocated_.end()) others.own_.add(own->second);
  for (auto [held, end] = held_.equal_range(uid); held != end; ++held) others.own_.add(held->second);
  return others;
}

ServiceIndex::Held ServiceIndex::hold(std::string_view uid, Allocated allocated) {
  counts_.add(allocated);
  return held_.emplace(uid, std::move(allocated));
}

void ServiceIndex::give_back(Held held) {
  counts_.take(held->second);
  held_.erase(held);
}

void ServiceIndex::release(const std::string& uid) {
  auto found = allocated_.find(uid);
  if (found == allocated_.end()) return;
  counts_.take(found->second);
  allocated_.erase(found);
}

void ServiceIndex::put(const Object& service, bool gone) {
  release(service.uid());
  if (gone) return;
  Allocated allocated = Allocated::of(service.json());
  if (allocated.addresses.empty() && allocated.ports.empty()) return;
  counts_.add(allocated);
  allocated_.emplace(service.uid(), std::move(allocated));
}

Result<void> ServiceIndex::refresh() {
  while (!watcher_ || !drain(*watcher_, [this](const Object& service, bool is_gone) { put(service, is_gone); })) {
    allocated_.clear(), counts_ = {};
    for (const auto& [uid, held] : held_) counts_.add(held);
    watcher_.reset();
    watcher_ = TRY(engine_.watch(kService, "", 0).wrap("the Services' addresses and ports are not known"));
  }
  return {};
}

}  // namespace coracle::kinds
