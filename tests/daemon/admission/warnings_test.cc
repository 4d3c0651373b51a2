// SPDX-License-Identifier: Apache-2.0
// Warnings about input that is valid but probably a mistake, with Kubernetes' messages.
#include "runtime/base/text.h"
#include "tests/daemon/admission/admission_fixture.h"

namespace coracle::admission {
namespace {

class Warnings : public testing::Test {
 protected:
  std::string said() const { return join(fixture.warnings, "\n"); }
  std::string of(const std::string& object) {
    fixture.warnings.clear();
    auto made = fixture.put(object);
    return made ? said() : "refused: " + made.error().text();
  }
  std::string of_pod(const std::string& container, const std::string& spec = "", const std::string& metadata = "") {
    return of(AdmissionFixture::pod("p" + std::to_string(++pods), container, spec, metadata));
  }
  std::string of_service(const std::string& spec, const std::string& metadata = "") {
    return of(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"s)" + std::to_string(++pods) +
              R"(","namespace":"default")" + metadata + R"(},"spec":{)" + spec + R"(,"ports":[{"port":80}]}})");
  }
  AdmissionFixture fixture;
  int pods = 0;
};

TEST_F(Warnings, a_pod_that_means_what_it_says_has_none) {
  EXPECT_EQ(of_pod(R"(,"env":[{"name":"A","value":"1"},{"name":"A","value":"$(A):2"}],"ports":[{"containerPort":80},
      {"containerPort":80,"protocol":"UDP"},{"containerPort":81}],"resources":{"limits":{"memory":"64M","cpu":"100m"}})"),
            "");
}

TEST_F(Warnings, of_containers) {
  struct Row {
    const char *container, *warning;
  };
  for (const Row& row : {
           Row{R"(,"env":[{"name":"A","value":"1"},{"name":"B","value":"1"},{"name":"A","value":"2"}])",
               R"(spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply)"},
           Row{R"(,"env":[{"name":"A","value":"1"},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}])",
               R"(spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply)"},
           Row{R"x(,"env":[{"name":"A","value":"1"},{"name":"A","value":"$(A)"}])x",
               R"(spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply)"},
           Row{R"(,"resources":{"limits":{"memory":"64m"}})",
               "spec.containers[0].resources.limits[memory]: fractional byte value \"64m\" is invalid, must be an integer\n"
               "spec.containers[0].resources.requests[memory]: fractional byte value \"64m\" is invalid, must be an integer"},
           Row{R"(,"resources":{"requests":{"ephemeral-storage":"1500m"}})",
               "spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value \"1500m\" is invalid, must be an "
               "integer"},
           Row{R"(,"resources":{"requests":{"memory":"9000000000000000"}})", ""},
           Row{R"(,"ports":[{"containerPort":80},{"containerPort":80}])",
               "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"},
           Row{R"(,"ports":[{"containerPort":80},{"containerPort":80,"hostPort":8080}])",
               "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]"},
           Row{R"(,"ports":[{"containerPort":80,"hostPort":8080},{"containerPort":80,"hostPort":8080,"hostIP":"10.0.0.1"}])",
               "spec.containers[0].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]"},
           Row{R"(,"ports":[{"name":"web","containerPort":80,"hostIP":"10.0.0.1"}])",
               "spec.containers[0].ports[0]: hostIP set without hostPort: {Name:web HostPort:0 ContainerPort:80 Protocol:TCP "
               "HostIP:10.0.0.1}"},
       })
    EXPECT_EQ(of_pod(row.container), row.warning) << row.container;
}

