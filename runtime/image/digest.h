// SPDX-License-Identifier: Apache-2.0
// Digest: identifies content by "sha256:" and 64 lower-case hexadecimal digits. The format is checked on creation, so that its
// text can be used as a file name. Sha256 computes digests. Source: opencontainers/image-spec descriptor.md, "Digests".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::image {

class Digest {
 public:
  // Errors: invalid for anything but sha256 in canonical form.
  static Result<Digest> parse(std::string_view text);

  const std::string& hex() const { return hex_; }
  std::string text() const { return "sha256:" + hex_; }
  auto operator<=>(const Digest&) const = default;

 private:
  friend class Sha256;
  explicit Digest(std::string hex) : hex_(std::move(hex)) {}
  std::string hex_;
};

class Sha256 {
 public:
  Sha256();  // ends the process if libcrypto cannot be loaded
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::string_view bytes);
  // Of all bytes so far:
  Digest digest() const;
  int64_t size() const { return size_; }  // in bytes

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  int64_t size_ = 0;
};

Digest digest_of(std::string_view bytes);

}  // namespace coracle::image
