// SPDX-License-Identifier: Apache-2.0
// The Node object and its Lease: registered once, updated when something differs, and the heartbeat.
#include "daemon/node/node_object.h"

#include <gtest/gtest.h>

#include "store/object/object.h"
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
  clock_.advance(std::chrono::minutes(4));
  ASSERT_TRUE(object.refresh());
  EXPECT_EQ(client_.revision(), before);
}

// The machine's properties as set by the test.
class HousekeepingTest : public NodeObjectTest {
 protected:
  NodeObject object_{config_, client_, runtime_, clock_, [this](MachineInfo& info) {
                       info.memory_available = memory_available_;
                       info.disk = Bytes(1000);
                       info.disk_available = disk_available_;
                       info.processes = 0;
                     }};
  void look() {
    auto kept = object_.housekeep();
    EXPECT_TRUE(kept) << kept.error().text();
  }
  std::string status(const char* type) const { return std::string(get_string(condition(node(), type), "status")); }
  std::string field(const char* type, const char* name) const { return std::string(get_string(condition(node(), type), name)); }
  std::string renewed() const {
    return std::string(get_string(client_.find(kLease, {"kube-node-lease", "node-1"})->json(), "spec.renewTime"));
  }
  std::vector<std::string> calls_of(auto&& what) {
    client_.clear_calls();
    what();
    return client_.calls();
  }
  Bytes memory_available_ = 500_MiB, disk_available_{500};
};

TEST_F(HousekeepingTest, a_heartbeat_comes_every_five_minutes) {
  look();
  std::string began = format_time(clock_.now());
  for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"})
    EXPECT_EQ(field(type, "lastHeartbeatTime"), began);
  clock_.advance(std::chrono::seconds(290));
  look();
  EXPECT_EQ(field("Ready", "lastHeartbeatTime"), began);
  clock_.advance(std::chrono::seconds(10));
  look();
  for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
    EXPECT_EQ(field(type, "lastHeartbeatTime"), format_time(clock_.now())) << type;
    EXPECT_EQ(field(type, "lastTransitionTime"), began) << type;
  }
}

TEST_F(HousekeepingTest, the_lease_is_renewed_every_ten_seconds_and_nothing_else_is_written) {
  look();
  for (int i = 0; i < 20; ++i) {
    clock_.advance(std::chrono::seconds(10));
    EXPECT_EQ(calls_of([&] { look(); }), std::vector<std::string>{"patch leases.coordination.k8s.io kube-node-lease/node-1"});
    EXPECT_EQ(renewed(), format_micro_time(clock_.now()));
  }
  clock_.advance(std::chrono::seconds(3));
  EXPECT_EQ(calls_of([&] { look(); }), std::vector<std::string>());
  EXPECT_EQ(get_int(client_.find(kLease, {"kube-node-lease", "node-1"})->json(), "spec.leaseDurationSeconds"), 40);
}

TEST_F(HousekeepingTest, pressure_is_told_within_ten_seconds_and_held_for_five_minutes) {
  look();
  EXPECT_EQ(status("MemoryPressure"), "False");
  memory_available_ = 50_MiB;
  clock_.advance(std::chrono::seconds(10));
  look();
  EXPECT_EQ(status("MemoryPressure"), "True");
  EXPECT_EQ(status("DiskPressure"), "False");
  std::string began = format_time(clock_.now());
  EXPECT_EQ(field("MemoryPressure", "lastTransitionTime"), began);
  memory_available_ = 500_MiB;
  for (int i = 0; i < 29; ++i) {
    clock_.advance(std::chrono::seconds(10));
    look();
    ASSERT_EQ(status("MemoryPressure"), "True") << i;
  }
  clock_.advance(std::chrono::seconds(10));
  look();
  EXPECT_EQ(status("MemoryPressure"), "False");
  disk_available_ = Bytes(99);
  clock_.advance(std::chrono::seconds(10));
  look();
  EXPECT_EQ(status("DiskPressure"), "True");
  EXPECT_EQ(field("DiskPressure", "reason"), "KubeletHasDiskPressure");
}

TEST_F(HousekeepingTest, what_could_not_be_written_is_written_next_time) {
  client_.fail(1, Error(Code::unavailable, "no"), "patch nodes/status");
  EXPECT_FALSE(object_.housekeep());
  look();
  EXPECT_EQ(status("Ready"), "True");
  memory_available_ = 50_MiB;
  clock_.advance(std::chrono::seconds(10));
  client_.fail(1, Error(Code::unavailable, "no"), "patch nodes/status");
  EXPECT_FALSE(object_.housekeep());
  look();
  EXPECT_EQ(status("MemoryPressure"), "True");
  client_.fail(1, Error(Code::unavailable, "no"), "patch leases");
  clock_.advance(std::chrono::seconds(10));
  EXPECT_FALSE(object_.housekeep());
  look();
  EXPECT_EQ(renewed(), format_micro_time(clock_.now()));
}

