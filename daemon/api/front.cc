// SPDX-License-Identifier: Apache-2.0
// See front.h: doorman, crew, and the adapter that lets cpp-httplib (0.11 and newer) read bodies that are chunked or packed from
// our streams. What it gets to read is "METHOD / HTTP/1.1" and body framing: routes, queries and headers are ours (head.h), and
// so is the answer. A request without a body, or with a plain one of known size, does not pass it.
#include "daemon/api/front.h"

#include <httplib.h>

#include <array>
#include <csignal>
#include <deque>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"

namespace coracle::api {
namespace {

constexpr std::chrono::seconds kCrewIdle{20};  // a thread without work leaves
constexpr std::chrono::milliseconds kLinger{20};
// How long a thread waits for the rest of a handshake or head; who takes longer waits without a thread.
constexpr std::chrono::milliseconds kPatience{50};
constexpr std::chrono::milliseconds kDoorShut{200};  // when the process is out of descriptors
constexpr uint64_t kBellToken = 0;
constexpr size_t kBodyPiece = 16 << 10;

// One request as a cpp-httplib stream: first the tamed head, then the body from the wire.
class RequestStream : public httplib::Stream {
 public:
  RequestStream(TlsConnection& connection, std::string head) : connection_(connection), head_(std::move(head)) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    if (head_used_ < head_.size()) {
      size_t count = head_.copy(to, size, head_used_);
      head_used_ += count;
      return ssize_t(count);
    }
    if (!connection_.flush()) return -1;  // 100 Continue, for which the client waits
    auto count = connection_.read(to, size);
    return count ? ssize_t(*count) : -1;
  }
  ssize_t write(const char* from, size_t size) override {
    if (muted_) return ssize_t(size);
    return connection_.write({from, size}) ? ssize_t(size) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = connection_.peer().address, port = connection_.peer().port;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip = connection_.local().address, port = connection_.local().port;
  }
  socket_t socket() const override { return 0; }  // only compared with FD_SETSIZE, which does not bind us: we poll
#if defined(CPPHTTPLIB_VERSION_NUM)               // 0.19 and newer ask these as well
  bool wait_readable() const { return true; }
  bool wait_writable() const { return true; }
  time_t duration() const { return 0; }
#endif
  void mute() { muted_ = true; }  // from here on the answer is ours

