// SPDX-License-Identifier: Apache-2.0
// Netfilter beside the rules themselves (those go through libnftables): the kernel's memory of translated flows, elements of
// sets where a script would take too long, and news of tables that somebody changed. Source: nfnetlink, kernel
// include/uapi/linux/netfilter/nfnetlink_conntrack.h and nf_tables.h; conntrack(8).
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
  uint32_t source = 0, destination = 0;  // as the first packet bore them
  uint16_t source_port = 0, destination_port = 0;
  uint32_t answering = 0;  // who answers: the destination after translation
  uint16_t answering_port = 0;
};

// Asks `gone` about every IPv4 UDP flow the kernel remembers, and makes it forget those for which it says true, so that
// their next packet is translated anew: some 260,000 at most, 4096 at a time. Returns how many. Blocks for the length of the
// table.
Result<size_t> forget_udp_flows(const std::function<bool(const UdpFlow&)>& gone);

enum class TableFamily : uint8_t { ip, arp };

struct SetElement {
  TableFamily family = TableFamily::ip;
  std::string table, set;
  std::string key;  // its fields in network order, each padded to a multiple of four bytes
};
// Adds elements, all in one transaction or none; one that is there stays. Blocks for microseconds. Errors: not_found when a table
// or a set is not there.
Result<void> add_set_elements(const std::vector<SetElement>& elements);

// One element of a set with timeouts, and how long it is still good for.
struct ExpiringElement {
  std::string key;
  uint64_t expires_ms = 0;
};
// The elements of a set of a table of family ip, at most `max`; those without a timeout are left out. Errors: not_found.
Result<std::vector<ExpiringElement>> expiring_elements(const std::string& table, const std::string& set, size_t max);

// Hears of changes of tables, whoever makes them (a firewall's reload flushes everything).
class TableMonitor {
 public:
  static Result<TableMonitor> open();
  const Fd& fd() const { return fd_; }
  struct News {
    size_t removals = 0;  // of the table
    size_t changes = 0;   // transactions that changed something of it
    size_t losses = 0;    // of these, transactions that removed something
    bool lost = false;    // there was more than the queue holds
  };
  News read(std::string_view table);                                        // empties the queue
  std::vector<News> read_all(const std::vector<std::string_view>& tables);  // the same, in their order

 private:
  explicit TableMonitor(Fd fd) : fd_(std::move(fd)) {}
  struct Begun {                                          // a transaction whose end is not read yet
    std::set<std::string, std::less<>> changed, reduced;  // tables
  };
  Fd fd_;
  Begun begun_;
};

}  // namespace coracle::sys
