// SPDX-License-Identifier: Apache-2.0
// The cluster's certificate authority and the certificates that it signs: the serving certificate and client certificates. All
// keys are ECDSA P-256. Certificates are valid from kNotBefore, the start of Unix time, so that a board without a correct clock
// can start. Serving certificates are renewed before they expire or when the machine's addresses have changed.
//   pki directory: ca.crt ca.key serving.crt serving.key admin.crt admin.key sa.key
// Source: RFC 5280; Kubernetes "PKI certificates and requirements".
#pragma once

#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::api {

constexpr std::string_view kNotBefore = "19700101000000Z";
constexpr std::string_view kCaNotAfter = "20700101000000Z";
constexpr std::chrono::hours kServingLifetime{24 * 365};
constexpr std::chrono::hours kServingRenewBefore{24 * 60};
constexpr std::chrono::hours kClientLifetime{24 * 3650};
constexpr std::chrono::hours kClientRenewBefore{24 * 365};

struct KeyPair {
  std::string certificate, key;  // PEM
};

struct CertificateRequest {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names, addresses;  // of a server
  bool server = false;                            // a server certificate; otherwise a client certificate
  WallTime not_after;
};

struct CertificateInfo {
  std::string common_name;
  std::vector<std::string> organizations, dns_names, addresses;  // sorted; addresses in the format of inet_ntop
  WallTime not_before, not_after;
};

Result<std::string> make_key();  // PKCS#8 PEM. Errors of this and of the next two: internal, with OpenSSL's reason
Result<KeyPair> make_ca(std::string_view common_name);
Result<KeyPair> issue(const KeyPair& ca, const CertificateRequest& request);
Result<CertificateInfo> read_certificate_info(std::string_view certificate);  // Errors: invalid
bool signed_by(std::string_view certificate, std::string_view ca);
std::string sha256_fingerprint(std::string_view certificate);  // of the DER encoding, in hexadecimal

struct PkiNames {  // the names that the serving certificate must contain
  std::vector<std::string> dns_names, addresses;
};

// The pki directory: created if it is missing, repaired if it is damaged or expired.
class Pki {
 public:
  // Errors: file errors. A damaged CA is an error and is never replaced, because every client trusts it.
  static Result<Pki> open(const std::string& directory, const PkiNames& names, const Clock& clock);

  const KeyPair& ca() const { return ca_; }
  const KeyPair& serving() const { return serving_; }
  const KeyPair& admin() const { return admin_; }
  const std::string& token_key() const { return token_key_; }

  // Issues new certificates for those that expire soon or lack one of `names`. Returns whether something changed. Errors: those
  // of issue(), and of the files.
  Result<bool> renew(const PkiNames& names, const Clock& clock);
  // A client certificate of this authority, which is not stored. Errors: those of issue().
  Result<KeyPair> client(std::string_view common_name, const std::vector<std::string>& organizations, const Clock& clock) const;

 private:
  std::string directory_;
  KeyPair ca_, serving_, admin_;
  std::string token_key_;
};

// A kubeconfig for `server` with embedded certificates and key. `socket`: the path of the local socket; "": there is none.
std::string make_kubeconfig(std::string_view server, std::string_view ca, const KeyPair& client, std::string_view socket = {});
// Writes the file, readable by root only, if its content differs. Errors: of the file.
Result<void> write_kubeconfig(const std::string& path, std::string_view text);

}  // namespace coracle::api
