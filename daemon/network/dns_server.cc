// SPDX-License-Identifier: Apache-2.0
// See dns_server.h.
#include "daemon/network/dns_server.h"

#include <sys/epoll.h>

#include <array>
#include <map>
#include <thread>

#include "daemon/network/dns_decision.h"
#include "daemon/network/resolv_conf.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/random.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inet.h"

namespace coracle::network {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kUpstreamTimeout{2000};                      // per resolver; then the next one is queried
constexpr milliseconds kConnectionIdle{10000};                      // an idle TCP connection is closed
constexpr milliseconds kResolvConfInterval{1000};                   // minimum interval between checks of the file
constexpr int kDatagramsPerPass = 64;                               // limit per pass, so that other sockets are served too
constexpr size_t kLengthBytes = 2;                                  // prefix of each message over TCP
constexpr size_t kOutputMax = 4 * (kDnsMessageMax + kLengthBytes);  // queued for a slow TCP client

constexpr uint64_t kStop = 1, kUdp = 2, kTcp = 3, kFirstKey = 16;

std::string framed(std::string_view message) {
  std::string out;
  out.reserve(message.size() + kLengthBytes);
  out += char(message.size() >> 8);
  out += char(message.size() & 0xff);
  return out.append(message);
}

// Removes the next complete message from the stream and returns it; nullopt if it is incomplete.
std::optional<std::string> take_message(std::string& stream) {
  if (stream.size() < kLengthBytes) return std::nullopt;
  size_t size = size_t(uint8_t(stream[0])) << 8 | uint8_t(stream[1]);
  if (stream.size() < kLengthBytes + size) return std::nullopt;
  std::string message = stream.substr(kLengthBytes, size);
  stream.erase(0, kLengthBytes + size);
  return message;
}

struct Asker {              // the destination of a response
  sys::Endpoint4 address;   // UDP
  uint64_t connection = 0;  // key of a TCP connection; 0 for UDP
};

struct Connection {  // a TCP client
  Fd socket;
  std::string input, output;
  size_t forwards = 0;  // number of its queries in progress
  SteadyTime heard;
};

struct Forward {  // a forwarded query
  Asker asker;
  std::string question;   // with the id of the forwarded query
  uint16_t asked_id = 0;  // the id of the client's query
  std::string failure;    // the response if no resolver answers
  std::optional<PendingAlias> alias;
  Fd socket;
  size_t server = 0, tries = 0;
  std::string input, output;  // TCP
  SteadyTime deadline;
};

class Resolvers {  // the machine's resolvers, from its current resolv.conf
 public:
  Resolvers(std::string path, std::vector<Ipv4> ours) : path_(std::move(path)), ours_(std::move(ours)) {}

  const std::vector<Ipv4>& servers(SteadyTime now) {
    if (now < look_again_) return servers_;
    look_again_ = now + kResolvConfInterval;
    Result<Fd> file = sys::open(path_, O_RDONLY);
    if (!file) return servers_;  // it is being replaced or missing: keep the last known servers
    Result<struct stat> about = sys::stat(*file);
    if (!about || same(*about)) return servers_;
    if (Result<std::string> text = sys::read_all(*file, kResolvConfMax)) {
      servers_ = parse_nameservers(*text, ours_);
      seen_ = *about;
    }
    return servers_;
  }

 private:
  static constexpr size_t kResolvConfMax = 64 << 10;
  bool same(const struct stat& now) const {
    return now.st_ino == seen_.st_ino && now.st_size == seen_.st_size && now.st_mtim.tv_sec == seen_.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == seen_.st_mtim.tv_nsec;
  }
  std::string path_;
  std::vector<Ipv4> ours_, servers_;
  struct stat seen_ {};
  SteadyTime look_again_{};
};

}  // namespace

struct DnsServer::State {
  DnsServerConfig config;
  const ZoneSource& source;
  uint16_t port;
  Fd wake, epoll, udp, tcp;
  Resolvers resolvers;
  std::map<uint64_t, Connection> connections;
  std::map<uint64_t, Forward> forwards;
  uint64_t next_key = kFirstKey;
  size_t preferred = 0;  // the resolver that responded last
  SteadyTime now;
  std::vector<char> buffer = std::vector<char>(kDnsMessageMax + 1);
  std::jthread thread;

