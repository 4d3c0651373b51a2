// SPDX-License-Identifier: Apache-2.0
// See sha256.h.
#include "runtime/base/sha256.h"

#include "runtime/base/libcrypto.h"
#include "runtime/base/result.h"

namespace coracle {

Sha256 sha256_of(std::string_view text) {
  // Fetched once: OpenSSL would search its providers on every call.
  static const EVP_MD* const sha256 = [] {
    MUST(load_libcrypto());
    return EVP_MD_fetch(nullptr, "SHA256", nullptr);
  }();
  Sha256 digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, sha256, nullptr) != 1)
    bug("sha256_of", "OpenSSL has no SHA-256", std::source_location::current());  // equal digests would identify different users
  return digest;
}

}  // namespace coracle
