// SPDX-License-Identifier: Apache-2.0
// Roles, bindings and Ingresses from flags, as kubectl makes them.
#include "ctl/generate_rbac.h"

#include <gtest/gtest.h>

#include "ctl/flag_values.h"
#include "ctl/generate_ingress.h"
#include "ctl/set.h"
#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

// Knows pods, deployments and roles.
Result<RuleResource> found_resource(const RuleResource& typed) {
  if (typed.name == "po" || typed.name == "pods") return RuleResource{"pods", "", ""};
  if (typed.name == "deploy" || typed.name == "deployments") return RuleResource{"deployments", "apps", ""};
  if (typed.name == "roles") return RuleResource{"roles", "rbac.authorization.k8s.io", ""};
  return Error(Code::not_found, "the server doesn't have a resource type " + typed.name);
}

std::string role(const RoleFlags& flags, std::string* warned = nullptr) {
  auto made = role_of(flags, found_resource, [&](const std::string& text) {
    if (warned) *warned += text + "\n";
  });
  return made ? to_text(*find(*made, "rules")) : made.error().text();
}

std::string cluster_role(const RoleFlags& flags) {
  auto made = cluster_role_of(flags, found_resource, [](const std::string&) {});
  return made ? to_text(*made) : made.error().text();
}

TEST(GenerateRbac, a_rule_for_each_group) {
  EXPECT_EQ(role({.verbs = {"get", "list", "get"}, .resources = {"deploy.apps", "po", "pods/log", "pods"}}),
            R"([{"verbs":["get","list"],"apiGroups":[""],"resources":["pods","pods/log"]},)"
            R"({"verbs":["get","list"],"apiGroups":["apps"],"resources":["deployments"]}])");
  EXPECT_EQ(role({.verbs = {"get", "*"}, .resources = {"pods", "*"}, .resource_names = {"a", "b", "a"}}),
            R"([{"verbs":["*"],"apiGroups":[""],"resources":["*"],"resourceNames":["a","b"]}])");
  std::string warned;
  EXPECT_EQ(role({.verbs = {"dance"}, .resources = {"pods"}}, &warned),
            R"([{"verbs":["dance"],"apiGroups":[""],"resources":["pods"]}])");
  EXPECT_EQ(warned, "'dance' is not a standard resource verb\n");
  EXPECT_EQ(role({.verbs = {"bind"}, .resources = {"roles"}}),
            R"([{"verbs":["bind"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"]}])");
  EXPECT_EQ(role({.verbs = {"impersonate"}, .resources = {"users"}}),
            R"([{"verbs":["impersonate"],"apiGroups":[""],"resources":["users"]}])")
      << "no server has it";
}

TEST(GenerateRbac, says_what_is_wrong_with_a_role) {
  EXPECT_EQ(role({.resources = {"pods"}}), "at least one verb must be specified");
  EXPECT_EQ(role({.verbs = {"get"}}), "at least one resource must be specified");
  EXPECT_EQ(role({.verbs = {"get"}, .resources = {"/log"}}), "resource must be specified if apiGroup/subresource specified");
  EXPECT_EQ(role({.verbs = {"get"}, .resources = {"gadgets"}}), "the server doesn't have a resource type gadgets");
  EXPECT_EQ(role({.verbs = {"bind"}, .resources = {"pods"}}), "can not perform 'bind' on 'pods' in group ''");
}

TEST(GenerateRbac, cluster_roles_have_paths_or_others) {
  std::string head = R"({"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"x"},"rules":)";
  EXPECT_EQ(
      cluster_role({.name = "x", .verbs = {"get"}, .resources = {"pods"}, .non_resource_urls = {"/a*", "*"}}),
      head + R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},{"verbs":["get"],"nonResourceURLs":["/a*","*"]}]})");
  EXPECT_EQ(cluster_role({.name = "x", .aggregation = {"b=c", "a=d"}}),
            head + R"(null,"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"d","b":"c"}}]}})");
  EXPECT_EQ(cluster_role({.verbs = {"get"}, .aggregation = {"a=b"}}),
            "aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames");
  EXPECT_EQ(cluster_role({.aggregation = {"a"}}),
            "invalid argument \"a\" for \"--aggregation-rule\" flag: malformed pair, expect string=string");
  EXPECT_EQ(cluster_role({.verbs = {"get"}}), "one of resource or nonResourceURL must be specified");
  EXPECT_EQ(cluster_role({.verbs = {"list"}, .non_resource_urls = {"/a"}}), "invalid verb: 'list' for nonResourceURL");
  EXPECT_EQ(cluster_role({.verbs = {"get"}, .non_resource_urls = {"a"}}), "nonResourceURL should start with /");
  EXPECT_EQ(cluster_role({.verbs = {"get"}, .non_resource_urls = {"/a*b"}}),
            "nonResourceURL only supports wildcard matches when '*' is at the end");
}

