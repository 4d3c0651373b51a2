// SPDX-License-Identifier: Apache-2.0
// PodSecurity: each check of the standards with its message, the version that each check starts with, and the effect of a
// namespace's labels on pods, workloads and the namespace itself.
#include "daemon/admission/pod_security_policy.h"
#include "tests/daemon/admission/admission_fixture.h"

namespace coracle::admission {
namespace {

std::string found(SecurityLevel level, std::optional<int> minor, const std::string& spec, const std::string& metadata = "{}") {
  json::value of_pod = MUST(parse_json(metadata)), of_spec = MUST(parse_json(spec));
  return details(violations({level, minor}, view::ObjectMeta(of_pod), view::PodSpec(of_spec)));
}
constexpr auto kBaseline = SecurityLevel::baseline, kRestricted = SecurityLevel::restricted;

std::string of(const std::string& container) {
  return R"({"containers":[{"name":"a")" + std::string(container.empty() ? "" : ",") + container + "}]}";
}
std::string secure(const std::string& context) { return of(R"("securityContext":{)" + context + "}"); }

TEST(PodSecurityPolicy, baseline_in_kubernetes_words) {
  struct Row {
    std::string spec, says, metadata = "{}";
  };
  const Row rows[] = {
      {of(""), ""},
      {secure(R"("privileged":true)"), R"(privileged (container "a" must not set securityContext.privileged=true))"},
      {R"({"hostNetwork":true,"hostPID":true,"containers":[]})", "host namespaces (hostNetwork=true, hostPID=true)"},
      {R"({"containers":[],"volumes":[{"name":"v","hostPath":{}},{"name":"w","hostPath":{}}]})",
       R"(hostPath volumes (volumes "v", "w"))"},
      {R"({"containers":[{"name":"a","ports":[{"hostPort":80}]},{"name":"b","ports":[{"hostPort":80},{"hostPort":443}]}]})",
       R"(hostPort (containers "a", "b" use hostPorts 443, 80))"},
      {of(R"("ports":[{"hostPort":80}])"), R"(hostPort (container "a" uses hostPort 80))"},
      {secure(R"("capabilities":{"add":["CHOWN","SYS_ADMIN","NET_RAW"]})"),
       R"(non-default capabilities (container "a" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add))"},
      {secure(R"("procMount":"Unmasked")"), R"(procMount (container "a" must not set securityContext.procMount to "Unmasked"))"},
      {R"({"hostUsers":false,"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]})", ""},
      {secure(R"("seLinuxOptions":{"type":"spc_t","user":"u"})"),
       R"(seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set))"},
      {R"({"securityContext":{"seLinuxOptions":{"role":"r"}},"containers":[]})",
       "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: role may not be set)"},
      {secure(R"("seccompProfile":{"type":"Unconfined"})"),
       R"(seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined"))"},
      {R"({"securityContext":{"sysctls":[{"name":"net.core.somaxconn"},{"name":"net.ipv4.tcp_rmem"}]},"containers":[]})",
       "forbidden sysctls (net.core.somaxconn)"},
      {R"({"securityContext":{"windowsOptions":{"hostProcess":true}},"containers":[]})",
       "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
      {secure(R"("appArmorProfile":{"type":"Unconfined"})"),
       R"(forbidden AppArmor profile (container "a" must not set AppArmor profile type to "Unconfined"))"},
      {of(""),
       R"(forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/a="unconfined""))",
       R"({"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"unconfined"}})"},
      {of(R"("livenessProbe":{"httpGet":{"host":"10.0.0.1"}})"),
       R"(probe or lifecycle host (container "a" uses probe or lifecycle host "10.0.0.1"))"},
      {R"({"containers":[],"ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}]})",
       R"(privileged (container "e" must not set securityContext.privileged=true))"},
      {R"({"hostIPC":true,"containers":[{"name":"a","securityContext":{"privileged":true}}]})",
       R"(host namespaces (hostIPC=true), privileged (container "a" must not set securityContext.privileged=true))"},
  };
  for (const Row& row : rows) EXPECT_EQ(found(kBaseline, std::nullopt, row.spec, row.metadata), row.says) << row.spec;
}

constexpr const char* kGood =
    R"("allowPrivilegeEscalation":false,"runAsNonRoot":true,"capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"RuntimeDefault"})";

