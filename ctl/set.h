// SPDX-License-Identifier: Apache-2.0
// The pure part of set: changes the pod template of an object as the flags say. A change that is already there is no error.
#pragma once

#include <string>
#include <vector>

#include "ctl/edit.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

// The pod spec of a Pod, a CronJob or an object with a pod template; nullptr for other objects.
json::value* pod_spec_of(json::value& object);

// Changes are CONTAINER=IMAGE; "*" means all containers and init containers. Errors: not_found for an unknown container;
// bad_request for KEY-.
Result<void> set_images(json::value& object, const std::vector<Change>& changes);

struct EnvFrom {                   // a ConfigMap or Secret whose keys become environment variables
  std::string kind, name, prefix;  // "configmap", "secret"
  std::vector<std::string> keys;
};
// The variables of --from, each with a valueFrom. The key "a.key" becomes "A_KEY".
json::array env_of(const EnvFrom& from);
// Changes all containers, or those named `container`. Errors: not_found; conflict if a variable has another value and `overwrite`
// is false.
Result<void> set_env(json::value& object, const std::string& container, const std::vector<Change>& changes,
                     const json::array& from, bool overwrite);
std::string env_text(const json::value& object);  // the output of --list

// Merges --limits and --requests ("cpu=1,memory=1Gi") into the containers' resources. Errors: bad_request; not_found.
Result<void> set_resources(json::value& object, const std::string& container, const std::string& limits,
                           const std::string& requests);

}  // namespace coracle::ctl
