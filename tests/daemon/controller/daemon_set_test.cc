// SPDX-License-Identifier: Apache-2.0
// DaemonSet: one pod on each eligible node; updates within maxUnavailable or maxSurge; failed pods and surplus pods.
#include "daemon/controller/workload/daemon_set.h"

#include "daemon/controller/workload/history.h"
#include "tests/daemon/controller/bench.h"
#include "tests/daemon/controller/sets.h"

namespace coracle::controller {
namespace {

std::string daemon_set_text(std::string_view strategy, std::string_view pod_spec = "", const std::string& image = "a",
                            std::string_view spec = "") {
  return R"({"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"log","namespace":"default","uid":"set-uid","generation":1,
    "annotations":{"deprecated.daemonset.template.generation":"7"}},"spec":{"selector":{"matchLabels":{"app":"log"}},"updateStrategy":)" +
         std::string(strategy) + std::string(spec) +
         R"(,"template":{"metadata":{"labels":{"app":"log"}},"spec":{"containers":[{"name":"c","image":")" + image + R"("}])" +
         std::string(pod_spec) + "}}}}";
}
ObjectPtr daemon_set_of(const std::string& text) { return MUST(Object::make(kDaemonSet, MUST(parse_json(text)))); }
const std::string kOne = rolling_update(R"("maxUnavailable":1,"maxSurge":0)"),
                  kSurge = rolling_update(R"("maxUnavailable":0,"maxSurge":1)");

ObjectPtr node_of(const std::string& name, const std::string& taints = "", const std::string& labels = "") {
  return MUST(Object::make(kNode, MUST(parse_json(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + name +
                                                  R"(","labels":{)" + labels + R"(}},"spec":{"taints":[)" + taints + "]}}"))));
}

// ---- choice of nodes ----

TEST(DaemonSetNodes, are_chosen_by_labels_affinity_name_and_taints) {
  auto taint = [](const char* key, const char* effect) {
    return R"({"key":")" + std::string(key) + R"(","effect":")" + effect + R"("})";
  };
  const char* only_b = R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
      {"matchFields":[{"key":"metadata.name","operator":"In","values":["b"]}]}]}}})";
  struct Row {
    const char* name;
    std::string pod_spec, taints, labels;
    bool should_run, should_continue;
  };
  for (const Row& row : {
           Row{"any", "", "", "", true, true},
           Row{"selected", R"(,"nodeSelector":{"color":"blue"})", "", R"("color":"blue")", true, true},
           Row{"not selected", R"(,"nodeSelector":{"color":"blue"})", "", R"("color":"green")", false, false},
           Row{"another by affinity", only_b, "", "", false, false},
           Row{"by name", R"(,"nodeName":"a")", "", "", true, true},
           Row{"another by name", R"(,"nodeName":"b")", "", "", false, false},
           Row{"none new", "", taint("k", "NoSchedule"), "", false, true},
           Row{"none at all", "", taint("k", "NoExecute"), "", false, false},
           Row{"rather not", "", taint("k", "PreferNoSchedule"), "", true, true},
           Row{"tolerated", R"(,"tolerations":[{"key":"k","operator":"Exists"}])", taint("k", "NoExecute"), "", true, true},
           Row{"unreachable", "", taint("node.kubernetes.io/unreachable", "NoExecute"), "", true, true},
           Row{"not ready", "", taint("node.kubernetes.io/not-ready", "NoExecute"), "", true, true},
           Row{"cordoned", "", taint("node.kubernetes.io/unschedulable", "NoSchedule"), "", true, true},
           Row{"full disk", "", taint("node.kubernetes.io/disk-pressure", "NoSchedule"), "", true, true},
           Row{"no network", "", taint("node.kubernetes.io/network-unavailable", "NoSchedule"), "", false, true},
           Row{"no network needed", R"(,"hostNetwork":true)", taint("node.kubernetes.io/network-unavailable", "NoSchedule"), "",
               true, true},
       }) {
    NodeFit got = fit(*daemon_set_of(daemon_set_text(kOne, row.pod_spec)), *node_of("a", row.taints, row.labels));
    EXPECT_EQ(got.should_run, row.should_run) << row.name;
    EXPECT_EQ(got.should_continue, row.should_continue) << row.name;
  }
}

