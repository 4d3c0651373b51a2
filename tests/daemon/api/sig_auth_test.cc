// SPDX-License-Identifier: Apache-2.0
// The behaviour of a server that Kubernetes' conformance tests of sig-auth check, each under its line's name. The lines that need
// running pods are in tests/e2e/access.sh.
#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>

#include "runtime/base/text.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"
#include "tests/daemon/auth/certificate_text.h"

namespace coracle::api {
namespace {

class SigAuth : public testing::Test {
 protected:
  json::value send(const std::string& method, const std::string& path, const std::string& body, int status,
                   const std::string& headers = "") {
    RawAnswer answer = admin.ask(method, path, body, headers);
    EXPECT_EQ(answer.status, status) << method << " " << path << "\n" << answer.body;
    return answer.status == 404 ? json::value() : answer.json();
  }
  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient admin{fixture.port(), &identity}, nobody{fixture.port()};
};

// [sig-auth] Certificates API [Privileged:ClusterAdmin] should support CSR API operations [Conformance]
TEST_F(SigAuth, Certificates_API_should_support_CSR_API_operations) {
  auto named = [](const json::value& list, std::string_view path, std::string_view key, std::string_view name) {
    for (const json::value& each : get_array(list, path))
      if (get_string(each, key) == name) return true;
    return false;
  };
  EXPECT_TRUE(named(admin.get("/apis").json(), "groups", "name", "certificates.k8s.io"));
  EXPECT_TRUE(named(admin.get("/apis/certificates.k8s.io").json(), "versions", "version", "v1"));
  json::value resources = admin.get("/apis/certificates.k8s.io/v1").json();
  for (const char* name :
       {"certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"})
    EXPECT_TRUE(named(resources, "resources", "name", name)) << name;

  const std::string all = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  auto body = [&](const std::string& name) {
    std::string text = auth::certificate_request_text(name, "example.com/e2e", "/CN=e2e-example");
    return text.insert(1, R"("apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",)")
        .insert(text.find("{\"name\"") + 1, R"("labels":{"special":"x"},)");
  };
  for (const char* name : {"a", "b", "c"}) send("POST", all, body(name), 201);
  json::value got = send("GET", all + "/a", "", 200);
  EXPECT_EQ(get_string(got, "spec.username"), "kubernetes-admin");
  EXPECT_EQ(get_string(got, "spec.signerName"), "example.com/e2e");
  EXPECT_EQ(get_array(send("GET", all + "?labelSelector=special%3Dx", "", 200), "items").size(), 3u);
  EXPECT_EQ(get_array(send("GET", all + "?fieldSelector=spec.signerName%3Dexample.com/other", "", 200), "items").size(), 0u);
  RawClient watch(fixture.port(), &identity);
  watch.send("GET " + all + "?watch=1&labelSelector=special%3Dx&resourceVersion=" +
             std::string(get_string(send("GET", all, "", 200), "metadata.resourceVersion")) + " HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(watch.receive_head().status, 200);
  json::value patched = send("PATCH", all + "/a", R"({"metadata":{"annotations":{"patched":"true"}}})", 200, kMerge);
  EXPECT_EQ(get_string(patched, "metadata.annotations.patched"), "true");
  make(patched, "metadata.annotations").get_object()["updated"] = "true";
  json::value updated = send("PUT", all + "/a", to_text(patched), 200);
  EXPECT_EQ(get_string(updated, "metadata.annotations.updated"), "true");
  for (const char* annotation : {"patched", "updated"}) {
    json::value event = MUST(parse_json(watch.receive_chunk()));
    EXPECT_EQ(get_string(event, "type"), "MODIFIED");
    EXPECT_EQ(get_string(event, "object.kind"), "CertificateSigningRequest");
    EXPECT_EQ(get_string(event, "object.metadata.annotations." + std::string(annotation)), "true");
  }

  json::value to_approve = send("GET", all + "/a/approval", "", 200);
  EXPECT_EQ(get_string(to_approve, "kind"), "CertificateSigningRequest");
  EXPECT_EQ(get_string(to_approve, "metadata.uid"), get_string(got, "metadata.uid"));
  json::value approval = send(
      "PATCH", all + "/a/approval",
      R"({"metadata":{"annotations":{"patchedapproval":"true"}},"status":{"conditions":[{"type":"ApprovalPatch","status":"True","reason":"e2e"}]}})",
      200, kMerge);
  EXPECT_EQ(get_string(get_array(approval, "status.conditions").at(0), "type"), "ApprovalPatch");
  EXPECT_EQ(get_string(approval, "metadata.annotations.patchedapproval"), "true");
  make(approval, "status.conditions")
      .get_array()
      .push_back(json::object{{"type", "Approved"}, {"status", "True"}, {"reason", "E2E"}, {"message", "Set from an e2e test"}});
  approval = send("PUT", all + "/a/approval", to_text(approval), 200);
  EXPECT_EQ(get_array(approval, "status.conditions").size(), 2u);
  EXPECT_NE(get_string(get_array(approval, "status.conditions").at(1), "lastTransitionTime"), "");

  send("GET", all + "/a/status", "", 200);
  std::string certificate = base64_encode(identity.certificate);
  json::value status = send(
      "PATCH", all + "/a/status",
      R"({"metadata":{"annotations":{"patchedstatus":"true"}},"status":{"certificate":")" + certificate + "\"}}", 200, kMerge);
  EXPECT_EQ(get_string(status, "status.certificate"), certificate);
  EXPECT_EQ(get_string(status, "metadata.annotations.patchedstatus"), "true");
  make(status, "status.conditions")
      .get_array()
      .push_back(
          json::object{{"type", "StatusUpdate"}, {"status", "True"}, {"reason", "E2E"}, {"message", "Set from an e2e test"}});
  status = send("PUT", all + "/a/status", to_text(status), 200);
  EXPECT_EQ(get_array(status, "status.conditions").size(), 3u);

  send("DELETE", all + "/a", "", 200);
  EXPECT_EQ(admin.get(all + "/a").status, 404);
  EXPECT_EQ(get_array(send("GET", all + "?labelSelector=special%3Dx", "", 200), "items").size(), 2u);
  send("DELETE", all + "?labelSelector=special%3Dx", "", 200);
  EXPECT_EQ(get_array(send("GET", all, "", 200), "items").size(), 0u);
}

// [sig-auth] SubjectReview should support SubjectReview API operations [Conformance]
TEST_F(SigAuth, SubjectReview_should_support_SubjectReview_API_operations) {
  json::value account = send("POST", "/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"e2e"}})", 201);
  const std::string user = "system:serviceaccount:default:e2e", reviews = "/apis/authorization.k8s.io/v1/",
                    uid(get_string(account, "metadata.uid"));
  const std::string asked =
      R"("uid":")" + uid + R"(","groups":["system:authenticated","system:serviceaccounts","system:serviceaccounts:default"],
      "resourceAttributes":{"verb":"list","resource":"configmaps","namespace":"default","version":"v1"})";
  const std::string as_account = "Impersonate-User: " + user + "\r\nImpersonate-Uid: " + uid +
                                 "\r\nImpersonate-Group: system:authenticated\r\nImpersonate-Group: "
                                 "system:serviceaccounts\r\nImpersonate-Group: system:serviceaccounts:default\r\n";
  // The result of a review equals the result of the account's own request.
  auto said_and_done = [&](bool want) {
    json::value said = send("POST", reviews + "subjectaccessreviews", R"({"spec":{"user":")" + user + "\"," + asked + "}}", 201);
    EXPECT_EQ(get_bool(said, "status.allowed"), want);
    said = send("POST", reviews + "namespaces/default/localsubjectaccessreviews",
                R"({"metadata":{"namespace":"default"},"spec":{"user":")" + user + "\"," + asked + "}}", 201);
    EXPECT_EQ(get_bool(said, "status.allowed"), want) << "both reviews say the same";
    EXPECT_EQ(admin.get("/api/v1/namespaces/default/configmaps", as_account).status, want ? 200 : 403);
  };
  said_and_done(false);
  send(
      "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
      R"({"metadata":{"name":"v"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:aggregate-to-view"},"subjects":[{"kind":"ServiceAccount","name":"e2e"}]})",
      201);
  said_and_done(true);
  send("POST", reviews + "namespaces/default/localsubjectaccessreviews",
       R"({"spec":{"user":"x","resourceAttributes":{"verb":"get","namespace":"other"}}})", 422);
  json::value answer =
      send("POST", reviews + "selfsubjectaccessreviews",
           R"({"spec":{"resourceAttributes":{"verb":"list","resource":"configmaps","namespace":"default","version":"v1"}}})", 201,
           "Impersonate-User: " + user + "\r\n");
  EXPECT_TRUE(get_bool(answer, "status.allowed"));
  answer = send("POST", reviews + "selfsubjectrulesreviews", R"({"spec":{"namespace":"default"}})", 201,
                "Impersonate-User: " + user + "\r\n");
  EXPECT_NE(to_text(answer).find("\"configmaps\""), std::string::npos);
  send("POST", reviews + "selfsubjectrulesreviews", R"({"spec":{}})", 400);
}

