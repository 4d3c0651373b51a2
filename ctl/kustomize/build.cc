// SPDX-License-Identifier: Apache-2.0
// See build.h.
#include "ctl/kustomize/build.h"

#include <algorithm>
#include <filesystem>

#include "ctl/kustomize/generate.h"
#include "ctl/kustomize/names.h"
#include "ctl/kustomize/objects.h"
#include "ctl/kustomize/plugins.h"
#include "ctl/kustomize/transform.h"
#include "ctl/kustomize/vars.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::kustomize {
namespace {

constexpr const char* kFileNames[] = {"kustomization.yaml", "kustomization.yml", "Kustomization"};
constexpr const char* kVersion = "kustomize-(devel)";  // in the label managed-by, as kubectl writes it

struct Accumulator {
  Resources resources;
  TransformerConfig config;
  std::map<std::string, VarArgs> vars;

  Result<void> merge(const Accumulator& other) {
    TRY(resources.append_all(other.resources));
    TRY(config.merge(other.config));
    for (const auto& [name, var] : other.vars)
      if (!vars.emplace(name, var).second) return Error(Code::conflict, "var " + quoted(name) + " already encountered");
    return {};
  }
};

std::string joined(const std::string& directory, const std::string& path) {
  return std::filesystem::path(directory.empty() ? path : directory + "/" + path).lexically_normal();
}

class Builder {
 public:
  Builder(const BuildOptions& options, std::vector<std::string>& warnings) : options_(options), warnings_(warnings) {}

  Result<Resources> run(const Loader& loader) {
    Target target = TRY(load(loader, ""));
    root_ = target.kustomization;
    tracks_ = !root_.build_metadata.empty();
    TRY(use_schema(target));
    Accumulator all;
    TRY(accumulate(target, all));
    TRY(finish(all).wrap(target.shown));
    return std::move(all.resources);
  }

 private:
  struct Target {  // one directory
    Loader loader;
    Kustomization kustomization;
    std::string file, shown;  // the kustomization file
    std::string origin;       // the directory, relative to that of the build
  };

  Result<Target> load(const Loader& loader, std::string origin) {
    std::string file;
    for (const char* name : kFileNames) {
      if (!loader.is_file(name)) continue;
      if (!file.empty()) return Error(Code::conflict, "found multiple kustomization files under " + loader.shown());
      file = name;
    }
    if (file.empty())
      return Error(Code::not_found,
                   "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory '" +
                       loader.root() + "'");
    std::string shown = loader.shown(file);
    std::string text = TRY(loader.load(file));
    Kustomization kustomization = TRY(read_kustomization(text).wrap(shown));
    for (const std::string& field : kustomization.deprecated) {
      size_t equals = field.find('=');
      std::string old = field.substr(0, equals);
      warnings_.push_back("# Warning: '" + old + "' is deprecated. Please use '" + field.substr(equals + 1) + "' instead." +
                          (old == "vars" ? " [EXPERIMENTAL]" : "") +
                          " Run 'kustomize edit fix' to update your Kustomization automatically.");
    }
    return Target{loader, std::move(kustomization), std::move(file), std::move(shown), std::move(origin)};
  }

  // The first kustomization that names a schema decides.
  Result<void> use_schema(const Target& target) {
    const auto& openapi = target.kustomization.openapi;
    if (openapi.empty() || schema_is_set_) return {};
    auto path = openapi.find("path"), version = openapi.find("version");
    if (path != openapi.end() && version != openapi.end())
      return Error(Code::invalid, target.shown + ": openapi: path and version cannot be used together");
    if (path != openapi.end()) {
      std::string text = TRY(target.loader.load(path->second).wrap(target.shown + ": openapi.path"));
      schemas_ = TRY(OpenApi::read(text).wrap(target.loader.shown(path->second)));
      schema_is_set_ = true;
    } else if (version != openapi.end()) {
      if (version->second != "v1.21.2")
        return Error(Code::invalid,
                     target.shown + ": openapi.version " + quoted(version->second) + " is not built in; v1.21.2 is");
      schema_is_set_ = true;
    }
    return {};
  }

