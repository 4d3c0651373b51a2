// SPDX-License-Identifier: Apache-2.0
// Resolution of names: a table of queries against a small cluster.
#include "daemon/network/zone.h"

#include <gtest/gtest.h>

#include "daemon/network/endpoints.h"
#include "tests/daemon/network/objects.h"

namespace coracle::network {
namespace {

class FakeSource : public ZoneSource {
 public:
  std::vector<ObjectPtr> services_, slices_, pods_;

  ObjectPtr service(const Key& key) const override {
    for (const ObjectPtr& object : services_)
      if (object->key() == key) return object;
    return nullptr;
  }
  std::vector<ObjectPtr> slices(const Key& service) const override {
    std::vector<ObjectPtr> out;
    for (const ObjectPtr& object : slices_)
      if (service_of(*object) == service.text()) out.push_back(object);
    return out;
  }
  bool has_services(std::string_view ns) const override {
    return std::any_of(services_.begin(), services_.end(), [&](auto& object) { return object->ns() == ns; });
  }
  ObjectPtr service_at(Ipv4 address) const override {
    for (const ObjectPtr& object : services_)
      if (cluster_address(view::Service(*object)) == address) return object;
    return nullptr;
  }
  std::vector<ObjectPtr> slices_at(Ipv4 address) const override {
    std::vector<ObjectPtr> out;
    for (const ObjectPtr& object : slices_)
      for (view::Endpoint endpoint : view::EndpointSlice(*object).endpoints())
        if (address_of(endpoint) == address) out.push_back(object);
    return out;
  }
  ObjectPtr pod_at(Ipv4 address) const override {
    for (const ObjectPtr& object : pods_)
      if (view::Pod(*object).status().pod_ip() == address.text()) return object;
    return nullptr;
  }
};

class Zone : public ::testing::Test {
 protected:
  Zone() {
    config.pods = MUST(Ipv4Range::parse("10.244.0.0/24"));
    config.services = MUST(Ipv4Range::parse("10.96.0.0/12"));
    config.dns = MUST(Ipv4::parse("10.96.0.10"));
    source.services_ = {
        service("kubernetes", R"({"clusterIP":"10.96.0.1","ports":[{"name":"https","port":443,"protocol":"TCP"}]})"),
        service("db", R"({"clusterIP":"None","ports":[{"name":"sql","port":5432,"protocol":"TCP"}]})"),
        service("idle", R"({"clusterIP":"None","ports":[{"name":"sql","port":5432}]})"),
        service("outside", R"({"type":"ExternalName","externalName":"Example.COM."})"),
        service("inside", R"({"type":"ExternalName","externalName":"kubernetes.default.svc.cluster.local"})"),
        service("circle", R"({"type":"ExternalName","externalName":"circle.default.svc.cluster.local"})"),
        service("pending", R"({"ports":[{"name":"http","port":80}]})"),
    };
    source.slices_ = {
        slice("db",
              "[" + endpoint("10.244.0.4", R"(,"hostname":"db-0")" + std::string(kReady)) + "," + endpoint("10.244.0.5", kReady) +
                  "," + endpoint("10.244.0.6", R"(,"hostname":"db-2")" + std::string(kNotReady)) + "]",
              R"([{"name":"sql","port":5433,"protocol":"TCP"}])"),
        slice("idle", "[" + endpoint("10.244.0.6", kNotReady) + "]", R"([{"name":"sql","port":5433}])")};
    source.pods_ = {object(kPod, R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"one"},
      "status":{"podIP":"10.244.0.77"}})")};
  }

  // "NXDOMAIN", "NODATA", "forward", or the records, one per line.
  std::string ask(std::string_view name, RecordType type) {
    std::optional<ZoneAnswer> got = answer(config, source, name, type);
    if (!got) return "forward";
    std::string out;
    for (const Record& record : got->answer) out += text(record);
    for (const Record& record : got->additional) out += "+" + text(record);
    if (!got->outside.empty()) out += "and " + got->outside;
    if (got->answer.empty()) {
      EXPECT_FALSE(got->authority.empty());
      out += got->exists ? "NODATA" : "NXDOMAIN";
    } else {
      EXPECT_TRUE(got->exists);
    }
    return out;
  }