TEST_F(Warnings, of_pods) {
  struct Row {
    const char *spec, *metadata, *warning;
  };
  const char* null_selector = "a null labelSelector results in matching no pod";
  for (const Row& row : {
           Row{R"(,"nodeSelector":{"beta.kubernetes.io/os":"linux"})", "",
               "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead"},
           Row{R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                 {"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"node-role.kubernetes.io/master","operator":"Exists"}]}]}}})",
               "",
               "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions["
               "1]"
               ".key: node-role.kubernetes.io/master is use \"node-role.kubernetes.io/control-plane\" instead"},
           Row{R"(,"hostAliases":[{"ip":"1.2.3.4","hostnames":["a"]},{"ip":"1.2.3.4","hostnames":["b"]}])", "",
               "spec.hostAliases[1].ip: duplicate ip \"1.2.3.4\""},
           Row{R"(,"imagePullSecrets":[{"name":"a"},{"name":""}])", "", "spec.imagePullSecrets[1].name: invalid empty name \"\""},
           Row{"", R"(,"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"runtime/default"})",
               "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "
               "\"seccompProfile\" field instead"},
           Row{"", R"(,"annotations":{"scheduler.alpha.kubernetes.io/critical-pod":""})",
               "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "
               "\"priorityClassName\" field instead"},
           Row{R"(,"volumes":[{"name":"v","gitRepo":{"repository":"a"}}])", "", "spec.volumes[0].gitRepo: deprecated in v1.11"},
           Row{R"(,"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}},
                 {"configMap":{"name":"c","items":[{"key":"k","path":"o"},{"key":"l","path":"t"}]}}]}}])",
               "", "spec.volumes[0].projected.sources.configMap[1]: has duplicated path with ServiceAccountToken \"t\""},
       })
    EXPECT_EQ(of_pod("", row.spec, row.metadata), row.warning) << row.spec << row.metadata;
  EXPECT_EQ(of_pod("", R"(,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname",
      "whenUnsatisfiable":"DoNotSchedule"}])"),
            std::string("spec.topologySpreadConstraints[0].labelSelector: ") + null_selector);
  EXPECT_EQ(of_pod("", R"(,"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
      {"weight":1,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname"}}]}})"),
            std::string("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm."
                        "labelSelector: ") +
                null_selector);
}

// The number of warnings has a limit, even for a request of several megabytes.
TEST_F(Warnings, of_many_equal_ports_are_not_many) {
  std::string ports, references;
  for (int i = 0; i < 20'000; ++i) ports += (i ? "," : "") + std::string(R"({"containerPort":1})");
  EXPECT_LT(of(AdmissionFixture::pod("ports", R"(,"ports":[)" + ports + "]")).size(), 100'000u);
  for (int i = 0; i < 200'000; ++i) references += "$(";
  std::string env = R"({"name":")" + references + R"(x","value":"1"},{"name":")" + references + R"(x","value":")" + references +
                    references + R"("})";
  EXPECT_NE(of(AdmissionFixture::pod("env", R"(,"env":[)" + env + "]")), "");
}

TEST_F(Warnings, of_a_name_that_is_no_host_name) {
  EXPECT_EQ(of(AdmissionFixture::pod("a.b")),
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
            "recommended: [must not contain dots]");
  const std::string recommended =
      "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
      "recommended: ";
  const std::string spec =
      R"(","namespace":"default"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})";
  EXPECT_EQ(of(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"v1.2)" + spec),
            recommended + "[must not contain dots]");
}

TEST_F(Warnings, of_pods_when_they_are_made) {
  EXPECT_EQ(of(AdmissionFixture::pod("p", "", R"(,"terminationGracePeriodSeconds":-1)")),
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1");
  fixture.warnings.clear();
  registry::Writer writer;
  writer.warnings = &fixture.warnings;
  MUST(fixture.registry().patch(kPod, {"default", "p"}, {}, PatchType::merge,
                                AdmissionFixture::parse(R"({"metadata":{"labels":{"a":"b"}}})"), false, writer));
  EXPECT_EQ(said(), "") << "not when they are changed";
}

// Source: applyAppArmorVersionSkew of kube-apiserver's pod strategy
TEST_F(Warnings, of_profiles_that_annotations_name_and_fields_follow) {
  const std::string key = "container.apparmor.security.beta.kubernetes.io/c",
                    warning =
                        "metadata.annotations[" + key + "]: deprecated since v1.30; use the \"appArmorProfile\" field instead";
  struct Row {
    const char *annotation, *container, *spec, *want;
    bool warns;
  };
  for (const Row& row : {
           Row{"unconfined", "", "", R"({"type":"Unconfined"})", true},
           Row{"localhost/a", "", R"(,"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}})",
               R"({"type":"Localhost","localhostProfile":"a"})", true},
           Row{"runtime/default", "", R"(,"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}})", "", false},
           Row{"runtime/default", R"(,"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}})", "",
               R"({"type":"RuntimeDefault"})", false},
       }) {
    fixture.warnings.clear();
    auto made = fixture.put(AdmissionFixture::pod("p" + std::to_string(++pods), row.container, row.spec,
                                                  R"(,"annotations":{")" + key + R"(":")" + row.annotation + R"("})"));
    ASSERT_TRUE(made) << row.annotation << ": " << made.error().text();
    const json::value* field = find(get_array((*made)->json(), "spec.containers").at(0), "securityContext.appArmorProfile");
    EXPECT_EQ(field ? to_text(*field) : "", row.want) << row.annotation;
    EXPECT_EQ(said(), row.warns ? warning : "") << row.annotation;
  }
}

