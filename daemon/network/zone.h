// SPDX-License-Identifier: Apache-2.0
// Zone: the DNS records of the cluster. Pure: a question and the objects in, records out; packets and sockets are in
// dns_message.h and dns_server.h. Nothing is cached: answers are read from the informers' objects.
//
//   <service>.<ns>.svc.<zone>                 A  cluster IP; headless: every ready endpoint; ExternalName: CNAME
//   <host>.<service>.<ns>.svc.<zone>          A  one endpoint, by its hostname or as a-b-c-d
//   _<port>._<protocol>.<service>.<ns>.svc.…  SRV
//   <a>-<b>-<c>-<d>.<ns>.pod.<zone>           A
//   <d>.<c>.<b>.<a>.in-addr.arpa              PTR of Services, endpoints of headless Services, pods
//
// A name that does not exist gets NXDOMAIN; a name without records of that type gets an empty answer (NODATA). Both contain the
// zone's SOA, so that resolvers can cache them. Source: Kubernetes DNS-Based Service Discovery 1.1.0; RFC 1035, 2308, 2782.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/network/address.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::network {

inline constexpr uint32_t kZoneTtlSeconds = 5;
inline constexpr size_t kZoneRecordsMax = 1000;  // per answer

enum class RecordType : uint16_t { a = 1, ns = 2, cname = 5, soa = 6, ptr = 12, txt = 16, aaaa = 28, srv = 33, any = 255 };

struct Record {  // names are dotted, lower case, without the last dot
  std::string name;
  RecordType type = RecordType::a;
  Ipv4 address;        // A
  std::string target;  // CNAME, NS, PTR, SRV; for TXT the text
  uint16_t port = 0;   // SRV
  auto operator<=>(const Record&) const = default;
};

struct ZoneAnswer {
  bool exists = true;  // false: NXDOMAIN
  std::vector<Record> answer;
  std::vector<Record> additional;
  // The zone whose SOA is sent with an answer without records: "cluster.local", "0.244.10.in-addr.arpa".
  std::string authority;
  // The target of the answer's CNAME, if it is outside of the zone: its records must be resolved upstream.
  std::string outside;
};

// Access to the objects. Implemented with informers (zone_source.h) and by tests.
class ZoneSource {
 public:
  virtual ~ZoneSource() = default;
  virtual ObjectPtr service(const Key& key) const = 0;
  virtual std::vector<ObjectPtr> slices(const Key& service) const = 0;
  virtual bool has_services(std::string_view ns) const = 0;  // the namespace has names below svc
  virtual ObjectPtr service_at(Ipv4 cluster_address) const = 0;
  virtual std::vector<ObjectPtr> slices_at(Ipv4 endpoint) const = 0;
  virtual ObjectPtr pod_at(Ipv4 address) const = 0;
};

struct ZoneConfig {
  std::string domain = "cluster.local";
  Ipv4Range pods, services;
  Ipv4 dns;
};

// `name` is dotted, lower case, without the last dot. Returns nullopt if it is not in the cluster's zones: then forward it.
std::optional<ZoneAnswer> answer(const ZoneConfig& zone, const ZoneSource& source, std::string_view name, RecordType type);

}  // namespace coracle::network