TEST(GenerateRbac, bindings_and_their_subjects) {
  BindingFlags flags;
  flags.name = "x", flags.role = "r";
  flags.users = {"u"}, flags.groups = {"g"}, flags.service_accounts = {"n:s"};
  EXPECT_EQ(to_text(*role_binding_of(flags)),
            R"({"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"x"},"subjects":[)"
            R"({"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"u"},)"
            R"({"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"g"},)"
            R"({"kind":"ServiceAccount","name":"s","namespace":"n"}],)"
            R"("roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}})");
  flags.cluster_role = "c";
  EXPECT_EQ(role_binding_of(flags).error().text(), "exactly one of clusterrole or role must be specified");
  for (const char* account : {"s", ":s", "n:", "a:b:c"})
    EXPECT_EQ(subjects_of({{}, {}, {account}}, "").error().text(), "serviceaccount must be <namespace>:<name>") << account;
  EXPECT_EQ(to_text(*subjects_of({{}, {}, {":s"}}, "ours")), R"([{"kind":"ServiceAccount","name":"s","namespace":"ours"}])");
}

TEST(GenerateRbac, a_binding_gets_the_subjects_that_it_lacks) {
  json::value binding =
      parsed(R"({"kind":"RoleBinding","subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"a"}]})");
  ASSERT_TRUE(add_subjects(binding, *subjects_of({{"a", "b"}, {}, {}}, "")));
  EXPECT_EQ(get_array(binding, "subjects").size(), 2u);
  json::value service = parsed(R"({"kind":"Service"})");
  EXPECT_EQ(add_subjects(service, {}).error().text(), "setting subjects is only supported for RoleBinding/ClusterRoleBinding");
}

TEST(GenerateIngress, rules_by_host_and_secrets) {
  auto made = ingress_of({.name = "x",
                          .ingress_class = "c",
                          .default_backend = "d:1",
                          .rules = {"foo.com/*=svc:80,tls=s", "/b=s:http", "foo.com/c=svc:80", "bar.com/=svc:80,tls"},
                          .annotations = {"c=d=e", "a="}});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(
      to_text(*made),
      R"({"kind":"Ingress","apiVersion":"networking.k8s.io/v1","metadata":{"name":"x","annotations":{"a":"","c":"d=e"}},"spec":{)"
      R"("ingressClassName":"c","defaultBackend":{"service":{"name":"d","port":{"number":1}}},)"
      R"("tls":[{"hosts":["foo.com"],"secretName":"s"},{"hosts":["bar.com"]}],"rules":[)"
      R"({"host":"foo.com","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"svc","port":{"number":80}}}},)"
      R"({"path":"/c","pathType":"Exact","backend":{"service":{"name":"svc","port":{"number":80}}}}]}},)"
      R"({"http":{"paths":[{"path":"/b","pathType":"Exact","backend":{"service":{"name":"s","port":{"name":"http"}}}}]}},)"
      R"({"host":"bar.com","http":{"paths":[{"path":"/","pathType":"Exact","backend":{"service":{"name":"svc","port":{"number":80}}}}]}}]},)"
      R"("status":{"loadBalancer":{}}})");
}

TEST(GenerateIngress, says_what_is_wrong) {
  EXPECT_TRUE(ingress_of({}).error().text().starts_with("not enough information provided: every ingress has to either"));
  for (const char* rule : {"a", "a/b", "a/b=c", "a/b=c:", "a b/c=d:1", "a/b=c:1,ssl", "a/b=c:1,tls=x y"})
    EXPECT_EQ(ingress_of({.rules = {rule}}).error().text(),
              "rule " + std::string(rule) + " is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]");
  EXPECT_EQ(ingress_of({.default_backend = "a"}).error().text(), "default-backend should be in format servicename:serviceport");
  EXPECT_EQ(ingress_of({.default_backend = "a:1", .annotations = {"b"}}).error().text(),
            "annotation b is invalid and should be in format key=[value]");
}

