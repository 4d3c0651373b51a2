// SPDX-License-Identifier: Apache-2.0
// Filters and scores as tables: a pod, a node, the existing pods, and the decision.
#include "daemon/scheduler/decide.h"

#include <gtest/gtest.h>

#include "tests/daemon/scheduler/scheduler_fixture.h"

namespace coracle::scheduler {
namespace {

TEST(Requests, are_the_larger_of_running_and_starting) {
  struct Row {
    const char* name;
    const char* spec;
    int64_t cpu;
  };
  for (
      const Row& row : {
          Row{"sum", R"({"containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m"}}}]})",
              1500},
          Row{"init larger",
              R"({"initContainers":[{"resources":{"requests":{"cpu":"2"}}}],"containers":[{"resources":{"requests":{"cpu":"1"}}}]})",
              2000},
          Row{"init smaller",
              R"({"initContainers":[{"resources":{"requests":{"cpu":"1"}}}],"containers":[{"resources":{"requests":{"cpu":"2"}}}]})",
              2000},
          Row{"sidecar",
              R"({"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"3"}}}],
               "containers":[{"resources":{"requests":{"cpu":"2"}}}]})",
              4000},
          Row{"overhead", R"({"overhead":{"cpu":"250m"},"containers":[{"resources":{"requests":{"cpu":"1"}}}]})", 1250},
          Row{"pod level", R"({"resources":{"requests":{"cpu":"3"}},"containers":[{"resources":{"requests":{"cpu":"1"}}}]})",
              3000},
      })
    EXPECT_EQ(requests_of(view::Pod(*pod("p", row.spec))).exact.get("cpu"), row.cpu) << row.name;
}

TEST(Cluster, adds_up_and_takes_away) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("n1"));
  fixture.place(pod("a", asks("1", "1Gi")), "n1");
  fixture.place(pod("b", asks("500m", "1Gi")), "n1");
  EXPECT_EQ(fixture.cluster.node("n1")->requested.get("cpu"), 1500);
  fixture.place(pod("a", asks("2", "1Gi")), "n1");  // the same pod after a resize
  EXPECT_EQ(fixture.cluster.node("n1")->requested.get("cpu"), 2500);
  EXPECT_TRUE(fixture.cluster.remove_pod("uid-defaulta"));
  EXPECT_FALSE(fixture.cluster.remove_pod("uid-defaulta"));
  EXPECT_EQ(fixture.cluster.node("n1")->requested.get("cpu"), 500);
  fixture.cluster.remove_node("n1");
  EXPECT_TRUE(fixture.cluster.nodes().empty());
  EXPECT_EQ(fixture.cluster.node_of("uid-defaultb"), "n1");  // a pod is still bound to it
  fixture.cluster.remove_pod("uid-defaultb");
  EXPECT_EQ(fixture.cluster.pods(), 0u);
}

std::string avoids(const std::string& app) {
  return R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone",)"
         R"("labelSelector":{"matchLabels":{"app":")" +
         app + R"("}}}]}}})";
}

// Pods bound to nonexistent nodes are counted for no node; when a node comes back, its pods count again.
TEST(Cluster, pods_of_a_node_that_is_not_there_count_once_it_is) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("n1", "{}", R"({"zone":"a"})"));
  for (int i = 0; i < 1000; ++i) {
    std::string name = std::to_string(i);
    fixture.place(pod("p" + name, avoids("web"), R"({"app":"db"})"), "ghost" + name);
  }
  EXPECT_EQ(fixture.cluster.slots(), 1u);
  EXPECT_EQ(fixture.cluster.pods(), 1000u);
  EXPECT_EQ(fixture.cluster.node_of("uid-defaultp7"), "ghost7");
  EXPECT_EQ(fixture.reason(pod("x", "{}", R"({"app":"web"})")), "");
  EXPECT_EQ(fixture.reason(pod("y", avoids("db"))), "");
  for (int passes = 0; passes < 2; ++passes) {
    fixture.cluster.put_node(node("ghost7", "{}", R"({"zone":"a"})"));
    EXPECT_EQ(fixture.cluster.node("ghost7")->pods.size(), 1u);
    EXPECT_EQ(fixture.reason(pod("x", "{}", R"({"app":"web"})")), "node(s) didn't satisfy existing pods anti-affinity rules");
    EXPECT_EQ(fixture.reason(pod("y", avoids("db"))), "node(s) didn't match pod anti-affinity rules");
    fixture.cluster.remove_node("ghost7");
    EXPECT_EQ(fixture.reason(pod("x", "{}", R"({"app":"web"})")), "");
    EXPECT_EQ(fixture.reason(pod("y", avoids("db"))), "");
    EXPECT_EQ(fixture.cluster.node_of("uid-defaultp7"), "ghost7");
  }
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(fixture.cluster.remove_pod("uid-defaultp" + std::to_string(i)));
  EXPECT_EQ(fixture.cluster.pods(), 0u);
}

