// SPDX-License-Identifier: Apache-2.0
// See relay.h.
#include "daemon/api/proxy/relay.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "daemon/api/proxy/links.h"
#include "daemon/api/proxy/response_reader.h"
#include "daemon/api/proxy/upstream.h"
#include "daemon/api/recode.h"
#include "runtime/base/guarded.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

std::string chunk_head(size_t size) {
  char text[24];
  return {text, size_t(std::snprintf(text, sizeof text, "%zx\r\n", size))};
}

Coding coding_of(const AnswerHead& head, bool& known) {
  std::string_view coding = head.headers.get("Content-Encoding");
  known = coding.empty() || coding == "gzip" || coding == "deflate";
  return coding == "gzip" ? Coding::gzip : coding == "deflate" ? Coding::deflate : Coding::none;
}

// Watches the client while the relay waits for the target: its socket or, while another thread reads its body, an eventfd that
// this thread signals when it is done.
class RelayClient : public CancelCheck {
 public:
  explicit RelayClient(Connection& connection) : connection_(connection) {}
  int fd() const override { return reads_body_ ? wakeup_.fd() : deaf_ ? -1 : connection_.socket().get(); }
  bool stirred() override {
    if (reads_body_) {
      wakeup_.clear();
      reads_body_ = false;
      return false;  // an error of the body shows in the target's response
    }
    if (connection_.peer_gone()) return true;
    deaf_ = connection_.has_buffered_input();  // the next request is waiting, so the socket stays readable
    return false;
  }
  void begin_body() { reads_body_ = true; }
  void end_body() const { wakeup_.signal(); }

 private:
  Connection& connection_;
  sys::Wakeup wakeup_;
  bool reads_body_ = false, deaf_ = false;
};

// Forwards the request body on a thread of its own, because the response may begin before the body ends.
class Upload {
 public:
  Upload(Exchange& exchange, Upstream& upstream, RelayClient& client)
      : exchange_(exchange), upstream_(upstream), client_(client) {}
  ~Upload() { stop(); }

  void start() {
    client_.begin_body();
    exchange_.invite_body();  // before the response may begin
    thread_ = start_thread("streams", [this] { run(); });
  }
  void run() {
    auto read = exchange_.stream_body([this](std::string_view bytes) { return take(bytes); });
    if (!read)
      failure_.with([&](auto& failure) {
        if (!failure) failure = read.take_error();
      });
    else if (!write_failed_ && exchange_.head.chunked) (void)upstream_.write("0\r\n\r\n", giver());  // as in take()
    bool client_failed = !read && !write_failed_;
    if (client_failed) upstream_.shut_down();  // without the rest of its body, the request would mean something else
    done_.with([](bool& done) { done = true; });
    done_.notify();
    client_.end_body();
  }
  // Call when the target's response is complete.
  void stop() {
    if (!thread_.joinable()) return;
    over_.with([](auto& over) { over = std::chrono::steady_clock::now() + kDrainTime; });
    upstream_.shut_down();
    bool done = done_.wait_until(
        {}, std::chrono::steady_clock::now() + kDrainTime, [](bool d) { return d; }, [](bool d) { return d; });
    if (!done) sys::shut_down(exchange_.connection.socket());  // wakes the thread that waits for the body
    thread_.join();
  }
  // The error of reading the client's body, if there was one.
  std::optional<Error> failure() const {
    return failure_.with([](const auto& failure) { return failure; });
  }

 private:
  const Fd& giver() const { return exchange_.connection.socket(); }

  bool take(std::string_view bytes) {
    if (!write_failed_) {
      bool chunked = exchange_.head.chunked && !bytes.empty();
      auto written = chunked ? upstream_.write(chunk_head(bytes.size()) + std::string(bytes) + "\r\n", giver())
                             : upstream_.write(bytes, giver());
      write_failed_ = !written;
    }
    if (!write_failed_) return true;
    // The target reads no more, perhaps because of an error. The client can read the response after it has sent its body, so the
    // rest is discarded.
    drained_ += bytes.size();
    bool late = over_.with([](const auto& over) { return over && std::chrono::steady_clock::now() >= *over; });
    return drained_ <= kDrainBytesMax && !late;
  }

  Exchange& exchange_;
  Upstream& upstream_;
  RelayClient& client_;
  bool write_failed_ = false;  // used by the thread only
  size_t drained_ = 0;
  Guarded<bool> done_{false};
  Guarded<std::optional<SteadyTime>> over_;
  Guarded<std::optional<Error>> failure_;
  std::jthread thread_;
};

