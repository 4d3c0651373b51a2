// SPDX-License-Identifier: Apache-2.0
// Cleanup: namespaces, garbage collection, finished pods, old events.
#include "daemon/controller/garbage/garbage.h"
#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

struct HousekeepingTest : Bench {
  void put(const Kind& kind, const std::string& ns, const std::string& name, const std::string& metadata = "",
           const std::string& rest = "") {
    client.put(kind, R"({"metadata":{"name":")" + name + "\"" + (ns.empty() ? "" : R"(,"namespace":")" + ns + "\"") + metadata +
                         "}" + rest + "}");
  }
  void put_namespace(const std::string& name) {
    // The fake client only supports metadata.finalizers: without one, any write would remove a deleted namespace.
    put(kNamespace, "", name, R"(,"finalizers":["test/held"])",
        R"(,"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"})");
    settle();
  }
  bool released(const std::string& name) {
    return get_array(client.find(kNamespace, {"", name})->json(), "spec.finalizers").empty();
  }
  // As the API does: a namespace with spec.finalizers only starts to terminate.
  void delete_namespace(const std::string& name) {
    json::value body = client.find(kNamespace, {"", name})->json();
    make(body, "metadata.deletionTimestamp") = format_time(clock.now());
    make(body, "status.phase") = "Terminating";
    client.put(kNamespace, to_text(body));
    settle();
  }
};

TEST_F(HousekeepingTest, every_namespace_has_its_account_and_certificate) {
  start();
  put_namespace("team");
  EXPECT_TRUE(client.find(kServiceAccount, {"team", "default"}));
  ObjectPtr ca = client.find(kConfigMap, {"team", "kube-root-ca.crt"});
  ASSERT_TRUE(ca);
  EXPECT_EQ(get_object(ca->json(), "data").at("ca.crt").as_string(), "CERT");
  client.erase(kServiceAccount, {"team", "default"});
  MUST(client.patch(kConfigMap, {"team", "kube-root-ca.crt"}, PatchType::merge, {{"data", {{"ca.crt", "forged"}}}}));
  settle();
  EXPECT_TRUE(client.find(kServiceAccount, {"team", "default"}));
  EXPECT_EQ(get_object(client.find(kConfigMap, {"team", "kube-root-ca.crt"})->json(), "data").at("ca.crt").as_string(), "CERT");
}

TEST_F(HousekeepingTest, the_services_of_the_api_and_of_dns_come_back_as_they_were) {
  put(kService, "default", "kubernetes", R"(,"labels":{"provider":"kubernetes"})", R"(,"spec":{"clusterIP":"10.96.0.1"})");
  put(kEndpoints, "default", "kubernetes", "", R"(,"subsets":[{"addresses":[{"ip":"192.168.1.7"}]}])");
  put(kService, "kube-system", "kube-dns");
  put(kService, "default", "mine");
  start();
  std::string uid = client.find(kService, {"default", "kubernetes"})->uid();
  for (auto [ns, name] : {std::pair{"default", "kubernetes"}, {"kube-system", "kube-dns"}, {"default", "mine"}})
    client.erase(kService, {ns, name});
  client.erase(kEndpoints, {"default", "kubernetes"});
  settle();
  ObjectPtr api = client.find(kService, {"default", "kubernetes"});
  ASSERT_TRUE(api);
  EXPECT_NE(api->uid(), uid);
  EXPECT_EQ(get_string(api->json(), "spec.clusterIP"), "10.96.0.1");
  EXPECT_EQ(get_string(api->json(), "metadata.labels.provider"), "kubernetes");
  EXPECT_TRUE(client.find(kEndpoints, {"default", "kubernetes"}));
  EXPECT_TRUE(client.find(kService, {"kube-system", "kube-dns"}));
  EXPECT_FALSE(client.find(kService, {"default", "mine"}));
}

