// SPDX-License-Identifier: Apache-2.0
// See certificates.h.
#include "daemon/api/certificates.h"

#include <arpa/inet.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

#include "daemon/auth/asn1_time.h"
#include "daemon/auth/openssl.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/client/local_socket.h"

namespace coracle::api {
namespace {

Result<openssl::PrivateKey> generate_key() {
  openssl::PrivateKey key(EVP_EC_gen("P-256"));
  if (!key) return openssl::error("make a key");
  return key;
}

// The present time or, if the clock is not set yet, a time before which this code did not exist.
WallTime believable(const Clock& clock) {
  static const WallTime earliest = MUST(parse_time("2026-01-01T00:00:00Z"));
  return std::max(clock.now(), earliest);
}

WallTime wall_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  char text[96];  // not by time_t, which may have 32 bits
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02dZ", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                parts.tm_hour, parts.tm_min, parts.tm_sec);
  auto parsed = parse_time(text);
  return parsed ? *parsed : WallTime();
}

void add_name(X509_NAME* name, const char* field, std::string_view value) {
  X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()), int(value.size()),
                             -1, 0);
}

openssl::Certificate blank(EVP_PKEY* key, const std::string& not_after) {
  openssl::Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  unsigned char serial[16];
  RAND_bytes(serial, sizeof serial);
  serial[0] &= 0x7f;
  std::unique_ptr<BIGNUM, openssl::Freer<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate.get()), std::string(kNotBefore).c_str());
  ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate.get()), not_after.c_str());
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

std::string alternative_names(const CertificateRequest& request) {
  std::vector<std::string> parts;
  for (const auto& name : request.dns_names) parts.push_back("DNS:" + name);
  for (const auto& address : request.addresses) parts.push_back("IP:" + address);
  return join(parts, ",");
}

std::string canonical_address(const unsigned char* bytes, int size) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text);
  return text;
}
std::string canonical_address(const std::string& address) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, address.c_str(), bytes) == 1) return canonical_address(bytes, 4);
  if (inet_pton(AF_INET6, address.c_str(), bytes) == 1) return canonical_address(bytes, 16);
  return {};
}

bool names_all(std::vector<std::string> has, std::vector<std::string> wants) {
  std::sort(has.begin(), has.end());
  std::sort(wants.begin(), wants.end());
  wants.erase(std::unique(wants.begin(), wants.end()), wants.end());
  return std::includes(has.begin(), has.end(), wants.begin(), wants.end());
}

// The text of a file; "" if it does not exist.
Result<std::string> read_or_nothing(const std::string& path) {
  auto text = sys::read_file(path);
  if (!text && text.error().code() == Code::not_found) return std::string();
  return text;
}

Result<void> store(const std::string& directory, const std::string& name, const KeyPair& pair) {
  TRY(sys::replace_file(directory + "/" + name + ".key", pair.key, 0600));
  TRY(sys::replace_file(directory + "/" + name + ".crt", pair.certificate, 0644));
  return {};
}

Result<KeyPair> load(const std::string& directory, const std::string& name) {
  KeyPair pair;
  pair.certificate = TRY(read_or_nothing(directory + "/" + name + ".crt"));
  pair.key = TRY(read_or_nothing(directory + "/" + name + ".key"));
  return pair;
}

bool belongs_together(const KeyPair& pair) {
  openssl::Certificate certificate = openssl::parse_certificate(pair.certificate);
  openssl::PrivateKey key = openssl::parse_private_key(pair.key);
  bool good = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return good;
}

// Whether a stored pair is still usable.
bool good_until(const KeyPair& pair, const std::string& ca, WallTime until, const PkiNames& names) {
  if (!belongs_together(pair) || !signed_by(pair.certificate, ca)) return false;
  auto info = read_certificate_info(pair.certificate);
  std::vector<std::string> addresses;
  for (const auto& address : names.addresses) addresses.push_back(canonical_address(address));
  return info && info->not_after > until && names_all(info->dns_names, names.dns_names) && names_all(info->addresses, addresses);
}

}  // namespace

