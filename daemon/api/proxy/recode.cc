// SPDX-License-Identifier: Apache-2.0
// See recode.h.
#include "daemon/api/proxy/recode.h"

#include <zlib.h>

#include <array>

namespace coracle::api {
namespace {

constexpr size_t kPiece = 16 << 10;
constexpr int kGzipBits = 15 + 16, kWrappedBits = 15, kBareBits = -15;  // zlib's names for the formats

// Whether a deflate body begins with the wrapper's two bytes.
bool is_wrapped(unsigned char first) { return (first & 0x0f) == Z_DEFLATED && first >> 4 <= 7; }

}  // namespace

struct Unpacker::State {
  Coding coding;
  z_stream stream{};
  bool begun = false, ended = false;
};

Unpacker::Unpacker(Coding coding) : state_(new State{coding}) {}

Unpacker::~Unpacker() {
  if (state_->begun) inflateEnd(&state_->stream);
}

Result<void> Unpacker::feed(std::string_view bytes, const std::function<bool(std::string_view)>& take) {
  if (state_->coding == Coding::none) return (void)take(bytes), Result<void>();
  if (bytes.empty() || state_->ended) return {};
  z_stream& stream = state_->stream;
  if (!state_->begun) {
    int bits = state_->coding == Coding::gzip                     ? kGzipBits
               : is_wrapped(static_cast<unsigned char>(bytes[0])) ? kWrappedBits
                                                                  : kBareBits;
    if (inflateInit2(&stream, bits) != Z_OK) return Error(Code::internal, "zlib has no memory");
    state_->begun = true;
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  std::array<char, kPiece> piece;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = uInt(piece.size());
    int done = inflate(&stream, Z_NO_FLUSH);
    if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR)
      return Error(Code::bad_request, "the body is not compressed as it says");
    state_->ended = done == Z_STREAM_END;
    size_t count = piece.size() - stream.avail_out;
    if (count > 0 && !take({piece.data(), count})) return {};
  } while (stream.avail_out == 0 && !state_->ended);
  return {};
}

struct Packer::State {
  Coding coding;
  z_stream stream{};
  bool works = false;

  void run(std::string_view bytes, int flush, std::string& out) {
    if (coding == Coding::none) return void(out += bytes);
    if (!works) return;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = uInt(bytes.size());
    std::array<char, kPiece> piece;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = uInt(piece.size());
      (void)deflate(&stream, flush);  // with a good stream it cannot fail
      out.append(piece.data(), piece.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
};

Packer::Packer(Coding coding) : state_(new State{coding}) {
  int bits = coding == Coding::gzip ? kGzipBits : kWrappedBits;
  state_->works = coding != Coding::none && deflateInit2(&state_->stream, 1, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK;
}

Packer::~Packer() {
  if (state_->works) deflateEnd(&state_->stream);
}

bool Packer::works() const { return state_->works || state_->coding == Coding::none; }
void Packer::feed(std::string_view bytes, std::string& out) { state_->run(bytes, Z_SYNC_FLUSH, out); }
void Packer::end(std::string& out) { state_->run({}, Z_FINISH, out); }

}  // namespace coracle::api