 private:
  TlsConnection& connection_;
  std::string head_;
  size_t head_used_ = 0;
  bool muted_ = false;
};

// The request that is served.
struct Current {
  const Head& head;
  TlsConnection& connection;
  const Front::Handler& handler;
  bool is_long;
  std::function<std::stop_token()> notice_peer;
  bool reusable = true;
  std::shared_ptr<void> held = nullptr;  // until the answer is written
};

bool write_answer(TlsConnection& connection, const Head& asked, const Answer& answer) {
  std::vector<std::string_view> whole{answer.body};
  const std::vector<std::string_view>& pieces = answer.pieces.empty() ? whole : answer.pieces;
  size_t bytes = 0;
  for (std::string_view piece : pieces) bytes += piece.size();
  std::string head = begin_head(answer.status, answer.headers);
  bool framed = answer.status != 204 && answer.status != 304;  // these have no body. Source: RFC 9110 sections 15.3.5, 15.4.5
  if (framed && !answer.content_type.empty()) head += "Content-Type: " + answer.content_type + "\r\n";
  if (framed) head += "Content-Length: " + std::to_string(bytes) + "\r\n";
  if (!asked.keep_alive) head += "Connection: close\r\n";
  if (!connection.write(head + "\r\n")) return false;
  if (!framed || asked.method == "HEAD") return true;
  return std::all_of(pieces.begin(), pieces.end(), [&](std::string_view piece) { return connection.write(piece); });
}

void serve(Current& current, BodySource body) {
  Exchange exchange(current.head, current.connection, current.is_long, std::move(body), current.notice_peer);
  try {
    current.handler(exchange);
  } catch (const std::exception& why) {  // memory has run out, or the house has a fault: this request fails, others do not
    log_error("api", "a request failed", {{"why", why.what()}, {"path", current.head.path}});
    exchange.answer = {500, "text/plain", {}, "the server could not serve this request; its log says why\n", {}, {}};
    exchange.reusable = false;
  }
  current.held = exchange.take_held();
  current.reusable = exchange.taken() ? exchange.reusable : write_answer(current.connection, current.head, exchange.answer);
  if (current.reusable) exchange.drop_body();
}

// Hands over a body, piece by piece, until it is complete (true) or `take` wants no more.
using BodyReader = std::function<bool(const std::function<bool(std::string_view)>& take)>;

void serve_with_body(Current& current, const BodyReader& read) {
  bool complete = false;
  serve(current, [&](const std::function<bool(std::string_view)>& take) -> Result<void> {
    bool taken = true;
    complete = read([&](std::string_view piece) { return taken = take(piece); });
    if (complete) return {};
    if (!taken) return Error(Code::cancelled, "the rest of the body was not wanted");
    return Error(Code::bad_request, "the request body could not be read");
  });
  if (!complete) current.reusable = false;  // what is left of the body must not be read as a request
}

// A body of known size that lies in the stream as it is.
bool is_plain_body(const Head& head, bool as_sent) {
  bool coded = head.chunked || (!as_sent && head.headers.has("Content-Encoding"));
  return head.content_length && !coded && !head.headers.has("Expect");
}

void serve_plain_body(Current& current) {
  uint64_t left = *current.head.content_length;
  serve_with_body(current, [&](const std::function<bool(std::string_view)>& take) {
    std::array<char, kBodyPiece> piece;
    while (left > 0) {
      auto count = current.connection.read(piece.data(), size_t(std::min<uint64_t>(left, piece.size())));
      if (!count || *count == 0) return false;
      left -= *count;
      if (!take({piece.data(), *count})) return false;
    }
    return true;
  });
}

// What this thread has cpp-httplib read: its handlers are shared and get no context of their own.
struct Reading {
  Current& request;
  RequestStream& stream;
};
thread_local Reading* reading = nullptr;

void serve_coded_body(const httplib::Request&, httplib::Response&, const httplib::ContentReader& reader) {
  reading->stream.mute();
  serve_with_body(reading->request, [&](const std::function<bool(std::string_view)>& take) {
    return reader([&](const char* bytes, size_t size) { return take({bytes, size}); });
  });
}

class Http : public httplib::Server {
 public:
  Http() {
    Post("/", serve_coded_body);
    Put("/", serve_coded_body);
    Patch("/", serve_coded_body);
    Delete("/", serve_coded_body);
    set_payload_max_length(size_t(-1));  // limits are the handlers': an image archive may be large
  }
  // One request. False: the connection cannot be used again. 0.15 and newer want the addresses as arguments.
  bool process(RequestStream& stream, bool last) { return process_any(*this, stream, last); }

 private:
  template <typename Self>
  static bool process_any(Self& self, RequestStream& stream, bool last) {
    bool closed = false;
    if constexpr (requires { self.process_request(stream, last, closed, nullptr); }) {
      return self.process_request(stream, last, closed, nullptr) && !closed;
    } else {
      return self.process_request(stream, std::string(), 0, std::string(), 0, last, closed, nullptr) && !closed;
    }
  }
};

struct Connection {
  explicit Connection(Fd socket, std::shared_ptr<SSL_CTX> context) : tls(std::move(socket), std::move(context)) {}
  TlsConnection tls;
  uint64_t token = 0;
  bool greeted = false;  // the handshake is over
  SteadyTime rests_since{};
  SteadyTime rests_until{};              // closed when nothing comes by then
  std::optional<SteadyTime> head_until;  // a head has begun: it must be whole by then
  bool in_set = false;                   // known to the ReadySet
};
using ConnectionPtr = std::shared_ptr<Connection>;

struct Book {                                 // everything that doorman and crew share
  std::map<uint64_t, ConnectionPtr> resting;  // armed in the ready set
  std::map<uint64_t, ConnectionPtr> serving;
  std::deque<ConnectionPtr> waiting;              // readable, no thread yet
  std::map<uint64_t, std::stop_source> noticing;  // serving, and its thread wants to know when the peer stirs
  uint64_t next_token = 1000;                     // below: listeners and the bell
  int threads = 0, idle_threads = 0, requests = 0, watches = 0;
  bool stopping = false;
  int connections() const { return int(resting.size() + serving.size() + waiting.size()); }
};

}  // namespace

