// SPDX-License-Identifier: Apache-2.0
// See prune.h.
#include "ctl/prune.h"

#include <algorithm>
#include <array>

#include "ctl/last_applied.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

struct UsualKind {
  const char *api_version, *kind;
};
constexpr std::array kUsualKinds = {UsualKind{"v1", "ConfigMap"},
                                    UsualKind{"v1", "Endpoints"},
                                    UsualKind{"v1", "PersistentVolumeClaim"},
                                    UsualKind{"v1", "Pod"},
                                    UsualKind{"v1", "ReplicationController"},
                                    UsualKind{"v1", "Secret"},
                                    UsualKind{"v1", "Service"},
                                    UsualKind{"batch/v1", "Job"},
                                    UsualKind{"batch/v1", "CronJob"},
                                    UsualKind{"networking.k8s.io/v1", "Ingress"},
                                    UsualKind{"apps/v1", "DaemonSet"},
                                    UsualKind{"apps/v1", "Deployment"},
                                    UsualKind{"apps/v1", "ReplicaSet"},
                                    UsualKind{"apps/v1", "StatefulSet"},
                                    UsualKind{"v1", "Namespace"},
                                    UsualKind{"v1", "PersistentVolume"}};

std::string pruning_text(const ApiResource& resource) {
  return std::string("error pruning ") + (resource.namespaced ? "namespaced" : "nonNamespaced") + " object " + resource.group +
         "/" + resource.version + ", Kind=" + resource.kind;
}

// "core/v1/ConfigMap". Our own kinds need no request; of others the server is asked.
Result<ApiResource> listed_resource(Session& session, const std::string& text) {
  std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() != 3)
    return Error(Code::bad_request, "invalid GroupVersionKind format: " + text + ", please follow <group/version/kind>");
  std::string group(parts[0] == "core" ? "" : parts[0]), version(parts[1]), kind(parts[2]);
  std::string api_version = group.empty() ? version : group + "/" + version;
  if (const schema::KindInfo* info = schema::catalog().by_kind(api_version, kind)) return resource_of(*info);
  std::vector<Error> ignored;
  std::vector<ApiResource> resources = TRY(discover_resources(session, ignored));
  for (const ApiResource& one : resources)
    if (one.group == group && one.version == version && one.kind == kind) return one;
  return Error(Code::not_found, "no matches for kind " + coracle::quoted(kind) + " in version " + coracle::quoted(api_version));
}

std::string resource_path(const ApiResource& resource, const std::string& ns) {
  std::string path = (resource.group.empty() ? "/api/" : "/apis/") + resource.group_version();
  if (!ns.empty()) path += "/namespaces/" + percent_encode(ns);
  return path + "/" + resource.name;
}

Result<void> find_prunable(Session& session, const ApiResource& resource, const std::string& ns, const std::string& selector,
                           const Visited& visited, std::vector<Prunable>& found) {
  Request request{.path = resource_path(resource, ns)};
  if (!selector.empty()) request.query.emplace_back("labelSelector", selector);
  auto list = session.json(request);
  if (!list) return Error(list.error().code(), pruning_text(resource) + ": " + list.error().text());
  for (const json::value& item : items_of(*list)) {
    if (!last_applied_text(item) || visited.uids.contains(std::string(metadata_of(item).uid()))) continue;
    json::value object = json::object{{"apiVersion", resource.group_version()}, {"kind", resource.kind}};
    for (const auto& [name, field] : item.get_object()) object.get_object()[name] = field;
    found.push_back({resource, std::move(object)});
  }
  return {};
}

}  // namespace

ApiResource resource_of(const schema::KindInfo& info) {
  ApiResource resource;
  resource.group = info.kind.group, resource.version = info.kind.version;
  resource.name = info.kind.resource, resource.singular = info.singular, resource.kind = info.kind.kind;
  resource.namespaced = info.kind.namespaced;
  return resource;
}

std::string pruning_of_kind(const Prunable& object) { return pruning_text(object.resource); }

void PruneFlags::add_to(Command command) {
  command.add_flag("--prune", prune, "delete what an earlier apply created and the files no longer have");
  command.add_option("--prune-allowlist", allowlist,
                     "GROUP/VERSION/KIND to look at, instead of the usual kinds; may be repeated");
}

Result<std::vector<ApiResource>> prune_resources_of(Session& session, const std::vector<std::string>& allowlist) {
  std::vector<ApiResource> resources;
  for (const auto& text : allowlist) {
    ApiResource resource = TRY(listed_resource(session, text));
    resources.push_back(std::move(resource));
  }
  if (!resources.empty()) return resources;
  for (const UsualKind& usual : kUsualKinds)
    if (const schema::KindInfo* info = schema::catalog().by_kind(usual.api_version, usual.kind))
      resources.push_back(resource_of(*info));
  if (session.ns_given())
    tell(
        "Warning: objects without a namespace are pruned too. Kinds that --prune-allowlist names are the only ones to be "
        "pruned.\n");
  return resources;
}

Result<std::vector<Prunable>> prunable_objects(Session& session, const std::vector<ApiResource>& resources,
                                               const std::string& selector, const Visited& visited) {
  std::vector<Prunable> found;
  for (const std::string& ns : visited.namespaces)
    for (const ApiResource& resource : resources)
      if (resource.namespaced) TRY(find_prunable(session, resource, ns, selector, visited, found));
  for (const ApiResource& resource : resources)
    if (!resource.namespaced) TRY(find_prunable(session, resource, "", selector, visited, found));
  return found;
}

Result<void> prune_objects(Session& session, const DeletionFlags& flags, DryRun dry_run, const Output& output,
                           const std::vector<Prunable>& objects, std::string (*doing)(const Prunable&)) {
  json::object options = TRY(deletion_options_of(session, flags));
  for (const Prunable& one : objects) {
    const auto& [resource, object] = one;
    std::string name(metadata_of(object).name());
    std::string path = resource_path(resource, std::string(metadata_of(object).namespace_())) + "/" + percent_encode(name);
    if (dry_run != DryRun::client) {
      auto deleted = session.json({.method = "DELETE", .path = path, .body = to_text(options)});
      if (!deleted) return Error(deleted.error().code(), doing(one) + ": " + deleted.error().text());
    }
    json::value shown = object;
    hide_managed_fields(shown);
    std::string called = resource.singular + (resource.group.empty() ? "" : "." + resource.group) + "/" + name;
    if (output.prints_objects()) output.print(std::move(shown));
    else out(called + (output == "name" ? "" : " pruned" + dry_run_note(dry_run)) + "\n");
  }
  return {};
}

}  // namespace coracle::ctl
