// SPDX-License-Identifier: Apache-2.0
// See netfilter.h.
#include "runtime/sys/netfilter.h"

#include <endian.h>
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

constexpr size_t kForgottenAtOnce = 4096;  // flows per pass; the next pass finds the others
constexpr int kForgetLooksMax = 64;

struct Collector {
  const std::function<bool(const UdpFlow&)>& gone;
  std::vector<std::string> tuples;  // CTA_TUPLE_ORIG of the flows to delete, as received
};

int collect_flow(nl_msg* message, void* argument) {
  auto* collector = static_cast<Collector*>(argument);
  nlattr* attributes[CTA_MAX + 1];
  if (nlmsg_parse(nlmsg_hdr(message), sizeof(nfgenmsg), attributes, CTA_MAX, nullptr) < 0) return NL_SKIP;
  Tuple original = read_tuple(attributes[CTA_TUPLE_ORIG]), reply = read_tuple(attributes[CTA_TUPLE_REPLY]);
  if (!original.udp || !reply.udp) return NL_OK;
  UdpFlow flow{original.source,           original.destination, original.source_port,
               original.destination_port, reply.source,         reply.source_port};
  if (collector->tuples.size() < kForgottenAtOnce && collector->gone(flow))
    collector->tuples.emplace_back(static_cast<const char*>(nla_data(attributes[CTA_TUPLE_ORIG])),
                                   size_t(nla_len(attributes[CTA_TUPLE_ORIG])));
  return NL_OK;
}

struct Forgotten {
  size_t flows = 0;
  bool maybe_more = false;
};

Result<Forgotten> forget_some_flows(const std::function<bool(const UdpFlow&)>& gone) {
  SocketHandle socket = TRY(open_netfilter());
  MessageHandle dump = TRY(conntrack_message(IPCTNL_MSG_CT_GET, NLM_F_DUMP));
  Collector collector{gone, {}};
  nl_socket_modify_cb(socket.get(), NL_CB_VALID, NL_CB_CUSTOM, collect_flow, &collector);
  int rc = nl_send_auto(socket.get(), dump.get());
  if (rc >= 0) rc = nl_recvmsgs_default(socket.get());
  if (rc < 0) return netfilter_error(rc, "list flows");

  Forgotten forgotten{0, collector.tuples.size() == kForgottenAtOnce};
  for (const std::string& tuple : collector.tuples) {
    MessageHandle removal = TRY(conntrack_message(IPCTNL_MSG_CT_DELETE, 0));
    if (nla_put(removal.get(), CTA_TUPLE_ORIG | NLA_F_NESTED, int(tuple.size()), tuple.data()) < 0)
      return Error(Code::internal, "conntrack message: out of memory");
    rc = nl_send_sync(socket.get(), removal.release());  // frees it
    if (rc >= 0) ++forgotten.flows;                      // otherwise it has just expired
  }
  return forgotten;
}

}  // namespace

