// SPDX-License-Identifier: Apache-2.0
// Authentication: certificates, tokens of every kind, and impersonation.
#include "daemon/auth/authentication.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "daemon/auth/bootstrap_tokens.h"
#include "tests/daemon/auth/auth_fixture.h"

namespace coracle::auth {
namespace {

std::string private_key() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  long size = BIO_get_mem_data(out, &data);
  std::string text(data, size_t(size));
  BIO_free(out), EVP_PKEY_free(key);
  return text;
}

class Identity : public testing::Test {
 protected:
  Identity()
      : tokens(MUST(TokenSigner::make(private_key())), {"https://issuer", {{"s3cret", user("static", {"dev"})}}},
               fixture.registry()),
        authenticator(tokens) {
    account = MUST(fixture.registry().get(kServiceAccount, {"default", "default"}));
  }
  Credentials bearing(const std::string& token) {
    header = "Bearer " + token;
    Credentials out;
    out.authorization = header;
    return out;
  }
  std::string issued(const char* spec = "{}") {
    json::value request = MUST(parse_json(std::string(R"({"spec":)") + spec + "}"));
    if (!find(request, "spec.expirationSeconds")) make(request, "spec.expirationSeconds") = 3600;
    return std::string(get_string(MUST(tokens.issue(*account, std::move(request))), "status.token"));
  }
  std::string name_of(const std::string& token) {
    auto found = authenticator.authenticate(bearing(token), recent);
    if (!found) return found.error().text();
    RecentToken none;
    EXPECT_EQ(MUST(authenticator.authenticate(bearing(token), none))->name, (*found)->name) << "over a new connection";
    return (*found)->name;
  }
  AuthFixture fixture;
  Tokens tokens;
  Authenticator authenticator;
  ObjectPtr account;
  std::string header;
  RecentToken recent;  // of one connection
};

TEST_F(Identity, without_credentials_is_anonymous) {
  User nobody = *MUST(authenticator.authenticate({}, recent));
  EXPECT_EQ(nobody.name, "system:anonymous");
  EXPECT_EQ(nobody.groups, std::vector<std::string>{"system:unauthenticated"});
  Credentials basic;
  basic.authorization = "Basic YTpi";
  EXPECT_TRUE(MUST(authenticator.authenticate(basic, recent))->anonymous());
  EXPECT_EQ(name_of("nonsense"), "Unauthorized");
}

TEST_F(Identity, comes_from_a_certificate) {
  Credentials shown;
  shown.certificate = shown.trusted = true, shown.certified = user_of_certificate("jane", {"dev"}, "ab");
  User jane = *MUST(authenticator.authenticate(shown, recent));
  EXPECT_EQ(jane.name, "jane");
  EXPECT_EQ(jane.groups, (std::vector<std::string>{"dev", "system:authenticated"}));
  EXPECT_EQ(jane.extra["authentication.kubernetes.io/credential-id"], std::vector<std::string>{"X509SHA256=ab"});
  shown.trusted = false;
  EXPECT_FALSE(authenticator.authenticate(shown, recent)) << "a bad one is refused even where none is needed";
  shown.authorization = "bearer s3cret";
  EXPECT_EQ(MUST(authenticator.authenticate(shown, recent))->name, "static");
}

TEST_F(Identity, comes_from_a_static_token) {
  User known = *MUST(authenticator.authenticate(bearing("s3cret"), recent));
  EXPECT_EQ(known.groups, (std::vector<std::string>{"dev", "system:authenticated"}));
  EXPECT_EQ(MUST(tokens.verify("s3cret", {"https://issuer", "x"})).audiences, std::vector<std::string>{"https://issuer"});
  EXPECT_FALSE(tokens.verify("s3cret", {"vault"}));
}

TEST_F(Identity, of_an_account_ends_with_time_account_and_pod) {
  fixture.clock.advance(std::chrono::hours(1));
  std::string token = issued(), short_one = issued(R"({"expirationSeconds":600})");
  EXPECT_EQ(name_of(token), "system:serviceaccount:default:default");
  fixture.clock.advance(std::chrono::seconds(599));
  EXPECT_EQ(name_of(short_one), "system:serviceaccount:default:default");
  fixture.clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(name_of(short_one), "Unauthorized");
  EXPECT_EQ(tokens.verify(short_one, {}).error().text(), "service account token has expired");
  fixture.make(kPod, R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  std::string bound = issued(R"({"boundObjectRef":{"kind":"Pod","name":"p"}})");
  User of_pod = *MUST(authenticator.authenticate(bearing(bound), recent));
  EXPECT_EQ(of_pod.extra["authentication.kubernetes.io/pod-name"], std::vector<std::string>{"p"});
  MUST(fixture.registry().remove(kPod, {"default", "p"}, {.grace_period_seconds = 0}, {}));
  EXPECT_EQ(name_of(bound), "Unauthorized");
  EXPECT_EQ(name_of(token), "system:serviceaccount:default:default");
  MUST(fixture.registry().remove(kServiceAccount, {"default", "default"}, {}, {}));
  EXPECT_EQ(name_of(token), "Unauthorized");
}

TEST_F(Identity, of_an_account_is_for_its_audience) {
  std::string vault = issued(R"({"audiences":["vault"]})");
  EXPECT_EQ(name_of(vault), "Unauthorized");
  EXPECT_EQ(tokens.verify(vault, {}).error().text(),
            R"(token audiences ["vault"] is invalid for the target audiences ["https://issuer"])");
  EXPECT_EQ(MUST(tokens.verify(vault, {"x", "vault"})).audiences, std::vector<std::string>{"vault"});
}

TEST_F(Identity, of_a_pods_projected_token_outlasts_a_client_that_never_reads_it_again) {
  fixture.make(kPod, R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  std::string token = issued(R"({"expirationSeconds":3607,"boundObjectRef":{"kind":"Pod","name":"p"}})");
  fixture.clock.advance(std::chrono::hours(24 * 364));
  EXPECT_EQ(name_of(token), "system:serviceaccount:default:default");
  fixture.clock.advance(std::chrono::hours(48));
  EXPECT_EQ(name_of(token), "Unauthorized");
}

TEST_F(Identity, of_a_lasting_token_ends_with_its_secret) {
  std::string token = MUST(tokens.issue_lasting(*account, "t"));
  EXPECT_EQ(name_of(token), "Unauthorized");
  fixture.make(
      kSecret,
      R"({"metadata":{"name":"t","namespace":"default","annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token",
      "stringData":{"token":")" +
          token + "\"}}");
  EXPECT_EQ(name_of(token), "system:serviceaccount:default:default");
  fixture.clock.advance(std::chrono::hours(24 * 3650));
  EXPECT_EQ(name_of(token), "system:serviceaccount:default:default");
  MUST(fixture.registry().remove(kSecret, {"default", "t"}, {}, {}));
  EXPECT_EQ(name_of(token), "Unauthorized");
}

TEST_F(Identity, comes_from_a_bootstrap_token) {
  auto secret = [&](const std::string& more) {
    (void)fixture.registry().remove(kSecret, {"kube-system", "bootstrap-token-abcdef"}, {}, {});
    fixture.make(
        kSecret,
        R"({"metadata":{"name":"bootstrap-token-abcdef","namespace":"kube-system"},"type":"bootstrap.kubernetes.io/token","stringData":{
        "token-id":"abcdef","token-secret":"0123456789abcdef")" +
            more + "}}");
  };
  const std::string token = "abcdef.0123456789abcdef", usage = R"(,"usage-bootstrap-authentication":"true")";
  secret(usage + R"(,"auth-extra-groups":"system:bootstrappers:worker")");
  User machine = *MUST(authenticator.authenticate(bearing(token), recent));
  EXPECT_EQ(machine.name, "system:bootstrap:abcdef");
  EXPECT_EQ(machine.groups,
            (std::vector<std::string>{"system:bootstrappers", "system:bootstrappers:worker", "system:authenticated"}));
  EXPECT_EQ(name_of("abcdef.0123456789abcdee"), "Unauthorized");
  EXPECT_EQ(name_of("ABCDEF.0123456789abcdef"), "Unauthorized");
  for (const std::string& bad : {std::string(), std::string(R"(,"usage-bootstrap-authentication":"yes")"),
                                 usage + R"(,"auth-extra-groups":"system:masters")",
                                 usage + R"(,"expiration":"2001-01-01T00:00:00Z")", usage + R"(,"expiration":"soon")"}) {
    secret(bad);
    EXPECT_EQ(name_of(token), "Unauthorized") << bad;
  }
  secret(usage + R"(,"expiration":")" + format_time(fixture.clock.now() + std::chrono::minutes(1)) + "\"");
  EXPECT_EQ(name_of(token), "system:bootstrap:abcdef");
  fixture.clock.advance(std::chrono::minutes(2));
  EXPECT_EQ(name_of(token), "Unauthorized");
}

// ---- the token cache ----

constexpr const char* kPodOfImage =
    R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}})";