  static std::string text(const Record& record) {
    switch (record.type) {
      case RecordType::a: return "A " + record.address.text() + "\n";
      case RecordType::srv: return "SRV " + std::to_string(record.port) + " " + record.target + "\n";
      case RecordType::cname: return "CNAME " + record.target + "\n";
      case RecordType::ptr: return "PTR " + record.target + "\n";
      case RecordType::ns: return "NS " + record.target + "\n";
      case RecordType::txt: return "TXT " + record.target + "\n";
      case RecordType::soa: return "SOA\n";
      default: return "?\n";
    }
  }

  ZoneConfig config;
  FakeSource source;
};

TEST_F(Zone, answers_as_the_specification_says) {
  using enum RecordType;
  struct Row {
    const char* name;
    RecordType type;
    const char* want;
  };
  const Row rows[] = {
      // Services
      {"kubernetes.default.svc.cluster.local", a, "A 10.96.0.1\n"},
      {"kubernetes.default.svc.cluster.local", aaaa, "NODATA"},
      {"kubernetes.default.svc.cluster.local", any, "A 10.96.0.1\n"},
      {"pending.default.svc.cluster.local", a, "NODATA"},
      {"nobody.default.svc.cluster.local", a, "NXDOMAIN"},
      {"kubernetes.other.svc.cluster.local", a, "NXDOMAIN"},
      {"x.kubernetes.default.svc.cluster.local", a, "NXDOMAIN"},
      {"_https._tcp.kubernetes.default.svc.cluster.local", srv, "SRV 443 kubernetes.default.svc.cluster.local\n+A 10.96.0.1\n"},
      {"_https._tcp.kubernetes.default.svc.cluster.local", a, "NODATA"},
      {"_https._udp.kubernetes.default.svc.cluster.local", srv, "NXDOMAIN"},
      {"_http._tcp.kubernetes.default.svc.cluster.local", srv, "NXDOMAIN"},
      {"_tcp.kubernetes.default.svc.cluster.local", srv, "NODATA"},
      {"_udp.kubernetes.default.svc.cluster.local", srv, "NXDOMAIN"},
      // headless
      {"db.default.svc.cluster.local", a, "A 10.244.0.4\nA 10.244.0.5\n"},
      {"db.default.svc.cluster.local", aaaa, "NODATA"},
      {"db-0.db.default.svc.cluster.local", a, "A 10.244.0.4\n"},
      {"10-244-0-4.db.default.svc.cluster.local", a, "A 10.244.0.4\n"},
      {"10-244-0-5.db.default.svc.cluster.local", a, "A 10.244.0.5\n"},
      {"db-2.db.default.svc.cluster.local", a, "NXDOMAIN"},
      {"_sql._tcp.db.default.svc.cluster.local", srv,
       "SRV 5433 10-244-0-5.db.default.svc.cluster.local\nSRV 5433 db-0.db.default.svc.cluster.local\n"
       "+A 10.244.0.5\n+A 10.244.0.4\n"},
      {"idle.default.svc.cluster.local", a, "NXDOMAIN"},
      // aliases
      {"outside.default.svc.cluster.local", a, "CNAME example.com\nand example.com"},
      {"outside.default.svc.cluster.local", cname, "CNAME example.com\n"},
      {"x.outside.default.svc.cluster.local", a, "NXDOMAIN"},
      {"inside.default.svc.cluster.local", a, "CNAME kubernetes.default.svc.cluster.local\nA 10.96.0.1\n"},
      {"inside.default.svc.cluster.local", aaaa, "CNAME kubernetes.default.svc.cluster.local\n"},
      // pods
      {"10-244-0-4.default.pod.cluster.local", a, "A 10.244.0.4\n"},
      {"10-244-0.default.pod.cluster.local", a, "NXDOMAIN"},
      {"10-244-0-4.default.pod.cluster.local", aaaa, "NODATA"},
      {"x.10-244-0-4.default.pod.cluster.local", a, "NXDOMAIN"},
      // the zone itself
      {"cluster.local", a, "NODATA"},
      {"cluster.local", soa, "SOA\n"},
      {"cluster.local", ns, "NS ns.dns.cluster.local\n+A 10.96.0.10\n"},
      {"ns.dns.cluster.local", a, "A 10.96.0.10\n"},
      {"svc.cluster.local", a, "NODATA"},
      {"default.svc.cluster.local", a, "NODATA"},
      {"nowhere.svc.cluster.local", a, "NXDOMAIN"},
      {"elsewhere.cluster.local", a, "NXDOMAIN"},
      {"dns-version.cluster.local", txt, "TXT 1.1.0\n"},
      // addresses
      {"1.0.96.10.in-addr.arpa", ptr, "PTR kubernetes.default.svc.cluster.local\n"},
      {"4.0.244.10.in-addr.arpa", ptr, "PTR db-0.db.default.svc.cluster.local\n"},
      {"5.0.244.10.in-addr.arpa", ptr, "PTR 10-244-0-5.db.default.svc.cluster.local\n"},
      {"77.0.244.10.in-addr.arpa", ptr, "PTR 10-244-0-77.default.pod.cluster.local\n"},
      {"78.0.244.10.in-addr.arpa", ptr, "NXDOMAIN"},
      {"9.0.96.10.in-addr.arpa", ptr, "NXDOMAIN"},
      {"1.1.168.192.in-addr.arpa", ptr, "forward"},
      {"in-addr.arpa", ptr, "forward"},
      // outside the zone
      {"example.com", a, "forward"},
      {"notcluster.local", a, "forward"},
      {"", a, "forward"},
  };
  for (const Row& row : rows) EXPECT_EQ(ask(row.name, row.type), row.want) << row.name << " " << int(row.type);
}

TEST_F(Zone, a_circle_of_aliases_ends) {
  std::optional<ZoneAnswer> got = answer(config, source, "circle.default.svc.cluster.local", RecordType::a);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->outside, "");
  EXPECT_LT(got->answer.size(), 10u);
}

