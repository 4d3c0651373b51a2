// SPDX-License-Identifier: Apache-2.0
// The default roles of every cluster, and how they are updated without overwriting the user's changes.
#include "daemon/auth/default_roles.h"

#include <gtest/gtest.h>

#include <set>

#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/validate.h"
#include "tests/daemon/auth/auth_fixture.h"

namespace coracle::auth {
namespace {

TEST(DefaultRoles, are_valid_objects_and_bind_what_there_is) {
  std::set<std::string> roles;
  size_t bindings = 0;
  for (const DefaultObject& object : default_roles()) {
    const schema::KindInfo& info = schema::catalog().of(*object.kind);
    json::value body = MUST(schema::decode(info.type(), object.body)).value;
    schema::apply_defaults(info, body);
    auto causes = schema::validate_create(info, body);
    EXPECT_TRUE(causes.empty()) << to_text(object.body) << (causes.empty() ? "" : causes[0].field + causes[0].message);
    std::string ns(get_string(body, "metadata.namespace"));
    if (find(body, "roleRef")) {
      ++bindings;
      EXPECT_TRUE(roles.count(ns + "/" + std::string(get_string(body, "roleRef.name")))) << to_text(object.body);
    } else {
      EXPECT_TRUE(roles.insert(ns + "/" + std::string(get_string(body, "metadata.name"))).second);
    }
  }
  EXPECT_GT(roles.size(), 35u);
  EXPECT_EQ(bindings, 55u);
  for (const char* name :
       {"cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user", "system:public-info-viewer",
        "system:node", "system:kube-scheduler", "system:controller:job-controller"})
    EXPECT_TRUE(roles.count("/" + std::string(name))) << name;
}

// One of Kubernetes' controllers can run with its default account: it may do its work and nothing else.
TEST(DefaultRoles, controllers_have_roles_for_their_accounts) {
  AuthFixture fixture;
  auto may = [&](const char* account, const char* verb, const char* group, const char* resource, const char* sub = "") {
    User who = user(std::string("system:serviceaccount:kube-system:") + account,
                    {"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"});
    return fixture.may(who, verb, resource, "default", "x", group, sub);
  };
  EXPECT_TRUE(may("job-controller", "create", "", "pods"));
  EXPECT_TRUE(may("job-controller", "update", "batch", "jobs", "status"));
  EXPECT_FALSE(may("job-controller", "delete", "", "secrets"));
  EXPECT_TRUE(may("generic-garbage-collector", "delete", "apps", "deployments"));
  EXPECT_TRUE(may("horizontal-pod-autoscaler", "update", "apps", "deployments", "scale"));
  EXPECT_FALSE(may("horizontal-pod-autoscaler", "update", "apps", "deployments"));
  EXPECT_TRUE(may("resourcequota-controller", "list", "batch", "jobs"));
  EXPECT_FALSE(may("nobody-controller", "list", "batch", "jobs"));
}

TEST(DefaultRoles, are_made_once_and_come_back) {
  AuthFixture fixture;
  Revision before = fixture.engine->revision();
  MUST(ensure_default_roles(fixture.registry()));
  EXPECT_EQ(fixture.engine->revision(), before) << "nothing is missing, nothing is written";
  MUST(fixture.registry().remove(kClusterRoleBinding, {"", "system:discovery"}, {}, {}));
  MUST(fixture.try_merge(kClusterRole, {"", "view"}, R"({"metadata":{"labels":{"mine":"x"}}})"));
  MUST(fixture.try_merge(kClusterRole, {"", "system:basic-user"},
                         R"({"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})"));
  MUST(ensure_default_roles(fixture.registry()));
  EXPECT_TRUE(fixture.registry().get(kClusterRoleBinding, {"", "system:discovery"}));
  EXPECT_EQ(MUST(fixture.registry().get(kClusterRole, {"", "view"}))->label("mine"), "x");
  Rules rules = read_rules(MUST(fixture.registry().get(kClusterRole, {"", "system:basic-user"}))->json());
  EXPECT_TRUE(uncovered(rules, default_rules("system:basic-user")).empty());
  EXPECT_EQ(rules[0].resources, std::vector<std::string>{"pods"}) << "what somebody added stays";
}

TEST(DefaultRoles, are_left_alone_when_asked) {
  AuthFixture fixture;
  MUST(fixture.try_merge(kClusterRole, {"", "system:basic-user"},
                         R"({"rules":[],"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}})"));
  MUST(
      fixture.try_merge(kClusterRoleBinding, {"", "system:public-info-viewer"},
                        R"({"subjects":[],"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}})"));
  MUST(ensure_default_roles(fixture.registry()));
  EXPECT_TRUE(read_rules(MUST(fixture.registry().get(kClusterRole, {"", "system:basic-user"}))->json()).empty());
  EXPECT_FALSE(fixture.may_path(user("system:anonymous", {"system:unauthenticated"}), "get", "/healthz"));
}

