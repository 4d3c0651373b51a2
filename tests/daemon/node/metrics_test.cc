// SPDX-License-Identifier: Apache-2.0
// The metrics of the machine and its pods for metrics.k8s.io.
#include "daemon/node/metrics.h"

#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

using namespace std::chrono_literals;

class MetricsTest : public Machine {
 protected:
  MetricsTest() {
    pause_ = [this](std::chrono::nanoseconds span) { clock_.advance(span); };
  }
  void use(const std::string& container, std::chrono::nanoseconds cpu, int64_t memory, const std::string& name = "web") {
    runtime_.set_usage(uid(name), container,
                       {.cpu = cpu, .memory = Bytes(memory * 2), .memory_working_set = Bytes(memory), .processes = 1});
  }
  std::vector<ObjectPtr> pods(const std::string& ns = "", const std::string& name = "") {
    return MUST(agent_->metrics().pods(ns, name));
  }
  static std::string usage(const Object& pod, size_t container, const char* resource) {
    return std::string(get_string(get_array(pod.json(), "containers").at(container), std::string("usage.") + resource));
  }
};

TEST_F(MetricsTest, pods_are_measured_container_by_container) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"},{"name":"b","image":"web:1"}])", "web", R"(,"labels":{"app":"x"})");
  advance(10s);
  use("a-0", 1s, 10 << 20);
  use("b-0", 0s, 3000);
  auto found = pods();
  ASSERT_EQ(found.size(), 1u);
  const Object& pod = *found[0];
  EXPECT_EQ(pod.kind(), kPodMetrics);
  EXPECT_EQ(pod.key(), (Key{"default", "web"}));
  EXPECT_EQ(pod.label("app"), "x");
  EXPECT_EQ(get_string(pod.json(), "window"), "10s");
  EXPECT_EQ(get_string(pod.json(), "timestamp"), format_time(clock_.now()));
  EXPECT_EQ(get_string(get_array(pod.json(), "containers").at(0), "name"), "a");
  EXPECT_EQ(usage(pod, 0, "cpu"), "100m");
  EXPECT_EQ(usage(pod, 0, "memory"), "10Mi");
  EXPECT_EQ(usage(pod, 1, "cpu"), "0");
  EXPECT_EQ(usage(pod, 1, "memory"), "3000");

  advance(15s);
  use("a-0", 1s + 15ms, 10 << 20);
  EXPECT_EQ(usage(*pods()[0], 0, "cpu"), "1m");
  EXPECT_EQ(get_string(pods()[0]->json(), "window"), "15s");
}

TEST_F(MetricsTest, what_is_not_wanted_is_not_measured) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])", "web");
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])", "other");
  advance(120s);  // a request now waits for a second sample
  use("a-0", 0s, 4096, "web");
  auto wanted = MUST(agent_->metrics().pods("", "", [](const Object& pod) { return pod.name() == "web"; }));
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_EQ(wanted[0]->name(), "web");
  auto before = clock_.now();
  auto none = MUST(agent_->metrics().pods("", "", [](const Object&) { return false; }));
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(clock_.now(), before) << "nothing was looked at";
}

TEST_F(MetricsTest, only_what_was_asked_for_and_runs) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])", "web");
  put_pod(R"("restartPolicy":"Never","containers":[{"name":"a","image":"web:1"},{"name":"b","image":"web:1"}])", "other");
  for (const char* name : {"web", "other"}) use("a-0", 0s, 4096, name);
  use("b-0", 0s, 4096, "other");
  EXPECT_EQ(pods().size(), 2u);
  EXPECT_EQ(pods("default").size(), 2u);
  EXPECT_EQ(pods("elsewhere").size(), 0u);
  ASSERT_EQ(pods("default", "web").size(), 1u);
  EXPECT_EQ(pods("default", "none").size(), 0u);
  runtime_.exit(uid("other"), "b-0", 0);
  settle();
  EXPECT_EQ(get_array(pods("default", "other").at(0)->json(), "containers").size(), 1u);
  runtime_.exit(uid("other"), "a-0", 0);
  settle();
  EXPECT_EQ(pods("default", "other").size(), 0u);
}

TEST_F(MetricsTest, the_node_is_measured_as_a_whole) {
  client_.put(kNode, R"({"metadata":{"name":"node-1","labels":{"zone":"shaft"}}})");
  boot();
  auto found = MUST(agent_->metrics().nodes(""));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->name(), "node-1");
  EXPECT_EQ(found[0]->label("zone"), "shaft");
  EXPECT_EQ(get_string(found[0]->json(), "window"), "1s");
  EXPECT_NE(get_string(found[0]->json(), "usage.memory"), "0");
  EXPECT_FALSE(get_string(found[0]->json(), "usage.cpu").empty());
  EXPECT_EQ(MUST(agent_->metrics().nodes("node-2")).size(), 0u);
}

TEST(MachineUse, is_what_is_neither_idle_nor_free) {
  const std::string stat = "cpu  100 20 30 999999 4000 5 6 700 50 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n";
  const std::string meminfo =
      "MemTotal:       1000 kB\nMemFree:         300 kB\nInactive:        150 kB\nInactive(file):  100 kB\n";
  Reading reading = MUST(read_machine_use(stat, meminfo));
  EXPECT_EQ(reading.cpu, std::chrono::milliseconds(1610));  // user, nice, system, interrupts
  EXPECT_EQ(reading.memory, Bytes(600 << 10));
  EXPECT_FALSE(read_machine_use("", meminfo));
  EXPECT_FALSE(read_machine_use("cpu 1 2", meminfo));
}

}  // namespace
}  // namespace coracle::node
