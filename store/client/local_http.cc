// SPDX-License-Identifier: Apache-2.0
// See local_http.h. The request is sent and the response is read at the same time: a server may answer before it has everything.
#include "store/client/local_http.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/socket.h"

namespace coracle {
namespace {

constexpr size_t kPiece = 64 << 10;  // of what is read or uploaded at once
constexpr size_t kLineBytesMax = 64 << 10, kHeadBytesMax = 1 << 20;
constexpr size_t kIdleMax = 4;

using Clock = std::chrono::steady_clock;

// A connected socket that does not block; none if nobody listens, or neither root nor this user.
Fd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Fd();
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) return Fd();
  auto peer = sys::peer_credentials(socket);
  return peer && (peer->uid == 0 || peer->uid == ::geteuid()) ? std::move(socket) : Fd();
}

class LocalConnection : public ByteConnection {
 public:
  explicit LocalConnection(Fd socket) : socket_(std::move(socket)) {}
  int fd() const override { return socket_.get(); }
  Result<size_t> write_some(std::string_view bytes) override {
    auto sent = sys::send_now(socket_, bytes);
    if (!sent) return Error(Code::unavailable, "the connection broke: " + sent.error().text());
    return sent->value_or(0);
  }

 protected:
  Result<size_t> receive_some(char* to, size_t size) override {
    auto got = sys::receive_now(socket_, to, size);
    if (!got || *got == 0u) return Error(Code::unavailable, "the server closed the connection");
    return got->value_or(0);
  }

 private:
  Fd socket_;
};

// Reads one response as its bytes arrive.
class ResponseParser {
 public:
  ResponseParser(Exchange& exchange, bool is_head) : exchange_(exchange), is_head_(is_head) {}
  bool has_begun() const { return has_begun_; }
  bool is_done() const { return at_ == At::end; }
  // Whether the connection may serve another request.
  bool stays() const { return is_done() && stays_ && !has_too_much_; }

  // Errors: unavailable for what is no HTTP. Stops where the exchange ends or wants no more.
  Result<void> feed(std::string_view bytes) {
    has_begun_ |= !bytes.empty();
    while (!bytes.empty() && !is_done()) {
      if (at_ == At::body || at_ == At::chunk) {
        const bool is_wanted = TRY(take_body(bytes));
        if (!is_wanted) return {};
      } else {
        TRY(take_line(bytes));
      }
    }
    has_too_much_ |= !bytes.empty();
    return {};
  }
  // The server has closed the connection.
  Result<void> end() {
    if (at_ == At::body && !left_) return at_ = At::end, stays_ = false, Result<void>();
    return Error(Code::unavailable, has_begun_ ? "the server closed the connection before the end of its response"
                                               : "the server closed the connection");
  }

 private:
  enum class At { status_line, head, body, chunk_size, chunk, chunk_end, trailers, end };

  static Error no_http(std::string_view what) {
    return Error(Code::unavailable, "the server's response is no HTTP: " + coracle::quoted(what.substr(0, 80)));
  }

  // Of the body or of a chunk. False: the exchange wants no more.
  Result<bool> take_body(std::string_view& bytes) {
    std::string_view piece = bytes.substr(0, left_ ? size_t(std::min<uint64_t>(*left_, bytes.size())) : bytes.size());
    bytes.remove_prefix(piece.size());
    if (left_) *left_ -= piece.size();
    if (!exchange_.take_body(piece, exchange_.answer.status)) return false;
    if (left_ && *left_ == 0) at_ = at_ == At::chunk ? At::chunk_end : At::end;
    return true;
  }

  Result<void> take_line(std::string_view& bytes) {
    const size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end == bytes.npos ? end : end + 1));
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
    if (line_.size() > kLineBytesMax) return no_http(line_);
    if (end == bytes.npos && !line_.ends_with('\n')) return {};
    const std::string line = std::exchange(line_, {});
    if (at_ == At::chunk_size) return begin_chunk(line);
    if (at_ == At::chunk_end) return trim(line).empty() ? (at_ = At::chunk_size, Result<void>()) : no_http(line);
    if (at_ == At::trailers) return trim(line).empty() ? (at_ = At::end, Result<void>()) : Result<void>();
    if ((head_bytes_ += line.size()) > kHeadBytesMax)
      return Error(Code::unavailable, "the server's response has too long a head");
    if (at_ == At::status_line) return begin_head(line);
    return take_head_line(line);
  }

  Result<void> begin_head(const std::string& line) {  // "HTTP/1.1 200 OK"
    auto status =
        line.starts_with("HTTP/1.") && line.size() > 12 ? parse_number<int>(std::string_view(line).substr(9, 3)) : std::nullopt;
    if (!status || *status < 100) return no_http(line);
    exchange_.answer.status = *status;
    stays_ = line.starts_with("HTTP/1.1");
    is_chunked_ = false, left_.reset();
    exchange_.take_head_line(line, *status);
    at_ = At::head;
    return {};
  }

  Result<void> take_head_line(const std::string& line) {
    const int status = exchange_.answer.status;
    const bool is_interim = status < 200;
    if (!trim(line).empty()) {
      if (is_interim) return {};
      exchange_.take_head_line(line, status);
      return take_framing(line);
    }
    if (is_interim) return at_ = At::status_line, Result<void>();
    exchange_.take_head_line(line, status);
    if (is_head_ || status == 204 || status == 304) at_ = At::end;
    else if (is_chunked_) at_ = At::chunk_size;
    else at_ = left_ && *left_ == 0 ? At::end : At::body;
    return {};
  }

  Result<void> take_framing(std::string_view line) {
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string name = to_lower(line.substr(0, colon));
    const std::string_view value = trim(line.substr(std::min(colon + 1, line.size())));
    if (name == "transfer-encoding") is_chunked_ = to_lower(value) == "chunked";
    if (name == "connection" && to_lower(value) == "close") stays_ = false;
    if (name != "content-length") return {};
    left_ = parse_number<uint64_t>(value);
    return left_ ? Result<void>() : no_http(line);
  }

  Result<void> begin_chunk(std::string_view line) {
    auto size = parse_number<uint64_t>(trim(line.substr(0, line.find(';'))), 16);
    if (!size) return no_http(line);
    left_ = *size;
    at_ = *size == 0 ? At::trailers : At::chunk;
    return {};
  }

  Exchange& exchange_;
  const bool is_head_;
  At at_ = At::status_line;
  std::string line_;
  size_t head_bytes_ = 0;
  std::optional<uint64_t> left_;  // of the body or the chunk; nothing: until the connection ends
  bool is_chunked_ = false, stays_ = false, has_begun_ = false, has_too_much_ = false;
};

