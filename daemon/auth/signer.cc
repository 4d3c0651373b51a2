// SPDX-License-Identifier: Apache-2.0
// See signer.h.
#include "daemon/auth/signer.h"

#include <algorithm>

#include "daemon/auth/string_lists.h"
#include "runtime/base/text.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::auth {
namespace {

constexpr std::chrono::minutes kBackdate{5}, kShortest{10};

User asker(view::CertificateSigningRequestSpec request) {
  User user;
  user.name = request.username(), user.uid = request.uid();
  user.groups = strings(request.groups());
  for (const auto& [key, values] : request.extra())
    if (values.is_array())
      for (const json::value& value : values.get_array())
        if (const json::string* text = value.if_string()) user.extra[std::string(key)].emplace_back(text->data(), text->size());
  return user;
}

}  // namespace

Result<std::optional<std::string>> approval_of(const json::value& request, const Authorizer& authorizer) {
  view::CertificateSigningRequestSpec spec = view::CertificateSigningRequest(request).spec();
  auto csr = read_certificate_request(spec.request());
  bool of_node = csr && spec.signer_name() == kKubeletClientSigner &&
                 signer_problem(kKubeletClientSigner, *csr, strings(spec.usages())).empty();
  if (!of_node) return std::optional<std::string>();
  User user = asker(spec);
  auto may = [&](std::string subresource) {
    return authorizer
        .authorize(user,
                   {"create", "certificates.k8s.io", "certificatesigningrequests", std::move(subresource), "", "", "", true, ""})
        .allowed;
  };
  bool own = user.name == csr->common_name;
  if (own && may("selfnodeclient"))
    return std::optional<std::string>("Auto approving self kubelet client certificate after SubjectAccessReview.");
  if (may("nodeclient"))
    return std::optional<std::string>("Auto approving kubelet client certificate after SubjectAccessReview.");
  return forbidden(kCertificateSigningRequest, view::CertificateSigningRequest(request).metadata().name(),
                   std::string("recognized csr as [") + (own ? "selfnodeclient nodeclient" : "nodeclient") +
                       "] but subject access review was not approved");
}

Result<Outcome> signed_request(const json::value& request, const Authority& authority, WallTime now) {
  view::CertificateSigningRequestSpec spec = view::CertificateSigningRequest(request).spec();
  Signing signing;
  signing.usages = strings(spec.usages());
  CertificateRequestInfo csr = TRY(read_certificate_request(spec.request()));
  std::string problem = signer_problem(spec.signer_name(), csr, signing.usages);
  if (!problem.empty()) return Outcome{"", problem};
  std::chrono::seconds lifetime = kSignedLifetimeMax;
  if (spec.has_expiration_seconds())
    lifetime = std::clamp<std::chrono::seconds>(std::chrono::seconds(spec.expiration_seconds()), kShortest, kSignedLifetimeMax);
  signing.not_before = now - kBackdate, signing.not_after = now + lifetime;
  std::string certificate = TRY(sign_certificate(authority, spec.request(), signing));
  return Outcome{std::move(certificate), ""};
}

}  // namespace coracle::auth
