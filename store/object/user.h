// SPDX-License-Identifier: Apache-2.0
// User: the requester. Authentication (daemon/auth) determines it; the write pipeline, admission and the audit log use it.
// Source: Kubernetes "Authenticating", user info.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coracle {

struct User {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool in(std::string_view group) const { return std::find(groups.begin(), groups.end(), group) != groups.end(); }
  bool anonymous() const { return name == "system:anonymous"; }
};
using UserPtr = std::shared_ptr<const User>;  // one value for all requests of a connection or token

}  // namespace coracle
