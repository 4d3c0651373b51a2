// SPDX-License-Identifier: Apache-2.0
// See body.h.
#include "daemon/api/body.h"

#include <algorithm>
#include <array>

#include "runtime/base/text.h"

namespace coracle::api {
namespace {

constexpr size_t kBodyPiece = 16 << 10;
constexpr size_t kChunkLineBytesMax = 4 << 10;  // a chunk's size line with its extensions
constexpr size_t kTrailersBytesMax = 16 << 10;
// The rest of a body often arrives a moment later, and waiting that long is cheaper than giving up the request's place.
constexpr std::chrono::milliseconds kMoment{2};

Error malformed_chunks() { return Error(Code::bad_request, "the request body is malformed: chunked encoding"); }
Error broken_off() { return Error(Code::bad_request, "the request body could not be read"); }

}  // namespace

BodyReader::BodyReader(Connection& connection, const Head& head, bool as_sent, std::optional<BodyPace> pace)
    : connection_(connection),
      chunked_(head.chunked),
      to_invite_(head.awaits_continue),
      pace_(pace),
      complete_(!head.has_body()),
      left_(head.content_length.value_or(0)) {
  if (!as_sent && equals_ignore_case(head.headers.get("Content-Encoding"), "gzip")) unpacker_.emplace(Coding::gzip);
}

void BodyReader::invite() {
  if (!std::exchange(to_invite_, false)) return;
  connection_.write("HTTP/1.1 100 Continue\r\n\r\n");
  connection_.flush();
}

SteadyTime BodyReader::deadline() const {
  if (drained_by_) return *drained_by_;
  auto earned = std::chrono::milliseconds(received_ * 1000 / kBodyBytesPerSecond);
  return began_ + std::min(pace_->whole, pace_->grace + earned);
}

// Runs a read that may have to wait. It waits for kMoment first. If nothing arrives, the request gives up its place and waits as
// long as the pace allows.
template <typename Read>
auto BodyReader::paced(Read read) -> decltype(read()) {
  if (!pace_ && !drained_by_) return read();
  bool aside = drained_by_ || waiting_ > 0;
  for (;;) {
    SteadyTime now = std::chrono::steady_clock::now(), until = deadline();
    connection_.set_read_deadline(aside ? until : std::min(until, now + kMoment));
    auto got = read();
    if (got || got.error().code() != Code::timeout) return got;
    if (!std::exchange(aside, true)) {
      auto stepped = step_aside();
      if (!stepped) return stepped.take_error();
    } else if (deadline() <= until) {  // no data has arrived that would extend the deadline
      return Error(Code::timeout, "the request body came too slowly");
    }
  }
}

Result<void> BodyReader::step_aside() {
  if (!waits_) return {};
  while (waiting_ < waits_->size()) {
    TRY((*waits_)[waits_->size() - waiting_ - 1].begin());
    waiting_++;
  }
  return {};
}

Result<void> BodyReader::step_back() {
  Result<void> outcome;
  while (waiting_ > 0) {
    auto ended = (*waits_)[waits_->size() - waiting_--].end();
    if (!ended && outcome) outcome = ended.take_error();
  }
  return outcome;
}

Result<void> BodyReader::read(const Take& take, const std::vector<BodyWait>& waits) {
  if (complete_) return {};
  if (!std::exchange(begun_, true)) began_ = std::chrono::steady_clock::now();
  invite();
  waits_ = &waits;
  auto outcome = read_pieces(take);
  auto back = step_back();
  waits_ = nullptr;
  broken_ = !outcome && (outcome.error().code() == Code::bad_request || outcome.error().code() == Code::timeout);
  return outcome ? std::move(back) : std::move(outcome);
}

Result<void> BodyReader::read_pieces(const Take& take) {
  for (;;) {
    if (chunked_ && left_ == 0) TRY(next_chunk());
    if (complete_) return {};
    TRY(take_piece(take));
  }
}

Result<void> BodyReader::take_piece(const Take& take) {
  std::array<char, kBodyPiece> piece;
  auto count = paced([&] { return connection_.read(piece.data(), size_t(std::min<uint64_t>(left_, piece.size()))); });
  if (!count && count.error().code() != Code::unavailable) return count.take_error();
  if (!count || *count == 0) return broken_off();
  left_ -= *count, received_ += *count;
  bool wanted = true;
  auto feed = [&](std::string_view bytes) { return wanted = take(bytes); };
  if (!unpacker_) feed({piece.data(), *count});
  else TRY(unpacker_->feed({piece.data(), *count}, feed));
  if (!chunked_ && left_ == 0) complete_ = true;  // whether or not `take` wanted the last piece
  if (!wanted && !complete_) return Error(Code::cancelled, "the rest of the body was not wanted");
  return {};
}

// A line without its end. Lines of chunks end with CR LF and have neither elsewhere, although those of heads may: two readers of
// one body must not differ. Source: RFC 9112 section 7.1; Go net/http since CVE-2025-22871
Result<std::string_view> BodyReader::line() {
  auto end_of_line = [](std::string_view bytes, size_t from) {
    size_t end = bytes.find('\n', from);
    return end == std::string_view::npos ? end : end + 1;
  };
  auto line = paced([&] { return connection_.read_until(end_of_line, kChunkLineBytesMax); });
  if (!line && line.error().code() == Code::too_large) return malformed_chunks();
  if (!line && line.error().code() == Code::unavailable) return broken_off();
  if (!line) return line;
  if (line->size() < 2 || line->find('\r') != line->size() - 2) return malformed_chunks();
  line->remove_suffix(2), received_ += line->size();
  return line;
}

Result<void> BodyReader::next_chunk() {
  if (std::exchange(in_chunk_, false)) {
    std::string_view end = TRY(line());
    if (!end.empty()) return malformed_chunks();
  }
  std::string_view first = TRY(line());
  auto size = parse_number<uint64_t>(trim(first.substr(0, first.find(';'))), 16);
  if (!size) return malformed_chunks();
  left_ = *size, in_chunk_ = left_ > 0;
  if (!in_chunk_) return pass_trailers();
  return {};
}

Result<void> BodyReader::pass_trailers() {
  for (size_t bytes = 0;;) {
    std::string_view trailer = TRY(line());
    if (trailer.empty()) break;
    bytes += trailer.size();
    if (bytes > kTrailersBytesMax) return malformed_chunks();
  }
  complete_ = true;
  return {};
}

bool BodyReader::drain(size_t bytes_max, std::chrono::milliseconds timeout) {
  if (complete_ || broken_ || to_invite_) return complete_;  // a client that waits for 100 Continue may never send the body
  begun_ = true;
  drained_by_ = std::chrono::steady_clock::now() + timeout;
  size_t drained = 0;
  unpacker_.reset();
  // The result is in complete_.
  (void)read_pieces([&](std::string_view piece) { return (drained += piece.size()) <= bytes_max; });
  return complete_;
}

}  // namespace coracle::api
