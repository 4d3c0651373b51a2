// SPDX-License-Identifier: Apache-2.0
// The pods that a drain evicts, and changes of taints.
#include "ctl/node.h"

#include <gtest/gtest.h>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

json::value pod(const std::string& name, const std::string& owner = "", bool empty_dir = false,
                const std::string& phase = "Running", bool mirror = false) {
  json::value pod =
      json::object{{"metadata", {{"name", name}, {"namespace", "d"}}}, {"status", {{"phase", phase}}}, {"spec", json::object()}};
  if (!owner.empty())
    make(pod, "metadata.ownerReferences") =
        json::array{json::object{{"apiVersion", "apps/v1"}, {"kind", owner}, {"name", "set"}, {"controller", true}}};
  if (empty_dir) make(pod, "spec.volumes") = json::array{json::object{{"name", "x"}, {"emptyDir", json::object()}}};
  if (mirror) make(pod, "metadata.annotations").emplace_object()["kubernetes.io/config.mirror"] = "1";
  return pod;
}

std::vector<std::string> names(const DrainPlan& plan) {
  std::vector<std::string> list;
  for (const auto* one : plan.evict) list.emplace_back(get_string(*one, "metadata.name"));
  return list;
}

TEST(Drain, takes_what_its_rules_allow) {
  std::vector<json::value> pods = {pod("web", "ReplicaSet"),
                                   pod("static", "Node", false, "Running", true),
                                   pod("agent", "DaemonSet"),
                                   pod("alone"),
                                   pod("cache", "ReplicaSet", true),
                                   pod("done", "", true, "Succeeded"),
                                   pod("old-agent", "DaemonSet", false, "Failed")};
  DrainPlan plan = plan_drain(pods, {});
  EXPECT_EQ(plan.refusals,
            (std::vector<std::string>{"cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): d/agent",
                                      "cannot delete Pods with local storage (use --delete-emptydir-data to override): d/cache",
                                      "cannot delete Pods that declare no controller (use --force to override): d/alone"}));
  EXPECT_TRUE(plan.warnings.empty());
  plan = plan_drain(pods, {.force = true, .ignore_daemonsets = true, .delete_emptydir_data = true});
  EXPECT_TRUE(plan.refusals.empty());
  EXPECT_EQ(plan.warnings, (std::vector<std::string>{"ignoring DaemonSet-managed Pods: d/agent",
                                                     "deleting Pods that declare no controller: d/alone"}))
      << "kubectl says nothing of local storage that may go";
  EXPECT_EQ(names(plan), (std::vector<std::string>{"web", "alone", "cache", "done", "old-agent"}));
  plan = plan_drain({pods[0]}, {});
  EXPECT_TRUE(plan.refusals.empty() && plan.warnings.empty());
}