// Forwards the response to the client.
class Delivery {
 public:
  Delivery(Exchange& exchange, const ProxiedRequest& proxied, const std::vector<std::pair<std::string, std::string>>& more)
      : exchange_(exchange), proxied_(proxied), more_(more) {}

  // Errors: as relay(); after the head was sent, an error means that the connection cannot be reused.
  Result<void> run(ResponseReader& response, const AnswerHead& head, bool keep_alive) {
    std::optional<std::string> location = TRY(rewritten_location(head));
    bool has_body = exchange_.head.method != "HEAD" && head.status != 204 && head.status != 304;
    prepare_links(head, location.has_value(), has_body);
    Framing framing = framing_of(head, has_body);
    keep_alive &= framing != Framing::close && exchange_.head.keep_alive && exchange_.head.supports_chunked;
    Connection& connection = exchange_.take_over(head.status);
    chunked_ = framing == Framing::chunked;
    bool sent = connection.write(answer_head(head, framing, keep_alive, location, more_)) && connection.flush();
    if (!sent) return gone();
    response.begin_body(head, !has_body);
    TRY(pass_body(response));
    if (chunked_ && !connection.write("0\r\n" + response.trailers() + "\r\n")) return gone();
    if (!connection.flush()) return gone();
    exchange_.reusable = keep_alive;
    return {};
  }

 private:
  static Error gone() { return Error(Code::cancelled, "the client went away"); }

  Result<std::optional<std::string>> rewritten_location(const AnswerHead& head) const {
    std::string_view location = head.headers.get("Location");
    if (location.empty()) return std::optional<std::string>();
    auto rewritten = rewrite_url(location, proxied_, asked_host());
    if (!rewritten) return internal_error("error trying to parse Location header: parse " + quoted(location));
    return rewritten;
  }

  std::string_view asked_host() const {
    std::string_view host = exchange_.head.headers.get("Host");
    return host.empty() ? std::string_view(proxied_.host) : host;
  }

  void prepare_links(const AnswerHead& head, bool moved, bool has_body) {
    std::string_view type = head.headers.get("Content-Type");
    bool known = false;
    Coding coding = coding_of(head, known);
    rewrites_ = !moved && known && trim(type.substr(0, type.find(';'))) == "text/html";
    if (!rewrites_ || !has_body) return;
    packer_.emplace(coding);
    rewrites_ = packer_->works();
    unpacker_.emplace(coding);
    links_.emplace([this](std::string_view url) { return rewrite_url(url, proxied_, asked_host()); });
  }

  // A page with rewritten links has a different length than its Content-Length.
  Framing framing_of(const AnswerHead& head, bool has_body) const {
    if (!has_body) return head.content_length && !rewrites_ && head.status != 204 ? Framing::length : Framing::none;
    if (head.content_length && !rewrites_) return Framing::length;
    return exchange_.head.supports_chunked ? Framing::chunked : Framing::close;
  }

  Result<void> pass_body(ResponseReader& response) {
    for (;;) {
      std::string_view piece = TRY(response.read_body());
      if (piece.empty()) break;
      if (rewrites_ && links_) TRY(rewrite(piece));
      else if (!send(piece)) return gone();
    }
    if (!rewrites_ || !links_) return {};
    std::string rest, packed;
    links_->end(rest);
    packer_->feed(rest, packed);
    packer_->end(packed);
    if (!send(packed)) return gone();
    return {};
  }

  Result<void> rewrite(std::string_view piece) {
    bool there = true;
    auto unpacked = unpacker_->feed(piece, [&](std::string_view page) {
      std::string rewritten, packed;
      links_->feed(page, rewritten);
      if (!rewritten.empty()) packer_->feed(rewritten, packed);
      return there = send(packed);
    });
    if (!unpacked) return unpacked.take_error();
    if (!there) return gone();
    return {};
  }

  bool send(std::string_view bytes) {
    Connection& connection = exchange_.connection;
    if (bytes.empty()) return !connection.broken();
    if (!chunked_) return connection.write(bytes) && connection.flush();
    return connection.write(chunk_head(bytes.size())) && connection.write(bytes) && connection.write("\r\n") &&
           connection.flush();
  }

