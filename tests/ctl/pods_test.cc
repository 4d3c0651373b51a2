// SPDX-License-Identifier: Apache-2.0
// Values read from pods.
#include "ctl/pods.h"

#include <gtest/gtest.h>

namespace coracle::ctl {
namespace {

// The exit code, "none yet" or the error.
std::string exit_code(const std::string& status) {
  json::value pod = *parse_json(R"({"metadata":{"namespace":"default","name":"once"},"status":)" + status + "}");
  auto code = exit_code_of(pod, "main");
  if (!code) return code.error().text();
  return *code ? std::to_string(**code) : "none yet";
}

TEST(Pods, a_pod_has_an_exit_code_when_all_of_it_has_ended) {
  const std::string ended = R"("containerStatuses":[{"name":"other","state":{"terminated":{"exitCode":4}}},
                                                    {"name":"main","state":{"terminated":{"exitCode":3}}}]})";
  EXPECT_EQ(exit_code(R"({"phase":"Pending"})"), "none yet");
  EXPECT_EQ(exit_code(R"({"phase":"Running",)" + ended), "none yet") << "it is about to end: deleted now, it would stay a while";
  EXPECT_EQ(exit_code(R"({"phase":"Failed",)" + ended), "3");
  EXPECT_EQ(exit_code(R"({"phase":"Succeeded",)" + ended), "0");
}

TEST(Pods, a_pod_that_failed_without_its_container_has_no_exit_code) {
  EXPECT_EQ(exit_code(R"({"phase":"Failed","reason":"Evicted"})"), "pod default/once failed with unknown exit code");
  EXPECT_EQ(exit_code(R"({"phase":"Failed","containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":0}}}]})"),
            "pod default/once failed with unknown exit code");
}

std::string container_chosen(const std::string& annotations, const std::string& spec, const std::string& name = "") {
  json::value pod = *parse_json(R"({"metadata":{"namespace":"default","name":"web","annotations":{)" + annotations +
                                R"(}},"spec":{)" + spec + "}}");
  auto container = choose_container(pod, name, true);
  return container ? std::string(container->name()) : container.error().text();
}

TEST(Pods, a_container_is_chosen_by_name_then_mark_then_order) {
  const std::string spec =
      R"("containers":[{"name":"a"},{"name":"b"}],"initContainers":[{"name":"i"}],"ephemeralContainers":[{"name":"e"}])";
  auto mark = [](const std::string& name) { return R"("kubectl.kubernetes.io/default-container":")" + name + "\""; };
  EXPECT_EQ(container_chosen("", spec), "a");
  EXPECT_EQ(container_chosen(mark("b"), spec), "b");
  EXPECT_EQ(container_chosen(mark("b"), spec, "e"), "e");
  EXPECT_EQ(container_chosen(mark(""), spec), "a");
  EXPECT_EQ(container_chosen(mark("gone"), spec), "container gone is not valid for pod web out of: a, b, e (ephem), i (init)");
  EXPECT_EQ(container_chosen("", ""), "pod default/web does not have any containers");
}

// The names of the pods in the order in which they are taken.
std::string taken(const std::vector<std::string>& pods, PodUse use) {
  std::vector<json::value> parsed;
  for (const std::string& pod : pods) parsed.push_back(*parse_json(pod));
  order_pods(parsed, use);
  std::string names;
  for (const json::value& pod : parsed) names += get_string(pod, "metadata.name");
  return names;
}

std::string pod_text(const std::string& name, const std::string& metadata, const std::string& spec, const std::string& status) {
  return R"({"metadata":{"name":")" + name + "\"" + (metadata.empty() ? "" : ",") + metadata + R"(},"spec":{)" + spec +
         R"(},"status":{)" + status + "}}";
}

TEST(Pods, of_several_the_best_is_taken) {
  const std::string node = R"("nodeName":"edge")", running = R"("phase":"Running")";
  auto ready = [&](const char* since) {
    return running + R"(,"conditions":[{"type":"Ready","status":"True","lastTransitionTime":")" + since + "\"}]";
  };
  auto restarted = [&](int times) {
    return running + R"(,"containerStatuses":[{"name":"main","restartCount":)" + std::to_string(times) + "}]";
  };
  const std::string sidecar = R"("nodeName":"edge","initContainers":[{"name":"s","restartPolicy":"Always"},{"name":"i"}])";
  auto sidecar_restarted = [&](int times) {
    return running + R"(,"initContainerStatuses":[{"name":"i","restartCount":9},{"name":"s","restartCount":)" +
           std::to_string(times) + "}]";
  };
  struct Row {
    const char* what;
    std::vector<std::string> pods;
    const char *logs, *attach;
  };
  for (const Row& row : std::vector<Row>{
           {"equal ones stay", {pod_text("a", "", "", ""), pod_text("b", "", "", "")}, "ab", "ab"},
           {"on a node", {pod_text("a", "", "", running), pod_text("b", "", node, R"("phase":"Pending")")}, "ba", "ba"},
           {"phases",
            {pod_text("p", "", node, R"("phase":"Pending")"), pod_text("u", "", node, R"("phase":"Unknown")"),
             pod_text("f", "", node, R"("phase":"Failed")"), pod_text("r", "", node, running)},
            "frup",
            "rupf"},
           {"ready, and since when",
            {pod_text("n", "", node, running), pod_text("l", "", node, ready("2024-01-02T00:00:00Z")),
             pod_text("e", "", node, ready("2024-01-01T00:00:00Z"))},
            "eln",
            "eln"},
           {"restarts", {pod_text("a", "", node, restarted(1)), pod_text("b", "", node, restarted(3))}, "ba", "ab"},
           {"restarts of sidecars",
            {pod_text("a", "", sidecar, sidecar_restarted(1)), pod_text("b", "", sidecar, sidecar_restarted(2))},
            "ba",
            "ab"},
           {"age",
            {pod_text("x", "", node, running), pod_text("n", R"("creationTimestamp":"2024-01-02T00:00:00Z")", node, running),
             pod_text("o", R"("creationTimestamp":"2024-01-01T00:00:00Z")", node, running)},
            "onx",
            "onx"},
           {"leaving",
            {pod_text("a", R"("deletionTimestamp":"2024-01-01T00:00:00Z")", node, running),
             pod_text("b", R"("deletionTimestamp":"2024-01-02T00:00:00Z")", node, running), pod_text("c", "", node, running)},
            "abc",
            "cba"}}) {
    EXPECT_EQ(taken(row.pods, PodUse::logs), row.logs) << row.what;
    EXPECT_EQ(taken(row.pods, PodUse::attach), row.attach) << row.what;
  }
}

TEST(Pods, a_debug_container_is_one_that_the_pod_was_given_later) {
  json::value pod = *parse_json(R"({"spec":{"containers":[{"name":"a"}],"initContainers":[{"name":"i"}],
                                            "ephemeralContainers":[{"name":"d"},{"name":"e"}]}})");
  EXPECT_TRUE(is_debug_container(pod, "d"));
  EXPECT_TRUE(is_debug_container(pod, "e"));
  for (const char* other : {"a", "i", "", "none"}) EXPECT_FALSE(is_debug_container(pod, other)) << other;
  EXPECT_FALSE(is_debug_container(json::object(), "d"));
}

}  // namespace
}  // namespace coracle::ctl
