// SPDX-License-Identifier: Apache-2.0
// See transform.h.
#include "ctl/kustomize/transform.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

// Sets the text of a field, which keeps its quotes.
Result<void> set_scalar(Node& node, std::string text, Tag tag) {
  if (!node.is_scalar()) return Error(Code::invalid, std::string("it is ") + kind_name(node.kind) + ", not a text");
  node.text = std::move(text);
  node.tag = tag;
  return {};
}

Result<void> in_object(const Resource& resource, Result<void> done) { return std::move(done).wrap(resource.id().text()); }

bool is_renamed(const Gvk& gvk) {
  return gvk.kind != "CustomResourceDefinition" && gvk.kind != "Namespace" &&
         !(gvk.kind == "APIService" && gvk.group == "apiregistration.k8s.io");
}

// ---- namespace ----

Result<void> set_subjects(Node& object, const NamespaceArgs& args, const std::function<Result<void>(Node&)>& set) {
  Node* subjects = object.find("subjects");
  if (!subjects || subjects->is_null() || args.subjects == Subjects::none) return {};
  if (!subjects->is_list()) return Error(Code::invalid, "subjects must be a list");
  bool by_name = args.subjects == Subjects::named_default;
  for (Node& subject : subjects->items) {
    const Node* field = subject.find(by_name ? "name" : "kind");
    if (!field || field->value() != (by_name ? "default" : "ServiceAccount")) continue;
    TRY(set(subject.make("namespace", Node::Kind::scalar)));
  }
  return {};
}

Result<void> set_object_namespace(Resource& resource, const NamespaceArgs& args) {
  std::function<Result<void>(Node&)> set = [&](Node& node) -> Result<void> {
    if (args.unset_only && !node.value().empty()) return {};
    return set_scalar(node, args.ns, Tag::string);
  };
  Node& object = resource.object;
  Gvk gvk = resource.gvk();
  Creation creation{.creates = true, .tag = Tag::string};
  if (!gvk.is_cluster_scoped()) {
    TRY(set_fields(object, {.path = "metadata/namespace", .create = true}, creation, set));
  }
  bool binding = gvk.kind == "RoleBinding" || gvk.kind == "ClusterRoleBinding";
  if (binding) {
    TRY(set_subjects(object, args, set));
  }
  for (const FieldSpec& spec : args.fields) {
    if (spec.path == "metadata/namespace" || (spec.path == "metadata/name" && gvk.api_version() != "v1")) continue;
    bool subjects = spec.gvk.kind == "RoleBinding" || spec.gvk.kind == "ClusterRoleBinding";
    if (binding && subjects && spec.path == "subjects/namespace") continue;
    TRY(set_fields(object, spec, creation, set));
  }
  return {};
}

// ---- names ----

Result<void> rename(Resources& resources, const FieldSpecs& fields, bool changes, const std::function<void(Resource&)>& record,
                    const std::function<std::string(const std::string&)>& renamed) {
  for (const ResourcePtr& resource : resources.all()) {
    ResId original = resource->original_id();
    if (!is_renamed(original.gvk)) continue;
    for (const FieldSpec& spec : fields) {
      if (!original.gvk.is_selected(spec.gvk)) continue;
      if (spec.path == "metadata/name" && changes) {
        record(*resource);
        resource->store_previous_id();
      }
      Creation creation{.creates = true, .tag = Tag::string};
      TRY(in_object(*resource, set_fields(resource->object, spec, creation,
                                          [&](Node& node) { return set_scalar(node, renamed(node.text), Tag::string); })));
    }
  }
  return {};
}

// ---- images ----

struct ImageName {
  std::string name, tag, digest;
};

ImageName split_image(const std::string& image) {
  size_t slash = image.find('/');
  size_t from = slash == image.npos || slash == 0 ? 0 : slash;
  size_t at = image.find('@', from), colon = image.find(':', from);
  if (at == image.npos && colon == image.npos) return {image, "", ""};
  if (at != image.npos && (colon == image.npos || at < colon)) return {image.substr(0, at), "", image.substr(at + 1)};
  if (at != image.npos) return {image.substr(0, colon), image.substr(colon + 1, at - colon - 1), image.substr(at + 1)};
  return {image.substr(0, colon), image.substr(colon + 1), ""};
}

class ImageSetter {
 public:
  ImageSetter(const ImageArgs& args, Regex pattern) : args_(args), pattern_(std::move(pattern)) {}

