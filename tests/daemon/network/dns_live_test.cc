// SPDX-License-Identifier: Apache-2.0
// Real queries to the DNS server, from pods and from the machine, over UDP and TCP, and forwarding to resolvers.

#include <functional>

#include "daemon/network/dns_message.h"
#include "daemon/network/dns_service.h"
#include "store/object/object.h"
#include "tests/daemon/network/network_fixture.h"

// clang-format off
#include <ldns/ldns.h>  // last: it may define true and false
// clang-format on

namespace coracle::network {
namespace {

constexpr const char* kDns = "10.96.0.10";
constexpr uint16_t kA = 1;

// "NOERROR 10.96.0.1", "NXDOMAIN", "SERVFAIL": the code and the answer's data, ordered by type; "+" marks a truncated answer.
std::string read(std::string_view packet) {
  ldns_pkt* parsed = nullptr;
  if (ldns_wire2pkt(&parsed, reinterpret_cast<const uint8_t*>(packet.data()), packet.size()) != LDNS_STATUS_OK)
    return "unreadable";
  char* code = ldns_pkt_rcode2str(ldns_pkt_get_rcode(parsed));
  std::string out = code;
  std::free(code);
  const ldns_rr_list* answers = ldns_pkt_answer(parsed);
  for (size_t i = 0; i < ldns_rr_list_rr_count(answers); ++i) {
    char* data = ldns_rdf2str(ldns_rr_rdf(ldns_rr_list_rr(answers, i), 0));
    out.append(" ").append(data);
    std::free(data);
  }
  if (ldns_pkt_tc(parsed)) out += "+";
  ldns_pkt_free(parsed);
  return out;
}

std::string ask_udp(const Fd& netns, const std::string& name, uint16_t type = kA, const char* server = kDns) {
  Fd socket = socket_in(netns, SOCK_DGRAM);
  sockaddr_in where = at(server, 53);
  std::string question = encode_question(77, name, type);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) < 0) return failure();
  if (::send(socket.get(), question.data(), question.size(), 0) < 0) return failure();
  char buffer[4096];
  timeval timeout{60, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
  if (got < 0) return failure();
  EXPECT_TRUE(answers({buffer, size_t(got)}, question)) << name;
  return read({buffer, size_t(got)});
}

std::string ask_tcp(const Fd& netns, const std::vector<std::string>& names) {
  Fd socket = socket_in(netns, SOCK_STREAM);
  sockaddr_in where = at(kDns, 53);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) < 0) return failure();
  for (const std::string& name : names) {  // all at once
    std::string question = encode_question(78, name, kA);
    std::string framed = std::string{char(question.size() >> 8), char(question.size() & 255)} + question;
    if (::send(socket.get(), framed.data(), framed.size(), MSG_NOSIGNAL) < 0) return failure();
  }
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    uint8_t length[2];
    if (::recv(socket.get(), length, 2, MSG_WAITALL) != 2) return out + failure();
    std::string packet(size_t(length[0] << 8 | length[1]), '\0');
    if (::recv(socket.get(), packet.data(), packet.size(), MSG_WAITALL) != ssize_t(packet.size())) return out + failure();
    out += (i ? "; " : "") + read(packet);
  }
  return out;
}

// An external resolver: it answers every A query with its address, over UDP and TCP; `answer` may change the packet, or clear it
// to send nothing.
class Resolver {
 public:
  using Change = std::function<void(std::string& packet)>;
  Resolver(const Fd& netns, const std::string& address, std::string says, Change change = {})
      : says_(MUST(Ipv4::parse(says))), change_(std::move(change)) {
    sockaddr_in where = at(address, 53);
    for (Fd* socket : {&udp_, &tcp_}) {
      *socket = socket_in(netns, socket == &udp_ ? SOCK_DGRAM : SOCK_STREAM);
      if (::bind(socket->get(), reinterpret_cast<sockaddr*>(&where), sizeof where) < 0) ADD_FAILURE() << failure();
    }
    if (::listen(tcp_.get(), 8) < 0) ADD_FAILURE() << failure();
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }
  int asked() const { return asked_; }

