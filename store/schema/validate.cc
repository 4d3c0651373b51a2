// SPDX-License-Identifier: Apache-2.0
// See validate.h. One walk over value and type: what the tables know, then the type's rule, then the children. What the
// server itself writes (status) and what has its own check (the object's metadata) is not walked.
#include "store/schema/validate.h"

#include <algorithm>

#include "store/object/kind.h"
#include "store/schema/validate/findings.h"

namespace coracle::schema {
namespace {

using Rules = std::vector<ValidationRule>;  // by position of the type; nullptr: none

Rules collect() {
  Rules rules(catalog().types().size(), nullptr);
  for (auto listed : {pod_rules(), container_rules(), volume_rules(), service_rules(), endpoints_rules(), workload_rules(),
                      config_rules(), meta_rules(), node_rules()}) {
    for (const NamedValidationRule& named : listed) rules[catalog().type(named.type)->index()] = named.rule;
  }
  return rules;
}

const Rules& rules() {
  static const Rules collected = collect();
  return collected;
}

bool is_missing(const Field& field, const json::value* value) {
  if (!value || value->is_null()) {
    bool number = field.shape == Shape::one && (field.form == Form::int32 || field.form == Form::int64 || field.form == Form::boolean);
    return !number;
  }
  if (field.may_be_empty) return false;
  if (const json::string* text = value->if_string()) return text->empty();
  if (const json::array* list = value->if_array()) return list->empty();
  return false;
}

void check_value(const Field& field, const json::value& value, const std::string& path, Findings& out) {
  if (!field.closed || field.ruled || !value.is_string() || value.get_string().empty()) return;
  std::vector<std::string> supported;
  for (std::string_view known : field.values()) supported.emplace_back(known);
  std::string_view text = value.get_string();
  if (std::find(supported.begin(), supported.end(), text) == supported.end()) out.not_supported(path, text, std::move(supported));
}

void check(const Type& type, const json::value& value, const std::string& path, Findings& out);

void check_field(const Field& field, const json::value& value, const std::string& path, Findings& out) {
  auto one = [&](const json::value& part, const std::string& at) {
    check_value(field, part, at, out);
    if (field.form == Form::object) check(field.type(), part, at, out);
  };
  if (field.shape == Shape::one) return one(value, path);
  if (const json::array* items = value.if_array()) {
    for (size_t i = 0; i < items->size(); ++i) one((*items)[i], item(path, i));
  } else if (const json::object* entries = value.if_object()) {
    for (const auto& pair : *entries) one(pair.value(), entry(path, pair.key()));
  }
}

void check(const Type& type, const json::value& value, const std::string& path, Findings& out) {
  const json::object* object = value.if_object();
  if (!object) return;
  for (const Field& field : type.fields()) {
    if (path.empty() && (field.name() == "metadata" || field.name() == "status")) continue;
    const json::value* found = object->if_contains(field.name());
    if (field.required && !field.ruled && is_missing(field, found)) out.required(sub(path, field.name()));
    bool worth_a_look = field.form == Form::object || (field.closed && !field.ruled);
    if (found && worth_a_look) check_field(field, *found, sub(path, field.name()), out);
  }
  if (ValidationRule rule = rules()[type.index()]) rule(value, path, out);
}

struct KindUpdate {
  const Kind& kind;
  UpdateRule rule;
};

constexpr KindUpdate kUpdates[] = {
    {kPod, check_pod_update},           {kService, check_service_update},   {kDeployment, check_workload_update},
    {kReplicaSet, check_workload_update}, {kConfigMap, check_config_update}, {kSecret, check_config_update},
    {kEndpointSlice, check_slice_update}};

}  // namespace

std::vector<Cause> validate_create(const KindInfo& kind, const json::value& object) {
  Findings out;
  check_metadata(out, kind, object);
  check(kind.type(), object, "", out);
  return out.take();
}

std::vector<Cause> validate_update(const KindInfo& kind, const json::value& object, const json::value& old,
                                   std::string_view subresource) {
  Findings out;
  check_metadata_update(out, object, old);
  check_metadata(out, kind, object);
  if (subresource == "status") return out.take();
  check(kind.type(), object, "", out);
  for (const KindUpdate& update : kUpdates) {
    if (update.kind == kind.kind) update.rule(object, old, subresource, out);
  }
  return out.take();
}

}  // namespace coracle::schema
