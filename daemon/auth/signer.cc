// SPDX-License-Identifier: Apache-2.0
// See signer.h.
#include "daemon/auth/signer.h"

#include <algorithm>

#include "daemon/auth/string_lists.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::auth {
namespace {

constexpr std::chrono::minutes kBackdate{5}, kShortest{10};

User asker(const json::value& request) {
  User user;
  user.name = get_string(request, "spec.username"), user.uid = get_string(request, "spec.uid");
  user.groups = strings_at(request, "spec.groups");
  for (const auto& [key, values] : get_object(request, "spec.extra"))
    if (values.is_array())
      for (const json::value& value : values.get_array())
        if (const json::string* text = value.if_string()) user.extra[std::string(key)].emplace_back(text->data(), text->size());
  return user;
}

}  // namespace

Result<std::optional<std::string>> approval_of(const json::value& request, const Authorizer& authorizer) {
  auto csr = read_certificate_request(get_string(request, "spec.request"));
  bool of_node = csr && get_string(request, "spec.signerName") == kKubeletClientSigner &&
                 signer_problem(kKubeletClientSigner, *csr, strings_at(request, "spec.usages")).empty();
  if (!of_node) return std::optional<std::string>();
  User user = asker(request);
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
  return forbidden(kCertificateSigningRequest, get_string(request, "metadata.name"),
                   std::string("recognized csr as [") + (own ? "selfnodeclient nodeclient" : "nodeclient") +
                       "] but subject access review was not approved");
}

Result<Outcome> signed_request(const json::value& request, const Authority& authority, WallTime now) {
  Signing signing;
  signing.usages = strings_at(request, "spec.usages");
  CertificateRequestInfo csr = TRY(read_certificate_request(get_string(request, "spec.request")));
  std::string problem = signer_problem(get_string(request, "spec.signerName"), csr, signing.usages);
  if (!problem.empty()) return Outcome{"", problem};
  std::chrono::seconds lifetime = kSignedLifetimeMax;
  if (const json::value* asked = find(request, "spec.expirationSeconds"); asked && asked->is_int64())
    lifetime = std::clamp<std::chrono::seconds>(std::chrono::seconds(asked->get_int64()), kShortest, kSignedLifetimeMax);
  signing.not_before = now - kBackdate, signing.not_after = now + lifetime;
  std::string certificate = TRY(sign_certificate(authority, get_string(request, "spec.request"), signing));
  return Outcome{std::move(certificate), ""};
}

}  // namespace coracle::auth
