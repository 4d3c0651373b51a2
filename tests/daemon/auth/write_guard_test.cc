// SPDX-License-Identifier: Apache-2.0
// Nobody grants rights that they do not have; nobody approves or signs for a signer without the right to it.
#include "daemon/auth/write_guard.h"

#include <gtest/gtest.h>

#include "tests/daemon/auth/auth_fixture.h"
#include "tests/daemon/auth/certificate_text.h"

namespace coracle::auth {
namespace {

class Grants : public testing::Test {
 protected:
  Grants() {
    fixture.make(
        kClusterRole,
        R"({"metadata":{"name":"manager"},"rules":[{"verbs":["*"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["*"],"resourceNames":["none"]},
        {"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}]})");
    fixture.make(
        kClusterRoleBinding,
        R"({"metadata":{"name":"manager"},"roleRef":{"kind":"ClusterRole","name":"manager"},"subjects":[{"kind":"User","name":"jane"}]})");
  }
  std::string role(const std::string& rules) {
    return R"({"metadata":{"name":"r","namespace":"default"},"rules":[)" + rules + "]}";
  }
  AuthFixture fixture;
};

TEST_F(Grants, hold_only_what_their_writer_holds) {
  EXPECT_EQ(fixture.written_by(kJane, kRole, role(R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})")), "");
  EXPECT_EQ(fixture.merged_by(kJane, kRole, {"default", "r"},
                              R"({"rules":[{"verbs":["get","delete"],"apiGroups":[""],"resources":["pods","secrets"]}]})"),
            "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is attempting "
            "to grant RBAC permissions not "
            "currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}\n{APIGroups:[\"\"], "
            "Resources:[\"secrets\"], Verbs:[\"get\" \"delete\"]}");
  EXPECT_EQ(fixture.written_by(kAdmin, kClusterRole,
                               R"({"metadata":{"name":"all"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]})"),
            "");
  EXPECT_EQ(fixture.merged_by(kJane, kClusterRole, {"", "all"}, R"({"metadata":{"labels":{"a":"b"}}})"), "")
      << "the rules stay what they are";
}

TEST_F(Grants, can_be_escalated_by_who_may) {
  fixture.make(
      kClusterRole,
      R"({"metadata":{"name":"escalator"},"rules":[{"verbs":["escalate","bind"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","clusterroles"]}]})");
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"e"},"roleRef":{"kind":"ClusterRole","name":"escalator"},"subjects":[{"kind":"User","name":"eve"}]})");
  EXPECT_EQ(fixture.written_by(user("eve"), kRole, role(R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})")), "");
  EXPECT_EQ(fixture.written_by(user("eve"), kClusterRoleBinding,
                               R"({"metadata":{"name":"x"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"}})"),
            "");
}

TEST_F(Grants, bind_only_roles_whose_rules_are_held) {
  std::string text = fixture.written_by(
      kJane, kClusterRoleBinding,
      R"({"metadata":{"name":"x"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"jane"}]})");
  EXPECT_EQ(text.find("clusterrolebindings.rbac.authorization.k8s.io \"x\" is forbidden: user \"jane\" "
                      "(groups=[\"system:authenticated\"]) is attempting to grant"),
            0u)
      << text;
  EXPECT_NE(text.find("{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"),
            text.npos)
      << text;
  EXPECT_EQ(fixture.written_by(kJane, kRoleBinding,
                               R"({"metadata":{"name":"x","namespace":"default"},"roleRef":{"kind":"Role","name":"absent"}})"),
            "roles.rbac.authorization.k8s.io \"absent\" not found");
  EXPECT_EQ(fixture.written_by(kAdmin, kRoleBinding,
                               R"({"metadata":{"name":"x","namespace":"default"},"roleRef":{"kind":"Role","name":"absent"}})"),
            "");
  EXPECT_EQ(
      fixture.written_by(kJane, kRoleBinding,
                         R"({"metadata":{"name":"y","namespace":"default"},"roleRef":{"kind":"ClusterRole","name":"manager"}})"),
      "");
}

TEST_F(Grants, by_aggregation_are_for_who_has_everything) {
  EXPECT_EQ(
      fixture.written_by(kJane, kClusterRole,
                         R"({"metadata":{"name":"sum"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}})"),
      "clusterroles.rbac.authorization.k8s.io \"sum\" is forbidden: must have cluster-admin privileges to use the "
      "aggregationRule");
}

TEST_F(Grants, a_node_asks_for_certificates_of_its_own_name_only) {
  User node{"system:node:me", "", {"system:nodes", "system:authenticated"}, {}};
  for (const char* signer : {"kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"}) {
    EXPECT_EQ(fixture.written_by(node, kCertificateSigningRequest,
                                 certificate_request_text("theirs", signer, "/O=system:nodes/CN=system:node:you")),
              "certificatesigningrequests.certificates.k8s.io \"theirs\" is forbidden: can only create a node CSR with "
              "CN=system:node:me")
        << signer;
    std::string name = std::string_view(signer).ends_with("serving") ? "serving" : "client";
    EXPECT_EQ(fixture.written_by(node, kCertificateSigningRequest,
                                 certificate_request_text(name, signer, "/O=system:nodes/CN=system:node:me")),
              "")
        << signer;
    EXPECT_EQ(fixture.written_by(kJane, kCertificateSigningRequest,
                                 certificate_request_text("janes-" + name, signer, "/O=system:nodes/CN=system:node:you")),
              "")
        << "who is no node leaves it to the approver";
  }
  EXPECT_EQ(fixture.written_by(node, kCertificateSigningRequest, certificate_request_text("x", "example.com/a", "/CN=any")), "");
}

