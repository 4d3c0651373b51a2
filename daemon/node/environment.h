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

// How much text may be made for a pod. References make much of little: a variable may refer to another one twice, which does the
// same, and a hundred thousand of them to one ConfigMap of a megabyte. What comes near these bounds could not be used anyway: the
// kernel takes some megabytes of arguments and variables.
constexpr size_t kEnvironmentBytesMax =
    16 << 20;  // of one container's variables and what they are read from; again of its arguments
constexpr size_t kEnvFilesBytesMax = 256 << 20;    // of files that one container's variables are read from, each time it is read
constexpr size_t kPayloadBytesMax = 32 << 20;      // of one volume of ConfigMaps, Secrets and fields
constexpr size_t kTokenCost = 16 << 10;            // of these, for each token: it is signed
constexpr size_t kPullSecretsBytesMax = 16 << 20;  // of one pod's secrets for registries
class TextBudget {
 public:
  // `what`: whose texts these are, for the error. Must outlive it.
  TextBudget(std::string_view what, size_t bytes) : what_(what), bytes_(bytes), left_(bytes) {}
  Result<void> take(size_t bytes);  // Errors: invalid, when it is used up

 private:
  std::string_view what_;
  size_t bytes_, left_;
};

// Replaces $(NAME) by the variable's value; "$$" is a dollar; what is no variable stays as it is written. Errors: invalid, when
// the budget is used up.
Result<std::string> expand(std::string_view text, const std::map<std::string, std::string>& variables, TextBudget& budget);

// What a pod's environment and volumes may refer to.
struct Lookup {
  std::function<ObjectPtr(std::string_view name)> config_map, secret;  // of the pod's namespace; null when absent
  std::vector<ObjectPtr> services;                                     // of its namespace, and default/kubernetes
  volume::StorageObjects storage;                                      // empty where nobody knows any
  // The text of a file in a volume of the pod. Errors: not_found.
  std::function<Result<std::string>(std::string_view volume, const std::string& path)> file;
};

// ConfigMaps and Secrets, each read once however often it is named: parsing one anew takes milliseconds. `lookup` and `budget`,
// which is charged with their texts, must outlive it. Null: there is none. Errors: invalid, when the budget is used up.
class NamedObjects {
 public:
  NamedObjects(const Lookup& lookup, TextBudget& budget) : lookup_(lookup), budget_(budget) {}
  Result<ObjectPtr> config_map(std::string_view name) { return read_once(config_maps_, lookup_.config_map, name); }
  Result<ObjectPtr> secret(std::string_view name) { return read_once(secrets_, lookup_.secret, name); }

 private:
  using Known = std::map<std::string, ObjectPtr, std::less<>>;
  Result<ObjectPtr> read_once(Known& known, const std::function<ObjectPtr(std::string_view)>& read, std::string_view name);
  const Lookup& lookup_;
  TextBudget& budget_;
  Known config_maps_, secrets_;
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
