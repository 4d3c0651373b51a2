// SPDX-License-Identifier: Apache-2.0
// Filters and scores as tables: a pod, a node, what is there already, and what is decided.
#include "daemon/scheduler/decide.h"

#include <gtest/gtest.h>

#include "daemon/scheduler/affinity.h"

namespace coracle::scheduler {
namespace {

ObjectPtr node(const std::string& name, const std::string& spec = "{}", const std::string& labels = "{}",
               const std::string& allocatable = R"({"cpu":"4","memory":"4Gi","pods":"10"})",
               const std::string& images = "[]") {
  return MUST(Object::make(
      kNode, MUST(parse_json(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + name + R"(","labels":)" +
                             labels + R"(},"spec":)" + spec + R"(,"status":{"allocatable":)" + allocatable +
                             R"(,"images":)" + images + "}}"))));
}

ObjectPtr pod(const std::string& name, const std::string& spec, const std::string& labels = "{}",
              const std::string& ns = "default") {
  return MUST(Object::make(kPod, MUST(parse_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                                                 R"(","namespace":")" + ns + R"(","uid":"uid-)" + ns + name +
                                                 R"(","labels":)" + labels + R"(},"spec":)" + spec + "}"))));
}

std::string asks(const std::string& cpu, const std::string& memory) {
  return R"({"containers":[{"name":"c","resources":{"requests":{"cpu":")" + cpu + R"(","memory":")" + memory +
         R"("}}}]})";
}

std::string reason(const ObjectPtr& pod, const Cluster& cluster, const std::string& node = "n1") {
  Verdict verdict = filter(*pod, cluster.nodes().at(node), cluster, [](std::string_view ns) {
    return json::object{{"team", ns == "other" ? "b" : "a"}};
  });
  std::string out;
  for (const std::string& part : verdict.reasons) out += (out.empty() ? "" : "; ") + part;
  return out;
}

TEST(Requests, are_the_larger_of_running_and_starting) {
  struct Row {
    const char* name;
    const char* spec;
    int64_t cpu;
  };
  for (
      const Row& row : {
          Row{"sum",
              R"({"containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m"}}}]})",
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
          Row{"pod level",
              R"({"resources":{"requests":{"cpu":"3"}},"containers":[{"resources":{"requests":{"cpu":"1"}}}]})", 3000},
      })
    EXPECT_EQ(requests_of(view::Pod(*pod("p", row.spec))).get("cpu"), row.cpu) << row.name;
}

TEST(Cluster, adds_up_and_takes_away) {
  Cluster cluster;
  cluster.put_node(node("n1"));
  cluster.put_pod(pod("a", asks("1", "1Gi")), "n1");
  cluster.put_pod(pod("b", asks("500m", "1Gi")), "n1");
  EXPECT_EQ(cluster.nodes().at("n1").requested.get("cpu"), 1500);
  cluster.put_pod(pod("a", asks("2", "1Gi")), "n1");  // the same pod, resized
  EXPECT_EQ(cluster.nodes().at("n1").requested.get("cpu"), 2500);
  EXPECT_TRUE(cluster.remove_pod("uid-defaulta"));
  EXPECT_FALSE(cluster.remove_pod("uid-defaulta"));
  EXPECT_EQ(cluster.nodes().at("n1").requested.get("cpu"), 500);
  cluster.remove_node("n1");
  EXPECT_EQ(cluster.nodes().size(), 1u);  // a pod is still bound to it
  cluster.remove_pod("uid-defaultb");
  EXPECT_TRUE(cluster.nodes().empty());
}

TEST(Filter, tells_why_a_node_does_not_fit) {
  const std::string zoned = R"({"zone":"z1","disk":"ssd","cores":"8"})";
  auto needs = [](const std::string& affinity) { return R"({"affinity":{)" + affinity + "}}"; };
  auto node_affinity = [&](const std::string& terms) {
    return needs(R"("nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)" + terms +
                 "]}}");
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
           Row{"cordoned, tolerated",
               R"({"tolerations":[{"key":"node.kubernetes.io/unschedulable","operator":"Exists"}]})",
               R"({"unschedulable":true})", ""},
           Row{"taint", "{}", tainted, "node(s) had untolerated taint {gpu: yes}"},
           Row{"taint, equal",
               R"({"tolerations":[{"key":"gpu","operator":"Equal","value":"yes","effect":"NoSchedule"}]})", tainted,
               ""},
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
           Row{"any term",
               node_affinity(expression("cores", "Lt", R"(["4"])") + "," + expression("disk", "Exists", "[]")), "{}",
               ""},
           Row{"empty term", node_affinity("{}"), "{}", no_match},
           Row{"by name", node_affinity(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]})"),
               "{}", ""},
           Row{"other name",
               node_affinity(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n2"]}]})"), "{}",
               no_match},
       }) {
    Cluster cluster;
    cluster.put_node(node("n1", row.node, zoned));
    EXPECT_EQ(reason(pod("p", row.pod), cluster), row.want) << row.name;
  }
}