  Result<void> set(Node& node) const {
    if (node.is_null()) return {};
    if (!node.is_scalar()) return Error(Code::invalid, std::string("an image must be a text, not ") + kind_name(node.kind));
    if (!pattern_.finds(node.text)) return {};
    ImageName image = split_image(node.text);
    if (!args_.new_name.empty()) image.name = args_.new_name;
    if (!args_.new_tag.empty()) {
      image.tag = args_.new_tag;
      image.digest = args_.digest;
    } else if (!args_.digest.empty()) {
      image.tag.clear();
      image.digest = args_.digest;
    } else if (!args_.tag_suffix.empty()) {
      image.tag += args_.tag_suffix;
      image.digest.clear();
    }
    if (!image.tag.empty()) image.name += ":" + image.tag;
    if (!image.digest.empty()) image.name += "@" + image.digest;
    return set_scalar(node, std::move(image.name), Tag::string);
  }

  // All lists named containers or initContainers, wherever they are: custom resources have pod templates too.
  Result<void> set_everywhere(Node& node) const {
    for (Member& member : node.members) {
      TRY(set_everywhere(member.value));
      if ((member.key != "containers" && member.key != "initContainers") || !member.value.is_list()) continue;
      for (Node& item : member.value.items) {
        Node* image = item.find("image");
        if (!image) continue;
        TRY(set(*image).wrap(member.key + ".image"));
      }
    }
    for (Node& item : node.items) {
      TRY(set_everywhere(item));
    }
    return {};
  }

 private:
  const ImageArgs& args_;
  const Regex pattern_;
};

// ---- values ----

// Puts `part` into a path as its part number `position`, counted from 1; beyond the end it is appended.
std::string insert_path_part(const std::string& path, size_t position, const std::string& part) {
  if (path.empty()) return part;
  bool absolute = path.starts_with('/');
  std::vector<std::string> parts;
  for (std::string_view one : split(absolute ? std::string_view(path).substr(1) : std::string_view(path), '/'))
    parts.emplace_back(one);
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  parts.insert(parts.begin() + long(std::min(position - 1, parts.size())), part);
  return (absolute ? "/" : "") + join(parts, "/");
}

Result<void> add_value(Resource& resource, const std::string& value, const PluginConfig::ValueTarget& target) {
  Creation creation{.creates = true, .tag = Tag::string};
  return set_fields(resource.object, {.path = target.field_path, .create = true}, creation, [&](Node& node) {
    bool into_path = target.file_path_position > 0;
    return set_scalar(node, into_path ? insert_path_part(node.text, size_t(target.file_path_position), value) : value,
                      Tag::string);
  });
}

}  // namespace

Result<void> set_namespace(Resources& resources, const NamespaceArgs& args) {
  if (args.ns.empty()) return {};
  for (const ResourcePtr& resource : resources.all()) {
    if (resource->gone()) continue;
    resource->store_previous_id();
    TRY(in_object(*resource, set_object_namespace(*resource, args)));
    ResId id = resource->id();
    if (resources.count_current(id) > 1)
      return Error(Code::conflict, "the namespace makes several objects the same: " + id.text());
  }
  return {};
}

Result<void> add_prefix(Resources& resources, const std::string& prefix, const FieldSpecs& fields) {
  return rename(
      resources, fields, !prefix.empty(), [&](Resource& resource) { resource.prefixes.push_back(prefix); },
      [&](const std::string& name) { return prefix + name; });
}

Result<void> add_suffix(Resources& resources, const std::string& suffix, const FieldSpecs& fields) {
  return rename(
      resources, fields, !suffix.empty(), [&](Resource& resource) { resource.suffixes.push_back(suffix); },
      [&](const std::string& name) { return name + suffix; });
}

Result<void> add_entries(Resources& resources, const Texts& entries, const FieldSpecs& fields) {
  Creation creation{.creates = true, .kind = Node::Kind::map};
  for (const ResourcePtr& resource : resources.all())
    for (const auto& [key, value] : entries)
      for (const FieldSpec& spec : fields) {
        TRY(in_object(*resource,
                      set_fields(resource->object, spec, creation, [&key = key, &value = value](Node& node) -> Result<void> {
                        if (node.is_null()) return {};
                        if (!node.is_map())
                          return Error(Code::invalid, std::string("it is ") + kind_name(node.kind) + ", not a map");
                        node.set(key, Node::string(value));
                        return {};
                      })));
      }
  return {};
}

