// SPDX-License-Identifier: Apache-2.0
// ResourceQuota: what an object charges, what is refused and with which message, and that concurrent requests cannot exceed a
// quota.
#include <atomic>
#include <optional>
#include <thread>

#include "daemon/quota/usage.h"
#include "tests/daemon/admission/admission_fixture.h"
#include "tests/store/engine/slow_disk.h"
#include "tests/threads_asleep.h"

namespace coracle::admission {
namespace {

class QuotaTest : public testing::Test {
 protected:
  // A quota with a status as its controller writes it: nothing is used yet.
  void limit(const std::string& hard, const std::string& scopes = "") {
    ObjectPtr quota = MUST(fixture.put(
        R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q","namespace":"default"},"spec":{"hard":{)" + hard +
        "}" + scopes + "}}"));
    json::object used, limits = get_object(quota->json(), "spec.hard");
    for (const auto& entry : limits) used[entry.key()] = "0";
    fixture.store(*quota, "status", json::object{{"hard", limits}, {"used", used}});
  }
  std::string used(std::string_view name) {
    const json::value* amount =
        get_object(MUST(fixture.registry().get(kResourceQuota, {"default", "q"}))->json(), "status.used").if_contains(name);
    return amount ? std::string(amount->get_string()) : "";
  }
  static std::string asks(const char* cpu) {
    return R"(,"resources":{"requests":{"cpu":")" + std::string(cpu) + R"("},"limits":{"cpu":"1"}})";
  }
  engine::SlowDisk disk;
  AdmissionFixture fixture{kinds::Ranges(), 0, disk.vfs()};
};

TEST_F(QuotaTest, charges_and_refuses) {
  limit(R"("pods":"3","requests.cpu":"500m","count/pods":"9")");
  MUST(fixture.put(AdmissionFixture::pod("a", asks("200m"))));
  EXPECT_EQ(used("pods"), "1");
  EXPECT_EQ(used("requests.cpu"), "200m");
  EXPECT_EQ(used("count/pods"), "1");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("b", asks("400m"))),
            "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=400m, used: requests.cpu=200m, limited: "
            "requests.cpu=500m");
  EXPECT_EQ(used("pods"), "1") << "what is refused is not charged";
  MUST(fixture.put(AdmissionFixture::pod("b", asks("300m"))));
  MUST(fixture.put(AdmissionFixture::pod("c", asks("0"))));
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("d", asks("100m"))),
            "pods \"d\" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=100m, used: pods=3,requests.cpu=500m, "
            "limited: pods=3,requests.cpu=500m");
}

TEST_F(QuotaTest, what_fails_otherwise_or_is_tried_only_is_not_charged) {
  limit(R"("pods":"3")");
  MUST(fixture.put(AdmissionFixture::pod("a"), "", true));
  EXPECT_EQ(used("pods"), "0");
  MUST(fixture.put(AdmissionFixture::pod("a")));
  EXPECT_EQ(fixture.put(AdmissionFixture::pod("a")).error().code(), Code::already_exists);
  EXPECT_FALSE(fixture.put(AdmissionFixture::pod("b", R"(,"ports":[{"containerPort":0}])")));
  EXPECT_EQ(used("pods"), "1");
}

TEST_F(QuotaTest, wants_to_know_what_containers_need) {
  limit(R"("limits.memory":"1Gi","requests.cpu":"1")");
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("p")),
            "pods \"p\" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c");
}

TEST_F(QuotaTest, waits_for_the_first_count) {
  MUST(fixture.put(
      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q","namespace":"default"},"spec":{"hard":{"pods":"1"}}})"));
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("p")), "admitted") << "no limit is known yet";
  ObjectPtr quota = MUST(fixture.registry().get(kResourceQuota, {"default", "q"}));
  fixture.store(*quota, "status", json::object{{"hard", json::object{{"pods", "1"}}}});
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("r")), "pods \"r\" is forbidden: status unknown for quota: q, resources: pods");
}

TEST_F(QuotaTest, scopes_say_whom_it_counts) {
  limit(
      R"("pods":"1")",
      R"(,"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["system-node-critical"]}]})");
  MUST(fixture.put(AdmissionFixture::pod("a")));
  EXPECT_EQ(used("pods"), "0");
  MUST(fixture.put(AdmissionFixture::pod("b", "", R"(,"priorityClassName":"system-node-critical")")));
  EXPECT_EQ(used("pods"), "1");
  EXPECT_NE(fixture.refusal(AdmissionFixture::pod("c", "", R"(,"priorityClassName":"system-node-critical")"))
                .find("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"),
            std::string::npos);
}

