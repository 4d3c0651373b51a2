// SPDX-License-Identifier: Apache-2.0
// See recode.h.
#include "daemon/api/recode.h"

#include <zlib.h>

#include <array>

namespace coracle::api {
namespace {

constexpr size_t kZlibOutputBytes = 16 << 10;
constexpr int kGzipBits = 15 + 16, kWrappedBits = 15, kBareBits = -15;  // windowBits values of zlib for the formats

// Whether a deflate body begins with a zlib header.
bool is_wrapped(unsigned char first) { return (first & 0x0f) == Z_DEFLATED && first >> 4 <= 7; }

// Calls inflate or deflate until all of `bytes` are consumed, and passes the output to `take` until it returns false, the stream
// ends or fails. Returns the result of the last call.
template <typename Step, typename Take>
int pump(z_stream& stream, std::string_view bytes, Step step, Take take) {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  std::array<char, kZlibOutputBytes> piece;
  for (;;) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = uInt(piece.size());
    int said = step(&stream);
    if (said != Z_OK && said != Z_STREAM_END && said != Z_BUF_ERROR) return said;
    size_t count = piece.size() - stream.avail_out;
    bool wanted = count == 0 || take(std::string_view(piece.data(), count));
    if (!wanted || stream.avail_out != 0 || said == Z_STREAM_END) return said;
  }
}

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
  int said = pump(
      stream, bytes, [](z_stream* at) { return inflate(at, Z_NO_FLUSH); }, take);
  state_->ended = said == Z_STREAM_END;
  if (said != Z_OK && said != Z_STREAM_END && said != Z_BUF_ERROR)
    return Error(Code::bad_request, "the body is not compressed as it says");
  return {};
}

struct Packer::State {
  Coding coding;
  z_stream stream{};
  bool works = false;

  void run(std::string_view bytes, int flush, std::string& out) {
    if (coding == Coding::none) return void(out += bytes);
    if (!works) return;
    pump(
        stream, bytes, [flush](z_stream* at) { return deflate(at, flush); },  // cannot fail on a valid stream
        [&out](std::string_view piece) { return out += piece, true; });
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
void Packer::add(std::string_view bytes, std::string& out) { state_->run(bytes, Z_NO_FLUSH, out); }
void Packer::end(std::string& out, std::string_view last) { state_->run(last, Z_FINISH, out); }

}  // namespace coracle::api
