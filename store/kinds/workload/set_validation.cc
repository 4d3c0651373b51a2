// SPDX-License-Identifier: Apache-2.0
// Validation of StatefulSets, DaemonSets and ControllerRevisions. Of a StatefulSet's pod template only labels and annotations are
// checked, because its volumes also come from the claims. Source: apps/v1 API reference.
#include "store/kinds/workload/workload_kinds.h"
#include "store/kinds/workload/workload_validation.h"
#include "store/schema/validate/syntax.h"

namespace coracle::schema {
namespace {

void check_update_strategy(const json::value& spec, const std::string& path, Findings& out) {
  std::string at = sub(path, "updateStrategy");
  std::string_view type = get_string(spec, "updateStrategy.type");
  const json::value* rolling = find(spec, "updateStrategy.rollingUpdate");
  if (type.empty()) return out.required(at);
  if (type == "OnDelete") {
    if (rolling) out.invalid_json(sub(at, "rollingUpdate"), *rolling, "only allowed for updateStrategy 'RollingUpdate'");
    return;
  }
  if (type != "RollingUpdate") {
    json::object shown{{"Type", type}, {"RollingUpdate", nullptr}};
    return out.invalid_json(at, json::value(std::move(shown)), "must be 'RollingUpdate' or 'OnDelete'");
  }
  if (!rolling) return;
  out.not_negative(sub(at, "rollingUpdate.partition"), get_int(*rolling, "partition"));
  const json::value* unavailable = find(*rolling, "maxUnavailable");
  if (!unavailable) return;
  std::string here = sub(at, "rollingUpdate.maxUnavailable");
  check_amount(out, here, unavailable);
  if (amount_of(unavailable) == 0) out.invalid_json(here, *unavailable, "cannot be 0");
  check_at_most_all(out, here, unavailable);
}

void check_retention(const json::value& spec, const std::string& path, Findings& out) {
  const json::value* policy = find(spec, "persistentVolumeClaimRetentionPolicy");
  if (!policy) return;
  for (std::string_view when : {"whenDeleted", "whenScaled"}) {
    std::string_view what = get_string(*policy, when);
    if (what == "Retain" || what == "Delete") continue;
    out.not_supported_json(sub(sub(path, "persistentVolumeClaimRetentionPolicy"), when), json::value(what), {"Retain", "Delete"});
  }
}

void check_stateful_set_spec(const json::value& spec, const std::string& path, Findings& out) {
  std::string_view policy = get_string(spec, "podManagementPolicy");
  if (policy.empty()) out.required(sub(path, "podManagementPolicy"));
  else if (policy != "OrderedReady" && policy != "Parallel") {
    out.invalid(sub(path, "podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
  }
  check_update_strategy(spec, path, out);
  check_retention(spec, path, out);
  for (std::string_view name : {"replicas", "minReadySeconds", "ordinals.start"})
    out.not_negative(sub(path, name), get_int(spec, name));
  check_selector_and_template(spec, "statefulset", path, out);
  check_labels(out, sub(path, "template.labels"), get_object(spec, "template.metadata.labels"));
  check_annotations(out, sub(path, "template.annotations"), get_object(spec, "template.metadata.annotations"));
  check_endless_template(spec, "StatefulSet", path, out);
}

void check_daemon_set_spec(const json::value& spec, const std::string& path, Findings& out) {
  check_selector_and_template(spec, "daemonset", path, out);
  check_endless_template(spec, "DaemonSet", path, out);
  for (std::string_view name : {"minReadySeconds", "revisionHistoryLimit"})
    out.not_negative(sub(path, name), get_int(spec, name));
}

void check_daemon_strategy(const json::value& strategy, const std::string& path, Findings& out) {
  std::string_view type = get_string(strategy, "type");
  if (type == "OnDelete") return;
  if (type != "RollingUpdate") {
    return out.not_supported_json(path, json::object{{"Type", type}, {"RollingUpdate", nullptr}}, {"RollingUpdate", "OnDelete"});
  }
  if (!find(strategy, "rollingUpdate")) out.required(sub(path, "rollingUpdate"));
}

void check_daemon_rolling(const json::value& rolling, const std::string& path, Findings& out) {
  const json::value *unavailable = find(rolling, "maxUnavailable"), *surge = find(rolling, "maxSurge");
  check_amount(out, sub(path, "maxUnavailable"), unavailable);
  check_amount(out, sub(path, "maxSurge"), surge);
  check_at_most_all(out, sub(path, "maxUnavailable"), unavailable);
  check_at_most_all(out, sub(path, "maxSurge"), surge);
  bool some_unavailable = amount_of(unavailable) != 0, some_surge = amount_of(surge) != 0;
  if (some_unavailable && some_surge)
    out.invalid_json(sub(path, "maxSurge"), *surge, "may not be set when maxUnavailable is non-zero");
  if (!some_unavailable && !some_surge) out.required(sub(path, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

void check_revision(const json::value& revision, const std::string& path, Findings& out) {
  const json::value* data = find(revision, "data");
  if (!data || data->is_null()) out.required(sub(path, "data"), "data is mandatory");
  out.not_negative(sub(path, "revision"), get_int(revision, "revision"));
}

constexpr NamedValidationRule kSetChecks[] = {
    {"io.k8s.api.apps.v1.StatefulSetSpec", check_stateful_set_spec, "template,volumeClaimTemplates"},
    {"io.k8s.api.apps.v1.DaemonSetSpec", check_daemon_set_spec},
    {"io.k8s.api.apps.v1.DaemonSetUpdateStrategy", check_daemon_strategy},
    {"io.k8s.api.apps.v1.RollingUpdateDaemonSet", check_daemon_rolling},
    {"io.k8s.api.apps.v1.ControllerRevision", check_revision},
};

}  // namespace

std::span<const NamedValidationRule> set_rules() { return kSetChecks; }

void check_stateful_set_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  json::value spec = json::object(get_object(now, "spec")), old = json::object(get_object(before, "spec"));
  for (std::string_view free : {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
                                "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit"}) {
    spec.get_object().erase(free);
    old.get_object().erase(free);
  }
  if (spec == old) return;
  out.forbidden("spec",
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
                "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
}

void check_revision_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "data", find(now, "data"), find(before, "data"));
}

}  // namespace coracle::schema
