// SPDX-License-Identifier: Apache-2.0
// See certificate_request.h.
#include "daemon/access/certificate_request.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <set>

#include "daemon/access/asn1_time.h"
#include "runtime/base/text.h"

namespace coracle::access {
namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* what) const {
    Free(what);
  }
};
void free_names(GENERAL_NAMES* names) { GENERAL_NAMES_free(names); }
void free_extensions(STACK_OF(X509_EXTENSION) * all) { sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free); }
using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using Request = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<free_names>>;
using Extensions = std::unique_ptr<STACK_OF(X509_EXTENSION), Freer<free_extensions>>;

struct Usage {
  std::string_view name, key, extended;  // OpenSSL's words; one of them
};
constexpr Usage kUsages[] = {{"signing", "digitalSignature", ""},
                             {"digital signature", "digitalSignature", ""},
                             {"content commitment", "nonRepudiation", ""},
                             {"key encipherment", "keyEncipherment", ""},
                             {"key agreement", "keyAgreement", ""},
                             {"data encipherment", "dataEncipherment", ""},
                             {"cert sign", "keyCertSign", ""},
                             {"crl sign", "cRLSign", ""},
                             {"encipher only", "encipherOnly", ""},
                             {"decipher only", "decipherOnly", ""},
                             {"any", "", "anyExtendedKeyUsage"},
                             {"server auth", "", "serverAuth"},
                             {"client auth", "", "clientAuth"},
                             {"code signing", "", "codeSigning"},
                             {"email protection", "", "emailProtection"},
                             {"s/mime", "", "emailProtection"},
                             {"ipsec end system", "", "1.3.6.1.5.5.7.3.5"},
                             {"ipsec tunnel", "", "1.3.6.1.5.5.7.3.6"},
                             {"ipsec user", "", "1.3.6.1.5.5.7.3.7"},
                             {"timestamping", "", "timeStamping"},
                             {"ocsp signing", "", "OCSPSigning"},
                             {"microsoft sgc", "", "msSGC"},
                             {"netscape sgc", "", "nsSGC"}};

Error openssl_error(std::string_view doing) {
  char text[256] = "unknown error";
  if (unsigned long number = ERR_get_error()) ERR_error_string_n(number, text, sizeof text);
  ERR_clear_error();
  return Error(Code::internal, std::string(doing) + ": " + text);
}

Bio memory(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), int(text.size()))); }

Result<Request> parse(std::string_view base64) {
  std::string pem = TRY(base64_decode(base64));
  Request request(PEM_read_bio_X509_REQ(memory(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!request) return Error(Code::invalid, "the certificate request cannot be read");
  return request;
}

std::string text_of(const ASN1_STRING* from) {
  unsigned char* text = nullptr;
  int size = ASN1_STRING_to_UTF8(&text, from);
  if (size < 0) return {};
  std::string out(reinterpret_cast<char*>(text), size_t(size));
  OPENSSL_free(text);
  return out;
}

std::vector<std::string> entries(X509_NAME* name, int nid) {
  std::vector<std::string> out;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;)
    out.push_back(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at))));
  return out;
}

std::string address_text(const ASN1_OCTET_STRING* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  int size = ASN1_STRING_length(bytes);
  if (size != 4 && size != 16) return {};
  inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return text;
}

