// SPDX-License-Identifier: Apache-2.0
// The listening sockets of this machine, from the kernel's lists.
#include "runtime/sys/inet.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

std::string text(const std::vector<Listener>& all) {
  std::string out;
  for (const Listener& one : all) {
    char line[64];
    std::snprintf(line, sizeof line, "%s %08x %u\n", one.transport == Transport::tcp ? "tcp" : "udp", one.at.address,
                  one.at.port);
    out += line;
  }
  return out;
}

TEST(Listeners, are_read_from_the_kernels_lists) {
  if constexpr (std::endian::native != std::endian::little) GTEST_SKIP() << "the lists below are a little-endian machine's";
  const std::string tcp =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n"
      "   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0\n"
      "   2: 0401A8C0:0016 0501A8C0:C001 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1\n";
  EXPECT_EQ(text(parse_listeners(tcp, Transport::tcp, false)), "tcp 7f000001 53\ntcp 00000000 22\n");
  EXPECT_EQ(text(parse_listeners(tcp + "   3: 00000000:00", Transport::tcp, false)), "tcp 7f000001 53\ntcp 00000000 22\n");
  EXPECT_EQ(
      parse_listeners("  12: 00000000:7580 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0\n",
                      Transport::tcp, false),
      (std::vector<Listener>{{Transport::tcp, {0, 30080}, 1000, 4711}}));
  const std::string tcp6 =
      "  sl  local_address                         remote_address                        st\n"
      "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0\n"
      "   1: 00000000000000000000000001000000:1F91 00000000000000000000000000000000:0000 0A 0\n"
      "   2: 0000000000000000FFFF00000401A8C0:1F92 00000000000000000000000000000000:0000 0A 0\n";
  EXPECT_EQ(text(parse_listeners(tcp6, Transport::tcp, true)), "tcp 00000000 8080\ntcp c0a80104 8082\n") << "not ::1";
  const std::string udp =
      "   sl  local_address rem_address   st\n"
      "  123: 00000000:0202 00000000:0000 07 0\n"
      "  124: 0401A8C0:A001 0101A8C0:0035 01 0\n";
  EXPECT_EQ(text(parse_listeners(udp, Transport::udp, false)), "udp 00000000 514\n") << "not one that speaks to a peer";
  for (const char* odd : {"", "\n", "x", " \n \n", "0: :0016 x 0A\n", "0: 0100007F 0 0A\n", "0: ZZ00007F:0016 0 0A\n"})
    EXPECT_TRUE(parse_listeners(odd, Transport::tcp, false).empty()) << odd;
}

TEST(Listeners, of_this_process_are_among_them) {
  constexpr uint32_t kLoopback = 0x7f000001;
  for (Transport transport : {Transport::tcp, Transport::udp}) {
    Fd socket = MUST(listen_on(transport, {kLoopback, 0}));
    Endpoint4 at = MUST(bound_to(socket));
    std::vector<Listener> all = MUST(listeners());
    const uint64_t inode = MUST(stat(socket)).st_ino;
    EXPECT_EQ(std::count(all.begin(), all.end(), Listener{transport, at, ::geteuid(), inode}), 1);
    auto cgroups = cgroups_of_listeners();
    EXPECT_TRUE(!cgroups || cgroups->empty() || cgroups->contains(inode)) << "older kernels do not say";
  }
}

}  // namespace
}  // namespace coracle::sys
