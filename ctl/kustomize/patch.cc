// SPDX-License-Identifier: Apache-2.0
// See patch.h.
#include "ctl/kustomize/patch.h"

#include <algorithm>

#include "ctl/kustomize/merge.h"
#include "ctl/kustomize/objects.h"
#include "runtime/base/text.h"
#include "store/object/patch.h"
#include "store/object/yaml.h"

namespace coracle::kustomize {
namespace {

std::string start_of(const std::string& text) { return "patch " + quoted(shortened_text(text, 60)); }

// A list of operations, as JSON or YAML.
Result<json::value> read_operations(std::string_view text) {
  std::vector<json::value> documents = TRY(parse_yaml(text));
  if (documents.empty()) return Error(Code::invalid, "the patch is empty");
  if (!documents[0].is_array()) return Error(Code::invalid, "a JSON patch must be a list");
  for (const auto& operation : documents[0].get_array())
    if (!operation.is_object() || get_string(operation, "op").empty())
      return Error(Code::invalid, "each operation of a JSON patch needs op and path");
  return std::move(documents[0]);
}

Result<void> merge_into(Resource& resource, const Resource& patch, const OpenApi& schemas) {
  std::string name = resource.name(), ns = resource.ns(), kind = resource.gvk().kind;
  if (patch.may_change_name || patch.may_change_kind) resource.store_previous_id();
  std::optional<Node> merged = TRY(strategic_merge(std::move(resource.object), patch.object, schemas));
  if (!merged || merged->empty()) {
    resource.remove();
    return {};
  }
  resource.object = std::move(*merged);
  TRY(check_size(resource.object));
  if (!patch.may_change_kind) resource.set_kind(kind);
  if (!patch.may_change_name) resource.set_name(name);
  resource.set_ns(ns);
  return {};
}

Result<void> apply_to_target(Resources& resources, const LoadedPatch& patch, const OpenApi& schemas) {
  if (patch.merges.size() > 1)
    return Error(Code::invalid, "a patch with a target must be a single document, not " + std::to_string(patch.merges.size()));
  CompiledSelector selector = TRY(CompiledSelector::compile(*patch.target).wrap("target"));
  for (const ResourcePtr& resource : resources.select(selector)) {
    Resource change = *patch.merges[0];
    change.object.set("apiVersion", Node::string(resource->gvk().api_version()));
    TRY(merge_into(*resource, change, schemas).wrap(resource->id().text()));
  }
  resources.drop_gone();
  for (const ResourcePtr& resource : resources.all())
    if (resources.count_current(resource->id()) > 1)
      return Error(Code::conflict, "the patch makes several objects the same: " + resource->id().text());
  return {};
}

// The value that a JSON pointer names; nullptr if there is none.
const json::value* pointed_at(const json::value& object, std::string_view pointer) {
  const json::value* at = &object;
  std::vector<std::string_view> parts = split(pointer, '/');
  for (size_t i = 1; at && i < parts.size(); ++i) {
    std::string key;
    for (size_t j = 0; j < parts[i].size(); ++j) {
      bool escaped = parts[i][j] == '~' && j + 1 < parts[i].size() && (parts[i][j + 1] == '0' || parts[i][j + 1] == '1');
      key += escaped ? (parts[i][++j] == '0' ? '~' : '/') : parts[i][j];
    }
    if (const auto* map = at->if_object()) {
      at = map->if_contains(key);
    } else {
      const auto* list = at->if_array();
      auto index = parse_number<int64_t>(key);
      if (!list || !index) return nullptr;
      int64_t position = *index < 0 ? *index + int64_t(list->size()) : *index;  // a negative index counts from the end
      at = position >= 0 && position < int64_t(list->size()) ? &list->at(size_t(position)) : nullptr;
    }
  }
  return at;
}

// Unlike the API's, kustomize's "replace" needs a value to replace.
Result<void> apply_one_by_one(json::value& object, const json::array& operations) {
  for (size_t i = 0; i < operations.size(); ++i) {
    std::string path(get_string(operations[i], "path"));
    if (get_string(operations[i], "op") == "replace" && !pointed_at(object, path))
      return Error(Code::invalid, "operation " + std::to_string(i) + ": replace: there is no " + shortened_path(path));
    TRY(apply_json_patch(object, json::array{operations[i]}).wrap("operation " + std::to_string(i)));
  }
  return {};
}

Result<void> apply_operations(Resources& resources, const LoadedPatch& patch) {
  if (!patch.target) return Error(Code::invalid, "a JSON patch needs a target");
  CompiledSelector selector = TRY(CompiledSelector::compile(*patch.target).wrap("target"));
  for (const ResourcePtr& resource : resources.select(selector)) {
    resource->store_previous_id();
    json::value object = TRY(to_json(resource->object));
    TRY(apply_one_by_one(object, patch.operations->get_array()).wrap(resource->id().text()));
    resource->object = from_json(object);
    TRY(check_size(resource->object));
  }
  return {};
}

}  // namespace

Result<LoadedPatch> load_patch(const Loader& loader, const PatchArgs& args) {
  std::string text(trim(args.patch));
  if (text.empty() && args.path.empty()) return Error(Code::invalid, "one of patch and path must be given");
  if (!text.empty() && !args.path.empty()) return Error(Code::invalid, "patch and path can't be set at the same time");
  LoadedPatch loaded;
  loaded.target = args.target;
  loaded.shown = text.empty() ? loader.shown(args.path) : start_of(text);
  if (text.empty()) text = TRY(loader.load(args.path).wrap("path"));
  auto objects = read_objects(text);
  if (objects) {
    loaded.merges = std::move(*objects);
    for (const ResourcePtr& merge : loaded.merges) {
      merge->may_change_name = args.allow_name_change;
      merge->may_change_kind = args.allow_kind_change;
    }
    return loaded;
  }
  auto operations = read_operations(text);
  // A list is meant as a JSON patch, and anything else as an object.
  if (!operations) {
    auto documents = parse_yaml(text);
    bool list = documents && !documents->empty() && (*documents)[0].is_array();
    return (list ? operations.take_error() : objects.take_error()).wrap(loaded.shown);
  }
  loaded.operations = std::move(*operations);
  return loaded;
}

Result<LoadedPatch> load_merges(const Loader& loader, const std::vector<std::string>& paths_or_texts) {
  LoadedPatch loaded;
  for (const std::string& one : paths_or_texts) {
    auto objects = read_objects(one);
    if (!objects) {
      bool path = one.find('\n') == one.npos;
      if (!path) return objects.take_error().wrap(start_of(one));
      std::string text = TRY(loader.load(one));
      objects = read_objects(text);
      if (!objects) return objects.take_error().wrap(loader.shown(one));
    }
    loaded.merges.insert(loaded.merges.end(), objects->begin(), objects->end());
  }
  if (loaded.merges.empty()) return Error(Code::invalid, "the patch appears to be empty");
  return loaded;
}

Result<LoadedPatch> load_operations(const Loader& loader, const PatchArgs& args) {
  if (!args.target || args.target->id.name.empty()) return Error(Code::invalid, "target.name must be given");
  if (args.path.empty() && args.patch.empty()) return Error(Code::invalid, "one of patch and path must be given");
  if (!args.path.empty() && !args.patch.empty()) return Error(Code::invalid, "patch and path can't be set at the same time");
  LoadedPatch loaded;
  loaded.target = args.target;
  loaded.shown = args.path.empty() ? start_of(args.patch) : loader.shown(args.path);
  std::string text = args.patch;
  if (text.empty()) text = TRY(loader.load(args.path).wrap("path"));
  loaded.operations = TRY(read_operations(text).wrap(loaded.shown));
  return loaded;
}

Result<void> apply_patch(Resources& resources, const LoadedPatch& patch, const OpenApi& schemas) {
  if (patch.operations) return apply_operations(resources, patch).wrap(patch.shown);
  if (patch.merges.empty()) return {};
  if (patch.target) return apply_to_target(resources, patch, schemas).wrap(patch.shown);
  for (const ResourcePtr& merge : patch.merges) {
    ResourcePtr resource = TRY(resources.get(merge->id()).wrap(patch.shown.empty() ? "patch" : patch.shown));
    TRY(merge_into(*resource, *merge, schemas).wrap(resource->id().text()).wrap(patch.shown.empty() ? "patch" : patch.shown));
  }
  return {};
}

}  // namespace coracle::kustomize