TEST_F(QuotaTest, counts_services_by_type_and_others_by_number) {
  limit(R"("services.nodeports":"1","count/configmaps":"1","secrets":"1")");
  auto service = [](const char* name, const char* type) {
    return R"({"apiVersion":"v1","kind":"Service","metadata":{"name":")" + std::string(name) +
           R"(","namespace":"default"},"spec":{"type":")" + type + R"(","ports":[{"port":80}]}})";
  };
  MUST(fixture.put(service("a", "ClusterIP")));
  MUST(fixture.put(service("b", "NodePort")));
  EXPECT_EQ(used("services.nodeports"), "1");
  EXPECT_NE(fixture.refusal(service("c", "NodePort"))
                .find("services \"c\" is forbidden: exceeded quota: q, requested: services.nodeports=1"),
            std::string::npos);
  auto changed = fixture.try_merge(kService, {"default", "a"}, R"({"spec":{"type":"NodePort"}})");
  ASSERT_FALSE(changed) << "a change of type uses more";
  EXPECT_EQ(changed.error().code(), Code::forbidden);
  MUST(fixture.put(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}})"));
  EXPECT_NE(fixture.refusal(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"default"}})")
                .find("requested: count/configmaps=1"),
            std::string::npos);
}

TEST_F(QuotaTest, two_at_once_cannot_take_one_place) {
  limit(R"("count/configmaps":"10")");
  std::atomic<int> made = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; t++)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 10; i++) {
          json::value body =
              AdmissionFixture::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default"}})");
          coracle::make(body, "metadata.name") = "c" + std::to_string(t) + "-" + std::to_string(i);
          made += fixture.registry().create(kConfigMap, {"default", ""}, body, {}).ok();
        }
      });
  }
  EXPECT_EQ(made, 10);
  EXPECT_EQ(fixture.engine->count(kConfigMap), 10u);
  EXPECT_EQ(used("count/configmaps"), "10");
}

TEST_F(QuotaTest, creates_of_one_namespace_share_commits) {
  limit(R"("pods":"1000")");
  disk.hold_syncs(true);  // until all wait for the first one's commit
  disk.set_delay(std::chrono::milliseconds(100));
  const size_t before = disk.syncs();
  constexpr size_t kWriters = 32;
  {
    std::atomic<size_t> begun = 0;
    std::vector<pid_t> ids(kWriters);
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kWriters; t++)
      threads.emplace_back([&, t] {
        json::value body = AdmissionFixture::parse(AdmissionFixture::pod("p" + std::to_string(t)));
        ids[t] = ::gettid();
        ++begun;
        EXPECT_TRUE(fixture.registry().create(kPod, {"default", ""}, std::move(body), {}));
      });
    while (begun < kWriters) std::this_thread::yield();
    EXPECT_TRUE(come_to_rest(ids));
    disk.hold_syncs(false);
    threads.clear();
  }
  EXPECT_EQ(used("pods"), std::to_string(kWriters));
  EXPECT_LT(disk.syncs() - before, kWriters / 2) << "creates that wait for each other need a sync each";
}

TEST_F(QuotaTest, what_the_disk_refuses_is_not_charged) {
  limit(R"("pods":"2")");
  disk.set_failing(true);
  for (int i = 0; i < 5; i++) EXPECT_EQ(fixture.put(AdmissionFixture::pod("a")).error().code(), Code::internal);
  EXPECT_EQ(used("pods"), "0");
  disk.set_failing(false);
  MUST(fixture.put(AdmissionFixture::pod("a")));
  MUST(fixture.put(AdmissionFixture::pod("b")));
  EXPECT_EQ(used("pods"), "2");
  EXPECT_FALSE(fixture.put(AdmissionFixture::pod("c")));
}

