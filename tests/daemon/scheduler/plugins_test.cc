// SPDX-License-Identifier: Apache-2.0
// Single plugins, for what the oracle does not cover: volumes, arguments, legacy scores, resizes.
#include <gtest/gtest.h>

#include "tests/daemon/scheduler/scheduler_fixture.h"

namespace coracle::scheduler {
namespace {

const std::string kPrefix = "profiles: [{pluginConfig: [{name: ";

std::string with_claim(const std::string& claim) {
  return R"({"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":")" + claim + R"("}}]})";
}

struct Volumes : testing::Test {
  SchedulerFixture fixture;
  Volumes() {
    fixture.cluster.put_node(node("n1", "{}", R"({"topology.kubernetes.io/zone":"z1","kubernetes.io/hostname":"n1"})"));
    put(kStorageClass,
        R"({"metadata":{"name":"waits"},"provisioner":"example.com/disk","volumeBindingMode":"WaitForFirstConsumer"})");
    put(kStorageClass, R"({"metadata":{"name":"at-once"},"provisioner":"example.com/disk","volumeBindingMode":"Immediate"})");
  }
  void put(const Kind& kind, const std::string& text) {
    json::value body = MUST(parse_json(text));
    body.get_object()["apiVersion"] = kind.api_version();
    body.get_object()["kind"] = kind.kind;
    fixture.lister.put(kind, body);
  }
  void claim(const std::string& name, const std::string& spec, const std::string& phase = "Pending",
             const std::string& annotations = "{}") {
    put(kPersistentVolumeClaim, R"({"metadata":{"name":")" + name + R"(","namespace":"default","annotations":)" + annotations +
                                    R"(},"spec":)" + spec + R"(,"status":{"phase":")" + phase + "\"}}");
  }
  void volume(const std::string& name, const std::string& spec, const std::string& labels = "{}") {
    put(kPersistentVolume, R"({"metadata":{"name":")" + name + R"(","labels":)" + labels + R"(},"spec":)" + spec +
                               R"(,"status":{"phase":"Available"}})");
  }
};

TEST_F(Volumes, claims_have_to_be_there_and_bound) {
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "persistentvolumeclaim \"c\" not found");
  claim("c", R"({"storageClassName":"at-once"})");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "pod has unbound immediate PersistentVolumeClaims");
  claim("c", R"({"storageClassName":"waits"})");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "");  // its provisioner will create a volume
  claim("c", R"({"storageClassName":"waits"})", "Pending", R"({"volume.kubernetes.io/selected-node":"elsewhere"})");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "node(s) didn't find available persistent volumes to bind");
  claim("c", R"({"volumeName":"gone"})", "Bound");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))),
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
  claim("c", R"({"volumeName":"gone"})", "Lost");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))),
            "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"gone\"");
}

TEST_F(Volumes, bound_volumes_have_a_place) {
  auto on = [](const char* name) {
    return std::string(
               R"({"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname",)") +
           R"("operator":"In","values":[")" + name + R"("]}]}]}}})";
  };
  claim("c", R"({"volumeName":"v"})", "Bound");
  volume("v", on("n1"));
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "");
  volume("v", on("n2"));
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "node(s) didn't match PersistentVolume's node affinity");
  volume("v", "{}", R"({"topology.kubernetes.io/zone":"z2__z3"})");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "node(s) had no available volume zone");
  volume("v", "{}", R"({"topology.kubernetes.io/zone":"z2__z1"})");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "");
}

TEST_F(Volumes, what_is_kept_for_a_claim_elsewhere_lets_it_have_no_other) {
  put(kStorageClass,
      R"({"metadata":{"name":"by-hand"},"provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"})");
  const std::string offer = R"("storageClassName":"by-hand","capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"])";
  claim("c", R"({"storageClassName":"by-hand","resources":{"requests":{"storage":"1Gi"}},"accessModes":["ReadWriteOnce"]})");
  volume("any", "{" + offer + "}");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "");
  volume("kept", "{" + offer +
                     R"(,"claimRef":{"namespace":"default","name":"c"},"nodeAffinity":{"required":{"nodeSelectorTerms":[
    {"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n2"]}]}]}}})");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "node(s) didn't find available persistent volumes to bind");
}

