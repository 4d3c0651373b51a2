// SPDX-License-Identifier: Apache-2.0
// See resource.h.
#include "ctl/kustomize/resource.h"

#include <algorithm>
#include <map>

#include "runtime/base/text.h"
#include "store/object/selector.h"
#include "store/object/yaml.h"

namespace coracle::kustomize {

std::string_view Resource::metadata(std::string_view field) const {
  const Node* metadata = object.find("metadata");
  const Node* found = metadata ? metadata->find(field) : nullptr;
  return found ? found->value() : std::string_view();
}

std::vector<ResId> Resource::previous_ids() const {
  std::vector<ResId> ids;
  Gvk gvk = this->gvk();
  for (const Previous& one : previous_) {
    gvk.kind = one.kind;
    ids.push_back({gvk, one.name, one.ns});
  }
  return ids;
}

ResId Resource::original_id() const {
  if (previous_.empty()) return id();
  Gvk gvk = this->gvk();
  gvk.kind = previous_.front().kind;
  return {gvk, previous_.front().name, previous_.front().ns};
}

bool Resource::had_name(std::string_view name) const {
  return std::any_of(previous_.begin(), previous_.end(), [&](const Previous& one) { return one.name == name; });
}

void Resource::store_previous_id() {
  ResId now = id();
  previous_.push_back({now.name, now.effective_ns(), now.gvk.kind});
}

void Resource::set_name(std::string_view name) {
  object.make("metadata", Node::Kind::map).set("name", Node::string(std::string(name)));
}

void Resource::set_ns(std::string_view ns) {
  Node& metadata = object.make("metadata", Node::Kind::map);
  if (ns.empty()) metadata.erase("namespace");
  else metadata.set("namespace", Node::string(std::string(ns)));
}

void Resource::set_kind(std::string_view kind) { object.set("kind", Node::string(std::string(kind))); }

std::vector<std::pair<std::string, std::string>> Resource::map_of(std::string_view field) const {
  std::vector<std::pair<std::string, std::string>> values;
  const Node* metadata = object.find("metadata");
  const Node* map = metadata ? metadata->find(field) : nullptr;
  if (map)
    for (const Member& member : map->members) values.emplace_back(member.key, member.value.text);
  return values;
}

void Resource::set_map(std::string_view field, std::vector<std::pair<std::string, std::string>> values) {
  Node& metadata = object.make("metadata", Node::Kind::map);
  metadata.erase(field);
  if (values.empty()) return;
  Node map = Node::map();
  for (auto& [key, value] : values) map.members.push_back({key, Node::string(std::move(value))});
  metadata.set(field, std::move(map));
}

std::string_view Resource::annotation(std::string_view key) const {
  const Node* metadata = object.find("metadata");
  const Node* annotations = metadata ? metadata->find("annotations") : nullptr;
  const Node* found = annotations ? annotations->find(key) : nullptr;
  return found ? std::string_view(found->text) : std::string_view();
}

namespace {

// Other's values, and what it lacks from `first`; as kustomize merges labels of generated objects, where the newer one wins.
std::vector<std::pair<std::string, std::string>> merged_maps(std::vector<std::pair<std::string, std::string>> first,
                                                             const std::vector<std::pair<std::string, std::string>>& newer) {
  std::map<std::string, std::string> merged(first.begin(), first.end());
  for (const auto& [key, value] : newer) merged[key] = value;
  return {merged.begin(), merged.end()};
}

void merge_data(Node& into, const Node& old, std::string_view field) {
  const Node* before = old.find(field);
  if (!before || !before->is_map()) return;
  Node merged = *before;
  if (const Node* now = into.find(field))
    for (const Member& member : now->members) merged.set(member.key, member.value);
  for (Member& member : merged.members) member.value = Node::string(std::string(member.value.value()));
  into.erase(field);
  if (!merged.members.empty()) into.set(field, std::move(merged));
}

json::object as_labels(const std::vector<std::pair<std::string, std::string>>& values) {
  json::object labels;
  for (const auto& [key, value] : values) labels[key] = value;
  return labels;
}

std::string yaml_word(const std::string& text) {
  std::string line = to_yaml(json::value(json::string(text)));
  while (line.ends_with('\n')) line.pop_back();
  return line;
}

}  // namespace

std::string Origin::yaml(std::string_view first, std::string_view indent) const {
  std::string out;
  auto line = [&](const std::string& text) { ((out += out.empty() ? first : indent) += text) += "\n"; };
  if (!path.empty()) line("path: " + yaml_word(path));
  if (!configured_in.empty()) {
    line("configuredIn: " + yaml_word(configured_in));
    line("configuredBy:");
    line("  apiVersion: " + configured_by.api_version());
    line("  kind: " + configured_by.kind);
    if (!name.empty()) line("  name: " + yaml_word(name));
    if (!ns.empty()) line("  namespace: " + yaml_word(ns));
  }
  return out;
}

Result<CompiledSelector> CompiledSelector::compile(const Selector& selector) {
  CompiledSelector out;
  out.group_ = TRY(Regex::compile_anchored(selector.id.gvk.group).wrap("group"));
  out.version_ = TRY(Regex::compile_anchored(selector.id.gvk.version).wrap("version"));
  out.kind_ = TRY(Regex::compile_anchored(selector.id.gvk.kind).wrap("kind"));
  out.name_ = TRY(Regex::compile_anchored(selector.id.name).wrap("name"));
  out.ns_ = TRY(Regex::compile_anchored(selector.id.ns).wrap("namespace"));
  LabelSelector labels = TRY(LabelSelector::parse(selector.labels).wrap("labelSelector"));
  LabelSelector annotations = TRY(LabelSelector::parse(selector.annotations).wrap("annotationSelector"));
  bool all = selector.labels.empty() && selector.annotations.empty();
  out.labels_ = [=](const Resource& resource) {
    return all || (labels.matches(as_labels(resource.map_of("labels"))) &&
                   annotations.matches(as_labels(resource.map_of("annotations"))));
  };
  return out;
}

bool CompiledSelector::matches_gvk(const Gvk& gvk) const {
  return group_.finds(gvk.group) && version_.finds(gvk.version) && kind_.finds(gvk.kind);
}

bool CompiledSelector::matches_labels(const Resource& resource) const { return labels_(resource); }

Result<void> Resources::append(ResourcePtr resource) {
  ResId id = resource->id();
  if (count_current(id)) return Error(Code::conflict, "may not add resource with an already registered id: " + id.text());
  if (all_.size() >= kResourcesMax) return Error(Code::too_large, "more than " + std::to_string(kResourcesMax) + " objects");
  all_.push_back(std::move(resource));
  return {};
}

Result<void> Resources::append_all(const Resources& other) {
  for (const ResourcePtr& resource : other.all_) {
    TRY(append(resource));
  }
  return {};
}

Result<void> Resources::absorb(ResourcePtr resource) {
  ResId id = resource->id();
  std::vector<ResourcePtr> found = with_id([&](const ResId& other) { return other.equals(id); });
  bool changes = resource->behavior == Behavior::merge || resource->behavior == Behavior::replace;
  if (found.empty()) {
    if (changes) return Error(Code::not_found, "behavior is merge or replace, but there is no " + id.text());
    return append(std::move(resource));
  }
  if (found.size() > 1) return Error(Code::conflict, "behavior is merge or replace, but there are several " + id.text());
  if (!changes) return Error(Code::conflict, id.text() + " exists already; behavior must be merge or replace");
  Resource& old = *found[0];
  resource->set_map("labels", merged_maps(old.map_of("labels"), resource->map_of("labels")));
  resource->set_map("annotations", merged_maps(old.map_of("annotations"), resource->map_of("annotations")));
  resource->set_name(old.name());
  resource->set_ns(old.ns());
  resource->needs_hash = resource->needs_hash && old.needs_hash;
  if (resource->behavior == Behavior::merge) {
    merge_data(resource->object, old.object, "data");
    merge_data(resource->object, old.object, "binaryData");
    if (old.origin) resource->origin = old.origin;
  }
  resource->behavior = old.behavior;
  resource->previous_ = old.previous_;
  resource->prefixes = old.prefixes;
  resource->suffixes = old.suffixes;
  resource->var_names = old.var_names;
  *std::find(all_.begin(), all_.end(), found[0]) = std::move(resource);
  return {};
}

void Resources::drop_gone() {
  std::erase_if(all_, [](const ResourcePtr& resource) { return resource->gone(); });
}

std::vector<ResourcePtr> Resources::with_id(const std::function<bool(const ResId&)>& matches) const {
  std::vector<ResourcePtr> found;
  for (const ResourcePtr& resource : all_) {
    if (resource->gone()) continue;
    std::vector<ResId> ids = resource->previous_ids();
    ids.push_back(resource->id());
    if (std::any_of(ids.begin(), ids.end(), matches)) found.push_back(resource);
  }
  return found;
}

Result<ResourcePtr> Resources::get(const ResId& id) const {
  std::vector<ResourcePtr> found = with_id([&](const ResId& other) { return other.equals(id); });
  if (found.size() == 1) return found[0];
  if (found.empty()) return Error(Code::not_found, "no object matches " + id.text());
  return Error(Code::conflict, "several objects match " + id.text());
}

size_t Resources::count_current(const ResId& id) const {
  size_t count = 0;
  for (const ResourcePtr& resource : all_)
    if (resource->name() == id.name && resource->id().equals(id)) ++count;
  return count;
}

std::vector<ResourcePtr> Resources::select(const CompiledSelector& selector) const {
  std::vector<ResourcePtr> found;
  for (const ResourcePtr& resource : all_) {
    ResId now = resource->id(), original = resource->original_id();
    if (!selector.matches_ns(original.effective_ns()) && !selector.matches_ns(now.effective_ns())) continue;
    if (!selector.matches_name(original.name) && !selector.matches_name(now.name)) continue;
    if (selector.matches_gvk(now.gvk) && selector.matches_labels(*resource)) found.push_back(resource);
  }
  return found;
}

}  // namespace coracle::kustomize
