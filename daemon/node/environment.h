// SPDX-License-Identifier: Apache-2.0
// A container's environment, pure: service variables, envFrom, env with $(VAR) and valueFrom, in the order in which later
// ones win. What a reference names and does not exist is an error in kubelet's words (CreateContainerConfigError).
// Source: Kubernetes core/v1 EnvVar; kubelet's makeEnvironmentVariables; third_party/forked/golang/expansion (semantics).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/node/pod.h"
#include "daemon/volume/backing.h"
#include "store/object/object_ptr.h"

namespace coracle::node {

// Replaces $(NAME) by lookup(NAME); "$$" is a dollar; what lookup does not know stays as it is written.
std::string expand(std::string_view text, const std::map<std::string, std::string>& variables);

// What a pod's environment and volumes may refer to.
struct Lookup {
  std::function<ObjectPtr(std::string_view name)> config_map, secret;  // of the pod's namespace; null when absent
  std::vector<ObjectPtr> services;                                     // of its namespace, and default/kubernetes
  volume::StorageObjects storage;                                      // empty where nobody knows any
  // The text of a file in a volume of the pod. Errors: not_found.
  std::function<Result<std::string>(std::string_view volume, const std::string& path)> file;
};

struct PodIdentity {  // what the downward API tells beside the pod itself
  std::string node_name;
  std::vector<std::string> host_ips, pod_ips;
  json::object allocatable;  // the node's, for limits that are not set
};

// The value of a fieldRef: "metadata.name", "metadata.labels['a']", "status.podIP", … Errors: invalid.
Result<std::string> field_value(const json::value& pod, std::string_view path, const PodIdentity& identity);
// The value of a resourceFieldRef for `container`, in units of its divisor, rounded up. Errors: invalid.
Result<std::string> resource_value(const json::value& container, std::string_view resource, const json::value* divisor,
                                   const PodIdentity& identity);

// "REDIS_SERVICE_HOST" and its kin for every service with a cluster address.
std::map<std::string, std::string> service_variables(const std::vector<ObjectPtr>& services, bool all, std::string_view ns);

// What an environment file says about `key`; nothing when it does not name it. A value stands in single quotes, as it is, over
// several lines if need be; one without quotes ends with its line, or before " #". Lines that begin with # say nothing.
// Errors: invalid, naming the line. Source: Kubernetes, define environment variable values using an init container; KEP-3721.
Result<std::optional<std::string>> value_in_env_file(std::string_view text, std::string_view key);

// NAME → value, complete. Errors: not_found and invalid, worded for the pod's status.
Result<std::map<std::string, std::string>> make_environment(const json::value& pod, const json::value& container,
                                                            const Lookup& lookup, const PodIdentity& identity);

}  // namespace coracle::node