TEST_F(Volumes, a_class_may_be_of_some_nodes_alone) {
  claim("c", R"({"storageClassName":"zoned"})");
  auto zoned = [&](const std::string& topologies) {
    put(kStorageClass,
        R"({"metadata":{"name":"zoned"},"provisioner":"example.com/disk","volumeBindingMode":"WaitForFirstConsumer",)" +
            std::string(R"("allowedTopologies":)") + topologies + "}");
    return fixture.reason(pod("p", with_claim("c")));
  };
  const std::string none = "node(s) didn't find available persistent volumes to bind";
  auto in = [](const char* zone) {
    return std::string(R"({"matchLabelExpressions":[{"key":"topology.kubernetes.io/zone","values":[")") + zone + R"("]}]})";
  };
  EXPECT_EQ(zoned("[]"), "");
  EXPECT_EQ(zoned("[" + in("z1") + "]"), "");
  EXPECT_EQ(zoned("[" + in("z2") + "]"), none);
  EXPECT_EQ(zoned("[" + in("z2") + "," + in("z1") + "]"), "");
  EXPECT_EQ(zoned("[{}]"), none) << "an empty term matches no node";
}

// Informers go on during a decision. If nothing were written for the claim, the pod would be bound, and wait for it for ever.
TEST_F(Volumes, a_decision_ends_with_what_it_began_with) {
  auto written = [&](const char* gone) {
    claim("c", R"({"storageClassName":"waits","accessModes":["ReadWriteOnce"]})");
    ObjectPtr one = pod("p", with_claim("c"));
    fixture.cluster.begin_decision();
    CycleState cycle(fixture.cluster.read(*one), fixture.cluster, fixture.lister);
    EXPECT_EQ(fixture.framework().pre_filter(cycle).code, Answer::success);
    std::erase_if(fixture.lister.objects, [&](const auto& entry) { return entry.first.first == gone; });
    const NodeInfo& here = *fixture.cluster.node("n1");
    EXPECT_EQ(fixture.framework().why_not(cycle, here).code, Answer::success);
    std::string names;
    for (const Write& write : fixture.framework().before_bind(cycle, here)) names += write.key.name + " ";
    return names;
  };
  EXPECT_EQ(written("storageclasses"), "c ");
  put(kStorageClass,
      R"({"metadata":{"name":"waits"},"provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"})");
  volume("v", R"({"storageClassName":"waits","capacity":{"storage":"5Gi"},"accessModes":["ReadWriteOnce"]})");
  EXPECT_EQ(written("persistentvolumes"), "v ");
}

TEST_F(Volumes, a_driver_that_reports_its_space_has_to_have_it_there) {
  auto capacity = [&](const std::string& name, const std::string& topology, const std::string& fields) {
    put(kCSIStorageCapacity, R"({"metadata":{"name":")" + name + R"(","namespace":"csi"})" +
                                 (topology.empty() ? "" : R"(,"nodeTopology":)" + topology) + "," + fields + "}");
  };
  auto driver = [&](const std::string& spec) {
    put(kCSIDriver, R"({"metadata":{"name":"example.com/disk"},"spec":{)" + spec + "}}");
  };
  const std::string here = R"({"matchLabels":{"topology.kubernetes.io/zone":"z1"}})", ours = R"("storageClassName":"waits")",
                    none = "node(s) did not have enough free storage";
  claim("c", R"({"storageClassName":"waits","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"5Gi"}}})");
  auto reason = [&] { return fixture.reason(pod("p", with_claim("c"))); };
  driver("");
  EXPECT_EQ(reason(), "") << "it does not report its space";
  driver(R"("storageCapacity":true)");
  EXPECT_EQ(reason(), none);
  capacity("one", here, R"("storageClassName":"other","capacity":"9Gi")");
  EXPECT_EQ(reason(), none) << "space for another class";
  capacity("one", here, ours + R"(,"capacity":"4Gi")");
  EXPECT_EQ(reason(), none) << "too little";
  capacity("one", here, ours);
  EXPECT_EQ(reason(), none) << "nobody knows how much";
  capacity("one", "", ours + R"(,"capacity":"9Gi")");
  EXPECT_EQ(reason(), none) << "no node reaches it";
  capacity("one", R"({"matchLabels":{"topology.kubernetes.io/zone":"z2"}})", ours + R"(,"capacity":"9Gi")");
  EXPECT_EQ(reason(), none) << "it is elsewhere";
  capacity("one", here, ours + R"(,"capacity":"9Gi","maximumVolumeSize":"1Gi")");
  EXPECT_EQ(reason(), none) << "in pieces that are too small";
  capacity("two", "{}", ours + R"(,"capacity":"5Gi")");
  EXPECT_EQ(reason(), "") << "all nodes reach the second";
  capacity("two", "{}", ours + R"(,"capacity":"1Gi","maximumVolumeSize":"5Gi")");
  EXPECT_EQ(reason(), "") << "the size of a single volume counts";
  capacity("two", "{}", ours);
  volume("v", R"({"storageClassName":"waits","capacity":{"storage":"5Gi"},"accessModes":["ReadWriteOnce"]})");
  EXPECT_EQ(reason(), "") << "a volume is there already";
  claim("c", R"({"storageClassName":"waits","accessModes":["ReadWriteMany"]})");
  EXPECT_EQ(reason(), "") << "it does not say how much it needs";
}