// Source: pkg/apis/authorization/validation
TEST_F(SigAuth, a_review_that_asks_nothing_clear_is_refused) {
  struct Row {
    const char *kind, *review, *message;  // message: after "is invalid: "; "": it is answered
  };
  for (
      const Row& row : {
          Row{"self", R"({"metadata":{"creationTimestamp":null,"namespace":"x"},"spec":{"resourceAttributes":{"verb":"get"}}})",
              ""},
          Row{"self", R"({"spec":{}})",
              "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be "
              "specified"},
          Row{"self", R"({"metadata":{"name":"a"},"spec":{"nonResourceAttributes":{"path":"/x","verb":"get"}}})",
              "metadata: Invalid value: {\"name\":\"a\"}: must be empty"},
          Row{"self", R"({"spec":{"resourceAttributes":{"fieldSelector":{}}}})",
              "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is "
              "specified, requirements or rawSelector is required"},
          Row{"self",
              R"({"spec":{"resourceAttributes":{"labelSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"Exists"}]}}}})",
              "spec.resourceAttributes.labelSelector.rawSelector: Invalid value: \"a=b\": may not specified at the same time as "
              "requirements"},
          Row{"self",
              R"({"spec":{"resourceAttributes":{"fieldSelector":{"requirements":[{"key":"","operator":"In","values":["b"]}]}}}})",
              "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified"},
          Row{"self", R"({"spec":{"resourceAttributes":{"labelSelector":{"requirements":[{"key":"a","operator":"In"}]}}}})",
              "spec.resourceAttributes.labelSelector.requirements[0].values: Required value: must be specified when `operator` "
              "is "
              "'In' or 'NotIn'"},
          Row{"self",
              R"({"spec":{"resourceAttributes":{"fieldSelector":{"requirements":[{"key":"a","operator":"DoesNotExist","values":["b"]}]}}}})",
              "spec.resourceAttributes.fieldSelector.requirements[0].values: Forbidden: may not be specified when `operator` is "
              "'Exists' or 'DoesNotExist'"},
          Row{"self", R"({"spec":{"resourceAttributes":{"fieldSelector":{"requirements":[{"key":"a b","operator":"Near"}]}}}})",
              ""},
          Row{"", R"({"spec":{"resourceAttributes":{"verb":"get"}}})",
              "spec.user: Invalid value: \"\": at least one of user or group must be specified"},
          Row{"", R"({"spec":{"user":"x","resourceAttributes":{"verb":"get"},"nonResourceAttributes":{"path":"/x"}}})",
              "spec.nonResourceAttributes: Invalid value: {\"path\":\"/x\"}: cannot be specified in combination with "
              "resourceAttributes"},
          Row{"local",
              R"({"metadata":{"labels":{"a":"b"}},"spec":{"user":"x","resourceAttributes":{"verb":"get","namespace":"default"}}})",
              "metadata: Invalid value: {\"namespace\":\"default\",\"labels\":{\"a\":\"b\"}}: must be empty except for "
              "namespace"},
          Row{"local", R"({"spec":{"user":"x","resourceAttributes":{"verb":"get","namespace":"other"}}})",
              "spec.resourceAttributes.namespace: Invalid value: \"other\": must match metadata.namespace"},
          Row{"local", R"({"spec":{"user":"x","nonResourceAttributes":{"path":"/x"}}})",
              "spec.nonResourceAttributes: Invalid value: {\"path\":\"/x\"}: disallowed on this kind of request"},
      }) {
    const std::string kind = row.kind;
    const std::string path = (kind == "local" ? "namespaces/default/" : "") + kind + "subjectaccessreviews";
    json::value answer = send("POST", "/apis/authorization.k8s.io/v1/" + path, row.review, *row.message ? 422 : 201);
    const std::string want = *row.message ? std::string(" \"\" is invalid: ") + row.message : "";
    EXPECT_TRUE(get_string(answer, "message").ends_with(want)) << to_text(answer);
  }
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += std::string(i ? "," : "") + R"({"operator":"In"})";
  json::value answer = send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                            R"({"spec":{"resourceAttributes":{"labelSelector":{"requirements":[)" + many + "]}}}}", 422);
  EXPECT_LE(get_array(answer, "details.causes").size(), 200u) << "a large review is no larger answer";
}

