// SPDX-License-Identifier: Apache-2.0
// See history.h.
#include "daemon/controller/workload/history.h"

#include <algorithm>

#include "daemon/controller/workload/pod_control.h"

namespace coracle::controller {
namespace {

constexpr int kCollisionsMax = 16;      // names tried per sync
constexpr size_t kOwnersNameMax = 223;  // of the owner's name in a revision's name

// A StatefulSet or a DaemonSet: what is read of them here has the same names in both.
view::StatefulSet view_of_set(const Object& set) { return view::StatefulSet(set); }

// With the members of all objects sorted, as Go encodes a map.
json::value with_sorted_members(const json::value& value) {
  if (const json::array* array = value.if_array()) {
    json::array out;
    for (const json::value& entry : *array) out.push_back(with_sorted_members(entry));
    return out;
  }
  const json::object* object = value.if_object();
  if (!object) return value;
  std::vector<std::string_view> keys;
  for (const auto& member : *object) keys.push_back(member.key());
  std::sort(keys.begin(), keys.end());
  json::object out;
  for (std::string_view key : keys) out[key] = with_sorted_members(object->at(key));
  return out;
}

bool has_data(const Object& revision, const json::value& data) {
  const json::value* present = view::ControllerRevision(revision).data();
  return present && same_json(*present, data);
}

bool is_older_revision(const ObjectPtr& a, const ObjectPtr& b) {
  auto key = [](const Object& revision) {
    return std::tuple(number_of(revision), view::ControllerRevision(revision).metadata().creation_timestamp(),
                      std::string_view(revision.name()));
  };
  return key(*a) < key(*b);
}

Result<ObjectPtr> number_anew(Client& client, const Object& revision, int64_t number) {
  json::value patch = {{"metadata", {{"uid", revision.uid()}}}, {"revision", number}};
  return client.patch(kControllerRevision, revision.key(), PatchType::merge, patch).wrap("number revision " + revision.name());
}

}  // namespace

json::value revision_data(const Object& set) {
  json::object pod_template = view_of_set(set).spec().template_().members();
  pod_template["$patch"] = "replace";
  return with_sorted_members({{"spec", {{"template", std::move(pod_template)}}}});
}

json::value template_of(const Object& revision) {
  json::object pod_template = view::StatefulSet(view::ControllerRevision(revision).data()).spec().template_().members();
  pod_template.erase("$patch");
  return pod_template;
}

int64_t number_of(const Object& revision) { return view::ControllerRevision(revision).revision(); }

HistoryPlan plan_history(const Object& set, const std::vector<ObjectPtr>& revisions) {
  json::value data = revision_data(set);
  HistoryPlan plan;
  for (const ObjectPtr& revision : revisions) (has_data(*revision, data) ? plan.same : plan.others).push_back(revision);
  std::sort(plan.same.begin(), plan.same.end(), is_older_revision);
  std::sort(plan.others.begin(), plan.others.end(), is_older_revision);
  if (!plan.others.empty()) plan.number = number_of(*plan.others.back()) + 1;
  if (plan.same.empty()) return plan;
  plan.revision = std::move(plan.same.back());
  plan.same.pop_back();
  plan.number = std::max(plan.number, number_of(*plan.revision));
  return plan;
}

json::value new_revision(const Object& set, std::string_view hash_label, int64_t number, int64_t collisions) {
  json::value data = revision_data(set);
  // The kind is included, because a StatefulSet and a DaemonSet may have the same name.
  std::string hash = name_hash(std::string(set.kind().kind) + to_text(data), collisions);
  json::object labels = view_of_set(set).spec().template_().metadata().labels();
  labels[hash_label] = hash;
  json::object metadata{
      {"name", set.name().substr(0, kOwnersNameMax) + "-" + hash}, {"namespace", set.ns()}, {"labels", std::move(labels)}};
  view::ObjectMeta of_set = view_of_set(set).metadata();
  if (of_set.has_annotations()) metadata["annotations"] = of_set.annotations();
  metadata["ownerReferences"] = json::array{controller_reference(set)};
  return {{"apiVersion", kControllerRevision.api_version()},
          {"kind", kControllerRevision.kind},
          {"metadata", std::move(metadata)},
          {"data", std::move(data)},
          {"revision", number}};
}

std::vector<ObjectPtr> beyond_limit(const Object& set, const std::vector<ObjectPtr>& old,
                                    const std::function<bool(const Object&)>& in_use) {
  int64_t limit = view_of_set(set).spec().revision_history_limit_or(10);
  if (limit < 0) return {};
  std::vector<ObjectPtr> out;
  for (const ObjectPtr& revision : old) {
    if (int64_t(old.size() - out.size()) <= limit) break;
    if (!in_use(*revision)) out.push_back(revision);
  }
  return out;
}

void watch_history(Informer& revisions, const Kind& kind, const SelectorIndex& sets, const Enqueue& enqueue) {
  index_by_controller(revisions);
  // An event of a revision that its set has just created is skipped, unless the set did not know of another revision then and
  // gave it the same number.
  auto says_nothing_new = [&revisions](const Object& made) {
    auto owner = made.controller();
    if (!owner) return false;
    std::vector<ObjectPtr> all = revisions.by_index("controller", owner->uid);
    return std::none_of(all.begin(), all.end(),
                        [&](const ObjectPtr& each) { return each->uid() != made.uid() && number_of(*each) == number_of(made); });
  };
  revisions.on_change([=, &kind, &sets](const Informer::Change& change) {
    if (!change.before && says_nothing_new(*change.after)) return;
    enqueue_owners(change, kind, sets, enqueue);
  });
}

Result<History> keep_history(Client& client, const Informer& revisions, const Object& set, const LabelSelector* selector,
                             std::string_view hash_label) {
  std::vector<ObjectPtr> present = TRY(claim(client, revisions, set, selector, false));
  HistoryPlan plan = plan_history(set, present);
  History history{plan.revision, std::move(plan.same), std::move(plan.others), view_of_set(set).status().collision_count()};
  if (history.revision) {
    if (number_of(*history.revision) == plan.number) return history;
    history.revision = TRY(number_anew(client, *history.revision, plan.number));
    return history;
  }
  for (int tried = 0; tried < kCollisionsMax; ++tried, ++history.collisions) {
    json::value body = new_revision(set, hash_label, plan.number, history.collisions);
    auto created = client.create(kControllerRevision, body);
    if (!created && created.error().code() != Code::already_exists) return created.take_error().wrap("create revision");
    view::ControllerRevision wanted(body);
    if (!created) created = client.get(kControllerRevision, {set.ns(), std::string(wanted.metadata().name())});
    ObjectPtr there = TRY(std::move(created));
    if (!has_data(*there, *wanted.data())) continue;
    history.revision = std::move(there);  // just created, or the cache was late
    return history;
  }
  return Error(Code::conflict, "every name for a revision of " + set.name() + " is taken");
}

Result<void> remove_revisions(Client& client, const std::vector<ObjectPtr>& revisions) {
  for (const ObjectPtr& revision : revisions) {
    auto removed = client.remove(kControllerRevision, revision->key(), {.uid = revision->uid()});
    if (!removed && removed.error().code() != Code::not_found)
      return removed.take_error().wrap("remove revision " + revision->name());
  }
  return {};
}

}  // namespace coracle::controller
