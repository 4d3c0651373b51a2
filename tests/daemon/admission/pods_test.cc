// SPDX-License-Identifier: Apache-2.0
// Admission of pods: service accounts and their tokens, priorities, tolerations, runtime classes, and the state of the namespace.
#include "tests/daemon/admission/admission_fixture.h"

namespace coracle::admission {
namespace {

TEST(NamespaceLifecycle, nothing_is_made_where_nothing_may_be) {
  AdmissionFixture fixture;
  EXPECT_EQ(fixture.refusal(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"nowhere"}})"),
            "namespaces \"nowhere\" not found");
  ObjectPtr ns = MUST(fixture.put(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"leaving"}})"));
  MUST(fixture.registry().remove(kNamespace, ns->key(), {}, {}));
  auto refused = fixture.put(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"leaving"}})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(),
            "configmaps \"a\" is forbidden: unable to create new content in namespace leaving because it is being terminated");
  EXPECT_EQ(refused.error().details()->causes[0],
            (Cause{"NamespaceTerminating", "namespace leaving is being terminated", "metadata.namespace"}));
  for (const char* immortal : {"default", "kube-system", "kube-public"})
    EXPECT_EQ(fixture.registry().remove(kNamespace, {"", immortal}, {}, {}).error().text(),
              "namespaces \"" + std::string(immortal) + "\" is forbidden: this namespace may not be deleted");
}

TEST(ServiceAccount, gives_a_pod_its_account_token_and_pull_secrets) {
  AdmissionFixture fixture;
  MUST(fixture.put(
      R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"puller","namespace":"default"},"imagePullSecrets":[{"name":"registry"}]})"));
  ObjectPtr pod = MUST(fixture.put(
      AdmissionFixture::pod("p", "", R"(,"serviceAccountName":"puller","initContainers":[{"name":"first","image":"i"}])")));
  EXPECT_EQ(get_string(pod->json(), "spec.serviceAccount"), "puller");
  EXPECT_EQ(get_string(get_array(pod->json(), "spec.imagePullSecrets")[0], "name"), "registry");
  const json::value& volume = get_array(pod->json(), "spec.volumes")[0];
  std::string name(get_string(volume, "name"));
  EXPECT_TRUE(name.starts_with("kube-api-access-")) << name;
  EXPECT_EQ(get_int(get_array(volume, "projected.sources")[0], "serviceAccountToken.expirationSeconds"), 3607);
  for (const char* list : {"spec.containers", "spec.initContainers"}) {
    const json::value& mount = get_array(get_array(pod->json(), list)[0], "volumeMounts")[0];
    EXPECT_EQ(get_string(mount, "name"), name);
    EXPECT_EQ(get_string(mount, "mountPath"), "/var/run/secrets/kubernetes.io/serviceaccount");
    EXPECT_TRUE(get_bool(mount, "readOnly"));
  }
  EXPECT_EQ(get_array(MUST(fixture.put(AdmissionFixture::pod("q", "", R"(,"automountServiceAccountToken":false)")))->json(),
                      "spec.volumes")
                .size(),
            0u);
  ObjectPtr own = MUST(fixture.put(AdmissionFixture::pod(
      "r", R"(,"volumeMounts":[{"name":"mine","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}])",
      R"(,"volumes":[{"name":"mine","emptyDir":{}}])")));
  EXPECT_EQ(get_array(own->json(), "spec.volumes").size(), 1u) << "who has something there keeps it";
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("s", "", R"(,"serviceAccountName":"nobody")")),
            "pods \"s\" is forbidden: error looking up service account default/nobody: serviceaccount \"nobody\" not found");
}