  Exchange& exchange_;
  const ProxiedRequest& proxied_;
  const std::vector<std::pair<std::string, std::string>>& more_;
  bool rewrites_ = false, chunked_ = false;
  std::optional<Unpacker> unpacker_;
  std::optional<Packer> packer_;
  std::optional<LinkRewriter> links_;
};

Error not_reached(const Error& why) {
  if (why.code() != Code::unavailable) return why;
  return Error(Code::unavailable, "error trying to reach service: " + why.text());
}

Result<void> relay_request(Exchange& exchange, const Target& target, const ProxiedRequest& proxied,
                           const std::vector<std::pair<std::string, std::string>>& more) {
  RelayClient client(exchange.connection);
  auto opened = Upstream::open(target, client);
  if (!opened) return not_reached(opened.error());
  Upstream& upstream = **opened;
  auto asked = upstream.write(request_head(exchange.head, proxied, false), exchange.connection.socket());
  if (!asked) return not_reached(asked.error());
  Upload upload(exchange, upstream, client);
  if (exchange.head.has_body()) upload.start();
  ResponseReader response(upstream, client);
  auto head = response.read_head();
  if (head && head->status == 101) head = Error(Code::unavailable, "the service switched protocols when none was asked for");
  if (!head) {
    upload.stop();
    if (auto failure = upload.failure(); failure && failure->code() == Code::bad_request) return *failure;
    return not_reached(head.error());
  }
  Delivery delivery(exchange, proxied, more);
  auto delivered = delivery.run(response, *head, true);
  upload.stop();
  if (upload.failure()) exchange.reusable = false;
  return delivered;
}

// Copies bytes in both directions, until either side ends; then ends both.
void join_ends(Connection& connection, Upstream& upstream, ResponseReader& response) {
  std::jthread backward = start_thread("streams", [&] {
    for (;;) {
      auto piece = response.read_raw();
      if (!piece || piece->empty() || !connection.write(*piece) || !connection.flush()) break;
    }
    upstream.shut_down();
    connection.close();  // wakes its reader
  });
  connection.set_read_deadline(SteadyTime::max());
  char piece[16 << 10];
  for (;;) {
    auto count = connection.read(piece, sizeof piece);
    if (!count || *count == 0 || !upstream.write({piece, *count}, connection.socket())) break;
  }
  upstream.shut_down();  // wakes the other thread
}

class Nobody : public CancelCheck {  // a tunnel is not cancelled, it ends with either side
 public:
  int fd() const override { return -1; }
  bool stirred() override { return false; }
};

// Forwards a protocol upgrade. A refusal by the target is forwarded too.
Result<void> relay_upgrade(Exchange& exchange, const Target& target, const ProxiedRequest& proxied,
                           const std::vector<std::pair<std::string, std::string>>& more) {
  RelayClient client(exchange.connection);
  auto opened = Upstream::open(target, client);
  if (!opened && opened.error().code() == Code::cancelled) return opened.take_error();
  if (!opened) return storage_error("error dialing backend: " + opened.error().text());
  Upstream& upstream = **opened;
  auto asked = upstream.write(request_head(exchange.head, proxied, true), exchange.connection.socket());
  if (!asked) return storage_error("error sending request: " + asked.error().text());
  if (exchange.head.has_body()) {
    Upload upload(exchange, upstream, client);
    upload.run();
    if (auto failure = upload.failure()) return *failure;
  }
  ResponseReader response(upstream, client);
  auto head = response.read_head();
  if (!head) return head.error().code() == Code::unavailable ? storage_error(head.error().text()) : head.take_error();
  if (head->status == 101) {
    Connection& connection = exchange.take_over(101);
    Nobody nobody;  // another thread reads from the client now
    response.listen_to(nobody);
    if (connection.write(response.raw_head()) && connection.flush()) join_ends(connection, upstream, response);
    return {};
  }
  if (head->status < 400) return storage_error("invalid upgrade response: status code " + std::to_string(head->status));
  Delivery delivery(exchange, proxied, more);
  return delivery.run(response, *head, false);
}

}  // namespace

Result<void> relay(Exchange& exchange, const Target& target, const ProxiedRequest& proxied,
                   const std::vector<std::pair<std::string, std::string>>& more) {
  if (asks_for_upgrade(exchange.head)) return relay_upgrade(exchange, target, proxied, more);
  return relay_request(exchange, target, proxied, more);
}

}  // namespace coracle::api
