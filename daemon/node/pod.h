// SPDX-License-Identifier: Apache-2.0
// Reading a Pod as the node agent needs it: its containers with their roles, the names of what it refers to, and where
// its things lie on this machine. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/node/config.h"
#include "daemon/node/plan.h"
#include "store/object/object_ptr.h"

namespace coracle::node {

struct ContainerRef {
  const json::value* spec;  // of the pod's own JSON: lives as long as the pod's object
  std::string_view name;
  Role role;
};

std::vector<ContainerRef> containers_of(const json::value& pod);  // init containers first, in order; those it was made with
std::vector<ContainerRef> ephemeral_of(const json::value& pod);   // that were added later
size_t count_containers(const json::value& pod);                  // of both kinds, as what follows
std::optional<ContainerRef> find_container(const json::value& pod, std::string_view name);
// The status entry of a container, of whatever kind; nullptr when absent.
const json::value* status_of(const json::value& pod, std::string_view container);

// A pod's containers by name, for who asks for many: a pod may have thousands. Lives as long as the pod's object.
class ContainerIndex {
 public:
  explicit ContainerIndex(const json::value& pod);
  const std::vector<ContainerRef>& all() const { return all_; }    // as containers_of, then ephemeral_of
  const ContainerRef* find(std::string_view name) const;           // nullptr: there is none
  const json::value* status_of(std::string_view container) const;  // as status_of
 private:
  std::vector<ContainerRef> all_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::unordered_map<std::string_view, const json::value*> statuses_;
};

RestartPolicy restart_policy(const json::value& pod, const ContainerRef& container);
// Whether one of the container's own restartPolicyRules asks for a restart after this exit code.
bool restarts_by_rule(const json::value& container, int exit_code);

int64_t grace_seconds(const json::value& pod);  // of a deletion under way, else the pod's own
bool ends_by_itself(const json::value& pod);    // its phase is Succeeded or Failed
std::vector<HostPort> host_ports(const json::value& pod);

// Whether a volume mount is to be read-only with all that is mounted beneath it. This node can do that always. Source: KEP-3857.
bool is_recursively_read_only(const json::value& volume_mount);

struct References {  // names of what the pod's volumes show
  std::set<std::string, std::less<>> config_maps, secrets, claims;
};
References volume_references(const json::value& pod);

// Where a pod's things lie. Its uid is checked before it becomes a path: [A-Za-z0-9-]{1,64}.
struct PodPaths {
  std::string state, memory, logs;
  std::string volume(std::string_view name) const { return state + "/volumes/" + std::string(name); }
  std::string memory_volume(std::string_view name) const { return memory + "/" + std::string(name); }
  std::string container(std::string_view name) const { return state + "/containers/" + std::string(name); }
  std::string log(std::string_view container, int attempt) const {
    return logs + "/" + std::string(container) + "/" + std::to_string(attempt) + ".log";
  }
};
Result<PodPaths> paths_of(const AgentConfig& config, const Key& pod, std::string_view uid);

bool is_pod_uid(std::string_view uid);

// What hosts pods name themselves, by spec.hostname, subdomain and the pod's name.
std::string hostname_of(const json::value& pod);
std::string fqdn_of(const json::value& pod, std::string_view cluster_domain);  // "" without a subdomain

}  // namespace coracle::node