  // ---- one directory ----

  Result<void> accumulate(const Target& target, Accumulator& all) {
    const Kustomization& k = target.kustomization;
    TRY(add_resources(target, k.resources, "resources", all));
    TransformerConfig config = default_config();
    for (const std::string& path : k.configurations) {
      std::string text = TRY(target.loader.load(path).wrap(target.shown + ": configurations"));
      TransformerConfig more = TRY(read_transformer_config(text).wrap(target.loader.shown(path)));
      TRY(config.merge(more).wrap(target.loader.shown(path)));
    }
    for (const std::string& path : k.crds) {
      std::string text = TRY(target.loader.load(path).wrap(target.shown + ": crds"));
      TransformerConfig more = TRY(read_crd_config(text).wrap(target.loader.shown(path)));
      TRY(config.merge(more).wrap(target.loader.shown(path)));
    }
    TRY(all.config.merge(config).wrap(target.shown));
    TRY(run_generators(target, all).wrap(target.shown));
    for (size_t i = 0; i < k.components.size(); ++i) {
      std::string at = target.shown + ": components[" + std::to_string(i) + "]";
      TRY(add_directory(target, k.components[i], true, all, at));
    }
    TRY(run_transformers(target, all).wrap(target.shown));
    if (!k.validators.empty())
      return Error(Code::unsupported, target.shown + ": validators: external plugins are disabled, and no validator is built in");
    return add_vars(all.resources, k.vars, all.vars).wrap(target.shown + ": vars");
  }

  Result<void> add_resources(const Target& target, const std::vector<std::string>& paths, const std::string& field,
                             Accumulator& all) {
    for (size_t i = 0; i < paths.size(); ++i) {
      const std::string& path = paths[i];
      std::string at = target.shown + ": " + field + "[" + std::to_string(i) + "]";
      if (is_remote(path) || !target.loader.is_file(path)) {
        std::error_code failed;
        bool exists = std::filesystem::exists(path.starts_with('/') ? path : target.loader.root() + "/" + path, failed);
        if (!exists && !is_remote(path))
          return Error(Code::not_found, at + ": there is no file or directory " + target.loader.shown(path));
        TRY(add_directory(target, path, false, all, at));
        continue;
      }
      std::string text = TRY(target.loader.load(path).wrap(at));
      auto objects = TRY(read_objects(text).wrap(target.loader.shown(path)));
      for (ResourcePtr& object : objects) {
        if (tracks_) object->origin = std::make_shared<Origin>(Origin{.path = joined(target.origin, path)});
        TRY(all.resources.append(std::move(object)).wrap(at + ": " + path));
      }
    }
    return {};
  }

  // A base has an accumulator of its own, which is then merged; a component changes what is there.
  Result<void> add_directory(const Target& target, const std::string& path, bool component, Accumulator& all,
                             const std::string& at) {
    Loader loader = TRY(target.loader.enter(path).wrap(at));
    Target base = TRY(load(loader, joined(target.origin, path)).wrap(at));
    TRY(use_schema(base));
    if (component != base.kustomization.is_component())
      return Error(Code::invalid, at + ": " + base.shown + " has the kind " + base.kustomization.kind + "; " +
                                      (component ? "components are of kind Component" : "a Component belongs to components"));
    if (component) return accumulate(base, all);
    Accumulator own;
    TRY(accumulate(base, own));
    return all.merge(own).wrap(at + ": " + path);
  }

  std::shared_ptr<const Origin> origin_of(const Target& target, const char* kind) const {
    if (!tracks_) return nullptr;
    return std::make_shared<Origin>(
        Origin{.configured_in = joined(target.origin, target.file), .configured_by = {"", "builtin", kind}});
  }

  // ---- generators and transformers ----

