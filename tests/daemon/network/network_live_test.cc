// SPDX-License-Identifier: Apache-2.0
// Pods that really reach each other, Services, the machine and external hosts, in their own namespaces.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <nftables/libnftables.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "daemon/network/firewall.h"
#include "daemon/network/machine_listeners.h"
#include "daemon/network/pod_guard.h"
#include "daemon/network/pod_link.h"
#include "daemon/network/pod_network.h"
#include "daemon/network/service_proxy.h"
#include "runtime/base/guarded.h"
#include "runtime/sys/inet.h"
#include "runtime/sys/netfilter.h"
#include "tests/daemon/network/network_fixture.h"
#include "tests/daemon/network/objects.h"

namespace coracle::network {
namespace {

// "" on success, otherwise nft's message.
std::string try_nft(const std::string& script) {
  std::unique_ptr<nft_ctx, void (*)(nft_ctx*)> nft(nft_ctx_new(NFT_CTX_DEFAULT), nft_ctx_free);
  if (nft_ctx_buffer_output(nft.get()) != 0 || nft_ctx_buffer_error(nft.get()) != 0) return "no memory";
  if (nft_run_cmd_from_buffer(nft.get(), script.c_str()) == 0) return "";
  return std::string("nft: ") + nft_ctx_get_error_buffer(nft.get());
}
void run_nft(const std::string& script) { EXPECT_EQ(try_nft(script), ""); }

TEST_F(NetworkFixture, pods_reach_each_other_and_the_machine) {
  up();
  Pod a = pod("a"), b = pod("b");
  Greeter at_b(b.netns, "b", 80), here(machine, "machine", 81);
  EXPECT_EQ(greet_tcp(a.netns, b.address, 80), "b " + a.address) << "with the address it has";
  EXPECT_EQ(greet_tcp(machine, b.address, 80), "b " + network->gateway_address());
  EXPECT_EQ(greet_tcp(a.netns, network->gateway_address(), 81), "machine " + a.address);
}

// A link that is up drops packets until the kernel has noticed its carrier. The answer to a pod's first query would be lost, and
// repeated only after seconds.
TEST_F(NetworkFixture, an_attached_pod_is_answered_at_once) {
  up();
  Greeter here(machine, "machine", 8080);
  for (int i = 0; i < 40; ++i) {
    Pod one = pod("pod-" + std::to_string(i));
    Fd socket = socket_in(one.netns, SOCK_DGRAM);
    timeval timeout{1, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    ASSERT_EQ(greet_udp(socket, "10.244.0.1", 8080), "machine " + one.address) << i;
  }
}

TEST_F(NetworkFixture, a_service_is_reached_from_pods_the_machine_and_itself) {
  up();
  Pod a = pod("a"), b = pod("b");
  Greeter at_b(b.netns, "b", 8080);
  put_service("web", R"({"clusterIP":"10.96.3.7","ports":[{"name":"p","port":80}]})");
  put_endpoints("web", {b.address}, 8080);
  applied();
  EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 80), "b " + a.address) << "the source stays";
  EXPECT_EQ(greet_tcp(machine, "10.96.3.7", 80), "b " + network->gateway_address()) << "without a default route";
  EXPECT_EQ(greet_tcp(b.netns, "10.96.3.7", 80), "b " + network->gateway_address()) << "hairpin";
  EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 8080), "refused") << "a port that it does not have";
}

TEST_F(NetworkFixture, load_is_spread_over_the_ready_endpoints) {
  up();
  Pod a = pod("a"), b = pod("b"), c = pod("c");
  Greeter at_b(b.netns, "b", 8080), at_c(c.netns, "c", 8080);
  put_service("web", R"({"clusterIP":"10.96.3.7","ports":[{"name":"p","port":80}]})");
  put_endpoints("web", {b.address, c.address}, 8080);
  applied();
  std::set<std::string> seen;
  for (int i = 0; i < 40; ++i) seen.insert(greet_tcp(a.netns, "10.96.3.7", 80));
  EXPECT_EQ(seen, (std::set<std::string>{"b " + a.address, "c " + a.address}));  // the chance of missing one is 2^-39
  put_endpoints("web", {c.address}, 8080);
  applied();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 80), "c " + a.address);
}

// Accepts and closes connections in `netns` as fast as it can.
class Acceptor {
 public:
  Acceptor(const Fd& netns, uint16_t port) : socket_(socket_in(netns, SOCK_STREAM)) {
    sockaddr_in where = at("0.0.0.0", port);
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) < 0) ADD_FAILURE() << failure();
    if (::listen(socket_.get(), 1024) < 0) ADD_FAILURE() << failure();
    thread_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) Fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    });
  }
  ~Acceptor() {
    thread_.request_stop();
    ::shutdown(socket_.get(), SHUT_RDWR);
  }

 private:
  Fd socket_;
  std::jthread thread_;
};

// While a rule is replaced, the kernel may look into the maps of the newest generation and find them empty. A connection at that
// moment must still be translated. Three of 100,000 connections were not, hence the high rate here.
TEST_F(NetworkFixture, nobody_is_refused_while_the_endpoints_change) {
  sys::Netlink link = MUST(sys::Netlink::open());
  const uint32_t lo = MUST(link.index_of("lo"));
  for (const char* address : {"10.244.0.1/32", "10.244.0.4/32", "10.244.0.5/32"}) MUST(link.add_address(lo, address));
  MUST(link.add_route({.destination = "10.96.0.0/16", .link = lo, .source = "10.244.0.1"}));
  Acceptor pods(machine, 8080);
  auto rules = [&](const std::string& endpoints) {
    ProxyInput in{MUST(Ipv4Range::parse(config.pod_cidr)), MUST(Ipv4Range::parse(config.service_cidr)),
                  MUST(Ipv4::parse(config.dns_address))};
    in.service_objects = {service("web", R"({"clusterIP":"10.96.3.7","ports":[{"name":"p","port":80,"protocol":"TCP"}]})")};
    in.slices = {slice("web", endpoints, R"([{"name":"p","port":8080,"protocol":"TCP"}])")};
    return plan_proxy(in).rules;
  };
  const std::string four = endpoint("10.244.0.4", kReady), five = endpoint("10.244.0.5", kReady);
  const Ruleset one = rules("[" + four + "]"), both = rules("[" + four + "," + five + "]");
  Firewall firewall;
  MUST(firewall.apply(both));
  std::atomic<int> connected = 0;
  Guarded<std::map<std::string, int>> failures{std::map<std::string, int>{}};
  auto come_and_go = [&](std::stop_token stop) {
    const sockaddr_in where = at("10.96.3.7", 80);
    const linger at_once{1, 0};
    while (!stop.stop_requested()) {
      Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0) ++connected;
      else failures.with([why = failure()](auto& failures) { ++failures[why]; });
      ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
  };
  {
    std::vector<std::jthread> crowd;
    for (int i = 0; i < 3; ++i) crowd.emplace_back(come_and_go);
    for (int change = 0; change < 400; ++change) MUST(firewall.apply(change % 2 ? one : both));
  }
  EXPECT_GT(connected, 400);
  failures.with([](const auto& failures) {
    for (const auto& [what, times] : failures) ADD_FAILURE() << what << ", " << times << " times";
  });
}

