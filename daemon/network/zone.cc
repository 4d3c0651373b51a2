// SPDX-License-Identifier: Apache-2.0
// See zone.h.
#include "daemon/network/zone.h"

#include <algorithm>
#include <set>
#include <span>

#include "daemon/network/endpoints.h"
#include "runtime/base/text.h"
#include "store/object/object.h"

namespace coracle::network {
namespace {

constexpr std::string_view kReverse = "in-addr.arpa";
constexpr int kAliasesMax = 8;  // an ExternalName may refer to another ExternalName

using Labels = std::span<const std::string_view>;

std::string dashed(Ipv4 address) {
  std::string text = address.text();
  std::replace(text.begin(), text.end(), '.', '-');
  return text;
}

Ipv4 undashed(std::string_view label) {
  std::string text(label);
  std::replace(text.begin(), text.end(), '-', '.');
  return Ipv4::parse(text).value_or({});
}

std::string host_of(const view::Endpoint& endpoint, Ipv4 address) {
  return endpoint.hostname().empty() ? dashed(address) : to_lower(endpoint.hostname());
}

template <typename Visit>
void each_ready_endpoint(const std::vector<ObjectPtr>& slices, Visit visit) {
  for (const ObjectPtr& object : slices) {
    view::EndpointSlice slice(*object);
    if (slice.address_type() != "IPv4") continue;
    for (view::Endpoint endpoint : slice.endpoints())
      if (Ipv4 address = address_of(endpoint); address && ready(endpoint)) visit(slice, endpoint, address);
  }
}

void sort_and_bound(std::vector<Record>& records) {
  std::sort(records.begin(), records.end());
  records.erase(std::unique(records.begin(), records.end()), records.end());
  if (records.size() > kZoneRecordsMax) records.resize(kZoneRecordsMax);
}

class Asked {
 public:
  Asked(const ZoneConfig& zone, const ZoneSource& source, std::string_view name, RecordType type)
      : zone_(zone), source_(source), name_(name), type_(type) {}

  // `labels` of the name below the zone, outermost last: {"web", "default", "svc"}.
  ZoneAnswer below(Labels labels) {
    if (labels.empty()) return apex();
    std::string_view top = labels.back();
    Labels rest = labels.first(labels.size() - 1);
    if (top == "svc") return below_svc(rest);
    if (top == "pod") return below_pod(rest);
    if (top == "dns-version" && rest.empty()) return records({{text("1.1.0")}});
    if (top == "dns" && rest.empty()) return nothing();
    if (top == "dns" && rest.size() == 1 && rest[0] == "ns") return records({{here(zone_.dns)}});
    return unknown();
  }

  ZoneAnswer reverse(Ipv4 address, std::string authority) {
    std::vector<Record> out;
    if (ObjectPtr service = source_.service_at(address)) out.push_back(pointer(service_name(service->key())));
    for (const ObjectPtr& object : source_.slices_at(address)) add_endpoint_names(*object, address, out);
    if (out.empty())
      if (ObjectPtr pod = source_.pod_at(address))
        out.push_back(pointer(dashed(address) + "." + pod->ns() + ".pod." + zone_.domain));
    ZoneAnswer reply = out.empty() ? unknown() : records(std::move(out));
    reply.authority = std::move(authority);
    return reply;
  }

 private:
  // ---- names of the zone ----

  ZoneAnswer apex() {
    if (type_ == RecordType::soa) {
      ZoneAnswer reply;  // the encoder adds the SOA to the answer section
      reply.answer.push_back({std::string(name_), RecordType::soa, {}, "", 0});
      return reply;
    }
    ZoneAnswer reply = records({{std::string(name_), RecordType::ns, {}, "ns.dns." + zone_.domain, 0}});
    if (!reply.answer.empty()) reply.additional.push_back({"ns.dns." + zone_.domain, RecordType::a, zone_.dns, "", 0});
    return reply;
  }

  ZoneAnswer below_svc(Labels labels) {
    if (labels.empty()) return nothing();
    std::string_view ns = labels.back();
    if (labels.size() == 1) return source_.has_services(ns) ? nothing() : unknown();
    Key key{std::string(ns), std::string(labels[labels.size() - 2])};
    ObjectPtr object = source_.service(key);
    if (!object) return unknown();
    view::Service service(*object);
    Labels rest = labels.first(labels.size() - 2);
    if (service.spec().type() == "ExternalName") return rest.empty() ? alias(service) : unknown();
    if (rest.empty()) return service_itself(service, key);
    if (rest.size() == 1 && rest[0].starts_with('_')) return protocol_node(service, rest[0]);
    if (rest.size() == 1) return endpoint_named(key, rest[0]);
    if (rest.size() == 2) return port_named(service, key, rest[0], rest[1]);
    return unknown();
  }