TEST(PodSecurityPolicy, restricted_in_kubernetes_words) {
  EXPECT_EQ(found(kRestricted, std::nullopt, secure(kGood)), "");
  EXPECT_EQ(
      found(kRestricted, std::nullopt, of("")),
      R"(allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), )"
      R"(unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), )"
      R"(runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), )"
      R"(seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))");
  struct Row {
    std::string spec, says;
  };
  auto with = [](const std::string& more) { return secure(std::string(kGood) + more); };
  const Row rows[] = {
      {with(R"(,"runAsUser":0)"), R"(runAsUser=0 (container "a" must not set runAsUser=0))"},
      {R"({"securityContext":{"runAsNonRoot":false},"containers":[{"name":"a","securityContext":{)" + std::string(kGood) + "}}]}",
       "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"},
      {R"({"hostUsers":false,"securityContext":{"runAsUser":0},"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"Localhost"}}}]})",
       ""},
      {R"({"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true},"containers":[{"name":"a"}]})", ""},
      {secure(
           R"("allowPrivilegeEscalation":false,"runAsNonRoot":true,"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE","CHOWN"]},"seccompProfile":{"type":"Localhost"})"),
       R"(unrestricted capabilities (container "a" must not include "CHOWN" in securityContext.capabilities.add))"},
      {R"({"volumes":[{"name":"h","hostPath":{}},{"name":"n","nfs":{}},{"name":"s","secret":{}}],"containers":[{"name":"a","securityContext":{)" +
           std::string(kGood) + "}}]}",
       R"(restricted volume types (volumes "h", "n" use restricted volume types "hostPath", "nfs"))"},
  };
  for (const Row& row : rows) EXPECT_EQ(found(kRestricted, std::nullopt, row.spec), row.says) << row.spec;
}

TEST(PodSecurityPolicy, older_versions_know_less) {
  EXPECT_EQ(found(kRestricted, 0, of("")),
            R"(runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true))");
  EXPECT_EQ(found(kBaseline, 33, of(R"("livenessProbe":{"httpGet":{"host":"h"}})")), "");
  EXPECT_NE(found(kBaseline, 34, of(R"("livenessProbe":{"httpGet":{"host":"h"}})")), "");
  EXPECT_NE(found(kBaseline, 30, secure(R"("seLinuxOptions":{"type":"container_engine_t"})")), "");
  EXPECT_EQ(found(kBaseline, 31, secure(R"("seLinuxOptions":{"type":"container_engine_t"})")), "");
  EXPECT_NE(
      found(kBaseline, 26, R"({"securityContext":{"sysctls":[{"name":"net.ipv4.ip_local_reserved_ports"}]},"containers":[]})"),
      "");
  EXPECT_EQ(found(kBaseline, 99, R"({"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_wmem"}]},"containers":[]})"), "")
      << "newer than we know is the newest we know";
  EXPECT_NE(found(kBaseline, 34, R"({"hostUsers":false,"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]})"),
            "");
  EXPECT_EQ(found(kBaseline, 18, of(""), R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}})"),
            R"(seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined"))");
}

TEST(PodSecurityPolicy, labels) {
  auto policy = [](const char* labels) { return policy_of(MUST(parse_json(labels)).as_object()); };
  EXPECT_TRUE(policy("{}").privileged());
  SecurityPolicy strict =
      policy(R"({"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/enforce-version":"v1.30"})");
  EXPECT_EQ(strict.enforce.text(), "restricted:v1.30");
  EXPECT_EQ(strict.warn.text(), "restricted:v1.30") << "who is refused is warned too";
  EXPECT_EQ(strict.audit.text(), "privileged:latest");
  EXPECT_EQ(
      policy(R"({"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/warn":"privileged"})").warn.text(),
      "privileged:latest");
  SecurityPolicy wrong =
      policy(R"({"pod-security.kubernetes.io/enforce":"strict","pod-security.kubernetes.io/audit-version":"v1.030"})");
  EXPECT_EQ(wrong.enforce.text(), "restricted:latest");
  ASSERT_EQ(wrong.errors.size(), 2u);
  EXPECT_EQ(wrong.errors[0].field, "metadata.labels[pod-security.kubernetes.io/enforce]");
  EXPECT_EQ(wrong.errors[0].message, "Invalid value: \"strict\": must be one of privileged, baseline, restricted");
  EXPECT_EQ(wrong.errors[1].message, "Invalid value: \"v1.030\": must be \"latest\" or \"v1.x\"");
}