TEST_F(NetworkFixture, a_client_with_affinity_stays_with_its_endpoint_through_changes) {
  up();
  Pod a = pod("a"), b = pod("b"), c = pod("c"), d = pod("d");
  Greeter at_b(b.netns, "b", 8080), at_c(c.netns, "c", 8080), at_d(d.netns, "d", 8080);
  put_service("web", R"({"clusterIP":"10.96.3.7","sessionAffinity":"ClientIP","ports":[{"name":"p","port":80}]})");
  put_endpoints("web", {b.address, c.address}, 8080);
  applied();
  std::string first = greet_tcp(a.netns, "10.96.3.7", 80);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 80), first);
  put_endpoints("web", {b.address, c.address, d.address}, 8080);
  applied();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 80), first);
}

TEST_F(NetworkFixture, a_node_port_is_reached_from_everywhere_and_keeps_the_source) {
  connect_outside();
  up();
  Pod a = pod("a"), b = pod("b");
  Greeter at_b(b.netns, "b", 8080);
  put_service("web", R"({"type":"NodePort","clusterIP":"10.96.3.7","ports":[{"name":"p","port":80,"nodePort":30080}]})");
  put_endpoints("web", {b.address}, 8080);
  applied();
  EXPECT_EQ(greet_tcp(outside, kMachine, 30080), std::string("b ") + kOutside);
  EXPECT_EQ(greet_tcp(machine, kMachine, 30080), std::string("b ") + kMachine);
  EXPECT_EQ(greet_tcp(a.netns, kMachine, 30080), "b " + a.address);
  EXPECT_EQ(greet_tcp(b.netns, kMachine, 30080), "b " + network->gateway_address()) << "hairpin";
  EXPECT_EQ(greet_tcp(machine, "127.0.0.1", 30080), "refused") << "loopback stays the machine's own";
}

TEST_F(NetworkFixture, node_ports_and_host_ports_capture_no_traffic_for_other_machines) {
  connect_outside();
  up();
  Pod a = pod("a", {{Protocol::tcp, {}, 8081, 8080}}), b = pod("b");
  Greeter at_a(a.netns, "a", 8080), elsewhere(outside, "elsewhere", 30080), elsewhere_too(outside, "elsewhere", 8081);
  put_service("web", R"({"type":"NodePort","clusterIP":"10.96.3.7","ports":[{"name":"p","port":80,"nodePort":30080}]})");
  put_endpoints("web", {a.address}, 8080);
  applied();
  for (uint16_t port : {30080, 8081}) {  // CVE-2025-67499
    EXPECT_EQ(greet_tcp(b.netns, kOutside, port), std::string("elsewhere ") + kMachine);
    EXPECT_EQ(greet_tcp(machine, kOutside, port), std::string("elsewhere ") + kMachine);
  }
}

TEST_F(NetworkFixture, udp_moves_on_when_an_endpoint_goes_away) {
  up();
  Pod a = pod("a"), b = pod("b"), c = pod("c");
  Greeter at_b(b.netns, "b", 5353), at_c(c.netns, "c", 5353);
  put_service("talk", R"({"clusterIP":"10.96.3.8","ports":[{"name":"p","port":53,"protocol":"UDP"}]})");
  put_endpoints("talk", {b.address}, 5353, "UDP");
  applied();
  Fd socket = socket_in(a.netns, SOCK_DGRAM);  // one socket for both: the kernel sees one flow
  EXPECT_EQ(greet_udp(socket, "10.96.3.8", 53), "b " + a.address);
  put_endpoints("talk", {c.address}, 5353, "UDP");
  applied();
  EXPECT_EQ(greet_udp(socket, "10.96.3.8", 53), "c " + a.address);
}

TEST_F(NetworkFixture, udp_finds_a_node_port_that_it_knocked_at_too_early) {
  connect_outside();
  up();
  Pod b = pod("b");
  Greeter at_b(b.netns, "b", 5353);
  std::optional<Greeter> here(std::in_place, machine, "machine", 30053);
  Fd socket = socket_in(outside, SOCK_DGRAM);
  EXPECT_EQ(greet_udp(socket, kMachine, 30053), std::string("machine ") + kOutside);
  here.reset();  // while it listens, the port is its own
  put_service(
      "talk",
      R"({"type":"NodePort","clusterIP":"10.96.3.8","ports":[{"name":"p","port":53,"protocol":"UDP","nodePort":30053}]})");
  put_endpoints("talk", {b.address}, 5353, "UDP");
  applied();
  EXPECT_EQ(greet_udp(socket, kMachine, 30053), std::string("b ") + kOutside);
}

TEST_F(NetworkFixture, without_endpoints_connections_are_refused_at_once) {
  connect_outside();
  up();
  Pod a = pod("a");
  put_service("web", R"({"type":"NodePort","clusterIP":"10.96.3.7","ports":[{"name":"p","port":80,"nodePort":30080},
    {"name":"u","port":80,"protocol":"UDP"}]})");
  applied();
  for (const char* address : {"10.96.3.7", "10.96.77.77"}) {  // an address of a Service, and an unused one
    EXPECT_EQ(greet_tcp(a.netns, address, 80), "refused") << address;
    EXPECT_EQ(greet_tcp(machine, address, 80), "refused") << address;
    EXPECT_EQ(greet_udp(a.netns, address, 80, 0), "refused") << address;
  }
  EXPECT_EQ(greet_tcp(outside, kMachine, 30080), "refused");
  EXPECT_EQ(greet_tcp(a.netns, kMachine, 30080), "refused");
}

