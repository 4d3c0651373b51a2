// SPDX-License-Identifier: Apache-2.0
// The flow schemas and priority levels that Kubernetes has by itself, the mandatory and the suggested ones, as their objects say
// it. Source: apiserver apis/flowcontrol/bootstrap/default.go.
#include "daemon/api/fairness.h"

namespace coracle::api {
namespace {

struct LevelRow {
  const char* name;
  int shares;  // -1: exempt
  int lendable_percent;
  int queues, hand_size;  // 0: who finds no seat is refused
};
constexpr LevelRow kLevels[] = {
    {"exempt", -1, 0, 0, 0},          {"catch-all", 5, 0, 0, 0},         {"system", 30, 33, 64, 6},
    {"node-high", 40, 25, 64, 6},     {"leader-election", 10, 0, 16, 4}, {"workload-high", 40, 50, 128, 6},
    {"workload-low", 100, 90, 128, 6}, {"global-default", 20, 50, 128, 6},
};

struct SchemaRow {
  const char *name, *level;
  int precedence;
  const char* distinguisher;  // "" = none
  const char* rules;          // JSON
};

constexpr SchemaRow kSchemas[] = {
    {"exempt", "exempt", 1, "",
     R"([{"subjects":[{"kind":"Group","group":{"name":"system:masters"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
          "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])"},
    {"probes", "exempt", 2, "",
     R"([{"subjects":[{"kind":"Group","group":{"name":"system:unauthenticated"}},{"kind":"Group","group":{"name":"system:authenticated"}}],
          "nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/healthz","/readyz","/livez"]}]}])"},
    {"system-leader-election", "leader-election", 100, "ByUser",
     R"([{"subjects":[{"kind":"User","user":{"name":"system:kube-controller-manager"}},{"kind":"User","user":{"name":"system:kube-scheduler"}},
                      {"kind":"ServiceAccount","serviceAccount":{"name":"*","namespace":"kube-system"}}],
          "resourceRules":[{"verbs":["get","create","update"],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"namespaces":["*"]}]}])"},
    {"system-node-high", "node-high", 400, "ByUser",
     R"([{"subjects":[{"kind":"Group","group":{"name":"system:nodes"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":[""],"resources":["nodes","nodes/status"],"clusterScope":true,"namespaces":["*"]},
                           {"verbs":["*"],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"namespaces":["*"]}]}])"},
    {"system-nodes", "system", 500, "ByUser",
     R"([{"subjects":[{"kind":"Group","group":{"name":"system:nodes"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
          "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])"},
    {"kube-controller-manager", "workload-high", 800, "ByNamespace",
     R"([{"subjects":[{"kind":"User","user":{"name":"system:kube-controller-manager"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
          "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])"},
    {"kube-scheduler", "workload-high", 800, "ByNamespace",
     R"([{"subjects":[{"kind":"User","user":{"name":"system:kube-scheduler"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
          "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])"},
    {"kube-system-service-accounts", "workload-high", 900, "ByNamespace",
     R"([{"subjects":[{"kind":"ServiceAccount","serviceAccount":{"name":"*","namespace":"kube-system"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
          "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])"},
    {"service-accounts", "workload-low", 9000, "ByUser",
     R"([{"subjects":[{"kind":"Group","group":{"name":"system:serviceaccounts"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
          "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])"},
    {"global-default", "global-default", 9900, "ByUser",
     R"([{"subjects":[{"kind":"Group","group":{"name":"system:unauthenticated"}},{"kind":"Group","group":{"name":"system:authenticated"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
          "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])"},
    {"catch-all", "catch-all", 10000, "ByUser",
     R"([{"subjects":[{"kind":"Group","group":{"name":"system:unauthenticated"}},{"kind":"Group","group":{"name":"system:authenticated"}}],
          "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
          "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])"},
};

// Kept as it is here when the program is newer, unless somebody says otherwise.
json::object metadata(const char* name) {
  return {{"name", name}, {"annotations", json::object{{"apf.kubernetes.io/autoupdate-spec", "true"}}}};
}

json::value level_object(const LevelRow& row) {
  json::object spec{{"type", row.shares < 0 ? "Exempt" : "Limited"}};
  if (row.shares < 0) {
    spec["exempt"] = json::object{{"nominalConcurrencyShares", 0}, {"lendablePercent", 0}};
  } else {
    json::object response{{"type", row.queues > 0 ? "Queue" : "Reject"}};
    if (row.queues > 0) response["queuing"] = json::object{{"queues", row.queues}, {"handSize", row.hand_size}, {"queueLengthLimit", 50}};
    spec["limited"] = json::object{{"nominalConcurrencyShares", row.shares}, {"lendablePercent", row.lendable_percent}, {"limitResponse", std::move(response)}};
  }
  return json::object{{"apiVersion", "flowcontrol.apiserver.k8s.io/v1"}, {"kind", "PriorityLevelConfiguration"},
                      {"metadata", metadata(row.name)}, {"spec", std::move(spec)}};
}

json::value schema_object(const SchemaRow& row) {
  json::object spec{{"priorityLevelConfiguration", json::object{{"name", row.level}}}, {"matchingPrecedence", row.precedence}};
  if (*row.distinguisher) spec["distinguisherMethod"] = json::object{{"type", row.distinguisher}};
  spec["rules"] = MUST(parse_json(row.rules));
  return json::object{{"apiVersion", "flowcontrol.apiserver.k8s.io/v1"}, {"kind", "FlowSchema"},
                      {"metadata", metadata(row.name)}, {"spec", std::move(spec)}};
}

}  // namespace

FlowRules standard_rules() {
  FlowRules rules;
  for (const LevelRow& row : kLevels) rules.levels.push_back(level_object(row));
  for (const SchemaRow& row : kSchemas) rules.schemas.push_back(schema_object(row));
  return rules;
}

}  // namespace coracle::api