  // The configurations that `generators` or `transformers` name: inline, in a file, or built by a kustomization.
  Result<Resources> configurations(const Target& target, const std::vector<std::string>& entries, const std::string& field) {
    Accumulator found;
    std::vector<std::string> paths;  // after those that are inline
    for (size_t i = 0; i < entries.size(); ++i) {
      auto objects = read_objects(entries[i]);
      if (!objects) {
        if (entries[i].find('\n') != std::string::npos) return objects.take_error().wrap(field + "[" + std::to_string(i) + "]");
        paths.push_back(entries[i]);
        continue;
      }
      for (ResourcePtr& object : *objects) {
        if (tracks_) object->origin = std::make_shared<Origin>(Origin{.path = joined(target.origin, target.file)});
        TRY(found.resources.append(std::move(object)).wrap(field));
      }
    }
    TRY(add_resources(target, paths, field, found));
    return std::move(found.resources);
  }

  static std::shared_ptr<const Origin> origin_of(const Resource& configuration) {
    if (!configuration.origin) return nullptr;
    return std::make_shared<Origin>(Origin{.configured_in = configuration.origin->path,
                                           .configured_by = configuration.gvk(),
                                           .name = configuration.name(),
                                           .ns = configuration.ns()});
  }

  Result<void> run_generators(const Target& target, Accumulator& all) {
    const Kustomization& k = target.kustomization;
    auto absorb = [&](ResourcePtr resource, std::shared_ptr<const Origin> origin, const std::string& at) {
      if (!resource->origin) resource->origin = std::move(origin);
      return all.resources.absorb(std::move(resource)).wrap(at);
    };
    for (bool secret : {false, true}) {
      const std::vector<GeneratorArgs>& generators = secret ? k.secrets : k.config_maps;
      for (size_t i = 0; i < generators.size(); ++i) {
        std::string at = std::string(secret ? "secretGenerator[" : "configMapGenerator[") + std::to_string(i) + "]";
        GeneratorArgs args = generators[i];
        args.options = merged_options(args.options, k.generator_options);
        ResourcePtr made =
            TRY((secret ? generate_secret(target.loader, args) : generate_config_map(target.loader, args)).wrap(at));
        TRY(absorb(std::move(made), origin_of(target, secret ? "SecretGenerator" : "ConfigMapGenerator"), at));
      }
    }
    if (k.has_helm_charts)
      return Error(Code::unsupported,
                   "helmCharts: charts need the program helm: render them with helm template, and name the file");
    Resources configured = TRY(configurations(target, k.generators, "generators"));
    for (const ResourcePtr& configuration : configured.all()) {
      ResourcePtr made = TRY(run_generator({target.loader, *schemas_}, *configuration).wrap("generators"));
      TRY(absorb(std::move(made), origin_of(*configuration), "generators"));
    }
    return {};
  }

  Result<void> run_transformers(const Target& target, Accumulator& all) {
    const Kustomization& k = target.kustomization;
    PluginContext context{target.loader, *schemas_};
    std::vector<Transformer> transformers =
        TRY(own_transformers(context, k, all.config, [&](const char* kind) { return origin_of(target, kind); }));
    Resources configured = TRY(configurations(target, k.transformers, "transformers"));
    for (const ResourcePtr& configuration : configured.all()) {
      Transformer transformer = TRY(make_transformer(context, *configuration).wrap("transformers"));
      transformer.origin = origin_of(*configuration);
      transformers.push_back(std::move(transformer));
    }
    for (const Transformer& transformer : transformers) {
      TRY(transformer.run(all.resources));
      all.resources.drop_gone();
      if (!transformer.origin) continue;
      for (const ResourcePtr& resource : all.resources.all()) {
        if (!resource->origin) resource->origin = transformer.origin;
        else resource->transformations.push_back(transformer.origin);
      }
    }
    return {};
  }

  // ---- all directories ----