TEST_F(HousekeepingTest, what_nothing_serves_says_so) {
  start();
  put(kIngressClass, "", "here");
  put(kIngress, "default", "web", "", R"(,"spec":{"ingressClassName":"gone"})");
  put(kIngress, "default", "served", "", R"(,"spec":{"ingressClassName":"here"})");
  settle();
  std::vector<std::string> told;
  for (const EventRecord& event : events.take())
    if (event.about.kind == "Ingress") told.push_back(event.about.name + " " + event.reason + ": " + event.message);
  std::sort(told.begin(), told.end());
  EXPECT_EQ(
      told,
      (std::vector<std::string>{"web NotServed: nothing here serves ingresses by itself: there is no IngressClass \"gone\""}));
  client.fail(1, Error(Code::unavailable, "the store is closing"), "get ingressclasses");
  put(kIngress, "default", "unsure", "", R"(,"spec":{"ingressClassName":"here"})");
  settle();
  for (const EventRecord& event : events.take())
    EXPECT_NE(event.about.name, "unsure") << "its class could not be read, and is there";
}

TEST_F(HousekeepingTest, a_namespace_that_was_made_anew_keeps_what_is_in_it) {
  start();
  put_namespace("team");
  json::value body = client.find(kNamespace, {"", "team"})->json();
  make(body, "metadata.deletionTimestamp") = format_time(clock.now());
  client.put(kNamespace, to_text(body));
  client.settle();
  client.lose_event();  // the cache still shows that one
  client.erase(kNamespace, {"", "team"});
  client.lose_event();
  put(kNamespace, "", "team", "", R"(,"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"})");
  put(kPod, "team", "web"), put(kSecret, "team", "key");
  while (manager.run_once()) {
  }
  EXPECT_FALSE(released("team"));
  EXPECT_FALSE(client.find(kPod, {"team", "web"})->deleting());
  EXPECT_TRUE(client.find(kSecret, {"team", "key"}));
}

TEST_F(HousekeepingTest, a_namespace_is_emptied_pods_first_and_then_let_go) {
  start();
  put_namespace("team");
  put(kPod, "team", "web", "", R"(,"spec":{"nodeName":"pi"})");
  put(kSecret, "team", "key");
  put(kConfigMap, "other", "kept");
  settle();
  delete_namespace("team");
  EXPECT_TRUE(client.find(kPod, {"team", "web"})->deleting());
  EXPECT_TRUE(client.find(kSecret, {"team", "key"}));  // its pod may still read it
  const json::array& conditions = get_array(client.find(kNamespace, {"", "team"})->json(), "status.conditions");
  EXPECT_EQ(get_string(*find_condition(conditions, "NamespaceContentRemaining"), "status"), "True");
  EXPECT_FALSE(released("team"));
  client.erase(kPod, {"team", "web"});
  pass(std::chrono::seconds(3));
  EXPECT_FALSE(client.find(kSecret, {"team", "key"}));
  EXPECT_FALSE(client.find(kServiceAccount, {"team", "default"}));
  EXPECT_TRUE(client.find(kConfigMap, {"other", "kept"}));
  EXPECT_TRUE(released("team"));
}

// An ended pod of a Job may wait for the Job, but the Job does not wait for the pod.
TEST_F(HousekeepingTest, pods_that_wait_for_their_job_do_not_keep_the_job) {
  start();
  put_namespace("team");
  put(kPod, "team", "done", R"(,"finalizers":["batch.kubernetes.io/job-tracking"])", R"(,"status":{"phase":"Failed"})");
  put(kConfigMap, "team", "rest");
  settle();
  delete_namespace("team");
  pass(std::chrono::seconds(3));
  EXPECT_FALSE(client.find(kConfigMap, {"team", "rest"}));
}

TEST_F(HousekeepingTest, pods_that_somebody_else_holds_keep_the_rest_of_a_namespace) {
  start();
  put_namespace("team");
  put(kPod, "team", "done", R"(,"finalizers":["example.com/hold"])", R"(,"status":{"phase":"Failed"})");
  put(kConfigMap, "team", "rest");
  settle();
  delete_namespace("team");
  pass(std::chrono::seconds(3));
  EXPECT_TRUE(client.find(kConfigMap, {"team", "rest"}));
}

