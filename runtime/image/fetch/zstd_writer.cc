// SPDX-License-Identifier: Apache-2.0
// See zstd_writer.h.
#include "runtime/image/fetch/zstd_writer.h"

#include <unistd.h>
#include <zstd.h>

#include <algorithm>

namespace coracle::image {
namespace {

constexpr long kThreadsMax = 2;  // each takes memory, and more would wait for the disk

Error packing_failed(size_t code) { return Error(Code::internal, std::string("pack by zstd: ") + ZSTD_getErrorName(code)); }

}  // namespace

void ZstdWriter::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

ZstdWriter::ZstdWriter(const Sink& to) : to_(to), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize(), '\0') {
  const int threads = int(std::clamp(::sysconf(_SC_NPROCESSORS_ONLN), 1L, kThreadsMax));
  (void)ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_nbWorkers, threads);  // a library without threads uses one
  (void)ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);     // 0 and 1 are always accepted
}

Result<void> ZstdWriter::write(std::string_view bytes) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  while (in.pos < in.size) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    size_t left = ZSTD_compressStream2(context_.get(), &out, &in, ZSTD_e_continue);
    if (ZSTD_isError(left)) return packing_failed(left);
    if (out.pos > 0) TRY(to_(std::string_view(out_.data(), out.pos)));
  }
  return {};
}

Result<void> ZstdWriter::end() {
  ZSTD_inBuffer in{nullptr, 0, 0};
  for (size_t left = 1; left > 0;) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    left = ZSTD_compressStream2(context_.get(), &out, &in, ZSTD_e_end);
    if (ZSTD_isError(left)) return packing_failed(left);
    if (out.pos > 0) TRY(to_(std::string_view(out_.data(), out.pos)));
  }
  return {};
}

}  // namespace coracle::image
