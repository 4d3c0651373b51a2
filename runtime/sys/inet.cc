// SPDX-License-Identifier: Apache-2.0
// See inet.h.
#include "runtime/sys/inet.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/libnl.h"

namespace coracle::sys {
namespace {

sockaddr_in to_kernel(const Endpoint4& endpoint) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(endpoint.address);
  out.sin_port = htons(endpoint.port);
  return out;
}

Endpoint4 from_kernel(const sockaddr_in& address) { return {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)}; }

Result<Fd> make_socket(Transport transport) {
  int type = transport == Transport::udp ? SOCK_DGRAM : SOCK_STREAM;
  Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("socket");
  return socket;
}

}  // namespace

Result<Fd> listen_on(Transport transport, const Endpoint4& at, int backlog) {
  Fd socket = TRY(make_socket(transport));
  if (transport == Transport::tcp) {  // connections of a previous process may still be closing
    int yes = 1;
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0) return Error::from_errno("setsockopt");
  }
  sockaddr_in address = to_kernel(at);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) return Error::from_errno("bind");
  if (transport == Transport::tcp && ::listen(socket.get(), backlog) < 0) return Error::from_errno("listen");
  return socket;
}

Result<Fd> connect_to(Transport transport, const Endpoint4& to) {
  Fd socket = TRY(make_socket(transport));
  sockaddr_in address = to_kernel(to);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 && errno != EINPROGRESS)
    return Error::from_errno("connect");
  return socket;
}

Result<Endpoint4> bound_to(const Fd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) < 0) return Error::from_errno("getsockname");
  return from_kernel(address);
}

Result<Accepted> accept_from(const Fd& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  Fd socket(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return Error::from_errno("accept");
  return Accepted{std::move(socket), from_kernel(address)};
}

Result<Datagram> receive_datagram(const Fd& socket, std::span<char> buffer) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ssize_t got = ::recvfrom(socket.get(), buffer.data(), buffer.size(), MSG_TRUNC, reinterpret_cast<sockaddr*>(&address), &size);
  if (got < 0) return Error::from_errno("receive");
  return Datagram{size_t(got), from_kernel(address)};
}