TEST_F(HousekeepingTest, a_finalizer_keeps_its_namespace_and_is_named) {
  start();
  put_namespace("team");
  put(kConfigMap, "team", "held", R"(,"finalizers":["example.com/wait"])");
  settle();
  delete_namespace("team");
  pass(std::chrono::seconds(3));
  const json::array& conditions = get_array(client.find(kNamespace, {"", "team"})->json(), "status.conditions");
  EXPECT_EQ(get_string(*find_condition(conditions, "NamespaceFinalizersRemaining"), "message"),
            "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances");
  EXPECT_EQ(get_string(*find_condition(conditions, "NamespaceContentRemaining"), "message"),
            "Some resources are remaining: configmaps. has 1 resource instances");
  client.erase(kConfigMap, {"team", "held"});
  pass(std::chrono::seconds(3));
  EXPECT_TRUE(released("team"));
}

TEST_F(HousekeepingTest, a_namespace_that_is_held_for_days_is_looked_at_now_and_then) {
  start();
  put_namespace("team");
  put(kConfigMap, "team", "held", R"(,"finalizers":["example.com/wait"])");
  settle();
  delete_namespace("team");
  auto looks = [&] {
    std::vector<std::string> calls = client.calls();
    client.clear_calls();
    return std::count(calls.begin(), calls.end(), "list secrets");
  };
  looks();
  pass(std::chrono::seconds(8));
  EXPECT_EQ(looks(), 4) << "at first it may go at any moment";
  pass(std::chrono::minutes(10));
  looks();
  pass(std::chrono::minutes(60));
  EXPECT_NEAR(double(looks()), 60, 2);
  client.erase(kConfigMap, {"team", "held"});
  pass(std::chrono::seconds(61));
  EXPECT_TRUE(released("team"));
}

std::string owned_by(const std::string& name, const std::string& uid, bool blocks = false) {
  return R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":")" + name + R"(","uid":")" + uid +
         R"(","blockOwnerDeletion":)" + (blocks ? "true" : "false") + "}]";
}

TEST_F(HousekeepingTest, what_nobody_owns_any_more_goes_along_the_whole_chain) {
  put(kConfigMap, "default", "root", R"(,"uid":"r")");
  put(kConfigMap, "default", "child", R"(,"uid":"c")" + owned_by("root", "r"));
  put(kSecret, "default", "grandchild", owned_by("child", "c"));
  put(kSecret, "default", "free");
  start();
  EXPECT_EQ(count(kSecret), 2u);
  MUST(client.remove(kConfigMap, {"default", "root"}));
  settle();
  EXPECT_FALSE(client.find(kConfigMap, {"default", "child"}));
  EXPECT_FALSE(client.find(kSecret, {"default", "grandchild"}));
  EXPECT_TRUE(client.find(kSecret, {"default", "free"}));
}

TEST_F(HousekeepingTest, an_owner_that_never_was_or_was_replaced_owns_nothing) {
  put(kConfigMap, "default", "root", R"(,"uid":"second")");
  put(kSecret, "default", "of-first", owned_by("root", "first"));
  put(kSecret, "default", "of-nobody", owned_by("never", "x"));
  put(kSecret, "default", "of-unknown-kind", R"(,"ownerReferences":[{"apiVersion":"a/v1","kind":"Odd","name":"o","uid":"o"}])");
  start();
  EXPECT_FALSE(client.find(kSecret, {"default", "of-first"}));
  EXPECT_FALSE(client.find(kSecret, {"default", "of-nobody"}));
  EXPECT_TRUE(client.find(kSecret, {"default", "of-unknown-kind"}));
}

