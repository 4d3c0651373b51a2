// SPDX-License-Identifier: Apache-2.0
// Parses a pod. See pod_info.h.
#include "daemon/scheduler/pod_info.h"

#include <algorithm>
#include <functional>
#include <set>

#include "runtime/base/text.h"
#include "store/object/object.h"

namespace coracle::scheduler {
namespace {

// Identifies a term, independent of the pod that has it.
std::string term_text(const PodTerm& term, bool nothing) {
  std::string text = join(term.namespaces, ",");
  text.append("\n").append(term.namespace_selector ? "*" + term.namespace_selector->text() : "");
  return text.append("\n").append(nothing ? "-" : "+").append(term.selector.text());
}

PodTerm read_term(const view::PodAffinityTerm& view, const Object& owner, int64_t weight = 0) {
  PodTerm term;
  auto selector = LabelSelector::from_json(&view.label_selector().raw());
  bool nothing = !selector || view.label_selector().raw().is_null();
  if (selector) term.selector = std::move(*selector);
  for (std::string_view ns : view.namespaces()) term.namespaces.emplace_back(ns);
  if (view.has_namespace_selector()) {
    auto namespaces = LabelSelector::from_json(&view.namespace_selector().raw());
    if (namespaces) term.namespace_selector = std::move(*namespaces);
  }
  if (term.namespaces.empty() && !view.has_namespace_selector()) term.namespaces.push_back(owner.ns());
  std::ranges::sort(term.namespaces);
  term.topology_key = view.topology_key();
  term.weight = weight;
  term.text = term_text(term, nothing);
  return term;
}

template <typename Terms>
std::vector<PodTerm> read_terms(const Terms& views, const Object& owner) {
  std::vector<PodTerm> terms;
  for (view::PodAffinityTerm term : views) terms.push_back(read_term(term, owner));
  return terms;
}

template <typename Terms>
std::vector<PodTerm> read_weighted(const Terms& views, const Object& owner) {
  std::vector<PodTerm> terms;
  for (view::WeightedPodAffinityTerm term : views) terms.push_back(read_term(term.pod_affinity_term(), owner, term.weight()));
  return terms;
}

void read_affinity(PodInfo& info, const Object& pod, const view::Affinity& affinity) {
  view::PodAffinity with = affinity.pod_affinity();
  view::PodAntiAffinity without = affinity.pod_anti_affinity();
  info.affinity = read_terms(with.required_during_scheduling_ignored_during_execution(), pod);
  info.anti_affinity = read_terms(without.required_during_scheduling_ignored_during_execution(), pod);
  info.preferred = read_weighted(with.preferred_during_scheduling_ignored_during_execution(), pod);
  info.preferred_anti = read_weighted(without.preferred_during_scheduling_ignored_during_execution(), pod);
}

// Merges matchLabelKeys: the selector also requires the values of this pod. The API merges them when it stores a pod; merging
// again changes nothing, and handles pods that were stored before it did.
LabelSelector selector_of(const view::TopologySpreadConstraint& view, const Object& pod) {
  json::value selector = view.label_selector().raw();
  std::set<std::string_view> seen;
  for (std::string_view key : view.match_label_keys()) {
    const json::value* value = pod.labels().if_contains(key);
    if (!value || !selector.is_object() || !seen.insert(key).second) continue;
    json::array& expressions = make_array(selector, "matchExpressions");
    expressions.push_back({{"key", key}, {"operator", "In"}, {"values", json::array{*value}}});
  }
  auto read = LabelSelector::from_json(&selector);
  return read ? std::move(*read) : LabelSelector::nothing();
}

void read_topology_spread_constraints(PodInfo& info, const Object& pod, const view::PodSpec& spec) {
  for (view::TopologySpreadConstraint view : spec.topology_spread_constraints()) {
    SpreadConstraint one;
    bool nothing = view.label_selector().raw().is_null();
    one.pods = term_of(pod.ns(), selector_of(view, pod), std::string(view.topology_key()));
    if (nothing) one.pods.text += "-";
    one.max_skew = view.max_skew();
    if (view.has_min_domains()) one.min_domains = view.min_domains();
    one.required = view.when_unsatisfiable() == "DoNotSchedule";
    one.honor_affinity = view.node_affinity_policy() != "Ignore";
    one.honor_taints = view.node_taints_policy() == "Honor";
    info.spread.push_back(std::move(one));
  }
}

void read_ports(PodInfo& info, const view::PodSpec& spec) {
  auto add = [&](view::Container container) {
    for (view::ContainerPort port : container.ports()) {
      if (port.host_port() <= 0) continue;
      bool any = port.host_ip() == "0.0.0.0" || port.host_ip() == "::";
      info.ports.push_back({port.host_port(), port.protocol().empty() ? "TCP" : std::string(port.protocol()),
                            any ? "" : std::string(port.host_ip())});
    }
  };
  for (view::Container container : spec.containers()) add(container);
  for (view::Container container : spec.init_containers())
    if (container.restart_policy() == "Always") add(container);
  std::ranges::sort(info.ports);
}

void read_volumes(PodInfo& info, const Object& pod, const view::PodSpec& spec) {
  for (view::Volume volume : spec.volumes()) {
    if (volume.has_persistent_volume_claim()) info.claims.emplace_back(volume.persistent_volume_claim().claim_name());
    if (volume.has_ephemeral()) {
      info.own_claims.push_back(pod.name() + "-" + std::string(volume.name()));
      info.claims.push_back(info.own_claims.back());
    }
    if (auto disk = volume.gce_persistent_disk())
      info.disks.push_back({"gce/" + std::string(disk.pd_name()), true, disk.read_only()});
    if (auto disk = volume.aws_elastic_block_store())
      info.disks.push_back({"ebs/" + std::string(disk.volume_id()), false, false});
    if (auto disk = volume.iscsi()) info.disks.push_back({"iscsi/" + std::string(disk.iqn()), true, disk.read_only()});
    if (auto disk = volume.rbd()) {
      // Hashed, because an image name may be as long as the list of monitors.
      std::string_view pool = disk.pool();
      const std::string image = std::string(pool.empty() ? "rbd" : pool) + "/" + std::string(disk.image());
      const std::string of_image = "rbd/" + std::to_string(std::hash<std::string>()(image)) + "/";
      for (std::string_view monitor : disk.monitors())
        info.disks.push_back({of_image + std::string(monitor), true, disk.read_only()});
    }
  }
  std::ranges::stable_sort(info.disks, {}, &Disk::id);
  std::vector<Disk> each_once;
  for (Disk& disk : info.disks)
    if (each_once.empty() || each_once.back().id != disk.id) each_once.push_back(std::move(disk));
    else each_once.back().read_only &= disk.read_only;
  info.disks = std::move(each_once);
}

}  // namespace

bool Disk::clashes(const Disk& other) const { return id == other.id && !(shared_when_read_only && read_only && other.read_only); }

PodTerm term_of(const std::string& ns, LabelSelector selector, std::string topology_key) {
  PodTerm term;
  term.namespaces.push_back(ns);
  term.selector = std::move(selector);
  term.topology_key = std::move(topology_key);
  term.text = term_text(term, false);
  return term;
}

PodInfo read_pod(const Object& object) {
  view::Pod pod(object);
  view::PodSpec spec = pod.spec();
  PodInfo info;
  info.object = object.at_rest();
  if (spec.scheduler_name() != kDefaultSchedulerName) info.scheduler_name = spec.scheduler_name();
  info.uid = object.uid();
  info.key = object.key();
  info.priority = spec.priority();
  info.created = pod.metadata().creation_timestamp();
  auto started = parse_time(pod.status().start_time().empty() ? std::string_view(info.created) : pod.status().start_time());
  if (started) info.started = *started;
  info.deleting = object.deleting();
  info.requests = requests_of(pod);
  if (spec.has_affinity()) read_affinity(info, object, spec.affinity());
  read_topology_spread_constraints(info, object, spec);
  read_ports(info, spec);
  read_volumes(info, object, spec);
  return info;
}

}  // namespace coracle::scheduler