TEST(DaemonSetPods, are_bound_to_their_node_by_affinity_and_tolerate_its_troubles) {
  ObjectPtr set = daemon_set_of(daemon_set_text(
      kOne, R"(,"tolerations":[{"key":"mine","operator":"Exists"},{"key":"node.kubernetes.io/not-ready","operator":"Exists",
    "effect":"NoExecute","tolerationSeconds":30}],"affinity":{"podAntiAffinity":{"x":1},"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[],
    "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"color","operator":"Exists"}]}]}}})"));
  json::value pod = daemon_pod(*set, "hash", "a");
  EXPECT_EQ(to_text(*find(pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")),
            R"({"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["a"]}]}]})");
  EXPECT_TRUE(find(pod, "spec.affinity.podAntiAffinity.x")) << "the rest of its affinity is for the scheduler";
  EXPECT_TRUE(find(pod, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"));
  EXPECT_FALSE(find(pod, "spec.nodeName"));
  EXPECT_EQ(get_string(pod, "metadata.generateName"), "log-");
  const json::object& labels = get_object(pod, "metadata.labels");
  EXPECT_EQ(labels.at("controller-revision-hash"), "hash");
  EXPECT_EQ(labels.at("pod-template-generation"), "7");
  EXPECT_EQ(labels.at("app"), "log");
  std::string keys;
  for (const json::value& toleration : get_array(pod, "spec.tolerations")) {
    std::string_view key = get_string(toleration, "key"), effect = get_string(toleration, "effect");
    EXPECT_FALSE(find(toleration, "tolerationSeconds")) << "it stays for as long as it takes";
    keys += std::string(key.substr(key.rfind('/') + 1)) + ":" + std::string(effect) + " ";
  }
  EXPECT_EQ(keys,
            "mine: not-ready:NoExecute unreachable:NoExecute disk-pressure:NoSchedule memory-pressure:NoSchedule "
            "pid-pressure:NoSchedule "
            "unschedulable:NoSchedule ");
}

// ---- plan ----

// One word per node, one letter per pod: R ready, r ready for too short, n not ready, F failed, S succeeded, t ready and
// terminating, T deleted by us (the cache is late), u unbound; each followed by o (old) or n (new). "-": no pods. A node is named
// by its position. A prefix of the word: `x`: no pod may run there, `s`: no new pod, `g`: the node is gone.
struct DaemonSetCase {
  const char* name;
  std::string strategy, nodes;
  std::string want;  // "+a -b1": create on a, delete the second pod of b
  bool backing_off = false;
};

ObservedDaemonSet observed_daemon_set(const DaemonSetCase& row) {
  ObservedDaemonSet observed{.set = daemon_set_of(daemon_set_text(row.strategy, "", "a", R"(,"minReadySeconds":30)")),
                             .hash = "new"};
  char name = 'a';
  std::string_view rest = row.nodes;
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    std::string node(1, name++);
    const char* taint = word[0] == 'x'   ? R"({"key":"k","effect":"NoExecute"})"
                        : word[0] == 's' ? R"({"key":"k","effect":"NoSchedule"})"
                                         : "";
    bool gone = word[0] == 'g';
    if (word[0] == 'x' || word[0] == 's' || gone) word.remove_prefix(1);
    if (!gone) observed.nodes.push_back(node_of(node, taint));
    for (size_t i = 0; i + 1 < word.size(); i += 2) {
      char state = word[i];
      std::string pod = node + std::to_string(i / 2);
      json::object metadata{{"name", pod},
                            {"namespace", "default"},
                            {"uid", pod},
                            {"creationTimestamp", "2023-01-01T00:00:0" + std::to_string(i) + "Z"},
                            {"labels", {{kRevisionLabel, word[i + 1] == 'n' ? "new" : "old"}}}};
      if (state == 'T') observed.removed.insert(pod);
      json::value made = daemon_pod(*observed.set, "", node);
      json::value spec = *find(made, "spec");
      if (state != 'u') spec.get_object()["nodeName"] = node;
      observed.pods.push_back(lettered_pod(state, std::move(metadata), spec));
    }
  }
  observed.backing_off = [&row](const std::string&) {
    return row.backing_off ? std::optional<std::chrono::nanoseconds>(std::chrono::seconds(4)) : std::nullopt;
  };
  return observed;
}

