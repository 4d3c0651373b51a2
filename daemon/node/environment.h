// SPDX-License-Identifier: Apache-2.0
// A container's environment, pure: service variables, envFrom, and env with $(VAR) and valueFrom. Later entries override earlier
// ones. A reference to a missing object is an error with kubelet's text (CreateContainerConfigError). Source: Kubernetes core/v1
// EnvVar; kubelet's makeEnvironmentVariables; third_party/forked/golang/expansion (semantics).
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

// Limits of the text that is generated for a pod. A small pod can expand to a lot of text: a variable may refer twice to another
// one that does the same, or a hundred thousand variables may refer to one ConfigMap of 1 MiB. Text near these limits could not
// be used anyway: the kernel accepts a few megabytes of arguments and variables.
// Of one container's variables and their sources; the same again for its arguments.
constexpr size_t kEnvironmentBytesMax = 16 << 20;
constexpr size_t kEnvFilesBytesMax = 256 << 20;    // of the files that a container's variables are read from, counted per read
constexpr size_t kPayloadBytesMax = 32 << 20;      // of one volume of ConfigMaps, Secrets and fields
constexpr size_t kTokenCost = 16 << 10;            // charged to that budget for each token, because a token must be signed
constexpr size_t kPullSecretsBytesMax = 16 << 20;  // of the registry secrets of one pod
class TextBudget {
 public:
  // `what` names the owner of the text in the error message. It must outlive the budget.
  TextBudget(std::string_view what, size_t bytes) : what_(what), bytes_(bytes), left_(bytes) {}
  Result<void> take(size_t bytes);  // Errors: invalid if the budget is exhausted

 private:
  std::string_view what_;
  size_t bytes_, left_;
};

// Replaces $(NAME) by the variable's value and "$$" by a dollar sign. Unknown names stay unchanged. Errors: invalid if the budget
// is exhausted.
Result<std::string> expand(std::string_view text, const std::map<std::string, std::string>& variables, TextBudget& budget);

// The objects that a pod's environment and volumes may refer to.
struct Lookup {
  std::function<ObjectPtr(std::string_view name)> config_map, secret;  // in the pod's namespace; null if absent
  // default/kubernetes and, if `all`, those of the pod's namespace. Called once for each container that starts: there may be
  // thousands.
  std::function<std::vector<ObjectPtr>(bool all)> services;
  volume::StorageObjects storage;  // empty if there are none
  // The content of a file in a volume of the pod. Errors: not_found.
  std::function<Result<std::string>(std::string_view volume, const std::string& path)> file;
  std::function<ObjectPtr()> node = {};  // this one; null if it is not known yet
};

// A cache of ConfigMaps and Secrets: each is read once, because parsing one takes milliseconds. `lookup` and `budget` must
// outlive it. The budget is charged with the objects' text. A null pointer means that the object does not exist. Errors: invalid
// if the budget is exhausted.
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

struct PodIdentity {  // fields of the downward API that are not in the pod
  std::string node_name;
  std::vector<std::string> host_ips, pod_ips;
  json::object allocatable;  // of the node, for limits that are not set
};

// The value of a fieldRef: "metadata.name", "metadata.labels['a']", "status.podIP", … Errors: invalid.
Result<std::string> field_value(const json::value& pod, std::string_view path, const PodIdentity& identity);
// The value of a resourceFieldRef for `container`, divided by the divisor and rounded up. Errors: invalid.
Result<std::string> resource_value(const json::value& container, std::string_view resource, const json::value* divisor,
                                   const PodIdentity& identity);

// "REDIS_SERVICE_HOST" and the other variables of every Service with a cluster IP.
std::map<std::string, std::string> service_variables(const std::vector<ObjectPtr>& services, bool all, std::string_view ns);

// The value of `key` in an environment file; nullopt if the key is absent. A value in single quotes is taken literally and may
// span lines. A value without quotes ends at the end of the line or before " #". Lines that begin with # are ignored. Errors:
// invalid, with the line number. Source: Kubernetes, define environment variable values using an init container; KEP-3721.
Result<std::optional<std::string>> value_in_env_file(std::string_view text, std::string_view key);

// The complete environment, NAME → value. Errors: not_found and invalid, with the message for the pod's status.
Result<std::map<std::string, std::string>> make_environment(const json::value& pod, const json::value& container,
                                                            const Lookup& lookup, const PodIdentity& identity);

}  // namespace coracle::node
