// SPDX-License-Identifier: Apache-2.0
// The node agent as main runs it: with all its threads and the real clock.
#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

class ThreadsTest : public Machine {
 protected:
  void start() {
    for (const Kind* kind : {&kPod, &kConfigMap, &kSecret, &kService})
      informers_.push_back(std::make_unique<Informer>(client_, *kind));
    agent_ = std::make_unique<Agent>(config_,
                                     AgentSeams{.client = client_,
                                                .pods = *informers_[0],
                                                .config_maps = *informers_[1],
                                                .secrets = *informers_[2],
                                                .services = *informers_[3],
                                                .runtime = runtime_,
                                                .events = events_},
                                     network_);
    ASSERT_TRUE(agent_->start());
    for (auto& informer : informers_) ASSERT_TRUE(informer->start());
  }
  // Polls the fake API, since another thread handles its events.
  template <typename F>
  bool eventually(F&& holds) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (std::chrono::steady_clock::now() < deadline) {
      if (holds()) return true;
      std::this_thread::yield();
    }
    return false;
  }
};

TEST_F(ThreadsTest, many_pods_come_crash_and_go) {
  network_.attach = [&](const std::string&, const Fd&, const Key&, const std::vector<HostPort>&) -> Result<Attachment> {
    return Attachment{{"10.1.0.7"}};
  };
  network_.detach = [](const std::string&) -> Result<void> { return {}; };
  start();
  constexpr int kPods = 30;
  runtime_.images_fake().add("docker.io/library/far:1", {.cmd = {"/far"}}, /*present=*/false);
  for (int i = 0; i < kPods; ++i)
    client_.put(kPod,
                R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"p)" + std::to_string(i) +
                    R"("},"spec":{"nodeName":"node-1","containers":[{"name":"a","image":")" + (i % 2 ? "far:1" : "web:1") +
                    R"(","readinessProbe":{"exec":{"command":["x"]}},"lifecycle":{"preStop":{"exec":{"command":["y"]}}}}]}})");
  auto all = [&](auto&& holds) {
    for (int i = 0; i < kPods; ++i)
      if (!holds("p" + std::to_string(i))) return false;
    return true;
  };
  EXPECT_TRUE(eventually([&] { return all([&](const std::string& name) { return condition("Ready", name) == "True"; }); }));
  for (int i = 0; i < kPods; ++i) runtime_.exit(uid("p" + std::to_string(i)), "a-0", 1);
  EXPECT_TRUE(eventually([&] { return all([&](const std::string& name) { return restarts("a", name) == 1; }); }));
  for (int i = 0; i < kPods; ++i) EXPECT_TRUE(client_.remove(kPod, {"default", "p" + std::to_string(i)}, {}));
  EXPECT_TRUE(eventually([&] { return client_.all(kPod).empty() && runtime_.sandboxes()->empty(); }));
  EXPECT_TRUE(client_.find(kNode, {"", "node-1"}));
  EXPECT_TRUE(eventually([&] { return client_.find(kLease, {"kube-node-lease", "node-1"}) != nullptr; }));
}

TEST_F(ThreadsTest, probes_that_hang_hold_up_no_others) {
  runtime_.on_exec([](const auto&, const auto&, const runtime::ExecSpec& spec) {
    return runtime::FakeRuntime::ExecAnswer{.after = std::chrono::hours(spec.args.front() == "hang" ? 1 : 0)};
  });
  start();
  auto put = [&](const std::string& name, const std::string& command) {
    client_.put(
        kPod,
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":")" + name +
            R"("},"spec":{"nodeName":"node-1","containers":[{"name":"a","image":"web:1","readinessProbe":{"exec":{"command":[")" +
            command + R"("]},"timeoutSeconds":3600}}]}})");
  };
  for (int i = 0; i < 8; ++i) put("hangs-" + std::to_string(i), "hang");
  EXPECT_TRUE(eventually([&] { return runtime_.sandboxes()->size() == 8; }));
  put("quick", "true");
  EXPECT_TRUE(eventually([&] { return condition("Ready", "quick") == "True"; }));
}

TEST_F(ThreadsTest, manifests_are_noticed) {
  start();
  std::ofstream(config_.manifests_dir + "/.db.tmp")
      << "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {containers: [{name: a, image: \"web:1\"}]}\n";
  std::filesystem::rename(config_.manifests_dir + "/.db.tmp", config_.manifests_dir + "/db.yaml");
  EXPECT_TRUE(eventually([&] { return client_.find(kPod, {"default", "db-node-1"}) && phase("db-node-1") == "Running"; }));
  std::filesystem::remove(config_.manifests_dir + "/db.yaml");
  EXPECT_TRUE(eventually([&] { return client_.all(kPod).empty() && runtime_.sandboxes()->empty(); }));
}

}  // namespace
}  // namespace coracle::node
