// SPDX-License-Identifier: Apache-2.0
// Plugins that depend on the node alone: NodeName, NodeUnschedulable, NodePorts, ImageLocality. Source: Kubernetes "Assigning
// Pods to Nodes", kube-scheduler plugins of these names.
#include <algorithm>
#include <tuple>

#include "daemon/placement/placement.h"
#include "daemon/scheduler/plugins/plugins.h"

namespace coracle::scheduler {
namespace {

class NodeName : public Plugin {
 public:
  std::string_view name() const override { return "NodeName"; }
  uint32_t points() const override { return pre_filter_point | filter_point; }
  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    return cycle.pod.spec().node_name().empty() ? Answer::skip : Answer::success;
  }
  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    std::string_view wanted = cycle.pod.spec().node_name();
    if (wanted.empty() || wanted == node.name) return Answer::success;
    if (why) why->push_back({"node(s) didn't match the requested node name", "wants node " + std::string(wanted), ""});
    return Answer::unresolvable;
  }
  bool could_help(const ClusterEvent& event, const PodInfo&, Cluster&) const override {
    return event.is(ClusterEvent::node_added);
  }
};

const json::value& unschedulable_taint() {
  static const json::value taint = {{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}};
  return taint;
}

class NodeUnschedulable : public Plugin {
 public:
  std::string_view name() const override { return "NodeUnschedulable"; }
  uint32_t points() const override { return pre_filter_point | filter_point; }
  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    return cycle.cluster.any_unschedulable() ? Answer::success : Answer::skip;
  }
  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    if (!node.unschedulable || placement::tolerates(cycle.pod, view::Taint(unschedulable_taint()))) return Answer::success;
    if (why) why->push_back({"node(s) were unschedulable", "cordoned", "uncordon node " + node.name});
    return Answer::unresolvable;
  }
  bool could_help(const ClusterEvent& event, const PodInfo&, Cluster&) const override {
    return event.is(ClusterEvent::node_added | ClusterEvent::node_taints) && !event.node->unschedulable;
  }
};

// Both lists are sorted, with ports without an address first. The shorter list is searched in the longer one: a deleted pod may
// have 50,000 ports and is compared with every waiting pod.
bool clash(const std::vector<HostPort>& wanted, const PodInfo& other, const HostPort** which = nullptr) {
  auto number = [](const HostPort& port) { return std::tie(port.port, port.protocol); };
  const bool few_wanted = wanted.size() <= other.ports.size();
  const auto &few = few_wanted ? wanted : other.ports, &many = few_wanted ? other.ports : wanted;
  for (const HostPort& one : few) {
    auto there = std::ranges::equal_range(many, number(one), {}, number);
    if (there.empty()) continue;
    auto same =
        one.ip.empty() || there.front().ip.empty() ? there.begin() : std::ranges::lower_bound(there, one.ip, {}, &HostPort::ip);
    if (same == there.end() || !(one.ip.empty() || same->ip.empty() || same->ip == one.ip)) continue;
    if (which) *which = few_wanted ? &one : &*same;
    return true;
  }
  return false;
}

class NodePorts : public Plugin {
 public:
  std::string_view name() const override { return "NodePorts"; }
  uint32_t points() const override { return pre_filter_point | filter_point; }
  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    return cycle.info->ports.empty() ? Answer::skip : Answer::success;
  }
  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    for (const PodInfoPtr& other : node.pods) {
      const HostPort* port = nullptr;
      if (!clash(cycle.info->ports, *other, &port)) continue;
      if (why) {
        std::string which = port->protocol + " " + std::to_string(port->port);
        why->push_back({"node(s) didn't have free ports for the requested pod ports",
                        "host port " + which + " taken by pod " + other->key.text(), "host port " + which + " free"});
      }
      return Answer::unschedulable;
    }
    return Answer::success;
  }
  bool could_help(const ClusterEvent& event, const PodInfo& pod, Cluster&) const override {
    return event.is(ClusterEvent::node_added) || (event.is(ClusterEvent::pod_removed) && clash(pod.ports, *event.pod));
  }
};

constexpr int64_t kMegabyte = 1 << 20, kImagesMin = 23 * kMegabyte, kImagesMaxOfContainer = 1000 * kMegabyte;

// "busybox" becomes "busybox:latest"; digests stay unchanged.
std::string full_name(std::string_view image) {
  auto last = [&](char c) { return image.rfind(c) == image.npos ? long(-1) : long(image.rfind(c)); };
  return std::string(image) + (last(':') <= last('/') ? ":latest" : "");
}

class ImageLocality : public Plugin {
 public:
  std::string_view name() const override { return "ImageLocality"; }
  uint32_t points() const override { return pre_score_point | score_point; }

  struct State : CycleState::State {
    std::vector<std::pair<std::string, double>> images;  // name, fraction of the nodes that have it
    int64_t containers = 0;
  };
  Answer pre_score(CycleState& cycle, const std::vector<const NodeInfo*>&) const override {
    auto state = std::make_unique<State>();
    auto add = [&](const auto& containers) {
      for (view::Container container : containers) {
        ++state->containers;
        std::string image = full_name(container.image());
        int nodes = cycle.cluster.nodes_with_image(image);
        if (nodes) state->images.emplace_back(std::move(image), double(nodes) / double(cycle.cluster.nodes().size()));
      }
    };
    add(cycle.pod.spec().init_containers());
    add(cycle.pod.spec().containers());
    if (state->images.empty()) return Answer::skip;  // all nodes would score 0
    cycle.score_state[index] = std::move(state);
    return Answer::success;
  }
  void score(const CycleState& cycle, std::vector<NodeScore>& scores) const override {
    const auto& state = static_cast<const State&>(*cycle.score_state[index]);
    int64_t most = kImagesMaxOfContainer * state.containers;
    score_each(scores, [&](const NodeInfo& node) {
      int64_t sum = 0;
      for (const auto& [image, share] : state.images) {
        auto found = std::ranges::lower_bound(node.images, image, {}, &std::pair<std::string, int64_t>::first);
        if (found != node.images.end() && found->first == image) sum += int64_t(double(found->second) * share);
      }
      return kNodeScoreMax * (std::clamp(sum, kImagesMin, most) - kImagesMin) / (most - kImagesMin);
    });
  }
};

}  // namespace

std::unique_ptr<Plugin> make_node_name() { return std::make_unique<NodeName>(); }
std::unique_ptr<Plugin> make_node_unschedulable() { return std::make_unique<NodeUnschedulable>(); }
std::unique_ptr<Plugin> make_node_ports() { return std::make_unique<NodePorts>(); }
std::unique_ptr<Plugin> make_image_locality() { return std::make_unique<ImageLocality>(); }

}  // namespace coracle::scheduler