TEST_F(HousekeepingTest, one_of_two_owners_is_enough) {
  put(kConfigMap, "default", "a", R"(,"uid":"a")");
  put(kConfigMap, "default", "b", R"(,"uid":"b")");
  put(kSecret, "default", "both", R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"a"},
    {"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"b"}])");
  start();
  client.erase(kConfigMap, {"default", "a"});
  settle();
  ObjectPtr both = client.find(kSecret, {"default", "both"});
  ASSERT_TRUE(both);
  ASSERT_EQ(both->owners().size(), 1u);
  EXPECT_EQ(both->owners()[0].uid, "b");
}

// [sig-api-machinery] Garbage collector should not be blocked by dependency circle [Conformance]
TEST_F(HousekeepingTest, a_circle_of_owners_does_not_hold_itself) {
  put(kConfigMap, "default", "one", R"(,"uid":"1")" + owned_by("three", "3", true));
  put(kConfigMap, "default", "two", R"(,"uid":"2")" + owned_by("one", "1", true));
  put(kConfigMap, "default", "three", R"(,"uid":"3")" + owned_by("two", "2", true));
  start();
  MUST(client.remove(kConfigMap, {"default", "one"}, {.propagation = "Foreground"}));
  settle();
  for (const char* name : {"one", "two", "three"}) EXPECT_FALSE(client.find(kConfigMap, {"default", name})) << name;
}

// [sig-api-machinery] Garbage collector should not delete dependents that have both valid owner and owner that's waiting for
// dependents to be deleted [Serial] [Conformance]
TEST_F(HousekeepingTest, who_has_another_owner_outlives_one_that_waits) {
  put(kConfigMap, "default", "goes", R"(,"uid":"g")");
  put(kConfigMap, "default", "stays", R"(,"uid":"s")");
  put(kSecret, "default", "both",
      R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"goes","uid":"g","blockOwnerDeletion":true},
    {"apiVersion":"v1","kind":"ConfigMap","name":"stays","uid":"s"}])");
  put(kSecret, "default", "one", owned_by("goes", "g", true));
  start();
  MUST(client.remove(kConfigMap, {"default", "goes"}, {.propagation = "Foreground"}));
  settle();
  EXPECT_FALSE(client.find(kConfigMap, {"default", "goes"}));
  EXPECT_FALSE(client.find(kSecret, {"default", "one"}));
  ASSERT_TRUE(client.find(kSecret, {"default", "both"}));
  EXPECT_EQ(client.find(kSecret, {"default", "both"})->owners().size(), 1u);
}

// No deletion triggers the owner's removal here: the last dependent only loses its reference.
TEST_F(HousekeepingTest, an_owner_in_the_foreground_goes_when_all_it_owned_has_another_owner) {
  put(kConfigMap, "default", "goes", R"(,"uid":"g")");
  put(kConfigMap, "default", "stays", R"(,"uid":"s")");
  for (const char* name : {"first", "second"})
    put(kSecret, "default", name,
        R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"goes","uid":"g","blockOwnerDeletion":true},
    {"apiVersion":"v1","kind":"ConfigMap","name":"stays","uid":"s"}])");
  start();
  MUST(client.remove(kConfigMap, {"default", "goes"}, {.propagation = "Foreground"}));
  settle();
  EXPECT_FALSE(client.find(kConfigMap, {"default", "goes"}));
  for (const char* name : {"first", "second"}) {
    ASSERT_TRUE(client.find(kSecret, {"default", name}));
    EXPECT_EQ(client.find(kSecret, {"default", name})->owners().size(), 1u);
  }
}

TEST_F(HousekeepingTest, an_owner_in_the_foreground_goes_when_who_blocks_it_stops) {
  put(kConfigMap, "default", "root", R"(,"uid":"r")");
  for (const char* name : {"lets-go", "unblocks"})
    put(kSecret, "default", name, R"(,"finalizers":["test/held"])" + owned_by("root", "r", true));
  start();
  MUST(client.remove(kConfigMap, {"default", "root"}, {.propagation = "Foreground"}));
  settle();
  ASSERT_TRUE(client.find(kConfigMap, {"default", "root"}));
  MUST(client.patch(kSecret, {"default", "lets-go"}, PatchType::merge, {{"metadata", {{"ownerReferences", nullptr}}}}));
  settle();
  ASSERT_TRUE(client.find(kConfigMap, {"default", "root"}));
  json::array unblocked = get_array(client.find(kSecret, {"default", "unblocks"})->json(), "metadata.ownerReferences");
  make(unblocked.at(0), "blockOwnerDeletion") = false;
  MUST(client.patch(kSecret, {"default", "unblocks"}, PatchType::merge, {{"metadata", {{"ownerReferences", unblocked}}}}));
  settle();
  EXPECT_FALSE(client.find(kConfigMap, {"default", "root"}));
}

