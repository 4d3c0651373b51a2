// SPDX-License-Identifier: Apache-2.0
// See http_server.h: the acceptor and the worker pool.
#include "daemon/api/http_server.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <thread>

#include "daemon/api/idle_connections.h"
#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/thread.h"
#include "store/object/object.h"

namespace coracle::api {
namespace {

constexpr std::chrono::seconds kWorkerIdle{20};  // an idle thread ends after that
// How long a thread waits for the rest of a handshake or head; after that, the connection waits without a thread.
constexpr std::chrono::milliseconds kTimeout{50};
constexpr std::chrono::milliseconds kAcceptPause{200};  // pause of accepting when the process is out of descriptors
// Accepted before readable connections have their turn: whoever connects all the time must not keep others waiting.
constexpr int kAcceptedAtOnce = 32;
constexpr uint64_t kWakeupToken = 0;
constexpr size_t kBlankBytesMax = 4;  // empty lines before a request. Source: Go net/http
// The size of usual heads, and how many longer ones may be in use at a time.
constexpr size_t kUsualHeadBytes = 64 << 10;
constexpr int kLongHeadsMax = 16;
// A client that gets its response before its request was read completely may still read the response: further input is discarded
// within these limits.
constexpr size_t kLingerBytesMax = 8 << 20;
constexpr std::chrono::milliseconds kLingerTime{2000};
constexpr size_t kDiscardPiece = 256 << 10;

// `stays`: the connection is kept for the next request.
bool write_answer(Connection& connection, const Head& asked, const Answer& answer, bool stays) {
  const std::string_view whole(answer.body);
  const std::span<const std::string_view> pieces = answer.pieces.empty() ? std::span(&whole, 1) : std::span(answer.pieces);
  size_t bytes = 0;
  for (std::string_view piece : pieces) bytes += piece.size();
  std::string head = begin_head(answer.status, answer.headers, !asked.supports_chunked);
  head.append(answer.lines);
  bool framed = answer.status != 204 && answer.status != 304;  // these have no body. Source: RFC 9110 sections 15.3.5, 15.4.5
  if (framed && !answer.content_type.empty()) head.append("Content-Type: ").append(answer.content_type).append("\r\n");
  if (framed) head.append("Content-Length: ").append(std::to_string(bytes)).append("\r\n");
  head.append(connection_header(asked, stays)).append("\r\n");
  if (!connection.write(head)) return false;
  if (!framed || asked.method == "HEAD") return true;
  return std::all_of(pieces.begin(), pieces.end(), [&](std::string_view piece) { return connection.write(piece); });
}

// The error of a full server.
Error busy() {
  ErrorDetails details;
  details.retry_after_seconds = 1;
  return Error(Code::too_many_requests, "Too many requests, please try again later.").with(std::move(details));
}

struct Shared {          // state shared by the acceptor and the workers
  IdleConnections idle;  // registered in the ready set
  std::map<uint64_t, ClientConnectionPtr> serving;
  std::deque<ClientConnectionPtr, sys::SlabAllocator<ClientConnectionPtr>> waiting;  // readable, without a thread yet
  std::map<uint64_t, std::stop_source> noticing;  // being served; stopped when the peer sends or disconnects
  uint64_t next_token = 1000;                     // smaller tokens are listeners and the eventfd
  int threads = 0, idle_threads = 0;
  int long_heads = 0;
  bool stopping = false;
  int connections() const { return int(idle.size() + serving.size() + waiting.size()); }
};

}  // namespace

struct HttpServer::State {
  State(TlsSettings& tls, Handler handler, IsLong is_long, Refuse refuse, HttpServerLimits limits)
      : tls(tls), handler(std::move(handler)), is_long(std::move(is_long)), refuse(std::move(refuse)), limits(limits) {}

  TlsSettings& tls;
  Handler handler;
  IsLong is_long;
  Refuse refuse;
  HttpServerLimits limits;
  std::vector<Fd> listeners;  // that of the local socket is the last
  LocalSocket local;
  sys::ReadySet ready;
  sys::Wakeup wakeup;
  Guarded<Shared> shared;
  // Outside of `shared`, because every request touches them.
  std::atomic<int> requests = 0, watches = 0, bodies = 0;
  std::atomic<bool> threads_are_wanted = false;  // a connection waits for a thread, or the server is stopping
  std::optional<SteadyTime> accept_again;        // used by the acceptor only
  std::jthread acceptor;

