// SPDX-License-Identifier: Apache-2.0
// Aggregated ClusterRoles: a ClusterRole with an aggregationRule gets the rules of all ClusterRoles that its selectors match,
// ordered by name, without duplicates. They are written with server-side apply: this controller owns the rules, and other
// appliers get a conflict. Source: Kubernetes "Aggregated ClusterRoles"; controller/clusterroleaggregation.
#include <algorithm>
#include <set>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "store/object/selector.h"

namespace coracle::controller {
namespace {

class ClusterRoleAggregation : public Controller {
 public:
  explicit ClusterRoleAggregation(const Context& context) : client_(context.client), roles_(context.informers.of(kClusterRole)) {}

  std::string_view name() const override { return "clusterroleaggregation"; }

  void subscribe(const Enqueue& enqueue) override {
    roles_.on_change([=, this](const Informer::Change&) {
      for (const ObjectPtr& role : roles_.list())
        if (view::ClusterRole(*role).has_aggregation_rule()) enqueue.now(role->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr role = roles_.get(key);
    if (!role || role->deleting() || !view::ClusterRole(*role).has_aggregation_rule()) return Outcome{};
    json::array rules;
    std::set<std::string> known;  // there may be a hundred thousand
    const std::vector<LabelSelector> selectors = selectors_of(*role);
    for (const ObjectPtr& other : roles_.list()) {
      auto chooses = [&](const LabelSelector& selector) { return selector.matches(*other); };
      if (other->name() == role->name() || std::ranges::none_of(selectors, chooses)) continue;
      for (const json::value& rule : view::ClusterRole(*other).rules().raw())
        if (known.insert(to_sorted_text(rule)).second) rules.push_back(rule);
    }
    if (same_json(rules, view::ClusterRole(*role).rules().raw())) return Outcome{};
    json::value wanted = {{"apiVersion", kClusterRole.api_version()},
                          {"kind", kClusterRole.kind},
                          // The uid prevents that a deleted role is created.
                          {"metadata", {{"name", key.name}, {"uid", role->uid()}}},
                          {"rules", std::move(rules)}};
    auto written = client_.patch(kClusterRole, key, PatchType::apply, wanted,
                                 {.field_manager = "clusterrole-aggregation-controller", .force = true});
    if (!written && written.error().code() != Code::not_found) return written.take_error().wrap("aggregate " + key.name);
    return Outcome{};
  }

 private:
  static std::vector<LabelSelector> selectors_of(const Object& role) {
    std::vector<LabelSelector> out;
    for (view::LabelSelector each : view::ClusterRole(role).aggregation_rule().cluster_role_selectors())
      if (auto selector = LabelSelector::from_json(&each.raw())) out.push_back(*std::move(selector));
    return out;
  }

  Client& client_;
  Informer& roles_;
};

}  // namespace

std::unique_ptr<Controller> make_cluster_role_aggregation(const Context& context) {
  return std::make_unique<ClusterRoleAggregation>(context);
}

}  // namespace coracle::controller
