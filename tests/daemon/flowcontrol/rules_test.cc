// SPDX-License-Identifier: Apache-2.0
// Matching requests to flow schemas, with the rules of a new server and with others.
#include "daemon/flowcontrol/rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "store/kinds/flowcontrol/flow_defaults.h"
#include "tests/daemon/flowcontrol/user.h"

namespace coracle::flowcontrol {
namespace {

auth::Attributes on(const std::string& verb, const std::string& resource, const std::string& group = {},
                    const std::string& ns = "default") {
  auth::Attributes attributes;
  attributes.verb = verb, attributes.resource = resource, attributes.group = group, attributes.ns = ns;
  return attributes;
}

auth::Attributes at(const std::string& path) {
  auth::Attributes attributes;
  attributes.verb = "get", attributes.path = path, attributes.is_resource = false;
  return attributes;
}

std::vector<SchemaRule> initial() {
  std::vector<SchemaRule> out;
  for (const json::value& object : schema::initial_flow_objects(kFlowSchema)) out.emplace_back(view::FlowSchema(object));
  std::sort(out.begin(), out.end());
  return out;
}

SchemaRule rule(const std::string& name, const std::string& spec) {
  json::value object = MUST(
      parse_json(R"({"metadata":{"name":")" + name + R"("},"spec":{"priorityLevelConfiguration":{"name":"l"},)" + spec + "}}"));
  return SchemaRule(view::FlowSchema(object));
}

SchemaRules shared(std::vector<SchemaRule> schemas) {
  return std::make_shared<const std::vector<SchemaRule>>(std::move(schemas));
}

TEST(FlowRules, the_initial_ones_know_who_is_who) {
  std::vector<SchemaRule> schemas = initial();
  struct Row {
    User who;
    auth::Attributes what;
    const char *schema, *level, *distinguisher;
  };
  const std::vector<std::string> accounts = {"system:serviceaccounts", "system:serviceaccounts:x", "system:authenticated"};
  for (const Row& row : {
           Row{user("admin", {"system:masters", "system:authenticated"}), on("list", "pods"), "exempt", "exempt", ""},
           Row{user("system:anonymous", {"system:unauthenticated"}), at("/readyz"), "probes", "exempt", ""},
           Row{user("system:anonymous", {"system:unauthenticated"}), at("/readyz/ping"), "probes", "exempt", ""},
           Row{user("system:anonymous", {"system:unauthenticated"}), at("/version"), "global-default", "global-default",
               "system:anonymous"},
           Row{user("system:node:a", {"system:nodes", "system:authenticated"}), on("update", "leases", "coordination.k8s.io"),
               "system-node-high", "node-high", "system:node:a"},
           Row{user("system:node:a", {"system:nodes", "system:authenticated"}), on("list", "pods"), "system-nodes", "system",
               "system:node:a"},
           Row{user("system:serviceaccount:x:y", accounts), on("list", "pods"), "service-accounts", "workload-low",
               "system:serviceaccount:x:y"},
           Row{user("system:serviceaccount:kube-system:y", accounts), on("update", "leases", "coordination.k8s.io"),
               "system-leader-election", "leader-election", "system:serviceaccount:kube-system:y"},
           Row{user("system:serviceaccount:kube-system:y", accounts), on("list", "pods"), "kube-system-service-accounts",
               "workload-high", "default"},
           Row{user("system:kube-scheduler", {"system:authenticated"}), on("list", "pods", "", "a"), "kube-scheduler",
               "workload-high", "a"},
           Row{user("jane", {"system:authenticated"}), on("create", "configmaps"), "global-default", "global-default", "jane"},
           Row{user("jane", {"system:authenticated"}), on("get", "nodes", "", ""), "global-default", "global-default", "jane"},
           Row{user("nobody", {}), on("get", "pods"), "catch-all", "catch-all", "nobody"},
       }) {
    Classified found = classify(shared(schemas), row.who, row.what);
    EXPECT_EQ(found.schema(), row.schema) << row.who.name;
    EXPECT_EQ(found.level(), row.level) << row.who.name;
    EXPECT_EQ(found.flow(), hash_flow(row.schema, row.distinguisher)) << row.who.name;
  }
  EXPECT_EQ(classify(shared({}), user("jane", {}), on("get", "pods")).schema(), "");
}

TEST(FlowRules, the_lower_precedence_comes_first_then_the_name) {
  const std::string all =
      R"(,"rules":[{"subjects":[{"kind":"Group","group":{"name":"*"}}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])";
  std::vector<SchemaRule> schemas{rule("b", R"("matchingPrecedence":5)" + all), rule("a", R"("matchingPrecedence":5)" + all),
                                  rule("z", R"("matchingPrecedence":4)" + all)};
  std::sort(schemas.begin(), schemas.end());
  EXPECT_EQ(schemas[0].name, "z");
  EXPECT_EQ(schemas[1].name, "a");
  EXPECT_EQ(classify(shared(schemas), user("jane", {}), at("/x")).schema(), "z");
}

TEST(FlowRules, each_part_of_a_rule_counts) {
  SchemaRule schema = rule(
      "s",
      R"("rules":[{"subjects":[{"kind":"User","user":{"name":"jane"}},{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"a"}}],
      "resourceRules":[{"verbs":["get"],"apiGroups":["apps"],"resources":["deployments","deployments/scale"],"namespaces":["n"]},
                       {"verbs":["list"],"apiGroups":[""],"resources":["nodes"],"clusterScope":true}],
      "nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/metrics","/logs/*"]}]}])");
  struct Row {
    const char* name;
    User who;
    auth::Attributes what;
    bool want;
  };
  auth::Attributes scale = on("get", "deployments", "apps", "n"), status = scale;
  scale.subresource = "scale", status.subresource = "status";
  User jane = user("jane", {});
  for (const Row& row : {
           Row{"all of it", jane, on("get", "deployments", "apps", "n"), true},
           Row{"another subject", user("system:serviceaccount:n:a", {}), on("get", "deployments", "apps", "n"), true},
           Row{"nobody of them", user("system:serviceaccount:m:a", {}), on("get", "deployments", "apps", "n"), false},
           Row{"another verb", jane, on("list", "deployments", "apps", "n"), false},
           Row{"another group", jane, on("get", "deployments", "", "n"), false},
           Row{"another namespace", jane, on("get", "deployments", "apps", "m"), false},
           Row{"all namespaces", jane, on("get", "deployments", "apps", ""), false},
           Row{"a subresource that is named", jane, scale, true},
           Row{"one that is not", jane, status, false},
           Row{"of the cluster", jane, on("list", "nodes", "", ""), true},
           Row{"a path", jane, at("/metrics"), true},
           Row{"below a path", jane, at("/logs/a/b"), true},
           Row{"beside a path", jane, at("/logsabit"), false},
       })
    EXPECT_EQ(schema.matches(row.who, row.what), row.want) << row.name;
}