Result<size_t> forget_udp_flows(const std::function<bool(const UdpFlow&)>& gone) {
  size_t flows = 0;
  for (int looks = 0; looks < kForgetLooksMax; ++looks) {
    Forgotten forgotten = TRY(forget_some_flows(gone));
    flows += forgotten.flows;
    if (!forgotten.maybe_more) break;
  }
  return flows;
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

TableMonitor::News TableMonitor::read(std::string_view table) { return read_all({table}).front(); }

// The messages of a transaction are contiguous; the last one announces the new generation.
std::vector<TableMonitor::News> TableMonitor::read_all(const std::vector<std::string_view>& tables) {
  alignas(nlmsghdr) char buffer[32768];
  std::vector<News> news(tables.size());
  for (;;) {
    ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      for (News& one : news) one.lost = true;
      continue;
    }
    if (got <= 0) return news;
    int left = int(got);
    for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); nlmsg_ok(head, left); head = nlmsg_next(head, &left)) {
      if (head->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES) continue;
      const int type = head->nlmsg_type & 0xff;
      if (type == NFT_MSG_NEWGEN) {
        for (size_t i = 0; i < tables.size(); ++i) {
          if (begun_.changed.contains(tables[i])) ++news[i].changes;
          if (begun_.reduced.contains(tables[i])) ++news[i].losses;
        }
        begun_ = {};
        continue;
      }
      static_assert(int(NFTA_TABLE_NAME) == 1 && int(NFTA_CHAIN_TABLE) == 1 && int(NFTA_RULE_TABLE) == 1 &&
                    int(NFTA_SET_TABLE) == 1 && int(NFTA_SET_ELEM_LIST_TABLE) == 1);
      nlattr* named = nlmsg_find_attr(head, sizeof(nfgenmsg), NFTA_TABLE_NAME);
      if (!named) continue;
      const std::string_view table = nla_get_string(named);
      const bool removes = type == NFT_MSG_DELTABLE || type == NFT_MSG_DELCHAIN || type == NFT_MSG_DELRULE ||
                           type == NFT_MSG_DELSET || type == NFT_MSG_DELSETELEM;
      begun_.changed.emplace(table);
      if (removes) begun_.reduced.emplace(table);
      for (size_t i = 0; i < tables.size(); ++i)
        if (type == NFT_MSG_DELTABLE && table == tables[i]) ++news[i].removals;
    }
  }
}

// ---- elements ----

namespace {

Result<Fd> open_raw_netfilter() {
  Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!fd) return Error::from_errno("netfilter socket");
  return fd;
}

// NFPROTO_ARP and NFPROTO_IPV4; their header conflicts with <netinet/in.h>.
constexpr uint8_t family_number(TableFamily family) { return family == TableFamily::arp ? 3 : 2; }

// A message of nftables, or one that begins or ends a transaction.
Result<MessageHandle> nftables_message(int type, int flags, uint8_t family, uint16_t resource, uint32_t sequence) {
  MessageHandle message(nlmsg_alloc_simple(type, NLM_F_REQUEST | flags));
  nfgenmsg head{family, NFNETLINK_V0, htons(resource)};
  if (!message || nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO) < 0)
    return Error(Code::internal, "nftables message: out of memory");
  nlmsg_hdr(message.get())->nlmsg_seq = sequence;
  return message;
}

Result<MessageHandle> element_message(const SetElement& element, uint32_t sequence) {
  MessageHandle message = TRY(nftables_message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM, NLM_F_CREATE | NLM_F_ACK,
                                               family_number(element.family), 0, sequence));
  nl_msg* raw = message.get();
  bool ok = nla_put_string(raw, NFTA_SET_ELEM_LIST_TABLE, element.table.c_str()) == 0 &&
            nla_put_string(raw, NFTA_SET_ELEM_LIST_SET, element.set.c_str()) == 0;
  nlattr* list = ok ? nla_nest_start(raw, NFTA_SET_ELEM_LIST_ELEMENTS | NLA_F_NESTED) : nullptr;
  nlattr* one = list ? nla_nest_start(raw, NFTA_LIST_ELEM | NLA_F_NESTED) : nullptr;
  nlattr* key = one ? nla_nest_start(raw, NFTA_SET_ELEM_KEY | NLA_F_NESTED) : nullptr;
  if (!key || nla_put(raw, NFTA_DATA_VALUE, int(element.key.size()), element.key.data()) < 0)
    return Error(Code::too_large, "element of set " + element.set);
  nla_nest_end(raw, key);
  nla_nest_end(raw, one);
  nla_nest_end(raw, list);
  return message;
}

void append_message(std::string& batch, nl_msg* message) {
  const nlmsghdr* head = nlmsg_hdr(message);
  batch.append(reinterpret_cast<const char*>(head), head->nlmsg_len);
  batch.resize(NLMSG_ALIGN(batch.size()));
}

Result<void> send_request(const Fd& socket, const std::string& bytes, const char* doing) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t sent = ::sendto(socket.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel);
  return sent < 0 ? Result<void>(Error::from_errno(doing)) : Result<void>();
}