class Remembered : public Identity {
 protected:
  Remembered() { fixture.make(kPod, kPodOfImage), of_pod = issued(R"({"boundObjectRef":{"kind":"Pod","name":"p"}})"); }
  // The number of signature checks that authenticating a token takes.
  uint64_t checks(const std::string& token, const std::string& want = "system:serviceaccount:default:default") {
    uint64_t before = tokens.signatures_checked();
    EXPECT_EQ(name_of(token), want);
    return tokens.signatures_checked() - before;
  }
  void remove(const Kind& kind, const Key& key) { MUST(fixture.registry().remove(kind, key, {.grace_period_seconds = 0}, {})); }
  std::string of_pod;
};

TEST_F(Remembered, token_is_checked_once_in_ten_seconds) {
  EXPECT_EQ(checks(of_pod), 1u);
  User first = *MUST(authenticator.authenticate(bearing(of_pod), recent));
  EXPECT_EQ(first.extra["authentication.kubernetes.io/pod-name"], std::vector<std::string>{"p"});
  fixture.make(kConfigMap, R"({"metadata":{"name":"other","namespace":"default"}})");  // an unrelated object
  fixture.clock.advance(std::chrono::milliseconds(9999));
  EXPECT_EQ(checks(of_pod), 0u);
  fixture.clock.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(checks(of_pod), 1u);
  tokens.forget_remembered();
  EXPECT_EQ(checks(of_pod), 1u);
  EXPECT_EQ(checks(of_pod + "A", "Unauthorized"), 1u) << "another token";
  EXPECT_EQ(checks(of_pod + "A", "Unauthorized"), 1u) << "what was not believed is not remembered";
  EXPECT_EQ(checks("s3cret", "static"), 0u);
}

