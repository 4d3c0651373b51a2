// SPDX-License-Identifier: Apache-2.0
// See netlink.h.
#include "runtime/sys/netlink.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_bridge.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netlink/addr.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/bridge.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <netlink/socket.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/sys/libnl.h"
#include "runtime/sys/netns.h"

namespace coracle::sys {
namespace {

using LinkHandle = std::unique_ptr<rtnl_link, Freed<rtnl_link, rtnl_link_put>>;
using AddrHandle = std::unique_ptr<nl_addr, Freed<nl_addr, nl_addr_put>>;
using AddressHandle = std::unique_ptr<rtnl_addr, Freed<rtnl_addr, rtnl_addr_put>>;
using RouteHandle = std::unique_ptr<rtnl_route, Freed<rtnl_route, rtnl_route_put>>;
using NeighborHandle = std::unique_ptr<rtnl_neigh, Freed<rtnl_neigh, rtnl_neigh_put>>;
using CacheHandle = std::unique_ptr<nl_cache, Freed<nl_cache, nl_cache_free>>;

// libnl's error numbers, negative.
Error nl_error(int rc, const std::string& doing) {
  switch (-rc) {
    case NLE_EXIST: return Error::from_errno(EEXIST, doing);
    case NLE_OBJ_NOTFOUND: return Error(Code::not_found, doing + ": not found");
    case NLE_NODEV: return Error::from_errno(ENODEV, doing).as(Code::not_found);
    case NLE_NOADDR: return Error::from_errno(EADDRNOTAVAIL, doing).as(Code::not_found);
    case NLE_PERM: return Error::from_errno(EPERM, doing);
    case NLE_NOMEM: return Error::from_errno(ENOMEM, doing);
    case NLE_BUSY: return Error::from_errno(EBUSY, doing);
    case NLE_OPNOTSUPP: return Error::from_errno(EOPNOTSUPP, doing);
    case NLE_INVAL:
    case NLE_RANGE: return Error(Code::invalid, doing + ": " + nl_geterror(rc));
    default: return Error(Code::internal, doing + ": " + nl_geterror(rc));
  }
}

Result<AddrHandle> parse_addr(const std::string& text, int family = AF_UNSPEC) {
  // Without a family, libnl would parse a mistyped IP address as an address of another family.
  if (family == AF_UNSPEC) family = text.find(':') == text.npos ? AF_INET : AF_INET6;
  nl_addr* parsed = nullptr;
  int rc = nl_addr_parse(text.c_str(), family, &parsed);
  if (rc < 0) return Error(Code::invalid, "address \"" + text + "\": " + nl_geterror(rc));
  return AddrHandle(parsed);
}

Result<AddrHandle> parse_mac(const std::string& text) { return parse_addr(text, AF_LLC); }

Result<LinkHandle> new_link(const char* kind, const std::string& name, const std::string& mac) {
  if (name.empty() || name.size() >= IFNAMSIZ) return Error(Code::invalid, "link name \"" + name + "\" has a bad length");
  LinkHandle link(rtnl_link_alloc());
  int rc = rtnl_link_set_type(link.get(), kind);
  if (rc < 0) return nl_error(rc, std::string("link type ") + kind);
  rtnl_link_set_name(link.get(), name.c_str());
  if (!mac.empty()) {
    AddrHandle addr = TRY(parse_mac(mac));
    rtnl_link_set_addr(link.get(), addr.get());
  }
  return link;
}

Link describe(rtnl_link* link) {
  Link out;
  out.index = uint32_t(rtnl_link_get_ifindex(link));
  out.master = uint32_t(rtnl_link_get_master(link));
  out.mtu = rtnl_link_get_mtu(link);
  out.peer_index = uint32_t(rtnl_link_get_link(link));
  if (const char* name = rtnl_link_get_name(link)) out.name = name;
  if (const char* kind = rtnl_link_get_type(link)) out.kind = kind;
  if (const char* alias = rtnl_link_get_ifalias(link)) out.alias = alias;
  out.up = rtnl_link_get_flags(link) & IFF_UP;
  out.loopback = rtnl_link_get_flags(link) & IFF_LOOPBACK;
  out.running = rtnl_link_get_operstate(link) == IF_OPER_UP;  // IFF_RUNNING is also set before the carrier is checked
  if (nl_addr* mac = rtnl_link_get_addr(link)) {
    char text[64];
    out.mac = nl_addr2str(mac, text, sizeof text);
  }
  return out;
}

Result<LinkHandle> get_link(nl_sock* socket, uint32_t index, const char* name) {
  rtnl_link* found = nullptr;
  int rc = rtnl_link_get_kernel(socket, int(index), name, &found);
  if (rc < 0) return nl_error(rc, name ? std::string("link ") + name : "link " + std::to_string(index));
  return LinkHandle(found);
}

// Changes only what `edit` sets.
template <typename Edit>
Result<void> change(nl_sock* socket, uint32_t index, const char* doing, Edit&& edit) {
  LinkHandle which(rtnl_link_alloc()), changes(rtnl_link_alloc());
  rtnl_link_set_ifindex(which.get(), int(index));
  edit(changes.get());
  int rc = rtnl_link_change(socket, which.get(), changes.get(), 0);
  if (rc < 0) return nl_error(rc, std::string(doing) + " link " + std::to_string(index));
  return {};
}

Result<AddressHandle> make_address(uint32_t link, const std::string& address, bool no_dad) {
  AddrHandle local = TRY(parse_addr(address));
  AddressHandle out(rtnl_addr_alloc());
  rtnl_addr_set_ifindex(out.get(), int(link));
  int rc = rtnl_addr_set_local(out.get(), local.get());
  if (rc < 0) return nl_error(rc, "address " + address);
  if (no_dad && nl_addr_get_family(local.get()) == AF_INET6) rtnl_addr_set_flags(out.get(), IFA_F_NODAD);
  return out;
}

Result<RouteHandle> make_route(const RouteSpec& spec) {
  AddrHandle destination = TRY(parse_addr(spec.destination));
  RouteHandle route(rtnl_route_alloc());
  rtnl_route_set_family(route.get(), uint8_t(nl_addr_get_family(destination.get())));
  rtnl_route_set_dst(route.get(), destination.get());
  rtnl_route_set_table(route.get(), RT_TABLE_MAIN);
  rtnl_route_set_protocol(route.get(), RTPROT_STATIC);
  rtnl_route_set_scope(route.get(), spec.scope_link || spec.gateway.empty() ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE);
  if (!spec.source.empty()) {
    AddrHandle source = TRY(parse_addr(spec.source));
    rtnl_route_set_pref_src(route.get(), source.get());
  }
  std::unique_ptr<rtnl_nexthop, Freed<rtnl_nexthop, rtnl_route_nh_free>> hop(rtnl_route_nh_alloc());
  if (spec.link) rtnl_route_nh_set_ifindex(hop.get(), int(spec.link));
  if (!spec.gateway.empty()) {
    AddrHandle gateway = TRY(parse_addr(spec.gateway));
    rtnl_route_nh_set_gateway(hop.get(), gateway.get());
  }
  if (spec.onlink) rtnl_route_nh_set_flags(hop.get(), RTNH_F_ONLINK);
  rtnl_route_add_nexthop(route.get(), hop.release());
  return route;
}

std::string text_of(nl_addr* addr) {
  char text[128];
  return nl_addr2str(addr, text, sizeof text);
}

}  // namespace

Result<Netlink> Netlink::open() {
  nl_sock* socket = nl_socket_alloc();
  if (!socket) return Error(Code::internal, "netlink socket: out of memory");
  Netlink out(socket);
  int rc = nl_connect(socket, NETLINK_ROUTE);
  if (rc < 0) return nl_error(rc, "connect netlink");
  return out;
}

Result<Netlink> Netlink::open_in(const Fd& netns) {
  Netlink out(nullptr);
  TRY(in_netns(netns, [&]() -> Result<void> {
    out = TRY(Netlink::open());
    return {};
  }));
  return out;
}

Netlink::Netlink(Netlink&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
Netlink& Netlink::operator=(Netlink&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}
Netlink::~Netlink() {
  if (socket_) nl_socket_free(socket_);
}

Result<std::vector<Link>> Netlink::links() {
  nl_cache* raw = nullptr;
  int rc = rtnl_link_alloc_cache(socket_, AF_UNSPEC, &raw);
  if (rc < 0) return nl_error(rc, "list links");
  CacheHandle cache(raw);
  std::vector<Link> out;
  for (nl_object* at = nl_cache_get_first(raw); at; at = nl_cache_get_next(at))
    out.push_back(describe(reinterpret_cast<rtnl_link*>(at)));
  return out;
}

Result<Link> Netlink::link(const std::string& name) {
  LinkHandle found = TRY(get_link(socket_, 0, name.c_str()));
  return describe(found.get());
}

Result<uint32_t> Netlink::index_of(const std::string& name) {
  LinkHandle found = TRY(get_link(socket_, 0, name.c_str()));
  return uint32_t(rtnl_link_get_ifindex(found.get()));
}

Result<uint32_t> Netlink::add_bridge(const std::string& name, const std::string& mac, const std::string& alias) {
  LinkHandle link = TRY(new_link("bridge", name, mac));
  int rc = rtnl_link_add(socket_, link.get(), NLM_F_CREATE | NLM_F_EXCL);
  if (rc < 0) return nl_error(rc, "add bridge " + name);
  uint32_t index = TRY(index_of(name));
  if (!alias.empty()) TRY(set_alias(index, alias));
  return index;
}

Result<uint32_t> Netlink::add_dummy(const std::string& name) {
  LinkHandle link = TRY(new_link("dummy", name, ""));
  int rc = rtnl_link_add(socket_, link.get(), NLM_F_CREATE | NLM_F_EXCL);
  if (rc < 0) return nl_error(rc, "add dummy " + name);
  return index_of(name);
}

Result<uint32_t> Netlink::add_veth(const VethSpec& spec) {
  LinkHandle link = TRY(new_link("veth", spec.name, spec.mac));
  if (spec.peer_name.empty() || spec.peer_name.size() >= IFNAMSIZ)
    return Error(Code::invalid, "peer name \"" + spec.peer_name + "\" has a bad length");
  LinkHandle peer(rtnl_link_veth_get_peer(link.get()));  // adds a reference
  rtnl_link_set_name(peer.get(), spec.peer_name.c_str());
  if (spec.peer_netns) rtnl_link_set_ns_fd(peer.get(), spec.peer_netns->get());
  if (!spec.peer_mac.empty()) {
    AddrHandle mac = TRY(parse_mac(spec.peer_mac));
    rtnl_link_set_addr(peer.get(), mac.get());
  }
  if (spec.mtu) {
    rtnl_link_set_mtu(link.get(), spec.mtu);
    rtnl_link_set_mtu(peer.get(), spec.mtu);
  }
  if (spec.master) rtnl_link_set_master(link.get(), int(spec.master));
  if (spec.up) rtnl_link_set_flags(link.get(), IFF_UP);
  int rc = rtnl_link_add(socket_, link.get(), NLM_F_CREATE | NLM_F_EXCL);
  if (rc < 0) return nl_error(rc, "add veth " + spec.name);
  uint32_t index = TRY(index_of(spec.name));
  if (!spec.alias.empty()) TRY(set_alias(index, spec.alias));
  if (spec.isolated || spec.hairpin) TRY(set_port(index, spec.hairpin, spec.isolated));
  return index;
}

Result<void> Netlink::remove_link(uint32_t index) {
  LinkHandle link(rtnl_link_alloc());
  rtnl_link_set_ifindex(link.get(), int(index));
  int rc = rtnl_link_delete(socket_, link.get());
  if (rc < 0) return nl_error(rc, "remove link " + std::to_string(index));
  return {};
}

Result<void> Netlink::set_up(uint32_t index) {
  return change(socket_, index, "set up", [](rtnl_link* link) { rtnl_link_set_flags(link, IFF_UP); });
}
Result<void> Netlink::set_down(uint32_t index) {
  return change(socket_, index, "set down", [](rtnl_link* link) { rtnl_link_unset_flags(link, IFF_UP); });
}
Result<void> Netlink::set_mtu(uint32_t index, uint32_t mtu) {
  return change(socket_, index, "set mtu of", [&](rtnl_link* link) { rtnl_link_set_mtu(link, mtu); });
}
Result<void> Netlink::set_alias(uint32_t index, const std::string& alias) {
  return change(socket_, index, "set alias of", [&](rtnl_link* link) { rtnl_link_set_ifalias(link, alias.c_str()); });
}
Result<void> Netlink::move_link(uint32_t index, const Fd& netns, const std::string& new_name) {
  return change(socket_, index, "move", [&](rtnl_link* link) {
    rtnl_link_set_ns_fd(link, netns.get());
    rtnl_link_set_name(link, new_name.c_str());
  });
}
Result<void> Netlink::set_master(uint32_t index, uint32_t bridge) {
  return change(socket_, index, "set master of", [&](rtnl_link* link) { rtnl_link_set_master(link, int(bridge)); });
}

// libnl supports only some bridge port flags, so the message is built here.
Result<void> Netlink::set_port(uint32_t index, bool hairpin, bool isolated) {
  MessageHandle message(nlmsg_alloc_simple(RTM_SETLINK, NLM_F_REQUEST));
  ifinfomsg head{};
  head.ifi_family = AF_BRIDGE;
  head.ifi_index = int(index);
  if (nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO) < 0) return Error(Code::too_large, "port flags");
  nlattr* nest = nla_nest_start(message.get(), IFLA_PROTINFO | NLA_F_NESTED);
  if (!nest || nla_put_u8(message.get(), IFLA_BRPORT_MODE, hairpin) < 0 ||
      nla_put_u8(message.get(), IFLA_BRPORT_ISOLATED, isolated) < 0)
    return Error(Code::too_large, "port flags");
  nla_nest_end(message.get(), nest);
  int rc = nl_send_sync(socket_, message.release());  // frees it
  if (rc < 0) return nl_error(rc, "set port flags of link " + std::to_string(index));
  return {};
}

Result<void> Netlink::add_neighbor(uint32_t link, const std::string& address, const std::string& mac) {
  NeighborHandle entry(rtnl_neigh_alloc());
  AddrHandle destination = TRY(parse_addr(address));
  AddrHandle lladdr = TRY(parse_mac(mac));
  rtnl_neigh_set_ifindex(entry.get(), int(link));
  rtnl_neigh_set_dst(entry.get(), destination.get());
  rtnl_neigh_set_state(entry.get(), NUD_PERMANENT);
  rtnl_neigh_set_lladdr(entry.get(), lladdr.get());
  int rc = rtnl_neigh_add(socket_, entry.get(), NLM_F_CREATE | NLM_F_REPLACE);
  if (rc < 0) return nl_error(rc, "add neighbour " + address);
  return {};
}

Result<std::vector<AddressInfo>> Netlink::addresses(uint32_t link) {
  nl_cache* raw = nullptr;
  int rc = rtnl_addr_alloc_cache(socket_, &raw);
  if (rc < 0) return nl_error(rc, "list addresses");
  CacheHandle cache(raw);
  std::vector<AddressInfo> out;
  for (nl_object* at = nl_cache_get_first(raw); at; at = nl_cache_get_next(at)) {
    auto* address = reinterpret_cast<rtnl_addr*>(at);
    nl_addr* local = rtnl_addr_get_local(address);
    if (!local || (link && uint32_t(rtnl_addr_get_ifindex(address)) != link)) continue;
    AddressInfo info;
    info.link = uint32_t(rtnl_addr_get_ifindex(address));
    info.address = text_of(local);
    if (info.address.find('/') == info.address.npos) info.address += "/" + std::to_string(rtnl_addr_get_prefixlen(address));
    char scope[32];
    info.scope = rtnl_scope2str(rtnl_addr_get_scope(address), scope, sizeof scope);
    info.is_permanent = rtnl_addr_get_flags(address) & IFA_F_PERMANENT;
    out.push_back(std::move(info));
  }
  return out;
}

Result<void> Netlink::add_address(uint32_t link, const std::string& address, bool no_dad) {
  AddressHandle made = TRY(make_address(link, address, no_dad));
  int rc = rtnl_addr_add(socket_, made.get(), NLM_F_CREATE | NLM_F_EXCL);
  if (rc < 0) return nl_error(rc, "add address " + address);
  return {};
}

Result<void> Netlink::remove_address(uint32_t link, const std::string& address) {
  AddressHandle made = TRY(make_address(link, address, false));
  int rc = rtnl_addr_delete(socket_, made.get(), 0);
  if (rc < 0) return nl_error(rc, "remove address " + address);
  return {};
}

Result<std::vector<RouteSpec>> Netlink::routes() {
  nl_cache* raw = nullptr;
  int rc = rtnl_route_alloc_cache(socket_, AF_UNSPEC, 0, &raw);
  if (rc < 0) return nl_error(rc, "list routes");
  CacheHandle cache(raw);
  std::vector<RouteSpec> out;
  for (nl_object* at = nl_cache_get_first(raw); at; at = nl_cache_get_next(at)) {
    auto* route = reinterpret_cast<rtnl_route*>(at);
    if (rtnl_route_get_table(route) != RT_TABLE_MAIN || rtnl_route_get_type(route) != RTN_UNICAST) continue;
    RouteSpec spec;
    nl_addr* destination = rtnl_route_get_dst(route);
    bool v6 = rtnl_route_get_family(route) == AF_INET6;
    spec.destination = destination && nl_addr_get_len(destination) ? text_of(destination) : v6 ? "::/0" : "0.0.0.0/0";
    if (spec.destination.find('/') == spec.destination.npos) spec.destination += v6 ? "/128" : "/32";
    if (rtnl_nexthop* hop = rtnl_route_nexthop_n(route, 0)) {
      spec.link = uint32_t(rtnl_route_nh_get_ifindex(hop));
      if (nl_addr* gateway = rtnl_route_nh_get_gateway(hop)) spec.gateway = text_of(gateway);
    }
    if (nl_addr* source = rtnl_route_get_pref_src(route)) spec.source = text_of(source);
    spec.scope_link = rtnl_route_get_scope(route) == RT_SCOPE_LINK;
    out.push_back(std::move(spec));
  }
  return out;
}

Result<void> Netlink::add_route(const RouteSpec& spec) {
  RouteHandle route = TRY(make_route(spec));
  int rc = rtnl_route_add(socket_, route.get(), NLM_F_CREATE | NLM_F_REPLACE);
  if (rc < 0) return nl_error(rc, "add route " + spec.destination);
  return {};
}

Result<void> Netlink::remove_route(const RouteSpec& spec) {
  RouteHandle route = TRY(make_route(spec));
  int rc = rtnl_route_delete(socket_, route.get(), 0);
  if (rc < 0) return nl_error(rc, "remove route " + spec.destination);
  return {};
}

Result<NetlinkMonitor> NetlinkMonitor::open() {
  Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!fd) return Error::from_errno("netlink socket");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return Error::from_errno("bind netlink monitor");
  return NetlinkMonitor(std::move(fd));
}

