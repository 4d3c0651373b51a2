// SPDX-License-Identifier: Apache-2.0
// See revisions.h.
#include "tests/simulation/rules/revisions.h"

#include <algorithm>

namespace coracle::simulation {
namespace {

constexpr std::string_view kRevisionLabel = "controller-revision-hash";

json::value template_kept(const Object& revision) {
  json::value kept = *find(revision.json(), "data.spec.template");
  kept.get_object().erase("$patch");
  return kept;
}

// A StatefulSet's pods have the full name of the revision as a label, a DaemonSet's only its suffix.
bool names(const Object& set, const Object& pod, const Object& revision) {
  std::string label(pod.label(kRevisionLabel));
  return revision.name() == label || revision.name() == set.name() + "-" + label;
}

}  // namespace

bool rolls(const Object& set) { return get_string(set.json(), "spec.updateStrategy.type") != "OnDelete"; }

bool of_template(const ClusterState& cluster_state, const Object& set, const Object& pod) {
  std::vector<ObjectPtr> revisions = cluster_state.controlled(kControllerRevision, set);
  return std::any_of(revisions.begin(), revisions.end(), [&](const ObjectPtr& revision) {
    return names(set, pod, *revision) && template_kept(*revision) == *find(set.json(), "spec.template");
  });
}

bool available(const ClusterState& cluster_state, const Object& pod, const Object& set) {
  if (!active(pod)) return false;
  for (const json::value& condition : get_array(pod.json(), "status.conditions")) {
    if (get_string(condition, "type") != "Ready" || get_string(condition, "status") != "True") continue;
    auto since = parse_time(get_string(condition, "lastTransitionTime"));
    return since && *since + std::chrono::seconds(get_int(set.json(), "spec.minReadySeconds")) <= cluster_state.clock.now();
  }
  return false;
}

bool perhaps(const ClusterState& cluster_state, const Object& pod, const std::function<bool(const Object&)>& so) {
  std::vector<ObjectPtr> versions = cluster_state.believable(kPod, pod.key());
  return std::any_of(versions.begin(), versions.end(),
                     [&](const ObjectPtr& each) { return each->uid() == pod.uid() && so(*each); });
}

bool surely(const ClusterState& cluster_state, const Object& pod, const std::function<bool(const Object&)>& so) {
  return !perhaps(cluster_state, pod, [&](const Object& each) { return !each.deleting() && !so(each); });
}

bool disrupted(const ClusterState& cluster_state, const Object& pod) {
  const json::array& conditions = get_array(pod.json(), "status.conditions");
  bool told = std::any_of(conditions.begin(), conditions.end(),
                          [](const json::value& each) { return get_string(each, "type") == "DisruptionTarget"; });
  std::string node(get_string(pod.json(), "spec.nodeName"));
  return told || (!node.empty() && !cluster_state.find(kNode, {"", node}));
}

void Removals::note(Actor actor, const Change& change, const ClusterState& cluster_state) {
  if (actor == Actor::daemon && change.removes() && !disrupted(cluster_state, *change.before)) uids_.insert(change.before->uid());
}

int64_t revisions_kept(const ClusterState& cluster_state, const Object& set) {
  int64_t kept = 0;
  std::vector<ObjectPtr> pods = cluster_state.controlled(kPod, set);
  for (const ObjectPtr& revision : cluster_state.controlled(kControllerRevision, set)) {
    bool used = std::any_of(pods.begin(), pods.end(), [&](const ObjectPtr& pod) { return names(set, *pod, *revision); });
    used |= revision->name() == get_string(set.json(), "status.currentRevision");
    kept += !used && template_kept(*revision) != *find(set.json(), "spec.template");
  }
  return kept;
}

}  // namespace coracle::simulation
