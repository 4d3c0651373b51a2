// SPDX-License-Identifier: Apache-2.0
// Dependencies between workloads: the annotation's grammar, what counts as available, and cycles.
#include "daemon/startup/dependencies.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "store/object/object.h"

namespace coracle::startup {
namespace {

struct FakeLister : Lister {
  std::map<std::string, ObjectPtr> objects;  // "Kind/name"
  std::set<std::string> endpoints, unready;  // services that have endpoints; pods that are not ready whatever their status
  mutable std::map<std::string, int> asked;  // "pods", "ready", "get Kind/name": number of calls

  void put(const Kind& kind, const std::string& name, std::string_view rest) {
    json::value body = MUST(parse_json(rest));
    make(body, "metadata.name") = name;
    make(body, "metadata.namespace") = "default";
    make(body, "metadata.uid") = name;
    make(body, "apiVersion") = kind.api_version();
    make(body, "kind") = kind.kind;
    objects[std::string(kind.kind) + "/" + name] = MUST(Object::make(kind, std::move(body)));
  }
  void pod(const std::string& name, const std::string& app, bool is_ready, const std::string& metadata = "") {
    put(kPod, name, R"({"metadata":{"labels":{"app":")" + app + R"("})" + metadata + R"(},"status":{"phase":"Running"}})");
    if (!is_ready) unready.insert(name);
    else unready.erase(name);
  }
  const Object& at(const std::string& name) const { return *objects.at(name); }

  ObjectPtr get(const Kind& kind, const Key& key) const override {
    auto found = objects.find(std::string(kind.kind) + "/" + key.name);
    ++asked["get " + std::string(kind.kind) + "/" + key.name];
    return found == objects.end() ? nullptr : found->second;
  }
  std::vector<ObjectPtr> pods(const std::string&) const override {
    std::vector<ObjectPtr> out;
    ++asked["pods"];
    for (const auto& [name, object] : objects)
      if (object->kind() == kPod) out.push_back(object);
    return out;
  }
  bool ready(const Object& pod) const override {
    ++asked["ready"];
    return !unready.contains(pod.name());
  }
  bool has_ready_endpoints(const Key& service) const override { return endpoints.contains(service.name); }
};

std::string waiting(FakeLister& lister, const std::string& after) {
  lister.put(kPod, "waiter", R"({"metadata":{"annotations":{"coracle.io/after":")" + after + R"("}}})");
  std::string out;
  for (const std::string& text : missing(lister.at("Pod/waiter"), lister)) out.append(out.empty() ? "" : ", ").append(text);
  return out;
}

constexpr const char* kAvailable = R"({"spec":{"replicas":2,"selector":{"matchLabels":{"app":"db"}}},
  "status":{"conditions":[{"type":"Available","status":"True"}],"availableReplicas":2}})";

