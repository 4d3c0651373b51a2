// SPDX-License-Identifier: Apache-2.0
// The flows that must be removed from the kernel's connection tracking.
#include "daemon/network/udp_flows.h"

#include <gtest/gtest.h>

namespace coracle::network {
namespace {

Ipv4 ip(const char* text) { return MUST(Ipv4::parse(text)); }

sys::UdpFlow flow(const char* to, uint16_t port, const char* answering, uint16_t answering_port) {
  return {ip("10.244.0.9").value, ip(to).value, 40000, port, ip(answering).value, answering_port};
}

TEST(UdpFlows, what_leads_elsewhere_than_it_should_is_stale) {
  const UdpEndpoints old({{ip("10.244.0.2"), 5353}});
  const UdpPaths before = {{{ip("10.96.0.5"), 53}, {old}}, {{ip("10.96.0.6"), 53}, {old}}, {{{}, 30053}, {old}}};
  const UdpPaths now = {{{ip("10.96.0.5"), 53}, {UdpEndpoints({{ip("10.244.0.3"), 5353}, {ip("10.244.0.4"), 5353}})}},
                        {{{}, 514}, {UdpEndpoints({{ip("10.244.0.4"), 1514}}), UdpEndpoints({{ip("10.244.0.7"), 1514}})}}};
  const UdpFlows flows(before, now, {ip("192.0.2.1"), ip("10.244.0.1")});
  struct Row {
    const char* name;
    sys::UdpFlow flow;
    bool stale;
  };
  for (const Row& row : {
           Row{"to an endpoint that is there", flow("10.96.0.5", 53, "10.244.0.3", 5353), false},
           Row{"to one that is gone", flow("10.96.0.5", 53, "10.244.0.2", 5353), true},
           Row{"from before the Service was there", flow("10.96.0.5", 53, "10.96.0.5", 53), true},
           Row{"of a Service that is gone", flow("10.96.0.6", 53, "10.244.0.2", 5353), true},
           Row{"of a node port that is gone", flow("192.0.2.1", 30053, "10.244.0.2", 5353), true},
           Row{"to this machine, where a node port was", flow("192.0.2.1", 30053, "192.0.2.1", 30053), false},
           Row{"to a host port", flow("192.0.2.1", 514, "10.244.0.4", 1514), false},
           Row{"to a node port of the same number", flow("192.0.2.1", 514, "10.244.0.7", 1514), false},
           Row{"to a host port, too early", flow("192.0.2.1", 514, "192.0.2.1", 514), true},
           Row{"to the same port of another machine", flow("198.51.100.1", 514, "198.51.100.1", 514), false},
           Row{"nothing of ours", flow("198.51.100.1", 53, "198.51.100.1", 53), false},
           Row{"another port of the Service's", flow("10.96.0.5", 54, "10.96.0.5", 54), false},
       })
    EXPECT_EQ(flows.stale(row.flow), row.stale) << row.name;
}

TEST(UdpFlows, of_a_service_that_went_while_no_daemon_ran_are_stale) {
  const Ipv4Range services = MUST(Ipv4Range::parse("10.96.0.0/16"));
  const UdpFlows flows({}, {{{ip("10.96.0.10"), 53}, {UdpEndpoints({{ip("10.96.0.10"), 10053}})}}}, {ip("10.96.0.10")}, services);
  EXPECT_TRUE(flows.stale(flow("10.96.0.6", 53, "10.244.0.2", 5353)));
  EXPECT_FALSE(flows.stale(flow("10.96.0.6", 53, "10.96.0.6", 53))) << "never translated";
  EXPECT_FALSE(flows.stale(flow("192.0.2.1", 30053, "10.244.0.2", 5353))) << "perhaps somebody else's";
  EXPECT_FALSE(flows.stale(flow("10.96.0.10", 53, "10.96.0.10", 10053))) << "our DNS server's";
}

}  // namespace
}  // namespace coracle::network
