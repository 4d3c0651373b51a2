// SPDX-License-Identifier: Apache-2.0
// Links, addresses and routes, in network namespaces of the test.
#include "runtime/sys/netlink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/sys/netns.h"

namespace coracle::sys {
namespace {

class NetlinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = new_netns();
    if (!made) GTEST_SKIP() << "no network namespaces here: " << made.error().text();
    host_ = std::move(*made);
    pod_ = MUST(new_netns());
  }
  Fd host_, pod_;
};

TEST_F(NetlinkTest, connects_a_pod_to_a_bridge) {
  Netlink host = MUST(Netlink::open_in(host_));
  uint32_t bridge = MUST(host.add_bridge("cor0", "02:42:0a:2a:00:01", "coracle"));
  MUST(host.set_up(bridge));
  MUST(host.add_address(bridge, "10.42.0.1/24"));
  EXPECT_EQ(host.add_bridge("cor0").error().code(), Code::already_exists);
  uint32_t veth = MUST(host.add_veth({.name = "corveth1",
                                      .peer_name = "eth0",
                                      .peer_netns = &pod_,
                                      .master = bridge,
                                      .mtu = 1400,
                                      .mac = "",
                                      .peer_mac = "02:42:0a:2a:00:07",
                                      .alias = "coracle pod",
                                      .up = true,
                                      .isolated = false,
                                      .hairpin = true}));
  Link link = MUST(host.link("corveth1"));
  EXPECT_EQ(link.index, veth);
  EXPECT_EQ(link.master, bridge);
  EXPECT_EQ(link.kind, "veth");
  EXPECT_EQ(link.mtu, 1400u);
  EXPECT_EQ(link.alias, "coracle pod");
  EXPECT_TRUE(link.up);

  Netlink pod = MUST(Netlink::open_in(pod_));
  uint32_t eth0 = MUST(pod.index_of("eth0"));
  EXPECT_EQ(MUST(pod.link("eth0")).mac, "02:42:0a:2a:00:07");
  MUST(pod.add_address(eth0, "10.42.0.7/24"));
  MUST(pod.set_up(eth0));
  MUST(pod.add_route({.destination = "0.0.0.0/0", .gateway = "10.42.0.1", .link = eth0}));
  auto addresses = MUST(pod.addresses(eth0));
  ASSERT_FALSE(addresses.empty());
  EXPECT_EQ(addresses[0].address, "10.42.0.7/24");
  bool has_default = false;
  for (const RouteSpec& route : MUST(pod.routes()))
    has_default |= route.destination == "0.0.0.0/0" && route.gateway == "10.42.0.1" && route.link == eth0;
  EXPECT_TRUE(has_default);
  MUST(pod.remove_route({.destination = "0.0.0.0/0", .gateway = "10.42.0.1", .link = eth0}));
  MUST(pod.remove_address(eth0, "10.42.0.7/24"));
  MUST(host.remove_link(veth));
  EXPECT_EQ(pod.index_of("eth0").error().code(), Code::not_found);
}

TEST_F(NetlinkTest, says_what_is_wrong) {
  Netlink host = MUST(Netlink::open_in(host_));
  EXPECT_EQ(host.link("none").error().code(), Code::not_found);
  EXPECT_EQ(host.add_bridge("a-name-that-is-too-long").error().code(), Code::invalid);
  uint32_t lo = MUST(host.index_of("lo"));
  EXPECT_EQ(host.add_address(lo, "10.0.0.300/24").error().code(), Code::invalid);
  EXPECT_FALSE(MUST(host.link("lo")).up);
  MUST(host.set_up(lo));
  EXPECT_TRUE(MUST(host.link("lo")).up);
  MUST(host.add_address(lo, "fd00::1/128"));
  EXPECT_EQ(host.add_address(lo, "fd00::1/128").error().code(), Code::already_exists);
}

TEST_F(NetlinkTest, moves_a_link_under_a_name_that_is_free) {
  auto move = [&](const std::string& name, const std::string& new_name) {
    return in_netns(host_, [&] { return move_link_with_addresses(name, pod_, new_name); });
  };
  Netlink host = MUST(Netlink::open_in(host_)), pod = MUST(Netlink::open_in(pod_));
  for (const char* name : {"first", "second", "third", "last"}) {
    uint32_t index = MUST(host.add_veth({.name = name, .peer_name = std::string("of-") + name}));
    if (name == std::string("first")) MUST(host.add_address(index, "10.42.0.9/24"));
  }
  MUST(move("first", "net%d"));
  MUST(move("second", "net%d"));
  MUST(move("third", "own"));
  auto addresses = MUST(pod.addresses(MUST(pod.index_of("net0"))));
  EXPECT_TRUE(std::any_of(addresses.begin(), addresses.end(),
                          [](const AddressInfo& each) { return each.address == "10.42.0.9/24" && each.is_permanent; }));
  EXPECT_TRUE(MUST(pod.link("net1")).up);
  EXPECT_EQ(move("last", "own").error().code(), Code::already_exists);
  EXPECT_TRUE(host.link("last").ok()) << "it stays where it was";
}

TEST_F(NetlinkTest, tells_of_changes) {
  std::unique_ptr<NetlinkMonitor> monitor;
  MUST(in_netns(host_, [&]() -> Result<void> {
    NetlinkMonitor opened = TRY(NetlinkMonitor::open());
    monitor = std::make_unique<NetlinkMonitor>(std::move(opened));
    return {};
  }));
  monitor->drain();
  Netlink host = MUST(Netlink::open_in(host_));
  MUST(host.set_up(MUST(host.index_of("lo"))));
  char byte;
  EXPECT_GT(::read(monitor->fd().get(), &byte, 1), 0);
  monitor->drain();
  EXPECT_LT(::read(monitor->fd().get(), &byte, 1), 0);
}

}  // namespace
}  // namespace coracle::sys
