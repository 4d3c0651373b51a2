// SPDX-License-Identifier: Apache-2.0
// What roles and bindings lack of what files say; auth's commands against a server.
#include "ctl/auth.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

std::vector<PolicyRule> rules(const char* text) { return policy_rules_of(MUST(parse_json(text)).get_array()); }

std::string shown(const std::vector<PolicyRule>& all) {
  std::string text;
  for (const auto& rule : all)
    text +=
        resource_and_group(rule) + go_list(rule.non_resource_urls) + go_list(rule.resource_names) + go_list(rule.verbs) + "\n";
  return text;
}

TEST(PolicyRules, are_compacted_and_sorted_as_kubectl_prints_them) {
  EXPECT_EQ(shown(compacted(rules(R"([
    {"verbs":["get","list"],"apiGroups":[""],"resources":["pods","pods/log"]},
    {"verbs":["watch"],"apiGroups":[""],"resources":["pods"]},
    {"verbs":["get"],"apiGroups":["apps"],"resources":["deployments/scale"],"resourceNames":["web"]},
    {"verbs":["get"],"nonResourceURLs":["/healthz","/version"]}])"))),
            "pods[][][get list watch]\n"
            "pods/log[][][get list]\n"
            "[/healthz][][get]\n"
            "[/version][][get]\n"
            "deployments.apps/scale[][web][get]\n");
}

TEST(PolicyRules, say_what_one_set_lacks_of_another) {
  struct Row {
    const char *had, *wanted;
    size_t lacking;
  };
  for (const Row& row : {
           Row{R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}])",
               R"([{"verbs":["get"],"apiGroups":["apps"],"resources":["deployments"],"resourceNames":["a"]}])", 0},
           Row{R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]}])",
               R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])", 1},
           Row{R"([{"verbs":["get"],"apiGroups":[""],"resources":["*/log"]}])",
               R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods/log","pods"]}])", 1},
           Row{R"([{"verbs":["get"],"nonResourceURLs":["/logs/*"]}])",
               R"([{"verbs":["get"],"nonResourceURLs":["/logs/a","/x"]}])", 1},
           Row{R"([])", R"([{"verbs":["get","list"],"apiGroups":["","apps"],"resources":["a","b"]}])", 8},
       })
    EXPECT_EQ(uncovered(rules(row.had), rules(row.wanted)).size(), row.lacking) << row.had << row.wanted;
}

constexpr const char* kRole =
    R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","labels":{"a":"1"}},)"
    R"("rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})";

TEST(Reconcile, gives_a_role_what_it_lacks) {
  json::value expected = *parse_json(kRole);
  Reconciliation plan = reconcile_role({}, expected, false);
  EXPECT_EQ(plan.operation, Reconciliation::Operation::create);
  EXPECT_EQ(plan.missing_rules.size(), 1u);
  json::value existing = *parse_json(
      R"({"metadata":{"name":"r","labels":{"a":"own"}},"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]})");
  plan = reconcile_role(existing, expected, false);
  EXPECT_EQ(plan.operation, Reconciliation::Operation::update);
  EXPECT_EQ(get_array(plan.object, "rules").size(), 2u);
  EXPECT_EQ(get_string(plan.object, "metadata.labels.a"), "own") << "what is there stays";
  plan = reconcile_role(existing, expected, true);
  EXPECT_EQ(get_array(plan.object, "rules"), get_array(expected, "rules"));
  EXPECT_EQ(go_text(plan.extra_rules.at(0)), "{Verbs:[list] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}");
  plan = reconcile_role(expected, expected, true);
  EXPECT_EQ(plan.operation, Reconciliation::Operation::none);
  make(existing, "metadata.annotations") = json::object{{"rbac.authorization.kubernetes.io/autoupdate", "false"}};
  EXPECT_TRUE(reconcile_role(existing, expected, false).is_protected);
}

TEST(Reconcile, gathers_rules_of_other_roles) {
  json::value expected = *parse_json(R"({"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"1"}}]}})"),
              existing = *parse_json(R"({"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"b":"1"}}]}})");
  EXPECT_EQ(get_array(reconcile_role(existing, expected, false).object, "aggregationRule.clusterRoleSelectors").size(), 2u);
  EXPECT_EQ(reconcile_role(existing, expected, true).object, expected);
  Reconciliation plan = reconcile_role(existing, *parse_json(R"({"rules":[]})"), false);
  EXPECT_EQ(plan.operation, Reconciliation::Operation::update);
  EXPECT_FALSE(find(plan.object, "aggregationRule"));
}

TEST(Reconcile, gives_a_binding_whom_it_lacks) {
  auto binding = [](const std::string& role, const std::string& subjects) {
    return *parse_json(R"({"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":")" +
                       role + R"("},"subjects":[)" + subjects + "]}");
  };
  const std::string jane = R"({"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"jane"})",
                    short_jane = R"({"kind":"User","name":"jane"})",
                    bot = R"({"kind":"ServiceAccount","name":"bot","namespace":"n"})";
  EXPECT_EQ(reconcile_binding(binding("r", jane), binding("r", short_jane), true).operation, Reconciliation::Operation::none)
      << "the group goes without saying";
  Reconciliation plan = reconcile_binding(binding("r", jane), binding("r", bot), false);
  EXPECT_EQ(get_array(plan.object, "subjects").size(), 2u);
  plan = reconcile_binding(binding("r", jane), binding("r", bot), true);
  EXPECT_EQ(get_array(plan.object, "subjects").size(), 1u);
  EXPECT_EQ(plan.extra_subjects.size(), 1u);
  EXPECT_EQ(reconcile_binding(binding("r", jane), binding("other", jane), false).operation, Reconciliation::Operation::recreate);
}

class AuthCommands : public testing::Test {
 protected:
  AuthCommands() {
    std::ofstream(path_) << kRole << "\n---\n"
                         << R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}})";
  }
  ~AuthCommands() override { std::filesystem::remove(path_); }
  FakeApi api_;
  std::string path_ = testing::TempDir() + "/auth-test-" + std::to_string(::getpid()) + ".yaml";
};

TEST_F(AuthCommands, reconcile_creates_then_leaves_alone) {
  auto tried = api_.run({"auth", "reconcile", "-f", path_, "--dry-run=client"});
  EXPECT_EQ(tried.out, "role.rbac.authorization.k8s.io/r reconciled (dry run)\n");
  EXPECT_TRUE(api_.take_writes().empty());
  auto made = api_.run({"auth", "reconcile", "-f", path_});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "role.rbac.authorization.k8s.io/r reconciled\n");
  EXPECT_EQ(made.err,
            "\treconciliation required create\n\tmissing rules added:\n"
            "\t\t{Verbs:[get] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}\n");
  api_.take_writes();
  auto again = api_.run({"auth", "reconcile", "-f", path_});
  EXPECT_EQ(again.err, "");
  EXPECT_TRUE(api_.take_writes().empty());
  EXPECT_EQ(api_.run({"auth", "reconcile", "-f", path_, "--dry-run=server"}).code, 1);
  EXPECT_EQ(api_.run({"auth", "reconcile"}).code, 1);
}

TEST_F(AuthCommands, reconcile_reads_again_what_others_changed) {
  api_.put("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/r",
           R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"default"}})");
  api_.refuse_writes(Error(Code::conflict, "it was changed").with({}));
  auto outcome = api_.run({"auth", "reconcile", "-f", path_});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "Error from server (Conflict): it was changed\n");
  EXPECT_EQ(api_.take_writes().size(), 3u);
}

TEST_F(AuthCommands, can_i_asks_of_the_right_resource) {
  auto asked = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"auth", "can-i"});
    api_.reset({});  // it keeps reviews as if they were objects
    auto outcome = api_.run(words);
    auto writes = api_.take_writes();
    return outcome.out + outcome.err + (writes.empty() ? "" : to_sorted_text(*find(writes.back().body, "spec")));
  };
  EXPECT_EQ(asked({"get", "deploy/web", "--subresource=scale"}),
            R"(no
{"resourceAttributes":{"group":"apps","name":"web","namespace":"default","resource":"deployments","subresource":"scale","verb":"get"}})");
  EXPECT_EQ(asked({"list", "po", "-A", "-q"}), R"({"resourceAttributes":{"resource":"pods","verb":"list"}})");
  EXPECT_EQ(asked({"get", "/logs/"}),
            "no\n"
            R"({"nonResourceAttributes":{"path":"/logs/","verb":"get"}})");
  EXPECT_EQ(asked({"gte", "nodes"}),
            "no\nWarning: resource 'nodes' is not namespace scoped\n\nWarning: verb 'gte' is not a known verb\n\n"
            R"({"resourceAttributes":{"namespace":"default","resource":"nodes","verb":"gte"}})");
  EXPECT_EQ(asked({"gte", "nodes", "-A"}),
            "no\n"
            R"({"resourceAttributes":{"resource":"nodes","verb":"gte"}})")
      << "kubectl warns only of a namespace's";
  EXPECT_EQ(asked({"get"}),
            "error: you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'coraclectl auth can-i -h' "
            "for help and examples.\n");
  EXPECT_EQ(asked({"--list", "-A"}),
            "error: list option can't be specified with neither quiet, all-namespaces nor subresource options\n");
  EXPECT_EQ(asked({"get", "/x", "--subresource", "y"}), "error: --subresource can not be used with NonResourceURL\n");
}

TEST_F(AuthCommands, raw_requests_go_out_as_they_are) {
  std::ofstream(path_) << R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"}})";
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  EXPECT_EQ(api_.run({"create", "--raw", maps, "-f", path_}).code, 0);
  EXPECT_TRUE(api_.objects().contains(maps + "/raw"));
  auto got = api_.run({"get", "--raw", maps + "/raw"});
  EXPECT_TRUE(got.out.starts_with(R"({"apiVersion":"v1")")) << got.out;
  EXPECT_EQ(api_.run({"replace", "--raw", maps + "/raw", "-f", path_}).code, 0);
  EXPECT_EQ(api_.run({"delete", "--raw", maps + "/raw"}).code, 0);
  EXPECT_FALSE(api_.objects().contains(maps + "/raw"));
  EXPECT_EQ(api_.run({"get", "--raw", maps + "/raw"}).code, 1);
  EXPECT_EQ(api_.run({"get", "--raw", "nowhere"}).err,
            "error: --raw must be a valid URL path: parse \"nowhere\": invalid URI for request\n");
  EXPECT_EQ(api_.run({"create", "--raw", maps}).err, "error: must specify one of -f and -k\n");
  EXPECT_EQ(api_.run({"create", "--raw", maps, "-f", path_, "-f", path_}).err,
            "error: --raw can only use a single local file or stdin\n");
  EXPECT_EQ(api_.run({"get", "--raw", maps, "-w"}).code, 1);
  EXPECT_EQ(api_.run({"get", "pods", "--raw", maps}).err, "error: arguments may not be passed when --raw is specified\n");
}

}  // namespace
}  // namespace coracle::ctl
