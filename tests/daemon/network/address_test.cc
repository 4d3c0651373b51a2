// SPDX-License-Identifier: Apache-2.0
// Addresses, ranges and the address pool.
#include "daemon/network/address.h"

#include <gtest/gtest.h>

#include "daemon/network/address_pool.h"

namespace coracle::network {
namespace {

TEST(Ipv4, parses_four_octets_and_nothing_else) {
  struct Row {
    const char* text;
    std::optional<uint32_t> want;
  };
  for (const Row& row :
       {Row{"10.244.0.5", 0x0af40005}, Row{"0.0.0.0", 0}, Row{"255.255.255.255", 0xffffffff}, Row{"10.244.0", {}},
        Row{"10.244.0.256", {}}, Row{"10.244.0.05", {}}, Row{"", {}}, Row{" 10.0.0.1", {}}, Row{"10.0.0.1 ", {}},
        Row{"10.0.0.1.", {}}, Row{"10..0.1", {}}, Row{"10.0.0.1; flush ruleset", {}}, Row{"::1", {}}, Row{"10.0.0.-1", {}}}) {
    Result<Ipv4> got = Ipv4::parse(row.text);
    ASSERT_EQ(bool(got), row.want.has_value()) << row.text;
    if (!got) continue;
    EXPECT_EQ(got->value, *row.want) << row.text;
    EXPECT_EQ(got->text(), row.text);
  }
}

TEST(Ipv4Range, parses_blocks_whose_host_bits_are_clear) {
  struct Row {
    const char* text;
    bool good;
  };
  for (const Row& row :
       {Row{"10.244.0.0/24", true}, Row{"0.0.0.0/0", true}, Row{"10.0.0.1/32", true}, Row{"10.244.0.1/24", false},
        Row{"10.244.0.0", false}, Row{"10.244.0.0/33", false}, Row{"10.244.0.0/", false}, Row{"/24", false}}) {
    Result<Ipv4Range> got = Ipv4Range::parse(row.text);
    ASSERT_EQ(bool(got), row.good) << row.text;
    if (got) {
      EXPECT_EQ(got->text(), row.text);
    }
  }
  Ipv4Range range = MUST(Ipv4Range::parse("10.96.0.0/12"));
  EXPECT_TRUE(range.contains(MUST(Ipv4::parse("10.111.255.255"))));
  EXPECT_FALSE(range.contains(MUST(Ipv4::parse("10.112.0.0"))));
  EXPECT_EQ(range.last().text(), "10.111.255.255");
}

TEST(AddressPool, gives_each_owner_one_address_until_none_is_left) {
  AddressPool pool(MUST(Ipv4Range::parse("10.0.0.0/29")));  // 8: network, gateway, 5 pods, broadcast
  EXPECT_EQ(pool.gateway().text(), "10.0.0.1");
  for (int i = 2; i <= 6; ++i) EXPECT_EQ(MUST(pool.take("pod" + std::to_string(i))).text(), "10.0.0." + std::to_string(i));
  EXPECT_EQ(MUST(pool.take("pod4")).text(), "10.0.0.4") << "asked again, the same";
  EXPECT_EQ(pool.take("one-more").error().code(), Code::unavailable);
  pool.give_back("pod3");
  pool.give_back("never-heard-of");
  EXPECT_EQ(MUST(pool.take("one-more")).text(), "10.0.0.3");
}

TEST(AddressPool, lets_an_address_rest_before_it_is_given_again) {
  AddressPool pool(MUST(Ipv4Range::parse("10.0.0.0/29")));
  EXPECT_EQ(MUST(pool.take("a")).text(), "10.0.0.2");
  pool.give_back("a");
  EXPECT_EQ(MUST(pool.take("b")).text(), "10.0.0.3");
}

TEST(AddressPool, restores_what_records_say_and_refuses_what_cannot_be) {
  AddressPool pool(MUST(Ipv4Range::parse("10.0.0.0/29")));
  auto at = [](const char* text) { return MUST(Ipv4::parse(text)); };
  EXPECT_TRUE(pool.restore("a", at("10.0.0.4")));
  EXPECT_TRUE(pool.restore("a", at("10.0.0.4"))) << "said twice";
  EXPECT_EQ(pool.restore("b", at("10.0.0.4")).error().code(), Code::conflict);
  for (const char* no_pod : {"10.0.0.0", "10.0.0.1", "10.0.0.7", "10.0.1.4"})
    EXPECT_EQ(pool.restore("c", at(no_pod)).error().code(), Code::invalid) << no_pod;
  EXPECT_EQ(pool.of("a").text(), "10.0.0.4");
  EXPECT_EQ(MUST(pool.take("d")).text(), "10.0.0.5") << "goes on behind what is known";
}

}  // namespace
}  // namespace coracle::network
