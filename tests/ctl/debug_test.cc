// SPDX-License-Identifier: Apache-2.0
// The pods that debug makes. What kubectl 1.36 makes of the same pod and flags decides.
#include "ctl/debug.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const json::value kDebuggedPod = *parse_json(R"({"apiVersion":"v1","kind":"Pod",
  "metadata":{"name":"web","namespace":"shop","uid":"u","labels":{"app":"web"},"annotations":{"a":"b"}},
  "spec":{"nodeName":"edge","ephemeralContainers":[{"name":"old"}],
    "initContainers":[{"name":"first","image":"i"}],
    "containers":[{"name":"app","image":"app:1","args":["x"],"livenessProbe":{"exec":{"command":["true"]}}},
                  {"name":"side","image":"side:1"}]}})");

std::string five() { return "abcde"; }

DebugOptions options_with(const std::string& image, const std::string& copy_to = "") {
  DebugOptions options;
  options.image = image, options.copy_to = copy_to;
  return options;
}

TEST(Debug, adds_an_ephemeral_container) {
  DebugOptions options = options_with("busybox");
  options.words = {"sh"}, options.use_stdin = options.tty = true, options.target = "app", options.env = {{"A", "1"}};
  DebugPod made = MUST(debug_ephemeral(kDebuggedPod, options, five));
  EXPECT_EQ(made.container, "debugger-abcde");
  EXPECT_EQ(made.messages, std::vector<std::string>{"Defaulting debug container name to debugger-abcde."});
  const json::array& all = get_array(made.pod, "spec.ephemeralContainers");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(to_sorted_text(all.back()),
            R"({"command":["sh"],"env":[{"name":"A","value":"1"}],"image":"busybox","name":"debugger-abcde",)"
            R"("securityContext":{"capabilities":{"add":["SYS_PTRACE"]}},"stdin":true,"targetContainerName":"app",)"
            R"("terminationMessagePolicy":"File","tty":true})");
  options.container = "mine", options.arguments_only = true, options.profile = "restricted", options.quiet = true;
  made = MUST(debug_ephemeral(kDebuggedPod, options, five));
  EXPECT_TRUE(made.messages.empty());
  const json::value& restricted = get_array(made.pod, "spec.ephemeralContainers").back();
  EXPECT_EQ(get_string(restricted, "name"), "mine");
  EXPECT_EQ(get_strings(restricted, "args"), std::vector<std::string>{"sh"});
  EXPECT_EQ(to_sorted_text(*find(restricted, "securityContext")),
            R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"runAsNonRoot":true,)"
            R"("seccompProfile":{"type":"RuntimeDefault"}})");
}

TEST(Debug, copies_a_pod) {
  DebugPod made = MUST(debug_copy(kDebuggedPod, options_with("busybox", "copy"), five));
  EXPECT_EQ(to_sorted_text(*find(made.pod, "metadata")), R"({"name":"copy","namespace":"shop"})");
  EXPECT_FALSE(find(made.pod, "spec.nodeName"));
  EXPECT_FALSE(find(made.pod, "spec.ephemeralContainers"));
  EXPECT_TRUE(get_bool(made.pod, "spec.shareProcessNamespace"));
  const json::array& all = get_array(made.pod, "spec.containers");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_FALSE(find(all[0], "livenessProbe"));
  EXPECT_EQ(get_string(all[2], "image"), "busybox");
  EXPECT_EQ(get_array(made.pod, "spec.initContainers").size(), 1u);

  DebugOptions options = options_with("", "copy");
  options.container = "app", options.words = {"sh", "-c", "x"}, options.same_node = true, options.keep_labels = true;
  options.keep_liveness = true, options.keep_init_containers = false, options.share_given = true, options.share_processes = false;
  made = MUST(debug_copy(kDebuggedPod, options, five));
  EXPECT_EQ(made.container, "app");
  EXPECT_EQ(get_string(made.pod, "spec.nodeName"), "edge");
  EXPECT_EQ(get_string(made.pod, "metadata.labels.app"), "web");
  EXPECT_FALSE(find(made.pod, "metadata.annotations"));
  EXPECT_FALSE(find(made.pod, "spec.initContainers"));
  EXPECT_FALSE(get_bool(made.pod, "spec.shareProcessNamespace"));
  const json::value& app = get_array(made.pod, "spec.containers").front();
  EXPECT_EQ(get_strings(app, "command"), (std::vector<std::string>{"sh", "-c", "x"}));
  EXPECT_FALSE(find(app, "args"));  // a command has its own
  EXPECT_TRUE(find(app, "livenessProbe"));

  options = options_with("", "copy");
  options.set_images = {{"*", "all:2"}, {"side", "side:2"}};
  made = MUST(debug_copy(kDebuggedPod, options, five));
  EXPECT_EQ(made.container, "");
  EXPECT_EQ(get_string(get_array(made.pod, "spec.containers")[0], "image"), "all:2");
  EXPECT_EQ(get_string(get_array(made.pod, "spec.containers")[1], "image"), "side:2");
  options = options_with("", "copy");
  options.container = "none", options.words = {"sh"};
  EXPECT_FALSE(debug_copy(kDebuggedPod, options, five));
}