// Thousands of terms and thousands of pods with different labels.
TEST(Cluster, what_terms_know_of_groups_is_bounded) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("n1", "{}", R"({"zone":"a"})"));
  std::string terms;
  for (int i = 0; i < 4000; ++i)
    terms += (i ? "," : "") + (R"({"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"x)" + std::to_string(i) + "\"}}}");
  fixture.place(
      pod("many", R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)" + terms + "]}}}"),
      "n1");
  std::vector<PodInfoPtr> kept;
  size_t meant = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string number = std::to_string(i);
    kept.push_back(fixture.cluster.read(*pod("p" + number, "{}", R"({"app":"x)" + number + "\"}")));
    fixture.cluster.for_each_held(TermKind::anti_affinity,
                                  [&](HeldTerm& held) { meant += fixture.cluster.means(held, *kept.back()->group); });
  }
  EXPECT_EQ(meant, 4000u);
  EXPECT_LE(fixture.cluster.memo_bytes(), kMemoBytesMax);
  EXPECT_GT(fixture.cluster.memo_bytes(), kMemoBytesMax / 2);
}

TEST(Filter, tells_why_a_node_does_not_fit) {
  const std::string zoned = R"({"zone":"z1","disk":"ssd","cores":"8"})";
  auto needs = [](const std::string& affinity) { return R"({"affinity":{)" + affinity + "}}"; };
  auto node_affinity = [&](const std::string& terms) {
    return needs(R"("nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)" + terms + "]}}");
  };
  auto expression = [](const std::string& key, const std::string& op, const std::string& values) {
    return R"({"matchExpressions":[{"key":")" + key + R"(","operator":")" + op + R"(","values":)" + values + "}]}";
  };
  const std::string no_match = "node(s) didn't match Pod's node affinity/selector";
  const std::string tainted = R"({"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]})";
  struct Row {
    std::string name, pod, node, want;
  };
  for (const Row& row : {
           Row{"fits", asks("1", "1Gi"), "{}", ""},
           Row{"cpu", asks("5", "1Gi"), "{}", "Insufficient cpu"},
           Row{"both", asks("5", "5Gi"), "{}", "Insufficient cpu; Insufficient memory"},
           Row{"extended", R"({"containers":[{"resources":{"requests":{"example.com/gpu":"1"}}}]})", "{}",
               "Insufficient example.com/gpu"},
           Row{"cordoned", "{}", R"({"unschedulable":true})", "node(s) were unschedulable"},
           Row{"cordoned, tolerated", R"({"tolerations":[{"key":"node.kubernetes.io/unschedulable","operator":"Exists"}]})",
               R"({"unschedulable":true})", ""},
           Row{"taint", "{}", tainted, "node(s) had untolerated taint {gpu: yes}"},
           Row{"taint, equal", R"({"tolerations":[{"key":"gpu","operator":"Equal","value":"yes","effect":"NoSchedule"}]})",
               tainted, ""},
           Row{"taint, other value", R"({"tolerations":[{"key":"gpu","value":"no"}]})", tainted,
               "node(s) had untolerated taint {gpu: yes}"},
           Row{"taint, everything", R"({"tolerations":[{"operator":"Exists"}]})", tainted, ""},
           Row{"soft taint", "{}", R"({"taints":[{"key":"a","effect":"PreferNoSchedule"}]})", ""},
           Row{"selector", R"({"nodeSelector":{"disk":"ssd"}})", "{}", ""},
           Row{"wrong selector", R"({"nodeSelector":{"disk":"hdd"}})", "{}", no_match},
           Row{"In", node_affinity(expression("zone", "In", R"(["z0","z1"])")), "{}", ""},
           Row{"NotIn", node_affinity(expression("zone", "NotIn", R"(["z1"])")), "{}", no_match},
           Row{"NotIn, absent", node_affinity(expression("rack", "NotIn", R"(["r"])")), "{}", ""},
           Row{"Exists", node_affinity(expression("rack", "Exists", "[]")), "{}", no_match},
           Row{"DoesNotExist", node_affinity(expression("rack", "DoesNotExist", "[]")), "{}", ""},
           Row{"Gt", node_affinity(expression("cores", "Gt", R"(["4"])")), "{}", ""},
           Row{"Lt", node_affinity(expression("cores", "Lt", R"(["4"])")), "{}", no_match},
           Row{"any term", node_affinity(expression("cores", "Lt", R"(["4"])") + "," + expression("disk", "Exists", "[]")), "{}",
               ""},
           Row{"empty term", node_affinity("{}"), "{}", no_match},
           Row{"by name", node_affinity(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]})"), "{}",
               ""},
           Row{"other name", node_affinity(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n2"]}]})"), "{}",
               no_match},
       }) {
    SchedulerFixture fixture;
    fixture.cluster.put_node(node("n1", row.node, zoned));
    EXPECT_EQ(fixture.reason(pod("p", row.pod)), row.want) << row.name;
  }
}