struct Front::State {
  State(TlsSettings& tls, Handler handler, IsLong is_long, Refuse refuse, FrontLimits limits)
      : tls(tls), handler(std::move(handler)), is_long(std::move(is_long)), refuse(std::move(refuse)), limits(limits) {}

  TlsSettings& tls;
  Handler handler;
  IsLong is_long;
  Refuse refuse;
  FrontLimits limits;
  Http http;
  std::vector<Fd> listeners;
  sys::ReadySet ready;
  sys::Bell bell;
  Guarded<Book> book;
  std::optional<SteadyTime> door_opens;  // the doorman's own
  std::jthread doorman;

  // ---- doorman ----
  void keep_door(std::stop_token stop);
  void let_in(const Fd& listener);
  bool make_room();
  void shut_door(const Error& why);
  void open_door();
  void stirred(uint64_t token);
  std::stop_token notice_peer(Connection& connection);
  sys::Timeout close_the_overdue();
  void rest(ConnectionPtr connection);  // back to the ready set
  void hand_over(ConnectionPtr connection);

  // ---- crew ----
  void work();
  ConnectionPtr next();
  void attend(const ConnectionPtr& connection);
  bool more_to_serve(TlsConnection& tls);
  enum class Served { again, later, never };  // may be used again; waits for the rest of a head; is to be closed
  Served serve_one(Connection& connection);
  Result<std::string> read_head(Connection& connection);
  bool refuse_one(Connection& connection, const Head& head, const Error& why);
  bool process(Connection& connection, const Head& head, const Handler& with, bool long_running = false,
               const std::function<void()>& done = {});
};

void Front::State::keep_door(std::stop_token stop) {
  while (!stop.stop_requested()) {
    open_door();
    for (uint64_t token : ready.wait(close_the_overdue())) {
      if (token == kBellToken) {
        bell.clear();
      } else if (token <= listeners.size()) {
        let_in(listeners[token - 1]);
      } else {
        stirred(token);
      }
    }
  }
}

// A resting connection has something to serve; or the peer of one that is being served sent something, or left.
void Front::State::stirred(uint64_t token) {
  std::stop_source notice(std::nostopstate);
  auto readable = book.with([&](Book& b) -> ConnectionPtr {
    if (auto noticing = b.noticing.extract(token)) notice = std::move(noticing.mapped());
    auto found = b.resting.extract(token);
    return found ? found.mapped() : nullptr;
  });
  notice.request_stop();
  if (readable) hand_over(std::move(readable));
}

std::stop_token Front::State::notice_peer(Connection& connection) {
  std::stop_source source;
  bool stopping = book.with([&](Book& b) {
    b.noticing.insert_or_assign(connection.token, source);
    return b.stopping;
  });
  if (stopping || connection.tls.has_buffered_input()) source.request_stop();
  int fd = connection.tls.socket().get();
  bool known = std::exchange(connection.in_set, true);
  auto armed = known ? ready.arm_again(fd, connection.token) : ready.add_once(fd, connection.token);
  if (!armed) source.request_stop();
  return source.get_token();
}

// Out of descriptors, or of memory: to ask again at once would only spin.
void Front::State::shut_door(const Error& why) {
  log_warning("api", "no new connections for a moment", {{"why", why.text()}});
  for (const Fd& listener : listeners) ready.remove(listener.get());
  door_opens = std::chrono::steady_clock::now() + kDoorShut;
}

