// SPDX-License-Identifier: Apache-2.0
// SHA-256 with OpenSSL. See digest.h.
#include "runtime/image/digest.h"

#include <algorithm>

#include "runtime/base/libcrypto.h"
#include "runtime/base/text.h"

namespace coracle::image {

Result<Digest> Digest::parse(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  std::string_view hex = text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : std::string_view();
  if (hex.size() != 64 || !std::all_of(hex.begin(), hex.end(), digit))
    return Error(Code::invalid, "not a sha256 digest: " + quoted(text.substr(0, 100)));
  return Digest(std::string(hex));
}

struct Sha256::Context {
  EVP_MD_CTX* evp;
  Context() {
    MUST(load_libcrypto());
    evp = EVP_MD_CTX_new();
  }
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size());
  size_ += int64_t(bytes.size());
}

Digest Sha256::digest() const {
  Context copy;
  EVP_MD_CTX_copy_ex(copy.evp, context_->evp);
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(copy.evp, bytes, &length);
  return Digest(coracle::hex(std::string_view(reinterpret_cast<char*>(bytes), length)));
}

Digest digest_of(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.digest();
}

}  // namespace coracle::image