TEST(FlagValues, images_have_names) {
  for (const char* name :
       {"nginx", "nginx:1.27", "localhost/busybox:latest", "registry:5000/team/my_app.x:2", "Host.example/a--b/c__d",
        "a@sha256:0123456789abcdef0123456789abcdef", "10.0.0.1:80/x", "quay.io/a/b:V1_x"})
    EXPECT_TRUE(is_image_reference(name)) << name;
  for (const char* name : {"", "Nginx", "a b", "a:", "a:-x", "a//b", "a/", "/a", "a/B", "a..b", "a_-b", "_a", "a_", "a@sha256:00",
                           "a@x", "http://x/y", "-host/a"})
    EXPECT_FALSE(is_image_reference(name)) << name;
}

TEST(FlagValues, times_are_read_as_go_reads_them) {
  for (const char* time :
       {"2024-02-29T00:00:00Z", "2024-01-02T3:04:05Z", "2024-01-02T03:04:05.123456789+01:00", "0000-01-01T00:00:00,5Z"})
    EXPECT_EQ(fault_of_time(time), "") << time;
  auto unlike = [](const std::string& rest, const std::string& sample) {
    return " as \"2006-01-02T15:04:05Z07:00\": cannot parse \"" + rest + "\" as \"" + sample + "\"";
  };
  for (const auto& [time, fault] :
       std::vector<std::pair<std::string, std::string>>{{"yesterday", unlike("yesterday", "2006")},
                                                        {"2024", unlike("", "-")},
                                                        {"2024-1-02", unlike("1-02", "01")},
                                                        {"2024-13-02", ": month out of range"},
                                                        {"2024-01-02 03:04:05Z", unlike(" 03:04:05Z", "T")},
                                                        {"2024-01-02T24:00:00Z", ": hour out of range"},
                                                        {"2024-01-02T03:04:60Z", ": second out of range"},
                                                        {"2024-01-02T03:04:05", unlike("", "Z07:00")},
                                                        {"2024-01-02T03:04:05.5", unlike("", "Z07:00")},
                                                        {"2024-01-02T03:04:05+0100", unlike("+0100", "Z07:00")},
                                                        {"2024-01-02T03:04:05+25:00", ": time zone offset hour out of range"},
                                                        {"2024-01-02T03:04:05Z!", ": extra text: \"!\""},
                                                        {"2023-02-29T00:00:00Z", ": day out of range"}})
    EXPECT_EQ(fault_of_time(time), "parsing time \"" + time + "\"" + fault);
}

TEST(FlagValues, ports_have_16_bits) {
  for (const char* port : {"0", "80", "65535"}) EXPECT_EQ(fault_of_port(port), "") << port;
  EXPECT_EQ(fault_of_port("65536"), "strconv.ParseUint: parsing \"65536\": value out of range");
  EXPECT_EQ(fault_of_port("99999999999999999999"), "strconv.ParseUint: parsing \"99999999999999999999\": value out of range");
  for (const char* port : {"", "-1", "http"})
    EXPECT_EQ(fault_of_port(port), "strconv.ParseUint: parsing \"" + std::string(port) + "\": invalid syntax");
}

TEST(FlagValues, selectors_become_objects) {
  auto selector = [](const std::string& text) {
    auto made = label_selector_of(text);
    return made ? to_text(*made) : made.error().text();
  };
  EXPECT_EQ(selector("b=2, a==1"), R"({"matchLabels":{"a":"1","b":"2"}})");
  EXPECT_EQ(
      selector("e notin (z), a in (c,b),d,!f,x="),
      R"({"matchLabels":{"x":""},"matchExpressions":[{"key":"a","operator":"In","values":["b","c"]},{"key":"d","operator":"Exists"},)"
      R"({"key":"e","operator":"NotIn","values":["z"]},{"key":"f","operator":"DoesNotExist"}]})");
  EXPECT_EQ(selector("a!=b"), R"("!=" is not a valid label selector operator)");
  EXPECT_EQ(selector("a>1"), R"("gt" isn't supported in label selectors)");
  EXPECT_TRUE(selector("a in").starts_with(R"(couldn't parse the selector string "a in": )")) << selector("a in");
}

}  // namespace
}  // namespace coracle::ctl
