// SPDX-License-Identifier: Apache-2.0
// Validation of StatefulSets, DaemonSets and ControllerRevisions. Of a StatefulSet's pod template only labels and annotations are
// checked, because its volumes also come from the claims. Source: apps/v1 API reference.
#include "store/kinds/workload/workload_kinds.h"
#include "store/kinds/workload/workload_validation.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void check_update_strategy(view::StatefulSetUpdateStrategy strategy, const std::string& path, Findings& out) {
  std::string at = sub(path, "updateStrategy");
  std::string_view type = strategy.type();
  view::RollingUpdateStatefulSetStrategy rolling = strategy.rolling_update();
  if (type.empty()) return out.required(at);
  if (type == "OnDelete") {
    if (rolling) out.invalid_json(sub(at, "rollingUpdate"), rolling.raw(), "only allowed for updateStrategy 'RollingUpdate'");
    return;
  }
  if (type != "RollingUpdate") {
    json::object shown{{"Type", type}, {"RollingUpdate", nullptr}};
    return out.invalid_json(at, json::value(std::move(shown)), "must be 'RollingUpdate' or 'OnDelete'");
  }
  if (!rolling) return;
  out.not_negative(sub(at, "rollingUpdate.partition"), rolling.partition());
  const json::value* unavailable = rolling.max_unavailable();
  if (!unavailable) return;
  std::string here = sub(at, "rollingUpdate.maxUnavailable");
  check_amount(out, here, unavailable);
  if (amount_of(unavailable) == 0) out.invalid_json(here, *unavailable, "cannot be 0");
  check_at_most_all(out, here, unavailable);
}

void check_retention(view::StatefulSetPersistentVolumeClaimRetentionPolicy policy, const std::string& path, Findings& out) {
  if (!policy) return;
  for (auto [when, what] : {std::pair("whenDeleted", policy.when_deleted()), std::pair("whenScaled", policy.when_scaled())}) {
    if (what == "Retain" || what == "Delete") continue;
    out.not_supported_json(sub(sub(path, "persistentVolumeClaimRetentionPolicy"), when), json::value(what), {"Retain", "Delete"});
  }
}

void check_stateful_set_spec(const json::value& value, const std::string& path, Findings& out) {
  view::StatefulSetSpec spec(value);
  std::string_view policy = spec.pod_management_policy();
  if (policy.empty()) out.required(sub(path, "podManagementPolicy"));
  else if (policy != "OrderedReady" && policy != "Parallel") {
    out.invalid(sub(path, "podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
  }
  check_update_strategy(spec.update_strategy(), path, out);
  check_retention(spec.persistent_volume_claim_retention_policy(), path, out);
  out.not_negative(sub(path, "replicas"), spec.replicas());
  out.not_negative(sub(path, "minReadySeconds"), spec.min_ready_seconds());
  out.not_negative(sub(path, "ordinals.start"), spec.ordinals().start());
  check_selector_and_template(value, "statefulset", path, out);
  check_labels(out, sub(path, "template.labels"), spec.template_().metadata().labels());
  check_annotations(out, sub(path, "template.annotations"), spec.template_().metadata().annotations());
  check_endless_template(value, "StatefulSet", path, out);
}

void check_daemon_set_spec(const json::value& spec, const std::string& path, Findings& out) {
  check_selector_and_template(spec, "daemonset", path, out);
  check_endless_template(spec, "DaemonSet", path, out);
  for (std::string_view name : {"minReadySeconds", "revisionHistoryLimit"})
    out.not_negative(sub(path, name), get_int(spec, name));
}

void check_daemon_strategy(const json::value& strategy, const std::string& path, Findings& out) {
  std::string_view type = view::DaemonSetUpdateStrategy(strategy).type();
  if (type == "OnDelete") return;
  if (type != "RollingUpdate") {
    return out.not_supported_json(path, json::object{{"Type", type}, {"RollingUpdate", nullptr}}, {"RollingUpdate", "OnDelete"});
  }
  if (!view::DaemonSetUpdateStrategy(strategy).has_rolling_update()) out.required(sub(path, "rollingUpdate"));
}

void check_daemon_rolling(const json::value& value, const std::string& path, Findings& out) {
  view::RollingUpdateDaemonSet rolling(value);
  const json::value *unavailable = rolling.max_unavailable(), *surge = rolling.max_surge();
  check_amount(out, sub(path, "maxUnavailable"), unavailable);
  check_amount(out, sub(path, "maxSurge"), surge);
  check_at_most_all(out, sub(path, "maxUnavailable"), unavailable);
  check_at_most_all(out, sub(path, "maxSurge"), surge);
  bool some_unavailable = amount_of(unavailable) != 0, some_surge = amount_of(surge) != 0;
  if (some_unavailable && some_surge)
    out.invalid_json(sub(path, "maxSurge"), *surge, "may not be set when maxUnavailable is non-zero");
  if (!some_unavailable && !some_surge) out.required(sub(path, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

void check_revision(const json::value& value, const std::string& path, Findings& out) {
  view::ControllerRevision revision(value);
  if (!revision.has_data()) out.required(sub(path, "data"), "data is mandatory");
  out.not_negative(sub(path, "revision"), revision.revision());
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
  json::object spec = view::StatefulSet(now).spec().members(), old = view::StatefulSet(before).spec().members();
  for (std::string_view free : {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
                                "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit"}) {
    spec.erase(free);
    old.erase(free);
  }
  if (same_json(spec, old)) return;
  out.forbidden("spec",
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
                "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
}

void check_revision_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "data", view::ControllerRevision(now).data(), view::ControllerRevision(before).data());
}

}  // namespace coracle::schema
