// SPDX-License-Identifier: Apache-2.0
// One HTTP exchange as the handlers see it: what was asked, the answer to fill in, or the connection to take over.
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
#include "daemon/api/tls.h"
#include "runtime/base/result.h"

namespace coracle::api {

constexpr size_t kBodyBytesMax = 3 << 20;  // of an ordinary request. Source: apiserver MaxRequestBodyBytes

struct Answer {
  int status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // In place of `body`, of what is long: written one after the other, never put together; `holds` keeps what they point into.
  std::vector<std::string_view> pieces;
  std::shared_ptr<const void> holds;
};

// Of a body that nobody wanted, so that the connection stays usable.
constexpr size_t kDrainBytesMax = 256 << 10;
constexpr std::chrono::milliseconds kDrainTime{500};

class Exchange {
 public:
  // `notice_peer`: see below; from the front, or empty in tests.
  Exchange(const Head& head, TlsConnection& connection, bool is_long, BodyReader& body,
           std::function<std::stop_token()> notice_peer = {})
      : head(head), connection(connection), is_long(is_long), body_(body), notice_peer_(std::move(notice_peer)) {}

  const Head& head;
  TlsConnection& connection;
  const bool is_long;  // as the front was told by its IsLong: a watch, a stream
  Answer answer;

  // Whole. Errors: too_large, as soon as that is known; timeout (then answers are 408); as BodyReader::read.
  Result<std::string> read_body(size_t bytes_max = kBodyBytesMax);
  Result<void> stream_body(const BodyReader::Take& take) { return body_.read(take, waits_); }
  void invite_body() { body_.invite(); }  // before another thread streams it
  // Around the time in which the body is waited for, that of before around this one. Before it is read.
  void when_body_waits(BodyWait wait) { waits_.push_back(std::move(wait)); }
  bool body_was_late() const { return late_; }

  // Asked once, when the answer has to wait until its client reads; false: it does not wait. Nothing: it does.
  std::function<bool()> when_answer_waits;

  std::string user;       // who asks, "" before that is known
  bool known = false;     // it is a user of ours who asks: some patience with the rest of his body is due
  bool hangs_up = false;  // the connection is not used again
  void drop_body();       // reads away a body that nobody wanted and that is here, so that what comes next is not taken for it
  bool body_left() const { return !body_.complete(); }

  // From here on the handler writes to the connection itself, head included; `answer` is not sent, but for its status, which
  // is told to those who count or write down.
  TlsConnection& take_over(int status = 200) {
    taken_ = true;
    answer.status = status;
    if (when_taken) when_taken();
    return connection;
  }
  std::function<void()> when_taken;  // an endless answer begins
  bool taken() const { return taken_; }
  // Stopped when the client sends something, goes away, or the front stops: for a thread that sleeps on something else than
  // the connection (a watch). Once it is stopped, ask again after looking at connection.peer_gone(). A body that nobody wanted
  // is read away before, lest it be taken for something new.
  std::stop_token notice_peer();

  // Kept until the answer is on its way to the client: seats (daemon/fairness).
  void hold(std::shared_ptr<void> held) { held_ = std::move(held); }
  std::shared_ptr<void> take_held() { return std::move(held_); }

  // After a take-over: whether the next request may follow on this connection (the answer was framed and is complete).
  bool reusable = false;

 private:
  BodyReader& body_;
  std::vector<BodyWait> waits_;
  std::function<std::stop_token()> notice_peer_;
  bool late_ = false;
  bool taken_ = false;
  std::shared_ptr<void> held_;
};

// An endless answer, taken over and chunked: head and chunks reach the client at once. To HTTP/1.0, which knows no chunks, it
// goes as it is, and the end of the connection is its end.
class ChunkedAnswer {
 public:
  ChunkedAnswer(Exchange& exchange, std::string_view content_type,
                const std::vector<std::pair<std::string, std::string>>& headers);
  bool write(std::string_view bytes);                    // false: the client is gone
  bool write(std::span<const std::string_view> pieces);  // as one chunk, without putting them together
  bool flush();
  void end();  // the clean end: the connection may be used again

 private:
  Exchange& exchange_;
  TlsConnection& connection_;
  const bool chunked_;
};

std::string_view status_text(int status);  // "Not Found"
// The beginning of an answer: more headers and the empty line are to follow. `old`: in HTTP/1.0, as it was asked.
std::string begin_head(int status, const std::vector<std::pair<std::string, std::string>>& headers, bool old = false);
// What the answer says of the connection's future: nothing where both sides take it for granted.
std::string_view connection_header(const Head& asked, bool stays);

}  // namespace coracle::api