TEST_F(NetworkFixture, a_host_port_lives_as_long_as_its_pod) {
  connect_outside();
  up();
  Ipv4 machine_address = MUST(Ipv4::parse(kMachine));
  Pod a = pod("a", {{Protocol::tcp, {}, 8081, 80}, {Protocol::udp, machine_address, 514, 80}}), b = pod("b");
  Greeter at_a(a.netns, "a", 80);
  applied();
  EXPECT_EQ(greet_tcp(outside, kMachine, 8081), std::string("a ") + kOutside);
  EXPECT_EQ(greet_tcp(machine, kMachine, 8081), std::string("a ") + kMachine);
  EXPECT_EQ(greet_tcp(b.netns, kMachine, 8081), "a " + b.address);
  EXPECT_EQ(greet_tcp(a.netns, kMachine, 8081), "a " + network->gateway_address()) << "hairpin";
  EXPECT_EQ(greet_udp(outside, kMachine, 514, 0), std::string("a ") + kOutside);
  EXPECT_EQ(greet_udp(machine, network->gateway_address(), 514, 0), "refused") << "on the address it asked for only";
  MUST(network->detach("a"));
  applied();
  EXPECT_EQ(greet_tcp(outside, kMachine, 8081), "refused");
}

TEST_F(NetworkFixture, host_ports_answer_on_loopback_to_this_machine_alone) {
  connect_outside();
  up();
  Ipv4 loopback = MUST(Ipv4::parse("127.0.0.1"));
  Pod a = pod("a", {{Protocol::tcp, {}, 8081, 80}, {Protocol::tcp, loopback, 5432, 80}, {Protocol::udp, loopback, 514, 80}});
  Pod b = pod("b");
  Greeter at_a(a.netns, "a", 80), own(machine, "own", 7000);
  applied();
  const std::string answer = "a " + network->gateway_address();
  EXPECT_EQ(greet_tcp(machine, "127.0.0.1", 8081), answer);
  EXPECT_EQ(greet_tcp(machine, "127.0.0.1", 5432), answer);
  EXPECT_EQ(greet_udp(machine, "127.0.0.1", 514, 0), answer);
  EXPECT_EQ(greet_tcp(machine, "127.0.0.1", 7000), "own 127.0.0.1");
  EXPECT_EQ(greet_tcp(machine, "127.0.0.53", 8081), "refused") << "another program's";
  EXPECT_EQ(greet_tcp(machine, kMachine, 5432), "refused");
  EXPECT_EQ(greet_tcp(outside, kMachine, 5432), "refused");
  EXPECT_EQ(greet_tcp(b.netns, network->gateway_address(), 5432), "refused");
  // CVE-2020-8558: a pod that sends packets to 127.0.0.0/8 over its link reaches nothing on the machine.
  sys::Netlink inside = MUST(sys::Netlink::open_in(a.netns));
  MUST(inside.remove_address(MUST(inside.index_of("lo")), "127.0.0.1/8"));
  MUST(inside.add_route(
      {.destination = "127.0.0.0/8", .gateway = network->gateway_address(), .link = MUST(inside.index_of("eth0"))}));
  EXPECT_EQ(greet_tcp(a.netns, "127.0.0.1", 7000, kSilenceMs), "timeout");
  EXPECT_EQ(greet_tcp(outside, "127.0.0.1", 8081), "refused") << "its own loopback";
}

TEST_F(NetworkFixture, host_ports_that_are_taken_from_programs_are_named) {
  Greeter own(machine, "own", 7000);
  Ipv4 loopback = MUST(Ipv4::parse("127.0.0.1"));
  auto contested = [](HostPort port) { return Network::contested({port}); };
  using Texts = std::vector<std::string>;
  const Texts want = {
      "host port 7000 is a pod's now: a program of this machine that listens on 0.0.0.0:7000 no longer gets what comes there"};
  EXPECT_EQ(contested({Protocol::tcp, {}, 7000, 80}), want);
  EXPECT_EQ(contested({Protocol::udp, loopback, 7000, 80}), want);
  EXPECT_EQ(contested({Protocol::tcp, {}, 7001, 80}), Texts());
}

TEST_F(NetworkFixture, pods_reach_the_world_as_this_machine) {
  connect_outside();
  up();
  Pod a = pod("a");
  Greeter elsewhere(outside, "elsewhere", 80);
  EXPECT_EQ(greet_tcp(a.netns, kOutside, 80), std::string("elsewhere ") + kMachine);
  EXPECT_EQ(greet_udp(a.netns, kOutside, 80, 0), std::string("elsewhere ") + kMachine);
  put_service("far", R"({"clusterIP":"10.96.3.9","ports":[{"name":"p","port":80}]})");
  put_endpoints("far", {kOutside}, 80);
  applied();
  EXPECT_EQ(greet_tcp(a.netns, "10.96.3.9", 80), std::string("elsewhere ") + kMachine) << "an endpoint elsewhere";
  EXPECT_EQ(greet_tcp(machine, "10.96.3.9", 80), std::string("elsewhere ") + kMachine);
}

TEST_F(NetworkFixture, a_new_daemon_finds_addresses_rules_and_open_connections_again) {
  connect_outside();
  up();
  Pod a = pod("a"), b = pod("b", {{Protocol::tcp, {}, 8081, 80}});
  Greeter at_b(b.netns, "b", 80);
  Fd listener = socket_in(b.netns, SOCK_STREAM), talking = socket_in(a.netns, SOCK_STREAM);
  sockaddr_in any = at("0.0.0.0", 90), vip = at("10.96.3.7", 90);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  put_service("web", R"({"clusterIP":"10.96.3.7","ports":[{"name":"p","port":90}]})");
  put_endpoints("web", {b.address}, 90);
  applied();
  ASSERT_EQ(::connect(talking.get(), reinterpret_cast<sockaddr*>(&vip), sizeof vip), 0) << failure();
  Fd heard(::accept(listener.get(), nullptr, nullptr));

  down();
  EXPECT_EQ(greet_tcp(outside, kMachine, 8081), std::string("b ") + kOutside) << "while nobody is there";
  up();
  EXPECT_EQ(network->addresses("a"), std::vector<std::string>{a.address});
  EXPECT_EQ(MUST(network->attach("a", a.netns, {})).at(0), a.address);
  EXPECT_EQ(greet_tcp(outside, kMachine, 8081), std::string("b ") + kOutside);
  EXPECT_NE(pod("c").address, a.address);
  ASSERT_EQ(::send(talking.get(), "x", 1, 0), 1);
  char byte = 0;
  EXPECT_EQ(::recv(heard.get(), &byte, 1, 0), 1) << failure();
}

