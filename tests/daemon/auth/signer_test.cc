// SPDX-License-Identifier: Apache-2.0
// Certificate requests: their content, the choice of the signer, and the issued certificate.
#include "daemon/auth/signer.h"

#include <gtest/gtest.h>

#include "tests/daemon/auth/auth_fixture.h"
#include "tests/daemon/auth/certificate_text.h"

namespace coracle::auth {
namespace {

Authority make_authority() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), "19700101000000Z");
  ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "20700101000000Z");
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>("ca"), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_set_pubkey(certificate, key);
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* id = X509V3_EXT_nconf_nid(nullptr, &context, NID_subject_key_identifier, "hash");
  X509_add_ext(certificate, id, -1);
  X509_EXTENSION_free(id);
  X509_sign(certificate, key, EVP_sha256());
  auto text = [](auto write) {
    BIO* out = BIO_new(BIO_s_mem());
    write(out);
    char* data = nullptr;
    long size = BIO_get_mem_data(out, &data);
    std::string copy(data, size_t(size));
    BIO_free(out);
    return copy;
  };
  Authority authority{text([&](BIO* out) { PEM_write_bio_X509(out, certificate); }),
                      text([&](BIO* out) { PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr); })};
  X509_free(certificate), EVP_PKEY_free(key);
  return authority;
}

X509* read(const std::string& pem) {
  BIO* in = BIO_new_mem_buf(pem.data(), int(pem.size()));
  X509* certificate = PEM_read_bio_X509(in, nullptr, nullptr, nullptr);
  BIO_free(in);
  return certificate;
}

std::string shown(const std::string& pem) {  // as `openssl x509 -text` prints it, without blanks, which differ between versions
  X509* certificate = read(pem);
  BIO* out = BIO_new(BIO_s_mem());
  X509_print(out, certificate);
  char* data = nullptr;
  long size = BIO_get_mem_data(out, &data);
  std::string text(data, size_t(size));
  BIO_free(out), X509_free(certificate);
  std::erase(text, ' ');
  return text;
}

