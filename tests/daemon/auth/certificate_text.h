// SPDX-License-Identifier: Apache-2.0
// Creates certificate requests: PKCS#10 with a new P-256 key.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <string>
#include <vector>

#include "runtime/base/text.h"

namespace coracle::auth {

// The value of spec.request. `subject`: "/O=a/O=b/CN=c". `names`: alternative names in OpenSSL's syntax, "DNS:a,IP:1.2.3.4".
inline std::string request_text(const std::string& subject, const std::string& names = "") {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509_REQ* request = X509_REQ_new();
  X509_NAME* name = X509_REQ_get_subject_name(request);
  for (std::string_view part : split(std::string_view(subject).substr(1), '/')) {
    size_t equals = part.find('=');
    std::string field(part.substr(0, equals)), value(part.substr(equals + 1));
    X509_NAME_add_entry_by_txt(name, field.c_str(), MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                               int(value.size()), -1, 0);
  }
  if (!names.empty()) {
    STACK_OF(X509_EXTENSION)* all = sk_X509_EXTENSION_new_null();
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, nullptr, nullptr, request, nullptr, 0);
    sk_X509_EXTENSION_push(all, X509V3_EXT_nconf_nid(nullptr, &context, NID_subject_alt_name, names.c_str()));
    X509_REQ_add_extensions(request, all);
    sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
  }
  X509_REQ_set_pubkey(request, key);
  X509_REQ_sign(request, key, EVP_sha256());
  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509_REQ(out, request);
  char* data = nullptr;
  long size = BIO_get_mem_data(out, &data);
  std::string text = base64_encode(std::string_view(data, size_t(size)));
  BIO_free(out), X509_REQ_free(request), EVP_PKEY_free(key);
  return text;
}

// A CertificateSigningRequest for client auth.
inline std::string certificate_request_text(const std::string& name, const std::string& signer, const std::string& subject) {
  return R"({"metadata":{"name":")" + name + R"("},"spec":{"signerName":")" + signer +
         R"(","usages":["digital signature","key encipherment","client auth"],"request":")" + request_text(subject) + "\"}}";
}

}  // namespace coracle::auth