TEST_F(Volumes, space_that_a_driver_reports_wakes_a_pod_that_waits_for_it) {
  const Plugin* plugin = nullptr;
  for (const Plugin* one : fixture.framework().filters())
    if (one->name() == "VolumeBinding") plugin = one;
  ASSERT_TRUE(plugin);
  PodInfoPtr info = fixture.cluster.read(*pod("p", with_claim("c")));
  for (ClusterEvent::What what : {ClusterEvent::csi_drivers, ClusterEvent::capacities})
    EXPECT_TRUE(plugin->could_help({.what = what}, *info, fixture.cluster));
  EXPECT_FALSE(plugin->could_help({.what = ClusterEvent::namespaces}, *info, fixture.cluster));
}

TEST_F(Volumes, a_claim_where_one_of_the_pods_own_is_to_be_is_not_its) {
  const std::string own = R"({"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]})";
  EXPECT_EQ(fixture.reason(pod("p", own)), "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-v\"");
  claim("p-v", R"({"volumeName":"v"})", "Bound");
  EXPECT_EQ(fixture.reason(pod("p", own)), "PVC default/p-v was not created for pod default/p (pod is not owner)");
  put(kPersistentVolumeClaim,
      R"({"metadata":{"name":"p-v","namespace":"default","ownerReferences":[{"apiVersion":"v1","kind":"Pod",
    "name":"p","controller":true,"uid":")" +
          std::string(pod("p", own)->uid()) + R"("}]},"spec":{"volumeName":"v"},"status":{"phase":"Bound"}})");
  volume("v", "{}");
  EXPECT_EQ(fixture.reason(pod("p", own)), "");
}

TEST_F(Volumes, only_one_pod_has_a_claim_for_one_pod) {
  claim("c", R"({"volumeName":"v","accessModes":["ReadWriteOncePod"]})", "Bound");
  volume("v", "{}");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))), "");
  fixture.place(pod("has-it", with_claim("c")), "n1");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("c"))),
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode");
}