TEST_F(HousekeepingTest, before_an_owner_goes_the_store_is_asked_what_it_owns) {
  put(kConfigMap, "default", "orphaning", R"(,"uid":"o")");
  put(kConfigMap, "default", "waiting", R"(,"uid":"w")");
  start();
  client.lose_event();
  put(kSecret, "default", "orphan", owned_by("orphaning", "o", true));  // our cache never gets the event
  client.lose_event();
  put(kSecret, "default", "held", R"(,"finalizers":["test/held"])" + owned_by("waiting", "w", true));
  MUST(client.remove(kConfigMap, {"default", "orphaning"}, {.propagation = "Orphan"}));
  MUST(client.remove(kConfigMap, {"default", "waiting"}, {.propagation = "Foreground"}));
  settle();
  EXPECT_FALSE(client.find(kConfigMap, {"default", "orphaning"}));
  EXPECT_TRUE(client.find(kSecret, {"default", "orphan"})->owners().empty());
  EXPECT_TRUE(client.find(kConfigMap, {"default", "waiting"})) << "what it owns is still there";
}

// [sig-api-machinery] Garbage collector should keep the rc around until all its pods are deleted if the deleteOptions says so
// [Serial] [Conformance]
TEST_F(HousekeepingTest, an_owner_in_the_foreground_waits_for_those_who_block_it) {
  put(kConfigMap, "default", "root", R"(,"uid":"r")");
  put(kSecret, "default", "held", R"(,"finalizers":["test/held"])" + owned_by("root", "r", true));
  start();
  MUST(client.remove(kConfigMap, {"default", "root"}, {.propagation = "Foreground"}));
  settle();
  EXPECT_TRUE(client.find(kConfigMap, {"default", "root"})) << "what it owns is still there";
  EXPECT_TRUE(client.find(kSecret, {"default", "held"})->deleting());
  client.erase(kSecret, {"default", "held"});
  settle();
  EXPECT_FALSE(client.find(kConfigMap, {"default", "root"}));
}

// [sig-api-machinery] Garbage collector should orphan pods created by rc if delete options say so [Serial] [Conformance]
TEST_F(HousekeepingTest, orphans_stay_and_forget_their_owner) {
  put(kConfigMap, "default", "root", R"(,"uid":"r")");
  put(kSecret, "default", "child", owned_by("root", "r", true));
  start();
  MUST(client.remove(kConfigMap, {"default", "root"}, {.propagation = "Orphan"}));
  settle();
  EXPECT_FALSE(client.find(kConfigMap, {"default", "root"}));
  ASSERT_TRUE(client.find(kSecret, {"default", "child"}));
  EXPECT_TRUE(client.find(kSecret, {"default", "child"})->owners().empty());
}

TEST_F(HousekeepingTest, owners_are_of_the_same_namespace_or_of_none) {
  put(kConfigMap, "other", "root", R"(,"uid":"r")");
  put(kNamespace, "", "cluster", R"(,"uid":"n")");
  put(kSecret, "default", "of-elsewhere", owned_by("root", "r"));
  put(kNode, "", "of-a-namespaced-one", owned_by("root", "r"));
  put(kSecret, "default", "of-the-cluster",
      R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"cluster","uid":"n"}])");
  start();
  EXPECT_FALSE(client.find(kSecret, {"default", "of-elsewhere"})) << "it has no owner where it is";
  EXPECT_TRUE(client.find(kNode, {"", "of-a-namespaced-one"})) << "nobody's to judge";
  EXPECT_TRUE(client.find(kSecret, {"default", "of-the-cluster"}));
  EXPECT_TRUE(
      events.has("OwnerRefInvalidNamespace",
                 "ownerRef [v1/ConfigMap, namespace: default, name: root, uid: r] does not exist in namespace \"default\""));
  EXPECT_TRUE(events.has("OwnerRefInvalidNamespace", "does not exist in namespace \"\""));
}