 private:
  void run(std::stop_token stop) {
    while (!stop.stop_requested()) {
      pollfd fds[2] = {{udp_.get(), POLLIN, 0}, {tcp_.get(), POLLIN, 0}};
      if (::poll(fds, 2, 20) <= 0) continue;
      char buffer[4096];
      sockaddr_in from{};
      socklen_t size = sizeof from;
      if (fds[0].revents) {
        ssize_t got = ::recvfrom(udp_.get(), buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &size);
        std::string reply = got > 0 ? answer_to({buffer, size_t(got)}, 1232) : "";
        if (!reply.empty()) ::sendto(udp_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
      }
      if (fds[1].revents) {
        Fd client(::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ssize_t got = ::recv(client.get(), buffer, sizeof buffer, 0);
        std::string reply = got > 2 ? answer_to({buffer + 2, size_t(got) - 2}, kDnsMessageMax) : "";
        std::string framed = std::string{char(reply.size() >> 8), char(reply.size() & 255)} + reply;
        if (!reply.empty()) (void)!::send(client.get(), framed.data(), framed.size(), MSG_NOSIGNAL);
      }
    }
  }
  std::string answer_to(std::string_view packet, size_t bytes_max) {
    ++asked_;
    Result<Question> question = parse_question(packet);
    if (!question) return "";
    ZoneAnswer found;
    size_t records = question->name == "large.example.com" ? 200 : 1;
    for (size_t i = 0; i < records; ++i)
      found.answer.push_back({question->name, RecordType::a, Ipv4{says_.value + uint32_t(i)}, "", 0});
    std::string reply = encode(*question, found, ZoneConfig{}, bytes_max);
    if (change_) change_(reply);
    return reply;
  }

  Ipv4 says_;
  Change change_;
  std::atomic<int> asked_ = 0;
  Fd udp_, tcp_;
  std::jthread thread_;
};

class Dns : public NetworkFixture {
 protected:
  void cluster() {
    connect_outside();
    up();
    put_service("kubernetes", R"({"clusterIP":"10.96.0.1","ports":[{"name":"https","port":443}]})");
    put_service("db", R"({"clusterIP":"None","ports":[{"name":"p","port":5432}]})");
    put_endpoints("db", {"10.244.0.200"}, 5432);
    put_service("far", R"({"type":"ExternalName","externalName":"www.example.com"})");
    applied();
  }
  void second_address_outside(const std::string& address) {
    sys::Netlink link = MUST(sys::Netlink::open_in(outside));
    MUST(link.add_address(MUST(link.index_of("uplink")), address + "/24"));
  }
};

TEST_F(Dns, answers_pods_and_the_machine_without_any_resolver) {
  cluster();
  Pod a = pod("a");
  for (const Fd* from : {&a.netns, &machine}) {
    EXPECT_EQ(ask_udp(*from, "kubernetes.default.svc.cluster.local"), "NOERROR 10.96.0.1");
    EXPECT_EQ(ask_udp(*from, "db.default.svc.cluster.local"), "NOERROR 10.244.0.200");
    EXPECT_EQ(ask_udp(*from, "nobody.default.svc.cluster.local"), "NXDOMAIN");
    EXPECT_EQ(ask_udp(*from, "kubernetes.default.svc.cluster.local", 28), "NOERROR");
    EXPECT_EQ(ask_udp(*from, "www.example.com"), "SERVFAIL");
    EXPECT_EQ(ask_udp(*from, "far.default.svc.cluster.local"), "SERVFAIL");
  }
  EXPECT_EQ(ask_tcp(a.netns, {"kubernetes.default.svc.cluster.local", "www.example.com", "db.default.svc.cluster.local"}),
            "NOERROR 10.96.0.1; SERVFAIL; NOERROR 10.244.0.200");
}

TEST_F(Dns, hosts_of_the_local_network_are_not_served) {
  cluster();
  sys::Netlink link = MUST(sys::Netlink::open_in(outside));
  MUST(link.add_route({.destination = "10.96.0.0/16", .gateway = kMachine, .link = MUST(link.index_of("uplink"))}));
  Fd socket = socket_in(outside, SOCK_DGRAM);
  timeval short_timeout{0, 300'000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &short_timeout, sizeof short_timeout);
  EXPECT_EQ(greet_udp(socket, kDns, 53), "timeout");
}

TEST_F(Dns, forwards_what_is_not_ours_to_the_machines_resolver) {
  cluster();
  Pod a = pod("a");
  write("resolv.conf", std::string("nameserver ") + kOutside + "\n");
  Resolver resolver(outside, kOutside, "203.0.113.1");
  EXPECT_EQ(ask_udp(a.netns, "WWW.example.com"), "NOERROR 203.0.113.1");
  EXPECT_EQ(ask_udp(machine, "www.example.com"), "NOERROR 203.0.113.1");
  EXPECT_EQ(ask_udp(a.netns, "far.default.svc.cluster.local"), "NOERROR www.example.com. 203.0.113.1") << "behind an alias";
  EXPECT_EQ(ask_tcp(a.netns, {"www.example.com"}), "NOERROR 203.0.113.1");
  EXPECT_TRUE(ask_udp(a.netns, "large.example.com").ends_with("+")) << "cut, and says so";
  EXPECT_GT(ask_tcp(a.netns, {"large.example.com"}).size(), 200u * 10) << "whole over TCP";
  int asked = resolver.asked();
  EXPECT_EQ(ask_udp(a.netns, "nobody.default.svc.cluster.local"), "NXDOMAIN");
  EXPECT_EQ(resolver.asked(), asked) << "our names stay here";
}

TEST_F(Dns, goes_on_to_the_next_resolver_and_stays_there) {
  cluster();
  second_address_outside("192.0.2.3");
  second_address_outside("192.0.2.4");
  write("resolv.conf", "nameserver 192.0.2.3\nnameserver 192.0.2.4\nnameserver 192.0.2.2\n");
  // The first has no listener (refused at once), the second does not answer (timeout), the third answers.
  Resolver silent(outside, "192.0.2.4", "203.0.113.1", [](std::string& packet) { packet.clear(); });
  Resolver good(outside, "192.0.2.2", "203.0.113.2");
  EXPECT_EQ(ask_udp(machine, "www.example.com"), "NOERROR 203.0.113.2");
  while (silent.asked() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ask_udp(machine, "www.example.org"), "NOERROR 203.0.113.2");
  EXPECT_EQ(silent.asked(), 1) << "remembers who answers";
}

TEST_F(Dns, forged_replies_are_not_believed) {
  cluster();
  write("resolv.conf", std::string("nameserver ") + kOutside + "\n");
  Resolver wrong_id(outside, kOutside, "203.0.113.66",
                    [](std::string& packet) { set_message_id(packet, uint16_t(*message_id(packet) + 1)); });
  EXPECT_EQ(ask_udp(machine, "www.example.com"), "SERVFAIL");
}

TEST_F(Dns, malformed_questions_get_an_error_or_silence) {
  cluster();
  Fd socket = socket_in(machine, SOCK_DGRAM);
  sockaddr_in where = at(kDns, 53);
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  std::string question = encode_question(5, "kubernetes.default.svc.cluster.local", kA);
  char buffer[512];
  std::string no_question = question.substr(0, 12);
  for (const std::string& packet :
       {std::string("x"), std::string(), std::string(12, '\xff'), question.substr(0, 20), no_question}) {
    ASSERT_EQ(::send(socket.get(), packet.data(), packet.size(), 0), ssize_t(packet.size()));
  }
  ASSERT_EQ(::send(socket.get(), question.data(), question.size(), 0), ssize_t(question.size()));
  std::string last;
  for (int i = 0; i < 5 && !last.starts_with("NOERROR"); ++i) {
    ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    ASSERT_GT(got, 0) << failure();
    last = read({buffer, size_t(got)});
  }
  EXPECT_EQ(last, "NOERROR 10.96.0.1");
}

TEST_F(Dns, is_reached_on_port_53_where_another_server_has_it) {
  Fd udp = socket_in(machine, SOCK_DGRAM), tcp = socket_in(machine, SOCK_STREAM);
  sockaddr_in everywhere = at("0.0.0.0", 53);
  ASSERT_EQ(::bind(udp.get(), reinterpret_cast<sockaddr*>(&everywhere), sizeof everywhere), 0);
  ASSERT_EQ(::bind(tcp.get(), reinterpret_cast<sockaddr*>(&everywhere), sizeof everywhere), 0);
  ASSERT_EQ(::listen(tcp.get(), 1), 0);
  cluster();
  Pod a = pod("a");
  EXPECT_EQ(ask_udp(a.netns, "kubernetes.default.svc.cluster.local"), "NOERROR 10.96.0.1");
  EXPECT_EQ(ask_udp(machine, "kubernetes.default.svc.cluster.local"), "NOERROR 10.96.0.1");
  EXPECT_EQ(ask_tcp(a.netns, {"kubernetes.default.svc.cluster.local"}), "NOERROR 10.96.0.1");
}

TEST_F(Dns, many_connections_do_not_lock_others_out) {
  cluster();
  std::vector<Fd> idle;
  sockaddr_in where = at(kDns, 53);
  for (int i = 0; i < 100; ++i) {
    idle.push_back(socket_in(machine, SOCK_STREAM));
    ASSERT_EQ(::connect(idle.back().get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0) << failure();
  }
  EXPECT_EQ(ask_tcp(machine, {"kubernetes.default.svc.cluster.local"}), "NOERROR 10.96.0.1");
}

TEST_F(Dns, the_service_is_made_once_and_then_the_users) {
  EXPECT_TRUE(ensure_dns_service(client, MUST(Ipv4::parse(kDns))));
  ObjectPtr made = client.find(kService, {"kube-system", "kube-dns"});
  ASSERT_TRUE(made);
  EXPECT_EQ(get_string(made->json(), "spec.clusterIP"), kDns);
  client.clear_calls();
  EXPECT_TRUE(ensure_dns_service(client, MUST(Ipv4::parse(kDns))));
  EXPECT_EQ(client.calls(), std::vector<std::string>{"get services kube-system/kube-dns"});
}

}  // namespace
}  // namespace coracle::network
