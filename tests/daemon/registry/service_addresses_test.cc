// SPDX-License-Identifier: Apache-2.0
// Addresses and node ports that several writes want at the same time, on a disk that takes its time.
#include <atomic>
#include <set>
#include <thread>

#include "tests/daemon/registry/registry_fixture.h"
#include "tests/store/engine/slow_disk.h"
#include "tests/threads_asleep.h"

namespace coracle::registry {
namespace {

constexpr size_t kWriters = 16;

class ServiceAddressesTest : public ::testing::Test {
 protected:
  static std::string service(const std::string& name, const std::string& spec) {
    return R"({"metadata":{"namespace":"default","name":")" + name + R"("},"spec":{)" + spec + "}}";
  }
  static std::string name_of(size_t writer) { return "s" + std::to_string(writer); }
  // The results of so many writes at the same time.
  template <typename Write>
  std::vector<Result<ObjectPtr>> at_once(Write&& write) {
    std::vector<std::optional<Result<ObjectPtr>>> results(kWriters);
    {
      std::vector<std::jthread> threads;
      for (size_t t = 0; t < kWriters; t++) threads.emplace_back([&, t] { results[t] = write(t); });
    }
    std::vector<Result<ObjectPtr>> out;
    for (auto& result : results) out.push_back(*std::move(result));
    return out;
  }
  // Expects that one write has won, and that the others got this error.
  static void expect_one(const std::vector<Result<ObjectPtr>>& results, const std::string& error) {
    size_t won = 0;
    for (const auto& result : results) {
      won += result.ok();
      if (result) continue;
      EXPECT_NE(result.error().text().find(error), std::string::npos) << result.error().text();
    }
    EXPECT_EQ(won, 1u);
  }
  static std::string address_of(const Object& service) { return std::string(get_string(service.json(), "spec.clusterIP")); }

  engine::SlowDisk disk;
  RegistryFixture fixture{kinds::Ranges(), 0, disk.vfs()};
};

TEST_F(ServiceAddressesTest, one_address_goes_to_one_service) {
  disk.set_delay(std::chrono::milliseconds(10));
  expect_one(
      at_once([&](size_t t) {
        return fixture.try_make(kService, service(name_of(t), R"("clusterIP":"10.96.7.7","ports":[{"port":80}])"));
      }),
      R"(spec.clusterIPs: Invalid value: ["10.96.7.7"]: failed to allocate IP 10.96.7.7: provided IP is already allocated)");
}

TEST_F(ServiceAddressesTest, one_node_port_goes_to_one_service) {
  disk.set_delay(std::chrono::milliseconds(10));
  expect_one(at_once([&](size_t t) {
               return fixture.try_make(kService,
                                       service(name_of(t), R"("type":"NodePort","ports":[{"port":80,"nodePort":30080}])"));
             }),
             "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated");
}

TEST_F(ServiceAddressesTest, one_health_check_port_goes_to_one_service) {
  disk.set_delay(std::chrono::milliseconds(10));
  expect_one(at_once([&](size_t t) {
               return fixture.try_make(
                   kService,
                   service(name_of(t), R"("type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30090,)"
                                       R"("ports":[{"port":80}])"));
             }),
             "failed to allocate requested HealthCheck NodePort 30090: provided port is already allocated");
}

TEST_F(ServiceAddressesTest, a_change_to_one_node_port_goes_to_one_service) {
  for (size_t t = 0; t < kWriters; t++) fixture.make(kService, service(name_of(t), R"("ports":[{"port":80}])"));
  disk.set_delay(std::chrono::milliseconds(10));
  expect_one(at_once([&](size_t t) {
               return fixture.try_merge(kService, {"default", name_of(t)},
                                        R"({"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}})");
             }),
             "provided port is already allocated");
}

TEST_F(ServiceAddressesTest, one_service_does_not_stand_in_its_own_way) {
  fixture.make(kService, service("web", R"("ports":[{"port":80}])"));
  disk.set_delay(std::chrono::milliseconds(10));
  for (const auto& result : at_once([&](size_t t) {
         return fixture.try_merge(kService, {"default", "web"},
                                  R"({"metadata":{"labels":{"writer":")" + name_of(t) +
                                      R"("}},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}})");
       }))
    EXPECT_TRUE(result) << result.error().text();
}

TEST_F(ServiceAddressesTest, creates_share_commits_and_get_different_values) {
  disk.hold_syncs(true);  // until all wait for the first one's commit
  const size_t before = disk.syncs();
  std::atomic<size_t> begun = 0;
  std::vector<pid_t> writers(kWriters);
  std::jthread releasing([&] {
    while (begun < kWriters) std::this_thread::yield();
    EXPECT_TRUE(come_to_rest(writers));
    disk.hold_syncs(false);
  });
  std::set<std::string> addresses;
  std::set<int64_t> ports;
  for (const auto& result : at_once([&](size_t t) {
         writers[t] = ::gettid();
         ++begun;
         return fixture.try_make(kService, service(name_of(t), R"("type":"NodePort","ports":[{"port":80}])"));
       })) {
    const Object& made = *MUST(result);
    addresses.insert(address_of(made));
    ports.insert(get_int(get_array(made.json(), "spec.ports").at(0), "nodePort"));
  }
  EXPECT_EQ(addresses.size(), kWriters);
  EXPECT_EQ(ports.size(), kWriters);
  EXPECT_LT(disk.syncs() - before, kWriters / 2) << "creates that wait for each other need a sync each";
}

TEST_F(ServiceAddressesTest, what_fails_or_is_only_tried_gives_back) {
  const std::string wanted = R"("clusterIP":"10.96.7.7","type":"NodePort","ports":[{"port":80,"nodePort":30080}])";
  disk.set_failing(true);
  EXPECT_EQ(fixture.try_make(kService, service("a", wanted)).error().code(), Code::internal);
  disk.set_failing(false);
  EXPECT_FALSE(fixture.try_make(kService, service("a", wanted + R"(,"sessionAffinity":"Never")")))
      << "invalid after the allocation";
  Writer dry;
  dry.dry_run = true;
  MUST(fixture.try_make(kService, service("a", wanted), dry));
  ObjectPtr made = MUST(fixture.try_make(kService, service("a", wanted)));
  EXPECT_FALSE(fixture.try_make(kService, service("a", R"("ports":[{"port":80}])"))) << "its name is taken";
  EXPECT_FALSE(fixture.try_make(kService, service("b", wanted)));
  MUST(fixture.engine->remove(kService, made->key(), std::nullopt, engine::Durability::durable));
  MUST(fixture.try_make(kService, service("b", wanted)));
}

TEST_F(ServiceAddressesTest, a_restart_finds_them_all) {
  std::set<std::string> addresses;
  for (size_t t = 0; t < kWriters; t++)
    addresses.insert(address_of(*fixture.make(kService, service(name_of(t), R"("ports":[{"port":80}])"))));
  fixture.make(kService, service("web", R"("type":"NodePort","clusterIP":"10.96.7.7","ports":[{"port":80,"nodePort":30080}])"));
  fixture.reopen();
  for (const std::string& address : addresses)
    EXPECT_FALSE(fixture.try_make(kService, service("other", R"("clusterIP":")" + address + R"(","ports":[{"port":80}])")));
  EXPECT_FALSE(fixture.try_make(kService, service("other", R"("type":"NodePort","ports":[{"port":80,"nodePort":30080}])")));
  EXPECT_FALSE(addresses.contains(address_of(*fixture.make(kService, service("other", R"("ports":[{"port":80}])")))));
}

}  // namespace
}  // namespace coracle::registry