TEST(Debug, makes_a_pod_on_a_node) {
  json::value node = json::object{{"metadata", {{"name", "edge"}}}};
  DebugPod made = MUST(debug_node(node, options_with("busybox"), five));
  EXPECT_EQ(made.messages,
            std::vector<std::string>{"Creating debugging pod node-debugger-edge-abcde with container debugger on node edge."});
  EXPECT_EQ(to_sorted_text(made.pod),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app.kubernetes.io/managed-by":"kubectl-debug"},)"
            R"("name":"node-debugger-edge-abcde"},"spec":{"containers":[{"image":"busybox","name":"debugger",)"
            R"("terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/host","name":"host-root"}]}],"hostIPC":true,)"
            R"("hostNetwork":true,"hostPID":true,"nodeName":"edge","restartPolicy":"Never",)"
            R"("tolerations":[{"operator":"Exists"}],"volumes":[{"hostPath":{"path":"/"},"name":"host-root"}]}})");
  DebugOptions options = options_with("busybox");
  options.profile = "sysadmin";
  made = MUST(debug_node(node, options, five));
  EXPECT_TRUE(get_bool(get_array(made.pod, "spec.containers").front(), "securityContext.privileged"));
  options.profile = "baseline";
  made = MUST(debug_node(node, options, five));
  EXPECT_FALSE(find(made.pod, "spec.hostPID"));
  EXPECT_FALSE(find(made.pod, "spec.volumes"));
  options.profile = "netadmin";
  made = MUST(debug_node(node, options, five));
  EXPECT_TRUE(get_bool(made.pod, "spec.hostNetwork"));
  EXPECT_EQ(get_strings(get_array(made.pod, "spec.containers").front(), "securityContext.capabilities.add"),
            (std::vector<std::string>{"NET_ADMIN", "NET_RAW"}));
}

TEST(Debug, lays_a_custom_profile_over_the_container) {
  DebugOptions options = options_with("busybox", "copy");
  options.env = {{"A", "1"}};
  options.custom = MUST(parse_json(R"({"env":[{"name":"B","value":"2"}],"securityContext":{"runAsUser":0}})"));
  DebugPod made = MUST(debug_copy(kDebuggedPod, options, five));
  const json::value& container = get_array(made.pod, "spec.containers").back();
  EXPECT_EQ(get_array(container, "env").size(), 2u);
  EXPECT_EQ(to_sorted_text(*find(container, "securityContext")), R"({"capabilities":{"add":["SYS_PTRACE"]},"runAsUser":0})");
  EXPECT_EQ(get_array(made.pod, "spec.containers").size(), 3u);
}

TEST(Debug, warns_of_rights_without_effect) {
  json::value pod = kDebuggedPod;
  make(pod, "spec.securityContext.runAsUser") = 1000;
  EXPECT_TRUE(MUST(debug_ephemeral(pod, options_with("busybox"), five)).powerless);
  DebugOptions options = options_with("busybox");
  options.profile = "baseline";
  EXPECT_FALSE(MUST(debug_ephemeral(pod, options, five)).powerless);
  EXPECT_FALSE(MUST(debug_ephemeral(kDebuggedPod, options_with("busybox"), five)).powerless);
}

TEST(Debug, refuses_what_kubectl_refuses) {
  auto refusal = [](auto change, const std::string& image = "busybox", const std::string& copy_to = "") {
    DebugOptions options = options_with(image, copy_to);
    change(options);
    auto checked = check_debug_options(options);
    return checked ? std::string() : checked.error().text();
  };
  EXPECT_EQ(refusal([](DebugOptions&) {}), "");
  EXPECT_EQ(refusal([](DebugOptions&) {}, ""), "you must specify --image when not using --copy-to.");
  EXPECT_EQ(refusal([](DebugOptions&) {}, "", "copy"), "you must specify --image, --set-image or command arguments.");
  EXPECT_EQ(refusal([](DebugOptions& one) { one.words = {"sh"}; }, "", "copy"),
            "you must specify an existing container or a new image when specifying args.");
  EXPECT_EQ(refusal([](DebugOptions& one) { one.replace = true; }), "--replace may only be used with --copy-to.");
  EXPECT_EQ(refusal([](DebugOptions& one) { one.same_node = true; }), "--same-node may only be used with --copy-to.");
  EXPECT_EQ(refusal([](DebugOptions& one) { one.tty = true; }), "-i/--stdin is required for containers with -t/--tty=true");
  EXPECT_EQ(refusal([](DebugOptions& one) { one.profile = "x"; }), "unknown profile: x");
  EXPECT_EQ(refusal([](DebugOptions& one) { one.pull_policy = "x"; }), "invalid image pull policy: x");
  EXPECT_EQ(refusal([](DebugOptions& one) { one.target = "app"; }, "busybox", "copy"),
            "--target is incompatible with --copy-to. Use --share-processes instead.");
  EXPECT_EQ(refusal([](DebugOptions& one) {
              one.custom = json::object{{"image", "x"}};
            }),
            "name, command, image, lifecycle and volume devices are not modifiable via custom profile");
  EXPECT_EQ(MUST(parse_text_pairs("--env", {"a=b,c=d", "e=f,g"})), (TextPairs{{"a", "b"}, {"c", "d"}, {"e", "f,g"}}));
  EXPECT_FALSE(parse_text_pairs("--env", {"a"}));
}

// Flags for copies of pods mean nothing for a node, and its pod is made in the namespace of the command line.
TEST(Debug, of_a_node_makes_a_pod_and_deletes_nothing) {
  FakeApi api;
  const char* node = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"edge"}})";
  api.put("/api/v1/nodes/edge", node);
  std::string path = testing::TempDir() + "/debug-test-" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << node;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"debug", "node/edge", "--image=busybox", "--copy-to=copy", "--replace"},
        std::vector<std::string>{"debug", "-f", path, "--image=busybox"}}) {
    FakeApi::Outcome outcome = api.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    auto writes = api.take_writes();
    ASSERT_EQ(writes.size(), 1u);
    EXPECT_EQ(writes[0].method, "POST");
    EXPECT_EQ(writes[0].path, "/api/v1/namespaces/default/pods");
    EXPECT_EQ(get_string(writes[0].body, "spec.nodeName"), "edge");
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace coracle::ctl