TEST_F(Zone, odd_names_are_unknown_and_harm_nothing) {
  for (const char* name : {".cluster.local", "..cluster.local", "a..svc.cluster.local",
                           "_._.kubernetes.default.svc.cluster.local", "_.kubernetes.default.svc.cluster.local",
                           "\\000.default.svc.cluster.local", ".default.svc.cluster.local", "-.default.pod.cluster.local"})
    EXPECT_EQ(ask(name, RecordType::a), "NXDOMAIN") << name;
}

TEST_F(Zone, an_answer_is_bounded) {
  std::string endpoints;
  for (int i = 0; i < 3000; ++i)
    endpoints += (i ? "," : "[") + endpoint("10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
  source.slices_ = {slice("db", endpoints + "]", R"([{"name":"sql","port":1}])")};
  EXPECT_EQ(answer(config, source, "db.default.svc.cluster.local", RecordType::a)->answer.size(), kZoneRecordsMax);
}

// The ports of a slice are not examined again for each of its endpoints.
TEST_F(Zone, a_slice_of_many_endpoints_and_ports_is_walked_once) {
  std::string endpoints, ports;
  for (int i = 0; i < 1000; ++i)
    endpoints += (i ? "," : "[") + endpoint("10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
  for (int i = 0; i < 3000; ++i)
    ports += (i ? R"(,{"name":"p)" : R"([{"name":"p)") + std::to_string(i) + R"(","port":)" + std::to_string(i + 1) + "}";
  const ObjectPtr one = slice("db", endpoints + "]", ports + R"(,{"name":"sql","port":5433}])");
  source.slices_.assign(10, one);
  std::optional<ZoneAnswer> got = answer(config, source, "_sql._tcp.db.default.svc.cluster.local", RecordType::srv);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->answer.size(), kZoneRecordsMax);
  EXPECT_EQ(got->answer[0].port, 5433);
}

}  // namespace
}  // namespace coracle::network