TEST(Annotation, names_kinds_as_kubectl_does) {
  for (const char* text :
       {"deployment/db", "deployments/db", "deploy/db", "Deployment/db", "deployments.apps/db", " deployment/db "}) {
    auto read = parse_after(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ((*read)[0].text(), "deployment/db") << text;
  }
  EXPECT_EQ(MUST(parse_after("sts/a, svc/b,po/c ,ds/d,rc/e,rs/f,job/g")).size(), 7u);
}

TEST(Annotation, what_it_cannot_mean_is_quoted) {
  struct Row {
    const char *text, *why;
  };
  for (const Row& row :
       {Row{"db", "\"db\": must be KIND/NAME"}, Row{"deploymnt/db", "\"deploymnt/db\": cannot wait for this kind"},
        Row{"deployment/", "has no name"}, Row{"deployment/D B", "has no name"}, Row{"svc/a,,svc/b", "empty part"},
        Row{"configmap/a", "cannot wait for this kind"}, Row{"", "empty part"}}) {
    auto read = parse_after(row.text);
    ASSERT_FALSE(read) << row.text;
    EXPECT_NE(read.error().text().find(row.why), std::string::npos) << read.error().text();
  }
  std::string many = "svc/a";
  for (size_t i = 0; i < kDependenciesMax; ++i) many += ",svc/a";
  EXPECT_FALSE(parse_after(many));
}

TEST(Missing, says_what_is_not_there) {
  FakeLister lister;
  EXPECT_EQ(waiting(lister, "deployment/db, service/cache"), "deployment/db: not found, service/cache: not found");
}

TEST(Missing, a_deployment_is_available_when_it_says_so_and_its_pods_are_ready_now) {
  FakeLister lister;
  lister.put(kDeployment, "db", kAvailable);
  EXPECT_EQ(waiting(lister, "deployment/db"), "deployment/db: 0 of 2 pods ready");  // its status is older than the power failure
  lister.pod("db-1", "db", true);
  lister.pod("db-2", "db", false);
  EXPECT_EQ(waiting(lister, "deployment/db"), "deployment/db: 1 of 2 pods ready");
  lister.pod("db-2", "db", true);
  EXPECT_EQ(waiting(lister, "deployment/db"), "");
  lister.put(kDeployment, "db", R"({"spec":{"replicas":2,"selector":{"matchLabels":{"app":"db"}}}})");
  EXPECT_EQ(waiting(lister, "deployment/db"), "deployment/db: not available yet");  // because of minReadySeconds
}

TEST(Missing, a_deployment_may_spare_what_its_strategy_spares_but_never_all) {
  FakeLister lister;
  lister.put(kDeployment, "db", R"({"spec":{"replicas":4,"selector":{"matchLabels":{"app":"db"}},
    "strategy":{"rollingUpdate":{"maxUnavailable":"50%"}}},"status":{"conditions":[{"type":"Available","status":"True"}]}})");
  lister.pod("db-1", "db", true);
  EXPECT_EQ(waiting(lister, "deployment/db"), "deployment/db: 1 of 2 pods ready");
  lister.pod("db-2", "db", true);
  EXPECT_EQ(waiting(lister, "deployment/db"), "");
  lister.put(kDeployment, "all", R"({"spec":{"replicas":1,"selector":{"matchLabels":{"app":"all"}},
    "strategy":{"rollingUpdate":{"maxUnavailable":"100%"}}},"status":{"conditions":[{"type":"Available","status":"True"}]}})");
  EXPECT_EQ(waiting(lister, "deployment/all"), "deployment/all: 0 of 1 pods ready");
}

TEST(Missing, other_sets_by_their_counts) {
  FakeLister lister;
  lister.put(kStatefulSet, "db",
             R"({"spec":{"replicas":1,"selector":{"matchLabels":{"app":"db"}}},"status":{"availableReplicas":1}})");
  lister.put(kDaemonSet, "log",
             R"({"spec":{"selector":{"matchLabels":{"app":"log"}}},"status":{"desiredNumberScheduled":1,"numberAvailable":1}})");
  EXPECT_EQ(waiting(lister, "sts/db,ds/log"), "statefulset/db: 0 of 1 pods ready, daemonset/log: 0 of 1 pods ready");
  lister.pod("db-0", "db", true);
  lister.pod("log-x", "log", true);
  EXPECT_EQ(waiting(lister, "sts/db,ds/log"), "");
}

TEST(Missing, a_spec_that_its_controller_has_not_seen_is_not_available) {
  FakeLister lister;
  lister.put(kStatefulSet, "db", R"({"metadata":{"generation":2},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"db"}}},
    "status":{"observedGeneration":1,"availableReplicas":1}})");
  lister.pod("db-0", "db", true);
  EXPECT_EQ(waiting(lister, "sts/db"), "statefulset/db: not available yet");
}