TEST_F(Remembered, token_ends_with_the_next_request_when_what_it_rests_on_goes) {
  fixture.make(kSecret, R"({"metadata":{"name":"s","namespace":"default"}})");
  fixture.make(kNode, R"({"metadata":{"name":"n"}})");
  std::string plain = issued(), of_secret = issued(R"({"boundObjectRef":{"kind":"Secret","name":"s"}})"),
              of_node = issued(R"({"boundObjectRef":{"kind":"Node","name":"n"}})");
  for (const std::string& token : {plain, of_pod, of_secret, of_node}) {
    EXPECT_EQ(checks(token), 1u);
    EXPECT_EQ(checks(token), 0u);
  }
  remove(kPod, {"default", "p"});
  EXPECT_EQ(name_of(of_pod), "Unauthorized");
  remove(kSecret, {"default", "s"});
  EXPECT_EQ(name_of(of_secret), "Unauthorized");
  remove(kNode, {"", "n"});
  EXPECT_EQ(name_of(of_node), "Unauthorized");
  EXPECT_EQ(checks(plain), 0u) << "it rests on none of them";
  // New objects with the same names are not the ones that the tokens are bound to.
  fixture.make(kPod, kPodOfImage);
  fixture.make(kSecret, R"({"metadata":{"name":"s","namespace":"default"}})");
  fixture.make(kNode, R"({"metadata":{"name":"n"}})");
  for (const std::string& token : {of_pod, of_secret, of_node}) EXPECT_EQ(name_of(token), "Unauthorized");
  remove(kServiceAccount, {"default", "default"});
  EXPECT_EQ(name_of(plain), "Unauthorized");
  fixture.make(kServiceAccount, R"({"metadata":{"name":"default","namespace":"default"}})");
  EXPECT_EQ(name_of(plain), "Unauthorized");
}