// The claims of all pods are examined once, not for each claim of this pod.
TEST_F(Volumes, many_claims_for_one_pod_are_looked_for_together) {
  constexpr int kMany = 20'000;
  fixture.cluster.put_node(node("n1", "{}", "{}", R"({"pods":"110"})"));
  auto with_claims = [](const std::string& prefix) {
    std::string volumes;
    for (int i = 0; i < kMany; ++i)
      volumes += (i ? "," : "") + (R"({"name":"v","persistentVolumeClaim":{"claimName":")" + prefix + std::to_string(i) + "\"}}");
    return R"({"volumes":[)" + volumes + "]}";
  };
  for (int i = 0; i < kMany; ++i)
    claim("own" + std::to_string(i), R"({"storageClassName":"waits","accessModes":["ReadWriteOncePod"]})");
  PodInfo other = *fixture.cluster.read(*pod("others", with_claims("its")));
  for (int i = 0; i < 50; ++i) {
    other.uid = "uid" + std::to_string(i);
    fixture.cluster.place(std::make_shared<PodInfo>(other), "n1");
  }
  ObjectPtr wants = pod("p", with_claims("own"));
  EXPECT_EQ(fixture.reason(wants), "");
  // The same when another pod is deleted and the hints of all waiting pods run.
  const Plugin* plugin = nullptr;
  for (const Plugin* one : fixture.framework().filters())
    if (one->name() == "VolumeRestrictions") plugin = one;
  ASSERT_TRUE(plugin);
  const ClusterEvent event{.what = ClusterEvent::pod_removed, .pod = &other};
  PodInfoPtr info = fixture.cluster.read(*wants);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(plugin->could_help(event, *info, fixture.cluster));
  claim("its7", R"({"storageClassName":"waits","accessModes":["ReadWriteOncePod"]})");
  ObjectPtr rival = pod("rival", with_claim("its7"));
  EXPECT_NE(fixture.reason(rival), "");
  EXPECT_TRUE(plugin->could_help(event, *fixture.cluster.read(*rival), fixture.cluster));
}

TEST_F(Volumes, disks_that_cannot_be_shared_are_not) {
  auto disk = [](const std::string& kind, const std::string& fields) {
    return R"({"volumes":[{"name":"v",")" + kind + R"(":{)" + fields + "}}]}";
  };
  fixture.place(pod("a", disk("gcePersistentDisk", R"("pdName":"d","readOnly":true)")), "n1");
  fixture.place(pod("b", disk("awsElasticBlockStore", R"("volumeID":"e","readOnly":true)")), "n1");
  EXPECT_EQ(fixture.reason(pod("p", disk("gcePersistentDisk", R"("pdName":"d","readOnly":true)"))), "");
  EXPECT_EQ(fixture.reason(pod("p", disk("gcePersistentDisk", R"("pdName":"d")"))), "node(s) had no available disk");
  EXPECT_EQ(fixture.reason(pod("p", disk("awsElasticBlockStore", R"("volumeID":"e","readOnly":true)"))),
            "node(s) had no available disk");
}

TEST_F(Volumes, a_driver_attaches_only_so_many) {
  put(kCSINode, R"({"metadata":{"name":"n1"},"spec":{"drivers":[{"name":"csi","nodeID":"n1","allocatable":{"count":1}}]}})");
  for (const char* name : {"a", "b"}) {
    claim(std::string("claim-") + name, std::string(R"({"volumeName":")") + name + "\"}", "Bound");
    volume(name, std::string(R"({"csi":{"driver":"csi","volumeHandle":")") + name + "\"}}");
  }
  EXPECT_EQ(fixture.reason(pod("p", with_claim("claim-a"))), "");
  fixture.place(pod("first", with_claim("claim-a")), "n1");
  EXPECT_EQ(fixture.reason(pod("p", with_claim("claim-a"))), "");  // already attached
  EXPECT_EQ(fixture.reason(pod("p", with_claim("claim-b"))), "node(s) exceed max volume count");
}