// The alternative names of the four kinds that are passed on; nullptr: none.
Names names_of(X509_REQ* request) {
  Extensions extensions(X509_REQ_get_extensions(request));
  if (!extensions) return nullptr;
  Names all(static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)));
  if (!all) return nullptr;
  for (int i = sk_GENERAL_NAME_num(all.get()) - 1; i >= 0; --i) {
    int type = sk_GENERAL_NAME_value(all.get(), i)->type;
    if (type == GEN_DNS || type == GEN_IPADD || type == GEN_EMAIL || type == GEN_URI) continue;
    GENERAL_NAME_free(sk_GENERAL_NAME_delete(all.get(), i));
  }
  return all;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>> extension(
      X509V3_EXT_nconf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool add_usages(X509* certificate, X509* issuer, const std::vector<std::string>& usages) {
  std::vector<std::string> keys, extended;
  for (const Usage& usage : kUsages) {
    if (std::find(usages.begin(), usages.end(), usage.name) == usages.end()) continue;
    auto& list = usage.key.empty() ? extended : keys;
    std::string word(usage.key.empty() ? usage.extended : usage.key);
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(std::move(word));
  }
  bool good = keys.empty() || add_extension(certificate, issuer, NID_key_usage, "critical," + join(keys, ","));
  return good && (extended.empty() || add_extension(certificate, issuer, NID_ext_key_usage, join(extended, ",")));
}

// As Go prints a set of usages: sorted, in brackets.
std::string expected(std::initializer_list<std::string_view> usages) {
  std::string text = "usages did not match [";
  for (std::string_view usage : usages) text += (text.ends_with('[') ? "" : " ") + std::string(usage);
  return text + "]";
}

bool exactly(const std::vector<std::string>& usages, std::string_view auth) {
  std::set<std::string_view> given(usages.begin(), usages.end());
  std::set<std::string_view> with{"digital signature", "key encipherment", auth}, without{"digital signature", auth};
  return given == with || given == without;
}

std::string node_problem(const RequestFacts& facts) {
  if (facts.organizations != std::vector<std::string>{"system:nodes"}) return "subject organization is not system:nodes";
  return {};
}

std::string serving_problem(const RequestFacts& facts, const std::vector<std::string>& usages) {
  if (std::string problem = node_problem(facts); !problem.empty()) return problem;
  if (facts.dns_names.empty() && facts.addresses.empty()) return "DNS or IP subjectAltName is required";
  if (!facts.emails.empty()) return "Email subjectAltNames are not allowed";
  if (!facts.uris.empty()) return "URI subjectAltNames are not allowed";
  if (!exactly(usages, "server auth")) return expected({"digital signature", "key encipherment", "server auth"});
  if (!facts.common_name.starts_with("system:node:")) return "subject common name does not begin with system:node: ";
  return {};
}

std::string kubelet_client_problem(const RequestFacts& facts, const std::vector<std::string>& usages) {
  if (std::string problem = node_problem(facts); !problem.empty()) return problem;
  if (!facts.dns_names.empty()) return "DNS subjectAltNames are not allowed";
  if (!facts.emails.empty()) return "Email subjectAltNames are not allowed";
  if (!facts.addresses.empty()) return "IP subjectAltNames are not allowed";
  if (!facts.uris.empty()) return "URI subjectAltNames are not allowed";
  if (!facts.common_name.starts_with("system:node:")) return "subject common name does not begin with system:node: ";
  if (!exactly(usages, "client auth")) return expected({"client auth", "digital signature", "key encipherment"});
  return {};
}

std::string client_problem(const std::vector<std::string>& usages) {
  bool client = false;
  for (const std::string& usage : usages) {
    bool optional = usage == "digital signature" || usage == "key encipherment";
    client = client || usage == "client auth";
    if (!optional && usage != "client auth") return "invalid usage for client certificate: " + usage;
  }
  return client ? std::string() : "missing required usage for client certificate: client auth";
}

}  // namespace

Result<RequestFacts> read_certificate_request(std::string_view text) {
  Request request = TRY(parse(text));
  RequestFacts facts;
  X509_NAME* subject = X509_REQ_get_subject_name(request.get());
  auto names = entries(subject, NID_commonName);
  if (!names.empty()) facts.common_name = names.back();
  facts.organizations = entries(subject, NID_organizationName);
  Names alternative = names_of(request.get());
  for (int i = 0; alternative && i < sk_GENERAL_NAME_num(alternative.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternative.get(), i);
    if (name->type == GEN_DNS) facts.dns_names.push_back(text_of(name->d.dNSName));
    else if (name->type == GEN_EMAIL) facts.emails.push_back(text_of(name->d.rfc822Name));
    else if (name->type == GEN_URI) facts.uris.push_back(text_of(name->d.uniformResourceIdentifier));
    else facts.addresses.push_back(address_text(name->d.iPAddress));
  }
  return facts;
}

bool is_built_in(std::string_view signer) {
  return signer == kApiClientSigner || signer == kKubeletClientSigner || signer == kKubeletServingSigner ||
         signer == kLegacySigner;
}

std::string signer_problem(std::string_view signer, const RequestFacts& facts, const std::vector<std::string>& usages) {
  if (signer == kKubeletServingSigner) return serving_problem(facts, usages);
  if (signer == kKubeletClientSigner) return kubelet_client_problem(facts, usages);
  if (signer == kApiClientSigner) return client_problem(usages);
  return {};
}

Result<std::string> sign_certificate(const Authority& authority, std::string_view text, const Signing& signing) {
  Request request = TRY(parse(text));
  Certificate issuer(PEM_read_bio_X509(memory(authority.certificate).get(), nullptr, nullptr, nullptr));
  PrivateKey key(PEM_read_bio_PrivateKey(memory(authority.key).get(), nullptr, nullptr, nullptr));
  if (!issuer || !key) return openssl_error("read the authority");
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return openssl_error("make a serial number");
  serial[0] = uint8_t((serial[0] & 0x7f) | 0x40);
  std::unique_ptr<BIGNUM, Freer<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate.get()), asn1_time(signing.not_before).c_str());
  ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate.get()), asn1_time(signing.not_after).c_str());
  X509_set_subject_name(certificate.get(), X509_REQ_get_subject_name(request.get()));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get()));
  X509_set_pubkey(certificate.get(), X509_REQ_get0_pubkey(request.get()));
  bool good = add_extension(certificate.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
              add_usages(certificate.get(), issuer.get(), signing.usages) &&
              add_extension(certificate.get(), issuer.get(), NID_authority_key_identifier, "keyid");
  if (Names names = names_of(request.get()); good && names && sk_GENERAL_NAME_num(names.get()) > 0)
    good = X509_add1_ext_i2d(certificate.get(), NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) == 1;
  if (!good || X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) return openssl_error("sign a certificate");
  Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate.get());
  char* data = nullptr;
  long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, size_t(size));
}

}  // namespace coracle::access