  ZoneAnswer below_pod(Labels labels) {
    if (labels.empty()) return nothing();
    if (labels.size() == 1) return source_.has_services(labels[0]) ? nothing() : unknown();
    Ipv4 address = labels.size() == 2 ? undashed(labels[0]) : Ipv4{};
    return address ? records({{here(address)}}) : unknown();
  }

  // ---- one Service ----

  ZoneAnswer service_itself(const view::Service& service, const Key& key) {
    if (!headless(service)) {
      Ipv4 address = cluster_address(service);
      return address ? records({{here(address)}}) : nothing();
    }
    std::vector<Record> out;
    each_ready_endpoint(source_.slices(key), [&](auto&, auto&, Ipv4 address) { out.push_back(here(address)); });
    return out.empty() ? unknown() : records(std::move(out));
  }

  ZoneAnswer endpoint_named(const Key& key, std::string_view host) {
    std::vector<Record> out;
    each_ready_endpoint(source_.slices(key), [&](auto&, const view::Endpoint& endpoint, Ipv4 address) {
      if (host == host_of(endpoint, address) || host == dashed(address)) out.push_back(here(address));
    });
    return out.empty() ? unknown() : records(std::move(out));
  }

  // _tcp.<service>: exists if there are names below it.
  ZoneAnswer protocol_node(const view::Service& service, std::string_view protocol) {
    for (view::ServicePort port : service.spec().ports())
      if (!port.name().empty() && protocol.substr(1) == protocol_label(port)) return nothing();
    return unknown();
  }

  ZoneAnswer port_named(const view::Service& service, const Key& key, std::string_view name, std::string_view protocol) {
    if (!name.starts_with('_') || !protocol.starts_with('_')) return unknown();
    name.remove_prefix(1), protocol.remove_prefix(1);
    for (view::ServicePort port : service.spec().ports()) {
      if (port.name().empty() || name != to_lower(port.name()) || protocol != protocol_label(port)) continue;
      return headless(service) ? endpoint_ports(key, port) : service_port(service, key, port);
    }
    return unknown();
  }

  ZoneAnswer service_port(const view::Service& service, const Key& key, const view::ServicePort& port) {
    Ipv4 address = cluster_address(service);
    if (!address) return nothing();
    ZoneAnswer reply = records({{std::string(name_), RecordType::srv, {}, service_name(key), uint16_t(port.port())}});
    if (!reply.answer.empty()) reply.additional.push_back({service_name(key), RecordType::a, address, "", 0});
    return reply;
  }

  ZoneAnswer endpoint_ports(const Key& key, const view::ServicePort& port) {
    std::vector<Record> out, hosts;
    for (const ObjectPtr& slice : source_.slices(key)) {
      std::set<uint16_t> numbers;  // once per slice, which may have a thousand endpoints and many more ports
      for (view::DiscoveryEndpointPort at : view::EndpointSlice(*slice).ports())
        if (at.name() == port.name() && at.port() > 0) numbers.insert(uint16_t(at.port()));
      if (numbers.empty()) continue;
      each_ready_endpoint({slice}, [&](auto&, const view::Endpoint& endpoint, Ipv4 address) {
        std::string host = host_of(endpoint, address) + "." + service_name(key);
        hosts.push_back({host, RecordType::a, address, "", 0});
        for (uint16_t number : numbers) out.push_back({std::string(name_), RecordType::srv, {}, host, number});
      });
    }
    if (out.empty()) return unknown();
    ZoneAnswer reply = records(std::move(out));
    if (!reply.answer.empty()) reply.additional = std::move(hosts);
    sort_and_bound(reply.additional);
    return reply;
  }

  ZoneAnswer alias(const view::Service& service) {
    std::string target = to_lower(service.spec().external_name());
    if (target.ends_with('.')) target.pop_back();
    if (target.empty()) return nothing();
    ZoneAnswer reply;
    reply.authority = zone_.domain;
    reply.answer.push_back({std::string(name_), RecordType::cname, {}, target, 0});
    if (type_ != RecordType::cname) reply.outside = std::move(target);
    return reply;
  }

  void add_endpoint_names(const Object& slice, Ipv4 address, std::vector<Record>& out) {
    Key key{slice.ns(), std::string(slice.label(kServiceNameLabel))};
    ObjectPtr service = key.name.empty() ? nullptr : source_.service(key);
    if (!service || !headless(view::Service(*service))) return;
    for (view::Endpoint endpoint : view::EndpointSlice(slice).endpoints())
      if (ready(endpoint) && address_of(endpoint) == address)
        out.push_back(pointer(host_of(endpoint, address) + "." + service_name(key)));
  }

