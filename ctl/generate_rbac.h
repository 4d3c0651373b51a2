// SPDX-License-Identifier: Apache-2.0
// Roles, ClusterRoles and their bindings from flags, as kubectl makes them. Pure: the caller looks resources up.
// Source: kubectl pkg/cmd/create/create_role.go, create_clusterrole.go, create_rolebinding.go; pkg/cmd/set/set_subject.go.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct RuleResource {  // "deployments.apps/scale"
  std::string name, group, subresource;
};

struct RoleFlags {
  std::string name;
  std::vector<std::string> verbs, resources, resource_names, non_resource_urls, aggregation;  // aggregation: "KEY=VALUE"
};

// Returns a resource's full name and group for one that the user typed ("rs.apps": replicasets, apps). Errors: not_found.
using FindResource = std::function<Result<RuleResource>(const RuleResource& typed)>;

// `warn` is told of verbs that no resource usually has. Errors: bad_request, worded as kubectl's; those of `find`.
Result<json::value> role_of(const RoleFlags& flags, const FindResource& find, const std::function<void(std::string)>& warn);
Result<json::value> cluster_role_of(const RoleFlags& flags, const FindResource& find,
                                    const std::function<void(std::string)>& warn);

struct SubjectFlags {
  std::vector<std::string> users, groups, service_accounts;  // the last as "NAMESPACE:NAME"
};
// The subjects in that order. An account without a namespace (":NAME") is in `ns`; if that is "", it is an error. Errors:
// bad_request.
Result<json::array> subjects_of(const SubjectFlags& flags, const std::string& ns);

struct BindingFlags : SubjectFlags {
  std::string name, role, cluster_role;
};
Result<json::value> role_binding_of(const BindingFlags& flags);          // Errors: bad_request
Result<json::value> cluster_role_binding_of(const BindingFlags& flags);  // Errors: bad_request

}  // namespace coracle::ctl