// Creates, failed creates, deletions and recounts at once: in every snapshot, what is there is charged, and no more than allowed.
TEST_F(QuotaTest, usage_is_never_above_its_limit_and_never_lost) {
  constexpr int kPodsMax = 40, kThreads = 8, kEach = 30;
  limit(R"("pods":")" + std::to_string(kPodsMax) + R"(","requests.cpu":"100")");
  auto look = [&](Revision at) {
    engine::ListOptions then;
    then.at = at;
    auto pods = fixture.engine->list(kPod, then), quotas = fixture.engine->list(kResourceQuota, then);
    if (!pods || !quotas) return;  // compacted since
    quota::Amounts amounts = quota::amounts_of(get_object(quotas->items.at(0)->json(), "status.used"));
    EXPECT_LE(Quantity::of_count(int64_t(pods->items.size())), amounts["pods"]) << "at " << at;
    EXPECT_LE(amounts["pods"], Quantity::of_count(kPodsMax)) << "at " << at;
    EXPECT_EQ(amounts["requests.cpu"], amounts["pods"]) << "each asks for one: charged together or not at all, at " << at;
  };
  auto recount = [&] {  // as the controller does
    ObjectPtr quota = MUST(fixture.engine->get(kResourceQuota, {"default", "q"}));
    json::string count(std::to_string(MUST(fixture.engine->list(kPod, {})).items.size()));
    json::value body = AdmissionFixture::with(*quota, "status.used", json::object{{"pods", count}, {"requests.cpu", count}});
    return fixture.engine->write({&kResourceQuota, quota->key(), std::move(body), quota->revision()}, engine::Durability::soft)
        .ok();
  };
  std::atomic<int> made = 0, gone = 0;
  {
    std::jthread counter([&](std::stop_token stop) {
      while (!stop.stop_requested()) recount(), look(fixture.engine->revision());
    });
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; t++)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; i++) {
          std::string name = "p" + std::to_string(t / 2) + "-" + std::to_string(i);  // two threads want the same names
          json::value body = AdmissionFixture::parse(AdmissionFixture::pod(name, asks("1")));
          auto written = fixture.registry().create(kPod, {"default", ""}, std::move(body), {});
          made += written.ok();
          if (written && i % 3 == 0) {
            gone++;
            MUST(fixture.engine->remove(kPod, {"default", name}, std::nullopt, engine::Durability::durable));
          }
        }
      });
    threads.clear();
  }
  while (!recount()) {
  }
  EXPECT_GE(made, kPodsMax);
  EXPECT_EQ(fixture.engine->count(kPod), size_t(made - gone));
  EXPECT_EQ(used("pods"), std::to_string(made - gone));
  EXPECT_EQ(used("requests.cpu"), used("pods"));
}

// A commit of `writes` that is on its way to the disk, decided but not visible, until the thread that began it waits for it.
class SlowCommit {
 public:
  SlowCommit(engine::SlowDisk& disk, engine::Engine& engine, std::vector<engine::Write> writes) {
    disk.hold_syncs(true);
    committing_ = std::jthread([&engine, writes = std::move(writes)]() mutable {
      (void)MUST(engine.write_all(std::move(writes), engine::Durability::durable));
    });
    while (disk.held_syncs() == 0) std::this_thread::yield();
    releasing_ = std::jthread([&disk, beginner = ::gettid()] {
      EXPECT_TRUE(come_to_rest({beginner}));
      disk.hold_syncs(false);
    });
  }

 private:
  std::jthread committing_, releasing_;
};

TEST_F(QuotaTest, one_that_is_deleted_meanwhile_is_not_charged) {
  limit(R"("pods":"1")");
  SlowCommit removal(disk, *fixture.engine, {{&kResourceQuota, {"default", "q"}, std::nullopt, std::nullopt}});
  MUST(fixture.put(AdmissionFixture::pod("a")));
  EXPECT_FALSE(fixture.registry().get(kResourceQuota, {"default", "q"}));
}

TEST_F(QuotaTest, one_that_is_replaced_meanwhile_decides) {
  limit(R"("pods":"1")");
  json::value another = MUST(fixture.registry().get(kResourceQuota, {"default", "q"}))->json();
  coracle::make(another, "metadata.uid") = "another";
  coracle::make(another, "status.hard.pods") = "0";
  SlowCommit replacement(disk, *fixture.engine,
                         {{&kResourceQuota, {"default", "q"}, std::nullopt, std::nullopt},
                          {&kResourceQuota, {"default", "q"}, another, Revision(0)}});
  EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("a")),
            "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0");
}