class PodSecurityTest : public testing::Test {
 protected:
  void level(const std::string& labels) {
    MUST(fixture.try_merge(kNamespace, {"", "default"}, R"({"metadata":{"labels":{)" + labels + "}}}"));
  }
  AdmissionFixture fixture;
};

TEST_F(PodSecurityTest, enforces_on_pods_and_warns_of_workloads) {
  level(R"("pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/audit":"restricted")");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("p", R"(,"securityContext":{"privileged":true})")),
            "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container \"c\" must not set "
            "securityContext.privileged=true)");
  EXPECT_TRUE(fixture.warnings.empty()) << "who is refused is told once";
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("p")), "admitted");
  EXPECT_EQ(fixture.audit["pod-security.kubernetes.io/enforce-policy"], "baseline:latest");
  EXPECT_TRUE(fixture.audit["pod-security.kubernetes.io/audit-violations"].starts_with(
      "would violate PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false"));
  MUST(fixture.put(
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"hostNetwork":true,"containers":[{"name":"c","image":"i"}]}}}})"));
  EXPECT_EQ(fixture.warnings,
            std::vector<std::string>{"would violate PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"});
}

// The restricted level does not require Linux fields of a Windows pod. So such a pod may not set them, and may not become a Linux
// pod later.
TEST_F(PodSecurityTest, a_pod_of_windows_is_no_way_around_it) {
  level(R"("pod-security.kubernetes.io/enforce":"restricted")");
  const std::string windows = R"(,"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true})";
  for (const char* context : {R"("capabilities":{"add":["SYS_ADMIN"]})", R"("runAsUser":0)", R"("allowPrivilegeEscalation":true)",
                              R"("seccompProfile":{"type":"Unconfined"})", R"("privileged":false)"}) {
    std::string why =
        fixture.refusal(AdmissionFixture::pod("p", R"(,"securityContext":{)" + std::string(context) + "}", windows));
    EXPECT_NE(why.find("cannot be set for a windows pod"), std::string::npos) << context << ": " << why;
  }
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("p", "", windows)), "admitted") << "which no Linux node runs";
  for (const char* os : {"null", R"({"name":"linux"})"}) {
    auto changed = fixture.try_merge(kPod, {"default", "p"}, R"({"spec":{"os":)" + std::string(os) + "}}");
    ASSERT_FALSE(changed) << os;
    EXPECT_NE(changed.error().text().find("changed: spec.os"), std::string::npos) << changed.error().text();
  }
}

TEST_F(PodSecurityTest, lets_changes_pass_that_are_none_to_it) {
  MUST(fixture.put(AdmissionFixture::pod("p", R"(,"securityContext":{"privileged":true})")));
  level(R"("pod-security.kubernetes.io/enforce":"baseline")");
  EXPECT_TRUE(fixture.try_merge(kPod, {"default", "p"}, R"({"metadata":{"labels":{"a":"b"}}})"));
  json::value other = AdmissionFixture::parse(R"([{"op":"replace","path":"/spec/containers/0/image","value":"other"}])");
  auto image = fixture.registry().patch(kPod, {"default", "p"}, {}, PatchType::json, other, false, {});
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().text().find("violates PodSecurity"), std::string::npos) << image.error().text();
}

TEST_F(PodSecurityTest, a_namespace_is_told_which_of_its_pods_would_not_do) {
  for (const char* name : {"a", "b", "x"})
    MUST(fixture.put(AdmissionFixture::pod(name, R"(,"securityContext":{"privileged":true})")));
  MUST(fixture.put(AdmissionFixture::pod("c", "", R"(,"hostPID":true)")));
  json::value labelled = MUST(fixture.registry().get(kNamespace, {"", "default"}))->json();
  make(labelled, "metadata.labels").get_object()["pod-security.kubernetes.io/enforce"] = "baseline";
  registry::Writer writer;
  writer.warnings = &fixture.warnings;
  MUST(fixture.registry().update(kNamespace, {"", "default"}, {}, labelled, writer));
  EXPECT_EQ(fixture.warnings,
            (std::vector<std::string>{
                "existing pods in namespace \"default\" violate the new PodSecurity enforce level \"baseline:latest\"",
                "a (and 2 other pods): privileged", "c: host namespaces"}));
  auto wrong = fixture.put(
      R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","labels":{"pod-security.kubernetes.io/enforce":"no"}}})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::invalid);
}

}  // namespace
}  // namespace coracle::admission