TEST_F(Grants, of_certificates_are_for_who_may_decide_for_the_signer) {
  std::string text = certificate_request_text("x", "example.com/a", "/CN=jane");
  EXPECT_EQ(fixture.written_by(kJane, kCertificateSigningRequest, text), "");
  ObjectPtr made = MUST(fixture.registry().get(kCertificateSigningRequest, {"", "x"}));
  EXPECT_EQ(get_string(made->json(), "spec.username"), "jane");
  EXPECT_EQ(to_text(*find(made->json(), "spec.groups")), R"(["system:authenticated"])");
  const char* approval = R"({"status":{"conditions":[{"type":"Approved","status":"True","reason":"me"}]}})";
  EXPECT_EQ(fixture.merged_by(kJane, kCertificateSigningRequest, {"", "x"}, approval, "approval"),
            "certificatesigningrequests.certificates.k8s.io \"x\" is forbidden: user not permitted to approve requests with "
            "signerName \"example.com/a\"");
  fixture.make(
      kClusterRole,
      R"({"metadata":{"name":"approver"},"rules":[{"verbs":["approve"],"apiGroups":["certificates.k8s.io"],"resources":["signers"],"resourceNames":["example.com/*"]}]})");
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"a"},"roleRef":{"kind":"ClusterRole","name":"approver"},"subjects":[{"kind":"User","name":"jane"}]})");
  EXPECT_EQ(fixture.merged_by(kJane, kCertificateSigningRequest, {"", "x"}, approval, "approval"), "");
  made = MUST(fixture.registry().get(kCertificateSigningRequest, {"", "x"}));
  EXPECT_NE(get_string(get_array(made->json(), "status.conditions").at(0), "lastUpdateTime"), "");
  EXPECT_EQ(
      fixture.merged_by(
          kJane, kCertificateSigningRequest, {"", "x"},
          R"({"status":{"conditions":[{"type":"Approved","status":"True","reason":"me"},{"type":"Failed","status":"True"}]}})",
          "status"),
      "certificatesigningrequests.certificates.k8s.io \"x\" is forbidden: user not permitted to sign requests with signerName "
      "\"example.com/a\"");
}

TEST_F(Grants, of_the_administrators_group_are_never_signed) {
  EXPECT_EQ(fixture.written_by(kAdmin, kCertificateSigningRequest,
                               certificate_request_text("x", "kubernetes.io/kube-apiserver-client", "/O=system:masters/CN=jane")),
            "certificatesigningrequests.certificates.k8s.io \"x\" is forbidden: use of kubernetes.io/kube-apiserver-client "
            "signer with system:masters group is not allowed");
}

TEST_F(Grants, the_spec_of_a_request_never_changes) {
  ASSERT_EQ(fixture.written_by(kJane, kCertificateSigningRequest, certificate_request_text("x", "example.com/a", "/CN=jane")),
            "");
  EXPECT_EQ(fixture.merged_by(
                user("john"), kCertificateSigningRequest, {"", "x"},
                R"({"metadata":{"labels":{"a":"b"}},"spec":{"username":"john","signerName":"kubernetes.io/kubelet-serving"}})"),
            "");
  ObjectPtr made = MUST(fixture.registry().get(kCertificateSigningRequest, {"", "x"}));
  EXPECT_EQ(get_string(made->json(), "spec.username"), "jane");
  EXPECT_EQ(get_string(made->json(), "spec.signerName"), "example.com/a");
  EXPECT_EQ(made->label("a"), "b");
}

// Without this check, PUT and apply of an absent object would create it with only the right to update or patch.
TEST_F(Grants, a_write_that_creates_needs_the_right_to_create) {
  for (auto [name, verbs] :
       {std::pair("writer", R"(["get","update","patch"])"), std::pair("maker", R"(["create","update","patch"])")}) {
    fixture.make(kRole, R"({"metadata":{"name":")" + std::string(name) + R"(","namespace":"default"},"rules":[{"verbs":)" +
                            verbs + R"(,"apiGroups":["","coordination.k8s.io"],"resources":["leases","configmaps"]}]})");
    fixture.make(kRoleBinding, R"({"metadata":{"name":")" + std::string(name) +
                                   R"(","namespace":"default"},"roleRef":{"kind":"Role","name":")" + name +
                                   R"("},"subjects":[{"kind":"User","name":")" + name + R"("}]})");
  }
  json::value lease = AuthFixture::parse(
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l","namespace":"default"}})");
  json::value config =
      AuthFixture::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"default"}})");
  User writer = user("writer"), maker = user("maker");
  auto put = [&](const User& who) {
    registry::Writer as;
    as.user = &who;
    auto written = fixture.registry().update(kLease, {"default", "l"}, "", lease, as);
    return written ? std::string() : written.error().text();
  };
  auto apply = [&](const User& who) {
    registry::Writer as;
    as.user = &who;
    as.field_manager = "me";
    auto written = fixture.registry().patch(kConfigMap, {"default", "m"}, "", PatchType::apply, config, false, as);
    return written ? std::string() : written.error().text();
  };
  EXPECT_EQ(put(writer),
            "leases.coordination.k8s.io \"l\" is forbidden: User \"writer\" cannot create resource \"leases\" in API group "
            "\"coordination.k8s.io\" in the namespace \"default\"");
  EXPECT_EQ(apply(writer),
            "configmaps \"m\" is forbidden: User \"writer\" cannot create resource \"configmaps\" in API group \"\" in the "
            "namespace \"default\"");
  EXPECT_EQ(put(maker), "");
  EXPECT_EQ(apply(maker), "");
  EXPECT_EQ(apply(writer), "") << "what is there may be written by who may patch";
}

}  // namespace
}  // namespace coracle::auth