TEST(ServiceAccount, holds_pods_to_the_accounts_own_secrets_where_it_says_so) {
  AdmissionFixture fixture;
  MUST(fixture.put(
      R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"strict","namespace":"default","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}},
                     "secrets":[{"name":"mine"}],"imagePullSecrets":[{"name":"pull"}]})"));
  struct Row {
    const char *container, *spec, *says;
  };
  const Row rows[] = {
      {"", R"(,"volumes":[{"name":"v","secret":{"secretName":"other"}}])",
       R"(volume with secret.secretName="other" is not allowed because service account strict does not reference that secret)"},
      {R"(,"env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"other","key":"k"}}}])", "",
       R"(container c with envVar E referencing secret.secretName="other" is not allowed because service account strict does not reference that secret)"},
      {R"(,"envFrom":[{"secretRef":{"name":"other"}}])", "",
       R"(container c with envFrom referencing secret.secretName="other" is not allowed because service account strict does not reference that secret)"},
      {"", R"(,"imagePullSecrets":[{"name":"other"}])",
       R"(imagePullSecrets[0].name="other" is not allowed because service account strict does not reference that imagePullSecret)"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(
        fixture.refusal(AdmissionFixture::pod("p", row.container, std::string(R"(,"serviceAccountName":"strict")") + row.spec)),
        "pods \"p\" is forbidden: " + std::string(row.says));
  EXPECT_EQ(fixture.refusal(
                AdmissionFixture::pod("p", R"(,"envFrom":[{"secretRef":{"name":"mine"}}])", R"(,"serviceAccountName":"strict")")),
            "admitted");
}

TEST(ServiceAccount, a_mirror_uses_nothing_of_the_api) {
  AdmissionFixture fixture;
  const std::string mirror = R"(,"annotations":{"kubernetes.io/config.mirror":"x"})";
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("p", "", R"(,"nodeName":"n","serviceAccountName":"default")", mirror)),
            "pods \"p\" is forbidden: a mirror pod may not reference service accounts");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod(
                "p", "", R"(,"nodeName":"n","volumes":[{"name":"v","secret":{"secretName":"s"}}])", mirror)),
            "pods \"p\" is forbidden: a mirror pod may not reference secrets");
  ObjectPtr pod = MUST(fixture.put(AdmissionFixture::pod("p", "", R"(,"nodeName":"n")", mirror)));
  EXPECT_EQ(get_array(pod->json(), "spec.volumes").size(), 0u);
}

TEST(Priority, follows_from_the_class) {
  AdmissionFixture fixture;
  MUST(fixture.put(
      R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":1000,"preemptionPolicy":"Never"})"));
  ObjectPtr pod = MUST(fixture.put(AdmissionFixture::pod("a", "", R"(,"priorityClassName":"high")")));
  EXPECT_EQ(get_int(pod->json(), "spec.priority"), 1000);
  EXPECT_EQ(get_string(pod->json(), "spec.preemptionPolicy"), "Never");
  EXPECT_EQ(get_int(MUST(fixture.put(AdmissionFixture::pod("b")))->json(), "spec.priority"), 0);
  MUST(fixture.put(
      R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"usual"},"value":7,"globalDefault":true})"));
  pod = MUST(fixture.put(AdmissionFixture::pod("c")));
  EXPECT_EQ(get_int(pod->json(), "spec.priority"), 7);
  EXPECT_EQ(get_string(pod->json(), "spec.priorityClassName"), "usual");
  EXPECT_EQ(get_int(MUST(fixture.put(AdmissionFixture::pod("d", "", R"(,"priorityClassName":"system-node-critical")")))->json(),
                    "spec.priority"),
            2'000'001'000);
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("e", "", R"(,"priorityClassName":"none")")),
            "pods \"e\" is forbidden: no PriorityClass with name none was found");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("e", "", R"(,"priorityClassName":"high","priority":5)")),
            "pods \"e\" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission "
            "controller computed 1000 from the given PriorityClass name");
  EXPECT_EQ(
      fixture.refusal(AdmissionFixture::pod("e", "", R"(,"priorityClassName":"high","preemptionPolicy":"PreemptLowerPriority")")),
      "pods \"e\" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod "
      "spec; priority admission controller computed Never from the given "
      "PriorityClass name");
  EXPECT_EQ(
      fixture.refusal(
          R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"second"},"value":1,"globalDefault":true})"),
      "priorityclasses.scheduling.k8s.io \"second\" is forbidden: PriorityClass usual is already marked as default. Only one "
      "default can exist");
}

