// SPDX-License-Identifier: Apache-2.0
// Authentication and its messages; tokens and the objects that they are bound to; reviews.
#include <gtest/gtest.h>

#include "daemon/api/server.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

class Users : public testing::Test {
 protected:
  std::string token(const std::string& request = R"({"spec":{}})") {
    return std::string(get_string(admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", request).json(),
                                  "status.token"));
  }
  static std::string bearer(const std::string& token) { return "Authorization: Bearer " + token + "\r\n"; }
  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient admin{fixture.port(), &identity}, nobody{fixture.port()};
};

TEST_F(Users, without_credentials_see_health_and_version_only) {
  for (const char* path : {"/livez", "/readyz", "/healthz", "/version"}) EXPECT_EQ(nobody.get(path).status, 200) << path;
  for (const char* path : {"/", "/livez/ping", "/api", "/apis", "/api/v1/pods", "/metrics", "/openapi/v2", "/openapi/v3",
                           "/coracle/v1/images", "/livezz", "/nothing", "/.well-known/openid-configuration",
                           "/api/v1/namespaces/default/pods/p/log", "/api/v1/pods?watch=1"}) {
    RawAnswer answer = nobody.get(path);
    EXPECT_EQ(answer.status, 403) << path;
    EXPECT_EQ(get_string(answer.json(), "reason"), "Forbidden");
  }
  EXPECT_EQ(nobody.ask("POST", "/livez", "x").status, 403);
  EXPECT_EQ(get_string(nobody.get("/api/v1/pods").json(), "message"),
            "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster scope");
}

TEST_F(Users, with_wrong_credentials_are_refused_even_where_none_are_needed) {
  for (const std::string& header : {bearer("nonsense"), bearer("a.b.c"), bearer(std::string(20000, 'x'))})
    EXPECT_EQ(nobody.get("/livez", header).status, 401);
  KeyPair ca = MUST(make_ca("somebody else's"));
  CertificateRequest request;
  request.common_name = "kubernetes-admin", request.organizations = {"system:masters"};
  request.not_after = system_clock().now() + std::chrono::hours(1);
  KeyPair forged = MUST(issue(ca, request));
  EXPECT_EQ(RawClient(fixture.port(), &forged).get("/api/v1/pods").status, 401);
}

TEST_F(Users, in_browsers_bring_their_token_as_a_subprotocol) {
  auto ask = [&](const std::string& protocols) {
    RawClient browser(fixture.port());
    return browser.get("/api/v1/namespaces/default/pods?watch=1",
                       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " +
                           protocols + "\r\n");
  };
  auto as_protocol = [](const std::string& token) { return "base64url.bearer.authorization.k8s.io." + base64url_encode(token); };
  RawAnswer known = ask(as_protocol(token()) + ", binary.k8s.io");
  EXPECT_EQ(known.status, 403) << "who it is was understood; a service account may not list pods";
  EXPECT_NE(known.body.find("system:serviceaccount:default:default"), std::string::npos) << known.body;
  EXPECT_EQ(ask(as_protocol("nonsense") + ", binary.k8s.io").status, 401);
  EXPECT_EQ(ask(as_protocol(token())).status, 401) << "nothing is left to choose";
  EXPECT_EQ(ask(as_protocol(token()) + "," + as_protocol(token()) + ",binary.k8s.io").status, 401);
  EXPECT_EQ(ask("base64url.bearer.authorization.k8s.io.!!, binary.k8s.io").status, 401);
}

TEST_F(Users, with_a_serving_certificate_are_no_clients) {
  Pki pki = MUST(Pki::open(fixture.directory + "/pki", {}, system_clock()));
  KeyPair serving = pki.serving();
  EXPECT_EQ(RawClient(fixture.port(), &serving).get("/api/v1/pods").status, 401);
}

