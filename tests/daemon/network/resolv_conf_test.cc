// SPDX-License-Identifier: Apache-2.0
// The DNS servers of this machine.
#include "daemon/network/resolv_conf.h"

#include <gtest/gtest.h>

namespace coracle::network {
namespace {

TEST(ResolvConf, gives_the_servers_in_order_without_ourselves) {
  struct Row {
    const char* name;
    const char* text;
    std::vector<const char*> want;
  };
  for (const Row& row : {
           Row{"plain", "search lan\nnameserver 192.168.1.1\nnameserver\t8.8.8.8\n", {"192.168.1.1", "8.8.8.8"}},
           Row{"ourselves", "nameserver 10.96.0.10\nnameserver 1.1.1.1\n", {"1.1.1.1"}},
           Row{"twice", "nameserver 1.1.1.1\nnameserver 1.1.1.1\n", {"1.1.1.1"}},
           Row{"comment and what follows", "# nameserver 9.9.9.9\nnameserver 1.1.1.1 # ours\n", {"1.1.1.1"}},
           Row{"six", "nameserver fe80::1%eth0\nnameserver 1.1.1.1\n", {"1.1.1.1"}},
           Row{"no keyword", " nameserver 1.1.1.1\nnameservers 1.1.1.1\nnameserver\n", {}},
           Row{"more than three",
               "nameserver 1.0.0.1\nnameserver 1.0.0.2\nnameserver 1.0.0.3\nnameserver 1.0.0.4\n",
               {"1.0.0.1", "1.0.0.2", "1.0.0.3"}},
           Row{"no end of line", "nameserver 127.0.0.53", {"127.0.0.53"}},
           Row{"empty", "", {}},
       }) {
    std::vector<std::string> got, want(row.want.begin(), row.want.end());
    for (Ipv4 server : parse_nameservers(row.text, {MUST(Ipv4::parse("10.96.0.10"))})) got.push_back(server.text());
    EXPECT_EQ(got, want) << row.name;
  }
}

}  // namespace
}  // namespace coracle::network
