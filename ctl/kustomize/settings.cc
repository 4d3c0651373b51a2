// SPDX-License-Identifier: Apache-2.0
// See settings.h.
#include "ctl/kustomize/settings.h"

#include <algorithm>
#include <functional>

#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::kustomize {
namespace {

// Reads JSON into structs. `at` is the path of the value for errors.
struct Decoder {
  bool strict = true;

  using Read = std::function<Result<void>(const json::value&, const std::string&)>;
  struct Slot {
    std::string_view name;
    Read read;
  };

  static Error wrong(const std::string& at, const char* expected) {
    return Error(Code::invalid, (at.empty() ? "it" : at) + " must be " + expected);
  }

  // The fields of an object. Null is an empty one.
  Result<void> fields(const json::value& value, const std::string& at, const std::vector<Slot>& slots) const {
    if (value.is_null()) return {};
    const json::object* object = value.if_object();
    if (!object) return wrong(at, "a map");
    for (const auto& member : *object) {
      std::string path = (at.empty() ? "" : at + ".") + std::string(member.key());
      auto slot =
          std::find_if(slots.begin(), slots.end(), [&](const Slot& one) { return one.name == std::string_view(member.key()); });
      if (slot == slots.end())
        slot = std::find_if(slots.begin(), slots.end(),
                            [&](const Slot& one) { return to_lower(one.name) == to_lower(member.key()); });
      if (slot == slots.end()) {
        if (!strict) continue;
        return Error(Code::invalid, "unknown field " + quoted(shortened_path(std::move(path))));
      }
      TRY(slot->read(member.value(), path));
    }
    return {};
  }

  template <typename T>
  Slot slot(std::string_view name, T& out) const {
    return {name, [this, &out](const json::value& value, const std::string& at) { return read(value, at, out); }};
  }
  Slot ignored(std::string_view name) const {
    return {name, [](const json::value&, const std::string&) { return Result<void>(); }};
  }

  Result<void> read(const json::value& value, const std::string& at, std::string& out) const {
    if (value.is_null()) return {};
    if (!value.is_string()) return wrong(at, "text; put it in quotes");
    out = value.get_string();
    return {};
  }
  Result<void> read(const json::value& value, const std::string& at, bool& out) const {
    if (value.is_null()) return {};
    if (!value.is_bool()) return wrong(at, "true or false");
    out = value.get_bool();
    return {};
  }
  Result<void> read(const json::value& value, const std::string& at, int64_t& out) const {
    if (value.is_null()) return {};
    if (!value.is_int64()) return wrong(at, "an integer");
    out = value.get_int64();
    return {};
  }
  Result<void> read(const json::value& value, const std::string& at, Texts& out) const {
    if (value.is_null()) return {};
    if (!value.is_object()) return wrong(at, "a map of texts");
    for (const auto& member : value.get_object()) {
      TRY(read(member.value(), at + "." + std::string(member.key()), out[std::string(member.key())]));
    }
    return {};
  }
  template <typename T>
  Result<void> read(const json::value& value, const std::string& at, std::vector<T>& out) const {
    if (value.is_null()) return {};
    if (!value.is_array()) return wrong(at, "a list");
    for (const auto& item : value.get_array()) {
      std::string path = at + "[" + std::to_string(out.size()) + "]";
      out.emplace_back();
      TRY(read(item, path, out.back()));
    }
    return {};
  }
  template <typename T>
  Result<void> read(const json::value& value, const std::string& at, std::optional<T>& out) const {
    if (value.is_null()) return {};
    return read(value, at, out.emplace());
  }

  std::vector<Slot> gvk_slots(Gvk& out) const {
    return {slot("group", out.group), slot("version", out.version), slot("kind", out.kind)};
  }
  std::vector<Slot> id_slots(ResId& out) const {
    std::vector<Slot> slots = gvk_slots(out.gvk);
    slots.push_back(slot("name", out.name));
    slots.push_back(slot("namespace", out.ns));
    return slots;
  }