DaemonSetPlan plan_of(const DaemonSetCase& row) {
  return plan_daemon_set(observed_daemon_set(row), *parse_time("2024-01-01T00:01:05Z"));
}

void expect_daemon_set_steps(std::initializer_list<DaemonSetCase> rows) {
  for (const DaemonSetCase& row : rows) {
    std::string got;
    DaemonSetPlan plan = plan_of(row);
    for (const std::string& node : plan.create) got += (got.empty() ? "+" : " +") + node;
    for (const auto& removal : plan.remove) got += (got.empty() ? "-" : " -") + removal.pod->name();
    EXPECT_EQ(got, row.want) << row.name;
  }
}

TEST(DaemonSetPlan, every_node_has_one_pod) {
  expect_daemon_set_steps({
      {"none yet", kOne, "- - -", "+a +b +c"},
      {"one is missing", kOne, "Rn - Rn", "+b"},
      {"one that goes is waited for", kOne, "tn Tn", ""},
      {"the oldest stays", kOne, "RnRnnn", "-a1 -a2"},
      {"a bound one before an older one that is not", kOne, "unRn", "-a0"},
      {"it may not be there", kOne, "xRn xtn", "-a0"},
      {"it may stay, but none comes", kOne, "sRn s-", ""},
      {"its node is gone before it was bound", kOne, "gun gRn Rn", "-a0"},
      {"its node is gone, and it goes", kOne, "gtn", ""},
  });
}

TEST(DaemonSetPlan, what_ended_is_removed_but_not_as_fast_as_it_fails) {
  expect_daemon_set_steps({
      {"failed", kOne, "Fn Rn", "-a0"},
      {"succeeded", kOne, "Sn", "-a0"},
      {"not yet", kOne, "Fn Rn", "", true},
      {"what succeeded does not wait", kOne, "Sn", "-a0", true},
      {"nor is another made beside it", kSurge, "Fn", "", true},
      {"where it may not be it goes at once", kOne, "xFn", "-a0", true},
  });
  DaemonSetPlan plan = plan_of({"", kOne, "Fn", ""});
  EXPECT_EQ(plan.remove.at(0).reason, "FailedDaemonPod");
  EXPECT_EQ(plan.remove.at(0).message, "Found failed daemon pod default/a0 on node a, will try to kill it");
  EXPECT_EQ(plan.remove.at(0).failed_on, "a");
  EXPECT_EQ(plan_of({"", kOne, "Sn", ""}).remove.at(0).message,
            "Found succeeded daemon pod default/a0 on node a, will try to delete it");
  EXPECT_EQ(plan_of({"", kOne, "Fn", "", true}).again, std::chrono::seconds(4));
}

TEST(DaemonSetPlan, updates_within_max_unavailable) {
  std::string two = rolling_update(R"("maxUnavailable":2,"maxSurge":0)"),
              half = rolling_update(R"("maxUnavailable":"34%","maxSurge":0)");
  expect_daemon_set_steps({
      {"one", kOne, "Ro Ro Ro", "-a0"},
      {"waits until it is there", kOne, "tn Ro Ro", ""},
      {"waits until the new one is available", kOne, "nn Ro Ro", ""},
      {"for long enough", kOne, "rn Ro Ro", ""},
      {"the next", kOne, "Rn Ro Ro", "-b0"},
      {"two", two, "Ro Ro Ro", "-a0 -b0"},
      {"a share, rounded up", half, "Ro Ro Ro", "-a0 -b0"},
      {"what does not work costs nothing", kOne, "Ro no no", "-b0 -c0"},
      {"done", kOne, "Rn Rn", ""},
      {"first every node has its pod", kOne, "Ro -", "+b"},
      {"the template of the revision is back: its pods stay", kOne, "Rn Rn no", "-c0"},
      {"on delete: nothing", kOnDelete, "Ro Ro", ""},
      {"on delete: the new comes when the old is gone", kOnDelete, "Ro -", "+b"},
  });
}

