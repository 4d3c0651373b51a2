// SPDX-License-Identifier: Apache-2.0
// The fixture of the network's live tests: a "machine" (a new network namespace that the test's thread enters), pods, and an
// external host behind an uplink. Traffic stays between these namespaces.
//   outside 192.0.2.2 ──uplink── 192.0.2.1 machine ── pods
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "daemon/event/recorder.h"
#include "daemon/network/network.h"
#include "runtime/base/guarded.h"
#include "runtime/sys/file.h"
#include "runtime/sys/netlink.h"
#include "runtime/sys/netns.h"
#include "tests/store/client/fake_client.h"

namespace coracle::network {

inline constexpr const char* kMachine = "192.0.2.1";
inline constexpr const char* kOutside = "192.0.2.2";
inline constexpr int kTimeoutMs = 60'000;  // for what has to happen
inline constexpr int kSilenceMs = 3000;    // for what must not

inline sockaddr_in at(const std::string& address, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &out.sin_addr);
  return out;
}

inline std::string text(const sockaddr_in& address) {
  char out[INET_ADDRSTRLEN];
  return ::inet_ntop(AF_INET, &address.sin_addr, out, sizeof out);
}

inline Fd socket_in(const Fd& netns, int type, int timeout_ms = kTimeoutMs) {
  Fd socket = MUST(sys::socket_in_netns(netns, AF_INET, type, 0));
  timeval timeout{timeout_ms / 1000, timeout_ms % 1000 * 1000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);  // applies to connect too
  int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return socket;
}

inline const char* failure() {
  if (errno == ECONNREFUSED) return "refused";
  if (errno == EAGAIN || errno == EINPROGRESS || errno == ETIMEDOUT) return "timeout";
  return std::strerror(errno);
}

// Answers each client with "<name> <the client's address>", over TCP and UDP.
class Greeter {
 public:
  // Its sockets belong to user `owner`.
  Greeter(const Fd& netns, std::string name, uint16_t port, uid_t owner = 0) : name_(std::move(name)) {
    sockaddr_in where = at("0.0.0.0", port);
    for (int type : {SOCK_STREAM, SOCK_DGRAM}) {
      Fd socket = socket_in(netns, type);
      if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) < 0) ADD_FAILURE() << failure();
      if (type == SOCK_STREAM && ::listen(socket.get(), 16) < 0) ADD_FAILURE() << failure();
      if (owner != 0 && ::fchown(socket.get(), owner, gid_t(-1)) < 0) ADD_FAILURE() << failure();
      (type == SOCK_STREAM ? tcp_ : udp_) = std::move(socket);
    }
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }

 private:
  void run(std::stop_token stop) {
    while (!stop.stop_requested()) {
      pollfd fds[2] = {{tcp_.get(), POLLIN, 0}, {udp_.get(), POLLIN, 0}};
      if (::poll(fds, 2, 20) <= 0) continue;
      sockaddr_in from{};
      socklen_t size = sizeof from;
      if (fds[0].revents) {
        Fd client(::accept4(tcp_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC));
        std::string reply = name_ + " " + text(from);
        if (client) (void)!::send(client.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
      }
      if (fds[1].revents) {
        char buffer[64];
        if (::recvfrom(udp_.get(), buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &size) < 0) continue;
        std::string reply = name_ + " " + text(from);
        ::sendto(udp_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
      }
    }
  }
  std::string name_;
  Fd tcp_, udp_;
  std::jthread thread_;
};

// The greeter's answer, or "refused", "timeout", ….
inline std::string greet_tcp(const Fd& netns, const std::string& address, uint16_t port, int timeout_ms = kTimeoutMs) {
  Fd socket = socket_in(netns, SOCK_STREAM, timeout_ms);
  sockaddr_in where = at(address, port);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) < 0) return failure();
  char buffer[128];
  ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
  return got < 0 ? failure() : std::string(buffer, size_t(got));
}

inline std::string greet_udp(const Fd& socket, const std::string& address, uint16_t port) {
  sockaddr_in where = at(address, port);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) < 0) return failure();
  char buffer[128];
  if (::send(socket.get(), "hello", 5, 0) < 0) return failure();
  ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
  return got < 0 ? failure() : std::string(buffer, size_t(got));
}
inline std::string greet_udp(const Fd& netns, const std::string& address, uint16_t port, int) {
  return greet_udp(socket_in(netns, SOCK_DGRAM), address, port);
}

inline bool can_make_namespaces() {
  static const bool can = bool(sys::new_netns());
  return can;
}

