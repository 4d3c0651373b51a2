// SPDX-License-Identifier: Apache-2.0
// Links, addresses and routes over rtnetlink, with libnl-route. A Netlink always works in the namespace in which it was opened,
// whichever thread calls it: one for the host, and one per pod while its interface is set up.
//
//   auto host = TRY(Netlink::open());
//   uint32_t bridge = TRY(host.add_bridge("coracle0"));
//   TRY(host.add_veth({.name = "cor1a2b", .peer_name = "eth0", .peer_netns = &netns, .master = bridge, .mtu = 1500}));
//   auto pod = TRY(Netlink::open_in(netns));
//   uint32_t eth0 = TRY(pod.index_of("eth0"));
//   TRY(pod.add_address(eth0, "10.42.0.7/24"));
//   TRY(pod.set_up(eth0));
//   TRY(pod.add_route({.destination = "0.0.0.0/0", .gateway = "10.42.0.1", .link = eth0}));
//
// Errors: already_exists, not_found, and the kernel's others. Not thread-safe: one thread at a time per Netlink.
// Source: rtnetlink(7), libnl-route.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

struct nl_sock;

namespace coracle::sys {

struct Link {
  uint32_t index = 0, master = 0, mtu = 0;
  std::string name, kind;  // kind: "bridge", "veth", ...; "" for hardware and lo
  std::string alias;       // IFLA_IFALIAS, free text: marks the links of the daemon
  std::string mac;         // "02:42:…"
  bool up = false, loopback = false;
  bool running = false;     // operational: up and with a carrier
  uint32_t peer_index = 0;  // IFLA_LINK: the index of a veth's peer in the peer's namespace
};

struct VethSpec {
  std::string name, peer_name;
  const Fd* peer_netns = nullptr;          // null: the peer stays in this namespace
  uint32_t master = 0;                     // the bridge of this end; 0: none
  uint32_t mtu = 0;                        // of both ends; 0: the kernel's default
  std::string mac, peer_mac;               // "": the kernel's choice
  std::string alias;                       // of this end
  bool up = true;                          // sets this end up
  bool isolated = false, hairpin = false;  // bridge port flags of this end
};

struct AddressInfo {
  uint32_t link = 0;
  std::string address;        // "10.42.0.7/24"
  std::string scope;          // "global", "link", "host"
  bool is_permanent = false;  // otherwise it was lent, for a time
};

struct RouteSpec {
  std::string destination;  // "10.0.0.0/8", "0.0.0.0/0", "::/0"
  std::string gateway;      // "": on link
  uint32_t link = 0;
  std::string source;  // preferred source address; "": the kernel's choice
  bool scope_link = false;
  bool onlink = false;  // RTNH_F_ONLINK: assume that the gateway is on the link
};

class Netlink {
 public:
  static Result<Netlink> open();  // in the calling thread's namespace
  static Result<Netlink> open_in(const Fd& netns);
  Netlink(Netlink&&) noexcept;
  Netlink& operator=(Netlink&&) noexcept;
  ~Netlink();

  Result<std::vector<Link>> links();
  Result<Link> link(const std::string& name);          // Errors: not_found
  Result<uint32_t> index_of(const std::string& name);  // Errors: not_found
  // add_* return the index. They fail with already_exists and then change nothing.
  Result<uint32_t> add_bridge(const std::string& name, const std::string& mac = "", const std::string& alias = "");
  Result<uint32_t> add_veth(const VethSpec& spec);
  Result<uint32_t> add_dummy(const std::string& name);
  Result<void> remove_link(uint32_t index);  // blocks 10 to 40 ms for a veth; removing its namespace does not
  Result<void> set_up(uint32_t index);
  Result<void> set_down(uint32_t index);
  Result<void> set_mtu(uint32_t index, uint32_t mtu);
  Result<void> set_alias(uint32_t index, const std::string& alias);
  Result<void> move_link(uint32_t index, const Fd& netns,
                         const std::string& new_name);                 // afterwards it is down and has no addresses
  Result<void> set_master(uint32_t index, uint32_t bridge);            // bridge 0: releases it
  Result<void> set_port(uint32_t index, bool hairpin, bool isolated);  // bridge port flags
  // Adds a permanent neighbour entry: `address` is at `mac`, independent of ARP. Replaces an existing entry.
  Result<void> add_neighbor(uint32_t link, const std::string& address, const std::string& mac);

  Result<std::vector<AddressInfo>> addresses(uint32_t link = 0);                            // 0: of all links
  Result<void> add_address(uint32_t link, const std::string& address, bool no_dad = true);  // "10.42.0.7/24"
  Result<void> remove_address(uint32_t link, const std::string& address);

  Result<std::vector<RouteSpec>> routes();         // unicast routes of the main table
  Result<void> add_route(const RouteSpec& route);  // replaces a route to the same destination
  Result<void> remove_route(const RouteSpec& route);

 private:
  explicit Netlink(nl_sock* socket) : socket_(socket) {}
  nl_sock* socket_ = nullptr;
};

// Becomes readable after any change of links, addresses or IPv4/IPv6 routes. drain() discards the messages without parsing them:
// read the current state afterwards.
class NetlinkMonitor {
 public:
  static Result<NetlinkMonitor> open();
  const Fd& fd() const { return fd_; }
  void drain();

 private:
  explicit NetlinkMonitor(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// Reports losses on links whose names begin with a prefix: a deleted link, a link that is down, a removed IPv4 address, a removed
// route of the main table. Additions and other links are ignored, at the cost of looking at the message.
class LossMonitor {
 public:
  static Result<LossMonitor> open(std::string prefix);  // in the calling thread's namespace
  const Fd& fd() const { return fd_; }
  struct News {
    std::set<std::string> links;  // deleted or no longer up
    bool damaged = false;         // a link lost an address or a route, or the queue overflowed
  };
  News read();  // empties the queue

 private:
  LossMonitor(Fd fd, std::string prefix) : fd_(std::move(fd)), prefix_(std::move(prefix)) {}
  Fd fd_;
  std::string prefix_;
};

// Moves a host link into another namespace under a new name, with its permanent global addresses, and sets it up there. A name
// with "%d" is a template: the first free number is taken. Source: runtime-spec config-linux.md "Network Devices". Errors:
// not_found; already_exists, then the link stays; the kernel's.
Result<void> move_link_with_addresses(const std::string& name, const Fd& netns, const std::string& new_name);

}  // namespace coracle::sys
