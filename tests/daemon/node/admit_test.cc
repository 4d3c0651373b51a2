// SPDX-License-Identifier: Apache-2.0
// Pods that the node refuses, and requested resources that it lacks.
#include "daemon/node/admit.h"

#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

using std::chrono::seconds;

constexpr const char* kContainer = R"("containers":[{"name":"a","image":"web:1"}])";

std::string many_containers(int count) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += std::string(i ? "," : "") + R"({"name":"c)" + std::to_string(i) + R"(","image":"web:1"})";
  return R"("containers":[)" + list + "]";
}

class AdmitTest : public Machine {
 protected:
  std::string reason(const std::string& name = "web") const { return std::string(get_string(pod(name), "status.reason")); }
  std::string message(const std::string& name = "web") const { return std::string(get_string(pod(name), "status.message")); }
};

TEST(RefusePod, gives_kubelets_reasons) {
  struct Row {
    const char* name;
    std::string spec, metadata;
    std::string reason, message;
  };
  const std::string os_field = "Failed to admit pod as the OS field doesn't match node OS";
  const std::string os_label = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
  const std::string no_apparmor = "Cannot enforce AppArmor: AppArmor is not enabled on the host";
  const std::string affinity = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
  const std::string taint = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
  const std::string profile = R"("securityContext":{"appArmorProfile":{"type":)";
  const std::string tolerant = R"(,"tolerations":[{"key":"gone","operator":"Exists"}])";
  const Row rows[] = {
      {"linux", R"("os":{"name":"linux"},)" + std::string(kContainer) + tolerant, "", "", ""},
      {"another system", R"("os":{"name":"windows"},)" + std::string(kContainer), "", "PodOSNotSupported", os_field},
      {"selected by the system's label", R"("nodeSelector":{"kubernetes.io/os":"windows"},)" + std::string(kContainer), "",
       "PodOSSelectorNodeLabelDoesNotMatch", os_label},
      {"selected by another label", R"("nodeSelector":{"disk":"fast"},)" + std::string(kContainer) + tolerant, "", "NodeAffinity",
       affinity},
      {"a taint that is not tolerated", kContainer, "", "TaintToleration", taint},
      {"huge pages that are not there", R"("containers":[{"name":"a","resources":{"limits":{"hugepages-2Mi":"4Mi"}}}])", "",
       "OutOfhugepages-2Mi", "Node didn't have enough resource: hugepages-2Mi, requested: 4194304, used: 0, capacity: 0"},
      {"more containers than a sandbox holds", many_containers(513), "", "TooManyContainers",
       "Pod has 513 containers, this node runs at most 512 of one pod"},
      {"as many as it holds", many_containers(512) + tolerant, "", "", ""},
      {"a profile of the pod", profile + R"("RuntimeDefault"}},)" + kContainer + tolerant, "", "AppArmor", no_apparmor},
      {"a profile of a container",
       R"("containers":[{"name":"a",)" + profile + R"("Localhost","localhostProfile":"p"}}}])" + tolerant, "", "AppArmor",
       no_apparmor},
      {"a profile by annotation", kContainer + tolerant,
       R"("annotations":{"container.apparmor.security.beta.kubernetes.io/a":"localhost/p"})", "AppArmor", no_apparmor},
      {"no profile, said three times", profile + R"("Unconfined"}},)" + kContainer + tolerant,
       R"("annotations":{"container.apparmor.security.beta.kubernetes.io/a":"unconfined"})", "", ""},
  };
  auto made = [](const Kind& kind, const std::string& text) { return MUST(Object::make(kind, MUST(parse_json(text)))); };
  ObjectPtr node = made(
      kNode,
      R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"taints":[{"key":"gone","effect":"NoExecute"},{"key":"full","effect":"NoSchedule"}]}})");
  for (const Row& row : rows) {
    ObjectPtr pod = made(kPod, R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"p","uid":"u",)" +
                                   (row.metadata.empty() ? R"("labels":{})" : row.metadata) + R"(},"spec":{)" + row.spec + "}}");
    auto refusal = refuse_pod(*pod, {{}, {{"cpu", "1"}, {"hugepages-2Mi", "0"}}, node.get(), false}, AgentConfig{});
    EXPECT_EQ(refusal ? refusal->reason : "", row.reason) << row.name;
    EXPECT_EQ(refusal ? refusal->message : "", row.message) << row.name;
  }
  ObjectPtr pod = made(kPod, R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"p"},"spec":{)" +
                                 std::string(kContainer) + "}}");
  EXPECT_FALSE(refuse_pod(*pod, {{}, {}, node.get(), true}, AgentConfig{})) << "static pods are not asked for tolerations";
}