void Front::State::open_door() {
  if (!door_opens || std::chrono::steady_clock::now() < *door_opens) return;
  door_opens.reset();
  for (size_t i = 0; i < listeners.size(); i++) (void)ready.add(listeners[i].get(), i + 1);  // it was in it before
}

void Front::State::let_in(const Fd& listener) {
  for (;;) {
    auto socket = sys::accept_tcp(listener);
    if (!socket) {
      if (socket.error().code() != Code::unavailable) shut_door(socket.error());
      return;
    }
    auto connection = std::make_shared<Connection>(*std::move(socket), tls.current());
    bool full = book.with([&](Book& b) {
      connection->token = b.next_token++;
      return b.connections() >= limits.connections;
    });
    if (full && !make_room()) continue;  // closed by leaving scope
    connection->rests_until = std::chrono::steady_clock::now() + limits.handshake;
    rest(std::move(connection));
  }
}

// Makes room for a newcomer: otherwise whoever opens connections and says nothing, even a stranger, would keep all others out.
// However fast they come, there is always one to close: who never finished a handshake first, then who rested for the longest.
bool Front::State::make_room() {
  auto worst = book.with([](Book& b) -> ConnectionPtr {
    auto worse = [](const Connection& x, const Connection& y) {
      return x.greeted != y.greeted ? !x.greeted : x.rests_since < y.rests_since;
    };
    auto found = std::min_element(b.resting.begin(), b.resting.end(),
                                  [&](const auto& x, const auto& y) { return worse(*x.second, *y.second); });
    return found == b.resting.end() ? nullptr : b.resting.extract(found).mapped();
  });
  if (worst) worst->tls.close();
  return worst != nullptr;
}

// Closes who rested for too long. Returns how long the doorman may sleep.
sys::Timeout Front::State::close_the_overdue() {
  auto now = std::chrono::steady_clock::now();
  std::vector<ConnectionPtr> overdue;
  auto soonest = book.with([&](Book& b) {
    auto at = door_opens.value_or(SteadyTime::max());
    for (auto it = b.resting.begin(); it != b.resting.end();) {
      if (it->second->rests_until <= now) {
        overdue.push_back(it->second);
        it = b.resting.erase(it);
      } else {
        at = std::min(at, it->second->rests_until);
        ++it;
      }
    }
    return at;
  });
  for (auto& connection : overdue) connection->tls.close();
  if (soonest == SteadyTime::max()) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(soonest - now);
}

void Front::State::rest(ConnectionPtr connection) {
  int fd = connection->tls.socket().get();
  uint64_t token = connection->token;
  bool known = std::exchange(connection->in_set, true);
  connection->rests_since = std::chrono::steady_clock::now();
  bool first_due = book.with([&](Book& b) {
    b.serving.erase(token);
    if (b.stopping) return false;
    bool earlier = b.resting.empty();
    b.resting.emplace(token, connection);  // shared: its descriptor stays open until it is armed, whoever closes it meanwhile
    return earlier;
  });
  auto armed = known ? ready.arm_again(fd, token) : ready.add_once(fd, token);
  if (!armed) book.with([&](Book& b) { b.resting.erase(token); });
  if (first_due) bell.ring();  // the doorman may sleep without an end
}

void Front::State::hand_over(ConnectionPtr connection) {
  bool hire = book.with([&](Book& b) {
    b.waiting.push_back(std::move(connection));
    bool enough = b.idle_threads >= int(b.waiting.size()) || b.threads >= limits.requests + limits.watches + kCrewSpare;
    if (!enough) b.threads++;
    return !enough;
  });
  book.notify();
  if (!hire) return;
  try {
    std::thread([this] { work(); }).detach();  // counted in `threads`: stop() waits for it
  } catch (const std::system_error& why) {     // the machine has no more: who runs will come for it
    log_warning("api", "no thread for a request", {{"why", why.what()}});
    book.with([](Book& b) { b.threads--; });
  }
}