TEST_F(Remembered, token_outlives_a_change_that_leaves_its_objects_what_they_are) {
  EXPECT_EQ(checks(of_pod), 1u);
  EXPECT_EQ(fixture.merged_by(kAdmin, kPod, {"default", "p"}, R"({"metadata":{"labels":{"a":"b"}}})"), "");
  EXPECT_EQ(checks(of_pod), 1u) << "looked at again";
  EXPECT_EQ(checks(of_pod), 0u);
}

TEST_F(Remembered, token_of_a_pod_that_is_being_deleted_ends_a_minute_after_its_grace) {
  MUST(fixture.registry().patch(kPod, {"default", "p"}, "", PatchType::merge,
                                MUST(parse_json(R"({"metadata":{"finalizers":["example.com/stay"]}})")), false, {}));
  MUST(fixture.registry().remove(kPod, {"default", "p"}, {.grace_period_seconds = 0}, {}));
  std::string token = of_pod;
  fixture.clock.advance(std::chrono::seconds(58));
  EXPECT_EQ(name_of(token), "system:serviceaccount:default:default");
  fixture.clock.advance(std::chrono::seconds(3));  // less than ten seconds after the last check
  EXPECT_EQ(name_of(token), "Unauthorized");
}

TEST_F(Remembered, token_ends_with_its_own_time_whatever_becomes_of_the_clock) {
  std::string token = issued(R"({"expirationSeconds":600})");
  WallTime issued_at = fixture.clock.now();
  fixture.clock.advance(std::chrono::seconds(595));
  EXPECT_EQ(checks(token), 1u);
  fixture.clock.advance(std::chrono::seconds(4));
  EXPECT_EQ(checks(token), 0u);
  fixture.clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(name_of(token), "Unauthorized");
  std::string other = issued(R"({"expirationSeconds":600})");
  EXPECT_EQ(checks(other), 1u);
  fixture.clock.set(issued_at - std::chrono::hours(1));
  EXPECT_EQ(name_of(other), "Unauthorized") << "not valid yet";
  fixture.clock.set(issued_at + std::chrono::hours(24));
  EXPECT_EQ(name_of(other), "Unauthorized");
}