Result<std::string> make_key() {
  openssl::PrivateKey key = TRY(generate_key());
  return openssl::to_pem(key.get());
}

Result<KeyPair> make_ca(std::string_view common_name) {
  openssl::PrivateKey key = TRY(generate_key());
  openssl::Certificate certificate = blank(key.get(), std::string(kCaNotAfter));
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  add_name(subject, "CN", common_name);
  X509_set_issuer_name(certificate.get(), subject);
  bool extended = openssl::add_extension(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE") &&
                  openssl::add_extension(certificate.get(), certificate.get(), NID_key_usage,
                                         "critical,digitalSignature,keyCertSign,cRLSign") &&
                  openssl::add_extension(certificate.get(), certificate.get(), NID_subject_key_identifier, "hash");
  if (!extended || X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) return openssl::error("sign the CA");
  return KeyPair{openssl::to_pem(certificate.get()), openssl::to_pem(key.get())};
}

Result<KeyPair> issue(const KeyPair& ca, const CertificateRequest& request) {
  openssl::Certificate issuer = openssl::parse_certificate(ca.certificate);
  openssl::PrivateKey issuer_key = openssl::parse_private_key(ca.key);
  if (!issuer || !issuer_key) return openssl::error("read the CA");
  openssl::PrivateKey key = TRY(generate_key());
  openssl::Certificate certificate = blank(key.get(), auth::asn1_time(request.not_after));
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  for (const auto& organization : request.organizations) add_name(subject, "O", organization);
  add_name(subject, "CN", request.common_name);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get()));
  std::string names = alternative_names(request);
  bool extended =
      openssl::add_extension(certificate.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      openssl::add_extension(certificate.get(), issuer.get(), NID_key_usage, "critical,digitalSignature") &&
      openssl::add_extension(certificate.get(), issuer.get(), NID_ext_key_usage, request.server ? "serverAuth" : "clientAuth") &&
      openssl::add_extension(certificate.get(), issuer.get(), NID_authority_key_identifier, "keyid") &&
      (names.empty() || openssl::add_extension(certificate.get(), issuer.get(), NID_subject_alt_name, names));
  if (!extended || X509_sign(certificate.get(), issuer_key.get(), EVP_sha256()) == 0)
    return openssl::error("sign a certificate for " + request.common_name);
  return KeyPair{openssl::to_pem(certificate.get()), openssl::to_pem(key.get())};
}

Result<CertificateInfo> read_certificate_info(std::string_view pem) {
  openssl::Certificate certificate = openssl::parse_certificate(pem);
  if (!certificate) return ERR_clear_error(), Error(Code::invalid, "not a certificate in PEM form");
  CertificateInfo info;
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  auto names = openssl::name_entries(subject, NID_commonName);
  if (!names.empty()) info.common_name = names.front();
  info.organizations = openssl::name_entries(subject, NID_organizationName);
  info.not_before = wall_time(X509_get0_notBefore(certificate.get()));
  info.not_after = wall_time(X509_get0_notAfter(certificate.get()));
  openssl::GeneralNames alternatives(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; alternatives && i < sk_GENERAL_NAME_num(alternatives.get()); i++) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives.get(), i);
    const ASN1_STRING* value = name->type == GEN_DNS ? name->d.dNSName : name->type == GEN_IPADD ? name->d.iPAddress : nullptr;
    if (!value) continue;
    const unsigned char* bytes = ASN1_STRING_get0_data(value);
    int size = ASN1_STRING_length(value);
    if (name->type == GEN_DNS) info.dns_names.emplace_back(reinterpret_cast<const char*>(bytes), size_t(size));
    else info.addresses.push_back(canonical_address(bytes, size));
  }
  std::sort(info.dns_names.begin(), info.dns_names.end());
  std::sort(info.addresses.begin(), info.addresses.end());
  return info;
}

