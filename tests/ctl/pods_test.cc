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
