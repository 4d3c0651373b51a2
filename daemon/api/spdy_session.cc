// SPDX-License-Identifier: Apache-2.0
// See spdy_session.h.
#include "daemon/api/spdy_session.h"

#include <algorithm>

namespace coracle::api {
namespace {

constexpr size_t kPieceSent = (16 << 10) - 32;        // with its frame headers it fits in one TLS record
constexpr size_t kAcknowledgeFrom = size_t(1) << 30;  // of the windows' two gigabytes

Error spdy_protocol_error(std::string_view how) { return Error(Code::bad_request, "SPDY: " + std::string(how)); }

}  // namespace

// ---- streams ----

std::string SpdyStream::read() {
  std::string bytes = input_.take();
  session_.taken(bytes.size());
  return bytes;
}

void SpdyStream::stop_reading() { session_.taken(input_.abandon()); }

bool SpdyStream::write(std::string_view bytes) { return session_.send(id_, bytes); }
void SpdyStream::finish() { session_.finish(id_); }
void SpdyStream::reset(spdy::ResetStatus status) {
  stop_reading();
  session_.reset(id_, status);
}

// ---- used by SpdyStream ----

size_t SpdySession::claim(uint32_t stream, size_t wanted) {
  auto open = [&](const Shared& shared) {
    auto found = shared.streams.find(stream);
    return !shared.gone && found != shared.streams.end() && !found->second.output_ended ? &found->second : nullptr;
  };
  return shared_.wait(
      {},
      [&](const Shared& shared) {
        const Entry* entry = open(shared);
        return !entry || !shared.keeps_windows || (entry->window > 0 && shared.window > 0);
      },
      [&](Shared& shared) -> size_t {
        if (!open(shared)) return 0;
        Entry& entry = shared.streams.at(stream);
        size_t count = wanted;
        if (shared.keeps_windows) count = std::min({count, size_t(entry.window), size_t(shared.window)});
        entry.window -= int64_t(count), shared.window -= int64_t(count);
        return count;
      });
}

bool SpdySession::send(uint32_t stream, std::string_view bytes) {
  while (!bytes.empty()) {
    size_t count = claim(stream, std::min(bytes.size(), kPieceSent));
    if (count == 0 || !link_.write(spdy::FrameEncoder::data(stream, bytes.substr(0, count)))) return false;
    bytes.remove_prefix(count);
  }
  return true;
}

void SpdySession::finish(uint32_t stream) {
  bool says = shared_.with([&](Shared& shared) {
    auto found = shared.streams.find(stream);
    return !shared.gone && found != shared.streams.end() && !std::exchange(found->second.output_ended, true);
  });
  if (says) (void)link_.write(spdy::FrameEncoder::data(stream, {}, true));  // a client that is gone needs no frame
  forget(stream);
}

void SpdySession::reset(uint32_t stream, spdy::ResetStatus status) {
  bool says = shared_.with([&](Shared& shared) { return !shared.gone && shared.streams.erase(stream) > 0; });
  shared_.notify();
  if (says) (void)link_.write(spdy::FrameEncoder::rst_stream(stream, status));  // as above
}

void SpdySession::taken(size_t count) {
  if (count == 0) return;
  waiting_ -= count;
  space_.signal();
}

// Removes a stream that both sides have ended.
void SpdySession::forget(uint32_t stream) {
  shared_.with([&](Shared& shared) {
    auto found = shared.streams.find(stream);
    if (found != shared.streams.end() && found->second.input_ended && found->second.output_ended) shared.streams.erase(found);
  });
}

// ---- the connection ----

Result<void> SpdySession::run() {
  std::string greeting =
      spdy::FrameEncoder::settings({{{spdy::kMaxConcurrentStreams, kStreamsMax}, {spdy::kInitialWindowSize, spdy::kWindowMax}}});
  greeting += spdy::FrameEncoder::window_update(0, uint32_t(spdy::kWindowMax - spdy::kWindowInitial));
  Result<void> outcome;
  if (link_.write(greeting)) {
    for (;;) {
      if (!wait_for_space()) break;
      auto bytes = link_.read();
      if (!bytes && bytes.error().code() == Code::unavailable) break;  // it disconnected without GOAWAY, as clients do
      outcome = bytes ? take(*bytes) : Result<void>(bytes.take_error());
      if (!outcome) go_away(spdy::GoAwayStatus::protocol_error);
      if (!outcome || bytes->empty()) break;
    }
  }
  leave();
  return outcome;
}

void SpdySession::go_away(spdy::GoAwayStatus status) {
  auto last = shared_.with([](Shared& shared) -> std::optional<uint32_t> {
    if (shared.gone || std::exchange(shared.going_away, true)) return std::nullopt;
    return shared.last_stream;
  });
  if (!last) return;
  (void)link_.write(spdy::FrameEncoder::go_away(*last, status));  // ignored if the client is gone
  link_.end();
}

void SpdySession::leave() {
  std::map<uint32_t, Entry> streams;
  shared_.with([&](Shared& shared) {
    shared.gone = true;
    streams = std::move(shared.streams);
    shared.streams.clear();
  });
  shared_.notify();
  for (auto& [id, entry] : streams)
    if (!entry.input_ended) entry.stream->stop_reading();
  sys::shut_down(link_.socket());  // wakes blocked writers
}

// Blocks until reading may continue. False: the client has disconnected.
bool SpdySession::wait_for_space() {
  for (;;) {
    space_.clear();
    bool full = waiting_ >= kSessionBacklogMax || (last_filled_ && last_filled_->input_.size() >= kBacklogMax);
    if (!full) return true;
    if (sys::wait_gone(link_.socket().get(), space_.fd())) return false;
  }
}

Result<void> SpdySession::take(std::string_view bytes) {
  decoder_.feed(bytes);
  for (;;) {
    std::optional<spdy::Frame> frame = TRY(decoder_.next());
    if (!frame) return {};
    TRY(handle(*frame));
  }
}

Result<void> SpdySession::handle(spdy::Frame& frame) {
  if (auto* syn = std::get_if<spdy::SynStream>(&frame)) return open(*syn);
  if (auto* data = std::get_if<spdy::Data>(&frame)) return deliver(*data);
  if (auto* settings = std::get_if<spdy::Settings>(&frame)) return change_windows(*settings);
  if (auto* update = std::get_if<spdy::WindowUpdate>(&frame)) return widen(*update);
  if (auto* headers = std::get_if<spdy::HeadersFrame>(&frame)) {
    if (headers->fin) end_input(headers->stream);
  } else if (auto* ping = std::get_if<spdy::Ping>(&frame)) {
    if (ping->id % 2 == 1) (void)link_.write(spdy::FrameEncoder::ping(ping->id));  // a lost connection is noticed by reading
  } else if (auto* reset = std::get_if<spdy::RstStream>(&frame)) {
    auto stream = shared_.with([&](Shared& shared) {
      auto entry = shared.streams.extract(reset->stream);
      return entry ? entry.mapped().stream : nullptr;
    });
    shared_.notify();
    if (stream) stream->stop_reading();
  } else if (std::holds_alternative<spdy::SynReply>(frame)) {
    return spdy_protocol_error("a reply to no stream of ours");
  }
  return {};  // GOAWAY: the connection will end
}

Result<void> SpdySession::open(spdy::SynStream& frame) {
  auto stream = std::make_shared<SpdyStream>(*this, frame.stream, std::move(frame.headers));
  enum class Judged { fits, odd, refused };
  bool wanted = handler_.admit(*stream);
  Judged judged = shared_.with([&](Shared& shared) {
    if (frame.stream % 2 == 0 || frame.stream <= shared.last_stream) return Judged::odd;
    shared.last_stream = frame.stream;
    if (!wanted || shared.going_away || shared.streams.size() >= kStreamsMax) return Judged::refused;
    shared.streams.emplace(frame.stream, Entry{stream, shared.initial_window, frame.fin, frame.unidirectional});
    return Judged::fits;
  });
  if (judged == Judged::odd) return spdy_protocol_error("a stream's number that is not the next");
  if (judged == Judged::refused) {
    // A lost connection is noticed by reading.
    (void)link_.write(spdy::FrameEncoder::rst_stream(frame.stream, spdy::ResetStatus::refused_stream));
    return {};
  }
  if (frame.fin) stream->input_.end();
  (void)link_.write(encoder_.syn_reply({frame.stream, {}, false}));  // before any other frame of the stream; errors as above
  handler_.opened(stream);
  return {};
}

Result<void> SpdySession::deliver(spdy::Data& frame) {
  struct Found {
    SpdyStreamPtr stream;
    bool ended = false, known = false;
    size_t acknowledge = 0;
  };
  auto acknowledged = [&](size_t& received) {
    return (received += frame.bytes.size()) >= kAcknowledgeFrom ? std::exchange(received, 0) : 0;
  };
  Found found = shared_.with([&](Shared& shared) {
    auto entry = shared.streams.find(frame.stream);
    if (entry == shared.streams.end()) return Found{nullptr, false, frame.stream <= shared.last_stream, 0};
    return Found{entry->second.stream, entry->second.input_ended, true, acknowledged(entry->second.received)};
  });
  if (!found.known) return spdy_protocol_error("data of a stream that was not opened");
  if (found.ended) return spdy_protocol_error("data behind a stream's end");
  std::string answer;
  if (size_t bytes = acknowledged(received_)) answer = spdy::FrameEncoder::window_update(0, uint32_t(bytes));
  if (found.acknowledge) answer += spdy::FrameEncoder::window_update(frame.stream, uint32_t(found.acknowledge));
  if (!answer.empty()) (void)link_.write(answer);  // a lost connection is noticed by reading
  if (!found.stream) return {};                    // sent before the client knew of the reset
  waiting_ += frame.bytes.size();                  // before a reader can take them
  if (!found.stream->input_.put(frame.bytes)) waiting_ -= frame.bytes.size();
  last_filled_ = found.stream;
  if (frame.fin) end_input(frame.stream);
  return {};
}

void SpdySession::end_input(uint32_t id) {
  auto stream = shared_.with([&](Shared& shared) -> SpdyStreamPtr {
    auto found = shared.streams.find(id);
    if (found == shared.streams.end()) return nullptr;
    found->second.input_ended = true;
    return found->second.stream;
  });
  if (!stream) return;
  stream->input_.end();
  forget(id);
}

Result<void> SpdySession::change_windows(const spdy::Settings& frame) {
  for (const auto& [id, value] : frame.values) {
    if (id != spdy::kInitialWindowSize) continue;
    if (value > spdy::kWindowMax) return spdy_protocol_error("a window that is too large");
    shared_.with([&, value = int64_t(value)](Shared& shared) {
      shared.keeps_windows = true;
      for (auto& [number, entry] : shared.streams) entry.window += value - shared.initial_window;
      shared.initial_window = value;
    });
    shared_.notify();
  }
  return {};
}

Result<void> SpdySession::widen(const spdy::WindowUpdate& frame) {
  bool fits = shared_.with([&](Shared& shared) {
    shared.keeps_windows = true;
    auto found = shared.streams.find(frame.stream);
    if (frame.stream != 0 && found == shared.streams.end()) return true;  // it has ended
    int64_t& window = frame.stream == 0 ? shared.window : found->second.window;
    window += frame.bytes;
    return window <= spdy::kWindowMax;
  });
  shared_.notify();
  if (!fits) return spdy_protocol_error("a window that is too large");
  return {};
}

}  // namespace coracle::api
