// SPDX-License-Identifier: Apache-2.0
// Access to the parts of a Pod that the node agent needs: containers with their roles, the names of referenced objects, and the
// paths of its files on this machine. Pure.
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
  const json::value* spec;  // points into the pod's JSON: valid while the pod's object exists
  std::string_view name;
  Role role;
};

std::vector<ContainerRef> containers_of(const json::value& pod);  // init containers in order, then the main ones
std::vector<ContainerRef> ephemeral_of(const json::value& pod);   // ephemeral containers
size_t count_containers(const json::value& pod);                  // init, main and ephemeral
std::optional<ContainerRef> find_container(const json::value& pod, std::string_view name);
// The containerStatus of a container of any kind; nullptr if absent.
const json::value* status_of(const json::value& pod, std::string_view container);

// A pod's containers by name, for many lookups: a pod may have thousands. Valid while the pod's object exists.
class ContainerIndex {
 public:
  explicit ContainerIndex(const json::value& pod);
  const std::vector<ContainerRef>& all() const { return all_; }    // as containers_of, then ephemeral_of
  const ContainerRef* find(std::string_view name) const;           // nullptr if there is none
  const json::value* status_of(std::string_view container) const;  // as status_of
 private:
  std::vector<ContainerRef> all_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::unordered_map<std::string_view, const json::value*> statuses_;
};

// Always for a sidecar, never for an ephemeral container. Otherwise the container's own policy, else the pod's, of which Always
// means for an init container: after a failure.
RestartPolicy restart_policy(const json::value& pod, const ContainerRef& container);
// Whether one of the container's restartPolicyRules restarts it after this exit code.
bool restarts_by_rule(const json::value& container, int exit_code);

int64_t grace_seconds(const json::value& pod);  // of a deletion if one is under way, else from the spec
bool ends_by_itself(const json::value& pod);    // its phase is Succeeded or Failed
std::vector<HostPort> host_ports(const json::value& pod);

// Whether the mount is to be read-only recursively (recursiveReadOnly). This node always supports that. Source: KEP-3857.
bool is_recursively_read_only(const json::value& volume_mount);

struct References {  // names of the objects that the pod's volumes refer to
  std::set<std::string, std::less<>> config_maps, secrets, claims;
};
References volume_references(const json::value& pod);

// The directories of a pod. paths_of checks the uid before it becomes part of a path: [A-Za-z0-9-]{1,64}. Errors: invalid, also
// if the pod's name or namespace cannot be part of a path.
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

bool is_pod_uid(std::string_view uid);  // whether it can be a part of a path

// The host name and the domain name in the pod, from spec.hostname, spec.subdomain and the pod's name.
std::string hostname_of(const json::value& pod);
std::string fqdn_of(const json::value& pod, std::string_view cluster_domain);  // "" without a subdomain

}  // namespace coracle::node
