// SPDX-License-Identifier: Apache-2.0
// Netfilter beside the rules themselves (those go through libnftables): the kernel's memory of translated flows, and
// news of tables that somebody removed. Source: nfnetlink, kernel include/uapi/linux/netfilter/nfnetlink_conntrack.h
// and nf_tables.h; conntrack(8).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct UdpFlow {                         // addresses in host order
  uint32_t source = 0, destination = 0;  // as the first packet bore them
  uint16_t source_port = 0, destination_port = 0;
  uint32_t answering = 0;  // who answers: the destination after translation
  uint16_t answering_port = 0;
};

// Asks `gone` about every IPv4 UDP flow the kernel remembers, and makes it forget those for which it says true, so that
// their next packet is translated anew. Returns how many. Blocks for the length of the table.
Result<size_t> forget_udp_flows(const std::function<bool(const UdpFlow&)>& gone);

// Hears of removed tables, whoever removed them (a firewall's reload flushes everything).
class TableMonitor {
 public:
  static Result<TableMonitor> open();
  const Fd& fd() const { return fd_; }
  struct News {
    size_t removals = 0;
    bool lost = false;  // there was more than the queue holds
  };
  News read(std::string_view table);  // empties the queue

 private:
  explicit TableMonitor(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace coracle::sys