Result<void> set_replicas(Resources& resources, const ReplicaArgs& args, const FieldSpecs& fields) {
  bool found = false;
  std::string kinds;
  for (const FieldSpec& spec : fields) {
    kinds += (kinds.empty() ? "" : ", ") + spec.gvk.kind;
    std::vector<ResourcePtr> matches =
        resources.with_id([&](const ResId& id) { return id.name == args.name && id.gvk.is_selected(spec.gvk); });
    found = found || !matches.empty();
    Creation creation{.creates = true, .tag = Tag::integer};
    for (const ResourcePtr& resource : matches) {
      TRY(in_object(*resource, set_fields(resource->object, spec, creation, [&](Node& node) {
        return set_scalar(node, std::to_string(args.count), Tag::integer);
      })));
    }
  }
  if (!found) return Error(Code::not_found, "no object with the name " + quoted(args.name) + " is one of " + kinds);
  return {};
}

Result<void> set_images(Resources& resources, const ImageArgs& args, const FieldSpecs& fields) {
  Regex pattern = TRY(Regex::compile("^" + args.name + "(:[a-zA-Z0-9_.{}-]*)?(@sha256:[a-zA-Z0-9_.{}-]*)?$").wrap("name"));
  ImageSetter setter(args, std::move(pattern));
  for (const ResourcePtr& resource : resources.all()) {
    if (resource->gvk().kind == "CustomResourceDefinition") continue;
    TRY(in_object(*resource, setter.set_everywhere(resource->object)));
  }
  for (const ResourcePtr& resource : resources.all()) {
    if (resource->gvk().kind == "CustomResourceDefinition") continue;
    for (const FieldSpec& spec : fields) {
      TRY(in_object(*resource, set_fields(resource->object, spec, {}, [&](Node& node) { return setter.set(node); })));
    }
  }
  return {};
}

Result<void> add_values(Resources& resources, const std::string& value, const std::vector<PluginConfig::ValueTarget>& targets) {
  for (const PluginConfig::ValueTarget& target : targets) {
    CompiledSelector selector = TRY(CompiledSelector::compile(target.selector.value_or(Selector())));
    for (const ResourcePtr& resource : resources.select(selector)) {
      bool to_namespace = target.field_path == "metadata/namespace";
      TRY(in_object(*resource,
                    to_namespace ? set_object_namespace(*resource, {.ns = value}) : add_value(*resource, value, target)));
    }
  }
  return {};
}

Result<void> sort_objects(Resources& resources, const SortArgs& args) {
  if (args.order != "fifo" && args.order != "legacy") return Error(Code::invalid, "sortOptions.order must be fifo or legacy");
  if (args.order == "fifo") {
    if (args.has_kinds) return Error(Code::invalid, "sortOptions.legacySortOptions needs the order legacy");
    return {};
  }
  auto rank = [&](const Gvk& gvk) {
    if (!args.has_kinds) return default_rank(gvk.kind);
    auto last = std::find(args.last.rbegin(), args.last.rend(), gvk.kind);
    if (last != args.last.rend()) return int(last.base() - args.last.begin());
    auto first = std::find(args.first.rbegin(), args.first.rend(), gvk.kind);
    return first == args.first.rend() ? 0 : int(first.base() - args.first.begin()) - 1 - int(args.first.size());
  };
  struct Key {
    int rank = 0;
    std::string type, id;
  };
  auto or_else = [](const std::string& text, const char* absent) { return text.empty() ? std::string(absent) : text; };
  std::vector<std::pair<Key, ResourcePtr>> sorted;
  for (const ResourcePtr& resource : resources.all()) {
    ResId id = resource->id();
    std::string type = or_else(id.gvk.group, "~G") + "_" + or_else(id.gvk.version, "~V") + "_" + or_else(id.gvk.kind, "~K");
    if (id.gvk.kind == "Namespace" && id.gvk.group.empty()) type.clear();  // the first of its name
    Key key{rank(id.gvk), std::move(type), id.gvk.text() + "|" + or_else(id.ns, "~X") + "|" + or_else(id.name, "~N")};
    sorted.emplace_back(std::move(key), resource);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) {
    return std::tie(left.first.rank, left.first.type, left.first.id) <
           std::tie(right.first.rank, right.first.type, right.first.id);
  });
  for (size_t i = 0; i < sorted.size(); ++i) resources.all()[i] = sorted[i].second;
  return {};
}

}  // namespace coracle::kustomize
