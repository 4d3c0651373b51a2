// SPDX-License-Identifier: Apache-2.0
// See certificate_request.h.
#include "daemon/auth/certificate_request.h"

#include <arpa/inet.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>
#include <set>

#include "daemon/auth/asn1_time.h"
#include "daemon/auth/openssl.h"
#include "runtime/base/text.h"

namespace coracle::auth {
namespace {

void free_extensions(STACK_OF(X509_EXTENSION) * all) { sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free); }
using Request = std::unique_ptr<X509_REQ, openssl::Freer<X509_REQ_free>>;
using Extensions = std::unique_ptr<STACK_OF(X509_EXTENSION), openssl::Freer<free_extensions>>;

struct Usage {
  std::string_view name, key, extended;  // OpenSSL's names; one of the two is set
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

Result<Request> decode_request(std::string_view base64) {
  std::string pem = TRY(base64_decode(base64));
  Request request(PEM_read_bio_X509_REQ(openssl::memory_bio(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!request) return Error(Code::invalid, "the certificate request cannot be read");
  return request;
}

std::string asn1_text(const ASN1_STRING* from) { return openssl::utf8_text(from).value_or(std::string()); }

std::vector<std::string> entries(X509_NAME* name, int nid) {
  std::vector<std::string> out;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;)
    out.push_back(asn1_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at))));
  return out;
}

std::string address_text(const ASN1_OCTET_STRING* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  int size = ASN1_STRING_length(bytes);
  if (size != 4 && size != 16) return {};
  inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return text;
}

// The subject alternative names of the four supported kinds; nullptr if there are none.
openssl::GeneralNames names_of(X509_REQ* request) {
  Extensions extensions(X509_REQ_get_extensions(request));
  if (!extensions) return nullptr;
  openssl::GeneralNames all(
      static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)));
  if (!all) return nullptr;
  for (int i = sk_GENERAL_NAME_num(all.get()) - 1; i >= 0; --i) {
    int type = sk_GENERAL_NAME_value(all.get(), i)->type;
    if (type == GEN_DNS || type == GEN_IPADD || type == GEN_EMAIL || type == GEN_URI) continue;
    GENERAL_NAME_free(sk_GENERAL_NAME_delete(all.get(), i));
  }
  return all;
}

bool add_usages(X509* certificate, X509* issuer, const std::vector<std::string>& usages) {
  std::vector<std::string> keys, extended;
  for (const Usage& usage : kUsages) {
    if (std::find(usages.begin(), usages.end(), usage.name) == usages.end()) continue;
    auto& list = usage.key.empty() ? extended : keys;
    std::string word(usage.key.empty() ? usage.extended : usage.key);
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(std::move(word));
  }
  bool good = keys.empty() || openssl::add_extension(certificate, issuer, NID_key_usage, "critical," + join(keys, ","));
  return good && (extended.empty() || openssl::add_extension(certificate, issuer, NID_ext_key_usage, join(extended, ",")));
}

// A set of usages in Go's format: sorted, in brackets.
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

std::string node_problem(const CertificateRequestInfo& csr) {
  if (csr.organizations != std::vector<std::string>{"system:nodes"}) return "subject organization is not system:nodes";
  return {};
}

std::string serving_problem(const CertificateRequestInfo& csr, const std::vector<std::string>& usages) {
  if (std::string problem = node_problem(csr); !problem.empty()) return problem;
  if (csr.dns_names.empty() && csr.addresses.empty()) return "DNS or IP subjectAltName is required";
  if (!csr.emails.empty()) return "Email subjectAltNames are not allowed";
  if (!csr.uris.empty()) return "URI subjectAltNames are not allowed";
  if (!exactly(usages, "server auth")) return expected({"digital signature", "key encipherment", "server auth"});
  if (!csr.common_name.starts_with("system:node:")) return "subject common name does not begin with system:node: ";
  return {};
}

std::string kubelet_client_problem(const CertificateRequestInfo& csr, const std::vector<std::string>& usages) {
  if (std::string problem = node_problem(csr); !problem.empty()) return problem;
  if (!csr.dns_names.empty()) return "DNS subjectAltNames are not allowed";
  if (!csr.emails.empty()) return "Email subjectAltNames are not allowed";
  if (!csr.addresses.empty()) return "IP subjectAltNames are not allowed";
  if (!csr.uris.empty()) return "URI subjectAltNames are not allowed";
  if (!csr.common_name.starts_with("system:node:")) return "subject common name does not begin with system:node: ";
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

Result<CertificateRequestInfo> read_certificate_request(std::string_view text) {
  Request request = TRY(decode_request(text));
  CertificateRequestInfo csr;
  X509_NAME* subject = X509_REQ_get_subject_name(request.get());
  auto names = entries(subject, NID_commonName);
  if (!names.empty()) csr.common_name = names.back();
  csr.organizations = entries(subject, NID_organizationName);
  openssl::GeneralNames alternative = names_of(request.get());
  for (int i = 0; alternative && i < sk_GENERAL_NAME_num(alternative.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternative.get(), i);
    if (name->type == GEN_DNS) csr.dns_names.push_back(asn1_text(name->d.dNSName));
    else if (name->type == GEN_EMAIL) csr.emails.push_back(asn1_text(name->d.rfc822Name));
    else if (name->type == GEN_URI) csr.uris.push_back(asn1_text(name->d.uniformResourceIdentifier));
    else csr.addresses.push_back(address_text(name->d.iPAddress));
  }
  return csr;
}

bool is_built_in(std::string_view signer) {
  return signer == kApiClientSigner || signer == kKubeletClientSigner || signer == kKubeletServingSigner ||
         signer == kLegacySigner;
}

std::string signer_problem(std::string_view signer, const CertificateRequestInfo& csr, const std::vector<std::string>& usages) {
  if (signer == kKubeletServingSigner) return serving_problem(csr, usages);
  if (signer == kKubeletClientSigner) return kubelet_client_problem(csr, usages);
  if (signer == kApiClientSigner) return client_problem(usages);
  return {};
}

Result<std::string> sign_certificate(const Authority& authority, std::string_view text, const Signing& signing) {
  Request request = TRY(decode_request(text));
  openssl::Certificate issuer = openssl::parse_certificate(authority.certificate);
  openssl::PrivateKey key = openssl::parse_private_key(authority.key);
  if (!issuer || !key) return openssl::error("read the authority");
  openssl::Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return openssl::error("make a serial number");
  serial[0] = uint8_t((serial[0] & 0x7f) | 0x40);
  std::unique_ptr<BIGNUM, openssl::Freer<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate.get()), asn1_time(signing.not_before).c_str());
  ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate.get()), asn1_time(signing.not_after).c_str());
  X509_set_subject_name(certificate.get(), X509_REQ_get_subject_name(request.get()));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get()));
  X509_set_pubkey(certificate.get(), X509_REQ_get0_pubkey(request.get()));
  bool good = openssl::add_extension(certificate.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
              add_usages(certificate.get(), issuer.get(), signing.usages) &&
              openssl::add_extension(certificate.get(), issuer.get(), NID_authority_key_identifier, "keyid");
  if (openssl::GeneralNames names = names_of(request.get()); good && names && sk_GENERAL_NAME_num(names.get()) > 0)
    good = X509_add1_ext_i2d(certificate.get(), NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) == 1;
  if (!good || X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) return openssl::error("sign a certificate");
  return openssl::to_pem(certificate.get());
}

}  // namespace coracle::auth