void NetlinkMonitor::drain() {
  char buffer[8192];
  // A short read and ENOBUFS (after an overflow) mean the same: read the state again.
  while (::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT) > 0 || errno == ENOBUFS || errno == EINTR) {
  }
}

Result<LossMonitor> LossMonitor::open(std::string prefix) {
  Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!fd) return Error::from_errno("netlink socket");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) return Error::from_errno("bind loss monitor");
  return LossMonitor(std::move(fd), std::move(prefix));
}

LossMonitor::News LossMonitor::read() {
  News news;
  alignas(nlmsghdr) char buffer[32768];
  auto ours = [&](nlattr* name) { return name && std::string_view(nla_get_string(name)).starts_with(prefix_); };
  for (;;) {
    ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      news.damaged = true;
      continue;
    }
    if (got <= 0) return news;
    int left = int(got);
    for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); nlmsg_ok(head, left); head = nlmsg_next(head, &left)) {
      if (head->nlmsg_type == RTM_DELLINK || head->nlmsg_type == RTM_NEWLINK) {
        auto* link = static_cast<ifinfomsg*>(nlmsg_data(head));
        nlattr* name = nlmsg_find_attr(head, sizeof(ifinfomsg), IFLA_IFNAME);
        if (link->ifi_family != AF_UNSPEC || !ours(name)) continue;
        // A new link reports all flags as changed.
        bool went_down = link->ifi_change != ~0u && (link->ifi_change & IFF_UP) && !(link->ifi_flags & IFF_UP);
        if (head->nlmsg_type == RTM_DELLINK || went_down) news.links.emplace(nla_get_string(name));
      } else if (head->nlmsg_type == RTM_DELADDR) {
        if (ours(nlmsg_find_attr(head, sizeof(ifaddrmsg), IFA_LABEL))) news.damaged = true;
      } else if (head->nlmsg_type == RTM_DELROUTE) {
        auto* route = static_cast<rtmsg*>(nlmsg_data(head));
        nlattr* link = nlmsg_find_attr(head, sizeof(rtmsg), RTA_OIF);
        if (route->rtm_family != AF_INET || route->rtm_table != RT_TABLE_MAIN || !link) continue;
        ifreq asked{};
        asked.ifr_ifindex = int(nla_get_u32(link));
        bool is_there = ::ioctl(fd_.get(), SIOCGIFNAME, &asked) == 0;  // routes of a deleted link do not count
        if (is_there && std::string_view(asked.ifr_name).starts_with(prefix_)) news.damaged = true;
      }
    }
  }
}