ConnectionPtr Front::State::next() {
  book.with([](Book& b) { b.idle_threads++; });
  return book.wait_until(
      std::stop_token(), std::chrono::steady_clock::now() + kCrewIdle,
      [](const Book& b) { return b.stopping || !b.waiting.empty(); },
      [this](Book& b) -> ConnectionPtr {
        b.idle_threads--;
        if (b.waiting.empty() || b.stopping) {
          b.threads--;
          book.notify();  // under the lock: once it is released, stop() may return and all this be gone
          return nullptr;
        }
        auto connection = std::move(b.waiting.front());
        b.waiting.pop_front();
        b.serving.emplace(connection->token, connection);
        return connection;
      });
}

void Front::State::work() {
  while (auto connection = next()) {
    attend(connection);
    bool stopping = book.with([&](Book& b) { return b.stopping; });
    bool done = connection->tls.broken() || stopping;
    if (done) {
      connection->tls.close();
      book.with([&](Book& b) { b.serving.erase(connection->token); });
    } else {
      connection->tls.release_buffers();
      rest(std::move(connection));
    }
  }
}

// Serves what has arrived. Leaves the connection broken when it cannot be used again.
void Front::State::attend(const ConnectionPtr& connection) {
  if (!connection->greeted) {
    auto patience = std::min(connection->rests_until, std::chrono::steady_clock::now() + kPatience);
    auto greeted = connection->tls.handshake(patience);
    if (!greeted && greeted.error().code() == Code::timeout) return;  // goes on when more has come, until rests_until
    if (!greeted) return connection->tls.close();
    connection->greeted = true;
  }
  connection->rests_until = std::chrono::steady_clock::now() + limits.rest;
  while (more_to_serve(connection->tls)) {
    Served served = serve_one(*connection);
    if (served == Served::never) return connection->tls.close();
    if (served == Served::later) return void(connection->rests_until = *connection->head_until);
    connection->rests_until = std::chrono::steady_clock::now() + limits.rest;
  }
}

// Lingers for a moment: the next request of a busy client is served without a detour by the doorman.
bool Front::State::more_to_serve(TlsConnection& tls) {
  if (tls.has_buffered_input()) return true;
  bool busy = book.with([](const Book& b) { return !b.waiting.empty() || b.stopping; });
  auto woken = sys::wait_ready(tls.socket().get(), true, false, -1, busy ? std::chrono::milliseconds(0) : kLinger);
  if (!woken.first.readable) return false;
  if (tls.peer_gone()) tls.close();
  return tls.has_buffered_input();
}

// Errors: timeout when it is not whole yet and may still come.
Result<std::string> Front::State::read_head(Connection& connection) {
  auto now = std::chrono::steady_clock::now();
  if (!connection.head_until) connection.head_until = now + limits.head;
  if (now >= *connection.head_until) return Error(Code::unavailable, "the head did not come in time");
  connection.tls.set_read_deadline(std::min(*connection.head_until, now + kPatience));
  return connection.tls.read_until("\r\n\r\n", kHeadBytesMax);
}

Front::State::Served Front::State::serve_one(Connection& connection) {
  auto bytes = read_head(connection);
  if (!bytes) {
    if (bytes.error().code() == Code::timeout) return Served::later;
    if (bytes.error().code() == Code::too_large) refuse_one(connection, {}, bytes.error());
    return Served::never;
  }
  connection.head_until.reset();
  auto head = vet_head(*bytes);
  if (!head) return refuse_one(connection, {}, head.error()), Served::never;

  bool occupies = is_long(*head);
  bool admitted = book.with([&](Book& b) {
    int& running = occupies ? b.watches : b.requests;
    if (running >= (occupies ? limits.watches : limits.requests)) return false;
    return running++, true;
  });
  if (!admitted) {
    ErrorDetails details;
    details.retry_after_seconds = 1;
    Error busy = Error(Code::too_many_requests, "Too many requests, please try again later.").with(std::move(details));
    return refuse_one(connection, *head, busy) && !head->has_body() ? Served::again : Served::never;
  }
  bool counted = true;
  auto leave = [&] {
    if (std::exchange(counted, false)) book.with([&](Book& b) { (occupies ? b.watches : b.requests)--; });
  };
  Scope leave_at_last(leave);
  if (occupies) connection.tls.release_buffers();
  else connection.tls.keep_buffers();
  connection.tls.set_read_deadline(occupies ? SteadyTime::max() : std::chrono::steady_clock::now() + limits.body);
  return process(connection, *head, handler, occupies, leave) ? Served::again : Served::never;
}