TEST_F(NetworkFixture, a_pod_gets_an_address_of_another_range_when_the_setting_changes) {
  up();
  Pod a = pod("a"), b = pod("b");
  Greeter at_b(b.netns, "b", 8080);
  down();
  config.pod_cidr = "10.250.0.0/24";
  up();
  a.address = MUST(network->attach("a", a.netns, {})).at(0);
  b.address = MUST(network->attach("b", b.netns, {})).at(0);
  EXPECT_TRUE(a.address.starts_with("10.250.0.")) << a.address;
  EXPECT_EQ(greet_tcp(a.netns, b.address, 8080), "b " + a.address);
}

TEST_F(NetworkFixture, an_address_is_free_again_when_its_sandbox_vanished_unseen) {
  up();
  std::string address = pod("a").address;  // its namespace is closed here
  down();
  sys::Netlink link = MUST(sys::Netlink::open());
  for (int i = 0; i < 6000 && MUST(link.links()).size() > 2; ++i) ::poll(nullptr, 0, 10);  // the kernel removes it asynchronously
  up();
  EXPECT_TRUE(network->addresses("a").empty());
  EXPECT_TRUE(std::filesystem::is_empty(config.run_dir + "/attachments"));
}

TEST_F(NetworkFixture, an_interface_on_its_way_out_does_not_stop_the_next_pod) {
  config.pod_cidr = "10.244.0.0/29";  // space for five pods
  up();
  for (int i = 0; i < 25; ++i) {
    std::string id = "pod-" + std::to_string(i);
    Pod one = pod(id);
    MUST(network->detach(id));
  }
}

TEST_F(NetworkFixture, when_all_addresses_are_taken_it_says_so) {
  config.pod_cidr = "10.244.0.0/29";
  up();
  std::vector<Pod> all;
  for (int i = 0; i < 5; ++i) all.push_back(pod("pod-" + std::to_string(i)));
  Fd netns = MUST(sys::new_netns());
  EXPECT_EQ(network->attach("one-more", netns, {}).error().code(), Code::unavailable);
  EXPECT_EQ(network->attach("../../etc", netns, {}).error().code(), Code::invalid);
}

// Repeats `works` until it returns `want`, for at most a minute; returns its last result.
std::string until(const std::string& want, const std::function<std::string()>& works) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::string got;
  while ((got = works()) != want && std::chrono::steady_clock::now() < end) ::poll(nullptr, 0, 20);
  return got;
}
// For `until`: a connection that began while rules were missing may stay as it began, and gets no answer.
std::string try_tcp(const Fd& netns, const std::string& address, uint16_t port) {
  return greet_tcp(netns, address, port, kSilenceMs);
}

TEST_F(NetworkFixture, a_table_that_somebody_flushed_comes_back) {
  up();
  Pod a = pod("a"), b = pod("b");
  Greeter at_b(b.netns, "b", 8080);
  put_service("web", R"({"clusterIP":"10.96.3.7","ports":[{"name":"p","port":80}]})");
  put_endpoints("web", {b.address}, 8080);
  applied();
  MUST(Firewall::remove());
  EXPECT_EQ(until("b " + a.address, [&] { return try_tcp(a.netns, "10.96.3.7", 80); }), "b " + a.address);
}

TEST_F(NetworkFixture, a_table_that_is_flushed_while_rules_are_planned_comes_back) {
  services = std::make_unique<Informer>(client, kService);
  slices = std::make_unique<Informer>(client, kEndpointSlice);
  std::atomic<bool> flush = false;
  ServiceProxyConfig of{MUST(Ipv4Range::parse(config.pod_cidr)), MUST(Ipv4Range::parse(config.service_cidr)),
                        MUST(Ipv4::parse(config.dns_address)), kDnsPort, [&] {
                          if (flush.exchange(false)) MUST(Firewall::remove());
                          return std::vector<PodPort>{};
                        }};
  auto proxy = MUST(ServiceProxy::open(std::move(of), *services, *slices));
  proxy->start();
  MUST(services->start());
  MUST(slices->start());
  MUST(proxy->wait_applied(std::chrono::seconds(60)));
  flush = true;
  proxy->wake();  // nothing else has changed, so there would be nothing to apply
  MUST(proxy->wait_applied(std::chrono::seconds(60)));
  EXPECT_FALSE(flush);
  run_nft("list chain ip coracle translate");
  proxy->stop();
}

// ---- repair after manual removal ----

TEST_F(NetworkFixture, what_is_removed_by_hand_comes_back) {
  connect_outside();
  up();
  Pod a = pod("a"), b = pod("b", {{Protocol::tcp, {}, 8081, 8080}});
  Greeter at_b(b.netns, "b", 8080), here(machine, "machine", 81);
  put_service("web", R"({"clusterIP":"10.96.3.7","ports":[{"name":"p","port":80}]})");
  put_endpoints("web", {b.address}, 8080);
  applied();
  sys::Netlink host = MUST(sys::Netlink::open());
  const std::string wire = link_name(MUST(Ipv4::parse(b.address))), gateway = network->gateway_address();
  auto anchor = [&] { return MUST(host.index_of(kAnchorName)); };
  const std::map<std::string, std::function<void()>> hands = {
      {"the anchor", [&] { MUST(host.remove_link(anchor())); }},
      {"the anchor's being up", [&] { MUST(host.set_down(anchor())); }},
      {"the gateway's address", [&] { MUST(host.remove_address(anchor(), gateway + "/24")); }},
      {"the DNS server's address", [&] { MUST(host.remove_address(anchor(), "10.96.0.10/32")); }},
      {"the way to Services",
       [&] { MUST(host.remove_route({.destination = "10.96.0.0/16", .link = anchor(), .scope_link = true})); }},
      {"the way to a pod",
       [&] {
         MUST(host.remove_route({.destination = b.address + "/32", .link = MUST(host.index_of(wire)), .scope_link = true}));
       }},
      {"a wire's being up", [&] { MUST(host.set_down(MUST(host.index_of(wire)))); }},
      {"all rules", [] { run_nft("flush ruleset"); }},
      {"the Services' table", [] { run_nft("delete table ip coracle"); }},
      {"a chain's rules", [] { run_nft("flush chain ip coracle translate"); }},
      {"a map's elements", [] { run_nft("flush map ip coracle services"); }},
      {"the pods' tables", [] { run_nft("delete table ip coracle-pods\ndelete table arp coracle-pods"); }},
      {"the pods' entries", [] { run_nft("flush set ip coracle-pods pods"); }},
  };
  for (const auto& [what, take_away] : hands) {
    take_away();
    EXPECT_EQ(until("b " + a.address, [&] { return try_tcp(a.netns, "10.96.3.7", 80); }), "b " + a.address) << what;
    EXPECT_EQ(until("b " + gateway, [&] { return try_tcp(machine, "10.96.3.7", 80); }), "b " + gateway) << what;
    EXPECT_EQ(until("machine " + a.address, [&] { return try_tcp(a.netns, gateway, 81); }), "machine " + a.address) << what;
    EXPECT_EQ(until(std::string("b ") + kOutside, [&] { return try_tcp(outside, kMachine, 8081); }), std::string("b ") + kOutside)
        << what;
    auto addresses = [&] {
      std::set<std::string> all;
      for (const sys::AddressInfo& one : MUST(host.addresses(anchor()))) all.insert(one.address);
      return std::to_string(all.size()) + " addresses";
    };
    EXPECT_EQ(until("2 addresses", addresses), "2 addresses") << what;
    const std::string entry = " { " + wire + " . " + pod_mac(MUST(Ipv4::parse(b.address))) + " . " + b.address + " }";
    for (const char* family : {"ip", "arp"})
      for (const std::string& part : {std::string("list chain ") + family + " coracle-pods guard",
                                      std::string("get element ") + family + " coracle-pods pods" + entry})
        EXPECT_EQ(until("", [&] { return try_nft(part); }), "") << what << ": " << part;
  }
  EXPECT_TRUE(lost_links.with([](const auto& lost) { return lost.empty(); }));
}