TEST(Drain, refuses_a_pod_for_one_reason) {
  DrainPlan plan = plan_drain({pod("both", "", true)}, {});
  EXPECT_EQ(plan.refusals,
            (std::vector<std::string>{"cannot delete Pods with local storage (use --delete-emptydir-data to override): d/both"}));
  plan = plan_drain({pod("both", "", true)}, {.delete_emptydir_data = true});
  EXPECT_EQ(plan.refusals,
            (std::vector<std::string>{"cannot delete Pods that declare no controller (use --force to override): d/both"}));
  plan = plan_drain({pod("both", "", true)}, {.force = true});
  EXPECT_EQ(plan.refusals.size(), 1u);
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(Drain, knows_pods_whose_daemon_set_is_gone) {
  const std::vector<json::value> pods = {pod("agent", "DaemonSet"), pod("old-agent", "DaemonSet", false, "Failed")};
  EXPECT_EQ(daemon_set_of(pods[0]), "d/set");
  EXPECT_EQ(daemon_set_of(pods[1]), "") << "it has ended";
  EXPECT_EQ(daemon_set_of(pod("web", "ReplicaSet")), "");
  LostDaemonSets gone{{"d/set", {"daemonsets.apps \"set\" not found", true}}}, unread{{"d/set", {"not for you", false}}};
  for (bool ignores : {false, true})
    EXPECT_EQ(plan_drain(pods, {.ignore_daemonsets = ignores}, gone).refusals,
              (std::vector<std::string>{"cannot delete daemonsets.apps \"set\" not found: d/agent"}));
  DrainPlan forced = plan_drain(pods, {.force = true}, gone);
  EXPECT_EQ(names(forced), (std::vector<std::string>{"agent", "old-agent"}));
  EXPECT_TRUE(forced.refusals.empty() && forced.warnings.empty());
  EXPECT_EQ(plan_drain(pods, {.force = true}, unread).refusals, (std::vector<std::string>{"cannot delete not for you: d/agent"}));
}

TEST(Taint, reads_what_people_write) {
  struct Row {
    const char* text;
    TaintChange want;
  };
  for (const Row& row :
       {Row{"a=b:NoSchedule", {"a", "b", "NoSchedule", false}}, Row{"a:NoExecute", {"a", "", "NoExecute", false}},
        Row{"a-", {"a", "", "", true}}, Row{"x.io/a:PreferNoSchedule-", {"x.io/a", "", "PreferNoSchedule", true}},
        Row{"a=b:NoSchedule-", {"a", "b", "NoSchedule", true}}}) {
    auto got = parse_taint(row.text);
    ASSERT_TRUE(got) << row.text;
    EXPECT_EQ(std::tie(got->key, got->value, got->effect, got->remove),
              std::tie(row.want.key, row.want.value, row.want.effect, row.want.remove))
        << row.text;
  }
  for (const char* text : {"a", "a=b", "a:Nope", ":NoSchedule", "-", "=b:NoSchedule", "a b:NoSchedule", "a=b=c:NoSchedule"})
    EXPECT_FALSE(parse_taint(text)) << text;
}

TEST(Taint, refuses_contradictions_and_what_is_said_twice) {
  auto check = [](std::vector<const char*> texts) -> std::string {
    std::vector<TaintChange> changes;
    for (const char* text : texts) changes.push_back(*parse_taint(text));
    auto checked = check_taints(changes);
    return checked ? "" : checked.error().text();
  };
  EXPECT_EQ(check({"a=b:NoSchedule", "a=b:NoExecute", "c-"}), "");
  EXPECT_EQ(check({"a:NoSchedule-", "a=b:NoExecute"}), "");
  EXPECT_EQ(check({"a=b:NoSchedule", "a-"}), "can not both modify and remove the following taint(s) in the same command: a=");
  EXPECT_EQ(check({"a=b:NoSchedule", "a=c:NoSchedule"}), "duplicated taints with the same key and effect: a:NoSchedule");
  EXPECT_EQ(parse_taint("a=b:Never").error().text(),
            "invalid taint effect: Never, unsupported taint effect; there are NoSchedule, PreferNoSchedule and NoExecute");
  EXPECT_EQ(parse_taint("a=b:c:d").error().text(), "invalid taint spec: a=b:c:d");
}

TEST(Taint, changes_a_list) {
  json::array before =
      parse_json(R"([{"key":"a","value":"1","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}])")->as_array();
  auto change = [&](std::vector<const char*> texts, bool overwrite = false) {
    std::vector<TaintChange> changes;
    for (const char* text : texts) changes.push_back(*parse_taint(text));
    return change_taints(before, changes, overwrite, "edge");
  };
  auto added = change({"b=2:NoSchedule"});
  ASSERT_TRUE(added);
  EXPECT_EQ(added->taints.size(), 3u);
  EXPECT_TRUE(added->added && !added->removed);
  auto removed = change({"a-"});
  ASSERT_TRUE(removed);
  EXPECT_TRUE(removed->taints.empty() && removed->removed);
  EXPECT_EQ(change({"a:NoExecute-"})->taints.size(), 1u);
  auto refused = change({"a=9:NoSchedule"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "node edge already has a taint(s) with same effect(s) and --overwrite is false");
  auto replaced = change({"a=9:NoSchedule"}, true);
  ASSERT_TRUE(replaced);
  EXPECT_EQ(get_string(replaced->taints[0], "value"), "9");
  EXPECT_TRUE(replaced->added && replaced->removed);  // "modified"
  auto missing = change({"z-"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text(), "taint \"z\" not found");
}

// ---- the commands ----

class NodeCommandTest : public testing::Test {
 protected:
  NodeCommandTest() {
    api_.put("/api/v1/nodes/edge", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"edge"},"spec":{}})");
    put_pod("agent", R"(,"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","controller":true}])");
    api_.put("/apis/apps/v1/namespaces/default/daemonsets/d",
             R"({"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d","namespace":"default"}})");
    put_pod("lone", "");
  }
  void put_pod(const std::string& name, const std::string& owner) {
    api_.put("/api/v1/namespaces/default/pods/" + name,
             R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","uid":"u-)" + name + R"(","name":")" + name +
                 "\"" + owner + R"(},"spec":{"nodeName":"edge"},"status":{"phase":"Running"}})");
  }

  FakeApi api_;
};

