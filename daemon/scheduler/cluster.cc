// SPDX-License-Identifier: Apache-2.0
// What is where, and what it asks for. See cluster.h.
#include "daemon/scheduler/cluster.h"

#include <algorithm>

#include "store/object/quantity.h"

namespace coracle::scheduler {

Resources Resources::of(const json::object& quantities) {
  Resources out;
  for (const auto& [name, value] : quantities) {
    auto quantity = Quantity::from_json(value);
    if (quantity) out.amounts_[std::string(name)] = name == "cpu" ? quantity->milli_value() : quantity->value();
  }
  return out;
}

int64_t Resources::get(std::string_view name) const {
  auto found = amounts_.find(name);
  return found == amounts_.end() ? 0 : found->second;
}

void Resources::set(std::string_view name, int64_t amount) { amounts_[std::string(name)] = amount; }

Resources& Resources::operator+=(const Resources& other) {
  for (const auto& [name, amount] : other.amounts_) amounts_[name] += amount;
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  for (const auto& [name, amount] : other.amounts_) amounts_[name] -= amount;
  return *this;
}

void Resources::raise_to(const Resources& other) {
  for (const auto& [name, amount] : other.amounts_) amounts_[name] = std::max(amounts_[name], amount);
}

Resources requests_of(const view::Pod& pod) {
  Resources running;
  for (view::Container container : pod.spec().containers()) running += Resources::of(container.resources().requests());
  Resources sidecars, starting;
  for (view::Container container : pod.spec().init_containers()) {
    Resources own = Resources::of(container.resources().requests());
    if (container.restart_policy() == "Always") {  // a sidecar: runs from its turn on
      running += own;
      sidecars += own;
      starting.raise_to(sidecars);
    } else {
      own += sidecars;
      starting.raise_to(own);
    }
  }
  running.raise_to(starting);
  Resources whole = Resources::of(pod.spec().resources().requests());
  for (const auto& [name, amount] : whole.all()) running.set(name, amount);
  running += Resources::of(pod.spec().overhead());
  return running;
}

bool HostPort::clashes(const HostPort& other) const {
  auto everywhere = [](const std::string& ip) { return ip.empty() || ip == "0.0.0.0" || ip == "::"; };
  return port == other.port && protocol == other.protocol && (everywhere(ip) || everywhere(other.ip) || ip == other.ip);
}

std::vector<HostPort> host_ports(const view::Pod& pod) {
  std::vector<HostPort> out;
  auto add = [&](view::Container container) {
    for (view::ContainerPort port : container.ports())
      if (port.host_port() > 0)
        out.push_back({port.protocol().empty() ? "TCP" : std::string(port.protocol()), std::string(port.host_ip()),
                       port.host_port()});
  };
  for (view::Container container : pod.spec().containers()) add(container);
  for (view::Container container : pod.spec().init_containers())
    if (container.restart_policy() == "Always") add(container);
  return out;
}

void Cluster::put_node(const ObjectPtr& node) {
  NodeInfo& info = nodes_[node->name()];
  info.node = node;
  view::NodeStatus status = view::Node(*node).status();
  info.allocatable = Resources::of(status.has_allocatable() ? status.allocatable() : status.capacity());
}

void Cluster::remove_node(const std::string& name) {
  auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  found->second.node = nullptr;
  forget_if_empty(name);
}

void Cluster::put_pod(const ObjectPtr& object, const std::string& node) {
  remove_pod(object->uid());
  view::Pod pod(*object);
  PlacedPod placed{object, requests_of(pod), host_ports(pod)};
  NodeInfo& info = nodes_[node];
  info.requested += placed.requests;
  info.pods.emplace(object->uid(), std::move(placed));
  places_[object->uid()] = node;
}

bool Cluster::remove_pod(const std::string& uid) {
  auto place = places_.find(uid);
  if (place == places_.end()) return false;
  std::string node = std::move(place->second);
  places_.erase(place);
  NodeInfo& info = nodes_[node];
  auto placed = info.pods.find(uid);
  info.requested -= placed->second.requests;
  info.pods.erase(placed);
  forget_if_empty(node);
  return true;
}

void Cluster::forget_if_empty(const std::string& node) {
  auto found = nodes_.find(node);
  if (found != nodes_.end() && !found->second.node && found->second.pods.empty()) nodes_.erase(found);
}

}  // namespace coracle::scheduler