TEST_F(HousekeepingTest, before_an_owner_counts_as_gone_the_store_is_asked) {
  start();
  client.lose_event();
  put(kConfigMap, "default", "root", R"(,"uid":"r")");  // our cache never gets the event
  put(kSecret, "default", "child", owned_by("root", "r"));
  settle();
  EXPECT_TRUE(client.find(kSecret, {"default", "child"}));
}

TEST_F(HousekeepingTest, what_was_cut_loose_meanwhile_does_not_go_with_its_owner) {
  put(kConfigMap, "default", "root", R"(,"uid":"r")");
  put(kSecret, "default", "child", owned_by("root", "r"));
  start();
  client.lose_event();
  MUST(client.patch(kSecret, {"default", "child"}, PatchType::merge, MUST(parse_json(R"({"metadata":{"ownerReferences":[]}})"))));
  client.erase(kConfigMap, {"default", "root"});  // our cache still shows the child as owned
  settle();
  EXPECT_TRUE(client.find(kSecret, {"default", "child"}));
}

TEST(OwnedPlan, follows_its_owners) {
  ObjectPtr object =
      MUST(Object::make(kSecret, {{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", "s"}, {"namespace", "n"}}}}));
  std::vector<OwnerReference> owners(2);
  owners[0].uid = "a";
  owners[1].uid = "b";
  using S = OwnerState;
  using W = OwnedPlan::What;
  struct Row {
    S first, second;
    bool dependents;
    W want;
    const char* propagation;
  };
  for (const Row& row :
       {Row{S::present, S::present, false, W::nothing, ""}, Row{S::present, S::absent, false, W::drop_references, ""},
        Row{S::absent, S::absent, false, W::remove, "Background"}, Row{S::waiting, S::absent, true, W::remove, "Foreground"},
        Row{S::waiting, S::absent, false, W::remove, "Background"}}) {
    OwnedPlan plan = plan_owned(*object, owners, {row.first, row.second}, row.dependents);
    EXPECT_EQ(plan.what, row.want);
    EXPECT_EQ(plan.propagation, row.propagation);
  }
}

TEST_F(HousekeepingTest, pods_of_a_vanished_node_and_the_oldest_finished_ones_go) {
  start();
  put(kPod, "default", "lost", "", R"(,"spec":{"nodeName":"gone"},"status":{"phase":"Running"})");
  settle();
  pass(std::chrono::seconds(45));
  EXPECT_FALSE(client.find(kPod, {"default", "lost"}));
  for (int i = 0; i < 5; ++i)
    put(kPod, "default", "done" + std::to_string(i), R"(,"creationTimestamp":"2024-01-01T00:00:0)" + std::to_string(i) + "Z\"",
        R"(,"spec":{"nodeName":"pi"},"status":{"phase":"Succeeded"})");
  settle();
  EXPECT_EQ(count(kPod), 3u);
  EXPECT_FALSE(client.find(kPod, {"default", "done0"}));
  EXPECT_TRUE(client.find(kPod, {"default", "done4"}));
  put(kPod, "default", "evicted", R"(,"creationTimestamp":"2024-01-02T00:00:00Z")",
      R"(,"spec":{"nodeName":"pi"},"status":{"phase":"Failed","reason":"Evicted"})");
  settle();
  EXPECT_FALSE(client.find(kPod, {"default", "evicted"})) << "what was evicted goes before what its owner may look at";
  EXPECT_TRUE(client.find(kPod, {"default", "done2"}));
}

TEST_F(HousekeepingTest, pods_that_end_go_from_a_node_that_is_out_of_service) {
  const std::string tainted =
      R"(,"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]})";
  const std::string tolerates = R"("tolerations":[{"operator":"Exists"}])",
                    ending = R"(,"deletionTimestamp":"2024-01-01T00:00:00Z")";
  start();
  put(kPod, "default", "ends", ending, R"(,"spec":{"nodeName":"far",)" + tolerates + R"(},"status":{"phase":"Running"})");
  put(kPod, "default", "stays", "", R"(,"spec":{"nodeName":"far",)" + tolerates + R"(},"status":{"phase":"Running"})");
  put(kNode, "", "far", "", tainted + R"(,"status":{"conditions":[{"type":"Ready","status":"True"}]})");
  settle();
  EXPECT_TRUE(client.find(kPod, {"default", "ends"})) << "the node runs, and ends it";
  put(kNode, "", "far", "", tainted + R"(,"status":{"conditions":[{"type":"Ready","status":"Unknown"}]})");
  settle();
  EXPECT_FALSE(client.find(kPod, {"default", "ends"}));
  EXPECT_TRUE(client.find(kPod, {"default", "stays"}));
  put(kPod, "default", "later", ending, R"(,"spec":{"nodeName":"far",)" + tolerates + R"(},"status":{"phase":"Running"})");
  settle();
  EXPECT_FALSE(client.find(kPod, {"default", "later"}));
}