class HeardEvents : public EventSink {
 public:
  void post(EventRecord record) override {
    said_.with([&](auto& said) { said.push_back(record.about.name + " " + record.reason + ": " + record.message); });
  }
  std::vector<std::string> said() const {
    return said_.with([](const auto& said) { return said; });
  }

 private:
  Guarded<std::vector<std::string>> said_;
};

class NetworkFixture : public ::testing::Test {
 protected:
  struct Pod {
    std::string id, address;
    Fd netns;
  };

  void SetUp() override {
    if (!can_make_namespaces()) GTEST_SKIP() << "needs root and network namespaces";
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);  // this thread and all threads that it creates
    machine = MUST(sys::current_netns());
    raise_loopback(machine);
    char name[] = "/tmp/coracle-network-XXXXXX";
    directory = ::mkdtemp(name);
    config.run_dir = directory + "/run";
    config.resolv_conf = directory + "/resolv.conf";
    write("resolv.conf", "");
  }
  void TearDown() override {
    down();
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }

  static void raise_loopback(const Fd& netns) {
    sys::Netlink link = MUST(sys::Netlink::open_in(netns));
    MUST(link.set_up(MUST(link.index_of("lo"))));
  }

  void write(const std::string& name, const std::string& text) {
    MUST(sys::replace_file(directory + "/" + name, text, 0644, sys::Durability::volatile_));
  }

  void up() {
    services = std::make_unique<Informer>(client, kService);
    slices = std::make_unique<Informer>(client, kEndpointSlice);
    pods = std::make_unique<Informer>(client, kPod);
    network = MUST(Network::open(config, *services, *slices, *pods, &events));
    network->start({.rules_applied = {}, .lost_link = [this](const std::string& sandbox) {
                      lost_links.with([&](auto& lost) { lost.push_back(sandbox); });
                    }});
    for (Informer* informer : {services.get(), slices.get(), pods.get()}) MUST(informer->start());
    applied();
  }
  void down() {
    if (network) network->stop();
    services.reset(), slices.reset(), pods.reset();
    network.reset();
  }
  void applied() {
    client.settle();
    Result<void> done = network->wait_applied(std::chrono::seconds(60));
    ASSERT_TRUE(done) << done.error().text();
  }

  void connect_outside() {
    outside = MUST(sys::new_netns());
    raise_loopback(outside);
    sys::Netlink here = MUST(sys::Netlink::open());
    uint32_t uplink = MUST(here.add_veth({.name = "uplink", .peer_name = "uplink", .peer_netns = &outside}));
    MUST(here.add_address(uplink, std::string(kMachine) + "/24"));
    sys::Netlink there = MUST(sys::Netlink::open_in(outside));
    uint32_t peer = MUST(there.index_of("uplink"));
    MUST(there.add_address(peer, std::string(kOutside) + "/24"));
    MUST(there.set_up(peer));
  }

  Pod pod(const std::string& id, const std::vector<HostPort>& ports = {}) {
    Pod out{id, "", MUST(sys::new_netns())};
    raise_loopback(out.netns);
    out.address = MUST(network->attach(id, out.netns, ports)).at(0);
    return out;
  }

  void put_service(const std::string& name, const std::string& spec) {
    client.put(kService, R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":")" + name +
                             R"("},"spec":)" + spec + "}");
  }
  // One slice per service, with these addresses and one port "p".
  void put_endpoints(const std::string& service, const std::vector<std::string>& addresses, uint16_t port,
                     const std::string& protocol = "TCP") {
    std::string endpoints;
    for (const std::string& address : addresses)
      endpoints +=
          std::string(endpoints.empty() ? "" : ",") + R"({"addresses":[")" + address + R"("],"conditions":{"ready":true}})";
    client.put(kEndpointSlice, R"({"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"namespace":"default",
      "name":")" + service + R"(","labels":{"kubernetes.io/service-name":")" +
                                   service + R"("}},"addressType":"IPv4",
      "endpoints":[)" + endpoints + R"(],"ports":[{"name":"p","port":)" +
                                   std::to_string(port) + R"(,"protocol":")" + protocol + R"("}]})");
  }

  Fd machine, outside;
  std::string directory;
  Config config;
  FakeClient client;
  HeardEvents events;
  Guarded<std::vector<std::string>> lost_links;  // ids of sandboxes
  std::unique_ptr<Informer> services, slices, pods;
  std::unique_ptr<Network> network;
};

}  // namespace coracle::network
