// SPDX-License-Identifier: Apache-2.0
// See flow_defaults.h; also the defaults of the two kinds that depend on other fields.
#include "store/kinds/flowcontrol/flow_defaults.h"

#include "store/kinds/flowcontrol/flowcontrol_kinds.h"
#include "store/schema/catalog.h"
#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

// ---- priority levels ----

struct PriorityLevel {
  std::string_view name;
  int64_t shares, lendable, queues, hand;  // queues 0: reject requests that cannot run at once
};

constexpr PriorityLevel kLevels[] = {{"catch-all", 5, 0, 0, 0},         {"system", 30, 33, 64, 6},
                                     {"node-high", 40, 25, 64, 6},      {"leader-election", 10, 0, 16, 4},
                                     {"workload-high", 40, 50, 128, 6}, {"workload-low", 100, 90, 128, 6},
                                     {"global-default", 20, 50, 128, 6}};

json::object limited_spec(const PriorityLevel& level) {
  json::object response{{"type", level.queues ? "Queue" : "Reject"}};
  if (level.queues)
    response["queuing"] = json::object{{"queues", level.queues}, {"handSize", level.hand}, {"queueLengthLimit", 50}};
  return {{"type", "Limited"},
          {"limited", json::object{{"nominalConcurrencyShares", level.shares},
                                   {"lendablePercent", level.lendable},
                                   {"limitResponse", std::move(response)}}}};
}

// ---- flow schemas ----

json::object subject(std::string_view kind, std::string_view name) {
  if (kind == "ServiceAccount") {
    return {{"kind", kind}, {"serviceAccount", json::object{{"namespace", "kube-system"}, {"name", name}}}};
  }
  return {{"kind", kind}, {kind == "User" ? "user" : "group", json::object{{"name", name}}}};
}

json::array groups(std::initializer_list<std::string_view> names) {
  json::array out;
  for (std::string_view name : names) out.push_back(subject("Group", name));
  return out;
}

json::object on_objects(json::array verbs, std::string_view group, json::array resources, bool cluster) {
  json::object rule{{"verbs", std::move(verbs)}, {"apiGroups", json::array{group}}, {"resources", std::move(resources)}};
  if (cluster) rule["clusterScope"] = true;
  rule["namespaces"] = json::array{"*"};
  return rule;
}

json::object policy_rules(json::array subjects, json::array on_resources, json::array on_paths) {
  json::object out{{"subjects", std::move(subjects)}};
  if (!on_resources.empty()) out["resourceRules"] = std::move(on_resources);
  if (!on_paths.empty()) out["nonResourceRules"] = std::move(on_paths);
  return out;
}

json::object everything(json::array subjects) {
  return policy_rules(std::move(subjects), {on_objects(json::array{"*"}, "*", json::array{"*"}, true)},
                      {json::object{{"verbs", json::array{"*"}}, {"nonResourceURLs", json::array{"*"}}}});
}

json::object flow_spec(std::string_view level, int64_t precedence, std::string_view distinguisher, json::object rule) {
  json::object spec{{"priorityLevelConfiguration", json::object{{"name", level}}}, {"matchingPrecedence", precedence}};
  if (!distinguisher.empty()) spec["distinguisherMethod"] = json::object{{"type", distinguisher}};
  spec["rules"] = json::array{std::move(rule)};
  return spec;
}

struct Named {
  std::string_view name;
  json::object spec;
};

