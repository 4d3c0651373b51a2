// SPDX-License-Identifier: Apache-2.0
// libcrypto for code that coraclectl contains: it is loaded at its first use, since it takes a third of the time of a short
// command. In namespace coracle, libcrypto's names mean the pointers below, so calls are written as with a linked library; but a
// name is the pointer already, without "&". In coracled, which links libcrypto, and in coracle-image, where libcurl does, loading
// finds that one. dpkg-shlibdeps sees coracled's need.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "runtime/base/result.h"

#define CORACLE_CRYPTO_FUNCTIONS(X) \
  X(ASN1_STRING_get0_data)          \
  X(ASN1_STRING_length)             \
  X(BIO_free)                       \
  X(BIO_free_all)                   \
  X(BIO_new_mem_buf)                \
  X(CRYPTO_free)                    \
  X(ERR_clear_error)                \
  X(EVP_Digest)                     \
  X(EVP_DigestFinal_ex)             \
  X(EVP_DigestInit_ex)              \
  X(EVP_DigestUpdate)               \
  X(EVP_MD_CTX_copy_ex)             \
  X(EVP_MD_CTX_free)                \
  X(EVP_MD_CTX_new)                 \
  X(EVP_MD_fetch)                   \
  X(EVP_PKEY_free)                  \
  X(EVP_PKEY_get_base_id)           \
  X(EVP_sha256)                     \
  X(GENERAL_NAMES_free)             \
  X(OPENSSL_sk_num)                 \
  X(OPENSSL_sk_pop_free)            \
  X(OPENSSL_sk_value)               \
  X(PEM_read_bio)                   \
  X(PEM_read_bio_PrivateKey)        \
  X(PEM_read_bio_X509)              \
  X(PEM_read_bio_X509_REQ)          \
  X(X509V3_get_d2i)                 \
  X(X509_EXTENSION_free)            \
  X(X509_NAME_ENTRY_get_data)       \
  X(X509_NAME_get_entry)            \
  X(X509_NAME_get_index_by_NID)     \
  X(X509_REQ_free)                  \
  X(X509_REQ_get0_pubkey)           \
  X(X509_REQ_get_extensions)        \
  X(X509_REQ_get_subject_name)      \
  X(X509_REQ_verify)                \
  X(X509_check_private_key)         \
  X(X509_free)                      \
  X(d2i_X509)                       \
  X(d2i_X509_REQ)

namespace coracle {

#define CORACLE_DECLARE(name) extern decltype(&::name) name;
CORACLE_CRYPTO_FUNCTIONS(CORACLE_DECLARE)
#undef CORACLE_DECLARE

// Loads libcrypto, the first time; before that, its functions must not be called. Errors: unavailable. Thread-safe.
Result<void> load_libcrypto();

}  // namespace coracle