TEST(Cluster, keeps_no_labels_of_pods_that_are_gone) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("n1"));
  fixture.place(pod("stays", "{}", R"({"app":"web"})"), "n1");
  constexpr int kMany = 2000;
  auto name = [](int i) { return "p" + std::to_string(i); };
  for (int i = 0; i < kMany; ++i) fixture.place(pod(name(i), "{}", R"({"pod":")" + name(i) + "\"}"), "n1");
  fixture.cluster.begin_decision();
  EXPECT_EQ(fixture.cluster.label_groups(), size_t(kMany) + 1);
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(fixture.cluster.remove_pod("uid-default" + name(i)));
    fixture.cluster.note_gone();
  }
  EXPECT_LE(fixture.cluster.label_groups(), size_t(kMany) / 4);
  ASSERT_TRUE(fixture.cluster.placed("uid-defaultstays"));
  EXPECT_EQ(fixture.cluster.placed("uid-defaultstays")->group->labels.at("app"), "web");
}

TEST(NodeAffinityArgs, every_pod_has_the_added_affinity_too) {
  SchedulerFixture fixture(
      kPrefix +
      "NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
      "[{matchExpressions: [{key: team, operator: In, values: [a]}]}]}}}}]}]");
  fixture.cluster.put_node(node("n1"));
  EXPECT_EQ(fixture.reason(pod("p", "{}")), "node(s) didn't match scheduler-enforced node affinity");
  fixture.cluster.put_node(node("n1", "{}", R"({"team":"a"})"));
  EXPECT_EQ(fixture.reason(pod("p", "{}")), "");
}

TEST(NodeResourcesFitArgs, ignored_resources_do_not_count) {
  auto asks_for = [](const char* resource) {
    return pod("p", std::string(R"({"containers":[{"resources":{"requests":{")") + resource + "\":\"1\"}}}]}");
  };
  SchedulerFixture fixture(kPrefix +
                           "NodeResourcesFit, args: {ignoredResources: [a.example/x], ignoredResourceGroups: [b.example]}}]}]");
  fixture.cluster.put_node(node("n1"));
  EXPECT_EQ(fixture.reason(asks_for("a.example/x")), "");
  EXPECT_EQ(fixture.reason(asks_for("b.example/any")), "");
  EXPECT_EQ(fixture.reason(asks_for("a.example/y")), "Insufficient a.example/y");
}

// Scores are cached for pods with the same requests.
TEST(NodeResources, scores_are_of_the_space_there_is_now) {
  SchedulerFixture fixture;
  auto all = [](const char* cpu) { return R"({"pods":"9","memory":"4Gi","cpu":")" + std::string(cpu) + "\"}"; };
  auto raw = [&](const char* plugin) { return fixture.scores(pod("p", asks("1", "1Gi")), plugin)["n1"].raw; };
  auto least = [&] { return raw("NodeResourcesFit"); };
  auto even = [&] { return raw("NodeResourcesBalancedAllocation"); };
  fixture.cluster.put_node(node("n1", "{}", "{}", all("4")));
  EXPECT_EQ(least(), 75);
  EXPECT_EQ(even(), 100);
  fixture.place(pod("other", asks("1", "0")), "n1");
  EXPECT_EQ(least(), 62);
  EXPECT_EQ(even(), 87);
  fixture.cluster.put_node(node("n1", "{}", "{}", all("8")));
  EXPECT_EQ(least(), 75);
  EXPECT_EQ(even(), 100);
  fixture.cluster.remove_pod("uid-defaultother");
  EXPECT_EQ(least(), 81);
  EXPECT_EQ(even(), 93);
  {
    WhatIf what_if(fixture.cluster);
    what_if.place(fixture.cluster.read(*pod("other", asks("3", "3Gi"))), "n1");
    EXPECT_EQ(least(), 25);
  }
  EXPECT_EQ(least(), 81);
  fixture.cluster.remove_node("n1");
  fixture.cluster.put_node(node("n1", "{}", "{}", all("2")));
  EXPECT_EQ(least(), 62);
  EXPECT_EQ(even(), 87);
}

