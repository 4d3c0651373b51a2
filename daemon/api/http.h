// SPDX-License-Identifier: Apache-2.0
// One HTTP exchange for the handlers: the request, and the response to fill in or the connection to take over.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/api/body.h"
#include "daemon/api/head.h"
#include "daemon/api/connection.h"
#include "runtime/base/result.h"

namespace coracle::api {

constexpr size_t kBodyBytesMax = 3 << 20;  // limit of an ordinary request body. Source: apiserver MaxRequestBodyBytes

struct Answer {
  int status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string lines;  // further headers as they are sent: "Name: value\r\n" for each
  std::string body;
  // Used instead of `body` for long responses: the pieces are written one after the other and never joined. `holds` owns their
  // memory.
  std::vector<std::string_view> pieces;
  std::shared_ptr<const void> holds;
};

// Limits for discarding an unread body, so that the connection stays usable.
constexpr size_t kDrainBytesMax = 256 << 10;
constexpr std::chrono::milliseconds kDrainTime{500};

class Exchange {
 public:
  // `notice_peer`: see below; empty in tests.
  Exchange(const Head& head, Connection& connection, bool is_long, BodyReader& body,
           std::function<std::stop_token()> notice_peer = {})
      : head(head), connection(connection), is_long(is_long), body_(body), notice_peer_(std::move(notice_peer)) {}

  const Head& head;
  Connection& connection;
  const bool is_long;  // result of IsLong: a watch or a stream
  Answer answer;

  // Reads the whole body. Errors: too_large, as soon as it is known; timeout (then the response is 408); as BodyReader::read.
  Result<std::string> read_body(size_t bytes_max = kBodyBytesMax);
  Result<void> stream_body(const BodyReader::Take& take) { return body_.read(take, waits_); }
  void invite_body() { body_.invite(); }  // sends 100 Continue; call before another thread streams the body
  // Adds functions that are called around the wait for the body; those added earlier are nested inside. Call before reading.
  void when_body_waits(BodyWait wait) {
    waits_.reserve(kBodyWaitsUsual);
    waits_.push_back(std::move(wait));
  }
  bool body_was_late() const { return late_; }

  // Called once if writing the response would block because the client does not read. False: the write fails instead. Absent: it
  // blocks.
  std::function<bool()> when_answer_waits;

  std::string user;       // the authenticated user; "" before authentication
  bool known = false;     // the user is authenticated: the rest of the body is awaited for some time
  bool hangs_up = false;  // the connection is closed after the response
  void drop_body();       // discards the received part of an unread body, so that it is not taken for the next request
  bool body_left() const { return !body_.complete(); }

  // After this call the handler writes to the connection itself, including the head. `answer` is not sent; its status is used for
  // metrics and audit only.
  Connection& take_over(int status = 200) {
    taken_ = true;
    answer.status = status;
    if (when_taken) when_taken();
    return connection;
  }
  std::function<void()> when_taken;  // called when a streaming response begins
  bool taken() const { return taken_; }
  // A token that is stopped when the client sends something or disconnects, or when the server stops. For a thread that waits for
  // something other than the connection (a watch). When it is stopped, check connection.peer_gone() and call this again. An
  // unread body is discarded first, so that it does not count as new input.
  std::stop_token notice_peer();

  // Kept until the response is being sent: seats (daemon/flowcontrol).
  void hold(std::shared_ptr<void> held) { held_ = std::move(held); }
  std::shared_ptr<void> take_held() { return std::move(held_); }

  // After a take-over: the next request may follow on this connection, because the response is delimited and complete.
  bool reusable = false;

 private:
  static constexpr size_t kBodyWaitsUsual = 2;  // of the HTTP server and of the API
  BodyReader& body_;
  std::vector<BodyWait> waits_;
  std::function<std::stop_token()> notice_peer_;
  bool late_ = false;
  bool taken_ = false;
  std::shared_ptr<void> held_;
};

// A streaming response in chunks; takes the connection over. Head and chunks are sent at once. For an HTTP/1.0 client, which has
// no chunks, the body is sent unframed and ends with the connection.
class ChunkedAnswer {
 public:
  ChunkedAnswer(Exchange& exchange, std::string_view content_type,
                const std::vector<std::pair<std::string, std::string>>& headers);
  bool write(std::string_view bytes);                    // false: the client is gone
  bool write(std::span<const std::string_view> pieces);  // as one chunk, without joining the pieces
  bool flush();
  void end();  // writes the last chunk: the connection may be used again

 private:
  Exchange& exchange_;
  Connection& connection_;
  const bool chunked_;
};

std::string_view status_text(int status);  // "Not Found"
// The beginning of a response head. More headers and the empty line must follow. `old`: as HTTP/1.0.
std::string begin_head(int status, const std::vector<std::pair<std::string, std::string>>& headers, bool old = false);
// The Connection header of the response; empty if it is the default of the HTTP version.
std::string_view connection_header(const Head& asked, bool stays);

}  // namespace coracle::api
