// SPDX-License-Identifier: Apache-2.0
// The tables against address spoofing, as text, and their entries in the kernel's form.
#include "daemon/network/pod_guard.h"

#include <gtest/gtest.h>

#include "daemon/network/pod_link.h"
#include "tests/daemon/network/golden.h"

namespace coracle::network {
namespace {

const Ipv4 kFirst{10u << 24 | 244u << 16 | 5u}, kSecond{10u << 24 | 244u << 16 | 1u << 8 | 254u};

TEST(PodGuard, what_bears_foreign_addresses_is_dropped) {
  EXPECT_GOLDEN("pod-guard.nft", replace_script(pod_rules({kFirst, kSecond})) + replace_script(pod_arp_rules({kFirst, kSecond})));
}

TEST(PodGuard, an_entry_is_wire_mac_and_address_in_the_kernels_form) {
  const std::string want =
      std::string("coracle0af401fe") + std::string(1, 0) + "\x0a\x58\x0a\xf4\x01\xfe" + std::string(2, 0) + "\x0a\xf4\x01\xfe";
  EXPECT_EQ(pod_entry(kSecond), want);
  EXPECT_EQ(pod_entry(kFirst).size(), 28u);
}

TEST(PodGuard, the_ends_of_a_wire_follow_from_the_address) {
  EXPECT_EQ(link_name(kFirst), "coracle0af40005");
  EXPECT_EQ(pod_mac(kFirst), "0a:58:0a:f4:00:05");
  EXPECT_EQ(machine_mac(kFirst), "0a:59:0a:f4:00:05");
}

}  // namespace
}  // namespace coracle::network
