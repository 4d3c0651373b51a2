// SPDX-License-Identifier: Apache-2.0
// See cluster.h.
#include "daemon/scheduler/cluster.h"

#include <algorithm>

#include "daemon/placement/placement.h"
#include "store/object/object.h"
#include "store/object/selector.h"

namespace coracle::scheduler {
namespace {

constexpr size_t kGroupsSlack = 64;  // unused label groups before they are removed

// Removes the least recently used half at once, so that this is rare.
template <typename Map, typename Used>
void forget_old(Map& map, Used used) {
  if (map.size() <= kRememberedMax) return;
  std::vector<uint64_t> ticks;
  for (const auto& [name, one] : map) ticks.push_back(used(*one));
  std::nth_element(ticks.begin(), ticks.begin() + long(ticks.size() / 2), ticks.end());
  uint64_t middle = ticks[ticks.size() / 2];
  std::erase_if(map, [&](const auto& entry) { return used(*entry.second) < middle; });
}

bool same_labels(const json::object& a, const json::object& b) { return same_json(a, b); }

std::vector<std::pair<std::string, int64_t>> images_of(const view::NodeStatus& status) {
  std::vector<std::pair<std::string, int64_t>> images;
  for (view::ContainerImage image : status.images())
    for (std::string_view name : image.names()) images.emplace_back(name, image.size_bytes());
  std::ranges::sort(images);
  auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  images.erase(std::unique(images.begin(), images.end(), same), images.end());
  return images;
}

}  // namespace

Cluster::Cluster() { taint_sets_.emplace_back(); }
Cluster::~Cluster() = default;

// ---- nodes ----

NodeInfo& Cluster::info(const std::string& name) {
  auto [found, fresh] = slots_by_name_.try_emplace(name);
  if (!fresh) return *nodes_by_slot_[found->second];
  Slot slot = Slot(nodes_by_slot_.size());
  if (free_slots_.empty()) nodes_by_slot_.emplace_back();
  else slot = free_slots_.back(), free_slots_.pop_back();
  found->second = slot;
  nodes_by_slot_[slot] = std::make_unique<NodeInfo>();
  nodes_by_slot_[slot]->slot = slot;
  nodes_by_slot_[slot]->name = name;
  nodes_by_slot_[slot]->usage_since = nodes_by_slot_[slot]->labels_since = ++changes_;
  for (auto& [text, counter] : counters_) counter->by_slot.resize(std::max(counter->by_slot.size(), nodes_by_slot_.size()), 0);
  return *nodes_by_slot_[slot];
}

void Cluster::put_node(const ObjectPtr& object) {
  NodeInfo& node = info(object->name());
  bool looks_the_same = node.node && same_labels(node.labels, object->labels());
  ordered_ &= looks_the_same;
  if (!looks_the_same) node.labels = json::object(object->labels(), json::storage_ptr());
  drop_taints(node);
  count_images(node, -1);
  node.node = object->at_rest();
  view::Node view(*object);
  unschedulable_ += view.spec().unschedulable() - node.unschedulable;
  node.unschedulable = view.spec().unschedulable();
  node.taints = taint_set(view.spec().taints().raw());
  view::NodeStatus status = view.status();
  node.allocatable = Amounts::of(status.has_allocatable() ? status.allocatable() : status.capacity());
  node.pods_max = node.allocatable.get("pods");
  node.usage_since = ++changes_;
  node.images = images_of(status);
  count_images(node, 1);
  if (looks_the_same) return;
  node.labels_since = ++changes_;
  enter_topologies(node);
  auto waiting = absent_.extract(node.name);
  if (!waiting) return;
  for (PodInfoPtr& pod : waiting.mapped()) {
    places_.erase(pod->uid);
    place(std::move(pod), node.name);
  }
}

void Cluster::remove_node(const std::string& name) {
  auto found = slots_by_name_.find(name);
  if (found == slots_by_name_.end()) return;
  Slot slot = found->second;
  NodeInfo& node = *nodes_by_slot_[slot];
  const std::vector<PodInfoPtr> pods = node.pods;
  for (const PodInfoPtr& pod : pods) remove_pod(pod->uid);
  drop_taints(node);
  count_images(node, -1);
  unschedulable_ -= node.unschedulable;
  ordered_ = false;
  node.labels = {};
  enter_topologies(node);
  slots_by_name_.erase(found);
  nodes_by_slot_[slot].reset();
  free_slots_.push_back(slot);
  for (const PodInfoPtr& pod : pods) place(pod, name);  // the node may come back with them
}

void Cluster::drop_taints(NodeInfo& node) {
  if (node.taints) --taint_sets_[node.taints].nodes;
  node.taints = 0;
}

uint32_t Cluster::taint_set(const json::array& taints) {
  if (taints.empty()) return 0;
  uint32_t unused = 0;
  for (uint32_t i = 1; i < taint_sets_.size(); i++) {
    if (taint_sets_[i].nodes && same_json(taint_sets_[i].taints, taints)) return ++taint_sets_[i].nodes, i;
    if (!taint_sets_[i].nodes) unused = i;
  }
  if (!unused) {
    unused = uint32_t(taint_sets_.size());
    taint_sets_.emplace_back();
  }
  taint_sets_[unused] = {json::array(taints, json::storage_ptr()), 1};
  return unused;
}

void Cluster::count_images(const NodeInfo& node, int by) {
  for (const auto& [name, bytes] : node.images) {
    auto found = image_nodes_.try_emplace(name, 0).first;
    if ((found->second += by) == 0) image_nodes_.erase(found);
  }
}

int Cluster::nodes_with_image(std::string_view name) const {
  auto found = image_nodes_.find(name);
  return found == image_nodes_.end() ? 0 : found->second;
}

const NodeInfo* Cluster::node(const std::string& name) const {
  auto found = slots_by_name_.find(name);
  if (found == slots_by_name_.end() || !nodes_by_slot_[found->second]->node) return nullptr;
  return nodes_by_slot_[found->second].get();
}

const std::vector<const NodeInfo*>& Cluster::nodes() {
  if (ordered_) return order_;
  std::map<std::string, std::vector<const NodeInfo*>> zones;
  for (const auto& node : nodes_by_slot_)
    if (node && node->node) zones[placement::zone_of(node->labels)].push_back(node.get());
  for (auto& [zone, nodes] : zones) std::ranges::sort(nodes, {}, &NodeInfo::name);
  order_.clear();
  for (size_t round = 0, before = SIZE_MAX; before != order_.size(); round++) {
    before = order_.size();
    for (const auto& [zone, nodes] : zones)
      if (round < nodes.size()) order_.push_back(nodes[round]);
  }
  ordered_ = true;
  return order_;
}

// ---- namespaces ----

void Cluster::put_namespace(const std::string& name, const json::object& labels) {
  auto [found, fresh] = namespaces_.try_emplace(name);
  if (!fresh && same_labels(found->second, labels)) return;
  found->second = json::object(labels, json::storage_ptr());
  namespaces_changed();
}

void Cluster::remove_namespace(const std::string& name) {
  if (namespaces_.erase(name)) namespaces_changed();
}

void Cluster::namespaces_changed() {
  std::erase_if(counters_, [](const auto& entry) {
    return std::ranges::any_of(entry.second->all_of, [](const PodTerm& term) { return term.namespace_selector.has_value(); });
  });
  for (auto& terms : held_)
    for (auto& [text, held] : terms)
      if (held->term.namespace_selector) held->memo = {};
}

// ---- pods ----

LabelGroupPtr Cluster::group_of(const std::string& ns, const json::object& labels) {
  auto [found, fresh] = groups_.try_emplace(ns + "\n" + to_text(labels));
  if (!fresh) return found->second;
  auto group = std::make_shared<LabelGroup>();
  group->ns = ns;
  group->labels = json::object(labels, json::storage_ptr());
  if (free_groups_.empty()) group->id = uint32_t(groups_.size() - 1);
  else group->id = free_groups_.back(), free_groups_.pop_back();
  return found->second = std::move(group);
}

void Cluster::sweep_groups() {
  if (groups_.size() >= 2 * groups_swept_ + kGroupsSlack) sweep_groups_now();
}

// Each sweep is paid for by many pods. Without this, the groups of a crowd that is gone would stay until another one comes.
void Cluster::note_gone() {
  if (2 * ++gone_ >= groups_.size() + kGroupsSlack) sweep_groups_now();
}

void Cluster::sweep_groups_now() {
  std::vector<uint32_t> gone;
  std::erase_if(groups_, [&](const auto& entry) {
    if (entry.second.use_count() > 1) return false;
    gone.push_back(entry.second->id);
    return true;
  });
  std::ranges::sort(gone);
  for (auto& [text, counter] : counters_) counter->memo.forget(gone);
  for (auto& terms : held_)
    for (auto& [text, held] : terms) held->memo.forget(gone);
  free_groups_.insert(free_groups_.end(), gone.rbegin(), gone.rend());  // the lowest is reused first
  groups_swept_ = groups_.size();
  gone_ = 0;
}

PodInfoPtr Cluster::read(const Object& pod) {
  auto info = std::make_shared<PodInfo>(read_pod(pod));
  info->group = group_of(pod.ns(), pod.labels());
  return info;
}

void Cluster::place(PodInfoPtr pod, const std::string& name) {
  remove_pod(pod->uid);
  auto found = slots_by_name_.find(name);
  if (found == slots_by_name_.end()) {
    auto& absent = *absent_.try_emplace(name).first;
    places_.emplace(pod->uid, Place{pod, 0, &absent});
    absent.second.push_back(std::move(pod));
    return;
  }
  NodeInfo& node = *nodes_by_slot_[found->second];
  count(*pod, node, 1);
  places_.emplace(pod->uid, Place{pod, node.slot});
  node.pods.push_back(std::move(pod));
}

PodInfoPtr Cluster::remove_pod(const std::string& uid) {
  auto found = places_.find(uid);
  if (found == places_.end()) return nullptr;
  Place place = std::move(found->second);
  places_.erase(found);
  if (place.absent) {
    std::erase(place.absent->second, place.pod);
    if (place.absent->second.empty()) absent_.erase(absent_.find(place.absent->first));
    return std::move(place.pod);
  }
  NodeInfo& node = *nodes_by_slot_[place.slot];
  std::erase(node.pods, place.pod);
  count(*place.pod, node, -1);
  return std::move(place.pod);
}

PodInfoPtr Cluster::placed(const std::string& uid) const {
  auto place = places_.find(uid);
  return place == places_.end() ? nullptr : place->second.pod;
}

std::string Cluster::node_of(const std::string& uid) const {
  auto place = places_.find(uid);
  if (place == places_.end()) return "";
  return place->second.absent ? place->second.absent->first : nodes_by_slot_[place->second.slot]->name;
}

void Cluster::count(const PodInfo& pod, NodeInfo& node, int by) {
  if (by > 0) node.requested += pod.requests.exact;
  else node.requested -= pod.requests.exact;
  node.scored_cpu_milli += by * pod.requests.scored_cpu_milli;
  node.scored_memory += by * pod.requests.scored_memory;
  node.usage_since = ++changes_;
  for (auto& [text, counter] : counters_)
    if (means_all(*counter, pod)) counter->by_slot[node.slot] += by;
  hold(pod.affinity, TermKind::affinity, node.slot, by);
  hold(pod.anti_affinity, TermKind::anti_affinity, node.slot, by);
  hold(pod.preferred, TermKind::preferred, node.slot, by);
  hold(pod.preferred_anti, TermKind::preferred_anti, node.slot, by);
}

void Cluster::hold(const std::vector<PodTerm>& terms, TermKind kind, Slot slot, int by) {
  auto& held = held_[size_t(kind)];
  for (const PodTerm& term : terms) {
    auto found = held.try_emplace(term.topology_key + "\n" + std::to_string(term.weight) + "\n" + term.text).first;
    if (!found->second) {
      found->second = std::make_unique<HeldTerm>();
      found->second->term = term;
      found->second->kind = kind;
      share_memo_bytes();
    }
    HeldTerm& one = *found->second;
    auto holder = std::ranges::lower_bound(one.holders, slot, {}, &std::pair<Slot, int32_t>::first);
    if (holder == one.holders.end() || holder->first != slot) holder = one.holders.emplace(holder, slot, 0);
    if ((holder->second += by) == 0) one.holders.erase(holder);
    if ((one.count += by) == 0) held.erase(found);
  }
}

// ---- sums ----

void Cluster::begin_decision() {
  ++tick_;
  sweep_groups();
  std::erase_if(topologies_, [&](const auto& entry) { return entry.second->domains > 2 * slots() + kGroupsSlack; });
  forget_old(topologies_, [](const Topology& one) { return one.used; });
  forget_old(counters_, [](const PodCounter& one) { return one.used; });
  forget_old(memos_, [](const NodeMemo& one) { return one.used_; });
  share_memo_bytes();
}

bool Cluster::means(const PodTerm& term, const LabelGroup& group) const {
  auto in_namespace = [&] {
    if (std::ranges::binary_search(term.namespaces, group.ns)) return true;
    if (!term.namespace_selector) return false;
    if (term.namespace_selector->empty()) return true;
    auto labels = namespaces_.find(group.ns);
    static const json::object none;
    return term.namespace_selector->matches(labels == namespaces_.end() ? none : labels->second);
  };
  return in_namespace() && term.selector.matches(group.labels);
}

bool Cluster::means(HeldTerm& held, const LabelGroup& group) {
  if (group.id >= memo_groups_max_) return means(held.term, group);
  return held.memo.ask(group.id, [&] { return means(held.term, group); });
}

bool Cluster::means_all(PodCounter& counter, const PodInfo& pod) const {
  if (counter.without_deleting && pod.deleting) return false;
  auto answer = [&] { return std::ranges::all_of(counter.all_of, [&](const PodTerm& term) { return means(term, *pod.group); }); };
  return pod.group->id < memo_groups_max_ ? counter.memo.ask(pod.group->id, answer) : answer();
}

void Cluster::share_memo_bytes() {
  size_t memos = counters_.size();
  for (const auto& terms : held_) memos += terms.size();
  memo_groups_max_ = kMemoBytesMax / std::max<size_t>(memos, 1);
}

size_t Cluster::memo_bytes() const {
  size_t bytes = 0;
  for (const auto& [text, counter] : counters_) bytes += counter->memo.bytes();
  for (const auto& terms : held_)
    for (const auto& [text, held] : terms) bytes += held->memo.bytes();
  return bytes;
}

const PodCounter& Cluster::counter(const std::vector<const PodTerm*>& terms, bool without_deleting) {
  std::string text(1, without_deleting ? '-' : '+');
  for (const PodTerm* term : terms) text.append(term->text).append("\t");
  auto [found, fresh] = counters_.try_emplace(std::move(text));
  if (fresh) {
    found->second = std::make_unique<PodCounter>();
    PodCounter& counter = *found->second;
    for (const PodTerm* term : terms) counter.all_of.push_back(*term);
    counter.without_deleting = without_deleting;
    counter.by_slot.resize(slots(), 0);
    share_memo_bytes();
    for (const auto& [uid, place] : places_)
      if (!place.absent) counter.by_slot[place.slot] += means_all(counter, *place.pod);
  }
  found->second->used = tick_;
  return *found->second;
}

const Topology& Cluster::topology(const std::string& key) {
  auto [found, fresh] = topologies_.try_emplace(key);
  if (fresh) {
    found->second = std::make_unique<Topology>();
    for (const auto& node : nodes_by_slot_)
      if (node) enter_topologies(*node);
  }
  found->second->domain.resize(slots(), -1);
  found->second->used = tick_;
  return *found->second;
}

void Cluster::enter_topologies(const NodeInfo& node) {
  for (auto& [key, topology] : topologies_) {
    if (topology->domain.size() <= node.slot) topology->domain.resize(slots(), -1);
    auto value = label_value(node.labels, key);
    int32_t number = -1;
    if (value) {
      auto [known, fresh] = topology->numbers.try_emplace(std::string(*value), int32_t(topology->domains));
      topology->domains += fresh;
      number = known->second;
    }
    topology->domain[node.slot] = number;
  }
}

NodeMemo& Cluster::memo(const std::string& question) {
  auto [found, fresh] = memos_.try_emplace(question);
  if (fresh) found->second = std::make_unique<NodeMemo>();
  found->second->used_ = tick_;
  return *found->second;
}

// ---- WhatIf ----

void WhatIf::place(const PodInfoPtr& pod, const std::string& node) {
  changes_.push_back({pod, cluster_.node_of(pod->uid)});
  cluster_.place(pod, node);
}

void WhatIf::remove(const PodInfo& pod) {
  std::string before = cluster_.node_of(pod.uid);
  PodInfoPtr removed = cluster_.remove_pod(pod.uid);
  if (removed) changes_.push_back({std::move(removed), std::move(before)});
}

WhatIf::~WhatIf() {
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
    cluster_.remove_pod(change->pod->uid);
    if (!change->before.empty()) cluster_.place(change->pod, change->before);
  }
}

}  // namespace coracle::scheduler