std::vector<Named> flow_schemas() {
  constexpr std::string_view kLeases = "coordination.k8s.io";
  json::array everybody = groups({"system:unauthenticated", "system:authenticated"});
  json::array leaders{subject("User", "system:kube-controller-manager"), subject("User", "system:kube-scheduler"),
                      subject("ServiceAccount", "*")};
  json::array node_objects{on_objects(json::array{"*"}, "", json::array{"nodes", "nodes/status"}, true),
                           on_objects(json::array{"*"}, kLeases, json::array{"leases"}, false)};
  json::object probe{{"verbs", json::array{"get"}}, {"nonResourceURLs", json::array{"/healthz", "/readyz", "/livez"}}};
  return {
      {"exempt", flow_spec("exempt", 1, "", everything(groups({"system:masters"})))},
      {"catch-all", flow_spec("catch-all", 10000, "ByUser", everything(everybody))},
      {"system-nodes", flow_spec("system", 500, "ByUser", everything(groups({"system:nodes"})))},
      {"system-node-high",
       flow_spec("node-high", 400, "ByUser", policy_rules(groups({"system:nodes"}), std::move(node_objects), {}))},
      {"probes", flow_spec("exempt", 2, "", policy_rules(everybody, {}, {std::move(probe)}))},
      {"system-leader-election",
       flow_spec("leader-election", 100, "ByUser",
                 policy_rules(std::move(leaders),
                              {on_objects(json::array{"get", "create", "update"}, kLeases, json::array{"leases"}, false)}, {}))},
      {"kube-controller-manager",
       flow_spec("workload-high", 800, "ByNamespace", everything({subject("User", "system:kube-controller-manager")}))},
      {"kube-scheduler", flow_spec("workload-high", 800, "ByNamespace", everything({subject("User", "system:kube-scheduler")}))},
      {"kube-system-service-accounts",
       flow_spec("workload-high", 900, "ByNamespace", everything({subject("ServiceAccount", "*")}))},
      {"service-accounts", flow_spec("workload-low", 9000, "ByUser", everything(groups({"system:serviceaccounts"})))},
      {"global-default", flow_spec("global-default", 9900, "ByUser", everything(everybody))},
  };
}

json::value finished(const Kind& kind, std::string_view name, json::object spec) {
  const Type& type = *root_type(kind.api_version(), kind.kind);
  json::object metadata{{"name", name}, {"annotations", json::object{{"apf.kubernetes.io/autoupdate-spec", "true"}}}};
  json::value object = json::object{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  object = MUST(decode(type, std::move(object))).value;
  apply_defaults(type, object);
  return object;
}

std::vector<json::value> initial_objects_of(const Kind& kind) {
  std::vector<json::value> out;
  if (kind == kFlowSchema) {
    for (Named& schema : flow_schemas()) out.push_back(finished(kind, schema.name, std::move(schema.spec)));
    return out;
  }
  out.push_back(finished(
      kind, "exempt", {{"type", "Exempt"}, {"exempt", json::object{{"nominalConcurrencyShares", 0}, {"lendablePercent", 0}}}}));
  for (const PriorityLevel& level : kLevels) out.push_back(finished(kind, level.name, limited_spec(level)));
  return out;
}

// An exempt level has no shares by default.
void exempt_defaults(json::object& spec) {
  if (text_at(spec, "type") != "Exempt" || !unset(spec, "exempt", true)) return;
  spec["exempt"].emplace_object();  // its fields have constant defaults
}

constexpr NamedDefaultRule kFlowDefaults[] = {{"io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec", exempt_defaults}};

}  // namespace

std::span<const NamedDefaultRule> flow_defaults() { return kFlowDefaults; }

const std::vector<json::value>& initial_flow_objects(const Kind& kind) {
  static const std::vector<json::value> schemas = initial_objects_of(kFlowSchema),
                                        levels = initial_objects_of(kPriorityLevelConfiguration);
  return kind == kFlowSchema ? schemas : levels;
}

const json::value* mandatory_flow_spec(const Kind& kind, std::string_view name) {
  if (name != "exempt" && name != "catch-all") return nullptr;
  for (const json::value& object : initial_flow_objects(kind)) {
    view::FlowSchema schema(object);  // a PriorityLevelConfiguration has its spec at the same place
    if (schema.metadata().name() == name) return schema.spec().pointer();
  }
  return nullptr;
}

}  // namespace coracle::schema
