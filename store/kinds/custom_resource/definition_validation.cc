// SPDX-License-Identifier: Apache-2.0
// Validation of CustomResourceDefinitions: names, versions, conversion. json_schema_validation.cc checks their schemas. Errors in
// what all versions have in common get Kubernetes' internal paths, at the top of the spec (spec.validation, spec.subresources,
// ...). Source: apiextensions-apiserver 1.36, pkg/apis/apiextensions/validation, and its conversion between versions.
#include <set>
#include <utility>

#include "runtime/base/text.h"
#include "store/kinds/custom_resource/custom_resource_kinds.h"
#include "store/kinds/custom_resource/json_schema_validation.h"
#include "store/kinds/meta/conditions.h"
#include "store/schema/validate/texts.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kWarningMax = 256, kSelectableFieldsMax = 8;
constexpr std::string_view kMixed = "may have mixed case, but should otherwise match: ";
constexpr std::string_view kColumnTypes = "must be one of boolean,date,integer,number,string";
constexpr std::string_view kColumnFormats = "must be one of byte,date,date-time,double,float,int32,int64,password";

void check_definition_names(Findings& out, const std::string& path, view::CustomResourceDefinitionNames names) {
  for (auto [field, name] : {std::pair("plural", names.plural()), std::pair("singular", names.singular())}) {
    if (!name.empty()) invalid_joined(out, sub(path, field), name, dns_1035_problems(name));
  }
  std::string_view kind = names.kind(), list = names.list_kind();
  for (auto [field, name] : {std::pair{"kind", kind}, {"listKind", list}}) {
    if (!name.empty()) invalid_joined(out, sub(path, field), name, dns_1035_problems(to_lower(name)), kMixed);
  }
  if (!kind.empty() && kind == list) out.invalid(sub(path, "listKind"), list, "kind and listKind may not be the same");
  for (auto [field, texts] : {std::pair("shortNames", names.short_names()), std::pair("categories", names.categories())}) {
    for (size_t i = 0; i < texts.size(); ++i)
      invalid_joined(out, item(sub(path, field), i), texts[i], dns_1035_problems(texts[i]));
  }
}

// ---- versions ----

void check_json_path(Findings& out, const std::string& path, std::string_view text) {
  if (!text.starts_with('.')) out.invalid(path, text, "must be a simple json path starting with .");
}

void check_column(Findings& out, const std::string& path, view::CustomResourceColumnDefinition column) {
  std::string_view type = column.type(), format = column.format(), at = column.json_path();
  if (column.name().empty()) out.required(sub(path, "name"));
  static const std::set<std::string_view> types = {"boolean", "date", "integer", "number", "string"};
  static const std::set<std::string_view> formats = {"byte",  "date",  "date-time", "double",
                                                     "float", "int32", "int64",     "password"};
  if (type.empty()) out.required(sub(path, "type"), kColumnTypes);
  else if (!types.count(type)) out.invalid(sub(path, "type"), type, kColumnTypes);
  if (!format.empty() && !formats.count(format)) out.invalid(sub(path, "format"), format, kColumnFormats);
  if (at.empty()) out.required(sub(path, "JSONPath"));
  else check_json_path(out, sub(path, "JSONPath"), at);
}

void check_scale_path(Findings& out, const std::string& path, std::string_view text,
                      std::initializer_list<std::string_view> under, std::string_view otherwise) {
  if (!text.starts_with('.')) return check_json_path(out, path, text);
  for (std::string_view prefix : under) {
    if (text.starts_with(prefix)) return;
  }
  out.invalid(path, text, otherwise);
}

void check_scale(Findings& out, const std::string& path, view::CustomResourceSubresourceScale scale) {
  if (!scale) return;
  std::string_view spec = scale.spec_replicas_path(), status = scale.status_replicas_path();
  std::string_view labels = scale.label_selector_path();
  if (spec.empty()) out.required(sub(path, "specReplicasPath"));
  else check_scale_path(out, sub(path, "specReplicasPath"), spec, {".spec."}, "should be a json path under .spec");
  if (status.empty()) out.required(sub(path, "statusReplicasPath"));
  else check_scale_path(out, sub(path, "statusReplicasPath"), status, {".status."}, "should be a json path under .status");
  if (!labels.empty()) {
    check_scale_path(out, sub(path, "labelSelectorPath"), labels, {".spec.", ".status."},
                     "should be a json path under either .spec or .status");
  }
}

