// SPDX-License-Identifier: Apache-2.0
// Owners for OpenSSL's objects, its errors and its strings, for all code that handles certificates.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::openssl {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* what) const {
    Free(what);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using GeneralNames = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;

// OpenSSL's latest error, prefixed by what was being done; clears its error queue.
inline Error error(std::string_view doing, Code code = Code::internal) {
  char text[256] = "unknown error";
  if (unsigned long number = ERR_get_error()) ERR_error_string_n(number, text, sizeof text);
  ERR_clear_error();
  return Error(code, std::string(doing) + ": " + text);
}

// Reads `text`, which must outlive the BIO.
inline Bio memory_bio(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), int(text.size()))); }

// The content of a BIO_s_mem().
inline std::string take_text(BIO* from) {
  char* text = nullptr;
  long size = BIO_get_mem_data(from, &text);
  return std::string(text, size_t(size));
}

// Null on an error, which is in OpenSSL's error queue.
inline Certificate read_certificate(BIO* from) { return Certificate(PEM_read_bio_X509(from, nullptr, nullptr, nullptr)); }
inline Certificate parse_certificate(std::string_view pem) { return read_certificate(memory_bio(pem).get()); }
inline PrivateKey parse_private_key(std::string_view pem) {
  return PrivateKey(PEM_read_bio_PrivateKey(memory_bio(pem).get(), nullptr, nullptr, nullptr));
}

inline std::string to_pem(X509* certificate) {
  Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return take_text(out.get());
}
inline std::string to_pem(EVP_PKEY* key) {  // PKCS#8
  Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return take_text(out.get());
}

// nullopt if it cannot be converted.
inline std::optional<std::string> utf8_text(const ASN1_STRING* from) {
  unsigned char* text = nullptr;
  int size = ASN1_STRING_to_UTF8(&text, from);
  if (size < 0) return std::nullopt;
  std::string out(reinterpret_cast<char*>(text), size_t(size));
  OPENSSL_free(text);
  return out;
}

// The entries of a distinguished name; those that are not text are left out.
inline std::vector<std::string> name_entries(X509_NAME* name, int nid) {
  std::vector<std::string> out;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;)
    if (auto text = utf8_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)))) out.push_back(*std::move(text));
  return out;
}

inline bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>> extension(
      X509V3_EXT_nconf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

}  // namespace coracle::openssl