TEST_F(NetworkFixture, a_wire_that_is_removed_by_hand_is_told_and_made_again) {
  up();
  Pod a = pod("a"), b = pod("b");
  Greeter at_b(b.netns, "b", 8080);
  sys::Netlink host = MUST(sys::Netlink::open());
  MUST(host.remove_link(MUST(host.index_of(link_name(MUST(Ipv4::parse(b.address)))))));
  auto told = [&] { return lost_links.with([](const auto& lost) { return lost.empty() ? std::string() : lost.front(); }); };
  ASSERT_EQ(until("b", told), "b");
  EXPECT_EQ(MUST(network->attach("b", b.netns, {})).at(0), b.address);
  EXPECT_EQ(greet_tcp(a.netns, b.address, 8080), "b " + a.address);
}

TEST_F(NetworkFixture, the_end_of_a_pod_is_no_loss) {
  up();
  for (int i = 0; i < 5; ++i) {
    Pod one = pod("pod-" + std::to_string(i));
    MUST(network->detach(one.id));
  }
  Pod last = pod("last");
  sys::Netlink host = MUST(sys::Netlink::open());
  for (int i = 0; i < 6000 && MUST(host.links()).size() > 3; ++i)
    ::poll(nullptr, 0, 10);  // lo, the anchor and the link of the
                             // last pod
  applied();
  EXPECT_TRUE(lost_links.with([](const auto& lost) { return lost.empty(); }));
}

// ---- forged addresses ----

// The first packet at the machine's UDP port 9999 must be the genuine one, though the forged one was sent earlier.
std::string first_to_arrive(const Fd& socket) {
  char buffer[64];
  ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
  return got < 0 ? failure() : std::string(buffer, size_t(got));
}

void send_from(const Fd& netns, const std::string& source, const std::string& to, const std::string& text) {
  Fd socket = socket_in(netns, SOCK_DGRAM);
  sockaddr_in from = at(source, 0), where = at(to, 9999);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0) << failure();
  ASSERT_GT(::sendto(socket.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&where), sizeof where), 0)
      << failure();
}

void set_mac(const Fd& netns, const std::string& mac) {
  Fd socket = socket_in(netns, SOCK_DGRAM);
  ifreq change{};
  std::strcpy(change.ifr_name, kPodLinkName);
  change.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  unsigned bytes[6];
  ASSERT_EQ(std::sscanf(mac.c_str(), "%x:%x:%x:%x:%x:%x", bytes, bytes + 1, bytes + 2, bytes + 3, bytes + 4, bytes + 5), 6);
  for (int i = 0; i < 6; ++i) change.ifr_hwaddr.sa_data[i] = char(bytes[i]);
  ASSERT_EQ(::ioctl(socket.get(), SIOCSIFHWADDR, &change), 0) << failure();
}

