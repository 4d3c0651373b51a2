// SPDX-License-Identifier: Apache-2.0
// A SPDY/3.1 connection, the server's side: streams that the client opens, each read and written by a thread of its own.
//   client ──ByteLink──▶ run() (one thread): frames ──▶ SpdyStream::read
//   client ◀──ByteLink── SpdyStream::write, finish (any thread)
// What bounds memory is that run() reads no further while too much waits to be taken; windows are opened as wide as they go,
// for Go's spdystream, which Kubernetes' clients use, does not know of them. A client's own windows are kept once it speaks of
// them. Source: SPDY Protocol, draft 3.1; moby/spdystream.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/api/byte_link.h"
#include "daemon/api/byte_queue.h"
#include "daemon/api/spdy.h"
#include "runtime/base/guarded.h"
#include "runtime/sys/socket.h"

namespace coracle::api {

constexpr size_t kStreamsMax = 256;             // at once, of one connection
constexpr size_t kSessionBacklogMax = 1 << 20;  // bytes that wait in all of a connection's (in one: kBacklogMax)

class SpdySession;

class SpdyStream {  // Thread-safe; one thread reads.
 public:
  SpdyStream(SpdySession& session, uint32_t id, spdy::HeaderList headers)
      : session_(session), id_(id), headers_(std::move(headers)) {}

  uint32_t id() const { return id_; }
  std::string_view header(std::string_view name) const { return spdy::find_header(headers_, name); }

  // Blocks for what the client sends. "": it has finished, has left, or nobody wants it any more.
  std::string read();
  bool cut_off() const { return input_.cut_off(); }  // the end that was read is not one that the client has told
  void stop_reading();                               // from any thread: who reads returns, and what comes is thrown away
  // Blocks while the client does not read. False: it wants no more, or is gone.
  bool write(std::string_view bytes);
  void finish();                                                     // our side has said all
  void reset(spdy::ResetStatus status = spdy::ResetStatus::cancel);  // both sides have

 private:
  friend class SpdySession;
  SpdySession& session_;
  const uint32_t id_;
  const spdy::HeaderList headers_;
  ByteQueue input_;
};
using SpdyStreamPtr = std::shared_ptr<SpdyStream>;

struct SpdyHandler {                                 // called by run()'s thread; must not block
  std::function<bool(const SpdyStream&)> admit;      // whether such a stream is wanted
  std::function<void(const SpdyStreamPtr&)> opened;  // the client knows that it is
};

class SpdySession {
 public:
  SpdySession(ByteLink& link, SpdyHandler handler) : link_(link), handler_(std::move(handler)) {}

  // Serves until the client has left; then all streams are at their ends. Errors: what the client broke; it was told.
  Result<void> run();
  // Says that nothing more will come. The client is expected to leave.
  void go_away(spdy::GoAwayStatus status = spdy::GoAwayStatus::ok);

 private:
  friend class SpdyStream;
  struct Entry {
    SpdyStreamPtr stream;
    int64_t window = 0;   // what the client takes of it
    size_t received = 0;  // since it was last told to go on
    bool input_ended = false, output_ended = false;
  };
  struct Book {
    std::map<uint32_t, Entry> streams;
    uint32_t last_stream = 0;
    int64_t window = spdy::kWindowInitial, initial_window = spdy::kWindowInitial;
    bool keeps_windows = false;  // the client has spoken of them
    bool going_away = false, gone = false;
  };

  Result<void> take(std::string_view bytes);
  Result<void> handle(spdy::Frame& frame);
  Result<void> open(spdy::SynStream& frame);
  Result<void> deliver(spdy::Data& frame);
  Result<void> change_windows(const spdy::Settings& frame);
  Result<void> widen(const spdy::WindowUpdate& frame);
  void refuse(uint32_t stream, spdy::ResetStatus status);
  bool wait_for_room();
  void end_input(uint32_t stream);
  void forget(uint32_t stream);
  void leave();

  // For streams.
  size_t claim(uint32_t stream, size_t wanted);  // blocks for a window; 0: the stream is over
  bool send(uint32_t stream, std::string_view bytes);
  void finish(uint32_t stream);
  void reset(uint32_t stream, spdy::ResetStatus status);
  void taken(size_t count);

  ByteLink& link_;
  SpdyHandler handler_;
  spdy::FrameDecoder decoder_;
  spdy::FrameEncoder encoder_;  // run()'s
  Guarded<Book> book_;
  SpdyStreamPtr last_filled_;        // run()'s: the stream that got bytes last
  std::atomic<size_t> waiting_ = 0;  // bytes, in all streams
  sys::Bell room_;
  size_t received_ = 0;  // run()'s: since the client was last told to go on
};

}  // namespace coracle::api
