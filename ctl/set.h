// SPDX-License-Identifier: Apache-2.0
// The pure half of set: an object's pods changed as a few flags say. Each gives no error and changes nothing where all is so
// already.
#pragma once

#include <string>
#include <vector>

#include "ctl/edit.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

// The pods' spec in a Pod, a CronJob or what has a template; nullptr where there is none.
json::value* pod_spec_of(json::value& object);

// CONTAINER=IMAGE, "*" for all of them, init containers too. Errors: not_found for a container's name; bad_request for KEY-.
Result<void> set_images(json::value& object, const std::vector<Change>& changes);

struct EnvFrom {                   // a ConfigMap or Secret whose keys become variables
  std::string kind, name, prefix;  // "configmap", "secret"
  std::vector<std::string> keys;
};
// What --from gives: NAME to its valueFrom. "a.key" becomes "A_KEY".
json::array env_of(const EnvFrom& from);
// In all containers, or those of that name. Errors: not_found; conflict where a value is there and may not be replaced.
Result<void> set_env(json::value& object, const std::string& container, const std::vector<Change>& changes,
                     const json::array& from, bool overwrite);
std::string env_text(const json::value& object);  // as --list shows it

// "cpu=1,memory=1Gi" of --limits and --requests, into what the containers have. Errors: bad_request; not_found.
Result<void> set_resources(json::value& object, const std::string& container, const std::string& limits,
                           const std::string& requests);

}  // namespace coracle::ctl
