// SPDX-License-Identifier: Apache-2.0
// See jwt.h. OpenSSL uses DER signatures, JOSE two 32-byte numbers; this file converts them.
#include "daemon/auth/jwt.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace coracle::auth {
namespace {

constexpr int kNumberBytes = 32;

EVP_PKEY* pkey(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }
const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string coordinate(EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return {};
  unsigned char bytes[kNumberBytes];
  int size = BN_bn2binpad(number, bytes, kNumberBytes);
  BN_free(number);
  return size == kNumberBytes ? base64url_encode({reinterpret_cast<char*>(bytes), sizeof bytes}) : std::string();
}

Result<std::string> to_jose(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> signature(d2i_ECDSA_SIG(nullptr, &at, long(der.size())), ECDSA_SIG_free);
  if (!signature) return Error(Code::internal, "sign a token");
  unsigned char out[2 * kNumberBytes];
  BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out, kNumberBytes);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out + kNumberBytes, kNumberBytes);
  return std::string(reinterpret_cast<char*>(out), sizeof out);
}

std::string to_der(std::string_view jose) {
  if (jose.size() != 2 * kNumberBytes) return {};
  std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> signature(ECDSA_SIG_new(), ECDSA_SIG_free);
  ECDSA_SIG_set0(signature.get(), BN_bin2bn(bytes_of(jose), kNumberBytes, nullptr),
                 BN_bin2bn(bytes_of(jose) + kNumberBytes, kNumberBytes, nullptr));
  unsigned char* der = nullptr;
  int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size < 0) return {};
  std::string out(reinterpret_cast<char*>(der), size_t(size));
  OPENSSL_free(der);
  return out;
}

using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

}  // namespace

Result<TokenSigner> TokenSigner::make(std::string_view private_key) {
  std::unique_ptr<BIO, decltype(&BIO_free)> from(BIO_new_mem_buf(private_key.data(), int(private_key.size())), BIO_free);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(from.get(), nullptr, nullptr, nullptr);
  if (!key) return ERR_clear_error(), Error(Code::invalid, "the token signing key is no private key in PEM form");
  TokenSigner signer;
  signer.key_ = std::shared_ptr<void>(key, [](void* p) { EVP_PKEY_free(static_cast<EVP_PKEY*>(p)); });
  char group[32] = "";
  EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group, nullptr);
  signer.x_ = coordinate(key, OSSL_PKEY_PARAM_EC_PUB_X);
  signer.y_ = coordinate(key, OSSL_PKEY_PARAM_EC_PUB_Y);
  if (std::string_view(group) != "prime256v1" || signer.x_.empty())
    return ERR_clear_error(), Error(Code::invalid, "the token signing key must be an ECDSA P-256 key");
  signer.key_id_ =
      base64url_encode(as_text(sha256_of(R"({"crv":"P-256","kty":"EC","x":")" + signer.x_ + R"(","y":")" + signer.y_ + "\"}")));
  return signer;
}

Result<std::string> TokenSigner::sign(const json::object& claims) const {
  json::object header{{"alg", "ES256"}, {"kid", key_id_}};
  std::string text = base64url_encode(to_text(header)) + "." + base64url_encode(to_text(claims));
  Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  unsigned char der[128];
  size_t size = sizeof der;
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, pkey(key_)) != 1 ||
      EVP_DigestSign(context.get(), der, &size, bytes_of(text), text.size()) != 1)
    return ERR_clear_error(), Error(Code::internal, "sign a token");
  std::string signature = TRY(to_jose({reinterpret_cast<char*>(der), size}));
  return text + "." + base64url_encode(signature);
}

Result<json::value> TokenSigner::verify(std::string_view token) const {
  auto parts = split(token, '.');
  if (parts.size() != 3 || token.size() > kTokenBytesMax) return unauthorized();
  auto header_text = base64url_decode(parts[0]), claims_text = base64url_decode(parts[1]), signature = base64url_decode(parts[2]);
  if (!header_text || !claims_text || !signature) return unauthorized();
  auto header = parse_json(*header_text);
  if (!header || get_string(*header, "alg") != "ES256") return unauthorized();
  std::string der = to_der(*signature), text = std::string(parts[0]) + "." + std::string(parts[1]);
  Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool good = !der.empty() && EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, pkey(key_)) == 1 &&
              EVP_DigestVerify(context.get(), bytes_of(der), der.size(), bytes_of(text), text.size()) == 1;
  ERR_clear_error();
  if (!good) return unauthorized();
  auto claims = parse_json(*claims_text);
  if (!claims || !claims->is_object()) return unauthorized();
  return claims;
}

json::object TokenSigner::public_jwk() const {
  return {{"use", "sig"}, {"kty", "EC"}, {"kid", key_id_}, {"crv", "P-256"}, {"alg", "ES256"}, {"x", x_}, {"y", y_}};
}

}  // namespace coracle::auth
