// SPDX-License-Identifier: Apache-2.0
// Packs a stream by zstd, with a checksum of what was packed: who unpacks it hears of damage. (libarchive, which packs too,
// writes no checksum.)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/image/tar_writer.h"

struct ZSTD_CCtx_s;

namespace coracle::image {

class ZstdWriter {
 public:
  explicit ZstdWriter(const Sink& to);  // `to` must outlive it
  // Errors: the sink's; internal.
  Result<void> write(std::string_view bytes);
  Result<void> end();  // what is left, and the checksum

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  const Sink& to_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::string out_;
};

}  // namespace coracle::image