bool Front::State::refuse_one(Connection& connection, const Head& head, const Error& why) {
  Head as = head;
  if (as.method.empty()) as.method = "GET", as.keep_alive = false;
  as.chunked = false, as.content_length.reset();  // the body, if any, is not read
  return process(connection, as, [&](Exchange& exchange) { refuse(exchange, why); });
}

// A long request is a stream: what it carries is passed on, and unpacked by nobody here. `done`: called when the answer was made,
// before the end of it leaves: who has it may ask for the next at once.
bool Front::State::process(Connection& connection, const Head& head, const Handler& with, bool long_running,
                           const std::function<void()>& done) {
  Current current{head, connection.tls, with, long_running, [&] { return notice_peer(connection); }};
  bool usable = true;
  if (!head.has_body()) {
    serve(current, [](const auto&) { return Result<void>(); });
  } else if (is_plain_body(head, long_running)) {
    serve_plain_body(current);
  } else {
    RequestStream stream(connection.tls, tame_head(head, long_running));
    Reading here{current, stream};
    reading = &here;
    usable = http.process(stream, !head.keep_alive);
    reading = nullptr;
  }
  book.with([&](Book& b) { b.noticing.erase(connection.token); });
  current.held.reset();
  if (done) done();
  return connection.tls.flush() && usable && current.reusable && head.keep_alive;
}

Front::Front(TlsSettings& tls, Handler handler, IsLong is_long, Refuse refuse, FrontLimits limits)
    : state_(std::make_unique<State>(tls, std::move(handler), std::move(is_long), std::move(refuse), limits)) {}

Front::~Front() { stop(); }

Result<std::vector<sys::Endpoint>> Front::start(const std::vector<sys::Endpoint>& listen_on) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // a client that leaves is a failed write, not the end of the process
  std::vector<sys::Endpoint> bound;
  TRY(state_->ready.add(state_->bell.fd(), kBellToken));
  for (const auto& endpoint : listen_on) {
    auto listener = sys::listen_tcp(endpoint.address, endpoint.port);
    if (!listener) return state_->listeners.clear(), listener.take_error();
    bound.push_back(sys::local_endpoint(*listener));
    state_->listeners.push_back(*std::move(listener));
    TRY(state_->ready.add(state_->listeners.back().get(), state_->listeners.size()));
  }
  state_->doorman = std::jthread([state = state_.get()](std::stop_token stop) { state->keep_door(stop); });
  return bound;
}

void Front::stop() {
  state_->doorman.request_stop();
  state_->bell.ring();
  if (state_->doorman.joinable()) state_->doorman.join();
  state_->listeners.clear();
  std::map<uint64_t, std::stop_source> noticing;
  auto open = state_->book.with([&](Book& b) {
    b.stopping = true;
    noticing = std::move(b.noticing);
    auto all = std::move(b.resting);
    all.insert(b.serving.begin(), b.serving.end());
    for (auto& connection : b.waiting) all.emplace(connection->token, connection);
    b.waiting.clear();
    return all;
  });
  for (auto& [token, source] : noticing) source.request_stop();
  for (auto& [token, connection] : open) sys::shut_down(connection->tls.socket());  // wakes who reads, writes or watches
  state_->book.notify();
  state_->book.wait(
      std::stop_token(), [](const Book& b) { return b.threads == 0; }, [](Book&) {});
}

Front::Counts Front::counts() const {
  return state_->book.with([](const Book& b) {
    return Counts{b.connections(), int(b.resting.size()), b.requests, b.watches, b.threads};
  });
}
bool Front::stopping() const {
  return state_->book.with([](const Book& b) { return b.stopping; });
}

}  // namespace coracle::api