TEST(DaemonSetPlan, or_within_max_surge) {
  expect_daemon_set_steps({
      {"one more", kSurge, "Ro Ro", "+a"},
      {"waits for it", kSurge, "Ronn Ro", ""},
      {"for long enough", kSurge, "Rorn Ro", ""},
      {"then the old one goes", kSurge, "RoRn Ro", "-a0"},
      {"it went", kSurge, "toRn Ro", "+b"},
      {"the old one does not work: it is replaced at once", kSurge, "no Ro", "+a +b"},
      {"neither works: the new one stays", kSurge, "nonn", "-a0"},
      {"a leaving one makes space", kSurge, "to", "+a"},
      {"too many of each", kSurge, "RoRonnnn", "-a1 -a3"},
      {"none where it should not be, once another makes up for it", kSurge, "sRo Rn", "-a0"},
      {"the last one stays until then", kSurge, "sRo nn", ""},
  });
}

TEST(DaemonSetPlan, pods_without_a_hash_are_new_by_the_template_generation) {
  DaemonSetCase row{"", kOne, "Ro", ""};
  ObservedDaemonSet observed = observed_daemon_set(row);
  json::value body = observed.pods[0]->json();
  json::object& labels = make(body, "metadata.labels").get_object();
  labels["pod-template-generation"] = "7";
  observed.pods[0] = MUST(Object::make(kPod, body));
  EXPECT_EQ(plan_daemon_set(observed, *parse_time(kJustNow)).remove.size(), 1u)
      << "the hash says it is old: another set counted to 7 as well";
  labels.erase("controller-revision-hash");
  observed.pods[0] = MUST(Object::make(kPod, body));
  EXPECT_TRUE(plan_daemon_set(observed, *parse_time(kJustNow)).remove.empty());
}

TEST(DaemonSetPlan, the_status_counts_nodes) {
  EXPECT_EQ(
      to_text(plan_of({"", kOnDelete, "Rn rn no Ro - xRn s- sRn gRn", ""}).status),
      R"({"currentNumberScheduled":4,"numberMisscheduled":2,"desiredNumberScheduled":5,"numberReady":3,"observedGeneration":1,)"
      R"("updatedNumberScheduled":2,"numberAvailable":2,"numberUnavailable":3})");
  EXPECT_EQ(plan_of({"", kOnDelete, "Rn rn", ""}).again, std::chrono::seconds(25)) << "then it is available";
}

TEST(DaemonSetPlan, steps_have_a_limit) {
  ObservedDaemonSet observed{
      .set = daemon_set_of(daemon_set_text(kOne)), .hash = "h", .backing_off = [](const std::string&) { return std::nullopt; }};
  for (int i = 0; i < 300; ++i) observed.nodes.push_back(node_of("n" + std::to_string(i)));
  EXPECT_EQ(plan_daemon_set(observed, {}).create.size(), kDaemonSetBurst);
}

// ---- controller ----

// A second revision of the same set, to be created beside it.
json::value copy_of(const Object& revision, std::string_view name) {
  json::value copy = revision.json();
  json::object& metadata = make(copy, "metadata").get_object();
  metadata["name"] = name;
  metadata.erase("uid");
  metadata.erase("resourceVersion");
  return copy;
}