TEST_F(HousekeepingTest, a_pod_that_only_a_finalizer_holds_is_not_told_to_go_again) {
  start();
  put(kNode, "", "far", "", R"(,"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]})");
  put(kPod, "default", "held",
      R"(,"finalizers":["example.com/x"],"deletionTimestamp":"2024-01-01T00:00:00Z","deletionGracePeriodSeconds":30)",
      R"(,"spec":{"nodeName":"far"},"status":{"phase":"Running"})");
  settle();
  ASSERT_TRUE(client.find(kPod, {"default", "held"}));
  client.clear_calls();
  MUST(client.patch(kPod, {"default", "held"}, PatchType::merge, {{"metadata", {{"labels", {{"a", "b"}}}}}}));
  settle();
  for (const std::string& call : client.calls()) EXPECT_FALSE(call.starts_with("delete") || call.starts_with("remove")) << call;
}

// A set creates a pod with the same name as soon as the old one is gone.
TEST_F(HousekeepingTest, only_the_pod_of_the_vanished_node_is_marked) {
  start();
  put(kPod, "default", "db-0", R"(,"uid":"old")", R"(,"spec":{"nodeName":"gone"},"status":{"phase":"Running"})");
  settle();
  client.lose_event(1);
  client.erase(kPod, {"default", "db-0"});
  client.lose_event(1);
  put(kPod, "default", "db-0", R"(,"uid":"new")", R"(,"spec":{"nodeName":"pi"},"status":{"phase":"Running"})");
  pass(std::chrono::seconds(45));
  ObjectPtr pod = client.find(kPod, {"default", "db-0"});
  ASSERT_TRUE(pod);
  EXPECT_EQ(get_string(pod->json(), "status.phase"), "Running");
}

TEST_F(HousekeepingTest, a_pod_that_somebody_changed_meanwhile_is_marked_all_the_same) {
  start();
  client.fail(1, Error(Code::conflict, "somebody was faster"), "patch pods");
  put(kPod, "default", "held",
      R"(,"uid":"h","finalizers":["test/held"],"deletionTimestamp":")" + format_time(clock.now()) + R"(")",
      R"(,"spec":{},"status":{"phase":"Pending"})");
  pass(std::chrono::seconds(5));
  EXPECT_EQ(get_string(client.find(kPod, {"default", "held"})->json(), "status.phase"), "Failed")
      << "who holds it waits for its end";
}