TEST(AppArmorProfileOf, is_the_containers_then_the_annotations_then_the_pods) {
  json::value pod = *parse_json(
      R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/b":"localhost/from-annotation"}},
          "spec":{"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}})");
  auto of = [&](const char* container) {
    AppArmorProfile found = apparmor_profile_of(pod, *parse_json(container));
    return found.type + " " + found.name;
  };
  EXPECT_EQ(of(R"({"name":"a","securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"own"}}})"),
            "Localhost own");
  EXPECT_EQ(of(R"({"name":"b"})"), "Localhost from-annotation");
  EXPECT_EQ(of(R"({"name":"c"})"), "RuntimeDefault ");
}

TEST_F(AdmitTest, a_pod_of_another_system_never_runs) {
  boot();
  put_pod(R"("os":{"name":"windows"},)" + std::string(kContainer));
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(reason(), "PodOSNotSupported");
  EXPECT_EQ(message(), "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS");
  EXPECT_TRUE(events_.has("W PodOSNotSupported Failed to admit pod as the OS field doesn't match node OS"));
  std::filesystem::create_directories(config_.manifests_dir);
  std::ofstream(config_.manifests_dir + "/db.yaml") << "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\n"
                                                       "spec: {os: {name: windows}, containers: [{name: a, image: \"web:1\"}]}\n";
  agent_->read_manifests();
  settle();
  EXPECT_EQ(reason("db-node-1"), "PodOSNotSupported");
  EXPECT_TRUE(runtime_calls("create_sandbox").empty());
}

// Comparing each container with each other one would take minutes.
TEST_F(AdmitTest, a_pod_of_very_many_containers_is_refused_and_costs_little) {
  boot();
  put_pod(many_containers(15'000));
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(reason(), "TooManyContainers");
  EXPECT_TRUE(runtime_calls("create_sandbox").empty());
  for (int i = 0; i < 20; ++i) {
    client_
        .patch(kPod, {"default", "web"}, PatchType::merge,
               json::object{{"metadata", json::object{{"labels", json::object{{"round", std::to_string(i)}}}}}})
        .value_or(nullptr);
    settle();
  }
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  EXPECT_FALSE(client_.find(kPod, {"default", "web"}));
}

TEST_F(AdmitTest, a_pod_whose_runtime_is_not_there_waits_and_says_so) {
  auto put_class = [&](const std::string& handler) {
    client_.put(
        kRuntimeClass,
        R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"sandboxed"},"handler":")" + handler + "\"}");
  };
  put_class("runsc");
  boot();
  put_pod(R"("runtimeClassName":"sandboxed",)" + std::string(kContainer));
  EXPECT_EQ(phase(), "Pending");
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("W FailedCreatePodSandBox Failed to create pod sandbox: no runtime for \"runsc\" is configured"));
  EXPECT_TRUE(runtime_calls("create_sandbox").empty());
  put_class("runc");
  advance(seconds(600));
  EXPECT_EQ(phase(), "Running");
}

TEST_F(AdmitTest, a_pod_with_resource_claims_waits_and_says_so) {
  boot();
  put_pod(R"("resourceClaims":[{"name":"gpu","resourceClaimName":"one"}],)" + std::string(kContainer));
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("W FailedPrepareDynamicResources Failed to prepare dynamic resources: "));
  EXPECT_TRUE(runtime_calls("create_sandbox").empty());
}

TEST_F(AdmitTest, an_apparmor_profile_reaches_the_process) {
  config_.apparmor.enabled = [] { return true; };
  config_.apparmor.is_loaded = [](const std::string& name) -> Result<bool> { return name == "mine"; };
  config_.apparmor.default_profile = []() -> Result<std::string> { return std::string("coracle-default"); };
  boot();
  auto profile = [](const std::string& type, const std::string& more = "") {
    return R"("securityContext":{"appArmorProfile":{"type":")" + type + "\"" + more + "}},";
  };
  put_pod(kContainer, "plain");
  put_pod(profile("RuntimeDefault") + kContainer, "default");
  put_pod(profile("Localhost", R"(,"localhostProfile":"mine")") + kContainer, "local");
  put_pod(profile("Unconfined") + kContainer, "unconfined");
  auto of = [&](const char* name) {
    auto spec = spec_of("a-0", name);
    return spec ? spec->spec.process.apparmor_profile : "did not start";
  };
  EXPECT_EQ(of("plain"), "");
  EXPECT_EQ(of("default"), "coracle-default");
  EXPECT_EQ(of("local"), "mine");
  EXPECT_EQ(of("unconfined"), "");
  put_pod(profile("Localhost", R"(,"localhostProfile":"theirs")") + kContainer, "absent");
  EXPECT_EQ(state("a", "absent"), "Waiting CreateContainerConfigError");
  EXPECT_TRUE(events_.has("apparmor profile not found theirs"));
}

TEST_F(AdmitTest, without_apparmor_a_pod_that_asks_for_it_fails) {
  boot();
  put_pod(R"("securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}},)" + std::string(kContainer));
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(reason(), "AppArmor");
}

}  // namespace
}  // namespace coracle::node