bool signed_by(std::string_view certificate, std::string_view ca) {
  openssl::Certificate one = openssl::parse_certificate(certificate), issuer = openssl::parse_certificate(ca);
  bool good = one && issuer && X509_verify(one.get(), X509_get0_pubkey(issuer.get())) == 1;
  ERR_clear_error();
  return good;
}

std::string sha256_fingerprint(std::string_view certificate) {
  openssl::Certificate one = openssl::parse_certificate(certificate);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!one || X509_digest(one.get(), EVP_sha256(), digest, &size) != 1) return {};
  return hex({reinterpret_cast<char*>(digest), size});
}

Result<Pki> Pki::open(const std::string& directory, const PkiNames& names, const Clock& clock) {
  TRY(sys::make_directories(directory, 0700).wrap("make the certificate directory"));
  Pki pki;
  pki.directory_ = directory;
  pki.ca_ = TRY(load(directory, "ca"));
  if (pki.ca_.certificate.empty() && pki.ca_.key.empty()) {
    pki.ca_ = TRY(make_ca("coracle-ca"));
    TRY(store(directory, "ca", pki.ca_));
  }
  if (!belongs_together(pki.ca_))
    return Error(Code::invalid,
                 directory + "/ca.crt and ca.key do not belong together; restore them, or remove both to start anew");
  pki.token_key_ = TRY(read_or_nothing(directory + "/sa.key"));
  if (pki.token_key_.empty()) {
    pki.token_key_ = TRY(make_key());
    TRY(sys::replace_file(directory + "/sa.key", pki.token_key_, 0600));
  }
  pki.serving_ = TRY(load(directory, "serving"));
  pki.admin_ = TRY(load(directory, "admin"));
  TRY(pki.renew(names, clock));
  return pki;
}

Result<bool> Pki::renew(const PkiNames& names, const Clock& clock) {
  bool changed = false;
  if (!good_until(serving_, ca_.certificate, believable(clock) + kServingRenewBefore, names)) {
    CertificateRequest request;
    request.common_name = "coracle";
    request.dns_names = names.dns_names, request.addresses = names.addresses;
    request.server = true;
    request.not_after = believable(clock) + kServingLifetime;
    serving_ = TRY(issue(ca_, request));
    TRY(store(directory_, "serving", serving_));
    changed = true;
  }
  if (!good_until(admin_, ca_.certificate, believable(clock) + kClientRenewBefore, {})) {
    admin_ = TRY(client("kubernetes-admin", {"system:masters"}, clock));
    TRY(store(directory_, "admin", admin_));
    changed = true;
  }
  return changed;
}

Result<KeyPair> Pki::client(std::string_view common_name, const std::vector<std::string>& organizations,
                            const Clock& clock) const {
  CertificateRequest request;
  request.common_name = common_name;
  request.organizations = organizations;
  request.not_after = believable(clock) + kClientLifetime;
  return issue(ca_, request);
}

std::string make_kubeconfig(std::string_view server, std::string_view ca, const KeyPair& client, std::string_view socket) {
  std::string text = "apiVersion: v1\nkind: Config\ncurrent-context: coracle\nclusters:\n- name: coracle\n  cluster:\n";
  text += "    server: " + std::string(server) + "\n    certificate-authority-data: " + base64_encode(ca) + "\n";
  text += "contexts:\n- name: coracle\n  context:\n    cluster: coracle\n    user: admin\n";
  if (!socket.empty()) {
    text += "    extensions:\n    - name: " + std::string(kLocalSocketExtension) + "\n";
    text += "      extension: {path: " + quoted(socket) + "}\n";
  }
  text += "users:\n- name: admin\n  user:\n";
  text += "    client-certificate-data: " + base64_encode(client.certificate) + "\n";
  text += "    client-key-data: " + base64_encode(client.key) + "\n";
  return text;
}

Result<void> write_kubeconfig(const std::string& path, std::string_view text) {
  std::string there = TRY(read_or_nothing(path));
  if (there == text) return {};
  return sys::replace_file(path, text, 0600).wrap("write " + path);
}

}  // namespace coracle::api
