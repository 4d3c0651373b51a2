// SPDX-License-Identifier: Apache-2.0
// The server side of a SPDY/3.1 connection. The client opens streams; each stream is read and written by a thread of its own.
//   client ──ByteLink──▶ run() (one thread): frames ──▶ SpdyStream::read
//   client ◀──ByteLink── SpdyStream::write, finish (any thread)
// Memory is bounded because run() stops reading while too much data is queued. Receive windows are opened as far as possible,
// because Go's spdystream, which Kubernetes' clients use, ignores them. The client's windows are respected once it has sent one.
// Source: SPDY Protocol, draft 3.1; moby/spdystream.
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

constexpr size_t kStreamsMax = 256;             // concurrent streams of one connection
constexpr size_t kSessionBacklogMax = 1 << 20;  // queued bytes in all streams of a connection (in one stream: kBacklogMax)

class SpdySession;

class SpdyStream {  // Thread-safe; one thread reads.
 public:
  SpdyStream(SpdySession& session, uint32_t id, spdy::HeaderList headers)
      : session_(session), id_(id), headers_(std::move(headers)) {}

  uint32_t id() const { return id_; }
  std::string_view header(std::string_view name) const { return spdy::find_header(headers_, name); }

  // Blocks for data from the client. "": end of stream, disconnected, or stop_reading() was called.
  std::string read();
  bool cut_off() const { return input_.cut_off(); }  // the end was not sent by the client
  void stop_reading();                               // from any thread: read() returns, and further data is discarded
  // Blocks while the client does not read. False: the client rejects more data, or is gone.
  bool write(std::string_view bytes);
  void finish();                                                     // ends this side of the stream
  void reset(spdy::ResetStatus status = spdy::ResetStatus::cancel);  // ends both sides

 private:
  friend class SpdySession;
  SpdySession& session_;
  const uint32_t id_;
  const spdy::HeaderList headers_;
  ByteQueue input_;
};
using SpdyStreamPtr = std::shared_ptr<SpdyStream>;

struct SpdyHandler {                                 // called on run()'s thread; must not block
  std::function<bool(const SpdyStream&)> admit;      // whether to accept the stream
  std::function<void(const SpdyStreamPtr&)> opened;  // called after the stream was accepted and the client was informed
};

class SpdySession {
 public:
  SpdySession(ByteLink& link, SpdyHandler handler) : link_(link), handler_(std::move(handler)) {}

  // Serves until the client has disconnected; then all streams have ended. Errors: the client's protocol error, which was
  // reported to it.
  Result<void> run();
  // Sends GOAWAY. The client is expected to disconnect.
  void go_away(spdy::GoAwayStatus status = spdy::GoAwayStatus::ok);

 private:
  friend class SpdyStream;
  struct Entry {
    SpdyStreamPtr stream;
    int64_t window = 0;   // bytes that the client accepts on this stream
    size_t received = 0;  // bytes since the last window update
    bool input_ended = false, output_ended = false;
  };
  struct Shared {
    std::map<uint32_t, Entry> streams;
    uint32_t last_stream = 0;
    int64_t window = spdy::kWindowInitial, initial_window = spdy::kWindowInitial;
    bool keeps_windows = false;  // the client has sent a window
    bool going_away = false, gone = false;
  };

  Result<void> take(std::string_view bytes);
  Result<void> handle(spdy::Frame& frame);
  Result<void> open(spdy::SynStream& frame);
  Result<void> deliver(spdy::Data& frame);
  Result<void> change_windows(const spdy::Settings& frame);
  Result<void> widen(const spdy::WindowUpdate& frame);
  void refuse(uint32_t stream, spdy::ResetStatus status);
  bool wait_for_space();
  void end_input(uint32_t stream);
  void forget(uint32_t stream);
  void leave();

  // Used by SpdyStream.
  size_t claim(uint32_t stream, size_t wanted);  // blocks until the window is open; 0: the stream has ended
  bool send(uint32_t stream, std::string_view bytes);
  void finish(uint32_t stream);
  void reset(uint32_t stream, spdy::ResetStatus status);
  void taken(size_t count);

  ByteLink& link_;
  SpdyHandler handler_;
  spdy::FrameDecoder decoder_;
  spdy::FrameEncoder encoder_;  // used by run() only
  Guarded<Shared> shared_;
  SpdyStreamPtr last_filled_;        // used by run() only: the stream that received data last
  std::atomic<size_t> waiting_ = 0;  // queued bytes in all streams
  sys::Wakeup space_;
  size_t received_ = 0;  // used by run() only: bytes since the last window update
};

}  // namespace coracle::api
