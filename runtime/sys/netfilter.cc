// SPDX-License-Identifier: Apache-2.0
// See netfilter.h.
#include "runtime/sys/netfilter.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <memory>
#include <vector>

#include "runtime/sys/libnl.h"

namespace coracle::sys {
namespace {

using SocketHandle = std::unique_ptr<nl_sock, Freed<nl_sock, nl_socket_free>>;

Error netfilter_error(int rc, const char* doing) { return Error(Code::internal, std::string(doing) + ": " + nl_geterror(rc)); }

Result<SocketHandle> open_netfilter() {
  SocketHandle socket(nl_socket_alloc());
  if (!socket) return Error(Code::internal, "netfilter socket: out of memory");
  int rc = nl_connect(socket.get(), NETLINK_NETFILTER);
  if (rc < 0) return netfilter_error(rc, "connect netfilter");
  return socket;
}

Result<MessageHandle> conntrack_message(int verb, int flags) {
  MessageHandle message(nlmsg_alloc_simple(NFNL_SUBSYS_CTNETLINK << 8 | verb, flags));
  nfgenmsg head{};
  head.nfgen_family = AF_INET;
  head.version = NFNETLINK_V0;
  if (!message || nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO) < 0)
    return Error(Code::internal, "conntrack message: out of memory");
  return message;
}

struct Tuple {
  uint32_t source = 0, destination = 0;
  uint16_t source_port = 0, destination_port = 0;
  bool udp = false;
};

Tuple read_tuple(nlattr* from) {
  Tuple out;
  nlattr* parts[CTA_TUPLE_MAX + 1];
  nlattr* ip[CTA_IP_MAX + 1];
  nlattr* proto[CTA_PROTO_MAX + 1];
  if (!from || nla_parse_nested(parts, CTA_TUPLE_MAX, from, nullptr) < 0) return out;
  if (!parts[CTA_TUPLE_IP] || nla_parse_nested(ip, CTA_IP_MAX, parts[CTA_TUPLE_IP], nullptr) < 0) return out;
  if (!parts[CTA_TUPLE_PROTO] || nla_parse_nested(proto, CTA_PROTO_MAX, parts[CTA_TUPLE_PROTO], nullptr) < 0) return out;
  if (!ip[CTA_IP_V4_SRC] || !ip[CTA_IP_V4_DST] || !proto[CTA_PROTO_NUM]) return out;
  out.source = ntohl(nla_get_u32(ip[CTA_IP_V4_SRC]));
  out.destination = ntohl(nla_get_u32(ip[CTA_IP_V4_DST]));
  out.udp = nla_get_u8(proto[CTA_PROTO_NUM]) == IPPROTO_UDP;
  if (proto[CTA_PROTO_SRC_PORT]) out.source_port = ntohs(nla_get_u16(proto[CTA_PROTO_SRC_PORT]));
  if (proto[CTA_PROTO_DST_PORT]) out.destination_port = ntohs(nla_get_u16(proto[CTA_PROTO_DST_PORT]));
  return out;
}

struct Collector {
  const std::function<bool(const UdpFlow&)>& gone;
  std::vector<std::string> tuples;  // CTA_TUPLE_ORIG of what must go, as the kernel wrote it
};

int collect_flow(nl_msg* message, void* argument) {
  auto* collector = static_cast<Collector*>(argument);
  nlattr* attributes[CTA_MAX + 1];
  if (nlmsg_parse(nlmsg_hdr(message), sizeof(nfgenmsg), attributes, CTA_MAX, nullptr) < 0) return NL_SKIP;
  Tuple original = read_tuple(attributes[CTA_TUPLE_ORIG]), reply = read_tuple(attributes[CTA_TUPLE_REPLY]);
  if (!original.udp || !reply.udp) return NL_OK;
  UdpFlow flow{original.source,           original.destination, original.source_port,
               original.destination_port, reply.source,         reply.source_port};
  if (collector->gone(flow))
    collector->tuples.emplace_back(static_cast<const char*>(nla_data(attributes[CTA_TUPLE_ORIG])),
                                   size_t(nla_len(attributes[CTA_TUPLE_ORIG])));
  return NL_OK;
}

}  // namespace

Result<size_t> forget_udp_flows(const std::function<bool(const UdpFlow&)>& gone) {
  SocketHandle socket = TRY(open_netfilter());
  MessageHandle dump = TRY(conntrack_message(IPCTNL_MSG_CT_GET, NLM_F_DUMP));
  Collector collector{gone, {}};
  nl_socket_modify_cb(socket.get(), NL_CB_VALID, NL_CB_CUSTOM, collect_flow, &collector);
  int rc = nl_send_auto(socket.get(), dump.get());
  if (rc >= 0) rc = nl_recvmsgs_default(socket.get());
  if (rc < 0) return netfilter_error(rc, "list flows");

  size_t forgotten = 0;
  for (const std::string& tuple : collector.tuples) {
    MessageHandle removal = TRY(conntrack_message(IPCTNL_MSG_CT_DELETE, 0));
    if (nla_put(removal.get(), CTA_TUPLE_ORIG | NLA_F_NESTED, int(tuple.size()), tuple.data()) < 0)
      return Error(Code::internal, "conntrack message: out of memory");
    rc = nl_send_sync(socket.get(), removal.release());  // frees it
    if (rc >= 0) ++forgotten;                            // else it has just ended by itself
  }
  return forgotten;
}

Result<TableMonitor> TableMonitor::open() {
  Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER));
  if (!fd) return Error::from_errno("netfilter socket");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1u << (NFNLGRP_NFTABLES - 1);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) return Error::from_errno("bind table monitor");
  return TableMonitor(std::move(fd));
}

TableMonitor::News TableMonitor::read(std::string_view table) {
  alignas(nlmsghdr) char buffer[32768];
  News news;
  for (;;) {
    ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      news.lost = true;
      continue;
    }
    if (got <= 0) return news;
    int left = int(got);
    for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); nlmsg_ok(head, left); head = nlmsg_next(head, &left)) {
      if (head->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE)) continue;
      nlattr* name = nlmsg_find_attr(head, sizeof(nfgenmsg), NFTA_TABLE_NAME);
      if (name && table == nla_get_string(name)) ++news.removals;
    }
  }
}

}  // namespace coracle::sys
