// SPDX-License-Identifier: Apache-2.0
// Our own certification authority, and what it signs: the serving certificate, client certificates. All keys are ECDSA P-256.
// Certificates are valid from kNotBefore, where clocks begin, so that a board that boots without knowing the time starts;
// serving certificates renew themselves before they end, or when the machine's addresses have changed.
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
  bool server = false;                            // else for clients
  WallTime not_after;
};

struct CertificateFacts {
  std::string common_name;
  std::vector<std::string> organizations, dns_names, addresses;  // sorted; addresses as inet_ntop writes them
  WallTime not_before, not_after;
};

Result<std::string> make_key();  // PKCS#8 PEM
Result<KeyPair> make_ca(std::string_view common_name);
Result<KeyPair> issue(const KeyPair& ca, const CertificateRequest& request);
Result<CertificateFacts> read_facts(std::string_view certificate);  // Errors: invalid
bool signed_by(std::string_view certificate, std::string_view ca);
std::string sha256_fingerprint(std::string_view certificate);  // of the DER, hex

struct PkiNames {  // what the serving certificate must be good for
  std::vector<std::string> dns_names, addresses;
};

// The pki directory: made where it is missing, mended where it is damaged or out of date.
class Pki {
 public:
  // Errors: what the disk said. A damaged CA is an error, never replaced: every client trusts it.
  static Result<Pki> open(const std::string& directory, const PkiNames& names, const Clock& clock);

  const KeyPair& ca() const { return ca_; }
  const KeyPair& serving() const { return serving_; }
  const KeyPair& admin() const { return admin_; }
  const std::string& token_key() const { return token_key_; }

  // Issues anew what is about to end or does not name all of `names`. True: something changed.
  Result<bool> renew(const PkiNames& names, const Clock& clock);
  Result<KeyPair> client(std::string_view common_name, const std::vector<std::string>& organizations, const Clock& clock) const;

 private:
  std::string directory_;
  KeyPair ca_, serving_, admin_;
  std::string token_key_;
};

// A kubeconfig for `server` with everything embedded.
std::string make_kubeconfig(std::string_view server, std::string_view ca, const KeyPair& client);
// Writes it, readable by root only, when it says something else than what is there.
Result<void> write_kubeconfig(const std::string& path, std::string_view text);

}  // namespace coracle::api