TEST_F(NetworkFixture, a_pod_sends_from_its_own_addresses_only) {
  up();
  Pod a = pod("a"), b = pod("b");
  const std::string gateway = network->gateway_address();
  Fd heard = socket_in(machine, SOCK_DGRAM);
  sockaddr_in any = at("0.0.0.0", 9999);
  ASSERT_EQ(::bind(heard.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  sys::Netlink in_pod = MUST(sys::Netlink::open_in(a.netns));
  const uint32_t eth0 = MUST(in_pod.index_of(kPodLinkName));
  MUST(in_pod.add_address(eth0, b.address + "/32"));
  MUST(in_pod.add_address(eth0, "203.0.113.9/32"));
  for (const std::string& forged : {b.address, std::string("203.0.113.9")}) {
    send_from(a.netns, forged, gateway, "forged");
    send_from(a.netns, a.address, gateway, "true");
    EXPECT_EQ(first_to_arrive(heard), "true") << forged;
  }
  // Setting the MAC address clears the link's neighbour table.
  const Ipv4 own = MUST(Ipv4::parse(a.address));
  auto bear = [&](const std::string& mac) {
    set_mac(a.netns, mac);
    MUST(in_pod.add_neighbor(eth0, gateway, machine_mac(own)));
  };
  bear(pod_mac(MUST(Ipv4::parse(b.address))));
  send_from(a.netns, a.address, gateway, "forged");
  bear(pod_mac(own));
  send_from(a.netns, a.address, gateway, "true");
  EXPECT_EQ(first_to_arrive(heard), "true");
  EXPECT_EQ(greet_udp(a.netns, gateway, 9998, 0), "refused") << "its own traffic goes on";
}

struct __attribute__((packed)) ArpFrame {
  unsigned char to[6], from[6];
  uint16_t ethertype, hardware, protocol;
  uint8_t hardware_size, protocol_size;
  uint16_t operation;
  unsigned char sender_mac[6];
  uint32_t sender;
  unsigned char target_mac[6];
  uint32_t target;
};

// Sends an ARP request for the gateway with a forged sender.
void ask_by_arp(const Fd& socket, int link, Ipv4 pod, const std::string& gateway, const std::string& in_name_of, bool own_mac) {
  ArpFrame frame{};
  std::memset(frame.to, 0xff, 6);
  const unsigned char mac[6] = {0x0a,
                                0x58,
                                uint8_t(pod.value >> 24),
                                uint8_t(pod.value >> 16),
                                uint8_t(pod.value >> 8),
                                uint8_t(own_mac ? pod.value : pod.value + 1)};
  std::memcpy(frame.from, mac, 6);
  std::memcpy(frame.sender_mac, mac, 6);
  frame.ethertype = htons(ETH_P_ARP), frame.hardware = htons(ARPHRD_ETHER), frame.protocol = htons(ETH_P_IP);
  frame.hardware_size = 6, frame.protocol_size = 4, frame.operation = htons(ARPOP_REQUEST);
  frame.sender = at(in_name_of, 0).sin_addr.s_addr, frame.target = at(gateway, 0).sin_addr.s_addr;
  sockaddr_ll where{};
  where.sll_family = AF_PACKET, where.sll_ifindex = link, where.sll_halen = 6;
  std::memset(where.sll_addr, 0xff, 6);
  ASSERT_GT(::sendto(socket.get(), &frame, sizeof frame, 0, reinterpret_cast<sockaddr*>(&where), sizeof where), 0) << failure();
}

TEST_F(NetworkFixture, a_pod_speaks_arp_for_itself_only) {
  up();
  Pod a = pod("a"), b = pod("b");
  const Ipv4 own = MUST(Ipv4::parse(a.address));
  const std::string gateway = network->gateway_address();
  sys::Netlink in_pod = MUST(sys::Netlink::open_in(a.netns));
  const int eth0 = int(MUST(in_pod.index_of(kPodLinkName)));
  Fd socket = MUST(sys::socket_in_netns(a.netns, AF_PACKET, SOCK_RAW, htons(ETH_P_ARP)));
  timeval timeout{kTimeoutMs / 1000, kTimeoutMs % 1000 * 1000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  ask_by_arp(socket, eth0, own, gateway, b.address, true);
  ask_by_arp(socket, eth0, own, gateway, a.address, false);
  ask_by_arp(socket, eth0, own, gateway, a.address, true);
  ArpFrame answer{};
  do {
    ASSERT_EQ(::recv(socket.get(), &answer, sizeof answer, 0), ssize_t(sizeof answer)) << failure();
  } while (ntohs(answer.operation) != ARPOP_REPLY);
  EXPECT_EQ(answer.target, at(a.address, 0).sin_addr.s_addr) << "the first to be answered spoke for itself";
  EXPECT_EQ(answer.target_mac[5], uint8_t(own.value));
}

// ---- ports and addresses of the machine ----

TEST_F(NetworkFixture, a_service_does_not_take_what_the_machine_listens_on) {
  connect_outside();
  config.api_port = 6443;
  up();
  Pod b = pod("b");
  Greeter at_b(b.netns, "b", 8080), ssh(machine, "ssh", 22);
  put_service("greedy", R"({"type":"LoadBalancer","clusterIP":"10.96.3.9","externalIPs":["192.0.2.1"],
    "ports":[{"name":"p","port":22},{"name":"q","port":80}]})");
  for (bool has_endpoints : {false, true}) {
    if (has_endpoints) put_endpoints("greedy", {b.address}, 8080);
    applied();
    EXPECT_EQ(greet_tcp(outside, kMachine, 22), std::string("ssh ") + kOutside) << has_endpoints;
    EXPECT_EQ(greet_tcp(machine, kMachine, 22), std::string("ssh ") + kMachine) << has_endpoints;
  }
  network->stop();
  EXPECT_EQ(events.said(),
            std::vector<std::string>{"greedy ExternalAddressIgnored: external address 192.0.2.1 is ignored at port "
                                     "22/TCP: a process of this machine listens there"})
      << "once";
}

TEST_F(NetworkFixture, nor_as_a_node_port) {
  connect_outside();
  up();
  Pod b = pod("b");
  Greeter at_b(b.netns, "b", 8080), ssh(machine, "ssh", 30022);
  put_service("greedy", R"({"type":"NodePort","clusterIP":"10.96.3.9","ports":[{"name":"p","port":80,"nodePort":30022}]})");
  for (bool has_endpoints : {false, true}) {
    if (has_endpoints) put_endpoints("greedy", {b.address}, 8080);
    applied();
    EXPECT_EQ(greet_tcp(outside, kMachine, 30022), std::string("ssh ") + kOutside) << has_endpoints;
    EXPECT_EQ(greet_tcp(machine, kMachine, 30022), std::string("ssh ") + kMachine) << has_endpoints;
  }
  network->stop();
  EXPECT_EQ(events.said(), std::vector<std::string>{"greedy NodePortIgnored: node port 30022/TCP is ignored: a process "
                                                    "of this machine listens there"})
      << "once";
}

// With a port at an external address of the machine, and a node port.
constexpr const char* kTwoPorts = R"({"type":"NodePort","clusterIP":"10.96.3.9","externalIPs":["192.0.2.1"],
  "ports":[{"name":"p","port":8081,"nodePort":30080}]})";

constexpr uid_t kNobody = 65534;

// Any user may listen from there on.
void open_ports_from(int first) {
  const std::string name = "/proc/sys/net/ipv4/ip_unprivileged_port_start", value = std::to_string(first);
  Fd setting = MUST(sys::open(name, O_WRONLY));
  ASSERT_EQ(::write(setting.get(), value.data(), value.size()), ssize_t(value.size())) << failure();
}

TEST_F(NetworkFixture, a_users_program_takes_nothing_of_a_service) {
  connect_outside();
  up();
  Pod b = pod("b");
  Greeter at_b(b.netns, "b", 8080), user(machine, "user", 30080, kNobody), another(machine, "another", 8081, kNobody);
  put_service("web", kTwoPorts);
  put_endpoints("web", {b.address}, 8080);
  applied();
  for (uint16_t port : {8081, 30080}) EXPECT_EQ(greet_tcp(outside, kMachine, port), std::string("b ") + kOutside) << port;
  network->stop();
  EXPECT_TRUE(events.said().empty()) << events.said()[0];
}

