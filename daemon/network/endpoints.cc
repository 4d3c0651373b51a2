// SPDX-License-Identifier: Apache-2.0
// See endpoints.h.
#include "daemon/network/endpoints.h"

#include <algorithm>

#include "store/kinds/service/source_ranges.h"
#include "store/object/object.h"

namespace coracle::network {
namespace {

Ipv4 address_in(std::string_view text) { return Ipv4::parse(text).value_or(Ipv4{}); }

bool serves_while_terminating(const view::Endpoint& endpoint) {
  return endpoint.conditions().terminating() && endpoint.conditions().serving();
}

void sort_each_once(auto& all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

void add_served(const Object& slice, std::set<Ipv4>& to) {
  for (view::Endpoint endpoint : view::EndpointSlice(slice).endpoints())
    if (ready(endpoint) && !endpoint.conditions().terminating()) to.insert(address_of(endpoint));
}

}  // namespace

bool have_same_rules(const Object& before, const Object& after) {
  const json::object &was = before.json().get_object(), &is = after.json().get_object();
  return was.size() == is.size() && same_json(before.labels(), after.labels()) &&
         before.annotation(kSourceRangesAnnotation) == after.annotation(kSourceRangesAnnotation) &&
         std::ranges::all_of(was, [&](const auto& member) {
           const json::value* now = is.if_contains(member.key());
           return now && (member.key() == "metadata" || same_json(*now, member.value()));
         });
}

bool ready(const view::Endpoint& endpoint) {
  view::EndpointConditions conditions = endpoint.conditions();
  return !conditions.has_ready() || conditions.ready();
}

bool acceptable(Ipv4 address) {
  uint32_t first = address.value >> 24, two = address.value >> 16;
  return first != 0 && first != 127 && two != (169u << 8 | 254u) && first < 224;
}

Ipv4 address_of(const view::Endpoint& endpoint) {
  for (std::string_view text : endpoint.addresses())
    if (Ipv4 address = address_in(text); address && acceptable(address)) return address;
  return {};
}

bool headless(const view::Service& service) { return service.spec().cluster_ip() == "None"; }

Ipv4 cluster_address(const view::Service& service) {
  if (service.spec().type() == "ExternalName") return {};
  if (Ipv4 address = address_in(service.spec().cluster_ip())) return address;
  for (std::string_view text : service.spec().cluster_ips())
    if (Ipv4 address = address_in(text)) return address;
  return {};
}

std::string service_of(const Object& slice) {
  std::string_view name = slice.label(kServiceNameLabel);
  return name.empty() ? "" : slice.ns() + "/" + std::string(name);
}

SlicesOfService::SlicesOfService(const std::vector<ObjectPtr>& slices) {
  for (const ObjectPtr& object : slices) {
    view::EndpointSlice slice(*object);
    if (slice.address_type() != "IPv4") continue;
    Slice read{object, {}, {}};
    for (view::Endpoint endpoint : slice.endpoints()) {
      Ipv4 address = address_of(endpoint);
      if (address && ready(endpoint)) read.ready.push_back(address);
      else if (address && serves_while_terminating(endpoint)) read.terminating.push_back(address);
    }
    if (read.ready.empty() && read.terminating.empty()) continue;
    sort_each_once(read.ready), sort_each_once(read.terminating);
    for (view::DiscoveryEndpointPort port : slice.ports()) {
      std::string_view protocol = port.protocol().empty() ? std::string_view("TCP") : port.protocol();
      if (port.port() <= 0 || port.port() > 65535) continue;
      std::vector<At>& at = ports_[{port.name(), protocol}];
      if (at.empty() || at.back().slice != slices_.size()) at.push_back({slices_.size(), uint16_t(port.port())});
    }
    slices_.push_back(std::move(read));
  }
}

std::vector<Backend> SlicesOfService::backends(std::string_view port_name, std::string_view protocol) const {
  std::vector<Backend> out;
  auto found = ports_.find({port_name, protocol});
  if (found == ports_.end()) return out;
  for (auto addresses : {&Slice::ready, &Slice::terminating}) {
    for (const At& at : found->second)
      for (Ipv4 address : slices_[at.slice].*addresses) out.push_back({address, at.port});
    if (!out.empty()) break;
  }
  sort_each_once(out);
  return out;
}

std::set<Ipv4> served_addresses(const std::vector<ObjectPtr>& slices) {
  std::set<Ipv4> out;
  for (const ObjectPtr& slice : slices) add_served(*slice, out);
  return out;
}

std::vector<std::string> served_by(const Object& slice) {
  std::set<Ipv4> addresses;
  add_served(slice, addresses);
  std::vector<std::string> out;
  for (Ipv4 address : addresses) out.push_back(address.text());
  return out;
}

}  // namespace coracle::network