// What is still to be sent of a request.
class RequestWriter {
 public:
  RequestWriter(const LocalHttp::Request& request, Exchange& exchange)
      : text_(request.head), body_(request.body), source_(exchange.source) {}
  bool is_done() const { return text_.size() == sent_ && body_.empty() && !source_; }
  void give_up() {
    is_complete_ &= is_done();
    sent_ = text_.size(), body_ = {}, source_ = nullptr;
  }
  bool is_complete() const { return is_complete_ && is_done(); }
  bool has_used_source() const { return has_used_source_; }

  // Sends what the socket takes. Errors: the kernel's.
  Result<void> send(const Fd& socket) {
    if (text_.size() == sent_ && source_) next_chunk();
    std::string_view piece = text_.size() > sent_ ? std::string_view(text_).substr(sent_) : body_;
    const size_t count = TRY(sys::send_now(socket, piece)).value_or(0);
    if (text_.size() > sent_) sent_ += count;
    else body_.remove_prefix(count);
    return {};
  }

 private:
  void next_chunk() {
    has_used_source_ = true;
    std::string piece(kPiece, '\0');
    piece.resize((*source_)(piece.data(), piece.size()));
    if (piece.empty()) source_ = nullptr;
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    text_ = size + piece + "\r\n";
    sent_ = 0;
  }

  std::string text_;  // the head, then the chunk that is being sent
  size_t sent_ = 0;
  std::string_view body_;
  const std::function<size_t(char*, size_t)>* source_;
  bool has_used_source_ = false, is_complete_ = true;
};

sys::Timeout left_until(const std::optional<Clock::time_point>& deadline) {
  if (!deadline) return std::nullopt;
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()), std::chrono::milliseconds(0));
}

// One attempt over one connection.
Result<void> exchange_over(const Fd& socket, RequestWriter& writer, ResponseParser& parser, const Exchange& exchange,
                           const std::optional<Clock::time_point>& deadline) {
  std::optional<sys::Wakeup> wakeup;
  if (exchange.stop.stop_possible()) wakeup.emplace();
  std::stop_callback wake(exchange.stop, [&] { wakeup->signal(); });
  std::string piece(kPiece, '\0');
  while (!parser.is_done() && !exchange.sink_ended && !exchange.too_large && !exchange.stop.stop_requested()) {
    if (!writer.is_done())
      if (auto sent = writer.send(socket); !sent) writer.give_up();  // the server may have answered before it closed
    auto got = sys::receive_now(socket, piece.data(), piece.size());
    if (!got || *got == 0u) return parser.end();
    if (*got) {
      TRY(parser.feed({piece.data(), **got}));
      if (exchange.answer.status >= 400) writer.give_up();  // it does not read on
      continue;
    }
    const sys::Timeout left = left_until(deadline);
    if (left && left->count() == 0) return Error(Code::timeout, "no answer in time");
    (void)sys::wait_ready(socket.get(), true, !writer.is_done(), wakeup ? wakeup->fd() : -1, left);
  }
  return {};
}

}  // namespace

std::unique_ptr<ByteConnection> LocalHttp::connect() const {
  Fd socket = connect_to(path_);
  return socket ? std::make_unique<LocalConnection>(std::move(socket)) : nullptr;
}

// One that the server has not closed.
Fd LocalHttp::take_idle() {
  return idle_.with([](std::vector<Fd>& idle) {
    while (!idle.empty()) {
      Fd socket = std::move(idle.back());
      idle.pop_back();
      if (!sys::has_left(socket)) return socket;
    }
    return Fd();
  });
}

std::optional<Result<void>> LocalHttp::run(const Request& request, Exchange& exchange) {
  std::optional<Clock::time_point> deadline;
  if (request.timeout.count() > 0) deadline = Clock::now() + request.timeout;
  for (bool is_again = false;; is_again = true) {
    Fd socket = is_again ? Fd() : take_idle();
    const bool was_idle = bool(socket);
    if (!socket) socket = connect_to(path_);
    if (!socket && is_again) return Result<void>(Error(Code::unavailable, "the server closed the connection"));
    if (!socket) return std::nullopt;
    RequestWriter writer(request, exchange);
    ResponseParser parser(exchange, request.is_head);
    auto outcome = exchange_over(socket, writer, parser, exchange, deadline);
    // The daemon has closed the idle connection while the request was on its way.
    const bool is_stale = !outcome && outcome.error().code() == Code::unavailable && was_idle && !parser.has_begun();
    if (is_stale && !writer.has_used_source()) continue;
    if (outcome && parser.stays() && writer.is_complete())
      idle_.with([&](std::vector<Fd>& idle) {
        if (idle.size() < kIdleMax) idle.push_back(std::move(socket));
      });
    return outcome;
  }
}

}  // namespace coracle
