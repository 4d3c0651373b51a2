// SPDX-License-Identifier: Apache-2.0
// See plugins.h.
#include "ctl/kustomize/plugins.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "ctl/kustomize/generate.h"
#include "ctl/kustomize/patch.h"
#include "ctl/kustomize/replace.h"
#include "ctl/kustomize/transform.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::kustomize {
namespace {

// Files with replacements are read, so that only inline ones remain.
Result<std::vector<ReplacementArgs>> load_replacements(const Loader& loader, const std::vector<ReplacementArgs>& args) {
  std::vector<ReplacementArgs> out;
  for (const ReplacementArgs& one : args) {
    if (one.path.empty()) {
      out.push_back(one);
      continue;
    }
    if (one.source || !one.targets.empty())
      return Error(Code::invalid, "replacements: cannot specify both path and inline replacement");
    std::string text = TRY(loader.load(one.path).wrap("replacements"));
    std::vector<ReplacementArgs> more = TRY(read_replacements(text).wrap(loader.shown(one.path)));
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

Result<NamespaceArgs> namespace_args(const PluginConfig& config) {
  NamespaceArgs args{.ns = config.ns, .fields = config.field_specs, .unset_only = config.unset_only};
  const std::string& mode = config.set_role_binding_subjects;
  if (mode == "allServiceAccounts") args.subjects = Subjects::service_accounts;
  else if (mode == "none") args.subjects = Subjects::none;
  else if (!mode.empty() && mode != "defaultOnly")
    return Error(Code::invalid, "setRoleBindingSubjects: " + quoted(mode) + " is not defaultOnly, allServiceAccounts or none");
  return args;
}

Result<void> hash_names(Resources& resources) {
  for (const ResourcePtr& resource : resources.all()) {
    if (!resource->needs_hash) continue;
    std::string hash = TRY(content_hash(resource->object).wrap(resource->id().text()));
    resource->store_previous_id();
    resource->set_name(resource->name() + "-" + hash);
  }
  return {};
}

bool is_builtin(const Gvk& gvk) { return gvk.group.empty() && gvk.version == "builtin"; }

Error refused(const Resource& configuration) {
  return Error(Code::unsupported, configuration.id().text() +
                                      ": external plugins are disabled: only apiVersion builtin needs no program or container");
}

Result<PluginConfig> config_of(const Resource& configuration) {
  json::value object = TRY(to_json(configuration.object));
  return read_plugin_config(object).wrap(configuration.id().text());
}

Result<std::function<Result<void>(Resources&)>> make_run(const PluginContext& context, const std::string& kind,
                                                         PluginConfig config) {
  using Run = std::function<Result<void>(Resources&)>;
  const OpenApi* schemas = &context.schemas;
  if (kind == "AnnotationsTransformer")
    return Run([=](Resources& resources) { return add_entries(resources, config.annotations, config.field_specs); });
  if (kind == "LabelTransformer")
    return Run([=](Resources& resources) { return add_entries(resources, config.labels, config.field_specs); });
  if (kind == "NamespaceTransformer") {
    NamespaceArgs args = TRY(namespace_args(config));
    return Run([=](Resources& resources) { return set_namespace(resources, args); });
  }
  if (kind == "PrefixTransformer" || kind == "SuffixTransformer" || kind == "PrefixSuffixTransformer") {
    if (!config.has_field_specs) return Error(Code::invalid, "fieldSpecs must be given");
    return Run([=](Resources& resources) -> Result<void> {
      if (kind != "SuffixTransformer") {
        TRY(add_prefix(resources, config.prefix, config.field_specs));
      }
      if (kind != "PrefixTransformer") {
        TRY(add_suffix(resources, config.suffix, config.field_specs));
      }
      return {};
    });
  }
  if (kind == "PatchTransformer" || kind == "PatchJson6902Transformer" || kind == "PatchStrategicMergeTransformer") {
    LoadedPatch patch;
    if (kind == "PatchTransformer") {
      patch = TRY(load_patch(context.loader, config.patch));
    } else if (kind == "PatchJson6902Transformer") {
      config.patch.patch = config.json_op;
      patch = TRY(load_operations(context.loader, config.patch));
    } else {
      std::vector<std::string> all = config.paths;
      if (!config.patches.empty()) all.push_back(config.patches);
      patch = TRY(load_merges(context.loader, all));
    }
    return Run([=](Resources& resources) { return apply_patch(resources, patch, *schemas); });
  }
  if (kind == "ReplicaCountTransformer")
    return Run([=](Resources& resources) { return set_replicas(resources, config.replica, config.field_specs); });
  if (kind == "ImageTagTransformer")
    return Run([=](Resources& resources) { return set_images(resources, config.image, config.field_specs); });
  if (kind == "ReplacementTransformer") {
    std::vector<ReplacementArgs> all = TRY(load_replacements(context.loader, config.replacements));
    return Run([=](Resources& resources) { return apply_replacements(resources, all); });
  }
  if (kind == "HashTransformer") return Run(hash_names);
  if (kind == "ValueAddTransformer") {
    std::string value(trim(config.value));
    if (value.empty()) value = std::filesystem::path(context.loader.root()).filename();
    if (!config.target_file_path.empty()) {
      std::string text = TRY(context.loader.load(config.target_file_path));
      auto more = TRY(read_value_targets(text).wrap(config.target_file_path));
      config.targets.insert(config.targets.end(), more.begin(), more.end());
    }
    if (config.targets.empty()) return Error(Code::invalid, "targets: at least one must be given");
    for (const auto& target : config.targets) {
      if (target.field_path.empty()) return Error(Code::invalid, "targets: fieldPath must be given");
      if (target.file_path_position < 0) return Error(Code::invalid, "targets: filePathPosition cannot be negative");
    }
    return Run([=](Resources& resources) { return add_values(resources, value, config.targets); });
  }
  return Error(Code::unsupported, "there is no built-in transformer " + kind);
}

// The service account of a Kubernetes cluster for one of Google's.
Result<ResourcePtr> service_account(const json::value& config) {
  if (get_string(config, "cloud") != "gke")
    return Error(Code::unsupported, "cloud: " + quoted(get_string(config, "cloud")) + " is not supported; gke is");
  std::string name(get_string(config, "kubernetesService.name"));
  if (name.empty()) return Error(Code::invalid, "kubernetesService.name must be given");
  Node object = Node::map();
  object.set("apiVersion", Node::string("v1"));
  object.set("kind", Node::string("ServiceAccount"));
  auto resource = std::make_shared<Resource>(std::move(object));
  std::string account(get_string(config, "serviceAccount.name")), project(get_string(config, "serviceAccount.projectId"));
  resource->set_map("annotations", {{"iam.gke.io/gcp-service-account", account + "@" + project + ".iam.gserviceaccount.com"}});
  resource->set_name(name);
  resource->set_ns(get_string(config, "kubernetesService.namespace"));
  return resource;
}

// ---- crds ----

struct CrdReader {
  const json::object& definitions;
  TransformerConfig config;
  std::set<std::string> open;  // types on the way to here, which may contain themselves

  Result<void> read(const Gvk& gvk, const std::string& type, const std::string& path) {
    const json::value* definition = definitions.if_contains(type);
    if (!definition || open.contains(type)) return {};
    open.insert(type);
    for (const auto& member : get_object(schema_of(*definition), "properties")) {
      std::string here = path + (path.empty() ? "" : "/") + std::string(member.key());
      const json::value& property = member.value();
      auto text = [&](std::string_view key) -> std::optional<std::string> {
        const json::value* found = find_keys(property, {key});
        if (!found || !found->is_string()) return std::nullopt;
        return std::string(found->get_string());
      };
      FieldSpec spec{gvk, here, false};
      if (text("x-kubernetes-annotation")) {
        TRY(merge_specs(config.common_annotations, {spec}));
      }
      if (text("x-kubernetes-label-selector")) {
        TRY(merge_specs(config.common_labels, {spec}));
      }
      if (text("x-kubernetes-identity")) {
        TRY(merge_specs(config.name_prefix, {spec}));
      }
      auto version = text("x-kubernetes-object-ref-api-version"), kind = text("x-kubernetes-object-ref-kind");
      if (version && kind) {
        TransformerConfig more;
        std::string name = text("x-kubernetes-object-ref-name-key").value_or("name");
        more.name_reference.push_back({{"", *version, *kind}, {{gvk, here + "/" + name, false}}});
        TRY(config.merge(more));
      }
      if (auto reference = text("$ref")) {
        TRY(read(gvk, *reference, here));
      }
    }
    open.erase(type);
    return {};
  }

  static const json::value& schema_of(const json::value& definition) {
    for (const char* name : {"Schema", "schema"})
      if (const json::value* schema = find_keys(definition, {name})) return *schema;
    static const json::value none = json::object();
    return none;
  }
};

}  // namespace

Result<std::vector<Transformer>> own_transformers(const PluginContext& context, const Kustomization& kustomization,
                                                  const TransformerConfig& config,
                                                  const std::function<std::shared_ptr<const Origin>(const char*)>& origin) {
  const Kustomization& k = kustomization;
  const OpenApi* schemas = &context.schemas;
  std::vector<Transformer> all;
  auto add = [&](const char* kind, std::function<Result<void>(Resources&)> run) {
    all.push_back({std::move(run), origin(kind)});
  };
  auto indexed = [](const char* field, size_t i) { return std::string(field) + "[" + std::to_string(i) + "]"; };

  if (!k.patches_strategic_merge.empty()) {
    LoadedPatch patch = TRY(load_merges(context.loader, k.patches_strategic_merge).wrap("patchesStrategicMerge"));
    add("PatchStrategicMergeTransformer",
        [=](Resources& resources) { return apply_patch(resources, patch, *schemas).wrap("patchesStrategicMerge"); });
  }
  for (size_t i = 0; i < k.patches.size(); ++i) {
    std::string at = indexed("patches", i);
    LoadedPatch patch = TRY(load_patch(context.loader, k.patches[i]).wrap(at));
    add("PatchTransformer", [=](Resources& resources) { return apply_patch(resources, patch, *schemas).wrap(at); });
  }
  if (!k.ns.empty()) {
    NamespaceArgs args{.ns = k.ns, .fields = config.ns};
    add("NamespaceTransformer", [=](Resources& resources) { return set_namespace(resources, args).wrap("namespace"); });
  }
  if (!k.name_prefix.empty())
    add("PrefixTransformer", [prefix = k.name_prefix, specs = config.name_prefix](Resources& resources) {
      return add_prefix(resources, prefix, specs).wrap("namePrefix");
    });
  if (!k.name_suffix.empty())
    add("SuffixTransformer", [suffix = k.name_suffix, specs = config.name_suffix](Resources& resources) {
      return add_suffix(resources, suffix, specs).wrap("nameSuffix");
    });
  for (size_t i = 0; i < k.labels.size(); ++i) {
    const LabelArgs& label = k.labels[i];
    std::string at = indexed("labels", i);
    FieldSpecs specs = label.fields;
    TRY(merge_specs(specs, config.labels).wrap(at));
    if (label.include_selectors) {
      TRY(merge_specs(specs, config.common_labels).wrap(at));
    } else {
      if (label.include_templates) {
        TRY(merge_specs(specs, config.template_labels).wrap(at));
      }
      TRY(merge_specs(specs, {{{}, "metadata/labels", true}}).wrap(at));
    }
    add("LabelTransformer",
        [=, pairs = label.pairs](Resources& resources) { return add_entries(resources, pairs, specs).wrap(at); });
  }
  if (!k.labels.empty() || !k.common_labels.empty())
    add("LabelTransformer", [pairs = k.common_labels, specs = config.common_labels](Resources& resources) {
      return add_entries(resources, pairs, specs).wrap("commonLabels");
    });
  if (!k.common_annotations.empty())
    add("AnnotationsTransformer", [pairs = k.common_annotations, specs = config.common_annotations](Resources& resources) {
      return add_entries(resources, pairs, specs).wrap("commonAnnotations");
    });
  for (size_t i = 0; i < k.patches_json.size(); ++i) {
    std::string at = indexed("patchesJson6902", i);
    LoadedPatch patch = TRY(load_operations(context.loader, k.patches_json[i]).wrap(at));
    add("PatchJson6902Transformer", [=](Resources& resources) { return apply_patch(resources, patch, *schemas).wrap(at); });
  }
  for (size_t i = 0; i < k.replicas.size(); ++i)
    add("ReplicaCountTransformer", [at = indexed("replicas", i), args = k.replicas[i], specs = config.replicas](
                                       Resources& resources) { return set_replicas(resources, args, specs).wrap(at); });
  for (size_t i = 0; i < k.images.size(); ++i)
    add("ImageTagTransformer", [at = indexed("images", i), args = k.images[i], specs = config.images](Resources& resources) {
      return set_images(resources, args, specs).wrap(at);
    });
  if (!k.replacements.empty()) {
    std::vector<ReplacementArgs> replacements = TRY(load_replacements(context.loader, k.replacements));
    add("ReplacementTransformer", [=](Resources& resources) { return apply_replacements(resources, replacements); });
  }
  return all;
}

Result<Transformer> make_transformer(const PluginContext& context, const Resource& configuration) {
  Gvk gvk = configuration.gvk();
  if (!is_builtin(gvk)) return refused(configuration);
  PluginConfig config = TRY(config_of(configuration));
  Transformer out;
  out.run = TRY(make_run(context, gvk.kind, std::move(config)).wrap(configuration.id().text()));
  return out;
}

Result<ResourcePtr> run_generator(const PluginContext& context, const Resource& configuration) {
  Gvk gvk = configuration.gvk();
  if (!is_builtin(gvk)) return refused(configuration);
  PluginConfig config = TRY(config_of(configuration));
  std::string at = configuration.id().text();
  if (gvk.kind == "ConfigMapGenerator") return generate_config_map(context.loader, config.generator).wrap(at);
  if (gvk.kind == "SecretGenerator") return generate_secret(context.loader, config.generator).wrap(at);
  if (gvk.kind == "IAMPolicyGenerator") {
    json::value object = TRY(to_json(configuration.object).wrap(at));
    return service_account(object).wrap(at);
  }
  if (gvk.kind == "HelmChartInflationGenerator")
    return Error(Code::unsupported, at + ": charts need the program helm: render them with helm template, and name the file");
  return Error(Code::unsupported, at + ": there is no built-in generator " + gvk.kind);
}

Result<TransformerConfig> read_crd_config(std::string_view text) {
  std::vector<std::string> duplicates;
  std::vector<json::value> documents = TRY(parse_yaml(text, nullptr, &duplicates));
  const json::object* definitions = documents.empty() ? nullptr : documents[0].if_object();
  if (!definitions) return Error(Code::invalid, "expected a map of OpenAPI definitions");
  CrdReader reader{*definitions, {}, {}};
  for (const auto& member : *definitions) {
    if (!member.value().is_object())
      return Error(Code::invalid, "expected a map of OpenAPI definitions; a CustomResourceDefinition belongs to resources");
    const json::object& properties = get_object(CrdReader::schema_of(member.value()), "properties");
    if (!properties.contains("kind") || !properties.contains("apiVersion") || !properties.contains("metadata")) continue;
    std::string type(member.key());
    TRY(reader.read({"", "", type.substr(type.rfind('.') + 1)}, type, ""));
  }
  return std::move(reader.config);
}

}  // namespace coracle::kustomize