namespace {

// The kernel moves a link before it changes its name: that the name is free has to be known before.
Result<std::string> free_name(Netlink& there, const std::string& wanted) {
  auto links = TRY(there.links());
  auto is_taken = [&](const std::string& name) {
    return std::any_of(links.begin(), links.end(), [&](const Link& each) { return each.name == name; });
  };
  const size_t place = wanted.find("%d");
  const size_t tries = place == wanted.npos ? 1 : links.size() + 1;  // one of so many numbers is free
  for (size_t number = 0; number < tries; ++number) {
    std::string name = wanted;
    if (place != wanted.npos) name.replace(place, 2, std::to_string(number));
    if (!is_taken(name)) return name;
  }
  return Error::from_errno(EEXIST, "link " + wanted);
}

}  // namespace

Result<void> move_link_with_addresses(const std::string& name, const Fd& netns, const std::string& new_name) {
  Netlink here = TRY(Netlink::open());
  uint32_t index = TRY(here.index_of(name));
  auto addresses = TRY(here.addresses(index));
  Netlink there = TRY(Netlink::open_in(netns));
  const std::string name_there = TRY(free_name(there, new_name));
  TRY(here.move_link(index, netns, name_there));
  uint32_t moved = TRY(there.index_of(name_there));
  for (const AddressInfo& each : addresses)
    if (each.scope == "global" && each.is_permanent) TRY(there.add_address(moved, each.address));
  return there.set_up(moved);
}

}  // namespace coracle::sys