  void run(std::stop_token stop);
  void serve_udp();
  void serve_tcp();
  void handle(std::string_view packet, const Asker& asker);
  void reply(const Asker& asker, std::string_view packet);

  void read_connection(uint64_t key);
  void flush_connection(uint64_t key);
  void drop_connection(uint64_t key);

  void forward(DnsDecision decision, std::string_view packet, const Asker& asker);
  bool ask_next(uint64_t key, Forward& forward);
  void read_forward(uint64_t key, uint32_t events);
  void answered(uint64_t key, std::string packet);
  void give_up(uint64_t key);
  void end_forward(uint64_t key);

  void expire();
  std::optional<milliseconds> time_left() const;
};

// ---- start and main loop ----

DnsServer::DnsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
DnsServer::~DnsServer() { stop(); }
uint16_t DnsServer::port() const { return state_->port; }

Result<std::unique_ptr<DnsServer>> DnsServer::open(DnsServerConfig config, const ZoneSource& source) {
  std::optional<Error> refused;
  for (uint16_t port : config.ports) {
    sys::Endpoint4 at{config.listen.value, port};
    Result<Fd> udp = sys::listen_on(sys::Transport::udp, at);
    Result<Fd> tcp = sys::listen_on(sys::Transport::tcp, at);
    if (!udp || !tcp) {
      refused = (udp ? tcp : udp).take_error().wrap("DNS on " + config.listen.text() + ":" + std::to_string(port));
      continue;
    }
    Fd wake = TRY(sys::make_eventfd());
    Fd epoll = TRY(sys::make_epoll());
    TRY(sys::epoll_add(epoll, wake, EPOLLIN, kStop));
    TRY(sys::epoll_add(epoll, *udp, EPOLLIN, kUdp));
    TRY(sys::epoll_add(epoll, *tcp, EPOLLIN, kTcp));
    Resolvers resolvers(config.resolv_conf, config.ours);
    std::unique_ptr<State> state(new State{std::move(config), source, port, std::move(wake), std::move(epoll), std::move(*udp),
                                           std::move(*tcp), std::move(resolvers)});
    return std::unique_ptr<DnsServer>(new DnsServer(std::move(state)));
  }
  if (refused) return std::move(*refused);
  return Error(Code::invalid, "DNS: no port to listen on");
}

void DnsServer::start() {
  state_->thread = start_thread("dns", [this](std::stop_token stop) { state_->run(stop); });
}

void DnsServer::stop() {
  if (!state_->thread.joinable()) return;
  state_->thread.request_stop();
  sys::signal_eventfd(state_->wake);
  state_->thread.join();
}

void DnsServer::State::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    now = system_clock().steady();
    Result<std::vector<sys::Ready>> ready = sys::epoll_wait(epoll, time_left());
    now = system_clock().steady();
    if (!ready) {
      log_error("dns", "the DNS server has stopped", {{"why", ready.error().text()}});
      return;
    }
    for (const sys::Ready& one : *ready) {
      if (one.key == kUdp) serve_udp();
      else if (one.key == kTcp) serve_tcp();
      else if (forwards.contains(one.key)) read_forward(one.key, one.events);
      else if (connections.contains(one.key)) {
        if (one.events & EPOLLOUT) flush_connection(one.key);
        if (connections.contains(one.key) && (one.events & ~EPOLLOUT) != 0) read_connection(one.key);
      }
    }
    expire();
  }
}

// ---- clients ----

void DnsServer::State::serve_udp() {
  for (int pass = 0; pass < kDatagramsPerPass; ++pass) {
    Result<sys::Datagram> got = sys::receive_datagram(udp, buffer);
    if (!got) return;
    if (got->size <= buffer.size()) handle({buffer.data(), got->size}, {got->from, 0});
  }
}