TEST(Filter, counts_what_is_there) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("n1", "{}", "{}", R"({"cpu":"2","memory":"1Gi","pods":"2"})"));
  fixture.place(
      pod("a",
          R"({"containers":[{"ports":[{"containerPort":80,"hostPort":80,"protocol":"TCP"}],"resources":{"requests":{"cpu":"1500m"}}}]})"),
      "n1");
  EXPECT_EQ(fixture.reason(pod("p", asks("500m", "1Mi"))), "");
  EXPECT_EQ(fixture.reason(pod("p", asks("600m", "1Mi"))), "Insufficient cpu");
  const std::string taken = "node(s) didn't have free ports for the requested pod ports";
  EXPECT_EQ(fixture.reason(pod("p", R"({"containers":[{"ports":[{"hostPort":80,"protocol":"TCP"}]}]})")), taken);
  EXPECT_EQ(fixture.reason(pod("p", R"({"containers":[{"ports":[{"hostPort":80,"hostIP":"10.0.0.1","protocol":"TCP"}]}]})")),
            taken);
  EXPECT_EQ(fixture.reason(pod("p", R"({"containers":[{"ports":[{"hostPort":80,"protocol":"UDP"}]}]})")), "");
  fixture.place(pod("b", "{}"), "n1");
  EXPECT_EQ(fixture.reason(pod("p", "{}")), "Too many pods");
}

std::string company(const std::string& kind, const std::string& selector, const std::string& more = "") {
  return R"({"affinity":{")" + kind +
         R"(":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":)" + selector + more +
         "}]}}}";
}

TEST(PodAffinity, keeps_together_and_apart) {
  const std::string web = R"({"matchLabels":{"app":"web"}})", none = R"({"matchLabels":{"app":"none"}})";
  SchedulerFixture fixture;
  fixture.cluster.put_namespace("default", {{"team", "a"}});
  fixture.cluster.put_namespace("other", {{"team", "b"}});
  fixture.cluster.put_node(node("n1", "{}", R"({"zone":"z1"})"));
  fixture.cluster.put_node(node("n2", "{}", R"({"zone":"z2"})"));
  fixture.cluster.put_node(node("n3", "{}", R"({"zone":"z1"})"));
  fixture.cluster.put_node(node("bare"));
  fixture.place(pod("web", "{}", R"({"app":"web"})"), "n1");
  fixture.place(pod("shy", company("podAntiAffinity", R"({"matchLabels":{"app":"loud"}})"), R"({"app":"shy"})"), "n2");
  const std::string far = "node(s) didn't match pod affinity rules", near = "node(s) didn't match pod anti-affinity rules";
  auto with_web = pod("p", company("podAffinity", web));
  EXPECT_EQ(fixture.reason(with_web, "n1"), "");
  EXPECT_EQ(fixture.reason(with_web, "n3"), "");  // in the same zone
  EXPECT_EQ(fixture.reason(with_web, "n2"), far);
  EXPECT_EQ(fixture.reason(with_web, "bare"), far);
  auto without_web = pod("p", company("podAntiAffinity", web));
  EXPECT_EQ(fixture.reason(without_web, "n3"), near);
  EXPECT_EQ(fixture.reason(without_web, "n2"), "");
  EXPECT_EQ(fixture.reason(pod("p", "{}", R"({"app":"loud"})"), "n2"),
            "node(s) didn't satisfy existing pods anti-affinity rules");
  EXPECT_EQ(fixture.reason(pod("p", "{}", R"({"app":"loud"})"), "n1"), "");
  // A pod with affinity to its own labels may go to any node with the topology key if it is the first.
  auto first = pod("p", company("podAffinity", none), R"({"app":"none"})");
  EXPECT_EQ(fixture.reason(first, "n1"), "");
  EXPECT_EQ(fixture.reason(first, "bare"), far);
  EXPECT_EQ(fixture.reason(pod("p", company("podAffinity", none)), "n1"), far);
  // Namespaces: the pod's own, those given by name, those selected.
  EXPECT_EQ(fixture.reason(pod("p", company("podAffinity", web), "{}", "other"), "n1"), far);
  EXPECT_EQ(fixture.reason(pod("p", company("podAffinity", web, R"(,"namespaces":["default"])"), "{}", "other"), "n1"), "");
  EXPECT_EQ(
      fixture.reason(pod("p", company("podAffinity", web, R"(,"namespaceSelector":{"matchLabels":{"team":"a"}})"), "{}", "other"),
                     "n1"),
      "");
  EXPECT_EQ(
      fixture.reason(pod("p", company("podAffinity", web, R"(,"namespaceSelector":{"matchLabels":{"team":"b"}})"), "{}", "other"),
                     "n1"),
      far);
}