  Result<void> read(const json::value& value, const std::string& at, Selector& out) const {
    std::vector<Slot> slots = id_slots(out.id);
    slots.push_back(slot("annotationSelector", out.annotations));
    slots.push_back(slot("labelSelector", out.labels));
    return fields(value, at, slots);
  }
  Result<void> read(const json::value& value, const std::string& at, FieldSpec& out) const {
    std::vector<Slot> slots = gvk_slots(out.gvk);
    slots.push_back(slot("path", out.path));
    slots.push_back(slot("create", out.create));
    return fields(value, at, slots);
  }
  Result<void> read(const json::value& value, const std::string& at, NameReference& out) const {
    std::vector<Slot> slots = gvk_slots(out.target);
    slots.push_back(slot("fieldSpecs", out.referrers));
    return fields(value, at, slots);
  }
  Result<void> read(const json::value& value, const std::string& at, GeneratorOptions& out) const {
    return fields(value, at,
                  {slot("labels", out.labels), slot("annotations", out.annotations),
                   slot("disableNameSuffixHash", out.disable_name_suffix_hash), slot("immutable", out.immutable)});
  }
  std::vector<Slot> generator_slots(GeneratorArgs& out) const {
    return {slot("namespace", out.ns), slot("name", out.name), slot("behavior", out.behavior), slot("literals", out.literals),
            slot("files", out.files),  slot("envs", out.envs), slot("env", out.env),           slot("options", out.options)};
  }
  Result<void> read(const json::value& value, const std::string& at, GeneratorArgs& out) const {
    return fields(value, at, generator_slots(out));
  }
  Result<void> read_secret(const json::value& value, const std::string& at, GeneratorArgs& out) const {
    std::vector<Slot> slots = generator_slots(out);
    slots.push_back(slot("type", out.type));
    return fields(value, at, slots);
  }
  Result<void> read(const json::value& value, const std::string& at, LabelArgs& out) const {
    return fields(value, at,
                  {slot("pairs", out.pairs), slot("includeSelectors", out.include_selectors),
                   slot("includeTemplates", out.include_templates), slot("fields", out.fields)});
  }
  Slot options_slot(PatchArgs& out) const {
    return {"options", [this, &out](const json::value& value, const std::string& at) {
              return fields(value, at,
                            {slot("allowNameChange", out.allow_name_change), slot("allowKindChange", out.allow_kind_change)});
            }};
  }
  Result<void> read(const json::value& value, const std::string& at, PatchArgs& out) const {
    return fields(value, at, {slot("path", out.path), slot("patch", out.patch), slot("target", out.target), options_slot(out)});
  }
  Result<void> read(const json::value& value, const std::string& at, ImageArgs& out) const {
    return fields(value, at,
                  {slot("name", out.name), slot("newName", out.new_name), slot("tagSuffix", out.tag_suffix),
                   slot("newTag", out.new_tag), slot("digest", out.digest)});
  }
  Result<void> read(const json::value& value, const std::string& at, ReplicaArgs& out) const {
    return fields(value, at, {slot("name", out.name), slot("count", out.count)});
  }
  Result<void> read(const json::value& value, const std::string& at, FieldOptions& out) const {
    return fields(
        value, at,
        {slot("delimiter", out.delimiter), slot("index", out.index), slot("encoding", out.encoding), slot("create", out.create)});
  }
  Result<void> read(const json::value& value, const std::string& at, SourceArgs& out) const {
    std::vector<Slot> slots = id_slots(out.id);
    slots.push_back(slot("fieldPath", out.field_path));
    slots.push_back(slot("options", out.options));
    return fields(value, at, slots);
  }
  Result<void> read(const json::value& value, const std::string& at, TargetArgs& out) const {
    return fields(value, at,
                  {slot("select", out.select), slot("reject", out.reject), slot("fieldPaths", out.field_paths),
                   slot("options", out.options)});
  }
  Result<void> read(const json::value& value, const std::string& at, ReplacementArgs& out) const {
    return fields(value, at,
                  {slot("path", out.path), slot("source", out.source), slot("sourceValue", out.source_value),
                   slot("targets", out.targets)});
  }
  Result<void> read(const json::value& value, const std::string& at, VarArgs& out) const {
    std::string api_version, field_path;
    TRY(fields(value, at,
               {slot("name", out.name),
                {"objref",
                 [&](const json::value& object, const std::string& path) {
                   std::vector<Slot> slots = id_slots(out.object);
                   slots.push_back(slot("apiVersion", api_version));
                   return fields(object, path, slots);
                 }},
                {"fieldref", [&](const json::value& object, const std::string& path) {
                   return fields(object, path, {slot("fieldPath", field_path)});
                 }}}));
    if (!field_path.empty()) out.field_path = field_path;
    if (!api_version.empty()) {
      std::string group;
      split_group_version(api_version, group, out.object.gvk.version);
      if (api_version.find('/') != api_version.npos) out.object.gvk.group = group;
    }
    return {};
  }
  Result<void> read(const json::value& value, const std::string& at, SortArgs& out) const {
    return fields(
        value, at,
        {slot("order", out.order), {"legacySortOptions", [&](const json::value& kinds, const std::string& path) {
                                      out.has_kinds = !kinds.is_null();
                                      return fields(kinds, path, {slot("orderFirst", out.first), slot("orderLast", out.last)});
                                    }}});
  }
  Result<void> read(const json::value& value, const std::string& at, PluginConfig::ValueTarget& out) const {
    return fields(
        value, at,
        {slot("selector", out.selector), slot("fieldPath", out.field_path), slot("filePathPosition", out.file_path_position)});
  }