void DnsServer::State::serve_tcp() {
  Result<sys::Accepted> accepted = sys::accept_from(tcp);
  if (!accepted) return;
  if (connections.size() >= kDnsConnectionsMax) {
    auto oldest = connections.begin();
    for (auto at = connections.begin(); at != connections.end(); ++at)
      if (at->second.heard < oldest->second.heard) oldest = at;
    drop_connection(oldest->first);
  }
  uint64_t key = next_key++;
  if (!sys::epoll_add(epoll, accepted->socket, EPOLLIN | EPOLLRDHUP, key)) return;
  Connection& connection = connections[key];
  connection.socket = std::move(accepted->socket);
  connection.heard = now;
}

void DnsServer::State::read_connection(uint64_t key) {
  Connection& connection = connections.at(key);
  Result<size_t> got = sys::receive_some(connection.socket, buffer);
  if (!got && got.error().code() == Code::unavailable && got.error().err() == EAGAIN) return;
  if (!got || *got == 0) return drop_connection(key);
  connection.heard = now;
  connection.input.append(buffer.data(), *got);
  // Handling a message may close the connection, so it is looked up again each time.
  for (auto at = connections.find(key); at != connections.end(); at = connections.find(key)) {
    std::optional<std::string> message = take_message(at->second.input);
    if (!message) return;
    handle(*message, {{}, key});
  }
}

void DnsServer::State::flush_connection(uint64_t key) {
  Connection& connection = connections.at(key);
  while (!connection.output.empty()) {
    Result<size_t> sent = sys::send_some(connection.socket, connection.output);
    if (!sent && sent.error().err() == EAGAIN) break;
    if (!sent) return drop_connection(key);
    connection.output.erase(0, *sent);
  }
  uint32_t events = connection.output.empty() ? EPOLLIN | EPOLLRDHUP : EPOLLIN | EPOLLRDHUP | EPOLLOUT;
  if (!sys::epoll_change(epoll, connection.socket, events, key)) drop_connection(key);
}

void DnsServer::State::drop_connection(uint64_t key) {
  // Responses to its pending queries are dropped when they arrive.
  sys::epoll_remove(epoll, connections.at(key).socket);
  connections.erase(key);
}

void DnsServer::State::reply(const Asker& asker, std::string_view packet) {
  if (asker.connection == 0) {
    (void)sys::send_datagram(udp, asker.address, packet);  // may be lost like any datagram: the client repeats its query
    return;
  }
  auto found = connections.find(asker.connection);
  if (found == connections.end()) return;
  found->second.output += framed(packet);
  if (found->second.output.size() > kOutputMax) return drop_connection(asker.connection);
  flush_connection(asker.connection);
}

void DnsServer::State::handle(std::string_view packet, const Asker& asker) {
  DnsDecision decision = decide(packet, asker.connection != 0, config.zone, source);
  switch (decision.what) {
    case DnsDecision::What::ignore: return;
    case DnsDecision::What::reply: return reply(asker, decision.packet);
    case DnsDecision::What::forward: return forward(std::move(decision), packet, asker);
  }
}

// ---- forwarded queries ----

void DnsServer::State::forward(DnsDecision decision, std::string_view packet, const Asker& asker) {
  Result<Question> question = parse_question(packet);
  std::string failure = question ? encode_error(*question, Rcode::server_failure) : encode_error(packet, Rcode::server_failure);
  auto connection = connections.find(asker.connection);
  bool too_many = forwards.size() >= kForwardsMax ||
                  (connection != connections.end() && connection->second.forwards >= kForwardsPerConnectionMax);
  if (too_many) return reply(asker, failure);

  uint64_t key = next_key++;
  Forward& forward = forwards[key];
  forward.asker = asker;
  forward.question = std::move(decision.packet);
  forward.asked_id = message_id(packet).value_or(0);
  forward.failure = std::move(failure);
  forward.alias = std::move(decision.alias);
  forward.server = preferred;
  if (connection != connections.end()) ++connection->second.forwards;
  if (!ask_next(key, forward)) give_up(key);
}