  // ---- acceptor ----
  void accept_connections(std::stop_token stop);
  void accept(const Fd& listener);
  bool close_least_wanted();
  void pause_accepting(const Error& why);
  void resume_accepting();
  void stirred(uint64_t token);
  std::stop_token notice_peer(ClientConnection& connection);
  sys::Timeout close_the_overdue();
  void keep_idle(ClientConnectionPtr connection);  // returns the connection to the ready set
  void throw_away(ClientConnectionPtr connection);
  void hand_over(ClientConnectionPtr connection);

  // ---- workers ----
  void work();
  ClientConnectionPtr next();
  void attend(const ClientConnectionPtr& connection);
  bool more_to_serve(ClientConnection& connection);
  // again: keep the connection; later: wait for the rest of a head; never: close it; lingers: close it after the peer had time to
  // read the response.
  enum class Served { again, later, never, lingers };
  Served serve_one(ClientConnection& connection);
  Result<std::string_view> read_head(ClientConnection& connection);
  bool take_long_head(ClientConnection& connection);
  void drop_long_head(ClientConnection& connection);
  Served refuse_one(ClientConnection& connection, const Head& head, const Error& why);
  // The limit that a request counts against.
  enum class Slot { none, request, watch, body };
  std::atomic<int>& count_of(Slot slot) { return slot == Slot::request ? requests : slot == Slot::watch ? watches : bodies; }
  bool take(Slot slot);
  void leave(Slot& slot);
  Served process(ClientConnection& connection, const Head& head, const Handler& with, Slot& slot);
  BodyWait wait_for_body(Slot& slot);
  bool wait_for_reader(Exchange& exchange, Slot& slot);
  bool clear_body(Exchange& exchange, BodyReader& body, Slot& slot);
  Served linger(ClientConnection& connection) const;
  void call(Exchange& exchange, const Handler& with) const;
};

void HttpServer::State::accept_connections(std::stop_token stop) {
  while (!stop.stop_requested()) {
    resume_accepting();
    for (uint64_t token : ready.wait(close_the_overdue())) {
      if (token == kWakeupToken) {
        wakeup.clear();
      } else if (token <= listeners.size()) {
        accept(listeners[token - 1]);
      } else {
        stirred(token);
      }
    }
  }
}

// An idle connection is readable; or the peer of a connection in use has sent something or disconnected.
void HttpServer::State::stirred(uint64_t token) {
  std::stop_source notice(std::nostopstate);
  auto readable = shared.with([&](Shared& b) -> ClientConnectionPtr {
    if (auto noticing = b.noticing.extract(token)) notice = std::move(noticing.mapped());
    return b.idle.take(token);
  });
  notice.request_stop();
  if (!readable) return;
  // A peer that has left needs no thread: thousands may leave at once.
  if (readable->lingers > 0) throw_away(std::move(readable));
  else if (sys::has_left(readable->stream.socket())) readable->stream.close(), drop_long_head(*readable);
  else hand_over(std::move(readable));
}

// Discards input after a final response, without a thread and at little cost.
void HttpServer::State::throw_away(ClientConnectionPtr connection) {
  auto count = sys::discard(connection->stream.socket(), std::min(connection->lingers, kDiscardPiece));
  bool nothing_yet = !count && count.error().code() == Code::unavailable;
  size_t taken = count ? *count : 0;
  bool goes_on = nothing_yet || (taken > 0 && taken < connection->lingers);
  if (!goes_on) return connection->stream.close();
  connection->lingers -= taken;
  keep_idle(std::move(connection));
}

std::stop_token HttpServer::State::notice_peer(ClientConnection& connection) {
  std::stop_source source;
  bool stopping = shared.with([&](Shared& b) {
    b.noticing.insert_or_assign(connection.token, source);
    return b.stopping;
  });
  if (stopping || connection.stream.has_buffered_input()) source.request_stop();
  int fd = connection.stream.socket().get();
  bool known = std::exchange(connection.in_set, true);
  auto armed = known ? ready.arm_again(fd, connection.token) : ready.add_once(fd, connection.token);
  if (!armed) source.request_stop();
  return source.get_token();
}

// Pauses accepting when descriptors or memory are exhausted: an immediate retry would only spin.
void HttpServer::State::pause_accepting(const Error& why) {
  log_warning("api", "cannot accept connections; trying again", {{"why", why.text()}});
  for (const Fd& listener : listeners) ready.remove(listener.get());
  accept_again = std::chrono::steady_clock::now() + kAcceptPause;
}

void HttpServer::State::resume_accepting() {
  if (!accept_again || std::chrono::steady_clock::now() < *accept_again) return;
  accept_again.reset();
  for (size_t i = 0; i < listeners.size(); i++) (void)ready.add(listeners[i].get(), i + 1);  // it was registered before
}

void HttpServer::State::accept(const Fd& listener) {
  const bool is_local = !local.path.empty() && &listener == &listeners.back();
  for (int i = 0; i < kAcceptedAtOnce; i++) {
    uid_t uid = 0;
    auto socket = is_local ? sys::accept_local(listener, uid) : sys::accept_tcp(listener);
    if (!socket) {
      if (socket.error().code() != Code::unavailable) pause_accepting(socket.error());
      return;
    }
    if (uid != 0 && uid != ::geteuid()) continue;  // others use the network
    auto connection = is_local ? std::make_shared<ClientConnection>(*std::move(socket), local.user())
                               : std::make_shared<ClientConnection>(*std::move(socket), tls.current());
    bool full = shared.with([&](Shared& b) {
      connection->token = b.next_token++;
      return b.connections() >= limits.connections;
    });
    if (full && !close_least_wanted()) continue;  // closed by its destructor
    connection->idle_until = std::chrono::steady_clock::now() + limits.handshake;
    keep_idle(std::move(connection));
  }
}

// Closes a connection for a new one. Otherwise a client that opens connections and sends nothing could block all others, even
// without credentials.
bool HttpServer::State::close_least_wanted() {
  auto worst = shared.with([](Shared& b) { return b.idle.take_least_wanted(); });
  if (worst) worst->stream.close(), drop_long_head(*worst);
  return worst != nullptr;
}

// Closes connections that were idle too long. Returns how long the acceptor may sleep.
sys::Timeout HttpServer::State::close_the_overdue() {
  auto now = std::chrono::steady_clock::now();
  std::vector<ClientConnectionPtr> overdue;
  auto soonest = shared.with([&](Shared& b) {
    while (auto connection = b.idle.take_overdue(now)) overdue.push_back(std::move(connection));
    return std::min(accept_again.value_or(SteadyTime::max()), b.idle.first_end());
  });
  for (auto& connection : overdue) connection->stream.close(), drop_long_head(*connection);
  if (soonest == SteadyTime::max()) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(soonest - now);
}

void HttpServer::State::keep_idle(ClientConnectionPtr connection) {
  int fd = connection->stream.socket().get();
  uint64_t token = connection->token;
  bool known = std::exchange(connection->in_set, true);
  connection->idle_since = std::chrono::steady_clock::now();
  bool first_due = shared.with([&](Shared& b) {
    b.serving.erase(token);
    if (b.stopping) return false;
    bool earlier = connection->idle_until < b.idle.first_end();
    b.idle.add(connection);  // shares ownership, so that the descriptor stays open until it is registered
    return earlier;
  });
  auto armed = known ? ready.arm_again(fd, token) : ready.add_once(fd, token);
  if (!armed) shared.with([&](Shared& b) { b.idle.take(token); });
  if (first_due) wakeup.signal();  // the acceptor may be sleeping for longer
}

void HttpServer::State::hand_over(ClientConnectionPtr connection) {
  bool hire = shared.with([&](Shared& b) {
    b.waiting.push_back(std::move(connection));
    threads_are_wanted = true;
    bool enough =
        b.idle_threads >= int(b.waiting.size()) || b.threads >= limits.requests + limits.watches + kWorkersSpare + bodies;
    if (!enough) b.threads++;
    return !enough;
  });
  shared.notify();
  if (!hire) return;
  try {
    start_thread("http-worker", [this] { work(); }).detach();  // counted in `threads`, which stop() waits for
  } catch (const std::system_error& why) {                     // no more threads are possible: a running one will serve it
    log_warning("api", "no thread for a request", {{"why", why.what()}});
    shared.with([](Shared& b) { b.threads--; });
  }
}

ClientConnectionPtr HttpServer::State::next() {
  shared.with([](Shared& b) { b.idle_threads++; });
  return shared.wait_until(
      std::stop_token(), std::chrono::steady_clock::now() + kWorkerIdle,
      [](const Shared& b) { return b.stopping || !b.waiting.empty(); },
      [this](Shared& b) -> ClientConnectionPtr {
        b.idle_threads--;
        if (b.waiting.empty() || b.stopping) {
          b.threads--;
          shared.notify();  // with the lock held: after its release, stop() may return and destroy this object
          return nullptr;
        }
        auto connection = std::move(b.waiting.front());
        b.waiting.pop_front();
        threads_are_wanted = !b.waiting.empty();
        b.serving.emplace(connection->token, connection);
        return connection;
      });
}

void HttpServer::State::work() {
  while (auto connection = next()) {
    attend(connection);
    if (connection->stream.broken() || shared.with([&](Shared& b) { return b.stopping; })) {
      connection->stream.close();
      drop_long_head(*connection);
      shared.with([&](Shared& b) { b.serving.erase(connection->token); });
    } else {
      connection->stream.release_buffers();
      keep_idle(std::move(connection));
    }
  }
}

// Serves what has arrived. The connection is broken afterwards if it cannot be used again.
void HttpServer::State::attend(const ClientConnectionPtr& connection) {
  if (!connection->greeted) {
    auto deadline = std::min(connection->idle_until, std::chrono::steady_clock::now() + kTimeout);
    auto greeted = connection->stream.handshake(deadline);
    if (!greeted && greeted.error().code() == Code::timeout) return;  // continues when more has arrived, until idle_until
    if (!greeted) return connection->stream.close();
    connection->greeted = true;
  }
  connection->idle_until = std::chrono::steady_clock::now() + limits.rest;
  while (more_to_serve(*connection)) {
    Served served = serve_one(*connection);
    if (served != Served::later) drop_long_head(*connection);
    if (served == Served::never) return connection->stream.close();
    if (served == Served::later) return void(connection->idle_until = *connection->head_until);
    if (served == Served::lingers) return;
    connection->idle_until = std::chrono::steady_clock::now() + limits.rest;
  }
}

// Waits a moment, if no thread is needed elsewhere: so a busy client's next request is served without passing through the
// acceptor.
bool HttpServer::State::more_to_serve(ClientConnection& connection) {
  Connection& stream = connection.stream;
  if (stream.has_buffered_input()) return true;
  const bool has_left = threads_are_wanted ? stream.peer_gone() : stream.linger();
  if (has_left) stream.close();
  return stream.has_buffered_input();
}

bool HttpServer::State::take_long_head(ClientConnection& connection) {
  if (connection.long_head) return true;
  return connection.long_head = shared.with([](Shared& b) { return b.long_heads < kLongHeadsMax && b.long_heads++ >= 0; });
}

void HttpServer::State::drop_long_head(ClientConnection& connection) {
  if (std::exchange(connection.long_head, false)) shared.with([](Shared& b) { b.long_heads--; });
}

// Errors: timeout if the head is incomplete and may be continued; too_large, too_many_requests, unavailable.
Result<std::string_view> HttpServer::State::read_head(ClientConnection& connection) {
  auto now = std::chrono::steady_clock::now();
  if (!connection.head_until) connection.head_until = now + limits.head;
  if (now >= *connection.head_until) return Error(Code::unavailable, "the head did not come in time");
  connection.stream.set_read_deadline(std::min(*connection.head_until, now + kTimeout));
  for (;;) {
    size_t bytes_max = connection.long_head ? kHeadBytesMax : kUsualHeadBytes;
    auto head = connection.stream.read_until(end_of_head, bytes_max);
    bool long_one =
        !connection.long_head && ((head && head->size() > kUsualHeadBytes) || (!head && head.error().code() == Code::too_large));
    if (long_one && !take_long_head(connection))
      return Error(Code::too_many_requests, "too many requests with long heads, please try again later");
    if (long_one && !head) continue;
    if (!head) return head;
    size_t blank = 0;
    while (connection.blank_bytes + blank < kBlankBytesMax && blank < head->size()) {
      if ((*head)[blank] == '\n') blank++;
      else if (head->compare(blank, 2, "\r\n") == 0) blank += 2;
      else break;
    }
    connection.blank_bytes += blank;
    head->remove_prefix(blank);
    if (head->empty()) continue;  // only empty lines so far
    return head;
  }
}

bool HttpServer::State::take(Slot slot) {
  const int most = slot == Slot::request ? limits.requests : slot == Slot::watch ? limits.watches : limits.bodies;
  std::atomic<int>& count = count_of(slot);
  for (int now = count; now < most;)
    if (count.compare_exchange_weak(now, now + 1)) return true;
  return false;
}

void HttpServer::State::leave(Slot& slot) {
  Slot held = std::exchange(slot, Slot::none);
  if (held != Slot::none) --count_of(held);
}

HttpServer::State::Served HttpServer::State::serve_one(ClientConnection& connection) {
  auto bytes = read_head(connection);
  if (!bytes) {
    if (bytes.error().code() == Code::timeout) return Served::later;
    connection.head_until.reset();
    if (bytes.error().code() == Code::unavailable) return Served::never;
    return refuse_one(connection, {}, bytes.error());
  }
  connection.head_until.reset();
  connection.blank_bytes = 0;
  auto head = parse_request_head(*bytes);
  if (!head) return refuse_one(connection, {}, head.error());

  bool occupies = is_long(*head);
  Slot slot = occupies ? Slot::watch : Slot::request;
  if (!take(slot)) return refuse_one(connection, *head, busy());
  Scope leave_at_last([&] { leave(slot); });
  if (occupies) connection.stream.release_buffers();
  else connection.stream.keep_buffers();
  return process(connection, *head, handler, slot);
}

HttpServer::State::Served HttpServer::State::refuse_one(ClientConnection& connection, const Head& head, const Error& why) {
  bool unread = head.method.empty();  // its content and length are unknown
  Head as = head;
  if (unread) as.method = "GET", as.keep_alive = false;
  Slot slot = Slot::none;
  Scope leave_at_last([&] { leave(slot); });
  auto refuse_it = [&](Exchange& exchange) {
    exchange.when_answer_waits = [] { return false; };
    refuse(exchange, why);
  };
  Served served = process(connection, as, refuse_it, slot);
  return unread && served == Served::never && !connection.stream.broken() ? linger(connection) : served;
}

void HttpServer::State::call(Exchange& exchange, const Handler& with) const {
  try {
    with(exchange);
  } catch (const std::exception& why) {  // out of memory, or a bug: only this request fails
    log_error("api", "a request failed", {{"why", why.what()}, {"path", exchange.head.path}});
    exchange.answer = {500, "text/plain", {}, {}, "the server could not serve this request; its log says why\n", {}, {}};
    exchange.reusable = false;
  }
}

// While a request waits for its body, it counts as a waiting request and frees its slot for others.
BodyWait HttpServer::State::wait_for_body(Slot& slot) {
  auto begin = [this, &slot]() -> Result<void> {
    if (!take(Slot::body)) return busy();
    leave(slot);
    slot = Slot::body;
    return {};
  };
  auto end = [this, &slot]() -> Result<void> {  // it gets a slot back, even above the limit
    leave(slot);
    slot = Slot::request;
    ++requests;
    return {};
  };
  return {begin, end};
}

// A response that the client reads slowly: the request counts as a waiting request too.
bool HttpServer::State::wait_for_reader(Exchange& exchange, Slot& slot) {
  if (!take(Slot::body)) return false;
  leave(slot);
  slot = Slot::body;
  exchange.take_held().reset();
  return !exchange.when_answer_waits || exchange.when_answer_waits();
}

// Discards the unread part of the body. Returns true if the next request may follow. For an authenticated user it waits some
// time, in a slot of waiting requests.
bool HttpServer::State::clear_body(Exchange& exchange, BodyReader& body, Slot& slot) {
  if (exchange.hangs_up) return false;
  if (body.drain(kDrainBytesMax, std::chrono::milliseconds(0))) return true;
  if (!exchange.known || exchange.taken() || !take(Slot::body)) return false;
  exchange.take_held().reset();
  leave(slot);
  slot = Slot::body;
  return body.drain(kDrainBytesMax, kDrainTime);
}

HttpServer::State::Served HttpServer::State::linger(ClientConnection& connection) const {
  connection.stream.finish();
  connection.lingers = kLingerBytesMax;
  connection.idle_until = std::chrono::steady_clock::now() + kLingerTime;
  return Served::lingers;
}

// The body of a long request is a stream: it is passed on without decompression.
HttpServer::State::Served HttpServer::State::process(ClientConnection& connection, const Head& head, const Handler& with,
                                                     Slot& slot) {
  Connection& stream = connection.stream;
  bool is_long = slot == Slot::watch;
  std::optional<BodyPace> pace;
  if (is_long) stream.set_read_deadline(SteadyTime::max());
  else pace = BodyPace{limits.body, limits.body_grace};
  BodyReader body(stream, head, is_long, pace);
  Exchange exchange(head, stream, is_long, body, [&] { return notice_peer(connection); });
  if (slot == Slot::request && head.has_body()) exchange.when_body_waits(wait_for_body(slot));
  auto wait_for_it = [&] { return wait_for_reader(exchange, slot); };
  if (!is_long) stream.set_before_wait([&wait_for_it] { return wait_for_it(); });
  call(exchange, with);
  shared.with([&](Shared& b) { b.noticing.erase(connection.token); });
  bool stays = head.keep_alive && (!exchange.taken() || exchange.reusable) && clear_body(exchange, body, slot);
  if (!exchange.taken()) stays = write_answer(stream, head, exchange.answer, stays) && stays;
  // Before the end of the response is sent, because the client may send its next request at once.
  exchange.take_held().reset();
  leave(slot);
  bool sent = stream.flush();
  stream.set_before_wait(nullptr);
  if (!sent) return Served::never;
  if (stays) return Served::again;
  return exchange.taken() || body.complete() ? Served::never : linger(connection);
}

HttpServer::HttpServer(TlsSettings& tls, Handler handler, IsLong is_long, Refuse refuse, HttpServerLimits limits)
    : state_(std::make_unique<State>(tls, std::move(handler), std::move(is_long), std::move(refuse), limits)) {}

HttpServer::~HttpServer() { stop(); }

Result<std::vector<sys::Endpoint>> HttpServer::start(const std::vector<sys::Endpoint>& listen_on, LocalSocket local) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // so that a write to a closed connection returns an error
  std::vector<sys::Endpoint> bound;
  TRY(state_->ready.add(state_->wakeup.fd(), kWakeupToken));
  auto listen = [&](Fd listener) {
    state_->listeners.push_back(std::move(listener));
    return state_->ready.add(state_->listeners.back().get(), state_->listeners.size());
  };
  for (const auto& endpoint : listen_on) {
    auto listener = sys::listen_tcp(endpoint.address, endpoint.port);
    if (!listener) return state_->listeners.clear(), listener.take_error();
    bound.push_back(sys::local_endpoint(*listener));
    TRY(listen(*std::move(listener)));
  }
  if (!local.path.empty()) {
    auto listener = sys::listen_local(local.path);
    if (listener) {
      TRY(listen(*std::move(listener)));
      state_->local = std::move(local);
    } else {
      log_warning("api", "there is no local socket: " + listener.error().text());
    }
  }
  state_->acceptor = start_thread("acceptor", [state = state_.get()](std::stop_token stop) { state->accept_connections(stop); });
  return bound;
}

