// SPDX-License-Identifier: Apache-2.0
// The pure part of set: changes an object as the flags say. A change that is already there is no error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ctl/edit.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

// The pod spec of a Pod, a CronJob or an object with a pod template; nullptr for other objects.
json::value* pod_spec_of(json::value& object);

// "*" in a pattern stands for any letters.
bool matches_pattern(std::string_view name, std::string_view pattern);
// Calls `act` for the containers and init containers whose names match ("*": all). Returns how many there are. Errors:
// bad_request for an object without a pod template.
Result<size_t> each_container(json::value& object, const std::string& pattern, const std::function<void(json::value&)>& act);

// Changes are CONTAINER=IMAGE; "*" means all containers and init containers. Gives an error (not_found) for each container that
// is not there: the others are changed all the same. Errors: bad_request for KEY-, and for an object without a pod template.
Result<std::vector<Error>> set_images(json::value& object, const std::vector<Change>& changes);

struct EnvFrom {           // a ConfigMap or Secret whose keys become environment variables
  std::string kind, name;  // "configmap", "secret"
  std::vector<std::string> keys;
};
// The variables of --from, each with a valueFrom. The key "a.key" becomes "A_KEY".
json::array env_of(const EnvFrom& from);
std::string variable_of_key(std::string_view key);
// Adds variables ({name, value} or {name, valueFrom}) to the containers whose names match the pattern, or replaces them, and
// removes others. Returns how many containers match. Errors: conflict if a variable has another value and `overwrite` is false;
// bad_request for an object without a pod template.
Result<size_t> set_env(json::value& object, const std::string& containers, const json::array& variables,
                       const std::vector<std::string>& removed, bool overwrite);

struct EnvText {
  std::string text;
  std::vector<std::string> faults;  // references whose values could not be read
};
// The output of --list. With `value_of`, a valueFrom is printed as the value that it refers to.
using ValueOfReference = std::function<Result<std::string>(const json::value& from, const json::value& container)>;
EnvText env_text(const json::value& object, const std::string& containers, const ValueOfReference& value_of = {});
// The value of a fieldRef or resourceFieldRef of a container. Errors: bad_request for a field that has none.
Result<std::string> value_of_field(const json::value& object, const json::value& container, const json::value& from);

// Merges --limits and --requests ("cpu=1,memory=1Gi") into the containers' resources. Errors: bad_request; not_found.
Result<void> set_resources(json::value& object, const std::string& containers, const std::string& limits,
                           const std::string& requests);

// Adds those subjects to a RoleBinding or ClusterRoleBinding that it does not have. Errors: bad_request for other kinds.
Result<void> add_subjects(json::value& object, const json::array& subjects);

}  // namespace coracle::ctl