TEST(FlowRules, levels_are_read_with_their_defaults) {
  LevelRule level = read_level(MUST(parse_json(
      R"({"metadata":{"name":"l","uid":"u"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Queue"}}}})")));
  EXPECT_EQ(level.uid, "u");
  EXPECT_EQ(level.shares.shares, 30);
  EXPECT_FALSE(level.shares.borrowing_percent);
  EXPECT_EQ(level.queues.queues, 64);
  EXPECT_EQ(level.queues.hand_size, 8);
  EXPECT_EQ(level.queues.length_limit, 50);
  level = read_level(MUST(parse_json(
      R"({"metadata":{"name":"l"},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":0,"lendablePercent":10,"borrowingLimitPercent":0,
      "limitResponse":{"type":"Reject"}}}})")));
  EXPECT_EQ(level.shares.shares, 0);
  EXPECT_EQ(level.shares.borrowing_percent, 0);
  EXPECT_EQ(level.queues.queues, 0);
  level = read_level(MUST(parse_json(
      R"({"metadata":{"name":"exempt"},"spec":{"type":"Exempt","exempt":{"nominalConcurrencyShares":5,"lendablePercent":50}}})")));
  EXPECT_TRUE(level.queues.unlimited);
  EXPECT_EQ(level.shares.shares, 5);
  EXPECT_EQ(level.shares.lendable_percent, 50);
}

}  // namespace
}  // namespace coracle::flowcontrol