TEST(Priority, the_systems_own_classes_are_there) {
  AdmissionFixture fixture;
  ObjectPtr critical = MUST(fixture.registry().get(kPriorityClass, {"", "system-cluster-critical"}));
  EXPECT_EQ(get_int(critical->json(), "value"), 2'000'000'000);
}

TEST(DefaultTolerationSeconds, five_minutes_unless_said) {
  AdmissionFixture fixture;
  ObjectPtr pod = MUST(fixture.put(AdmissionFixture::pod(
      "a", "",
      R"(,"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}])")));
  const json::array& tolerations = get_array(pod->json(), "spec.tolerations");
  ASSERT_EQ(tolerations.size(), 2u);
  EXPECT_EQ(get_int(tolerations[0], "tolerationSeconds"), 5);
  EXPECT_EQ(get_string(tolerations[1], "key"), "node.kubernetes.io/unreachable");
  EXPECT_EQ(get_int(tolerations[1], "tolerationSeconds"), 300);
}

TEST(RuntimeClass, adds_what_the_runtime_costs_and_where_it_runs) {
  AdmissionFixture fixture;
  MUST(fixture.put(
      R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"heavy"},"handler":"heavy","overhead":{"podFixed":{"cpu":"250m"}},
                     "scheduling":{"nodeSelector":{"vm":"yes"},"tolerations":[{"key":"vm","operator":"Exists"}]}})"));
  ObjectPtr pod = MUST(fixture.put(AdmissionFixture::pod("a", "", R"(,"runtimeClassName":"heavy")")));
  EXPECT_EQ(get_string(pod->json(), "spec.overhead.cpu"), "250m");
  EXPECT_EQ(get_string(pod->json(), "spec.nodeSelector.vm"), "yes");
  EXPECT_EQ(get_array(pod->json(), "spec.tolerations").size(), 3u);
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("b", "", R"(,"runtimeClassName":"none")")),
            "pods \"b\" is forbidden: pod rejected: RuntimeClass \"none\" not found");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("b", "", R"(,"runtimeClassName":"heavy","overhead":{"cpu":"1"})")),
            "pods \"b\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("b", "", R"(,"overhead":{"cpu":"1"})")),
            "pods \"b\" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("b", "", R"(,"runtimeClassName":"heavy","nodeSelector":{"vm":"no"})")),
            "pods \"b\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no");
}

TEST(StartOrder, gives_a_pod_that_waits_a_gate) {
  AdmissionFixture fixture;
  auto gates = [](const Object& pod) { return json::serialize(json::value(get_array(pod.json(), "spec.schedulingGates"))); };
  ObjectPtr pod =
      MUST(fixture.put(AdmissionFixture::pod("p", "", "", R"(,"annotations":{"coracle.io/after":"deployment/db, svc/cache"})")));
  EXPECT_EQ(gates(*pod), R"([{"name":"coracle.io/after"}])");
  EXPECT_EQ(get_string(get_array(pod->json(), "status.conditions")[0], "reason"), "SchedulingGated");
  ObjectPtr bound = MUST(fixture.put(
      AdmissionFixture::pod("q", "", R"(,"nodeName":"pi")", R"(,"annotations":{"coracle.io/after":"deployment/db"})")));
  EXPECT_EQ(gates(*bound), "[]") << "who has a node passes no gate";
  EXPECT_EQ(gates(*MUST(fixture.put(AdmissionFixture::pod("r")))), "[]");
}

TEST(StartOrder, a_typing_mistake_is_refused_where_it_is_written) {
  AdmissionFixture fixture;
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("p", "", "", R"(,"annotations":{"coracle.io/after":"deploymnt/db"})")),
            "Pod \"p\" is invalid: metadata.annotations[coracle.io/after]: Invalid value: \"deploymnt/db\": \"deploymnt/db\": "
            "cannot wait for this "
            "kind; those that can be waited for are pod, service, deployment, replicaset, statefulset, daemonset, "
            "replicationcontroller, job");
  std::string deployment =
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"},"annotations":{"coracle.io/after":"AFTER"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  auto with = [&](const std::string& after) { return std::string(deployment).replace(deployment.find("AFTER"), 5, after); };
  EXPECT_NE(fixture.refusal(with("db")).find("spec.template.metadata.annotations[coracle.io/after]: Invalid value: \"db\""),
            std::string::npos);
  EXPECT_EQ(fixture.refusal(with("statefulset/db")), "admitted");
}

}  // namespace
}  // namespace coracle::admission