Result<void> send_datagram(const Fd& socket, const Endpoint4& to, std::string_view bytes) {
  sockaddr_in address = to_kernel(to);
  if (::sendto(socket.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return Error::from_errno("send");
  return {};
}

Result<size_t> receive_some(const Fd& socket, std::span<char> buffer) {
  ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return Error::from_errno("receive");
  return size_t(got);
}

Result<size_t> send_some(const Fd& socket, std::string_view bytes) {
  ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0) return Error::from_errno("send");
  return size_t(sent);
}

namespace {

constexpr size_t kListBytesMax = 4 << 20;  // of one of the kernel's lists of sockets

template <typename T>
std::optional<T> parse_hex(std::string_view text) {
  T out{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// The kernel writes an address as 32-bit numbers in native byte order. Nothing: IPv6 only.
std::optional<uint32_t> parse_local_address(std::string_view text, bool v6) {
  std::array<uint32_t, 4> words{};
  const size_t count = v6 ? 4 : 1;
  if (text.size() != count * 8) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    std::optional<uint32_t> word = parse_hex<uint32_t>(text.substr(i * 8, 8));
    if (!word) return std::nullopt;
    words[i] = ntohl(*word);
  }
  if (!v6) return words[0];
  if (words[0] != 0 || words[1] != 0) return std::nullopt;
  if (words[2] == 0xffff) return words[3];                                                         // ::ffff:192.0.2.1
  return words[2] == 0 && words[3] == 0 ? std::optional<uint32_t>(0) : std::optional<uint32_t>();  // ::
}

// "   0: 0100007F:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 …": number, local address, peer,
// state, queues, timer, retransmissions, uid, timeout, inode.
struct SocketLine {
  std::string_view local, state, uid, inode;
};
std::optional<SocketLine> split_socket_line(std::string_view line) {
  std::vector<std::string_view> fields = split(line.substr(0, 250), ' ');
  std::erase(fields, std::string_view());
  if (fields.size() < 4 || !fields[0].ends_with(':')) return std::nullopt;
  if (fields.size() < 10) fields.resize(10);
  return SocketLine{fields[1], fields[3], fields[7], fields[9]};
}

constexpr const char* listening_state(Transport transport) {
  return transport == Transport::tcp ? "0A" : "07";  // TCP_LISTEN; TCP_CLOSE: a UDP socket that is not connected
}

// For TCP, listening sockets come first: the rest of the list is not read.
Result<std::string> read_listening(const std::string& path, Transport transport) {
  Result<Fd> file = open(path, O_RDONLY);
  if (!file) return file.error().code() == Code::not_found ? Result<std::string>("") : Result<std::string>(file.take_error());
  std::string out;
  char buffer[16384];
  while (out.size() < kListBytesMax) {
    ssize_t got = ::read(file->get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("read " + path);
    if (got == 0) break;
    out.append(buffer, size_t(got));
    if (transport != Transport::tcp) continue;
    std::string_view whole(out.data(), out.rfind('\n') + 1);
    if (whole.empty()) continue;
    std::optional<SocketLine> last = split_socket_line(whole.substr(whole.rfind('\n', whole.size() - 2) + 1));
    if (last && last->state != listening_state(transport)) break;
  }
  return out;
}

}  // namespace

std::vector<Listener> parse_listeners(std::string_view list, Transport transport, bool v6) {
  std::vector<Listener> out;
  list = list.substr(0, list.rfind('\n') + 1);
  for (std::string_view line : split(list, '\n')) {
    std::optional<SocketLine> fields = split_socket_line(line);
    if (!fields || fields->state != listening_state(transport)) continue;
    size_t colon = fields->local.find(':');
    if (colon == fields->local.npos) continue;
    std::optional<uint32_t> address = parse_local_address(fields->local.substr(0, colon), v6);
    std::optional<uint16_t> port = parse_hex<uint16_t>(fields->local.substr(colon + 1));
    if (!address || !port || *port == 0) continue;
    out.push_back({transport,
                   {*address, *port},
                   parse_number<uint32_t>(fields->uid).value_or(0),
                   parse_number<uint64_t>(fields->inode).value_or(0)});
  }
  return out;
}

Result<std::vector<Listener>> listeners() {
  std::vector<Listener> out;
  for (Transport transport : {Transport::tcp, Transport::udp}) {
    for (bool v6 : {false, true}) {
      const std::string path =
          std::string("/proc/thread-self/net/") + (transport == Transport::tcp ? "tcp" : "udp") + (v6 ? "6" : "");
      std::string list = TRY(read_listening(path, transport));
      for (const Listener& one : parse_listeners(list, transport, v6)) out.push_back(one);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

namespace {

using DiagHandle = std::unique_ptr<nl_sock, Freed<nl_sock, nl_socket_free>>;
constexpr int kCgroupId = 21;  // INET_DIAG_CGROUP_ID, which older headers lack

int collect_cgroup(nl_msg* message, void* argument) {
  nlattr* attributes[kCgroupId + 1];
  nlmsghdr* head = nlmsg_hdr(message);
  if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY) return NL_SKIP;
  if (nlmsg_parse(head, sizeof(inet_diag_msg), attributes, kCgroupId, nullptr) < 0) return NL_SKIP;
  const auto* socket = static_cast<const inet_diag_msg*>(nlmsg_data(head));
  auto* out = static_cast<std::map<uint64_t, uint64_t>*>(argument);
  if (attributes[kCgroupId]) out->emplace(socket->idiag_inode, nla_get_u64(attributes[kCgroupId]));
  return NL_OK;
}

}  // namespace

Result<std::map<uint64_t, uint64_t>> cgroups_of_listeners() {
  std::map<uint64_t, uint64_t> out;
  DiagHandle socket(nl_socket_alloc());
  if (!socket || nl_connect(socket.get(), NETLINK_SOCK_DIAG) < 0)
    return Error(Code::unsupported, "the kernel has no socket diagnosis");
  nl_socket_modify_cb(socket.get(), NL_CB_VALID, NL_CB_CUSTOM, collect_cgroup, &out);
  for (Transport transport : {Transport::tcp, Transport::udp}) {
    for (int family : {AF_INET, AF_INET6}) {
      inet_diag_req_v2 ask{};
      ask.sdiag_family = uint8_t(family);
      ask.sdiag_protocol = transport == Transport::tcp ? IPPROTO_TCP : IPPROTO_UDP;
      ask.idiag_states = 1u << (transport == Transport::tcp ? TCP_LISTEN : TCP_CLOSE);
      MessageHandle message(nlmsg_alloc_simple(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP));
      if (!message || nlmsg_append(message.get(), &ask, sizeof ask, NLMSG_ALIGNTO) < 0)
        return Error(Code::internal, "socket diagnosis: out of memory");
      // A kernel without IPv6, or without this protocol's part of the diagnosis, refuses one of the four.
      if (nl_send_auto(socket.get(), message.get()) >= 0) (void)nl_recvmsgs_default(socket.get());
    }
  }
  return out;
}

}  // namespace coracle::sys