// A process that listens in the machine's network namespace and in a cgroup of its own, as one of a pod with hostNetwork.
class HostNetworkPod {
 public:
  explicit HostNetworkPod(std::initializer_list<uint16_t> ports, uid_t owner = 0) {
    for (const char* top : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
      cgroup = std::string(top) + "/coracle-test-" + std::to_string(::getpid());
      can_be = std::filesystem::exists(std::string(top) + "/cgroup.procs") && ::mkdir(cgroup.c_str(), 0755) == 0 &&
               ::mkdir((cgroup + "/pod").c_str(), 0755) == 0;
      if (can_be) break;
    }
    if (!can_be) return;
    const std::string procs = cgroup + "/pod/cgroup.procs";
    sockaddr_in where = at("0.0.0.0", 0);
    int said[2];
    EXPECT_EQ(::pipe2(said, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {  // system calls only: there are threads
      bool listens = ::write(::open(procs.c_str(), O_WRONLY | O_CLOEXEC), "0", 1) == 1;
      for (uint16_t port : ports) {
        where.sin_port = htons(port);
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        listens =
            listens && ::bind(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 && ::listen(socket, 1) == 0;
        listens = listens && (owner == 0 || ::fchown(socket, owner, gid_t(-1)) == 0);
      }
      if (!listens || ::write(said[1], "y", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(said[1]);
    char yes = 0;
    EXPECT_EQ(::read(said[0], &yes, 1), 1) << "it does not listen";
    ::close(said[0]);
  }
  ~HostNetworkPod() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    ::rmdir((cgroup + "/pod").c_str());
    ::rmdir(cgroup.c_str());
  }
  std::string cgroup;
  bool can_be = false;

 private:
  pid_t pid_ = -1;
};

TEST_F(NetworkFixture, nor_does_a_pod_with_the_machines_network) {
  HostNetworkPod other({8081, 30080});
  if (!other.can_be) GTEST_SKIP() << "needs a cgroup v2 that can be written";
  if (MUST(sys::cgroups_of_listeners()).empty()) GTEST_SKIP() << "needs Linux 5.8";
  config.pods_cgroup = other.cgroup;
  connect_outside();
  up();
  Pod b = pod("b");
  Greeter at_b(b.netns, "b", 8080);
  put_service("web", kTwoPorts);
  put_endpoints("web", {b.address}, 8080);
  applied();
  for (uint16_t port : {8081, 30080}) EXPECT_EQ(greet_tcp(outside, kMachine, port), std::string("b ") + kOutside) << port;
}

// The ports of the machine's own listeners, or of the others.
std::set<uint16_t> listened_on(MachineListeners& listeners, bool own) {
  const std::set<LocalPort> all = MUST(listeners.read());
  std::set<uint16_t> ports;
  for (const LocalPort& one : all)
    if (one.is_own == own) ports.insert(one.port);
  return ports;
}

TEST_F(NetworkFixture, who_needs_roots_leave_to_listen_is_the_machines) {
  Greeter low(machine, "low", 1023, kNobody), high(machine, "high", 1024, kNobody), root(machine, "root", 1025);
  MachineListeners listeners("");
  EXPECT_EQ(listened_on(listeners, true), (std::set<uint16_t>{1023, 1025})) << "by default";
  open_ports_from(1023);
  EXPECT_EQ(listened_on(listeners, true), (std::set<uint16_t>{1025}));
  open_ports_from(1025);
  EXPECT_EQ(listened_on(listeners, true), (std::set<uint16_t>{1023, 1024, 1025}));
}

TEST_F(NetworkFixture, but_no_pod_is) {
  HostNetworkPod other({443, 8081}, kNobody);
  if (!other.can_be) GTEST_SKIP() << "needs a cgroup v2 that can be written";
  if (MUST(sys::cgroups_of_listeners()).empty()) GTEST_SKIP() << "needs Linux 5.8";
  Greeter named(machine, "named", 53, kNobody);
  MachineListeners listeners(other.cgroup);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(listened_on(listeners, true), (std::set<uint16_t>{53})) << i;
    EXPECT_EQ(listened_on(listeners, false), (std::set<uint16_t>{443, 8081})) << i;
  }
}

TEST_F(NetworkFixture, a_service_takes_no_port_of_a_program_that_needs_leave_for_it) {
  connect_outside();
  open_ports_from(30081);
  up();
  Pod b = pod("b");
  Greeter at_b(b.netns, "b", 8080), user(machine, "user", 30080, kNobody), another(machine, "another", 8081, kNobody);
  put_service("web", kTwoPorts);
  put_endpoints("web", {b.address}, 8080);
  applied();
  EXPECT_EQ(greet_tcp(outside, kMachine, 8081), std::string("another ") + kOutside);
  EXPECT_EQ(greet_tcp(outside, kMachine, 30080), std::string("user ") + kOutside);
  EXPECT_TRUE(greet_tcp(machine, "10.96.3.9", 8081).starts_with("b ")) << "there it is served";
}

TEST_F(NetworkFixture, a_program_that_begins_to_listen_gets_its_port_back) {
  connect_outside();
  up();
  Pod b = pod("b");
  Greeter at_b(b.netns, "b", 8080);
  put_service("early", R"({"type":"NodePort","clusterIP":"10.96.3.9","externalIPs":["192.0.2.1"],
    "ports":[{"name":"p","port":22,"nodePort":30022}]})");
  put_endpoints("early", {b.address}, 8080);
  applied();
  for (uint16_t port : {22, 30022}) EXPECT_EQ(greet_tcp(outside, kMachine, port), std::string("b ") + kOutside) << port;
  Greeter ssh(machine, "ssh", 22), other(machine, "other", 30022);
  auto both_answer = [&] {
    return try_tcp(outside, kMachine, 22) == std::string("ssh ") + kOutside &&
           try_tcp(outside, kMachine, 30022) == std::string("other ") + kOutside;
  };
  const auto end = std::chrono::steady_clock::now() + 12 * kLookInterval;
  while (!both_answer() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(both_answer());
}

TEST_F(NetworkFixture, affinity_outlives_the_daemon_and_its_table) {
  up();
  Pod a = pod("a");
  std::vector<Pod> others;
  std::vector<std::unique_ptr<Greeter>> greeters;
  std::vector<std::string> addresses;
  for (int i = 0; i < 8; ++i) {
    others.push_back(pod("other-" + std::to_string(i)));
    greeters.push_back(std::make_unique<Greeter>(others.back().netns, std::to_string(i), 8080));
    addresses.push_back(others.back().address);
  }
  put_service("web", R"({"clusterIP":"10.96.3.7","sessionAffinity":"ClientIP","ports":[{"name":"p","port":80}]})");
  put_endpoints("web", addresses, 8080);
  applied();
  const std::string first = greet_tcp(a.netns, "10.96.3.7", 80);
  down();
  up();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 80), first) << "a new daemon";
  run_nft("flush chain ip coracle translate");
  until(first, [&] { return try_tcp(a.netns, "10.96.3.7", 80); });
  for (int i = 0; i < 8; ++i) EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 80), first) << "a table that was made anew";
  const size_t chosen = size_t(first[0] - '0');
  std::vector<std::string> fewer = addresses;
  fewer.erase(fewer.begin() + ptrdiff_t(chosen == 0 ? 1 : 0));
  put_endpoints("web", fewer, 8080);
  applied();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 80), first) << "another endpoint is gone";
  std::erase(fewer, addresses[chosen]);
  put_endpoints("web", fewer, 8080);
  applied();
  const std::string second = greet_tcp(a.netns, "10.96.3.7", 80);
  EXPECT_NE(second, first) << "its own endpoint is gone";
  for (int i = 0; i < 8; ++i) EXPECT_EQ(greet_tcp(a.netns, "10.96.3.7", 80), second);
}