TEST(DefaultRoles, subjects_that_were_taken_away_come_back) {
  AuthFixture fixture;
  MUST(fixture.try_merge(kClusterRoleBinding, {"", "system:public-info-viewer"},
                         R"({"subjects":[{"kind":"User","name":"jane"}]})"));
  MUST(ensure_default_roles(fixture.registry()));
  EXPECT_EQ(
      get_array(MUST(fixture.registry().get(kClusterRoleBinding, {"", "system:public-info-viewer"}))->json(), "subjects").size(),
      3u);
}

TEST(DefaultRoles, a_binding_to_another_role_is_made_anew) {
  AuthFixture fixture;
  MUST(fixture.registry().remove(kClusterRoleBinding, {"", "system:basic-user"}, {}, {}));
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"system:basic-user"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group","name":"system:authenticated"}]})");
  MUST(ensure_default_roles(fixture.registry()));
  EXPECT_EQ(get_string(MUST(fixture.registry().get(kClusterRoleBinding, {"", "system:basic-user"}))->json(), "roleRef.name"),
            "system:basic-user");
}

TEST(DefaultRoles, who_may_view_may_look_at_what_is_measured) {
  AuthFixture fixture;
  ObjectPtr role = MUST(fixture.registry().get(kClusterRole, {"", "system:aggregated-metrics-reader"}));
  EXPECT_EQ(role->label("rbac.authorization.k8s.io/aggregate-to-view"), "true");
  fixture.make(
      kClusterRoleBinding,
      R"({"metadata":{"name":"look"},"roleRef":{"kind":"ClusterRole","name":"system:aggregated-metrics-reader"},"subjects":[{"kind":"User","name":"jane"}]})");
  for (const char* resource : {"pods", "nodes"}) {
    EXPECT_TRUE(fixture.may(user("jane"), "list", resource, "", "", "metrics.k8s.io", ""));
    EXPECT_FALSE(fixture.may(user("jane"), "list", resource, "", "", "", ""));
    EXPECT_FALSE(fixture.may(user("jane"), "delete", resource, "", "x", "metrics.k8s.io", ""));
  }
}

// Its labels and rules are those of metrics-server's components.yaml.
TEST(DefaultRoles, the_role_of_metrics_server_may_be_applied_over_the_built_in_one) {
  AuthFixture fixture;
  registry::Writer writer;
  writer.user = &kAdmin;
  writer.field_manager = "kubectl";
  const json::value role = AuthFixture::parse(R"({
      "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
      "metadata": {"name": "system:aggregated-metrics-reader",
                   "labels": {"k8s-app": "metrics-server", "rbac.authorization.k8s.io/aggregate-to-admin": "true",
                              "rbac.authorization.k8s.io/aggregate-to-edit": "true",
                              "rbac.authorization.k8s.io/aggregate-to-view": "true"}},
      "rules": [{"apiGroups": ["metrics.k8s.io"], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}]})");
  MUST(fixture.registry().patch(kClusterRole, {"", "system:aggregated-metrics-reader"}, "", PatchType::apply, role, false,
                                writer));
}

}  // namespace
}  // namespace coracle::auth