TEST(Spread, keeps_domains_level) {
  auto spread = [](const std::string& more = "") {
    return R"({"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule",
      "labelSelector":{"matchLabels":{"app":"web"}})" +
           more + "}]}";
  };
  const std::string labels = R"({"app":"web"})", skewed = "node(s) didn't match pod topology spread constraints";
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("n1", "{}", R"({"zone":"z1"})"));
  fixture.cluster.put_node(node("bare"));
  fixture.place(pod("a", "{}", labels), "n1");
  EXPECT_EQ(fixture.reason(pod("p", spread(), labels), "n1"), "");  // a single domain has no skew
  EXPECT_EQ(fixture.reason(pod("p", spread(), labels), "bare"), skewed + " (missing required label)");
  EXPECT_EQ(fixture.reason(pod("p", spread(R"(,"minDomains":2)"), labels), "n1"), skewed);
  fixture.cluster.put_node(node("n2", "{}", R"({"zone":"z2"})"));
  EXPECT_EQ(fixture.reason(pod("p", spread(), labels), "n1"), skewed);
  EXPECT_EQ(fixture.reason(pod("p", spread(), labels), "n2"), "");
}

TEST(Decide, explains_as_kubernetes_does) {
  SchedulerFixture fixture;
  EXPECT_EQ(fixture.decide(pod("p", "{}")).message, "no nodes available to schedule pods");
  fixture.cluster.put_node(node("n1"));
  EXPECT_EQ(fixture.decide(pod("p", "{}")).node, "n1");
  EXPECT_EQ(fixture.decide(pod("p", asks("9", "1Gi"))).message,
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not "
            "helpful for scheduling. node n1: cpu requested 9, free 4 of 4.");
  fixture.place(pod("a", asks("3", "1Gi")), "n1");
  fixture.cluster.put_node(node("n2", R"({"unschedulable":true})"));
  EXPECT_EQ(
      fixture.decide(pod("p", asks("2", "1Gi"))).message,
      "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. preemption: 0/2 nodes are "
      "available: 1 No "
      "preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling. node n1: cpu requested 2, free "
      "1 of 4. node n2: cordoned.");
}

TEST(Decide, prefers_the_better_node) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(node("busy"));
  fixture.cluster.put_node(node("free"));
  fixture.place(pod("a", asks("3", "3Gi")), "busy");
  EXPECT_EQ(fixture.decide(pod("p", asks("500m", "512Mi"))).node, "free");
  fixture.cluster.put_node(node("free", R"({"taints":[{"key":"a","effect":"PreferNoSchedule"}]})"));
  EXPECT_EQ(fixture.decide(pod("p", asks("500m", "512Mi"))).node, "busy");
  auto wanted = pod("p", R"({"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,
    "preference":{"matchExpressions":[{"key":"disk","operator":"In","values":["ssd"]}]}}]}}})");
  fixture.cluster.put_node(node("free"));
  fixture.cluster.put_node(node("busy", "{}", R"({"disk":"ssd"})"));
  EXPECT_EQ(fixture.decide(wanted).node, "busy");
}

TEST(Score, of_one_node) {
  SchedulerFixture fixture;
  fixture.cluster.put_node(
      node("n1", "{}", "{}", R"({"cpu":"4","memory":"4Gi","pods":"9"})", R"([{"names":["big:1"],"sizeBytes":1048576000}])"));
  auto raw = [&](const std::string& spec, const char* plugin) { return fixture.scores(pod("p", spec), plugin)["n1"].raw; };
  EXPECT_EQ(raw(asks("2", "1Gi"), "NodeResourcesFit"), 62);
  EXPECT_EQ(raw("{\"containers\":[{}]}", "NodeResourcesFit"), 96);  // 100m and 200Mi, the defaults for a pod without requests
  EXPECT_EQ(raw(asks("2", "2Gi"), "NodeResourcesBalancedAllocation"), 100);
  EXPECT_EQ(raw(asks("4", "2Gi"), "NodeResourcesBalancedAllocation"), 75);
  EXPECT_EQ(raw(R"({"containers":[{"image":"big:1"}]})", "ImageLocality"), 100);
  EXPECT_EQ(raw(R"({"containers":[{"image":"absent"}]})", "ImageLocality"), 0);
}

}  // namespace
}  // namespace coracle::scheduler
