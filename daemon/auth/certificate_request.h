// SPDX-License-Identifier: Apache-2.0
// Certificate signing requests: parsing, the rules of the built-in signers, and signing with OpenSSL.
//   CertificateSigningRequest ──read──▶ CertificateRequestInfo ──signer_problem──▶ "" | the reason of a rejection;   sign ──▶ PEM
// Source: Kubernetes "Certificate Signing Requests", signers; pkg/controller/certificates, apis/certificates (rules, texts); RFC
// 2986, 5280.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::auth {

inline constexpr std::string_view kApiClientSigner = "kubernetes.io/kube-apiserver-client",
                                  kKubeletClientSigner = "kubernetes.io/kube-apiserver-client-kubelet",
                                  kKubeletServingSigner = "kubernetes.io/kubelet-serving",
                                  kLegacySigner = "kubernetes.io/legacy-unknown";

struct CertificateRequestInfo {
  std::string common_name;
  std::vector<std::string> organizations, dns_names, addresses, emails, uris;
};

// `request` is spec.request: PEM in base64. Errors: invalid.
Result<CertificateRequestInfo> read_certificate_request(std::string_view request);

bool is_built_in(std::string_view signer);
// The reason why the signer rejects this request; "" if it signs it. Pure.
std::string signer_problem(std::string_view signer, const CertificateRequestInfo& csr, const std::vector<std::string>& usages);

struct Authority {
  std::string certificate, key;  // PEM
};

struct Signing {
  std::vector<std::string> usages;
  WallTime not_before, not_after;
};

// The certificate in PEM, with the request's subject, names and key. Errors: invalid for the request, internal for the authority.
Result<std::string> sign_certificate(const Authority& authority, std::string_view request, const Signing& signing);

}  // namespace coracle::auth
