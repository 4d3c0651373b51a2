// SPDX-License-Identifier: Apache-2.0
// Validation of CustomResourceDefinitions: names, versions, conversion. json_schema_validation.cc checks their schemas. Errors in
// what all versions have in common get Kubernetes' internal paths, at the top of the spec (spec.validation, spec.subresources,
// ...). Source: apiextensions-apiserver 1.36, pkg/apis/apiextensions/validation, and its conversion between versions.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/custom_resource/custom_resource_kinds.h"
#include "store/kinds/custom_resource/json_schema_validation.h"
#include "store/schema/validate/texts.h"

namespace coracle::schema {
namespace {

constexpr size_t kWarningMax = 256, kSelectableFieldsMax = 8;
constexpr std::string_view kMixed = "may have mixed case, but should otherwise match: ";
constexpr std::string_view kColumnTypes = "must be one of boolean,date,integer,number,string";
constexpr std::string_view kColumnFormats = "must be one of byte,date,date-time,double,float,int32,int64,password";

void check_definition_names(Findings& out, const std::string& path, const json::value& names) {
  for (std::string_view field : {"plural", "singular"}) {
    std::string_view name = get_string(names, field);
    if (!name.empty()) invalid_joined(out, sub(path, field), name, dns_1035_problems(name));
  }
  std::string_view kind = get_string(names, "kind"), list = get_string(names, "listKind");
  for (auto [field, name] : {std::pair{"kind", kind}, {"listKind", list}}) {
    if (!name.empty()) invalid_joined(out, sub(path, field), name, dns_1035_problems(to_lower(name)), kMixed);
  }
  if (!kind.empty() && kind == list) out.invalid(sub(path, "listKind"), list, "kind and listKind may not be the same");
  for (std::string_view field : {"shortNames", "categories"}) {
    std::vector<std::string_view> texts = texts_at(names, field);
    for (size_t i = 0; i < texts.size(); ++i)
      invalid_joined(out, item(sub(path, field), i), texts[i], dns_1035_problems(texts[i]));
  }
}

// ---- versions ----

void check_json_path(Findings& out, const std::string& path, std::string_view text) {
  if (!text.starts_with('.')) out.invalid(path, text, "must be a simple json path starting with .");
}

void check_column(Findings& out, const std::string& path, const json::value& column) {
  std::string_view type = get_string(column, "type"), format = get_string(column, "format"), at = get_string(column, "jsonPath");
  if (get_string(column, "name").empty()) out.required(sub(path, "name"));
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

void check_subresources(Findings& out, const std::string& path, const json::value& subresources) {
  const json::value* scale = find(subresources, "scale");
  if (!scale || !scale->is_object()) return;
  std::string_view spec = get_string(*scale, "specReplicasPath"), status = get_string(*scale, "statusReplicasPath");
  std::string_view labels = get_string(*scale, "labelSelectorPath");
  std::string at = sub(path, "scale");
  if (spec.empty()) out.required(sub(at, "specReplicasPath"));
  else check_scale_path(out, sub(at, "specReplicasPath"), spec, {".spec."}, "should be a json path under .spec");
  if (status.empty()) out.required(sub(at, "statusReplicasPath"));
  else check_scale_path(out, sub(at, "statusReplicasPath"), status, {".status."}, "should be a json path under .status");
  if (!labels.empty()) {
    check_scale_path(out, sub(at, "labelSelectorPath"), labels, {".spec.", ".status."},
                     "should be a json path under either .spec or .status");
  }
}

void check_selectable(Findings& out, const std::string& path, const json::value& version) {
  std::set<std::string_view> seen;
  const json::array& fields = get_array(version, "selectableFields");
  const json::value* schema = find(version, "schema.openAPIV3Schema");
  for (size_t i = 0; i < fields.size(); ++i) {
    std::string at = sub(item(path, i), "jsonPath");
    std::string_view text = get_string(fields[i], "jsonPath");
    if (text.empty()) {
      out.required(at);
      continue;
    }
    std::string_view type = schema ? type_at(*schema, text) : std::string_view();
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

void check_warning(Findings& out, const std::string& path, const json::value& version) {
  if (!has(version, "deprecationWarning")) return;
  std::string_view text = get_string(version, "deprecationWarning");
  auto wrong = [&](std::string_view what) { out.invalid(path, text, what); };
  if (!get_bool(version, "deprecated")) return wrong("can only be set for deprecated versions");
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
    if (!other || *other != *first) return false;
  }
  return true;
}

void check_versions(Findings& out, const json::value& value) {
  const json::array& versions = get_array(value, "spec.versions");
  bool one_schema = shared(versions, "schema"), one_sub = shared(versions, "subresources");
  bool one_table = shared(versions, "additionalPrinterColumns"), one_selection = shared(versions, "selectableFields");
  std::set<std::string_view> names;
  size_t stored = 0;
  bool unique = true;
  for (size_t i = 0; i < versions.size(); ++i) {
    const json::value& version = versions[i];
    std::string at = item("spec.versions", i);
    auto place = [&](bool common, std::string_view at_top, std::string_view own) {
      return common ? sub("spec", at_top) : sub(at, own);
    };
    auto once = [&](bool common) { return !common || i == 0; };
    std::string_view name = get_string(version, "name");
    stored += get_bool(version, "storage");
    unique = names.insert(name).second && unique;
    invalid_joined(out, sub(at, "name"), name, dns_1035_problems(name));
    if (!has(version, "schema.openAPIV3Schema")) out.required(sub(at, "schema.openAPIV3Schema"));
    check_warning(out, sub(at, "deprecationWarning"), version);
    if (has(version, "schema.openAPIV3Schema") && once(one_schema)) {
      check_json_schema(out, place(one_schema, "validation", "schema") + ".openAPIV3Schema",
                        *find(version, "schema.openAPIV3Schema"), has(version, "subresources.status"));
    }
    if (has(version, "subresources") && once(one_sub)) {
      check_subresources(out, place(one_sub, "subresources", "subresources"), *find(version, "subresources"));
    }
    const json::array& columns = get_array(version, "additionalPrinterColumns");
    for (size_t j = 0; once(one_table) && j < columns.size(); ++j) {
      check_column(out, item(place(one_table, "additionalPrinterColumns", "additionalPrinterColumns"), j), columns[j]);
    }
    if (once(one_selection)) check_selectable(out, place(one_selection, "selectableFields", "selectableFields"), version);
  }
  const json::value* all = find(value, "spec.versions");
  static const json::value nothing(json::array_kind);
  if (!unique) out.invalid_json("spec.versions", *all, "must contain unique version names");
  if (stored != 1)
    out.invalid_json("spec.versions", all ? *all : nothing, "must have exactly one version marked as storage version");
}

// ---- the rest ----

void check_conversion(Findings& out, const json::value& value) {
  const json::value* conversion = find(value, "spec.conversion");
  if (!conversion || !conversion->is_object()) return;
  std::string path = "spec.conversion", config = path + ".webhookClientConfig", versions = path + ".conversionReviewVersions";
  std::string_view strategy = get_string(*conversion, "strategy");
  if (strategy.empty()) out.required(path + ".strategy");
  else if (strategy != "None" && strategy != "Webhook") unsupported(out, path + ".strategy", strategy, {"None", "Webhook"});
  if (strategy == "Webhook") {
    const json::value* how = find(*conversion, "webhook.clientConfig");
    if (how && how->is_object()) check_client_config(out, config, view::WebhookClientConfig(*how));
    else out.required(config, "required when strategy is set to Webhook");
    if (get_array(*conversion, "webhook.conversionReviewVersions").empty()) out.required(versions);
    else check_review_versions(out, versions, view::CustomResourceConversion(*conversion).webhook().conversion_review_versions());
    return;
  }
  constexpr std::string_view kOnly = "should not be set when strategy is not set to Webhook";
  if (has(*conversion, "webhook.clientConfig")) out.forbidden(config, kOnly);
  if (!get_array(*conversion, "webhook.conversionReviewVersions").empty()) out.forbidden(versions, kOnly);
}

// Protected groups of Kubernetes need an approval annotation.
void check_approval(Findings& out, const json::value& value) {
  constexpr std::string_view kAnnotation = "api-approved.kubernetes.io";
  std::string_view group = get_string(value, "spec.group");
  bool of_kubernetes =
      group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" || group.ends_with(".kubernetes.io");
  if (!of_kubernetes) return;
  const json::value* found = find_keys(value, {"metadata", "annotations", kAnnotation});
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

void check_stored_versions(Findings& out, const json::value& value) {
  std::vector<std::string_view> stored = texts_at(value, "status.storedVersions");
  std::string path = "status.storedVersions";
  static const json::value nothing(json::array_kind);
  const json::value* all = find(value, path);
  if (stored.empty()) return out.invalid_json(path, all ? *all : nothing, "must have at least one stored version");
  std::set<std::string_view> versions, names(stored.begin(), stored.end());
  for (const json::value& version : get_array(value, "spec.versions")) versions.insert(get_string(version, "name"));
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
  for (const json::value& version : get_array(value, "spec.versions")) {
    if (!get_bool(version, "storage")) continue;
    if (!names.contains(get_string(version, "name")))
      out.invalid_json(path, *all, "must have the storage version " + std::string(get_string(version, "name")));
  }
}

void check_definition(const json::value& value, const std::string&, Findings& out) {
  std::string_view name = get_string(value, "metadata.name"), group = get_string(value, "spec.group");
  std::string wanted = std::string(get_string(value, "spec.names.plural")) + "." + std::string(group);
  if (!name.empty() && name != wanted) out.invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
  std::vector<std::string> problems = dns_subdomain_problems(group);
  if (!group.empty() && !problems.empty()) invalid_joined(out, "spec.group", group, problems);
  else if (!group.empty() && group.find('.') == group.npos)
    out.invalid("spec.group", group, "should be a domain with at least one dot");
  std::string_view scope = get_string(value, "spec.scope");
  if (!scope.empty() && scope != "Cluster" && scope != "Namespaced")
    unsupported(out, "spec.scope", scope, {"Cluster", "Namespaced"});
  check_versions(out, value);
  for (std::string_view field : {"singular", "listKind"}) {
    if (get_string(value, "spec.names." + std::string(field)).empty()) out.required("spec.names." + std::string(field));
  }
  if (const json::value* names = find(value, "spec.names")) check_definition_names(out, "spec.names", *names);
  check_conversion(out, value);
  check_stored_versions(out, value);
  if (get_bool(value, "spec.preserveUnknownFields")) {
    out.add({"FieldValueInvalid",
             "Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
             "spec.versions[*].schema instead",
             "spec.preserveUnknownFields"});
  }
}

constexpr NamedValidationRule kCustomResourceChecks[] = {
    {"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", check_definition}};

bool established(const json::value& definition) {
  for (const json::value& condition : get_array(definition, "status.conditions")) {
    if (get_string(condition, "type") == "Established") return get_string(condition, "status") == "True";
  }
  return false;
}

}  // namespace

std::span<const NamedValidationRule> custom_resource_rules() { return kCustomResourceChecks; }

void check_definition_create(const json::value& now, Findings& out) { check_approval(out, now); }

void check_definition_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  auto keep = [&](std::string_view path) { check_immutable(out, std::string(path), find(now, path), find(before, path)); };
  if (established(before)) {
    keep("spec.scope");
    keep("spec.names.kind");
  }
  keep("spec.group");
  keep("spec.names.plural");
}

void check_definition_status(const json::value& now, const json::value&, Findings& out) {
  if (const json::value* names = find(now, "status.acceptedNames")) check_definition_names(out, "status.acceptedNames", *names);
}

}  // namespace coracle::schema