TEST(NodeResources, profiles_with_other_arguments_score_by_their_own) {
  auto fit = [](const char* strategy) {
    return "{name: NodeResourcesFit, args: {scoringStrategy: {" + std::string(strategy) +
           ", resources: [{name: cpu, weight: 1}]}}}";
  };
  auto shape = [&](const char* points) {
    return fit(("type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [" + std::string(points) + "]}").c_str());
  };
  std::string yaml = "profiles:\n";
  const std::vector<std::string> all{fit("type: LeastAllocated"), fit("type: MostAllocated"),
                                     shape("{utilization: 0, score: 0}, {utilization: 100, score: 10}"),
                                     shape("{utilization: 0, score: 10}, {utilization: 100, score: 0}")};
  for (size_t i = 0; i < all.size(); i++)
    yaml += "- {schedulerName: s" + std::to_string(i) + ", pluginConfig: [" + all[i] + "]}\n";
  SchedulerFixture fixture(yaml);
  fixture.cluster.put_node(node("n1"));
  std::vector<int64_t> scores;
  for (const auto& framework : fixture.configuration.profiles) {
    fixture.cluster.begin_decision();
    CycleState cycle(fixture.cluster.read(*pod("p", asks("1", "1Gi"))), fixture.cluster, fixture.lister);
    ASSERT_EQ(framework->pre_filter(cycle).code, Answer::success);
    for (const auto& one : framework->score(cycle, fixture.cluster.nodes()))
      if (one.plugin->name() == "NodeResourcesFit") scores.push_back(one.raw[0]);
  }
  EXPECT_EQ(scores, (std::vector<int64_t>{75, 25, 25, 75}));
}

TEST(InterPodAffinityArgs, say_what_the_affinity_of_others_weighs) {
  const std::string near =
      R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"}}}],
    "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":3,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"}}}}]}}})";
  auto raw = [&](const std::string& args) {
    SchedulerFixture fixture(kPrefix + "InterPodAffinity, args: {" + args + "}}]}]");
    fixture.cluster.put_node(node("n1", "{}", R"({"zone":"z1"})"));
    fixture.cluster.put_node(node("n2", "{}", R"({"zone":"z2"})"));
    fixture.place(pod("a", near), "n1");
    return fixture.scores(pod("p", "{}", R"({"app":"web"})"), "InterPodAffinity")["n1"].raw;
  };
  EXPECT_EQ(raw(""), 4);
  EXPECT_EQ(raw("hardPodAffinityWeight: 10"), 13);
  EXPECT_EQ(raw("hardPodAffinityWeight: 0"), 3);
  EXPECT_EQ(raw("ignorePreferredTermsOfExistingPods: true"), 0);
}

TEST(PodTopologySpreadArgs, constraints_for_pods_that_have_none) {
  SchedulerFixture fixture(
      kPrefix +
      "PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: "
      "DoNotSchedule}]}}]}]");
  fixture.cluster.put_node(node("n1", "{}", R"({"zone":"z1"})"));
  fixture.cluster.put_node(node("n2", "{}", R"({"zone":"z2"})"));
  const std::string owner =
      R"(,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"u","controller":true}])";
  auto of_set = [&](const char* name) { return pod(name, "{}", R"({"app":"web"})", "default", owner); };
  fixture.place(of_set("a"), "n1");
  EXPECT_EQ(fixture.reason(of_set("p"), "n1"), "");  // no selector relates the pods to each other
  fixture.lister.put(kReplicaSet, {{"apiVersion", "apps/v1"},
                                   {"kind", "ReplicaSet"},
                                   {"metadata", {{"name", "rs"}, {"namespace", "default"}}},
                                   {"spec", {{"selector", {{"matchLabels", {{"app", "web"}}}}}}}});
  EXPECT_EQ(fixture.reason(of_set("p"), "n1"), "node(s) didn't match pod topology spread constraints");
  EXPECT_EQ(fixture.reason(of_set("p"), "n2"), "");
}

