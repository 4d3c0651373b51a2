// SPDX-License-Identifier: Apache-2.0
// Cluster: the nodes, what runs on each, and what that asks for, kept level by single changes so that deciding about
// one pod does not add up all the others. Pure data; whoever shares it guards it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::scheduler {

// Amounts by resource name: cpu in millicores, everything else in its unit (bytes, pieces).
class Resources {
 public:
  static Resources of(const json::object& quantities);  // what cannot be read counts as 0
  int64_t get(std::string_view name) const;
  void set(std::string_view name, int64_t amount);
  Resources& operator+=(const Resources& other);
  Resources& operator-=(const Resources& other);
  void raise_to(const Resources& other);  // the larger of each
  const std::map<std::string, int64_t, std::less<>>& all() const& { return amounts_; }
  void all() && = delete;  // what it would refer to is about to go

 private:
  std::map<std::string, int64_t, std::less<>> amounts_;
};

// What a pod asks for: its containers' sum, or what an init container needs at its turn, and the overhead.
// Source: Kubernetes "Resource sharing within containers", sidecar containers.
Resources requests_of(const view::Pod& pod);

struct HostPort {
  std::string protocol, ip;
  int64_t port = 0;
  bool clashes(const HostPort& other) const;
};
std::vector<HostPort> host_ports(const view::Pod& pod);

struct PlacedPod {
  ObjectPtr pod;
  Resources requests;
  std::vector<HostPort> ports;
};

struct NodeInfo {
  ObjectPtr node;  // null: pods are bound to it, but it is not there (yet)
  Resources allocatable;
  Resources requested;
  std::map<std::string, PlacedPod> pods;  // by uid
};

class Cluster {
 public:
  void put_node(const ObjectPtr& node);
  void remove_node(const std::string& name);
  // A pod that is bound and not finished. Replaces an earlier state of it.
  void put_pod(const ObjectPtr& pod, const std::string& node);
  bool remove_pod(const std::string& uid);  // whether it was there
  bool holds(const std::string& uid) const { return places_.contains(uid); }
  const std::map<std::string, NodeInfo>& nodes() const { return nodes_; }

 private:
  void forget_if_empty(const std::string& node);
  std::map<std::string, NodeInfo> nodes_;
  std::map<std::string, std::string> places_;  // pod uid → node
};

// The labels of a namespace; for namespaceSelector in pod affinity. May answer with none.
using NamespaceLabels = std::function<json::object(std::string_view ns)>;

}  // namespace coracle::scheduler