// Creates a quota after the write has begun, and has it on its way out when the write is admitted.
class AddsAndRemovesQuota : public registry::Guard {
 public:
  AddsAndRemovesQuota(engine::SlowDisk& disk, engine::Engine& engine, json::value quota)
      : disk_(disk), engine_(engine), quota_(std::move(quota)) {}
  Result<void> check(const registry::GuardedWrite&) const override {
    TRY(engine_.write({&kResourceQuota, {"default", "q"}, quota_, Revision(0)}, engine::Durability::durable));
    removal_.emplace(disk_, engine_, std::vector<engine::Write>{{&kResourceQuota, {"default", "q"}, std::nullopt, std::nullopt}});
    return {};
  }
  Result<void> check_create(const Kind&, const Key&, const User&) const override { return {}; }

 private:
  engine::SlowDisk& disk_;
  engine::Engine& engine_;
  const json::value quota_;
  mutable std::optional<SlowCommit> removal_;
};

TEST_F(QuotaTest, one_that_is_gone_is_no_missing_object_for_the_client) {
  limit(R"("count/configmaps":"9")");
  const json::value quota = MUST(fixture.registry().get(kResourceQuota, {"default", "q"}))->json();
  MUST(fixture.engine->remove(kResourceQuota, {"default", "q"}, std::nullopt, engine::Durability::durable));
  AddsAndRemovesQuota guard(disk, *fixture.engine, quota);
  fixture.registry().set_guard(&guard);
  auto made = fixture.put(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}})", "jane");
  fixture.registry().set_guard(nullptr);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::conflict) << "admission saw no quota when the write began, so it is not tried again";
  EXPECT_EQ(made.error().text(), "Operation cannot be fulfilled on configmaps \"c\": quota changed, try again");
  EXPECT_EQ(made.error().details()->kind, "configmaps");
  EXPECT_EQ(made.error().details()->causes.at(0).reason, "QuotaChanged");
  EXPECT_FALSE(fixture.registry().get(kConfigMap, {"default", "c"}));
}

TEST_F(QuotaTest, another_ones_count_in_between_is_no_error) {
  limit(R"("count/configmaps":"1000")");
  std::jthread counter([&](std::stop_token stop) {  // writes as the controller does
    for (int i = 0; !stop.stop_requested(); i++) {
      auto quota = fixture.registry().get(kResourceQuota, {"default", "q"});
      (void)fixture.engine->write(
          {&kResourceQuota,
           {"default", "q"},
           AdmissionFixture::with(**quota, "metadata.annotations", json::object{{"n", std::to_string(i)}}),
           (*quota)->revision()},
          engine::Durability::soft);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int i = 0; i < 50; i++)
    MUST(fixture.put(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c)" + std::to_string(i) +
                     R"(","namespace":"default"}})"));
  counter.request_stop();
  counter.join();
  EXPECT_EQ(used("count/configmaps"), "50");
}