// Sends the query to the next resolver. False: no resolver is left, or there is none.
bool DnsServer::State::ask_next(uint64_t key, Forward& forward) {
  const std::vector<Ipv4>& servers = resolvers.servers(now);
  const bool over_tcp = forward.asker.connection != 0;
  for (; forward.tries < servers.size();) {
    if (forward.socket) sys::epoll_remove(epoll, forward.socket);
    if (forward.tries > 0) ++forward.server;
    ++forward.tries;
    forward.server %= servers.size();
    Result<Fd> socket = sys::connect_to(over_tcp ? sys::Transport::tcp : sys::Transport::udp,
                                        {servers[forward.server].value, config.upstream_port});
    if (!socket) continue;
    forward.socket = std::move(*socket);
    set_message_id(forward.question, uint16_t(random_below(1 << 16)));  // unpredictable, against forged responses
    forward.deadline = now + kUpstreamTimeout;
    forward.input.clear();
    forward.output = over_tcp ? framed(forward.question) : "";
    if (!over_tcp && !sys::send_some(forward.socket, forward.question)) continue;
    if (!sys::epoll_add(epoll, forward.socket, over_tcp ? EPOLLOUT : EPOLLIN, key)) continue;
    return true;
  }
  return false;
}

void DnsServer::State::read_forward(uint64_t key, uint32_t events) {
  Forward& forward = forwards.at(key);
  const bool over_tcp = forward.asker.connection != 0;
  if (over_tcp && (events & EPOLLOUT) && !forward.output.empty()) {
    Result<size_t> sent = sys::send_some(forward.socket, forward.output);
    if (!sent && sent.error().err() == EAGAIN) return;
    if (sent) forward.output.erase(0, *sent);
    bool all = sent && forward.output.empty();
    if (all && sys::epoll_change(epoll, forward.socket, EPOLLIN, key)) return;
    if (sent && !all) return;
    if (!ask_next(key, forward)) give_up(key);
    return;
  }
  Result<size_t> got = sys::receive_some(forward.socket, buffer);
  if (!got && got.error().err() == EAGAIN) return;
  if (!got || (over_tcp && *got == 0)) {  // nothing listens there
    if (!ask_next(key, forward)) give_up(key);
    return;
  }
  std::string packet(buffer.data(), *got);
  if (over_tcp) {
    forward.input += packet;
    std::optional<std::string> message = take_message(forward.input);
    if (!message) return;
    packet = std::move(*message);
  }
  if (!answers(packet, forward.question)) return;  // forged or late: wait for the right one
  preferred = forward.server;
  answered(key, std::move(packet));
}

void DnsServer::State::answered(uint64_t key, std::string packet) {
  Forward& forward = forwards.at(key);
  if (forward.alias) {
    Result<std::string> whole =
        encode_behind_alias(forward.alias->question, forward.alias->answer, packet, forward.alias->bytes_max);
    packet = whole && !whole->empty() ? std::move(*whole) : forward.failure;
  } else {
    set_message_id(packet, forward.asked_id);
  }
  reply(forward.asker, packet);
  end_forward(key);
}

void DnsServer::State::give_up(uint64_t key) {
  reply(forwards.at(key).asker, forwards.at(key).failure);
  end_forward(key);
}

void DnsServer::State::end_forward(uint64_t key) {
  auto found = forwards.find(key);
  if (auto connection = connections.find(found->second.asker.connection); connection != connections.end())
    --connection->second.forwards;
  if (found->second.socket) sys::epoll_remove(epoll, found->second.socket);
  forwards.erase(found);
}

// ---- timeouts ----

void DnsServer::State::expire() {
  std::vector<uint64_t> late;
  for (const auto& [key, forward] : forwards)
    if (forward.deadline <= now) late.push_back(key);
  for (uint64_t key : late)
    if (!ask_next(key, forwards.at(key))) give_up(key);
  late.clear();
  for (const auto& [key, connection] : connections)
    if (connection.heard + kConnectionIdle <= now && connection.forwards == 0) late.push_back(key);
  for (uint64_t key : late) drop_connection(key);
}

std::optional<milliseconds> DnsServer::State::time_left() const {
  if (forwards.empty() && connections.empty()) return std::nullopt;
  SteadyTime next = SteadyTime::max();
  for (const auto& [key, forward] : forwards) next = std::min(next, forward.deadline);
  for (const auto& [key, connection] : connections)
    if (connection.forwards == 0) next = std::min(next, connection.heard + kConnectionIdle);
  if (next == SteadyTime::max()) return std::nullopt;
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(next - now));
}

}  // namespace coracle::network