TEST(SelectorSpread, keeps_the_pods_of_a_service_apart) {
  SchedulerFixture fixture("profiles: [{plugins: {multiPoint: {enabled: [{name: SelectorSpread}]}}}]");
  for (const auto& [name, zone] : {std::pair("n1", "z1"), std::pair("n2", "z1"), std::pair("n3", "z2")})
    fixture.cluster.put_node(node(name, "{}", std::string(R"({"topology.kubernetes.io/zone":")") + zone + "\"}"));
  fixture.lister.put(kService, {{"apiVersion", "v1"},
                                {"kind", "Service"},
                                {"metadata", {{"name", "web"}, {"namespace", "default"}}},
                                {"spec", {{"selector", {{"app", "web"}}}}}});
  fixture.place(pod("a", "{}", R"({"app":"web"})"), "n1");
  auto scores = fixture.scores(pod("p", "{}", R"({"app":"web"})"), "SelectorSpread");
  EXPECT_EQ(scores["n1"], (SchedulerFixture::Score{1, 0}));
  EXPECT_EQ(scores["n2"], (SchedulerFixture::Score{0, 33}));
  EXPECT_EQ(scores["n3"], (SchedulerFixture::Score{0, 100}));
}

TEST(NodePreferAvoidPods, heeds_the_annotation) {
  SchedulerFixture fixture("profiles: [{plugins: {multiPoint: {enabled: [{name: NodePreferAvoidPods, weight: 10000}]}}}]");
  json::value body = node("n1")->json();
  make(body, "metadata.annotations") =
      json::object{{"scheduler.alpha.kubernetes.io/preferAvoidPods",
                    R"({"preferAvoidPods":[{"podSignature":{"podController":{"kind":"ReplicaSet","uid":"u"}}}]})"}};
  fixture.cluster.put_node(MUST(Object::make(kNode, body)));
  auto owned = [](const char* uid) {
    return pod("p", "{}", "{}", "default",
               std::string(R"(,"ownerReferences":[{"kind":"ReplicaSet","name":"rs","controller":true,"uid":")") + uid + "\"}]");
  };
  EXPECT_EQ(fixture.scores(owned("u"), "NodePreferAvoidPods")["n1"].raw, 0);
  EXPECT_EQ(fixture.scores(owned("v"), "NodePreferAvoidPods")["n1"].raw, 100);
}

TEST(Requests, hold_what_a_resize_has_not_given_back_yet) {
  auto asked = [](const std::string& conditions) {
    return requests_of(
               view::Pod(*pod(
                   "p", R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]})", "{}", "default", "",
                   R"({"conditions":[)" + conditions +
                       R"(],"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"2"},"resources":{"requests":{"cpu":"500m"}}}]})")))
        .exact.cpu_milli;
  };
  EXPECT_EQ(asked(""), 2000);
  EXPECT_EQ(asked(R"({"type":"PodResizePending","status":"True","reason":"Infeasible"})"), 2000);
}

// Comparing each status with each container would take minutes.
TEST(Requests, of_very_many_containers_cost_little) {
  constexpr int kContainers = 15'000;
  std::string containers, statuses;
  for (int i = 0; i < kContainers; ++i) {
    std::string name = std::string(i ? "," : "") + R"({"name":"c)" + std::to_string(i) + "\"";
    containers += name + R"(,"resources":{"requests":{"cpu":"1m"}}})";
    statuses += name + R"(,"resources":{"requests":{"cpu":"2m"}}})";
  }
  ObjectPtr large =
      pod("p", R"({"containers":[)" + containers + "]}", "{}", "default", "", R"({"containerStatuses":[)" + statuses + "]}");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(requests_of(view::Pod(*large)).exact.cpu_milli, 2 * kContainers);
}