TEST(Missing, services_pods_and_jobs) {
  FakeLister lister;
  lister.put(kService, "cache", R"({"spec":{"selector":{"app":"cache"}}})");
  EXPECT_EQ(waiting(lister, "service/cache"), "service/cache: no ready endpoints");
  lister.pod("cache-1", "cache", true);
  EXPECT_EQ(waiting(lister, "service/cache"), "");
  lister.put(kService, "outside", R"({"spec":{}})");
  EXPECT_EQ(waiting(lister, "service/outside"), "service/outside: no ready endpoints");
  lister.endpoints.insert("outside");
  EXPECT_EQ(waiting(lister, "service/outside"), "");
  lister.put(kService, "alias", R"({"spec":{"type":"ExternalName"}})");
  EXPECT_EQ(waiting(lister, "service/alias"), "");
  lister.put(kJob, "init", R"({})");
  EXPECT_EQ(waiting(lister, "job/init"), "job/init: not complete");
  lister.put(kJob, "init", R"({"status":{"conditions":[{"type":"Failed","status":"True"}]}})");
  EXPECT_EQ(waiting(lister, "job/init"), "job/init: failed");
  lister.put(kJob, "init", R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})");
  EXPECT_EQ(waiting(lister, "job/init"), "");
  lister.pod("one", "one", false);
  EXPECT_EQ(waiting(lister, "pod/one"), "pod/one: not ready");
  lister.put(kPod, "one", R"({"status":{"phase":"Succeeded"}})");
  EXPECT_EQ(waiting(lister, "pod/one"), "");
}

// For any number of waiting workloads and dependencies, pods are listed once, and each object is read once.
TEST(DependencyCache, finds_out_once_what_many_wait_for) {
  constexpr int kMany = 60;
  FakeLister lister;
  std::string all;
  for (int i = 0; i < kMany; ++i) {
    std::string name = "s" + std::to_string(i);
    lister.put(kService, name, R"({"spec":{"selector":{"app":"none"}}})");
    lister.pod("p" + std::to_string(i), "web", true);
    all += (i ? ",service/" : "service/") + name;
  }
  for (int i = 0; i < kMany; ++i)
    lister.put(kPod, "w" + std::to_string(i), R"({"metadata":{"annotations":{"coracle.io/after":")" + all + R"("}}})");
  DependencyCache cache(lister, "default");
  for (int i = 0; i < kMany; ++i) EXPECT_EQ(cache.missing(lister.at("Pod/w" + std::to_string(i))).size(), size_t(kMany));
  for (int i = 0; i < kMany; ++i) EXPECT_NE(cache.waits_for(lister.at("Pod/w" + std::to_string(i))), "");
  EXPECT_EQ(lister.asked["pods"], 1);
  EXPECT_EQ(lister.asked["ready"], 2 * kMany);
  EXPECT_EQ(lister.asked["get Service/s0"], 2) << "once for what it lacks, once for what it waits for";
  lister.asked.clear();
  EXPECT_NE(waits_for(lister.at("Pod/w0"), lister), "");
  EXPECT_EQ(lister.asked["pods"], 1);
}

struct Cycles : testing::Test {
  FakeLister lister;
  void deployment(const std::string& name, const std::string& after) {
    std::string annotations = after.empty() ? "" : R"("annotations":{"coracle.io/after":")" + after + R"("},)";
    lister.put(kDeployment, name,
               R"({"spec":{"selector":{"matchLabels":{"app":")" + name + R"("}},"template":{"metadata":{)" + annotations +
                   R"("labels":{"app":")" + name + R"("}}}}})");
    lister.put(kReplicaSet, name + "-1",
               R"({"metadata":{"ownerReferences":[{"kind":"Deployment","name":")" + name +
                   R"(","uid":"u","apiVersion":"apps/v1","controller":true}]}})");
    lister.put(kPod, name + "-1-x",
               R"({"metadata":{)" + annotations + R"("labels":{"app":")" + name +
                   R"("},"ownerReferences":[{"kind":"ReplicaSet","name":")" + name +
                   R"(-1","uid":"u","apiVersion":"apps/v1","controller":true}]}})");
  }
  std::string from(const std::string& name) { return cycle(lister.at("Pod/" + name + "-1-x"), lister); }
};