TEST_F(Users, by_certificate_have_name_and_groups) {
  Pki pki = MUST(Pki::open(fixture.directory + "/pki", {}, system_clock()));
  KeyPair jane = MUST(pki.client("jane", {"dev", "ops"}, system_clock()));
  RawClient client(fixture.port(), &jane);
  json::value self = client.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}").json();
  EXPECT_EQ(get_string(self, "status.userInfo.username"), "jane");
  EXPECT_EQ(to_text(*find(self, "status.userInfo.groups")), R"(["dev","ops","system:authenticated"])");
  RawAnswer denied = client.get("/api/v1/namespaces/default/pods/x");
  EXPECT_EQ(denied.status, 403);
  EXPECT_EQ(get_string(denied.json(), "message"),
            "pods \"x\" is forbidden: User \"jane\" cannot get resource \"pods\" in API group \"\" in the namespace \"default\"");
  EXPECT_EQ(get_string(client.get("/apis/apps/v1/deployments").json(), "message"),
            "deployments.apps is forbidden: User \"jane\" cannot list resource \"deployments\" in API group \"apps\" at the "
            "cluster scope");
  EXPECT_EQ(get_string(client.get("/metrics").json(), "message"), "forbidden: User \"jane\" cannot get path \"/metrics\"");
  RawAnswer path = client.get("/%3Cscript%3E");
  EXPECT_EQ(get_string(path.json(), "message"), "forbidden: User \"jane\" cannot get path \"/&lt;script&gt;\"");
  EXPECT_EQ(to_text(*find(path.json(), "details")), "{}");
  EXPECT_EQ(path.header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(client.get("/coracle/v1/images").status, 403);
  EXPECT_EQ(client.get("/apis").status, 200);
}

TEST_F(Users, by_static_token_are_known) { EXPECT_EQ(nobody.get("/api", bearer("t0ken")).status, 200); }

TEST_F(Users, service_accounts_are_known_by_their_tokens) {
  json::value self = nobody.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", bearer(token())).json();
  EXPECT_EQ(get_string(self, "status.userInfo.username"), "system:serviceaccount:default:default");
  EXPECT_EQ(nobody.get("/api", bearer(token())).status, 200);
  EXPECT_EQ(nobody.get("/api/v1/secrets", bearer(token())).status, 403);
  EXPECT_EQ(nobody.get("/openid/v1/jwks", bearer(token())).status, 200);
  EXPECT_EQ(nobody.get("/api", bearer(token(R"({"spec":{"audiences":["vault"]}})"))).status, 401) << "meant for somebody else";
}

TEST_F(Users, tokens_have_bounds) {
  auto ask = [&](const char* body) {
    return admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", body).status;
  };
  EXPECT_EQ(ask(R"({"spec":{"expirationSeconds":599}})"), 422);
  EXPECT_EQ(ask(R"({"spec":{"expirationSeconds":4294967297}})"), 422);
  EXPECT_EQ(ask(R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"absent"}}})"), 404);
  EXPECT_EQ(ask(R"({"spec":{"boundObjectRef":{"kind":"Node2","apiVersion":"v1","name":"absent"}}})"), 400);
  EXPECT_EQ(admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts/absent/token", R"({"spec":{}})").status, 404);
}

// Source: kubernetes test/integration/auth/svcaccttoken_test.go.
TEST_F(Users, a_token_is_of_the_account_that_is_meant) {
  const std::string account = "/api/v1/namespaces/default/serviceaccounts/default";
  const std::string uid(get_string(admin.get(account).json(), "metadata.uid"));
  RawAnswer refused = admin.ask("POST", account + "/token", R"({"metadata":{"uid":"another"},"spec":{}})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(get_string(refused.json(), "message"),
            "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"default\": the UID in the token request "
            "(another) does not match the UID of the service account (" +
                uid + ")");
  for (const std::string& body : {std::string(R"({"spec":{}})"), R"({"metadata":{"uid":")" + uid + R"("},"spec":{}})"}) {
    RawAnswer given = admin.ask("POST", account + "/token", body);
    EXPECT_EQ(given.status, 201) << given.body;
    EXPECT_EQ(get_string(given.json(), "metadata.uid"), uid);
    EXPECT_EQ(get_string(given.json(), "metadata.name"), "default");
    EXPECT_EQ(get_string(given.json(), "metadata.namespace"), "default");
  }
}