TEST_F(NetworkFixture, a_replacement_is_heard_as_one_removal) {
  sys::TableMonitor monitor = MUST(sys::TableMonitor::open());
  Ruleset rules;
  rules.chains["input"] = {"type filter hook input priority 0; policy accept;", {"accept"}};
  for (const char* table : {"missing", "there"}) {
    Firewall firewall;
    EXPECT_TRUE(MUST(firewall.apply(rules))) << table;
    EXPECT_EQ(monitor.read(kTableName).removals, 1u) << table;
    rules.chains["input"].rules.push_back("drop");
    EXPECT_FALSE(MUST(firewall.apply(rules))) << table;
    EXPECT_EQ(monitor.read(kTableName).removals, 0u) << table;
  }
}

TEST_F(NetworkFixture, udp_that_began_while_the_table_was_flushed_is_translated_again) {
  up();
  // The kernel tracks connections as long as any table uses them; many machines have such a table.
  run_nft("table ip other {\n chain seen {\n type filter hook prerouting priority 0;\n ct state established accept\n }\n}\n");
  Pod a = pod("a"), b = pod("b");
  Greeter at_b(b.netns, "b", 5353);
  put_service(
      "talk",
      R"({"type":"NodePort","clusterIP":"10.96.3.8","ports":[{"name":"p","port":53,"protocol":"UDP","nodePort":30053}]})");
  put_endpoints("talk", {b.address}, 5353, "UDP");
  applied();
  for (int round = 0; round < 5; ++round) {
    Fd socket = socket_in(a.netns, SOCK_DGRAM);
    timeval timeout{0, 100'000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    MUST(Firewall::remove());
    std::string got = greet_udp(socket, "10.244.0.1", 30053);  // unhandled, or already the Service's
    for (int i = 0; i < 500 && (got = greet_udp(socket, "10.244.0.1", 30053)) != "b " + a.address; ++i) ::poll(nullptr, 0, 20);
    ASSERT_EQ(got, "b " + a.address);
  }
}

TEST_F(NetworkFixture, a_pod_has_no_ipv6_but_its_own_loopback) {
  up();
  Pod a = pod("a");
  MUST(sys::in_netns(a.netns, []() -> Result<void> {
    std::string setting = TRY(sys::read_file("/proc/sys/net/ipv6/conf/eth0/disable_ipv6"));
    EXPECT_EQ(setting, "1\n");
    setting = TRY(sys::read_file("/proc/sys/net/ipv6/conf/eth0/accept_ra"));
    EXPECT_EQ(setting, "0\n");
    setting = TRY(sys::read_file("/proc/sys/net/ipv6/conf/lo/disable_ipv6"));
    EXPECT_EQ(setting, "0\n");
    return {};
  }));
  std::string setting = MUST(sys::read_file("/proc/sys/net/ipv4/conf/coracle0/route_localnet"));
  EXPECT_EQ(setting, "0\n");
}

TEST_F(NetworkFixture, cleanup_leaves_nothing) {
  connect_outside();
  Fd settings = MUST(sys::open_directory("/proc/sys/net/ipv4"));
  MUST(sys::write_control(settings, "ip_forward", "0"));  // a new namespace inherits the machine's value
  up();
  Pod a = pod("a", {{Protocol::tcp, {}, 8081, 80}});
  applied();
  EXPECT_EQ(MUST(sys::read_file("/proc/sys/net/ipv4/ip_forward")), "1\n");
  down();
  MUST(Network::cleanup(config));
  MUST(Network::cleanup(config));  // nothing exists; that is no error
  sys::Netlink link = MUST(sys::Netlink::open());
  std::set<std::string> names;
  for (const sys::Link& one : MUST(link.links())) names.insert(one.name);
  EXPECT_EQ(names, (std::set<std::string>{"lo", "uplink"}));
  EXPECT_FALSE(std::filesystem::exists(config.run_dir));
  EXPECT_EQ(MUST(sys::read_file("/proc/sys/net/ipv4/ip_forward")), "0\n");

  EXPECT_EQ(greet_tcp(outside, kMachine, 8081), "refused");
}

TEST_F(NetworkFixture, settings_that_cannot_be_are_named) {
  struct Row {
    std::string Config::*field;
    const char* value;
    const char* says;
  };
  services = std::make_unique<Informer>(client, kService);
  slices = std::make_unique<Informer>(client, kEndpointSlice);
  pods = std::make_unique<Informer>(client, kPod);
  for (const Row& row : {Row{&Config::pod_cidr, "10.244.0.0", "podCIDR: "}, Row{&Config::pod_cidr, "10.96.4.0/24", "overlap"},
                         Row{&Config::pod_cidr, "10.244.0.0/30", "podCIDR: "}, Row{&Config::service_cidr, "x", "serviceCIDR: "},
                         Row{&Config::dns_address, "10.97.0.10", "clusterDNS: 10.97.0.10 is not within serviceCIDR, "}}) {
    Config wrong = config;
    wrong.*row.field = row.value;
    auto opened = Network::open(wrong, *services, *slices, *pods);
    ASSERT_FALSE(opened) << row.value;
    EXPECT_EQ(opened.error().code(), Code::invalid) << row.value;
    EXPECT_NE(opened.error().text().find(row.says), std::string::npos) << opened.error().text();
    auto checked = Network::check(wrong);
    ASSERT_FALSE(checked) << row.value;
    EXPECT_EQ(checked.error().text(), opened.error().text()) << "without opening it";
  }
  EXPECT_TRUE(Network::check(config).ok());
}

TEST_F(NetworkFixture, measured_attaching_a_pod) {
  up();
  std::vector<double> took;
  std::vector<Pod> all;
  for (int i = 0; i < 60; ++i) {
    Fd netns = MUST(sys::new_netns());
    auto begun = std::chrono::steady_clock::now();
    MUST(network->attach("pod-" + std::to_string(i), netns, {}));
    took.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count());
    all.push_back({"", "", std::move(netns)});
  }
  std::sort(took.begin(), took.end());
  std::printf("measured: attach median %.2f ms, worst %.2f ms\n", took[took.size() / 2], took.back());
}

}  // namespace
}  // namespace coracle::network