TEST_F(NodeCommandTest, drain_says_why_pods_stay) {
  const std::string agent = "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/agent";
  const std::string lone = "cannot delete Pods that declare no controller (use --force to override): default/lone";
  FakeApi::Outcome outcome = api_.run({"drain", "edge"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "node/edge cordoned\n");
  EXPECT_EQ(outcome.err, "error: unable to drain node \"edge\" due to error: [" + agent + ", " + lone +
                             "], continuing command...\nThere are pending nodes to be drained:\n edge\n" + agent + "\n" + lone +
                             "\n");
  outcome = api_.run({"drain", "edge", "--ignore-daemonsets"});
  EXPECT_EQ(outcome.err, "error: unable to drain node \"edge\" due to error: " + lone +
                             ", continuing command...\nThere are pending nodes to be drained:\n edge\n" + lone + "\n");
}

TEST_F(NodeCommandTest, drain_says_what_becomes_of_pods) {
  const std::vector<std::string> words = {"drain", "edge", "--force", "--ignore-daemonsets", "--disable-eviction"};
  std::vector<std::string> tried = words;
  tried.push_back("--dry-run=client");
  FakeApi::Outcome outcome = api_.run(tried);
  EXPECT_EQ(outcome.out, "node/edge cordoned (dry run)\nevicting pod default/lone (dry run)\nnode/edge drained (dry run)\n");
  EXPECT_EQ(outcome.err,
            "Warning: ignoring DaemonSet-managed Pods: default/agent; deleting Pods that declare no controller: "
            "default/lone\n");
  outcome = api_.run(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "node/edge cordoned\npod/lone deleted\nnode/edge drained\n");
}

// What fails of one pod does not keep the others.
TEST_F(NodeCommandTest, drain_tries_all_pods) {
  api_.put("/api/v1/nodes/edge", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"edge"},"spec":{"unschedulable":true}})");
  put_pod("other", "");
  api_.refuse_writes(Error(Code::forbidden, "not today").with({}));
  FakeApi::Outcome outcome = api_.run({"drain", "edge", "--force", "--ignore-daemonsets"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "node/edge already cordoned\nevicting pod default/lone\nevicting pod default/other\n");
  const std::string lone = "error when evicting pods/\"lone\" -n \"default\": not today";
  const std::string other = "error when evicting pods/\"other\" -n \"default\": not today";
  const std::string both = "[" + lone + ", " + other + "]";
  EXPECT_EQ(outcome.err,
            "Warning: ignoring DaemonSet-managed Pods: default/agent; deleting Pods that declare no controller: default/lone, "
            "default/other\nThere are pending pods in node \"edge\" when an error occurred: " +
                both + "\npod/lone\npod/other\nerror: unable to drain node \"edge\" due to error: " + both +
                ", continuing command...\nThere are pending nodes to be drained:\n edge\n" + lone + "\n" + other + "\n");
  outcome = api_.run({"drain", "edge", "--force", "--ignore-daemonsets", "--disable-eviction"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.err.ends_with("There are pending nodes to be drained:\n edge\nError from server (Forbidden): not today\n"))
      << outcome.err;
}

TEST_F(NodeCommandTest, drain_looks_whether_there_is_a_daemon_set) {
  put_pod("orphan", R"(,"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"lost","controller":true}])");
  FakeApi::Outcome outcome = api_.run({"drain", "edge", "--ignore-daemonsets", "--pod-selector=none=none"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  outcome = api_.run({"drain", "edge", "--ignore-daemonsets"});
  EXPECT_NE(outcome.err.find("cannot delete daemonsets \"lost\" not found: default/orphan\n"), std::string::npos) << outcome.err;
  outcome = api_.run({"drain", "edge", "--ignore-daemonsets", "--force"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(api_.objects().contains("/api/v1/namespaces/default/pods/orphan"));
  EXPECT_TRUE(api_.objects().contains("/api/v1/namespaces/default/pods/agent"));
  auto writes = api_.take_writes();
  EXPECT_EQ(get_string(writes.back().body, "apiVersion"), "policy/v1");
}

// kubectl gets pods and lists them, so that is what who drains may do.
TEST_F(NodeCommandTest, drain_needs_no_watch) {
  const std::vector<std::string> words = {"drain", "edge", "--force", "--ignore-daemonsets", "--timeout=1s"};
  api_.forbid_watches();
  api_.hold("/api/v1/namespaces/default/pods/lone");
  FakeApi::Outcome outcome = api_.run(words);
  EXPECT_EQ(outcome.out, "node/edge cordoned\nevicting pod default/lone\n");
  EXPECT_TRUE(outcome.err.ends_with(
      "\nerror when waiting for pod \"lone\" in namespace \"default\" to terminate: context deadline exceeded\n"))
      << outcome.err;
  api_.refuse_writes(Error(Code::too_many_requests, "held").with({}));
  outcome = api_.run(words);
  EXPECT_EQ(outcome.out, "node/edge already cordoned\nevicting pod default/lone\nevicting pod default/lone\n")
      << "it is tried again when the delay is over";
  EXPECT_TRUE(outcome.err.ends_with("\nerror when evicting pods/\"lone\" -n \"default\": global timeout reached: 1s\n"))
      << outcome.err;
}

// One that does not end keeps nobody: those that a budget held are tried again, and those that have gone are told.
TEST_F(NodeCommandTest, drain_waits_for_each_pod_on_its_own) {
  const std::string pods = "/api/v1/namespaces/default/pods/";
  for (const char* name : {"held", "other"}) put_pod(name, "");
  for (const char* name : {"lone", "other"}) api_.hold(pods + name);
  api_.refuse_once(pods + "held/eviction", Error(Code::too_many_requests, "not yet").with({}));
  api_.answer_watches(R"({"type":"DELETED","object":{"kind":"Pod","metadata":{"name":"other","uid":"u-other"}}})"
                      "\n"
                      R"({"type":"DELETED","object":{"kind":"Pod","metadata":{"name":"held","uid":"u-held"}}})"
                      "\n");
  FakeApi::Outcome outcome = api_.run({"drain", "edge", "--force", "--ignore-daemonsets", "--timeout=1s"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out,
            "node/edge cordoned\nevicting pod default/held\nevicting pod default/lone\nevicting pod default/other\n"
            "pod/other evicted\nevicting pod default/held\npod/held evicted\n");
  EXPECT_NE(outcome.err.find("error when evicting pods/\"held\" -n \"default\" (will retry after 5s): not yet\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_TRUE(outcome.err.ends_with(
      "\nerror when waiting for pod \"lone\" in namespace \"default\" to terminate: context deadline exceeded\n"))
      << outcome.err;
  const std::vector<FakeApi::Sent> watches = api_.take_watches();
  ASSERT_FALSE(watches.empty());
  EXPECT_EQ(watches[0].path, "/api/v1/pods");
  EXPECT_EQ(watches[0].query.at("fieldSelector"), "spec.nodeName=edge");
  EXPECT_EQ(watches[0].query.at("timeoutSeconds"), "1");
}

// A server before 1.22 has evictions in policy/v1beta1 only, one before 1.8 says no version, and kubectl deletes there.
TEST_F(NodeCommandTest, drain_evicts_as_the_server_can) {
  struct Row {
    const char* resource;
    std::string_view want;
  };
  for (const Row& row : {Row{R"(,"group":"policy","version":"v1beta1","kind":"Eviction")", "policy/v1beta1"},
                         Row{R"(,"group":"policy","version":"v1","kind":"Eviction")", "policy/v1"}, Row{"", ""}}) {
    put_pod("lone", "");
    api_.put("/api/v1", R"({"resources":[{"name":"pods/eviction")" + std::string(row.resource) + "}]}");
    (void)api_.take_writes();
    FakeApi::Outcome outcome = api_.run({"drain", "edge", "--force", "--ignore-daemonsets"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const FakeApi::Sent sent = api_.take_writes().back();
    EXPECT_EQ(sent.method, row.want.empty() ? "DELETE" : "POST");
    EXPECT_EQ(get_string(sent.body, "apiVersion"), row.want.empty() ? "v1" : row.want) << to_text(sent.body);
  }
}

TEST_F(NodeCommandTest, drain_takes_nodes_only) {
  EXPECT_EQ(api_.run({"drain", "svc/x"}).err, "error: expected resource of type node, got \"/v1, Resource=services\"\n");
}

TEST_F(NodeCommandTest, a_node_that_is_missing_does_not_keep_others_from_their_taint) {
  FakeApi::Outcome outcome = api_.run({"taint", "nodes", "none", "edge", "k=v:NoSchedule"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "node/edge tainted\n");
  EXPECT_EQ(outcome.err, "Error from server (NotFound): nodes \"none\" not found\n");
}

}  // namespace
}  // namespace coracle::ctl
