// SPDX-License-Identifier: Apache-2.0
// Registers this folder. CertificateSigningRequests.
#include "store/kinds/certificate/certificate_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kCertificateKinds[] = {
    {.api_version = "certificates.k8s.io/v1",
     .resource = "certificatesigningrequests",
     .update = check_certificate_request_update,
     .status = check_certificate_request_status},
};

}  // namespace

extern const KindFamily certificate_family;
const KindFamily certificate_family{
    .validation = {certificate_rules},
    .cells = {certificate_cells},
    .kinds = kCertificateKinds,
};

}  // namespace coracle::schema