// Source: pkg/routes/openidmetadata.go; go-restful
TEST_F(SigAuth, openid_documents_have_one_form_and_may_be_kept) {
  for (auto [path, type] : {std::pair("/openid/v1/jwks", "application/jwk-set+json"),
                            std::pair("/.well-known/openid-configuration", "application/json")}) {
    for (std::string accept :
         {std::string(), std::string(type), std::string("*/*"), "application/yaml, " + std::string(type) + ";q=0.5",
          std::string("application/vnd.kubernetes.protobuf, */*"), std::string("application/json")}) {
      RawAnswer answer = admin.get(path, accept.empty() ? "" : "Accept: " + accept + "\r\n");
      EXPECT_EQ(answer.status, 200) << path << " " << accept;
      EXPECT_EQ(answer.header("Content-Type"), type);
      EXPECT_EQ(answer.header("Cache-Control"), "public, max-age=3600");
      EXPECT_TRUE(answer.json().is_object()) << path << " " << accept;
    }
    EXPECT_EQ(admin.get(path, "Accept: application/yaml\r\n").status, 406) << path;
  }
}

// [sig-auth] ServiceAccounts should run through the lifecycle of a ServiceAccount [Conformance]
TEST_F(SigAuth, ServiceAccounts_should_run_through_the_lifecycle_of_a_ServiceAccount) {
  const std::string all = "/api/v1/namespaces/default/serviceaccounts";
  send("POST", all, R"({"metadata":{"name":"life","labels":{"test-serviceaccount-static":"true"}}})", 201);
  json::value got = send("GET", all + "/life", "", 200);
  EXPECT_FALSE(get_string(got, "metadata.uid").empty());
  RawClient watch(fixture.port(), &identity);
  watch.send("GET " + all +
             "?watch=1&timeoutSeconds=180&labelSelector=test-serviceaccount-static%3Dtrue HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(watch.receive_head().status, 200);
  auto next = [&] {
    json::value event = MUST(parse_json(watch.receive_chunk()));
    EXPECT_EQ(get_string(event, "object.metadata.name"), "life");
    return std::string(get_string(event, "type"));
  };
  EXPECT_EQ(next(), "ADDED");
  json::value patched = send("PATCH", all + "/life", R"({"automountServiceAccountToken":false})", 200,
                             "Content-Type: application/strategic-merge-patch+json\r\n");
  ASSERT_NE(find(patched, "automountServiceAccountToken"), nullptr);
  EXPECT_FALSE(get_bool(patched, "automountServiceAccountToken"));
  EXPECT_EQ(next(), "MODIFIED");
  json::value list = send("GET", "/api/v1/serviceaccounts?labelSelector=test-serviceaccount-static%3Dtrue", "", 200);
  ASSERT_EQ(get_array(list, "items").size(), 1u);
  EXPECT_EQ(get_string(get_array(list, "items").at(0), "metadata.name"), "life");
  EXPECT_EQ(get_string(get_array(list, "items").at(0), "metadata.namespace"), "default");
  ASSERT_NE(find(get_array(list, "items").at(0), "automountServiceAccountToken"), nullptr);
  EXPECT_FALSE(get_bool(get_array(list, "items").at(0), "automountServiceAccountToken"));
  send("DELETE", all, "", 200);
  EXPECT_EQ(admin.get(all + "/life").status, 404);
  EXPECT_EQ(next(), "DELETED");
}

// [sig-auth] ServiceAccounts should allow opting out of API token automount [Conformance]
TEST_F(SigAuth, ServiceAccounts_should_allow_opting_out_of_API_token_automount) {
  send("POST", "/api/v1/namespaces/default/serviceaccounts",
       R"({"metadata":{"name":"mount"},"automountServiceAccountToken":true})", 201);
  send("POST", "/api/v1/namespaces/default/serviceaccounts",
       R"({"metadata":{"name":"nomount"},"automountServiceAccountToken":false})", 201);
  int pods = 0;
  for (const std::string account : {"default", "mount", "nomount"}) {
    for (const std::string cancel : {"", "true", "false"}) {
      std::string said = cancel.empty() ? "" : R"("automountServiceAccountToken":)" + cancel + ",";
      json::value pod = send("POST", "/api/v1/namespaces/default/pods",
                             R"({"metadata":{"name":"p)" + std::to_string(pods++) + R"("},"spec":{)" + said +
                                 R"("restartPolicy":"Never","serviceAccountName":")" + account +
                                 R"(","containers":[{"name":"token-test","image":"i"}]}})",
                             201);
      bool mounted = false;
      for (const json::value& container : get_array(pod, "spec.containers"))
        for (const json::value& mount : get_array(container, "volumeMounts"))
          mounted |= get_string(mount, "mountPath") == "/var/run/secrets/kubernetes.io/serviceaccount";
      bool want = cancel.empty() ? account != "nomount" : cancel == "true";
      EXPECT_EQ(mounted, want) << account << " " << cancel;
      EXPECT_EQ(!get_array(pod, "spec.volumes").empty(), want) << account << " " << cancel;
    }
  }
}

