// SPDX-License-Identifier: Apache-2.0
// The chain as a whole: its order, and that a plugin gets the object as the earlier plugins changed it.
#include "daemon/admission/chain.h"

#include "tests/daemon/admission/admission_fixture.h"

namespace coracle::admission {
namespace {

TEST(Chain, has_kubernetes_order) {
  AdmissionFixture fixture;
  Chain chain(*fixture.engine, [] { return "x"; }, {});
  EXPECT_EQ(chain.names(),
            (std::vector<std::string_view>{"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "NodeRestriction",
                                           "TaintNodesByCondition", "PodSecurity", "Priority", "DefaultTolerationSeconds",
                                           "DefaultStorageClass", "StorageObjectInUseProtection", "PersistentVolumeClaimResize",
                                           "RuntimeClass", "DefaultIngressClass", "DenyServiceExternalIPs", "Warnings",
                                           "NotServed", "StartOrder", "ResourceQuota"}));
}

std::string reachable_by(const std::string& addresses) {
  return R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"default"},"spec":{"ports":[{"port":80}],"externalIPs":[)" +
         addresses + "]}}";
}

TEST(DenyServiceExternalIPs, refuses_new_ones_where_the_settings_say_so) {
  AdmissionFixture fixture;
  MUST(fixture.put(reachable_by(R"("192.0.2.1","192.0.2.2")")));
  fixture.admission.deny_service_external_ips = true;
  fixture.reopen();
  auto change = [&](const char* patch) {
    auto made = fixture.try_merge(kService, {"default", "s"}, patch);
    return made ? "allowed" : made.error().text();
  };
  EXPECT_EQ(change(R"({"spec":{"externalIPs":["192.0.2.2"]}})"), "allowed") << "it was there before";
  EXPECT_EQ(change(R"({"spec":{"externalIPs":["192.0.2.2","192.0.2.3"]}})"),
            "services \"s\" is forbidden: Use of external IPs is denied by admission control.");
  EXPECT_EQ(change(R"({"metadata":{"labels":{"a":"b"}}})"), "allowed");
  MUST(fixture.registry().remove(kService, {"default", "s"}, {}, {}));
  EXPECT_EQ(fixture.refusal(reachable_by(R"("192.0.2.1")")),
            "services \"s\" is forbidden: Use of external IPs is denied by admission control.");
  EXPECT_EQ(fixture.refusal(reachable_by("")), "admitted");
}

struct Written {
  const char* object;
  const char* warning;  // "": no warning
};

TEST(NotServed, what_is_stored_and_not_acted_on_says_so) {
  AdmissionFixture fixture;
  MUST(fixture.put(
      R"({"apiVersion":"networking.k8s.io/v1","kind":"IngressClass","metadata":{"name":"here"},"spec":{"controller":"a.b/c"}})"));
  fixture.admission.has_app_armor = false;
  fixture.reopen();
  for (
      const Written& row : {
          Written{
              R"({"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n","namespace":"default"},"spec":{"podSelector":{}}})",
              "NetworkPolicies are stored, but not enforced yet: pods are reached as without them"},
          Written{
              R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"p","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})",
              ""},
          Written{
              R"({"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"i","namespace":"default"},"spec":{"ingressClassName":"gone","defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})",
              "Ingresses are stored, but nothing here serves them by itself: there is no IngressClass \"gone\""},
          Written{
              R"({"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"j","namespace":"default"},"spec":{"ingressClassName":"here","defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})",
              ""},
          Written{
              R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"w"}})",
              "webhooks are stored, but not called yet"},
          Written{
              R"({"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.example.com"},"spec":{"group":"example.com","version":"v1","groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true,"service":{"name":"s","namespace":"default","port":443}}})",
              "APIServices are stored, but requests are not passed on to their services yet"},
          Written{R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}})", ""},
          Written{
              R"({"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"t","namespace":"default"},"template":{"spec":{"containers":[{"name":"c","image":"i","securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}]}}})",
              "this machine's kernel has no AppArmor: pods that ask for a profile do not run"},
          Written{
              R"({"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"u","namespace":"default"},"template":{"spec":{"securityContext":{"appArmorProfile":{"type":"Unconfined"}},"containers":[{"name":"c","image":"i"}]}}})",
              ""},
          Written{
              R"({"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"v","namespace":"default"},"template":{"spec":{"securityContext":{"seLinuxOptions":{"type":"spc_t"}},"containers":[{"name":"c","image":"i"}]}}})",
              "seLinuxOptions have no effect: containers get no SELinux label here"},
          Written{
              R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"w","namespace":"default"},"spec":{"initContainers":[{"name":"b","image":"i","securityContext":{"seLinuxOptions":{"level":"s0:c1"}}}],"containers":[{"name":"c","image":"i"}]}})",
              "seLinuxOptions have no effect: containers get no SELinux label here"},
          Written{
              R"({"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"x","namespace":"default"},"template":{"spec":{"securityContext":{"seLinuxOptions":{},"seLinuxChangePolicy":"Recursive"},"containers":[{"name":"c","image":"i"}]}}})",
              ""},
      }) {
    fixture.warnings.clear();
    auto made = fixture.put(row.object);
    ASSERT_TRUE(made) << row.object << ": " << made.error().text();
    std::vector<std::string> want;
    if (*row.warning) want.emplace_back(row.warning);
    EXPECT_EQ(fixture.warnings, want) << row.object;
  }
}

TEST(NotServed, tells_it_at_an_update_too) {
  AdmissionFixture fixture;
  MUST(fixture.put(
      R"({"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n","namespace":"default"},"spec":{"podSelector":{}}})"));
  registry::Writer writer;
  std::vector<std::string> warnings;
  writer.warnings = &warnings;
  const Kind& kind = fixture.kind("networking.k8s.io/v1", "NetworkPolicy");
  json::value label = AdmissionFixture::parse(R"({"metadata":{"labels":{"a":"b"}}})");
  MUST(fixture.registry().patch(kind, {"default", "n"}, {}, PatchType::merge, label, false, writer));
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(Chain, a_quota_counts_what_a_range_gave) {
  AdmissionFixture fixture;
  MUST(fixture.put(
      R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"r","namespace":"default"},"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"300m"}}]}})"));
  ObjectPtr quota = MUST(fixture.put(
      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q","namespace":"default"},"spec":{"hard":{"requests.cpu":"500m"}}})"));
  fixture.store(*quota, "status", AdmissionFixture::parse(R"({"hard":{"requests.cpu":"500m"},"used":{"requests.cpu":"0"}})"));
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("a")), "admitted");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("b")),
            "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=300m, used: requests.cpu=300m, limited: "
            "requests.cpu=500m");
}

}  // namespace
}  // namespace coracle::admission
