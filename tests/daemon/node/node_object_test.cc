// SPDX-License-Identifier: Apache-2.0
// The Node object and its Lease: registered once, written only when something differs.
#include "daemon/node/node_object.h"

#include <gtest/gtest.h>

#include "tests/runtime/fake_runtime.h"
#include "tests/store/client/fake_client.h"

namespace coracle::node {
namespace {

class NodeObjectTest : public ::testing::Test {
 protected:
  NodeObjectTest() {
    config_.node_name = "node-1";
    config_.node_ips = {"192.0.2.1"};
    config_.state_dir = "/tmp";
  }
  json::value node() const { return client_.find(kNode, {"", "node-1"})->json(); }
  static json::value condition(const json::value& node, const char* type) {
    for (const auto& condition : get_array(node, "status.conditions"))
      if (get_string(condition, "type") == type) return condition;
    return nullptr;
  }
  FakeClock clock_;
  FakeClient client_{clock_};
  runtime::FakeRuntime runtime_{clock_};
  AgentConfig config_;
};

TEST_F(NodeObjectTest, is_registered_and_then_left_alone) {
  NodeObject object(config_, client_, runtime_, clock_);
  ASSERT_TRUE(object.refresh());
  EXPECT_EQ(get_string(node(), "status.nodeInfo.kubeletVersion"), kVersion);
  EXPECT_EQ(get_string(condition(node(), "Ready"), "status"), "True");
  EXPECT_EQ(get_string(*find_keys(node(), {"metadata", "labels"}), "missing"), "");
  EXPECT_EQ(client_.find(kNode, {"", "node-1"})->label("kubernetes.io/hostname"), "node-1");
  EXPECT_EQ(get_string(get_array(node(), "status.addresses")[0], "address"), "192.0.2.1");
  Revision before = client_.revision();
  clock_.advance(std::chrono::hours(1));
  ASSERT_TRUE(object.refresh());
  EXPECT_EQ(client_.revision(), before);
}

TEST_F(NodeObjectTest, says_what_it_cannot_enforce) {
  NodeObject object(config_, client_, runtime_, clock_);
  ASSERT_TRUE(object.refresh());
  EXPECT_EQ(get_string(condition(node(), "LimitsUnenforced"), "status"), "False");
  runtime_.set_enforcement({.missing = "no memory controller: add cgroup_enable=memory"});
  clock_.advance(std::chrono::seconds(5));
  ASSERT_TRUE(object.refresh());
  json::value found = condition(node(), "LimitsUnenforced");
  EXPECT_EQ(get_string(found, "status"), "True");
  EXPECT_EQ(get_string(found, "message"), "no memory controller: add cgroup_enable=memory");
  EXPECT_EQ(get_string(found, "lastTransitionTime"), format_time(clock_.now()));
}

TEST_F(NodeObjectTest, heals_labels_and_shows_images) {
  NodeObject object(config_, client_, runtime_, clock_);
  ASSERT_TRUE(object.refresh());
  ASSERT_TRUE(client_.patch(kNode, {"", "node-1"}, PatchType::merge,
                            *parse_json(R"({"metadata":{"labels":{"kubernetes.io/os":"plan9","mine":"1"}}})")));
  runtime_.images_fake().add("docker.io/library/web:1");
  ASSERT_TRUE(object.refresh());
  auto found = client_.find(kNode, {"", "node-1"});
  EXPECT_EQ(found->label("kubernetes.io/os"), "linux");
  EXPECT_EQ(found->label("mine"), "1");
  EXPECT_EQ(get_array(found->json(), "status.images").size(), 1u);
}

TEST_F(NodeObjectTest, pressure_is_a_condition) {
  MachineFacts machine;
  machine.memory = Bytes(int64_t(4) << 30);
  machine.memory_available = 50_MiB;
  machine.disk = Bytes(1000);
  machine.disk_available = Bytes(99);
  auto status = make_node_status(config_, machine, {}, {}, json::object(), clock_.now());
  json::value shown = json::object{{"status", status}};
  EXPECT_EQ(get_string(condition(shown, "MemoryPressure"), "status"), "True");
  EXPECT_EQ(get_string(condition(shown, "DiskPressure"), "status"), "True");
  EXPECT_EQ(get_string(condition(shown, "PIDPressure"), "status"), "False");
}

TEST_F(NodeObjectTest, says_whether_pods_can_have_users_of_their_own) {
  for (bool can : {true, false}) {
    config_.has_own_users = can;
    json::value status = make_node_status(config_, {}, {}, {}, json::object(), clock_.now());
    EXPECT_EQ(get_bool(get_array(status, "runtimeHandlers")[0], "features.userNamespaces"), can);
  }
}

TEST_F(NodeObjectTest, the_lease_is_made_and_renewed) {
  NodeObject object(config_, client_, runtime_, clock_);
  ASSERT_TRUE(object.renew_lease());
  clock_.advance(std::chrono::seconds(60));
  ASSERT_TRUE(object.renew_lease());
  auto lease = client_.find(kLease, {"kube-node-lease", "node-1"});
  ASSERT_TRUE(lease);
  EXPECT_EQ(get_string(lease->json(), "spec.renewTime"), format_micro_time(clock_.now()));
}

TEST_F(NodeObjectTest, allocatable_keeps_what_is_reserved) {
  MachineFacts machine;
  machine.cpus = 2;
  machine.memory = 1024_MiB;
  config_.system_reserved_cpu = Millicores(100);
  config_.system_reserved_memory = 24_MiB;
  auto left = node_allocatable(config_, machine);
  EXPECT_EQ(left["cpu"], "1900m");
  EXPECT_EQ(left["memory"], "1024000Ki");
}

}  // namespace
}  // namespace coracle::node
