// SPDX-License-Identifier: Apache-2.0
// See discovery.h.
#include "ctl/discovery.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr const char* kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

struct Found {
  std::vector<ApiGroup> groups;
  std::vector<ApiResource> resources;
};

bool is_known(const std::vector<ApiResource>& resources, std::string_view group, std::string_view name) {
  return std::any_of(resources.begin(), resources.end(), [&](const auto& one) { return one.group == group && one.name == name; });
}

// An APIGroupDiscoveryList.
void read_aggregated(const json::value& list, Found& found) {
  for (const auto& item : items_of(list)) {
    ApiGroup group{std::string(metadata_of(item).name()), {}};
    for (const auto& version : get_array(item, "versions")) {
      group.versions.emplace_back(get_string(version, "version"));
      for (const auto& resource : get_array(version, "resources")) {
        std::string name(get_string(resource, "resource"));
        if (get_array(resource, "verbs").empty() || is_known(found.resources, group.name, name)) continue;
        found.resources.push_back({group.name, group.versions.back(), name, std::string(get_string(resource, "singularResource")),
                                   std::string(get_string(resource, "responseKind.kind")),
                                   get_string(resource, "scope") == "Namespaced", get_strings(resource, "shortNames"),
                                   get_strings(resource, "verbs"), get_strings(resource, "categories")});
      }
    }
    found.groups.push_back(std::move(group));
  }
}

// An APIVersions of /api, or an APIGroupList of /apis.
void read_groups(const json::value& list, std::vector<ApiGroup>& groups) {
  if (auto versions = strings(view::APIVersions(list).versions()); !versions.empty()) groups.push_back({"", std::move(versions)});
  for (view::APIGroup item : view::APIGroupList(list).groups()) {
    ApiGroup group{std::string(item.name()), {}};
    std::string preferred(item.preferred_version().version());
    if (!preferred.empty()) group.versions.push_back(preferred);
    for (view::GroupVersionForDiscovery version : item.versions())
      if (version.version() != preferred) group.versions.emplace_back(version.version());
    groups.push_back(std::move(group));
  }
}

// An APIResourceList.
void read_resources(const json::value& list, const std::string& group, const std::string& version,
                    std::vector<ApiResource>& resources) {
  for (view::APIResource resource : view::APIResourceList(list).resources()) {
    std::string name(resource.name());
    if (name.find('/') != name.npos || resource.verbs().empty() || is_known(resources, group, name)) continue;
    resources.push_back({group, version, name, std::string(resource.singular_name()), std::string(resource.kind()),
                         resource.namespaced(), strings(resource.short_names()), strings(resource.verbs()),
                         strings(resource.categories())});
  }
}

struct VersionRank {
  int major = 0, stage = 0, minor = 0;  // "v2beta1": 2, 1, 1; alpha is stage 0, and "v2" has stage 2
};

VersionRank version_rank(std::string_view version) {
  VersionRank rank{.stage = 2};
  if (!version.starts_with('v')) return {};
  const size_t word = std::min(version.find_first_not_of("0123456789", 1), version.size());
  rank.major = parse_number<int>(version.substr(1, word - 1)).value_or(0);
  const std::string_view rest = version.substr(word);
  for (std::string_view stage : {"alpha", "beta"})
    if (rest.starts_with(stage)) {
      rank.stage = stage == "beta" ? 1 : 0;
      rank.minor = parse_number<int>(rest.substr(stage.size())).value_or(0);
    }
  return rank;
}

std::string discovery_path(const std::string& group, const std::string& version) {
  return group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
}

}  // namespace

Result<std::vector<ApiGroup>> discover_groups(Session& session) {
  std::vector<ApiGroup> groups;
  for (const char* path : {"/api", "/apis"}) {
    json::value list = TRY(session.json({.path = path}));
    read_groups(list, groups);
  }
  return groups;
}

Result<std::vector<ApiResource>> discover_resources(Session& session, std::vector<Error>& failures) {
  Found found;
  for (const char* path : {"/api", "/apis"}) {
    json::value list = TRY(session.json({.path = path, .accept = kAggregated}));
    if (kind_in(list) == "APIGroupDiscoveryList") {
      read_aggregated(list, found);
      continue;
    }
    std::vector<ApiGroup> groups;
    read_groups(list, groups);
    for (const auto& group : groups)
      for (const auto& version : group.versions) {
        auto resources = session.json({.path = discovery_path(group.name, version)});
        if (resources) read_resources(*resources, group.name, version, found.resources);
        else failures.push_back(resources.take_error().wrap("unable to retrieve the complete list of server APIs"));
      }
  }
  return std::move(found.resources);
}

std::vector<std::string> other_versions(const json::value& group, std::string_view version) {
  const VersionRank wanted = version_rank(version);
  std::vector<std::string> others;
  for (view::GroupVersionForDiscovery one : view::APIGroup(group).versions())
    if (one.version() != version) others.emplace_back(one.version());
  auto place = [&](const std::string& one) {
    const VersionRank rank = version_rank(one);
    return std::tuple(rank.major != wanted.major, -rank.stage, -rank.major, -rank.minor);
  };
  std::ranges::stable_sort(others, {}, place);
  return others;
}

Result<std::string> other_version(Session& session, const std::string& group, std::string_view version,
                                  std::string_view resource) {
  json::value found = TRY(session.json({.path = "/apis/" + group}));
  for (const std::string& other : other_versions(found, version)) {
    json::value list = TRY(session.json({.path = discovery_path(group, other)}));
    for (view::APIResource one : view::APIResourceList(list).resources())
      if (one.name() == resource) return other;
  }
  return Error(Code::not_found, "no version of " + group + " has " + std::string(resource));
}

const ApiResource* resource_named(const std::vector<ApiResource>& resources, std::string_view word) {
  std::string lower = to_lower(word);
  size_t dot = lower.find('.');
  std::string name = lower.substr(0, dot), suffix = dot == lower.npos ? "" : lower.substr(dot + 1);
  for (const auto& one : resources) {
    bool named = one.name == name || one.singular == name || to_lower(one.kind) == name ||
                 std::find(one.short_names.begin(), one.short_names.end(), name) != one.short_names.end();
    bool placed = suffix.empty() || one.group == suffix || one.version + "." + one.group == suffix ||
                  (one.group.starts_with(suffix) && one.group.substr(suffix.size()).starts_with('.'));
    if (named && placed) return &one;
  }
  return nullptr;
}

}  // namespace coracle::ctl