void check_selectable(Findings& out, const std::string& path, view::CustomResourceDefinitionVersion version) {
  std::set<std::string_view> seen;
  view::Range<view::SelectableField> fields = version.selectable_fields();
  view::JSONSchemaProps schema = version.schema().open_api_v3_schema();
  for (size_t i = 0; i < fields.size(); ++i) {
    std::string at = sub(item(path, i), "jsonPath");
    std::string_view text = fields[i].json_path();
    if (text.empty()) {
      out.required(at);
      continue;
    }
    std::string_view type = type_at(schema, text);
    if (type.empty()) {
      out.invalid(at, text, "is an invalid path: does not refer to a valid field");
      continue;
    }
    if (text.starts_with(".metadata")) out.invalid(at, text, "must not point to fields in metadata");
    if (type != "string" && type != "boolean" && type != "integer") {
      out.invalid(
          at, text,
          "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.");
    }
    if (!seen.insert(text).second) out.duplicate(at, text);
  }
  if (seen.size() > kSelectableFieldsMax) out.too_many(path, seen.size(), kSelectableFieldsMax);
}

void check_warning(Findings& out, const std::string& path, view::CustomResourceDefinitionVersion version) {
  if (!version.has_deprecation_warning()) return;
  std::string_view text = version.deprecation_warning();
  auto wrong = [&](std::string_view what) { out.invalid(path, text, what); };
  if (!version.deprecated()) return wrong("can only be set for deprecated versions");
  if (text.size() > kWarningMax) wrong("must be <= 256 characters long");
  if (text.empty()) wrong("must not be an empty string");
  for (size_t i = 0; i < text.size(); ++i) {
    if (uint8_t(text[i]) >= 0x20 && text[i] != 0x7f) continue;
    return wrong("must only contain printable UTF-8 characters; non-printable character found at index " + std::to_string(i));
  }
}

// True if every version has the field with the same value.
bool shared(const json::array& versions, std::string_view field) {
  const json::value* first = versions.empty() ? nullptr : find(versions[0], field);
  if (!first || first->is_null()) return false;
  for (const json::value& version : versions) {
    const json::value* other = find(version, field);
    if (!other || !same_json(*other, *first)) return false;
  }
  return true;
}

void check_versions(Findings& out, view::Range<view::CustomResourceDefinitionVersion> versions) {
  const json::array& all = versions.raw();
  bool one_schema = shared(all, "schema"), one_sub = shared(all, "subresources");
  bool one_table = shared(all, "additionalPrinterColumns"), one_selection = shared(all, "selectableFields");
  std::set<std::string_view> names;
  size_t stored = 0;
  bool unique = true;
  for (size_t i = 0; i < versions.size(); ++i) {
    view::CustomResourceDefinitionVersion version = versions[i];
    std::string at = item("spec.versions", i);
    auto place = [&](bool common, std::string_view at_top, std::string_view own) {
      return common ? sub("spec", at_top) : sub(at, own);
    };
    auto once = [&](bool common) { return !common || i == 0; };
    std::string_view name = version.name();
    stored += version.storage();
    unique = names.insert(name).second && unique;
    invalid_joined(out, sub(at, "name"), name, dns_1035_problems(name));
    view::JSONSchemaProps schema = version.schema().open_api_v3_schema();
    if (!schema) out.required(sub(at, "schema.openAPIV3Schema"));
    check_warning(out, sub(at, "deprecationWarning"), version);
    if (schema && once(one_schema)) {
      check_json_schema(out, place(one_schema, "validation", "schema") + ".openAPIV3Schema", schema,
                        version.subresources().has_status());
    }
    if (once(one_sub))
      check_scale(out, sub(place(one_sub, "subresources", "subresources"), "scale"), version.subresources().scale());
    view::Range<view::CustomResourceColumnDefinition> columns = version.additional_printer_columns();
    for (size_t j = 0; once(one_table) && j < columns.size(); ++j) {
      check_column(out, item(place(one_table, "additionalPrinterColumns", "additionalPrinterColumns"), j), columns[j]);
    }
    if (once(one_selection)) check_selectable(out, place(one_selection, "selectableFields", "selectableFields"), version);
  }
  if (!unique) out.invalid_json("spec.versions", all, "must contain unique version names");
  if (stored != 1) out.invalid_json("spec.versions", all, "must have exactly one version marked as storage version");
}

// ---- the rest ----

void check_conversion(Findings& out, view::CustomResourceConversion conversion) {
  if (!conversion) return;
  std::string path = "spec.conversion", config = path + ".webhookClientConfig", versions = path + ".conversionReviewVersions";
  std::string_view strategy = conversion.strategy();
  view::WebhookConversion hook = conversion.webhook();
  if (strategy.empty()) out.required(path + ".strategy");
  else if (strategy != "None" && strategy != "Webhook") unsupported(out, path + ".strategy", strategy, {"None", "Webhook"});
  if (strategy == "Webhook") {
    // It has the fields of an admission webhook's.
    if (hook.client_config()) check_client_config(out, config, view::WebhookClientConfig(hook.client_config().raw()));
    else out.required(config, "required when strategy is set to Webhook");
    if (hook.conversion_review_versions().empty()) out.required(versions);
    else check_review_versions(out, versions, hook.conversion_review_versions());
    return;
  }
  constexpr std::string_view kOnly = "should not be set when strategy is not set to Webhook";
  if (hook.has_client_config()) out.forbidden(config, kOnly);
  if (!hook.conversion_review_versions().empty()) out.forbidden(versions, kOnly);
}

