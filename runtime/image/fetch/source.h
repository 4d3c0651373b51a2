// SPDX-License-Identifier: Apache-2.0
// Source: a stream of bytes in pieces, pulled by the reader. A layer is a chain of sources:
//   download or file ─▶ Hashing (compressed digest) ─▶ Decompressing ─▶ Hashing (diff id) ─▶ tar
#pragma once

#include <memory>
#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/image/digest.h"

struct archive;

namespace coracle::image {

class Source {
 public:
  virtual ~Source() = default;
  // The next piece, valid until the next call; empty at the end.
  virtual Result<std::string_view> next() = 0;
  // Reads and discards the rest.
  Result<void> drain();
};

class FileSource : public Source {  // from the descriptor's offset on
 public:
  explicit FileSource(const Fd& fd) : fd_(fd) {}
  Result<std::string_view> next() override;

 private:
  const Fd& fd_;
  std::unique_ptr<char[]> buffer_;
};

class HashingSource : public Source {  // passes the bytes on; counts and hashes them. Errors: too_large
 public:
  explicit HashingSource(Source& from, int64_t max = INT64_MAX) : from_(from), max_(max) {}
  Result<std::string_view> next() override;
  int64_t size() const { return size_; }
  Digest digest() const { return sha_.digest(); }

 private:
  Source& from_;
  int64_t max_, size_ = 0;
  Sha256 sha_;
};

// Decompresses gzip, zstd, xz, bzip2 and lz4, detected by their magic bytes; other data passes unchanged. Errors: invalid for
// damaged streams.
class DecompressingSource : public Source {
 public:
  explicit DecompressingSource(Source& from) : from_(from) {}
  ~DecompressingSource() override;
  Result<std::string_view> next() override;

 private:
  Result<void> open();
  Error failure();
  Source& from_;
  archive* archive_ = nullptr;
  bool ended_ = false;
  std::unique_ptr<Error> failed_;  // the error of from_, because libarchive only reports a failure
  friend struct Feed;
};

}  // namespace coracle::image