// [sig-auth] ServiceAccounts should update a ServiceAccount [Conformance]
TEST_F(SigAuth, ServiceAccounts_should_update_a_ServiceAccount) {
  const std::string all = "/api/v1/namespaces/default/serviceaccounts";
  json::value made = send("POST", all, R"({"metadata":{"name":"e2e-sa"},"automountServiceAccountToken":true})", 201);
  make(made, "automountServiceAccountToken") = false;
  send("PUT", all + "/e2e-sa", to_text(made), 200);
  const json::value got = send("GET", all + "/e2e-sa", "", 200);
  ASSERT_NE(find(got, "automountServiceAccountToken"), nullptr);
  EXPECT_FALSE(get_bool(got, "automountServiceAccountToken"));
}

// [sig-auth] ServiceAccounts should create a serviceAccountToken and ensure a successful TokenReview [Conformance]
TEST_F(SigAuth, ServiceAccounts_should_create_a_serviceAccountToken_and_ensure_a_successful_TokenReview) {
  const std::string all = "/api/v1/namespaces/default/serviceaccounts";
  send("POST", all, R"({"metadata":{"name":"e2e"}})", 201);
  json::value request = send("POST", all + "/e2e/token", R"({"spec":{"expirationSeconds":600}})", 201);
  EXPECT_EQ(get_string(request, "kind"), "TokenRequest");
  std::string token(get_string(request, "status.token"));
  ASSERT_FALSE(token.empty());
  json::value review = send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", R"({"spec":{"token":")" + token + "\"}}", 201);
  EXPECT_TRUE(get_bool(review, "status.authenticated"));
  EXPECT_EQ(get_string(review, "status.error"), "");
  EXPECT_EQ(get_string(review, "status.user.username"), "system:serviceaccount:default:e2e");
  EXPECT_EQ(to_text(*find(review, "status.user.groups")),
            R"(["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"])");
  EXPECT_EQ(to_text(*find(review, "status.audiences")), R"(["https://kubernetes.default.svc.cluster.local"])");
  review = send("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                R"({"spec":{"token":")" + token + R"(","audiences":["vault"]}})", 201);
  EXPECT_FALSE(get_bool(review, "status.authenticated"));
  EXPECT_NE(get_string(review, "status.error"), "");
  send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", R"({"spec":{}})", 400);
}

// Checks the token's signature with only the published key.
bool token_signed_by(const std::string& token, const json::value& key) {
  size_t dot = token.rfind('.');
  std::string text = token.substr(0, dot), signature = MUST(base64url_decode(token.substr(dot + 1)));
  std::string point = "\x04" + MUST(base64url_decode(get_string(key, "x"))) + MUST(base64url_decode(get_string(key, "y")));
  EVP_PKEY_CTX* context = EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr);
  char group[] = "prime256v1";
  OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string("group", group, 0),
                             OSSL_PARAM_construct_octet_string("pub", point.data(), point.size()), OSSL_PARAM_construct_end()};
  EVP_PKEY* public_key = nullptr;
  EVP_PKEY_fromdata_init(context);
  EVP_PKEY_fromdata(context, &public_key, EVP_PKEY_PUBLIC_KEY, parameters);
  ECDSA_SIG* parsed = ECDSA_SIG_new();
  auto bytes = reinterpret_cast<const unsigned char*>(signature.data());
  ECDSA_SIG_set0(parsed, BN_bin2bn(bytes, 32, nullptr), BN_bin2bn(bytes + 32, 32, nullptr));
  unsigned char* der = nullptr;
  int size = i2d_ECDSA_SIG(parsed, &der);
  EVP_MD_CTX* digest = EVP_MD_CTX_new();
  bool good = signature.size() == 64 && EVP_DigestVerifyInit(digest, nullptr, EVP_sha256(), nullptr, public_key) == 1 &&
              EVP_DigestVerify(digest, der, size_t(size), reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  OPENSSL_free(der), ECDSA_SIG_free(parsed), EVP_MD_CTX_free(digest), EVP_PKEY_free(public_key), EVP_PKEY_CTX_free(context);
  return good;
}

// [sig-auth] ServiceAccounts ServiceAccountIssuerDiscovery should support OIDC discovery of service account issuer [Conformance]
TEST_F(SigAuth, ServiceAccountIssuerDiscovery_should_support_OIDC_discovery_of_service_account_issuer) {
  json::value request = send("POST", "/api/v1/namespaces/default/serviceaccounts/default/token",
                             R"({"spec":{"audiences":["oidc-discovery-test"]}})", 201);
  std::string token(get_string(request, "status.token"));
  std::string own = std::string(get_string(
      send("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", R"({"spec":{}})", 201), "status.token"));
  std::string bearer = "Authorization: Bearer " + own + "\r\n";
  RawAnswer document = nobody.get("/.well-known/openid-configuration", bearer);
  ASSERT_EQ(document.status, 200) << "every service account may read it";
  json::value settings = document.json();
  size_t first = token.find('.'), second = token.rfind('.');
  json::value claims = MUST(parse_json(MUST(base64url_decode(token.substr(first + 1, second - first - 1)))));
  json::value head = MUST(parse_json(MUST(base64url_decode(token.substr(0, first)))));
  EXPECT_EQ(get_string(claims, "iss"), get_string(settings, "issuer"));
  EXPECT_EQ(to_text(*find(claims, "aud")), R"(["oidc-discovery-test"])");
  EXPECT_EQ(get_string(settings, "jwks_uri"), std::string(get_string(settings, "issuer")) + "/openid/v1/jwks");
  json::value keys = nobody.get("/openid/v1/jwks", bearer).json();
  bool found = false;
  for (const json::value& key : get_array(keys, "keys"))
    if (get_string(key, "kid") == get_string(head, "kid")) found = token_signed_by(token, key);
  EXPECT_TRUE(found) << "the published key proves the token";
  token[second + 3] = token[second + 3] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(token_signed_by(token, get_array(keys, "keys").at(0)));
}

}  // namespace
}  // namespace coracle::api