TEST(Requests, of_init_containers_stand_beside_the_sidecars_before_them) {
  auto init = [](const char* policy, const char* requests) {
    return std::string(R"({"restartPolicy":")") + policy + R"(","resources":{"requests":{)" + requests + "}}}";
  };
  PodRequests sum =
      requests_of(view::Pod(*pod("p", R"({"initContainers":[)" + init("Always", R"("a/x":"1","a/y":"5")") + "," +
                                          init("", R"("a/x":"7","a/z":"2")") + "," + init("Always", R"("a/x":"1")") + "]}")));
  EXPECT_EQ(sum.exact.get("a/x"), 8);
  EXPECT_EQ(sum.exact.get("a/y"), 5);
  EXPECT_EQ(sum.exact.get("a/z"), 2);
}

TEST(DynamicResources, a_pod_with_claims_waits) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("n1"));
  EXPECT_EQ(fixture.reason(pod("p", R"({"resourceClaims":[{"name":"gpu","resourceClaimName":"one"}]})")),
            "cannot allocate all claims: this cluster has no dynamic resource allocation");
  EXPECT_EQ(fixture.reason(pod("p", "{}")), "");
}

TEST(NodePorts, clash_whatever_their_order) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("n1"));
  auto with_ports = [](const std::string& ports) { return R"({"containers":[{"ports":[)" + ports + "]}]}"; };
  fixture.place(pod("a", with_ports(R"({"hostPort":90},{"hostPort":80},{"hostPort":80,"protocol":"UDP"},{"hostPort":70})")),
                "n1");
  EXPECT_EQ(fixture.reason(pod("b", with_ports(R"({"hostPort":100},{"hostPort":75})"))), "");
  for (const char* port :
       {R"({"hostPort":90})", R"({"hostPort":80})", R"({"hostPort":80,"protocol":"UDP"})", R"({"hostPort":70})"})
    EXPECT_EQ(fixture.reason(pod("b", with_ports(R"({"hostPort":100},)" + std::string(port)))),
              "node(s) didn't have free ports for the requested pod ports")
        << port;
}

TEST(NodePorts, clash_at_the_same_address_or_at_all_of_them) {
  auto with_ports = [](const std::vector<std::string>& ips) {
    std::string ports;
    for (const std::string& ip : ips) ports += (ports.empty() ? "" : ",") + (R"({"hostPort":80,"hostIP":")" + ip + "\"}");
    return R"({"containers":[{"ports":[)" + ports + "]}]}";
  };
  struct Row {
    std::vector<std::string> there, wanted;
    bool clash;
  };
  for (const Row& row : {Row{{"10.0.0.1"}, {"10.0.0.2"}, false}, Row{{"10.0.0.1"}, {"10.0.0.1"}, true},
                         Row{{"0.0.0.0"}, {"10.0.0.1"}, true}, Row{{"10.0.0.1"}, {"0.0.0.0"}, true},
                         Row{{"10.0.0.1", "10.0.0.3"}, {"10.0.0.2"}, false}, Row{{"10.0.0.1", "10.0.0.3"}, {"10.0.0.4"}, false},
                         Row{{"10.0.0.1", "10.0.0.3"}, {"10.0.0.3"}, true}, Row{{"10.0.0.2"}, {"10.0.0.1", "10.0.0.3"}, false},
                         Row{{"10.0.0.3"}, {"10.0.0.1", "10.0.0.3"}, true}, Row{{"10.0.0.1", "0.0.0.0"}, {"10.0.0.2"}, true}}) {
    SchedulerFixture fixture;
    fixture.cluster.put_node(node("n1"));
    fixture.place(pod("a", with_ports(row.there)), "n1");
    EXPECT_EQ(!fixture.reason(pod("b", with_ports(row.wanted))).empty(), row.clash)
        << row.there.front() << " there, wanted " << row.wanted.front();
  }
}

}  // namespace
}  // namespace coracle::scheduler