  // ---- records and replies ----

  static std::string protocol_label(const view::ServicePort& port) {
    return port.protocol().empty() ? "tcp" : to_lower(port.protocol());
  }
  std::string service_name(const Key& key) const { return key.name + "." + key.ns + ".svc." + zone_.domain; }
  Record here(Ipv4 address) const { return {std::string(name_), RecordType::a, address, "", 0}; }
  Record pointer(std::string target) const { return {std::string(name_), RecordType::ptr, {}, std::move(target), 0}; }
  Record text(std::string value) const { return {std::string(name_), RecordType::txt, {}, std::move(value), 0}; }

  // The name has these records; the question may ask for another type.
  ZoneAnswer records(std::vector<Record> all) const {
    ZoneAnswer reply = nothing();
    for (Record& record : all)
      if (record.type == type_ || type_ == RecordType::any) reply.answer.push_back(std::move(record));
    sort_and_bound(reply.answer);
    return reply;
  }
  ZoneAnswer nothing() const {
    ZoneAnswer reply;
    reply.authority = zone_.domain;
    return reply;
  }
  ZoneAnswer unknown() const {
    ZoneAnswer reply = nothing();
    reply.exists = false;
    return reply;
  }

  const ZoneConfig& zone_;
  const ZoneSource& source_;
  std::string_view name_;
  RecordType type_;
};

bool below(std::string_view name, std::string_view zone) {
  return name == zone || (name.size() > zone.size() && name.ends_with(zone) && name[name.size() - zone.size() - 1] == '.');
}

// The reverse zone of the whole octets in the range's prefix: 10.96.0.0/12 is in 10.in-addr.arpa.
std::string reverse_zone(const Ipv4Range& range) {
  std::string out(kReverse);
  for (int octet = 0; octet < range.bits / 8; ++octet)
    out = std::to_string(range.base.value >> (24 - 8 * octet) & 0xff) + "." + out;
  return out;
}

// Parses a complete "4.3.2.10.in-addr.arpa"; other names are not addresses.
Ipv4 reversed(std::string_view name) {
  if (!below(name, kReverse) || name == kReverse) return {};
  std::vector<std::string_view> labels = split(name.substr(0, name.size() - kReverse.size() - 1), '.');
  if (labels.size() != 4) return {};
  std::string text;
  for (size_t i = labels.size(); i-- > 0;) text.append(labels[i]).append(i > 0 ? "." : "");
  return Ipv4::parse(text).value_or({});
}

std::optional<ZoneAnswer> answer_reverse(const ZoneConfig& zone, const ZoneSource& source, std::string_view name,
                                         RecordType type) {
  Ipv4 address = reversed(name);
  if (!address) return std::nullopt;
  for (const Ipv4Range& range : {zone.services, zone.pods})
    if (range.contains(address)) return Asked(zone, source, name, type).reverse(address, reverse_zone(range));
  return std::nullopt;
}

}  // namespace

std::optional<ZoneAnswer> answer(const ZoneConfig& zone, const ZoneSource& source, std::string_view name, RecordType type) {
  if (!below(name, zone.domain)) return answer_reverse(zone, source, name, type);
  std::vector<std::string_view> labels;
  if (name.size() > zone.domain.size()) labels = split(name.substr(0, name.size() - zone.domain.size() - 1), '.');
  ZoneAnswer reply = Asked(zone, source, name, type).below(labels);

  // Resolves an alias to a name in the zone; its records follow the alias.
  for (int hops = 0; !reply.outside.empty() && hops < kAliasesMax && below(reply.outside, zone.domain); ++hops) {
    std::string target = std::exchange(reply.outside, "");
    labels.clear();
    std::string_view rest(target);
    if (rest.size() > zone.domain.size()) labels = split(rest.substr(0, rest.size() - zone.domain.size() - 1), '.');
    ZoneAnswer further = Asked(zone, source, target, type).below(labels);
    std::move(further.answer.begin(), further.answer.end(), std::back_inserter(reply.answer));
    std::move(further.additional.begin(), further.additional.end(), std::back_inserter(reply.additional));
    reply.exists = further.exists;
    reply.outside = std::move(further.outside);
  }
  if (below(reply.outside, zone.domain)) reply.outside.clear();  // an alias loop
  return reply;
}

}  // namespace coracle::network