struct DaemonSetTest : Bench {
  DaemonSetTest() { put_node("b"); }
  void put_node(const std::string& name, const std::string& more = "") {
    client.put(kNode, R"({"metadata":{"name":")" + name + R"(","uid":")" + name + R"("})" + more + "}");
  }
  void put_set(const std::string& strategy = kOne, const std::string& image = "a", std::string_view pod_spec = "",
               std::string_view spec = "") {
    json::value body = MUST(parse_json(daemon_set_text(strategy, pod_spec, image, spec)));
    make(body, "metadata.annotations").get_object()["deprecated.daemonset.template.generation"] =
        std::to_string(++generation);  // as the server does
    if (!client.find(kDaemonSet, {"default", "log"})) return (void)client.put(kDaemonSet, to_text(body));
    MUST(client.update(kDaemonSet, body));
  }
  int64_t status(const char* name) {
    return get_int(client.find(kDaemonSet, {"default", "log"})->json(), std::string("status.") + name);
  }
  // Binds each pod to the node in its affinity and makes it ready.
  void play() {
    for (const ObjectPtr& pod : client.all(kPod)) {
      if (pod->deleting() || !get_string(pod->json(), "spec.nodeName").empty()) continue;
      const json::value* terms =
          find(pod->json(), "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
      std::string node(get_array(get_array(terms->get_array().at(0), "matchFields").at(0), "values").at(0).get_string());
      MUST(client.create_subresource(kPod, pod->key(), "binding", {{"target", {{"name", node}}}}));
    }
    play_kubelet();
  }
  void roll_out(int rounds = 10) {
    settle();
    for (; rounds > 0; --rounds) play();
  }
  std::string images() {
    std::string out;
    for (const ObjectPtr& pod : client.all(kPod)) out += get_string(get_array(pod->json(), "spec.containers").at(0), "image");
    return out;
  }
  int generation = 0;
};

TEST_F(DaemonSetTest, has_a_pod_on_every_node_as_they_come_and_go) {
  start();
  put_set();
  settle();
  ASSERT_EQ(count(kPod), 2u);
  EXPECT_TRUE(events.has("SuccessfulCreate", "Created pod: " + client.all(kPod)[0]->name()));
  roll_out();
  EXPECT_EQ(status("desiredNumberScheduled"), 2);
  EXPECT_EQ(status("numberAvailable"), 2);
  EXPECT_EQ(status("updatedNumberScheduled"), 2);
  EXPECT_EQ(status("observedGeneration"), 1);
  put_node("c");
  roll_out();
  EXPECT_EQ(count(kPod), 3u);
  put_node("c", R"(,"spec":{"taints":[{"key":"k","effect":"NoExecute"}]})");
  roll_out();
  EXPECT_EQ(count(kPod), 2u);
  EXPECT_EQ(status("desiredNumberScheduled"), 2);
  client.clear_calls();
  client.set_status(kNode, {"", "b"},
                    R"({"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2024-01-01T00:00:00Z"}]})");
  pass(std::chrono::seconds(40));  // later, the node would be taken for unreachable
  for (const std::string& call : client.calls())
    EXPECT_TRUE(call.find("daemonsets") == call.npos && call.find(" pods") == call.npos) << call;
}

TEST_F(DaemonSetTest, goes_to_a_new_template_and_back_and_what_is_of_the_old_one_stays) {
  start();
  put_set();
  roll_out();
  std::string survivor = client.all(kPod)[1]->uid();
  put_set(kOne, "broken");
  settle();
  play_kubelet([](const Object&) { return false; });  // pods terminate; the new one never gets ready
  settle();
  EXPECT_EQ(client.all(kControllerRevision).size(), 2u);
  put_set(kOne, "a");
  roll_out();
  EXPECT_EQ(images(), "aa");
  EXPECT_EQ(client.all(kControllerRevision).size(), 2u);
  auto pods = client.all(kPod);
  EXPECT_TRUE(std::any_of(pods.begin(), pods.end(), [&](const ObjectPtr& pod) { return pod->uid() == survivor; }))
      << "it was not restarted";
}

TEST_F(DaemonSetTest, forgets_revisions_beyond_its_limit) {
  start();
  for (const char* image : {"a", "b", "c", "d"}) {
    put_set(kOne, image, "", R"(,"revisionHistoryLimit":2)");
    roll_out();
  }
  EXPECT_EQ(images(), "dd");
  EXPECT_EQ(client.all(kControllerRevision).size(), 3u);
}

TEST_F(DaemonSetTest, surges_and_ends_with_one_on_each_node) {
  start();
  put_set(kSurge);
  roll_out();
  put_set(kSurge, "b");
  settle();
  EXPECT_EQ(count(kPod), 3u);
  EXPECT_EQ(status("numberAvailable"), 2);
  roll_out();
  EXPECT_EQ(images(), "bb");
}

TEST_F(DaemonSetTest, what_fails_is_replaced_more_and_more_slowly) {
  start();
  put_set();
  roll_out();
  std::vector<int> seconds;
  for (int round = 0; round < 4; ++round) {
    for (const ObjectPtr& pod : client.all(kPod))
      if (get_string(pod->json(), "spec.nodeName") == "b") client.set_status(kPod, pod->key(), R"({"phase":"Failed"})");
    settle();
    auto failed = [&] {
      auto pods = client.all(kPod);
      return std::any_of(pods.begin(), pods.end(),
                         [](const ObjectPtr& pod) { return get_string(pod->json(), "status.phase") == "Failed"; });
    };
    int waited = 0;
    for (; waited < 60 && failed(); ++waited) pass(std::chrono::seconds(1));
    seconds.push_back(waited);
    roll_out(2);
  }
  EXPECT_EQ(seconds, (std::vector{0, 1, 2, 4}));
  EXPECT_TRUE(events.has("FailedDaemonPod", "Found failed daemon pod default/log-"));
  EXPECT_EQ(count(kPod), 2u);
}

TEST_F(DaemonSetTest, a_changed_set_is_tried_at_once) {
  start();
  put_set(kOnDelete);
  auto fail_all = [&] {
    for (const ObjectPtr& pod : client.all(kPod)) client.set_status(kPod, pod->key(), R"({"phase":"Failed"})");
    settle();
  };
  auto failed = [&] {
    auto pods = client.all(kPod);
    return std::any_of(pods.begin(), pods.end(),
                       [](const ObjectPtr& pod) { return get_string(pod->json(), "status.phase") == "Failed"; });
  };
  roll_out(2);
  fail_all();
  EXPECT_FALSE(failed()) << "replaced at once";
  fail_all();
  EXPECT_TRUE(failed()) << "not so soon again";
  put_set(kOnDelete, "b");
  settle();
  EXPECT_FALSE(failed());
  EXPECT_EQ(images(), "bb");
}

TEST_F(DaemonSetTest, adopts_orphans_and_lets_go_of_what_matches_no_more) {
  client.put(kPod, R"({"metadata":{"name":"orphan","namespace":"default","labels":{"app":"log"}},"spec":{"nodeName":"pi"}})");
  start();
  put_set(kOnDelete);
  settle();
  EXPECT_EQ(client.find(kPod, {"default", "orphan"})->controller()->uid, "set-uid");
  EXPECT_EQ(count(kPod), 2u);
  MUST(client.patch(kPod, {"default", "orphan"}, PatchType::merge, {{"metadata", {{"labels", {{"app", "mine"}}}}}}));
  settle();
  EXPECT_FALSE(client.find(kPod, {"default", "orphan"})->controller());
  EXPECT_EQ(count(kPod), 3u);
}

TEST_F(DaemonSetTest, of_two_revisions_of_one_template_the_later_stays_and_has_all_pods) {
  start();
  put_set();
  roll_out();
  json::value twin = copy_of(*client.all(kControllerRevision)[0], "twin");
  make(twin, "metadata.labels").get_object()[kRevisionLabel] = "other";
  make(twin, "revision") = 2;
  MUST(client.create(kControllerRevision, twin));
  settle();
  EXPECT_EQ(client.all(kControllerRevision).size(), 2u) << "the set is not looked at for that";
  put_node("c");
  roll_out();
  ASSERT_EQ(client.all(kControllerRevision).size(), 1u);
  EXPECT_EQ(client.all(kControllerRevision)[0]->name(), "twin");
  for (const ObjectPtr& pod : client.all(kPod)) EXPECT_EQ(pod->label(kRevisionLabel), "other");
  EXPECT_EQ(count(kPod), 3u);
}

// Two templates arrive while the cache is late: both get the number 1.
TEST_F(DaemonSetTest, the_revision_of_the_template_has_the_highest_number_whatever_is_seen_when) {
  start();
  put_set();
  roll_out();
  ObjectPtr first = client.all(kControllerRevision)[0];
  json::value late = copy_of(*first, "late");
  make(late, "data.spec.template.spec.containers").get_array()[0].get_object()["image"] = "of:before";
  MUST(client.create(kControllerRevision, late));
  settle();
  EXPECT_EQ(get_int(client.find(kControllerRevision, first->key())->json(), "revision"), 2);
}

TEST_F(DaemonSetTest, a_revision_that_was_removed_comes_again) {
  start();
  put_set();
  roll_out();
  std::string name = client.all(kControllerRevision)[0]->name();
  client.erase(kControllerRevision, {"default", name});
  roll_out();
  ASSERT_EQ(client.all(kControllerRevision).size(), 1u);
  EXPECT_EQ(client.all(kControllerRevision)[0]->name(), name);
  EXPECT_EQ(count(kPod), 2u);
}

TEST_F(DaemonSetTest, once_it_is_being_deleted_it_does_no_more) {
  start();
  put_set();
  roll_out();
  MUST(client.patch(kDaemonSet, {"default", "log"}, PatchType::merge,
                    {{"metadata", {{"finalizers", json::array{"example.com/hold"}}}}}));
  MUST(client.remove(kDaemonSet, {"default", "log"}));
  settle();
  client.clear_calls();
  client.erase(kPod, client.all(kPod)[0]->key());
  settle();
  EXPECT_EQ(count(kPod), 1u);
  for (const std::string& call : client.calls()) EXPECT_EQ(call.find("daemonsets"), call.npos) << call;
}

TEST_F(DaemonSetTest, any_single_failing_call_heals) {
  for (int nth = 1; nth <= 8; ++nth) {
    FakeClock clock;
    FakeClient client(clock);
    CollectedEvents events;
    Informers informers(client);
    Manager manager(client, informers, events, built_in_catalogs(), {}, clock);
    for (const char* node : {"a", "b", "c"}) client.put(kNode, R"({"metadata":{"name":")" + std::string(node) + R"("}})");
    MUST(informers.start());
    client.settle();
    client.clear_calls();
    client.fail(nth, Error(Code::unavailable, "disk is full"));
    client.put(kDaemonSet, daemon_set_text(kOne));
    for (int second = 0; second < 5; ++second) {
      for (client.settle(); manager.run_once(); client.settle()) {
      }
      clock.advance(std::chrono::seconds(1));
    }
    EXPECT_EQ(client.all(kPod).size(), 3u) << nth;
    EXPECT_EQ(client.all(kControllerRevision).size(), 1u) << nth;
    EXPECT_EQ(get_int(client.find(kDaemonSet, {"default", "log"})->json(), "status.currentNumberScheduled"), 3) << nth;
  }
}

TEST_F(DaemonSetTest, a_lost_event_delays_but_does_not_double) {
  start();
  client.put(kDaemonSet, daemon_set_text(kOne));
  client.settle();
  client.lose_event(3);  // after those of the revision and the first pod: the creation of the second pod
  settle();
  EXPECT_EQ(count(kPod), 2u);
  client.end_watches(Error(Code::unavailable, "dropped"));
  client.settle();
  while (informers.of(kPod).size() < 2 && informers.synced()) std::this_thread::yield();
  pass(OwnWrites::kTimeout + std::chrono::seconds(5));
  EXPECT_EQ(count(kPod), 2u);
  EXPECT_EQ(status("currentNumberScheduled"), 2);
}

}  // namespace
}  // namespace coracle::controller