TEST_F(Remembered, lasting_token_ends_when_its_secret_holds_another) {
  std::string token = MUST(tokens.issue_lasting(*account, "t"));
  fixture.make(
      kSecret,
      R"({"metadata":{"name":"t","namespace":"default","annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token",
      "stringData":{"token":")" +
          token + "\"}}");
  EXPECT_EQ(checks(token), 1u);
  EXPECT_EQ(checks(token), 0u);
  EXPECT_FALSE(tokens.verify(token, {"vault"})) << "it is for the API";
  MUST(fixture.registry().patch(kSecret, {"default", "t"}, "", PatchType::merge,
                                MUST(parse_json(R"({"stringData":{"token":"other"}})")), false, {}));
  EXPECT_EQ(name_of(token), "Unauthorized");
}

TEST_F(Remembered, token_is_for_its_audiences_still) {
  std::string vault = issued(R"({"audiences":["vault"]})");
  EXPECT_EQ(MUST(tokens.verify(vault, {"x", "vault"})).audiences, std::vector<std::string>{"vault"});
  EXPECT_EQ(checks(vault, "Unauthorized"), 0u);
  EXPECT_FALSE(tokens.verify(vault, {"x"}));
}

TEST_F(Remembered, token_is_not_good_under_another_key) {
  EXPECT_EQ(checks(of_pod), 1u);
  Tokens rotated(MUST(TokenSigner::make(private_key())), {"https://issuer", {}}, fixture.registry());
  EXPECT_FALSE(rotated.verify(of_pod, {}));
}

TEST_F(Identity, may_be_taken_by_who_may_impersonate_it) {
  auto as = [&](const User& who, Impersonation wanted) -> std::string {
    auto other = impersonated(wanted, who, {"list", "", "pods", "", "default", "", "", true, ""}, fixture.authorizer);
    if (!other) return other.error().text();
    return *other ? (*other)->user.name + " " + describe((*other)->user.groups) : "itself";
  };
  User admin = user("root", {"system:masters"}), jane = user("jane");
  EXPECT_EQ(as(jane, {}), "itself");
  EXPECT_EQ(as(admin, {"bob", "", {}, {}}), R"(bob ["system:authenticated"])");
  EXPECT_EQ(as(admin, {"bob", "u1", {"dev"}, {{"scope", {"a"}}}}), R"(bob ["dev" "system:authenticated"])");
  EXPECT_EQ(as(admin, {"system:anonymous", "", {}, {}}), R"(system:anonymous ["system:unauthenticated"])");
  EXPECT_EQ(as(admin, {"system:serviceaccount:a:b", "", {}, {}}),
            R"(system:serviceaccount:a:b ["system:serviceaccounts" "system:serviceaccounts:a" "system:authenticated"])");
  auto refused = [](const std::string& way) {
    return R"(pods is forbidden: User "jane" cannot impersonate-on:)" + way +
           R"(:list resource "pods" in API group "" in the namespace "default")";
  };
  EXPECT_EQ(as(jane, {"bob", "", {}, {}}), refused("user-info")) << "the first way is told";
  EXPECT_EQ(as(jane, {"system:serviceaccount:a:b", "", {}, {}}), refused("serviceaccount"));
  EXPECT_EQ(as(jane, {"system:node:n", "", {}, {}}), refused("arbitrary-node"));
  EXPECT_EQ(
      as(jane, {"system:serviceaccount:a:b", "", {"dev"}, {}}),
      R"(serviceaccounts "b" is forbidden: User "jane" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "a")")
      << "no other way applies";
  fixture.make(
      kClusterRole,
      R"({"metadata":{"name":"actor"},"rules":[{"verbs":["impersonate"],"apiGroups":[""],"resources":["users"],"resourceNames":["bob"]}]})");
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"actor"},"roleRef":{"kind":"ClusterRole","name":"actor"},"subjects":[{"kind":"User","name":"jane"}]})");
  EXPECT_EQ(as(jane, {"bob", "", {}, {}}), R"(bob ["system:authenticated"])");
  EXPECT_EQ(as(jane, {"bob", "", {"dev"}, {}}), refused("user-info")) << "bob alone";
  EXPECT_EQ(as(jane, {"bob", "u", {}, {}}), refused("user-info"));
  EXPECT_EQ(as(jane, {"bob", "", {}, {{"scope", {"a"}}}}), refused("user-info"));
  fixture.make(
      kClusterRole,
      R"({"metadata":{"name":"robots"},"rules":[{"verbs":["impersonate"],"apiGroups":[""],"resources":["serviceaccounts"]}]})");
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"robots"},"roleRef":{"kind":"ClusterRole","name":"robots"},"subjects":[{"kind":"User","name":"jane"}]})");
  const std::string robot = "system:serviceaccount:a:b";
  EXPECT_EQ(
      as(jane, {robot, "", {"dev"}, {}}),
      R"(groups "dev" is forbidden: User "jane" cannot impersonate resource "groups" in API group "" at the cluster scope)");
  EXPECT_EQ(
      as(jane, {robot, "u", {}, {}}),
      R"(uids.authentication.k8s.io "u" is forbidden: User "jane" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope)");
  EXPECT_EQ(
      as(jane, {robot, "", {}, {{"scope", {"a"}}}}),
      R"(userextras.authentication.k8s.io "a" is forbidden: User "jane" cannot impersonate resource "userextras/scope" in API group "authentication.k8s.io" at the cluster scope)");
  EXPECT_EQ(as(admin, {"", "", {"dev"}, {}}),
            R"(requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"dev"}, Extra:map[string][]string(nil)})"
            " without impersonating a user name");
  EXPECT_EQ(as(admin, {"", "u", {}, {{"a", {"x", "y"}}, {"b", {"z"}}}}),
            R"(requested &user.DefaultInfo{Name:"", UID:"u", Groups:[]string(nil), )"
            R"(Extra:map[string][]string{"a":[]string{"x", "y"}, "b":[]string{"z"}}})"
            " without impersonating a user name");
}