TEST_F(Users, a_pods_token_names_its_node_even_if_that_is_not_known) {
  ASSERT_EQ(admin
                .ask("POST", "/api/v1/namespaces/default/pods",
                     R"({"metadata":{"name":"p"},"spec":{"nodeName":"nowhere","containers":[{"name":"c","image":"i"}]}})")
                .status,
            201);
  std::string bound = token(R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p"}}})");
  json::value self = nobody.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", bearer(bound)).json();
  const json::object& extra = get_object(self, "status.userInfo.extra");
  ASSERT_TRUE(extra.contains("authentication.kubernetes.io/node-name")) << to_text(self);
  EXPECT_EQ(to_text(extra.at("authentication.kubernetes.io/node-name")), R"(["nowhere"])");
  EXPECT_FALSE(extra.contains("authentication.kubernetes.io/node-uid"));
}

TEST_F(Users, a_tokens_life_ends_with_its_pod) {
  std::string pods = "/api/v1/namespaces/default/pods";
  ASSERT_EQ(admin.ask("POST", pods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})").status, 201);
  std::string bound = token(R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p"}}})");
  json::value self = nobody.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", bearer(bound)).json();
  EXPECT_EQ(to_text(*find_keys(self, {"status", "userInfo", "extra", "authentication.kubernetes.io/pod-name"})), R"(["p"])");
  ASSERT_EQ(admin.ask("DELETE", pods + "/p").status, 200);
  EXPECT_EQ(nobody.get("/api", bearer(bound)).status, 401);
}

TEST_F(Users, are_reviewed) {
  json::value review =
      admin.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", R"({"spec":{"token":")" + token() + "\"}}").json();
  EXPECT_TRUE(get_bool(review, "status.authenticated"));
  EXPECT_EQ(get_string(review, "status.user.username"), "system:serviceaccount:default:default");
  review = admin.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", R"({"spec":{"token":"x"}})").json();
  EXPECT_FALSE(get_bool(review, "status.authenticated"));
  std::string reviews = "/apis/authorization.k8s.io/v1/";
  const char* pods = R"({"spec":{"resourceAttributes":{"verb":"list","resource":"pods","namespace":"default"}}})";
  EXPECT_TRUE(get_bool(admin.ask("POST", reviews + "selfsubjectaccessreviews", pods).json(), "status.allowed"));
  EXPECT_FALSE(
      get_bool(nobody.ask("POST", reviews + "selfsubjectaccessreviews", pods, bearer(token())).json(), "status.allowed"));
  EXPECT_EQ(admin.ask("POST", reviews + "selfsubjectaccessreviews", R"({"spec":{}})").status, 422);
  EXPECT_EQ(
      admin.ask("POST", reviews + "selfsubjectaccessreviews", pods, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n")
          .status,
      406);
  json::value other =
      admin
          .ask("POST", reviews + "subjectaccessreviews",
               R"({"spec":{"user":"x","groups":["system:masters"],"resourceAttributes":{"verb":"get","resource":"pods"}}})")
          .json();
  EXPECT_TRUE(get_bool(other, "status.allowed"));
  EXPECT_EQ(nobody.ask("POST", reviews + "subjectaccessreviews", pods, bearer(token())).status, 403);
  EXPECT_GT(get_array(admin.ask("POST", reviews + "selfsubjectrulesreviews", R"({"spec":{"namespace":"default"}})").json(),
                      "status.resourceRules")
                .size(),
            0u);
  EXPECT_EQ(admin.get(reviews + "selfsubjectaccessreviews").status, 405);
}

TEST_F(Users, may_be_impersonated_by_administrators_only) {
  std::string as = "Impersonate-User: jane\r\nImpersonate-Group: dev\r\n";
  json::value self = admin.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", as).json();
  EXPECT_EQ(get_string(self, "status.userInfo.username"), "jane");
  EXPECT_EQ(admin.get("/api/v1/pods", as).status, 403);
  EXPECT_EQ(
      nobody.get("/api", bearer(token()) + "Impersonate-User: kubernetes-admin\r\nImpersonate-Group: system:masters\r\n").status,
      403);
}

TEST_F(Users, tokens_can_be_checked_by_others) {
  json::value settings = admin.get("/.well-known/openid-configuration").json();
  EXPECT_EQ(get_string(settings, "issuer"), "https://kubernetes.default.svc.cluster.local");
  json::value keys = admin.get("/openid/v1/jwks").json();
  EXPECT_EQ(get_string(get_array(keys, "keys")[0], "alg"), "ES256");
}

}  // namespace
}  // namespace coracle::api