  // A list of generators that may have a type, as Secrets have.
  Slot secrets_slot(std::string_view name, std::vector<GeneratorArgs>& out) const {
    return {name, [this, &out](const json::value& value, const std::string& at) -> Result<void> {
              if (value.is_null()) return {};
              if (!value.is_array()) return wrong(at, "a list");
              for (const auto& item : value.get_array()) {
                std::string path = at + "[" + std::to_string(out.size()) + "]";
                out.emplace_back();
                TRY(read_secret(item, path, out.back()));
              }
              return {};
            }};
  }
};

// The document of a text, or null. Errors: bad_request, with the line.
Result<json::value> one_document(std::string_view text) {
  std::vector<std::string> duplicates;
  std::vector<json::value> documents = TRY(parse_yaml(text, nullptr, &duplicates));
  return documents.empty() ? json::value() : std::move(documents[0]);
}

Result<void> check_kind(const Kustomization& out) {
  if (out.kind != "Kustomization" && out.kind != "Component")
    return Error(Code::invalid, "kind should be Kustomization or Component, not " + quoted(out.kind));
  std::string version = out.is_component() ? "kustomize.config.k8s.io/v1alpha1" : "kustomize.config.k8s.io/v1beta1";
  if (out.api_version != version)
    return Error(Code::invalid, "apiVersion for " + out.kind + " should be " + version + ", not " + quoted(out.api_version));
  return {};
}

}  // namespace

bool Kustomization::tracks(std::string_view option) const {
  return std::find(build_metadata.begin(), build_metadata.end(), option) != build_metadata.end();
}