// Protected groups of Kubernetes need an approval annotation.
void check_approval(Findings& out, view::CustomResourceDefinition definition) {
  constexpr std::string_view kAnnotation = "api-approved.kubernetes.io";
  std::string_view group = definition.spec().group();
  bool of_kubernetes =
      group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" || group.ends_with(".kubernetes.io");
  if (!of_kubernetes) return;
  const json::value* found = definition.metadata().annotations().if_contains(kAnnotation);
  std::string_view text = found && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
  std::string path = "metadata.annotations[" + std::string(kAnnotation) + "]";
  constexpr std::string_view kSee =
      "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
      "https://github.com/kubernetes/enhancements/pull/1111";
  if (text.empty()) return out.required(path, kSee);
  bool address = text.find("://") != text.npos && text.find("://") + 3 < text.size();
  if (address || text.starts_with("unapproved")) return;
  out.invalid(path, text,
              "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason "
              "starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111");
}

void check_stored_versions(Findings& out, view::CustomResourceDefinition definition) {
  view::Range<std::string_view> stored = definition.status().stored_versions();
  std::string path = "status.storedVersions";
  if (stored.empty()) return out.invalid_json(path, stored.raw(), "must have at least one stored version");
  std::set<std::string_view> versions, names(stored.begin(), stored.end());
  for (view::CustomResourceDefinitionVersion version : definition.spec().versions()) versions.insert(version.name());
  for (size_t i = 0; i < stored.size(); ++i) {
    std::string name(stored[i]);
    if (!versions.contains(stored[i])) {
      out.invalid(item(path, i), name,
                  "missing from spec.versions; " + name +
                      " was previously a storage version, and must remain in "
                      "spec.versions until a storage migration ensures no data remains persisted in " +
                      name + " and removes " + name + " from status.storedVersions");
    }
  }
  for (view::CustomResourceDefinitionVersion version : definition.spec().versions()) {
    if (!version.storage()) continue;
    if (!names.contains(version.name()))
      out.invalid_json(path, stored.raw(), "must have the storage version " + std::string(version.name()));
  }
}

void check_definition(const json::value& value, const std::string&, Findings& out) {
  view::CustomResourceDefinition definition(value);
  view::CustomResourceDefinitionSpec spec = definition.spec();
  std::string_view name = definition.metadata().name(), group = spec.group();
  std::string wanted = std::string(spec.names().plural()) + "." + std::string(group);
  if (!name.empty() && name != wanted) out.invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
  std::vector<std::string> problems = dns_subdomain_problems(group);
  if (!group.empty() && !problems.empty()) invalid_joined(out, "spec.group", group, problems);
  else if (!group.empty() && group.find('.') == group.npos)
    out.invalid("spec.group", group, "should be a domain with at least one dot");
  std::string_view scope = spec.scope();
  if (!scope.empty() && scope != "Cluster" && scope != "Namespaced")
    unsupported(out, "spec.scope", scope, {"Cluster", "Namespaced"});
  check_versions(out, spec.versions());
  if (spec.names().singular().empty()) out.required("spec.names.singular");
  if (spec.names().list_kind().empty()) out.required("spec.names.listKind");
  check_definition_names(out, "spec.names", spec.names());
  check_conversion(out, spec.conversion());
  check_stored_versions(out, definition);
  if (spec.preserve_unknown_fields()) {
    out.add({"FieldValueInvalid",
             "Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
             "spec.versions[*].schema instead",
             "spec.preserveUnknownFields"});
  }
}

constexpr NamedValidationRule kCustomResourceChecks[] = {
    {"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", check_definition}};

}  // namespace

std::span<const NamedValidationRule> custom_resource_rules() { return kCustomResourceChecks; }

void check_definition_create(const json::value& now, Findings& out) { check_approval(out, view::CustomResourceDefinition(now)); }

void check_definition_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::CustomResourceDefinitionSpec spec = view::CustomResourceDefinition(now).spec(),
                                     old = view::CustomResourceDefinition(before).spec();
  if (has_true_condition(before, "Established")) {
    check_immutable(out, "spec.scope", spec.scope(), old.scope());
    check_immutable(out, "spec.names.kind", spec.names().kind(), old.names().kind());
  }
  check_immutable(out, "spec.group", spec.group(), old.group());
  check_immutable(out, "spec.names.plural", spec.names().plural(), old.names().plural());
}

void check_definition_status(const json::value& now, const json::value&, Findings& out) {
  check_definition_names(out, "status.acceptedNames", view::CustomResourceDefinition(now).status().accepted_names());
}

}  // namespace coracle::schema
