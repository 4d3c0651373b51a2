// SPDX-License-Identifier: Apache-2.0
// Compresses a stream with zstd and adds a checksum of the content, so that unpacking detects damage. (libarchive's zstd filter
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
  Result<void> end();  // writes the rest and the checksum

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  const Sink& to_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::string out_;
};

}  // namespace coracle::image