TEST_F(Cycles, are_found_through_templates) {
  deployment("a", "deployment/b");
  deployment("b", "deployment/c");
  deployment("c", "");
  EXPECT_EQ(from("a"), "");
  deployment("c", "deployment/a");
  EXPECT_EQ(from("a"), "deployment/a → deployment/b → deployment/c → deployment/a");
  EXPECT_EQ(from("c"), "deployment/c → deployment/a → deployment/b → deployment/c");
}

TEST_F(Cycles, are_found_through_services) {
  deployment("a", "service/b");
  deployment("b", "deployment/a");
  lister.put(kService, "b", R"({"spec":{"selector":{"app":"b"}}})");
  EXPECT_EQ(from("a"), "deployment/a → service/b → deployment/b → deployment/a");
  lister.unready = {"a-1-x", "b-1-x"};
  EXPECT_NE(waits_for(lister.at("Pod/a-1-x"), lister).find("waits for itself: deployment/a"), std::string::npos);
}

TEST_F(Cycles, of_others_are_not_the_pods_own) {
  deployment("a", "deployment/b");
  deployment("b", "deployment/c");
  deployment("c", "deployment/b");
  EXPECT_EQ(from("a"), "");
  EXPECT_NE(from("b"), "");
}

// Clients write owner references, so two sets may own each other.
TEST_F(Cycles, owners_in_a_circle_end_the_search) {
  lister.put(kService, "b", R"({"spec":{"selector":{"app":"b"}}})");
  for (auto [name, owner] : {std::pair("x", "y"), std::pair("y", "x")})
    lister.put(kReplicaSet, name,
               R"({"metadata":{"ownerReferences":[{"kind":"ReplicaSet","name":")" + std::string(owner) +
                   R"(","uid":"u","apiVersion":"apps/v1","controller":true}]}})");
  lister.put(
      kPod, "b-1",
      R"({"metadata":{"labels":{"app":"b"},"ownerReferences":[{"kind":"ReplicaSet","name":"x","uid":"u","apiVersion":"apps/v1","controller":true}]}})");
  deployment("a", "service/b");
  EXPECT_EQ(from("a"), "");
  EXPECT_EQ(cycle(lister.at("Pod/b-1"), lister), "");
}

TEST_F(Cycles, a_row_of_dependencies_has_an_end) {
  constexpr int kMany = 50'000;
  for (int i = 0; i < kMany; ++i)
    lister.put(kPod, "p" + std::to_string(i),
               R"({"metadata":{"annotations":{"coracle.io/after":"pod/p)" + std::to_string((i + 1) % kMany) + "\"}}}");
  EXPECT_EQ(cycle(lister.at("Pod/p0"), lister), "") << "longer than anybody's way, and no stack holds it";
  lister.unready.insert("p1");
  EXPECT_NE(waits_for(lister.at("Pod/p0"), lister), "");
}

TEST_F(Cycles, waiting_for_oneself) {
  deployment("a", "deployment/a");
  EXPECT_EQ(from("a"), "deployment/a → deployment/a");
}

// The search over Services times pods is limited. The result does not depend on which workload is checked first.
TEST_F(Cycles, through_services_are_not_looked_for_among_very_many_pods) {
  deployment("a", "service/b");
  deployment("b", "deployment/a");
  lister.put(kService, "b", R"({"spec":{"selector":{"app":"b"}}})");
  EXPECT_NE(from("a"), "");
  for (int i = 0; i < 1000; ++i) lister.pod("p" + std::to_string(i), "web" + std::to_string(i), true);
  EXPECT_EQ(from("a"), "");
}

}  // namespace
}  // namespace coracle::startup