TEST(CertificateRequests, tell_their_subject_and_names) {
  CertificateRequestInfo csr =
      MUST(read_certificate_request(request_text("/O=a/O=b/CN=c", "DNS:x.y,IP:1.2.3.4,IP:::1,email:m@x,URI:spiffe://a/b")));
  EXPECT_EQ(csr.common_name, "c");
  EXPECT_EQ(csr.organizations, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(csr.dns_names, std::vector<std::string>{"x.y"});
  EXPECT_EQ(csr.addresses, (std::vector<std::string>{"1.2.3.4", "::1"}));
  EXPECT_EQ(csr.emails, std::vector<std::string>{"m@x"});
  EXPECT_EQ(csr.uris, std::vector<std::string>{"spiffe://a/b"});
  EXPECT_FALSE(read_certificate_request("nonsense"));
  EXPECT_FALSE(read_certificate_request(base64_encode("nonsense")));
}

TEST(CertificateRequests, are_signed_by_the_rules_of_their_signer) {
  std::vector<std::string> client{"client auth", "digital signature"},
      server{"server auth", "digital signature", "key encipherment"};
  CertificateRequestInfo node{"system:node:n", {"system:nodes"}, {}, {}, {}, {}};
  auto problem = [&](std::string_view signer, const CertificateRequestInfo& csr, const std::vector<std::string>& usages) {
    return signer_problem(signer, csr, usages);
  };
  EXPECT_EQ(problem(kKubeletClientSigner, node, client), "");
  EXPECT_EQ(problem(kKubeletClientSigner, node, server), "usages did not match [client auth digital signature key encipherment]");
  CertificateRequestInfo changed = node;
  changed.organizations = {"system:nodes", "system:masters"};
  EXPECT_EQ(problem(kKubeletClientSigner, changed, client), "subject organization is not system:nodes");
  changed = node, changed.common_name = "n";
  EXPECT_EQ(problem(kKubeletClientSigner, changed, client), "subject common name does not begin with system:node: ");
  changed = node, changed.dns_names = {"n"};
  EXPECT_EQ(problem(kKubeletClientSigner, changed, client), "DNS subjectAltNames are not allowed");
  EXPECT_EQ(problem(kKubeletServingSigner, changed, server), "");
  EXPECT_EQ(problem(kKubeletServingSigner, node, server), "DNS or IP subjectAltName is required");
  changed.uris = {"a:b"};
  EXPECT_EQ(problem(kKubeletServingSigner, changed, server), "URI subjectAltNames are not allowed");
  EXPECT_EQ(problem(kApiClientSigner, {"jane", {}, {}, {}, {}, {}}, client), "");
  EXPECT_EQ(problem(kApiClientSigner, {"jane", {}, {}, {}, {}, {}}, server), "invalid usage for client certificate: server auth");
  EXPECT_EQ(problem(kApiClientSigner, {"jane", {}, {}, {}, {}, {}}, {"digital signature"}),
            "missing required usage for client certificate: client auth");
  EXPECT_EQ(problem(kLegacySigner, {"", {}, {}, {}, {}, {}}, {"any"}), "");
}

json::value approved(const std::string& signer, const std::string& subject, const std::string& more = "") {
  std::string text = certificate_request_text("x", signer, subject);
  text.insert(text.size() - 2, more);
  return MUST(parse_json(text));
}

TEST(CertificateRequests, become_certificates) {
  Authority authority = make_authority();
  WallTime now = MUST(parse_time("2026-05-01T12:00:00Z"));
  Outcome outcome = MUST(
      signed_request(approved(std::string(kApiClientSigner), "/O=dev/CN=jane", R"(,"expirationSeconds":3600)"), authority, now));
  EXPECT_EQ(outcome.failure, "");
  std::string text = shown(outcome.certificate);
  for (const char* part : {"Issuer:CN=ca", "O=dev,CN=jane", "May111:55:002026", "May113:00:002026", "CA:FALSE",
                           "DigitalSignature,KeyEncipherment", "TLSWebClientAuthentication"})
    EXPECT_NE(text.find(part), text.npos) << part << " in\n" << text;
  X509 *certificate = read(outcome.certificate), *issuer = read(authority.certificate);
  EXPECT_EQ(X509_verify(certificate, X509_get0_pubkey(issuer)), 1);
  X509_free(certificate), X509_free(issuer);
  outcome = MUST(
      signed_request(approved(std::string(kApiClientSigner), "/CN=jane", R"(,"expirationSeconds":2000000000)"), authority, now));
  EXPECT_NE(shown(outcome.certificate).find("May112:00:002027"), std::string::npos) << "never longer than a year";
  outcome =
      MUST(signed_request(approved(std::string(kKubeletServingSigner), "/O=system:nodes/CN=system:node:n"), authority, now));
  EXPECT_EQ(outcome.certificate, "");
  EXPECT_EQ(outcome.failure, "DNS or IP subjectAltName is required");
}

TEST(CertificateRequests, of_nodes_are_approved_by_who_may) {
  AuthFixture fixture;
  json::value request = approved(std::string(kKubeletClientSigner), "/O=system:nodes/CN=system:node:n",
                                 R"(,"username":"system:bootstrap:abcdef","groups":["system:bootstrappers"])");
  auto refused = approval_of(request, fixture.authorizer);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("subject access review was not approved"), std::string::npos);
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"n"},"roleRef":{"kind":"ClusterRole","name":"system:certificates.k8s.io:certificatesigningrequests:nodeclient"},"subjects":[{"kind":"Group","name":"system:bootstrappers"}]})");
  EXPECT_EQ(MUST(approval_of(request, fixture.authorizer)),
            "Auto approving kubelet client certificate after SubjectAccessReview.");
  json::value own = approved(std::string(kKubeletClientSigner), "/O=system:nodes/CN=system:node:n",
                             R"(,"username":"system:node:n","groups":["system:nodes"])");
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"s"},"roleRef":{"kind":"ClusterRole","name":"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"},"subjects":[{"kind":"Group","name":"system:nodes"}]})");
  EXPECT_EQ(MUST(approval_of(own, fixture.authorizer)),
            "Auto approving self kubelet client certificate after SubjectAccessReview.");
  EXPECT_EQ(MUST(approval_of(approved(std::string(kApiClientSigner), "/CN=jane"), fixture.authorizer)), std::nullopt);
  EXPECT_EQ(MUST(approval_of(approved("example.com/a", "/O=system:nodes/CN=system:node:n"), fixture.authorizer)), std::nullopt);
}

}  // namespace
}  // namespace coracle::auth