TEST_F(Identity, may_be_taken_for_some_requests_alone) {
  auto as = [&](const User& who, const char* verb, Impersonation wanted) -> std::string {
    auto other = impersonated(wanted, who, {verb, "", "pods", "", "default", "", "", true, ""}, fixture.authorizer);
    if (!other) return other.error().text();
    return (*other)->user.name + " " + describe((*other)->user.groups) + " by " + (*other)->constraint;
  };
  fixture.make(kClusterRole, R"({"metadata":{"name":"caller"},"rules":[
    {"verbs":["impersonate-on:user-info:list","impersonate-on:arbitrary-node:get","impersonate-on:serviceaccount:get"],"apiGroups":[""],"resources":["pods"]},
    {"verbs":["impersonate:user-info"],"apiGroups":["authentication.k8s.io"],"resources":["users"],"resourceNames":["bob"]},
    {"verbs":["impersonate:user-info"],"apiGroups":["authentication.k8s.io"],"resources":["groups","userextras/example.com/scope"]},
    {"verbs":["impersonate:arbitrary-node"],"apiGroups":["authentication.k8s.io"],"resources":["nodes"],"resourceNames":["one"]},
    {"verbs":["impersonate:serviceaccount"],"apiGroups":["authentication.k8s.io"],"resources":["serviceaccounts"]}]})");
  fixture.make(kClusterRole, R"({"metadata":{"name":"agent"},"rules":[
    {"verbs":["impersonate-on:associated-node:get"],"apiGroups":[""],"resources":["pods"]},
    {"verbs":["impersonate:associated-node"],"apiGroups":["authentication.k8s.io"],"resources":["nodes"]}]})");
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"caller"},"roleRef":{"kind":"ClusterRole","name":"caller"},"subjects":[{"kind":"User","name":"jane"}]})");
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"agent"},"roleRef":{"kind":"ClusterRole","name":"agent"},"subjects":[{"kind":"ServiceAccount","name":"agent","namespace":"default"}]})");
  User jane = user("jane"), admin = user("root", {"system:masters"}), agent = account_user("default", "agent", "u");
  agent.extra["authentication.kubernetes.io/node-name"] = {"two"};
  EXPECT_EQ(as(jane, "list", {"bob", "", {}, {}}), R"(bob ["system:authenticated"] by impersonate:user-info)");
  EXPECT_EQ(
      as(jane, "get", {"bob", "", {}, {}}),
      R"(pods is forbidden: User "jane" cannot impersonate-on:user-info:get resource "pods" in API group "" in the namespace "default")")
      << "another verb";
  EXPECT_EQ(
      as(jane, "list", {"eve", "", {}, {}}),
      R"(users.authentication.k8s.io "eve" is forbidden: User "jane" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope)");
  EXPECT_EQ(as(jane, "list", {"bob", "", {"a", "b", "c", "d"}, {}}),
            R"(bob ["a" "b" "c" "d" "system:authenticated"] by impersonate:user-info)");
  EXPECT_NE(as(jane, "list", {"bob", "", {"system:masters"}, {}}).find("the system:masters group is not allowed"),
            std::string::npos);
  EXPECT_EQ(as(jane, "list", {"bob", "", {}, {{"example.com/scope", {"a"}}}}),
            R"(bob ["system:authenticated"] by impersonate:user-info)");
  const std::string no_extra =
      R"(userextras.authentication.k8s.io is forbidden: User "jane" cannot impersonate:user-info resource "userextras" in API group )"
      R"("authentication.k8s.io" at the cluster scope: impersonating )";
  for (const auto& [key, value, why] : {
           std::tuple(
               "scope", "a",
               R"(an invalid key in extra is not allowed: extra.key: Invalid value: "scope": must be a domain-prefixed path )"
               R"((such as "acme.io/foo"))"),
           std::tuple("", "a", "the empty string key in extra is not allowed"),
           std::tuple("example.com/Scope", "a", R"(a non-lowercase key in extra is not allowed: "example.com/Scope")"),
           std::tuple("example.com/scope", "", "the empty string value in extra is not allowed"),
       })
    EXPECT_EQ(as(jane, "list", {"bob", "", {}, {{key, {value}}}}), no_extra + why);
  EXPECT_EQ(as(jane, "get", {"system:node:one", "", {}, {}}),
            R"(system:node:one ["system:nodes" "system:authenticated"] by impersonate:arbitrary-node)");
  EXPECT_NE(as(jane, "get", {"system:node:two", "", {}, {}}).find(R"(nodes.authentication.k8s.io "two" is forbidden)"),
            std::string::npos);
  EXPECT_NE(as(jane, "get", {"system:node:one", "", {"dev"}, {}}).find("cannot impersonate resource"), std::string::npos)
      << "a node has its own groups";
  EXPECT_EQ(
      as(jane, "get", {"system:serviceaccount:a:b", "", {}, {}}),
      R"(system:serviceaccount:a:b ["system:serviceaccounts" "system:serviceaccounts:a" "system:authenticated"] by impersonate:serviceaccount)");
  EXPECT_EQ(as(agent, "get", {"system:node:two", "", {}, {}}),
            R"(system:node:two ["system:nodes" "system:authenticated"] by impersonate:associated-node)");
  EXPECT_NE(as(agent, "get", {"system:node:one", "", {}, {}}).find("cannot impersonate-on:arbitrary-node:get resource"),
            std::string::npos)
      << "it runs on another node";
  EXPECT_EQ(as(admin, "get", {"bob", "", {"system:masters"}, {}}), R"(bob ["system:masters" "system:authenticated"] by )");
}