  Result<void> finish(Accumulator& all) {
    for (const ResourcePtr& resource : all.resources.all()) {
      if (!resource->needs_hash) continue;
      std::string hash = TRY(content_hash(resource->object).wrap(resource->id().text()));
      resource->store_previous_id();
      resource->set_name(resource->name() + "-" + hash);
    }
    TRY(fix_name_references(all.resources, all.config.name_reference));
    std::vector<std::string> unused;
    TRY(resolve_vars(all.resources, all.vars, all.config.var_reference, unused));
    if (!unused.empty()) warnings_.push_back("well-defined vars that were never replaced: " + join(unused, ","));
    std::erase_if(all.resources.all(), [](const ResourcePtr& resource) {
      const Node* metadata = resource->object.find("metadata");
      const Node* annotations = metadata ? metadata->find("annotations") : nullptr;
      const Node* local = annotations ? annotations->find("config.kubernetes.io/local-config") : nullptr;
      return local && local->text != "false";
    });
    for (const ResourcePtr& resource : all.resources.all())
      if (resource->name().empty() && !resource->gvk().kind.ends_with("List"))
        return Error(Code::invalid, "an object of kind " + resource->gvk().kind + " lost its name");
    if (root_.sort) {
      TRY(sort_objects(all.resources, *root_.sort));
    } else if (options_.order == Order::by_kind) {
      TRY(sort_objects(all.resources, {.order = "legacy"}));
    }
    if (options_.managed_by_label || root_.tracks("managedByLabel")) {
      TRY(add_entries(all.resources, {{"app.kubernetes.io/managed-by", kVersion}}, {{{}, "metadata/labels", true}}));
    }
    for (const ResourcePtr& resource : all.resources.all()) finish_annotations(*resource);
    return {};
  }

  // Annotations become texts; those of kustomize's own pipeline are removed, and those of buildMetadata added.
  void finish_annotations(Resource& resource) const {
    auto annotations = resource.map_of("annotations");
    std::erase_if(annotations, [](const auto& one) {
      for (std::string_view key :
           {"previousKinds", "previousNames", "prefixes", "suffixes", "previousNamespaces", "refBy", "generatorBehavior",
            "needsHashSuffix", "allowNameChange", "allowKindChange", "path", "index", "seqindent", "id"})
        if (one.first == "internal.config.kubernetes.io/" + std::string(key)) return true;
      return one.first == "config.kubernetes.io/path" || one.first == "config.kubernetes.io/index" ||
             one.first == "config.k8s.io/id" || one.first == "config.kubernetes.io/origin" ||
             one.first == "alpha.config.kubernetes.io/transformations";
    });
    if (root_.tracks("originAnnotations") && resource.origin)
      annotations.emplace_back("config.kubernetes.io/origin", resource.origin->yaml());
    if (root_.tracks("transformerAnnotations") && !resource.transformations.empty()) {
      std::string text;
      for (const auto& one : resource.transformations) text += one->yaml("- ", "  ");
      annotations.emplace_back("alpha.config.kubernetes.io/transformations", text);
    }
    const Node* metadata = resource.object.find("metadata");
    if (!annotations.empty() || (metadata && metadata->find("annotations")))
      resource.set_map("annotations", std::move(annotations));
  }

  const BuildOptions& options_;
  std::vector<std::string>& warnings_;
  Kustomization root_;
  bool tracks_ = false;  // where objects come from
  bool schema_is_set_ = false;
  std::shared_ptr<const OpenApi> schemas_ = std::make_shared<OpenApi>();
};

}  // namespace

Result<Built> build(const std::string& directory, const BuildOptions& options) {
  Built built;
  Loader loader = TRY(Loader::open(directory, options.restricted));
  Resources resources = TRY(Builder(options, built.warnings).run(loader));
  for (const ResourcePtr& resource : resources.all()) {
    json::value object = TRY(to_json(resource->object).wrap(resource->id().text()));
    built.objects.push_back(std::move(object));
  }
  return built;
}

std::string namespace_of(const json::value& object) {
  ResId id{{}, std::string(get_string(object, "metadata.name")), std::string(get_string(object, "metadata.namespace"))};
  split_group_version(get_string(object, "apiVersion"), id.gvk.group, id.gvk.version);
  id.gvk.kind = get_string(object, "kind");
  std::string ns = id.effective_ns();
  return ns == kNoNamespace ? std::string() : ns;
}

std::string to_yaml_stream(const std::vector<json::value>& objects) {
  std::string text;
  for (const json::value& object : objects) {
    if (!text.empty()) text += "---\n";
    text += to_yaml(object);
  }
  return text;
}

}  // namespace coracle::kustomize