TEST_F(Warnings, of_templates_when_they_are_made_or_changed) {
  ObjectPtr made = MUST(fixture.put(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},
    "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"},
      "annotations":{"container.apparmor.security.beta.kubernetes.io/c":"runtime/default"}},
    "spec":{"containers":[{"name":"c","image":"i"}]}}}})"));
  const std::string warning =
      "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "
      "\"appArmorProfile\" field instead";
  EXPECT_EQ(said(), warning);
  auto changed = [&](const char* patch) {
    fixture.warnings.clear();
    registry::Writer writer;
    writer.warnings = &fixture.warnings;
    MUST(fixture.registry().patch(kDeployment, {"default", "d"}, {}, PatchType::merge, AdmissionFixture::parse(patch), false,
                                  writer));
    return said();
  };
  EXPECT_EQ(changed(R"({"spec":{"replicas":2}})"), "") << "it has been told";
  EXPECT_EQ(changed(R"({"spec":{"template":{"metadata":{"labels":{"c":"d"}}}}})"), warning);
}

TEST_F(Warnings, of_services) {
  EXPECT_EQ(of_service(R"("clusterIP":"None")"), "");
  EXPECT_EQ(of_service(R"("clusterIP":"None","sessionAffinity":"ClientIP")"),
            "spec.SessionAffinity is ignored for headless services");
  EXPECT_EQ(of_service(R"("externalIPs":["192.0.2.1"])"),
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  EXPECT_EQ(of_service(R"("externalName":"example.com")"), "spec.externalName is ignored when spec.type is not \"ExternalName\"");
  EXPECT_EQ(of_service(R"("trafficDistribution":"PreferClose")"),
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
}

TEST_F(Warnings, of_volumes_and_ingresses) {
  EXPECT_EQ(of(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"p","namespace":"default"},
    "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1500m"}}}})"),
            "spec.resources.requests[storage]: fractional byte value \"1500m\" is invalid, must be an integer");
  EXPECT_EQ(
      of(R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},
    "accessModes":["ReadWriteOnce"],"hostPath":{"path":"/srv/v"},"persistentVolumeReclaimPolicy":"Recycle"}})"),
      "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to "
      "use dynamic provisioning.");
  EXPECT_EQ(of(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"old","namespace":"default","annotations":{
    "volume.beta.kubernetes.io/storage-class":"slow"}},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{
    "storage":"1Gi"},"limits":{"storage":"1500m"}}}})"),
            "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \"storageClassName\" "
            "attribute instead\n"
            "spec.resources.limits[storage]: fractional byte value \"1500m\" is invalid, must be an integer");
  EXPECT_EQ(
      of(R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"old","annotations":{
    "volume.beta.kubernetes.io/mount-options":"ro","volume.beta.kubernetes.io/storage-class":"slow"}},"spec":{"capacity":{
    "storage":"1Gi"},"accessModes":["ReadWriteOnce"],"cephfs":{"monitors":["192.0.2.1"]},"nodeAffinity":{"required":{
    "nodeSelectorTerms":[{"matchExpressions":[{"key":"beta.kubernetes.io/os","operator":"In","values":["linux"]}]}]}}}})"),
      "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \"storageClassName\" attribute "
      "instead\n"
      "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use \"mountOptions\" attribute "
      "instead\n"
      "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; "
      "use \"kubernetes.io/os\" instead\n"
      "spec.cephfs: deprecated in v1.28, non-functional in v1.31+");
  EXPECT_EQ(of_pod("", R"(,"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"100m"}}}}}}])"),
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value \"100m\" is "
            "invalid, must be an integer");
  EXPECT_EQ(
      of(R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db","namespace":"default"},"spec":{"serviceName":
    "db","selector":{"matchLabels":{"a":"b"}},"revisionHistoryLimit":-1,"template":{"metadata":{"labels":{"a":"b"}},"spec":{
    "containers":[{"name":"c","image":"i"}]}},"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":[
    "ReadWriteOnce"],"resources":{"requests":{"storage":"100m"}}}}]}})"),
      "spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte value \"100m\" is invalid, must be an "
      "integer\n"
      "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended");
  EXPECT_EQ(
      of(R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"zoned"},"provisioner":"example.com/d",
    "allowedTopologies":[{"matchLabelExpressions":[{"key":"failure-domain.beta.kubernetes.io/zone","values":["a"]}]}]})"),
      "allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use \"topology.kubernetes.io/zone\" "
      "instead");
  EXPECT_EQ(of(R"({"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"i","namespace":"default",
    "annotations":{"kubernetes.io/ingress.class":"here"}},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})"),
            "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead");
}

}  // namespace
}  // namespace coracle::admission