TEST(Filter, counts_what_is_there) {
  Cluster cluster;
  cluster.put_node(node("n1", "{}", "{}", R"({"cpu":"2","memory":"1Gi","pods":"2"})"));
  cluster.put_pod(
      pod("a",
          R"({"containers":[{"ports":[{"containerPort":80,"hostPort":80,"protocol":"TCP"}],"resources":{"requests":{"cpu":"1500m"}}}]})"),
      "n1");
  EXPECT_EQ(reason(pod("p", asks("500m", "1Mi")), cluster), "");
  EXPECT_EQ(reason(pod("p", asks("600m", "1Mi")), cluster), "Insufficient cpu");
  const std::string taken = "node(s) didn't have free ports for the requested pod ports";
  EXPECT_EQ(reason(pod("p", R"({"containers":[{"ports":[{"hostPort":80,"protocol":"TCP"}]}]})"), cluster), taken);
  EXPECT_EQ(
      reason(pod("p", R"({"containers":[{"ports":[{"hostPort":80,"hostIP":"10.0.0.1","protocol":"TCP"}]}]})"), cluster),
      taken);
  EXPECT_EQ(reason(pod("p", R"({"containers":[{"ports":[{"hostPort":80,"protocol":"UDP"}]}]})"), cluster), "");
  cluster.put_pod(pod("b", "{}"), "n1");
  EXPECT_EQ(reason(pod("p", "{}"), cluster), "Too many pods");
}

std::string company(const std::string& kind, const std::string& selector, const std::string& more = "") {
  return R"({"affinity":{")" + kind +
         R"(":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":)" + selector +
         more + "}]}}}";
}

TEST(PodAffinity, keeps_together_and_apart) {
  const std::string web = R"({"matchLabels":{"app":"web"}})", none = R"({"matchLabels":{"app":"none"}})";
  Cluster cluster;
  cluster.put_node(node("n1", "{}", R"({"zone":"z1"})"));
  cluster.put_node(node("n2", "{}", R"({"zone":"z2"})"));
  cluster.put_node(node("n3", "{}", R"({"zone":"z1"})"));
  cluster.put_node(node("bare"));
  cluster.put_pod(pod("web", "{}", R"({"app":"web"})"), "n1");
  cluster.put_pod(pod("shy", company("podAntiAffinity", R"({"matchLabels":{"app":"loud"}})"), R"({"app":"shy"})"),
                  "n2");
  const std::string far = "node(s) didn't match pod affinity rules",
                    near = "node(s) didn't match pod anti-affinity rules";
  auto with_web = pod("p", company("podAffinity", web));
  EXPECT_EQ(reason(with_web, cluster, "n1"), "");
  EXPECT_EQ(reason(with_web, cluster, "n3"), "");  // the same zone
  EXPECT_EQ(reason(with_web, cluster, "n2"), far);
  EXPECT_EQ(reason(with_web, cluster, "bare"), far);
  auto without_web = pod("p", company("podAntiAffinity", web));
  EXPECT_EQ(reason(without_web, cluster, "n3"), near);
  EXPECT_EQ(reason(without_web, cluster, "n2"), "");
  EXPECT_EQ(reason(pod("p", "{}", R"({"app":"loud"})"), cluster, "n2"),
            "node(s) didn't satisfy existing pods anti-affinity rules");
  EXPECT_EQ(reason(pod("p", "{}", R"({"app":"loud"})"), cluster, "n1"), "");
  // The first of a kind that wants its own kind may go anywhere that has the domain.
  auto first = pod("p", company("podAffinity", none), R"({"app":"none"})");
  EXPECT_EQ(reason(first, cluster, "n1"), "");
  EXPECT_EQ(reason(first, cluster, "bare"), far);
  EXPECT_EQ(reason(pod("p", company("podAffinity", none)), cluster, "n1"), far);
  // Namespaces: one's own, the named, the selected.
  EXPECT_EQ(reason(pod("p", company("podAffinity", web), "{}", "other"), cluster, "n1"), far);
  EXPECT_EQ(reason(pod("p", company("podAffinity", web, R"(,"namespaces":["default"])"), "{}", "other"), cluster, "n1"),
            "");
  EXPECT_EQ(reason(pod("p", company("podAffinity", web, R"(,"namespaceSelector":{"matchLabels":{"team":"a"}})"), "{}",
                       "other"),
                   cluster, "n1"),
            "");
  EXPECT_EQ(reason(pod("p", company("podAffinity", web, R"(,"namespaceSelector":{"matchLabels":{"team":"b"}})"), "{}",
                       "other"),
                   cluster, "n1"),
            far);
}

