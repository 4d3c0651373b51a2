// SPDX-License-Identifier: Apache-2.0
// See cluster_state.h.
#include "tests/simulation/cluster_state.h"

#include <algorithm>
#include <cstdlib>

namespace coracle::simulation {

ClusterState::ClusterState(Cluster& cluster, const Clock& clock) : clock(clock), cluster_(cluster) { look_anew(); }

void ClusterState::look_anew() {
  tables_.clear();
  for (const RestingPtr& object : cluster_.engine().snapshot().objects) {
    ObjectPtr awake = object->awake();
    tables_[{awake->kind().group, awake->kind().resource}][awake->key()].now = awake;
  }
  for (const auto& rule : rules_) rule->after_power_loss(*this);
}

void ClusterState::hear(Actor actor, const Change& change) {
  Story& story = tables_[{change.kind->group, change.kind->resource}][change.any().key()];
  if (change.before) {
    bool asked = change.after &&
                 get_int(change.before->json(), "metadata.generation") != get_int(change.after->json(), "metadata.generation");
    story.formerly.push_front({change.before, change.revision, actor == Actor::daemon && asked});
  }
  Revision known = daemon_ ? daemon_->known(*change.kind) : change.revision;
  while (!story.formerly.empty() && story.formerly.back().until <= known) story.formerly.pop_back();
  story.now = change.after;
  for (const auto& rule : rules_) rule->after(*this, actor, change);
}

void ClusterState::check_at_rest() {
  for (const auto& rule : rules_) rule->at_rest(*this);
}

const ClusterState::Table* ClusterState::table(const Kind& kind) const {
  auto found = tables_.find({kind.group, kind.resource});
  return found == tables_.end() ? nullptr : &found->second;
}

ObjectPtr ClusterState::find(const Kind& kind, const Key& key) const {
  const Table* all = table(kind);
  if (!all) return nullptr;
  auto found = all->find(key);
  return found == all->end() ? nullptr : found->second.now;
}

std::vector<ObjectPtr> ClusterState::all(const Kind& kind, std::string_view ns) const {
  std::vector<ObjectPtr> out;
  if (const Table* all = table(kind))
    for (const auto& [key, story] : *all)
      if (story.now && (ns.empty() || key.ns == ns)) out.push_back(story.now);
  return out;
}

std::vector<ObjectPtr> ClusterState::everything() const {
  std::vector<ObjectPtr> out;
  for (const auto& [name, all] : tables_)
    for (const auto& [key, story] : all)
      if (story.now) out.push_back(story.now);
  return out;
}

std::vector<ObjectPtr> ClusterState::controlled(const Kind& kind, const Object& owner) const {
  std::vector<ObjectPtr> out = all(kind, owner.ns());
  std::erase_if(out, [&](const ObjectPtr& object) {
    auto controller = object->controller();
    return !controller || controller->uid != owner.uid();
  });
  return out;
}

std::vector<ObjectPtr> ClusterState::believable(const Kind& kind, const Key& key) const { return versions(kind, key, false); }
std::vector<ObjectPtr> ClusterState::believable_owner(const Kind& kind, const Object& owned) const {
  auto owner = owned.controller();
  if (!owner || owner->kind != kind.kind) return {};
  std::vector<ObjectPtr> all = believable(kind, {owned.ns(), owner->name});
  std::erase_if(all, [&](const ObjectPtr& each) { return each->uid() != owner->uid; });
  return all;
}
std::vector<ObjectPtr> ClusterState::believable_to_writer(const Kind& kind, const Key& key) const {
  return versions(kind, key, true);
}

std::vector<ObjectPtr> ClusterState::versions(const Kind& kind, const Key& key, bool to_writer) const {
  const Table* all = table(kind);
  if (!all) return {};
  auto found = all->find(key);
  if (found == all->end()) return {};
  std::vector<ObjectPtr> out;
  if (found->second.now) out.push_back(found->second.now);
  Revision known = daemon_ ? daemon_->known(kind) : Revision(0);
  for (const Story::Former& former : found->second.formerly) {
    if (former.until <= known || (to_writer && former.daemon_asked)) break;
    out.push_back(former.object);
  }
  return out;
}

std::vector<ObjectPtr> ClusterState::believable_in(const Kind& kind, std::string_view ns) const {
  std::vector<ObjectPtr> out;
  if (const Table* all = table(kind))
    for (const auto& [key, story] : *all) {
      if (!ns.empty() && key.ns != ns) continue;
      for (ObjectPtr& version : versions(kind, key, false)) out.push_back(std::move(version));
    }
  return out;
}

std::vector<ObjectPtr> ClusterState::certain(const Kind& kind, const Key& key) const {
  std::vector<ObjectPtr> all = believable(kind, key);
  ObjectPtr now = find(kind, key);
  bool here = now && all.back()->uid() == now->uid() && (!daemon_ || all.back()->revision() <= daemon_->known(kind));
  return here ? all : std::vector<ObjectPtr>();
}

std::vector<ObjectPtr> ClusterState::pod_metrics() const { return MUST(cluster_.client().list(kPodMetrics, {})).items; }

void ClusterState::violated(const std::string& rule) const { violations_.push_back(rule); }

bool finished(const Object& pod) {
  std::string_view phase = get_string(pod.json(), "status.phase");
  return phase == "Succeeded" || phase == "Failed";
}
bool active(const Object& pod) { return !finished(pod) && !pod.deleting(); }
bool ready(const Object& pod) { return has_condition(pod, "Ready"); }
std::string describe(const Object& object) { return object.kind().qualified_resource() + " " + object.key().text(); }

std::string_view condition(const Object& object, std::string_view type, std::string_view part) {
  for (const json::value& one : get_array(object.json(), "status.conditions"))
    if (get_string(one, "type") == type) return get_string(one, part);
  return "";
}
bool has_condition(const Object& object, std::string_view type) {
  const json::array& all = get_array(object.json(), "status.conditions");
  return std::any_of(all.begin(), all.end(), [&](const json::value& each) {
    return get_string(each, "type") == type && get_string(each, "status") == "True";
  });
}
int64_t scaled_value(const json::value& int_or_percent, int64_t total, bool round_up) {
  if (const json::string* percent = int_or_percent.if_string())
    return (std::strtol(percent->c_str(), nullptr, 10) * total + (round_up ? 99 : 0)) / 100;
  return int_or_percent.to_number<int64_t>();
}

}  // namespace coracle::simulation
