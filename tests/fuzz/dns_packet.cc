// SPDX-License-Identifier: Apache-2.0
// Fuzzes packets for the DNS server, as queries from a pod and as responses from a resolver. Whatever the packet, the reply is
// within its size limit, has the id of the query, and is marked as a reply.
#include <cstdlib>

#include "daemon/network/dns_decision.h"
#include "store/object/object.h"

using namespace coracle;
using namespace coracle::network;

namespace {

class Nothing : public ZoneSource {  // a headless Service for every name, so that replies have records
 public:
  Nothing() {
    service_ = MUST(Object::make(kService, MUST(parse_json(R"({"apiVersion":"v1","kind":"Service","metadata":
      {"namespace":"default","name":"web"},"spec":{"clusterIP":"None","ports":[{"name":"http","port":80}]}})"))));
    alias_ = MUST(Object::make(kService, MUST(parse_json(R"({"apiVersion":"v1","kind":"Service","metadata":
      {"namespace":"default","name":"far"},"spec":{"type":"ExternalName","externalName":"example.com"}})"))));
    slice_ = MUST(Object::make(kEndpointSlice, MUST(parse_json(R"({"apiVersion":"discovery.k8s.io/v1",
      "kind":"EndpointSlice","metadata":{"namespace":"default","name":"web-1","labels":
      {"kubernetes.io/service-name":"web"}},"addressType":"IPv4","endpoints":[{"addresses":["10.244.0.4"]},
      {"addresses":["10.244.0.5"]}],"ports":[{"name":"http","port":8080}]})"))));
  }
  ObjectPtr service(const Key& key) const override { return key.name == "far" ? alias_ : service_; }
  std::vector<ObjectPtr> slices(const Key&) const override { return {slice_}; }
  bool has_services(std::string_view) const override { return true; }
  ObjectPtr service_at(Ipv4) const override { return service_; }
  std::vector<ObjectPtr> slices_at(Ipv4) const override { return {slice_}; }
  ObjectPtr pod_at(Ipv4) const override { return nullptr; }

 private:
  ObjectPtr service_, alias_, slice_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Nothing source;
  static const ZoneConfig zone{"cluster.local", MUST(Ipv4Range::parse("10.244.0.0/24")), MUST(Ipv4Range::parse("10.96.0.0/16")),
                               MUST(Ipv4::parse("10.96.0.10"))};
  std::string_view packet(reinterpret_cast<const char*>(data), size);
  for (bool over_tcp : {false, true}) {
    DnsDecision decision = decide(packet, over_tcp, zone, source);
    if (decision.what == DnsDecision::What::ignore) continue;
    if (message_id(decision.packet) != message_id(packet)) std::abort();
    if (decision.what == DnsDecision::What::reply) {
      if (decision.packet.size() > (over_tcp ? kDnsMessageMax : kUdpAnswerMax)) std::abort();
      if ((uint8_t(decision.packet[2]) & 0x80) == 0) std::abort();
    } else if (decision.alias) {  // also as if the packet were the resolver's response
      (void)encode_behind_alias(decision.alias->question, decision.alias->answer, packet, decision.alias->bytes_max);
    }
  }
  (void)answers(packet, packet);
  return 0;
}