TEST_F(HousekeepingTest, a_clock_that_was_set_is_told_at_once) {
  look();
  clock_.advance(std::chrono::seconds(1));
  object_.clock_was_set();
  look();
  EXPECT_EQ(renewed(), format_micro_time(clock_.now()));
  EXPECT_EQ(field("Ready", "lastHeartbeatTime"), format_time(clock_.now()));
}

TEST_F(HousekeepingTest, the_lease_goes_with_its_node) {
  look();
  json::value lease = client_.find(kLease, {"kube-node-lease", "node-1"})->json();
  ASSERT_EQ(get_array(lease, "metadata.ownerReferences").size(), 1u);
  EXPECT_EQ(get_string(get_array(lease, "metadata.ownerReferences")[0], "uid"), client_.find(kNode, {"", "node-1"})->uid());
}

TEST_F(NodeObjectTest, shows_the_huge_pages_there_are) {
  MachineInfo machine;
  machine.memory = 1024_MiB;
  machine.huge_pages = {{"hugepages-1Gi", Bytes(0)}, {"hugepages-2Mi", 64_MiB}};
  EXPECT_EQ(node_capacity(config_, machine)["hugepages-2Mi"], "64Mi");
  auto left = node_allocatable(config_, machine);
  EXPECT_EQ(left["hugepages-1Gi"], "0");
  EXPECT_EQ(left["hugepages-2Mi"], "64Mi");
  EXPECT_EQ(left["memory"], "983040Ki") << "they are nobody's memory else";
}

TEST_F(NodeObjectTest, names_the_runtime_handlers) {
  json::value status = make_node_status(config_, {}, {}, {}, json::object(), clock_.now());
  std::vector<std::string> names;
  for (const auto& handler : get_array(status, "runtimeHandlers")) names.emplace_back(get_string(handler, "name"));
  EXPECT_EQ(names, (std::vector<std::string>{"", "coracle", "runc"}));
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
  MachineInfo machine;
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

TEST_F(HousekeepingTest, what_is_put_into_the_capacity_becomes_allocatable) {
  look();
  auto capacity = [&](const std::string& amount) {
    json::value patch = json::object{{"status", json::object{{"capacity", json::object{{"example.com/dongle", amount}}}}}};
    if (amount.empty()) make(patch, "status.capacity").as_object()["example.com/dongle"] = nullptr;
    ASSERT_TRUE(client_.patch(kNode, {"", "node-1"}, PatchType::merge, patch, {.subresource = "status"}));
    object_.node_changed(node());
    look();
  };
  capacity("4");
  EXPECT_EQ(get_object(node(), "status.capacity").at("example.com/dongle"), "4");
  EXPECT_EQ(get_object(node(), "status.allocatable").at("example.com/dongle"), "4");
  EXPECT_EQ(object_.allocatable().at("example.com/dongle"), "4");
  clock_.advance(kHeartbeat);
  look();
  EXPECT_EQ(get_object(node(), "status.allocatable").at("example.com/dongle"), "4");
  capacity("2");
  EXPECT_EQ(get_object(node(), "status.allocatable").at("example.com/dongle"), "2");
  auto calls = calls_of([&] {
    object_.node_changed(node());
    look();
  });
  EXPECT_TRUE(calls.empty()) << "that was our own word";
  capacity("");
  EXPECT_FALSE(object_.allocatable().if_contains("example.com/dongle"));
  EXPECT_FALSE(get_object(node(), "status.allocatable").if_contains("example.com/dongle"));
}

TEST_F(NodeObjectTest, no_more_memory_is_allocatable_than_pods_may_hold) {
  auto memory = [&](std::optional<Bytes> bound, std::map<std::string, Bytes> huge_pages = {}) {
    MachineInfo machine;
    machine.memory = 1024_MiB;
    machine.pods_memory = bound;
    machine.huge_pages = std::move(huge_pages);
    return std::string(node_allocatable(config_, machine)["memory"].get_string());
  };
  EXPECT_EQ(memory(std::nullopt), "1048576Ki");
  EXPECT_EQ(memory(800_MiB), "819200Ki");
  EXPECT_EQ(memory(4096_MiB), "1048576Ki");
  EXPECT_EQ(memory(800_MiB, {{"hugepages-2Mi", 512_MiB}}), "524288Ki");  // the memory limit does not include huge pages
  EXPECT_EQ(memory(0_MiB), "0Ki");
}

TEST_F(HousekeepingTest, tells_a_bound_of_memory_that_the_owner_changes) {
  for (const auto& [bound, told] : {std::pair(1_MiB, "1024Ki"), std::pair(2_MiB, "2048Ki"), std::pair(1_MiB, "1024Ki")}) {
    runtime_.set_memory_bound(bound);
    clock_.advance(kHousekeeping);
    look();
    EXPECT_EQ(get_string(node(), "status.allocatable.memory"), told);
    EXPECT_EQ(object_.allocatable()["memory"], told);
  }
}

}  // namespace
}  // namespace coracle::node