TEST(Usage, of_a_pod) {
  struct Row {
    const char* name;
    const char* pod;
    const char* resource;
    const char* want;
  };
  const Row rows[] = {
      {"side by side",
       R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"100m"}}},{"resources":{"requests":{"cpu":"1"}}}]}})",
       "requests.cpu", "1100m"},
      {"an init container that needs more",
       R"({"spec":{"initContainers":[{"resources":{"requests":{"memory":"2Gi"}}}],"containers":[{"resources":{"requests":{"memory":"1Gi"}}}]}})",
       "memory", "2Gi"},
      {"a sidecar runs along",
       R"({"spec":{"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"3"}}}],"containers":[{"resources":{"requests":{"cpu":"2"}}}]}})",
       "cpu", "4"},
      {"the pod's own word counts",
       R"({"spec":{"resources":{"requests":{"cpu":"5"}},"containers":[{"resources":{"requests":{"cpu":"2"}}}]}})", "cpu", "5"},
      {"what its runtime costs", R"({"spec":{"overhead":{"cpu":"250m"},"containers":[{"resources":{"requests":{"cpu":"1"}}}]}})",
       "cpu", "1250m"},
      {"a device", R"({"spec":{"containers":[{"resources":{"requests":{"example.com/gpu":"2"}}}]}})", "requests.example.com/gpu",
       "2"},
      {"huge pages", R"({"spec":{"containers":[{"resources":{"requests":{"hugepages-2Mi":"4Mi"}}}]}})", "requests.hugepages-2Mi",
       "4Mi"},
      {"one that has ended runs no more", R"({"spec":{"containers":[{}]},"status":{"phase":"Succeeded"}})", "pods", ""},
      {"… and is still there", R"({"spec":{"containers":[{}]},"status":{"phase":"Succeeded"}})", "count/pods", "1"},
      {"one that should be gone",
       R"({"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":30},"spec":{"containers":[{}]}})",
       "pods", ""},
  };
  for (const Row& row : rows) {
    quota::Amounts usage = quota::usage_of(kPod, MUST(parse_json(row.pod)), WallTime(std::chrono::seconds(1'700'000'000)));
    auto found = usage.find(row.resource);
    EXPECT_EQ(found == usage.end() ? "" : found->second.text(), row.want) << row.name;
  }
}

TEST(Usage, scopes_of_pods) {
  struct Row {
    const char* scope;
    const char* pod;
    bool in;
  };
  const Row rows[] = {
      {"Terminating", R"({"spec":{"activeDeadlineSeconds":5}})", true},
      {"NotTerminating", R"({"spec":{}})", true},
      {"BestEffort", R"({"spec":{"containers":[{}]}})", true},
      {"BestEffort", R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}})", false},
      {"NotBestEffort", R"({"spec":{"containers":[{"resources":{"requests":{"memory":"1"}}}]}})", true},
      {"PriorityClass", R"({"spec":{}})", false},
      {"CrossNamespacePodAffinity",
       R"({"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"namespaces":["x"]}]}}}})",
       true},
      {"CrossNamespacePodAffinity",
       R"({"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"x"}]}}}})",
       false},
  };
  for (const Row& row : rows) {
    json::value quota = json::object{{"spec", json::object{{"scopes", json::array{json::string(row.scope)}}}}};
    EXPECT_EQ(quota::in_scopes(kPod, quota, MUST(parse_json(row.pod))), row.in) << row.scope << row.pod;
    EXPECT_FALSE(quota::in_scopes(kConfigMap, quota, MUST(parse_json("{}"))));
  }
}

TEST(Quota, knows_which_limits_a_kind_uses) {
  json::object limits;
  for (const char* name :
       {"pods", "count/pods", "cpu", "requests.memory", "hugepages-2Mi", "requests.hugepages-2Mi", "requests.example.com/gpu",
        "example.com/gpu", "services", "services.nodeports", "count/services", "persistentvolumeclaims", "requests.storage",
        "count/persistentvolumeclaims", "fast.storageclass.storage.k8s.io/requests.storage", "configmaps", "count/configmaps",
        "count/deployments.apps", "count/widgets.example.com"})
    limits[name] = "1";
  const std::pair<const Kind&, std::vector<std::string>> uses[] = {
      {kPod,
       {"count/pods", "cpu", "hugepages-2Mi", "pods", "requests.example.com/gpu", "requests.hugepages-2Mi", "requests.memory"}},
      {kService, {"count/services", "services", "services.nodeports"}},
      {kPersistentVolumeClaim,
       {"count/persistentvolumeclaims", "fast.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims",
        "requests.storage"}},
      {kConfigMap, {"configmaps", "count/configmaps"}},
      {kDeployment, {"count/deployments.apps"}},
      {kServiceAccount, {}}};
  for (const auto& [kind, names] : uses) EXPECT_EQ(quota::tracked(kind, limits), names) << kind.resource;
}

TEST(Quota, compares_amounts_and_not_their_texts) {
  const json::object one{{"cpu", "1"}, {"pods", 3}}, same{{"pods", "3"}, {"cpu", "1000m"}};
  EXPECT_TRUE(quota::same_amounts(one, same));
  EXPECT_FALSE(quota::same_amounts(one, {{"cpu", "1"}}));
  EXPECT_FALSE(quota::same_amounts(one, {{"cpu", "1"}, {"memory", "3"}}));
  EXPECT_FALSE(quota::same_amounts(one, {{"cpu", "2"}, {"pods", "3"}}));
  EXPECT_TRUE(quota::same_amounts({}, {}));
}

}  // namespace
}  // namespace coracle::admission
