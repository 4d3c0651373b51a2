// SPDX-License-Identifier: Apache-2.0
// Kustomization: the content of a kustomization file, and of the configurations of the built-in transformers and generators.
// Reading is strict: an unknown field is an error that names it. As Go's decoder, field names are compared without regard to
// case. Pure. Source: kustomize.config.k8s.io/v1beta1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/kustomize/fields.h"
#include "ctl/kustomize/resource.h"

namespace coracle::kustomize {

using Texts = std::map<std::string, std::string>;

struct GeneratorOptions {
  Texts labels, annotations;
  bool disable_name_suffix_hash = false, immutable = false;
};

struct GeneratorArgs {  // of a ConfigMap or Secret
  std::string ns, name, behavior, type;
  std::vector<std::string> literals, files, envs;
  std::string env;
  std::optional<GeneratorOptions> options;
};

struct LabelArgs {
  Texts pairs;
  bool include_selectors = false, include_templates = false;
  FieldSpecs fields;
};

struct PatchArgs {
  std::string path, patch;
  std::optional<Selector> target;
  bool allow_name_change = false, allow_kind_change = false;
};

struct ImageArgs {
  std::string name, new_name, tag_suffix, new_tag, digest;
};

struct ReplicaArgs {
  std::string name;
  int64_t count = 0;
};

struct FieldOptions {
  std::string delimiter;
  int64_t index = 0;
  std::string encoding;
  bool create = false;
};

struct SourceArgs {
  ResId id;
  std::string field_path;
  FieldOptions options;
};

struct TargetArgs {
  std::optional<Selector> select;
  std::vector<Selector> reject;
  std::vector<std::string> field_paths;
  FieldOptions options;
};

struct ReplacementArgs {
  std::string path;
  std::optional<SourceArgs> source;
  std::optional<std::string> source_value;
  std::vector<TargetArgs> targets;
};

struct VarArgs {
  std::string name;
  ResId object;
  std::string field_path = "metadata.name";
};

struct SortArgs {
  std::string order;
  bool has_kinds = false;
  std::vector<std::string> first, last;
};

struct Kustomization {
  std::string api_version, kind;
  std::map<std::string, std::string> openapi;
  std::string name_prefix, name_suffix, ns;
  std::vector<LabelArgs> labels;
  Texts common_labels, common_annotations;
  std::vector<std::string> patches_strategic_merge;
  std::vector<PatchArgs> patches_json, patches;
  std::vector<ImageArgs> images;
  std::vector<ReplacementArgs> replacements;
  std::vector<ReplicaArgs> replicas;
  std::vector<VarArgs> vars;
  std::optional<SortArgs> sort;
  std::vector<std::string> resources, components, crds, configurations, generators, transformers, validators, build_metadata;
  std::vector<GeneratorArgs> config_maps, secrets;
  std::optional<GeneratorOptions> generator_options;
  bool has_helm_charts = false;
  std::vector<std::string> deprecated;  // deprecated fields and what replaces them: "bases=resources"

  bool is_component() const { return kind == "Component"; }
  bool tracks(std::string_view option) const;  // in buildMetadata
};

// Errors: invalid, with the field.
Result<Kustomization> read_kustomization(std::string_view text);

// The configuration of a built-in transformer or generator.
struct PluginConfig {
  std::string name, ns;  // metadata
  PatchArgs patch;
  std::string json_op, patches;
  std::vector<std::string> paths;
  std::string prefix, suffix;
  Texts labels, annotations;
  FieldSpecs field_specs;
  bool has_field_specs = false, unset_only = false;
  std::string set_role_binding_subjects;
  ImageArgs image;
  ReplicaArgs replica;
  std::vector<ReplacementArgs> replacements;
  std::optional<SortArgs> sort;
  GeneratorArgs generator;
  std::string value, target_file_path;
  struct ValueTarget {
    std::optional<Selector> selector;
    std::string field_path;
    int64_t file_path_position = 0;
  };
  std::vector<ValueTarget> targets;
};

Result<PluginConfig> read_plugin_config(const json::value& object);  // unknown fields are ignored. Errors: invalid
Result<std::vector<PluginConfig::ValueTarget>> read_value_targets(std::string_view text);
Result<std::vector<ReplacementArgs>> read_replacements(std::string_view text);  // a file with one or a list of them
Result<TransformerConfig> read_transformer_config(std::string_view text);       // strict. Errors: invalid, with the field

}  // namespace coracle::kustomize