Result<Kustomization> read_kustomization(std::string_view text) {
  json::value document = TRY(one_document(text));
  if (!document.is_null() && !document.is_object()) return Error(Code::invalid, "a kustomization must be a map");
  Kustomization out;
  Decoder decoder;
  std::vector<std::string> bases;
  std::vector<ImageArgs> image_tags;
  bool more = false;
  auto helm = [&](std::string_view name) -> Decoder::Slot {
    return {name, [&](const json::value& value, const std::string& at) -> Result<void> {
              if (value.is_null()) return {};
              if (!value.is_array()) return Decoder::wrong(at, "a list");
              out.has_helm_charts = out.has_helm_charts || !value.get_array().empty();
              return {};
            }};
  };
  TRY(decoder.fields(document, "",
                     {decoder.slot("apiVersion", out.api_version),
                      decoder.slot("kind", out.kind),
                      decoder.ignored("metadata"),
                      decoder.slot("openapi", out.openapi),
                      decoder.slot("namePrefix", out.name_prefix),
                      decoder.slot("nameSuffix", out.name_suffix),
                      decoder.slot("namespace", out.ns),
                      decoder.slot("commonLabels", out.common_labels),
                      decoder.slot("labels", out.labels),
                      decoder.slot("commonAnnotations", out.common_annotations),
                      decoder.slot("patchesStrategicMerge", out.patches_strategic_merge),
                      decoder.slot("patchesJson6902", out.patches_json),
                      decoder.slot("patches", out.patches),
                      decoder.slot("images", out.images),
                      decoder.slot("imageTags", image_tags),
                      decoder.slot("replacements", out.replacements),
                      decoder.slot("replicas", out.replicas),
                      decoder.slot("vars", out.vars),
                      decoder.slot("sortOptions", out.sort),
                      decoder.slot("resources", out.resources),
                      decoder.slot("components", out.components),
                      decoder.slot("crds", out.crds),
                      decoder.slot("bases", bases),
                      decoder.slot("configMapGenerator", out.config_maps),
                      decoder.secrets_slot("secretGenerator", out.secrets),
                      decoder.ignored("helmGlobals"),
                      helm("helmCharts"),
                      helm("helmChartInflationGenerator"),
                      decoder.slot("generatorOptions", out.generator_options),
                      decoder.slot("configurations", out.configurations),
                      decoder.slot("generators", out.generators),
                      decoder.slot("transformers", out.transformers),
                      decoder.slot("validators", out.validators),
                      decoder.slot("buildMetadata", out.build_metadata)}));
  if (const auto* object = document.if_object())
    for (const auto& member : *object) {
      std::string name = to_lower(member.key());
      more = more || (name != "apiversion" && name != "kind" && !member.value().is_null());
      if (member.value().is_null()) continue;
      if (name == "bases") out.deprecated.push_back("bases=resources");
      if (name == "commonlabels") out.deprecated.push_back("commonLabels=labels");
      if (name == "imagetags") out.deprecated.push_back("imageTags=images");
      if (name == "patchesjson6902") out.deprecated.push_back("patchesJson6902=patches");
      if (name == "patchesstrategicmerge") out.deprecated.push_back("patchesStrategicMerge=patches");
      if (name == "vars") out.deprecated.push_back("vars=replacements");
    }
  std::sort(out.deprecated.begin(), out.deprecated.end());
  if (!more) return Error(Code::invalid, "kustomization.yaml is empty");
  if (out.kind.empty()) out.kind = "Kustomization";
  if (out.api_version.empty())
    out.api_version = out.is_component() ? "kustomize.config.k8s.io/v1alpha1" : "kustomize.config.k8s.io/v1beta1";
  TRY(check_kind(out));
  out.resources.insert(out.resources.end(), bases.begin(), bases.end());
  out.images.insert(out.images.end(), image_tags.begin(), image_tags.end());
  for (auto* generators : {&out.config_maps, &out.secrets})
    for (GeneratorArgs& generator : *generators)
      if (!generator.env.empty()) generator.envs.push_back(std::exchange(generator.env, ""));
  return out;
}