Error nftables_error(int number, const std::string& doing) {
  Error error = Error::from_errno(number, doing);
  if (number == ENOENT) return std::move(error).as(Code::not_found);
  return error;
}

}  // namespace

Result<void> add_set_elements(const std::vector<SetElement>& elements) {
  std::string batch;
  uint32_t sequence = 0;
  MessageHandle begin = TRY(nftables_message(NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, ++sequence));
  append_message(batch, begin.get());
  for (const SetElement& element : elements) {
    MessageHandle message = TRY(element_message(element, ++sequence));
    append_message(batch, message.get());
  }
  MessageHandle end = TRY(nftables_message(NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, ++sequence));
  append_message(batch, end.get());

  Fd socket = TRY(open_raw_netfilter());
  TRY(send_request(socket, batch, "add elements"));
  // When sendto returns, the kernel has executed the transaction and queued all replies.
  alignas(nlmsghdr) char buffer[8192];
  size_t answers = 0;
  for (;;) {
    ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    int left = int(got);
    for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); nlmsg_ok(head, left); head = nlmsg_next(head, &left)) {
      if (head->nlmsg_type != NLMSG_ERROR) continue;
      int number = -static_cast<const nlmsgerr*>(nlmsg_data(head))->error;
      if (number != 0) return nftables_error(number, "add an element to a set");
      ++answers;
    }
  }
  if (answers < elements.size()) return Error(Code::internal, "add elements: the kernel did not answer");
  return {};
}

Result<std::vector<ExpiringElement>> expiring_elements(const std::string& table, const std::string& set, size_t max) {
  MessageHandle dump =
      TRY(nftables_message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETSETELEM, NLM_F_DUMP, family_number(TableFamily::ip), 0, 1));
  if (nla_put_string(dump.get(), NFTA_SET_ELEM_LIST_TABLE, table.c_str()) < 0 ||
      nla_put_string(dump.get(), NFTA_SET_ELEM_LIST_SET, set.c_str()) < 0)
    return Error(Code::too_large, "list set " + set);
  std::string request;
  append_message(request, dump.get());
  Fd socket = TRY(open_raw_netfilter());
  TRY(send_request(socket, request, "list set"));

  std::vector<ExpiringElement> out;
  alignas(nlmsghdr) char buffer[32768];
  while (out.size() < max) {
    ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error::from_errno("list set " + set);
    int left = int(got);
    for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); nlmsg_ok(head, left); head = nlmsg_next(head, &left)) {
      if (head->nlmsg_type == NLMSG_DONE) return out;
      if (head->nlmsg_type == NLMSG_ERROR) {
        int number = -static_cast<const nlmsgerr*>(nlmsg_data(head))->error;
        return nftables_error(number, "list set " + set);
      }
      nlattr* list = nlmsg_find_attr(head, sizeof(nfgenmsg), NFTA_SET_ELEM_LIST_ELEMENTS);
      if (!list) continue;
      int rest = 0;
      nlattr* each = nullptr;
      nla_for_each_nested(each, list, rest) {
        nlattr* parts[NFTA_SET_ELEM_MAX + 1];
        nlattr* key[NFTA_DATA_MAX + 1];
        if (nla_parse_nested(parts, NFTA_SET_ELEM_MAX, each, nullptr) < 0 || !parts[NFTA_SET_ELEM_KEY]) continue;
        if (!parts[NFTA_SET_ELEM_EXPIRATION] || out.size() >= max) continue;
        if (nla_parse_nested(key, NFTA_DATA_MAX, parts[NFTA_SET_ELEM_KEY], nullptr) < 0 || !key[NFTA_DATA_VALUE]) continue;
        uint64_t expires = be64toh(nla_get_u64(parts[NFTA_SET_ELEM_EXPIRATION]));
        out.push_back(
            {std::string(static_cast<const char*>(nla_data(key[NFTA_DATA_VALUE])), size_t(nla_len(key[NFTA_DATA_VALUE]))),
             expires});
      }
    }
  }
  return out;
}

}  // namespace coracle::sys