void HttpServer::stop() {
  state_->acceptor.request_stop();
  state_->wakeup.signal();
  if (state_->acceptor.joinable()) state_->acceptor.join();
  state_->listeners.clear();
  if (!state_->local.path.empty()) (void)sys::unlink(state_->local.path);  // a client that finds none uses the network
  std::map<uint64_t, std::stop_source> noticing;
  auto open = state_->shared.with([&](Shared& b) {
    b.stopping = true;
    state_->threads_are_wanted = true;
    noticing = std::move(b.noticing);
    std::vector<ClientConnectionPtr> all(b.waiting.begin(), b.waiting.end());
    b.waiting.clear();
    while (auto connection = b.idle.take_least_wanted()) all.push_back(std::move(connection));
    for (auto& [token, connection] : b.serving) all.push_back(connection);
    return all;
  });
  for (auto& [token, source] : noticing) source.request_stop();
  for (auto& connection : open) sys::shut_down(connection->stream.socket());  // wakes reads, writes and watches
  state_->shared.notify();
  state_->shared.wait(
      std::stop_token(), [](const Shared& b) { return b.threads == 0; }, [](Shared&) {});
}

const std::string& HttpServer::local_socket() const { return state_->local.path; }

HttpServer::Counts HttpServer::counts() const {
  return state_->shared.with([this](const Shared& b) {
    return Counts{b.connections(), int(b.idle.size()), state_->requests, state_->watches,
                  state_->bodies,  b.threads,          b.long_heads};
  });
}
bool HttpServer::stopping() const {
  return state_->shared.with([](const Shared& b) { return b.stopping; });
}

}  // namespace coracle::api
