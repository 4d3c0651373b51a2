// SPDX-License-Identifier: Apache-2.0
// Netfilter beside the ruleset, which goes through libnftables: conntrack entries, set elements where running a script would be
// too slow, and notifications of table changes. Source: nfnetlink, kernel include/uapi/linux/netfilter/nfnetlink_conntrack.h and
// nf_tables.h; conntrack(8).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct UdpFlow {                         // addresses in host order
  uint32_t source = 0, destination = 0;  // of the original direction, before translation
  uint16_t source_port = 0, destination_port = 0;
  uint32_t answering = 0;  // the source of replies: the destination after translation
  uint16_t answering_port = 0;
};

// Calls `gone` for every IPv4 UDP flow in conntrack and deletes those for which it returns true, so that NAT rules apply to their
// next packet again. Deletes at most about 260,000 flows, 4096 at a time. Returns the number of deleted flows. The run time grows
// with the table. Errors: the kernel's.
Result<size_t> forget_udp_flows(const std::function<bool(const UdpFlow&)>& gone);

enum class TableFamily : uint8_t { ip, arp };

struct SetElement {
  TableFamily family = TableFamily::ip;
  std::string table, set;
  std::string key;  // the fields in network order, each padded to a multiple of four bytes
};
// Adds all elements in one transaction or none; existing elements stay. Blocks for microseconds. Errors: not_found if a table or
// set does not exist.
Result<void> add_set_elements(const std::vector<SetElement>& elements);

// One element of a set with timeouts, and the time until it expires.
struct ExpiringElement {
  std::string key;
  uint64_t expires_ms = 0;
};
// The elements of a set in a table of family ip, at most `max`; elements without a timeout are skipped. Errors: not_found.
Result<std::vector<ExpiringElement>> expiring_elements(const std::string& table, const std::string& set, size_t max);

// Receives notifications of table changes by anybody (for example a firewall's reload, which flushes everything).
class TableMonitor {
 public:
  static Result<TableMonitor> open();  // Errors: the kernel's
  const Fd& fd() const { return fd_; }
  struct News {
    size_t removals = 0;  // deletions of the table
    size_t changes = 0;   // transactions that changed the table
    size_t losses = 0;    // those of them that removed something
    bool lost = false;    // the socket's queue overflowed
  };
  News read(std::string_view table);                                        // empties the queue
  std::vector<News> read_all(const std::vector<std::string_view>& tables);  // the same for several tables, in their order

 private:
  explicit TableMonitor(Fd fd) : fd_(std::move(fd)) {}
  struct Begun {                                          // a transaction whose end has not been read yet
    std::set<std::string, std::less<>> changed, reduced;  // tables
  };
  Fd fd_;
  Begun begun_;
};

}  // namespace coracle::sys