TEST(Spread, keeps_domains_level) {
  auto spread = [](const std::string& more = "") {
    return R"({"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule",
      "labelSelector":{"matchLabels":{"app":"web"}})" +
           more + "}]}";
  };
  const std::string labels = R"({"app":"web"})", skewed = "node(s) didn't match pod topology spread constraints";
  Cluster cluster;
  cluster.put_node(node("n1", "{}", R"({"zone":"z1"})"));
  cluster.put_node(node("bare"));
  cluster.put_pod(pod("a", "{}", labels), "n1");
  EXPECT_EQ(reason(pod("p", spread(), labels), cluster, "n1"), "");  // one domain is level with itself
  EXPECT_EQ(reason(pod("p", spread(), labels), cluster, "bare"), skewed + " (missing required label)");
  EXPECT_EQ(reason(pod("p", spread(R"(,"minDomains":2)"), labels), cluster, "n1"), skewed);
  cluster.put_node(node("n2", "{}", R"({"zone":"z2"})"));
  EXPECT_EQ(reason(pod("p", spread(), labels), cluster, "n1"), skewed);
  EXPECT_EQ(reason(pod("p", spread(), labels), cluster, "n2"), "");
}

TEST(Decide, explains_as_kubernetes_does) {
  Cluster cluster;
  EXPECT_EQ(decide(*pod("p", "{}"), cluster, {}).message, "no nodes available to schedule pods");
  cluster.put_node(node("n1"));
  EXPECT_EQ(decide(*pod("p", "{}"), cluster, {}).node, "n1");
  EXPECT_EQ(decide(*pod("p", asks("9", "1Gi")), cluster, {}).message,
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not "
            "helpful for "
            "scheduling.");
  cluster.put_pod(pod("a", asks("3", "1Gi")), "n1");
  cluster.put_node(node("n2", R"({"unschedulable":true})"));
  EXPECT_EQ(decide(*pod("p", asks("2", "1Gi")), cluster, {}).message,
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. preemption: 0/2 nodes are "
            "available: 1 No "
            "preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.");
}

TEST(Decide, prefers_the_better_node) {
  Cluster cluster;
  cluster.put_node(node("busy"));
  cluster.put_node(node("free"));
  cluster.put_pod(pod("a", asks("3", "3Gi")), "busy");
  EXPECT_EQ(decide(*pod("p", asks("500m", "512Mi")), cluster, {}).node, "free");
  cluster.put_node(node("free", R"({"taints":[{"key":"a","effect":"PreferNoSchedule"}]})"));
  EXPECT_EQ(decide(*pod("p", asks("500m", "512Mi")), cluster, {}).node, "busy");
  auto wanted = pod("p", R"({"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,
    "preference":{"matchExpressions":[{"key":"disk","operator":"In","values":["ssd"]}]}}]}}})");
  cluster.put_node(node("free"));
  cluster.put_node(node("busy", "{}", R"({"disk":"ssd"})"));
  EXPECT_EQ(decide(*wanted, cluster, {}).node, "busy");
}

TEST(Score, of_one_node) {
  Cluster cluster;
  cluster.put_node(
      node("n1", "{}", "{}", R"({"cpu":"4","memory":"4Gi"})", R"([{"names":["big:1"],"sizeBytes":1048576000}])"));
  const NodeInfo& info = cluster.nodes().at("n1");
  EXPECT_EQ(least_allocated(*pod("p", asks("2", "1Gi")), info), 62);
  EXPECT_EQ(balanced_allocation(*pod("p", asks("2", "2Gi")), info), 100);
  EXPECT_EQ(balanced_allocation(*pod("p", asks("4", "2Gi")), info), 75);
  EXPECT_EQ(image_locality(*pod("p", R"({"containers":[{"image":"big:1"}]})"), info), 100);
  EXPECT_EQ(image_locality(*pod("p", R"({"containers":[{"image":"absent"}]})"), info), 0);
}

}  // namespace
}  // namespace coracle::scheduler