Result<PluginConfig> read_plugin_config(const json::value& object) {
  Decoder decoder{.strict = false};
  PluginConfig out;
  // A PatchTransformer's patches are a text; a PatchStrategicMergeTransformer's paths are a list.
  std::vector<Decoder::Slot> slots = {
      {"metadata",
       [&](const json::value& value, const std::string& at) {
         return decoder.fields(value, at, {decoder.slot("name", out.name), decoder.slot("namespace", out.ns)});
       }},
      decoder.slot("path", out.patch.path),
      decoder.slot("patch", out.patch.patch),
      decoder.slot("target", out.patch.target),
      {"options",
       [&](const json::value& value, const std::string& at) -> Result<void> {
         TRY(decoder.options_slot(out.patch).read(value, at));
         return decoder.read(value, at, out.generator.options);
       }},
      decoder.slot("jsonOp", out.json_op),
      decoder.slot("patches", out.patches),
      decoder.slot("paths", out.paths),
      decoder.slot("prefix", out.prefix),
      decoder.slot("suffix", out.suffix),
      decoder.slot("labels", out.labels),
      decoder.slot("annotations", out.annotations),
      {"fieldSpecs",
       [&](const json::value& value, const std::string& at) {
         out.has_field_specs = !value.is_null();
         return decoder.read(value, at, out.field_specs);
       }},
      decoder.slot("unsetOnly", out.unset_only),
      decoder.slot("setRoleBindingSubjects", out.set_role_binding_subjects),
      decoder.slot("imageTag", out.image),
      decoder.slot("replica", out.replica),
      decoder.slot("replacements", out.replacements),
      decoder.slot("sortOptions", out.sort),
      decoder.slot("value", out.value),
      decoder.slot("targets", out.targets),
      decoder.slot("targetFilePath", out.target_file_path),
      decoder.slot("name", out.generator.name),
      decoder.slot("namespace", out.generator.ns),
      decoder.slot("behavior", out.generator.behavior),
      decoder.slot("type", out.generator.type),
      decoder.slot("literals", out.generator.literals),
      decoder.slot("files", out.generator.files),
      decoder.slot("envs", out.generator.envs),
      decoder.slot("env", out.generator.env),
  };
  TRY(decoder.fields(object, "", slots));
  if (out.generator.name.empty()) out.generator.name = out.name;
  if (out.generator.ns.empty()) out.generator.ns = out.ns;
  return out;
}

Result<std::vector<PluginConfig::ValueTarget>> read_value_targets(std::string_view text) {
  json::value document = TRY(one_document(text));
  Decoder decoder{.strict = false};
  std::vector<PluginConfig::ValueTarget> out;
  TRY(decoder.fields(document, "", {decoder.slot("targets", out)}));
  return out;
}

Result<std::vector<ReplacementArgs>> read_replacements(std::string_view text) {
  json::value document = TRY(one_document(text));
  Decoder decoder{.strict = false};
  std::vector<ReplacementArgs> out;
  if (document.is_array()) {
    TRY(decoder.read(document, "", out));
  } else if (document.is_object()) {
    out.emplace_back();
    TRY(decoder.read(document, "", out.back()));
  } else {
    return Error(Code::invalid, "it must be a replacement or a list of them");
  }
  return out;
}

Result<TransformerConfig> read_transformer_config(std::string_view text) {
  json::value document = TRY(one_document(text));
  Decoder decoder;
  TransformerConfig out;
  TRY(decoder.fields(
      document, "",
      {decoder.slot("namePrefix", out.name_prefix), decoder.slot("nameSuffix", out.name_suffix),
       decoder.slot("namespace", out.ns), decoder.slot("commonLabels", out.common_labels), decoder.slot("labels", out.labels),
       decoder.slot("templateLabels", out.template_labels), decoder.slot("commonAnnotations", out.common_annotations),
       decoder.slot("nameReference", out.name_reference), decoder.slot("varReference", out.var_reference),
       decoder.slot("images", out.images), decoder.slot("replicas", out.replicas)}));
  out.sort();
  return out;
}

}  // namespace coracle::kustomize
