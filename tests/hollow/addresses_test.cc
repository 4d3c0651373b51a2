// SPDX-License-Identifier: Apache-2.0
// The nodes and pods of a fleet have distinct addresses, however many they are.
#include "tests/hollow/addresses.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <set>

namespace coracle::hollow {
namespace {

TEST(Addresses, are_unlike_each_other) {
  for (int nodes : {1, 250, 251, 600, Addresses::kNodesMax}) {
    Addresses addresses("10.99", nodes);
    std::set<std::string> given;
    auto give = [&](const std::string& address) {
      in_addr parsed{};
      EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), &parsed), 1) << address;
      EXPECT_TRUE(given.insert(address).second) << address << " twice, of " << nodes << " nodes";
    };
    for (int i = 0; i < nodes; ++i) give(addresses.of_node(i));
    for (int i = 0; i < 1000; ++i) give(addresses.next_of_pod());
  }
}

TEST(Addresses, begin_anew_when_pods_have_had_all) {
  Addresses addresses("10.99", 3);
  const std::string first = addresses.next_of_pod();
  EXPECT_EQ(first, "10.99.1.1");
  std::string last;
  for (int i = 1; i < 255 * Addresses::kOfNet; ++i) last = addresses.next_of_pod();
  EXPECT_EQ(last, "10.99.255.250");
  EXPECT_EQ(addresses.next_of_pod(), first);
}

}  // namespace
}  // namespace coracle::hollow
