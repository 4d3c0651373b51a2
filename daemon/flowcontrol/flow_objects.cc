// SPDX-License-Identifier: Apache-2.0
// See flow_objects.h.
#include "daemon/flowcontrol/flow_objects.h"

#include <algorithm>

#include "daemon/registry/bootstrap.h"
#include "runtime/base/log.h"
#include "store/engine/engine.h"
#include "store/kinds/flowcontrol/flow_defaults.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"

namespace coracle::flowcontrol {
namespace {

constexpr std::string_view kDangling = "Dangling";

std::string_view name_of(const json::value& object) { return metadata_of(object).name(); }

bool is_among(const std::vector<json::value>& objects, std::string_view name) {
  return std::any_of(objects.begin(), objects.end(), [&](const json::value& one) { return name_of(one) == name; });
}

std::vector<json::value> stored(const registry::Registry& registry, const Kind& kind) {
  std::vector<json::value> out;
  if (auto page = registry.list(kind, {}))
    for (const ObjectPtr& object : page->items) out.push_back(object->json());
  for (const json::value& object : schema::initial_flow_objects(kind))
    if (schema::mandatory_flow_spec(kind, name_of(object)) && !is_among(out, name_of(object))) out.push_back(object);
  return out;
}

// The desired condition Dangling of the schema, without its time.
json::object judge(const json::value& schema, const std::vector<json::value>& levels) {
  std::string level(view::FlowSchema(schema).spec().priority_level_configuration().name());
  std::string named = "This FlowSchema references the PriorityLevelConfiguration object named \"" + level + "\" ";
  if (is_among(levels, level))
    return {{"type", kDangling}, {"status", "False"}, {"reason", "Found"}, {"message", named + "and it exists"}};
  return {{"type", kDangling}, {"status", "True"}, {"reason", "NotFound"}, {"message", named + "but there is no such object"}};
}

// The schema with that condition; nullopt if it has it already.
std::optional<json::value> with_condition(const json::value& schema, json::object condition, WallTime now) {
  json::array conditions = view::FlowSchema(schema).status().conditions().raw();
  auto there = std::find_if(conditions.begin(), conditions.end(),
                            [](const json::value& one) { return view::FlowSchemaCondition(one).type() == kDangling; });
  if (there == conditions.end()) there = conditions.insert(there, json::object{});
  view::FlowSchemaCondition before(*there), wanted(condition);
  bool same = before.status() == wanted.status() && before.reason() == wanted.reason() && before.message() == wanted.message();
  if (same) return std::nullopt;
  condition["lastTransitionTime"] = format_time(now);
  *there = std::move(condition);
  json::value out = schema;
  make(out, "status.conditions") = std::move(conditions);
  return out;
}

}  // namespace

FlowRules stored_rules(const registry::Registry& registry) {
  return {stored(registry, kFlowSchema), stored(registry, kPriorityLevelConfiguration)};
}

Result<void> FlowObjects::follow(std::function<void()> changed) {
  for (const Kind* kind : {&kPriorityLevelConfiguration, &kFlowSchema}) {
    engine::Callbacks callbacks;
    callbacks.event = [this, changed](const engine::Event&) {
      changed_ = true;
      changed();
    };
    callbacks.end = [](const Error&) {};  // the store is closing
    engine::Engine& engine = registry_.engine();
    auto subscription = TRY(engine.subscribe(*kind, "", engine.revision(), std::move(callbacks)));
    subscriptions_.push_back(std::move(subscription));
  }
  return {};
}

void FlowObjects::unfollow() { subscriptions_.clear(); }

void FlowObjects::reconcile() {
  if (!changed_.exchange(false)) return;
  if (auto there = registry::ensure_flow_control(registry_); !there)
    log_warning("flowcontrol", "cannot restore flow schemas and priority levels: " + there.error().text());
  FlowRules rules = stored_rules(registry_);
  controller_.set_rules(rules);
  judge_schemas(rules);
}

void FlowObjects::judge_schemas(const FlowRules& rules) {
  registry::Writer writer = registry::internal_writer();
  for (const json::value& schema : rules.schemas) {
    if (metadata_of(schema).uid().empty()) continue;  // it is not stored
    auto judged = with_condition(schema, judge(schema, rules.levels), registry_.clock().now());
    if (!judged) continue;
    Key key{"", std::string(name_of(schema))};
    auto written = registry_.update(kFlowSchema, key, "status", *std::move(judged), writer);
    if (written || written.error().code() == Code::conflict || written.error().code() == Code::not_found)
      continue;  // changed concurrently: its event triggers another pass
    log_warning("flowcontrol", "the condition of a flow schema cannot be written: " + written.error().text(),
                {{"name", key.name}});
  }
}

}  // namespace coracle::flowcontrol
