// SPDX-License-Identifier: Apache-2.0
// What resources a server has: by its aggregated discovery in two requests, or group by group where it has none.
// Source: KEP-3352; client-go discovery.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/session.h"

namespace coracle::ctl {

struct ApiResource {
  std::string group, version, name, singular, kind;
  bool namespaced = false;
  std::vector<std::string> short_names, verbs, categories;
  std::string group_version() const { return group.empty() ? version : group + "/" + version; }
};

struct ApiGroup {
  std::string name;
  std::vector<std::string> versions;  // the preferred one first; without the group
};

// All groups; that of the core has the name "". Errors: the server's.
Result<std::vector<ApiGroup>> discover_groups(Session& session);
// Each resource in its group's preferred version, or in the next that has it; no subresources. Groups that cannot be read are
// told in `failures`, the others are still given. Errors: the server's.
Result<std::vector<ApiResource>> discover_resources(Session& session, std::vector<Error>& failures);
// The version of the group that has the resource where the server lacks `version`: an older server's, the next in shape first, so
// v2beta2 before v1 for v2. Errors: not_found when none has; the server's.
Result<std::string> other_version(Session& session, const std::string& group, std::string_view version,
                                  std::string_view resource);
// The versions of an APIGroup without `version`, the next in shape to it first. Pure.
std::vector<std::string> other_versions(const json::value& group, std::string_view version);
// What a user calls "po", "Pod", "pods", "deployments.apps" or "deployments.v1.apps". Pure.
const ApiResource* resource_named(const std::vector<ApiResource>& resources, std::string_view word);

}  // namespace coracle::ctl