TEST_F(HousekeepingTest, events_last_an_hour_since_they_were_last_seen) {
  auto put_event = [&](const char* name) {
    put(kEvent, "default", name, R"(,"creationTimestamp":")" + format_time(clock.now()) + "\"",
        R"(,"lastTimestamp":")" + format_time(clock.now()) + "\"");
  };
  put_event("early");
  start();
  clock.advance(std::chrono::minutes(40));
  put_event("late");
  settle();
  clock.advance(std::chrono::minutes(21));
  settle();
  EXPECT_FALSE(client.find(kEvent, {"default", "early"}));
  EXPECT_TRUE(client.find(kEvent, {"default", "late"}));
  clock.advance(std::chrono::minutes(40));
  settle();
  EXPECT_FALSE(client.find(kEvent, {"default", "late"}));
}

TEST_F(HousekeepingTest, events_last_an_hour_whatever_the_clock_says) {
  auto put_event = [&](const std::string& name) {
    put(kEvent, "default", name, R"(,"creationTimestamp":")" + format_time(clock.now()) + "\"",
        R"(,"lastTimestamp":")" + format_time(clock.now()) + "\"");
    settle();
  };
  auto jump = [&](int64_t to) { clock.set(WallTime(std::chrono::seconds(to))); };
  jump(100);
  start();
  put_event("early");
  clock.advance(std::chrono::minutes(40));
  jump(1'800'000'000);  // the network is available
  put_event("late");
  clock.advance(std::chrono::minutes(10));
  settle();
  EXPECT_TRUE(client.find(kEvent, {"default", "early"}));
  jump(1'700'000'000);
  clock.advance(std::chrono::minutes(11));
  settle();
  EXPECT_FALSE(client.find(kEvent, {"default", "early"}));
  EXPECT_TRUE(client.find(kEvent, {"default", "late"}));
  clock.advance(std::chrono::minutes(40));
  settle();
  EXPECT_FALSE(client.find(kEvent, {"default", "late"}));
}

TEST_F(HousekeepingTest, of_too_many_events_the_oldest_go) {
  start();
  for (int i = 0; i < 2001; ++i) {
    put(kEvent, "default", "e" + std::to_string(i), R"(,"creationTimestamp":")" + format_time(clock.now()) + "\"");
    client.settle();
    clock.advance(std::chrono::milliseconds(1));
  }
  settle();
  EXPECT_EQ(count(kEvent), 1800u);
  EXPECT_FALSE(client.find(kEvent, {"default", "e200"}));
  EXPECT_TRUE(client.find(kEvent, {"default", "e201"}));
  EXPECT_TRUE(client.find(kEvent, {"default", "e2000"}));
}

TEST_F(HousekeepingTest, of_too_large_events_the_oldest_go) {
  start();
  std::string message(9000, 'x');
  size_t bytes = 0, before = 0;
  auto put_event = [&](int i) {
    put(kEvent, "default", "e" + std::to_string(1000 + i), R"(,"creationTimestamp":")" + format_time(clock.now()) + "\"",
        R"(,"message":")" + message + "\"");
    settle();
    clock.advance(std::chrono::milliseconds(1));
  };
  auto there = [&] {
    size_t sum = 0;
    for (const ObjectPtr& event : client.all(kEvent)) sum += event->text().size();
    return sum;
  };
  int made = 0;
  for (; before <= bytes; ++made) before = bytes, put_event(made), bytes = there();  // until some have been removed
  EXPECT_GT(before, size_t(500) << 10);
  EXPECT_LE(bytes, (size_t(512) << 10) / 10 * 9);
  EXPECT_GT(bytes, size_t(440) << 10);
  EXPECT_FALSE(client.find(kEvent, {"default", "e1000"}));
  EXPECT_TRUE(client.find(kEvent, {"default", "e" + std::to_string(1000 + made - 1)}));
  // An event that is updated counts once.
  ObjectPtr last = client.all(kEvent).back();
  for (int i = 0; i < 100; ++i) {
    MUST(client.patch(kEvent, last->key(), PatchType::merge, {{"count", i}}));
    settle();
  }
  EXPECT_NEAR(double(there()), double(bytes), 1000.0);
}

}  // namespace
}  // namespace coracle::controller