TEST(StaticTokens, are_read_as_kubernetes_reads_them) {
  auto read = MUST(parse_static_tokens("t1,jane,u1\nt2,bob,u2,\"dev,ops\"\r\n\nt3,\"a \"\"quoted\"\" one\",u3,one\n"));
  EXPECT_EQ(read.at("t1").groups, std::vector<std::string>{"system:authenticated"});
  EXPECT_EQ(read.at("t2").groups, (std::vector<std::string>{"dev", "ops", "system:authenticated"}));
  EXPECT_EQ(read.at("t2").uid, "u2");
  EXPECT_EQ(read.at("t3").name, "a \"quoted\" one");
  for (const char* bad : {"t1,jane", ",jane,u", "t1,\"jane,u", "t1,ja\"ne,u", "t1,\"jane\"x,u"}) {
    auto refused = parse_static_tokens(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().text().find("line 1"), 0u) << refused.error().text();
  }
}

TEST(Tokens, are_believed_only_when_we_signed_them) {
  TokenSigner ours = MUST(TokenSigner::make(private_key())), theirs = MUST(TokenSigner::make(private_key()));
  std::string token = MUST(ours.sign({{"sub", "me"}, {"exp", 1}}));
  EXPECT_EQ(get_string(MUST(ours.verify(token)), "sub"), "me");
  EXPECT_FALSE(theirs.verify(token));
  auto parts = std::vector<size_t>{token.find('.'), token.rfind('.')};
  std::string none = base64url_encode(R"({"alg":"none"})") + token.substr(parts[0], parts[1] - parts[0]) + ".";
  EXPECT_FALSE(ours.verify(none));
  std::string hmac = base64url_encode(R"({"alg":"HS256"})") + token.substr(parts[0]);
  EXPECT_FALSE(ours.verify(hmac));
  for (std::string bad : {std::string(), std::string("a.b"), std::string("..."), token + "A", token.substr(0, token.size() - 2),
                          std::string(100000, '.')})
    EXPECT_FALSE(ours.verify(bad)) << bad.substr(0, 50);
  std::string changed = token;
  changed[parts[0] + 3] = changed[parts[0] + 3] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(ours.verify(changed));
  EXPECT_FALSE(TokenSigner::make("nonsense"));
  EXPECT_EQ(ours.public_jwk()["crv"], "P-256");
}

}  // namespace
}  // namespace coracle::auth
