// SPDX-License-Identifier: Apache-2.0
// See validate.h. One walk over value and type: the checks of the tables, then the type's rule, then the children. Status, which
// the server writes, and the object's metadata, which has its own check, are skipped.
#include "store/schema/validate.h"

#include <algorithm>

#include "store/object/kind.h"
#include "store/schema/listed.h"
#include "store/schema/validate/findings.h"

namespace coracle::schema {
namespace {

using ValidationRules = std::vector<const NamedValidationRule*>;  // by index of the type; nullptr: none

ValidationRules collect_validation_rules() {
  ValidationRules rules(all_types().size(), nullptr);
  for (auto listed : {pod_rules(),      placement_rules(),      container_rules(),   volume_rules(),
                      service_rules(),  endpoints_rules(),      workload_rules(),    config_rules(),
                      meta_rules(),     node_rules(),           set_rules(),         job_rules(),
                      cron_job_rules(), autoscaler_rules(),     network_rules(),     ingress_rules(),
                      class_rules(),    quota_rules(),          storage_rules(),     csi_rules(),
                      flow_rules(),     webhook_rules(),        api_service_rules(), custom_resource_rules(),
                      device_rules(),   resource_slice_rules(), event_rules(),       lease_rules(),
                      rbac_rules(),     certificate_rules()}) {
    for (const NamedValidationRule& named : listed) rules[type_named(named.type)->index()] = &named;
  }
  return rules;
}

const ValidationRules& validation_rules() {
  static const ValidationRules collected = collect_validation_rules();
  return collected;
}

bool is_missing(const Field& field, const json::value* value) {
  if (!value || value->is_null()) {
    bool number =
        field.shape == Shape::one && (field.form == Form::int32 || field.form == Form::int64 || field.form == Form::boolean);
    return !number;
  }
  if (field.may_be_empty) return false;
  if (const json::string* text = value->if_string()) return text->empty();
  if (const json::array* list = value->if_array()) return list->empty();
  return false;
}

void check_value(const Field& field, const json::value& value, const std::string& path, Findings& out) {
  if (!field.closed || field.ruled || !value.is_string() || value.get_string().empty()) return;
  std::vector<std::string_view> known = field.values();
  std::string_view text = value.get_string();
  if (std::find(known.begin(), known.end(), text) == known.end()) out.not_supported(path, text, {known.begin(), known.end()});
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
  if (type.either) {
    if (const Field* field = type.alternative(value)) check_field(*field, value, path, out);
    return;
  }
  const json::object* object = value.if_object();
  if (!object) return;
  const NamedValidationRule* named = validation_rules()[type.index()];
  for (const Field& field : type.fields()) {
    bool needed = field.required && !field.ruled, worth_a_look = field.form == Form::object || (field.closed && !field.ruled);
    if (!needed && !worth_a_look) continue;
    if (path.empty() && (field.name() == "metadata" || field.name() == "status")) continue;
    const json::value* found = object->if_contains(field.name());
    if (needed && is_missing(field, found)) out.required(sub(path, field.name()));
    if (found && worth_a_look && !(named && is_listed(named->unwalked, field.name())))
      check_field(field, *found, sub(path, field.name()), out);
  }
  if (named) named->rule(value, path, out);
}

constexpr Kind kNewerEvent{"events.k8s.io", "v1", "Event", "events"};  // stored in the core group, but with more requirements

struct KindRules {
  std::string_view group, resource;
  UpdateRule update = nullptr;
  StatusRule status = nullptr;
  CreateRule create = nullptr;
};

constexpr KindRules kKindRules[] = {
    {"", "pods", check_pod_update, check_pod_status, check_pod_create},
    {"", "services", check_service_update, check_service_status},
    {"", "nodes", check_node_update, check_node_status, check_node_create},
    {"", "configmaps", check_config_update},
    {"", "secrets", check_config_update},
    {"", "persistentvolumes", check_volume_update},
    {"", "persistentvolumeclaims", check_claim_update},
    {"", "resourcequotas", check_quota_update, check_quota_status},
    {"", "replicationcontrollers", nullptr, check_replica_set_status},
    {"apps", "deployments", check_workload_update, check_deployment_status},
    {"apps", "replicasets", check_workload_update, check_replica_set_status},
    {"apps", "statefulsets", check_stateful_set_update, check_stateful_set_status},
    {"apps", "daemonsets", check_workload_update, check_daemon_set_status},
    {"apps", "controllerrevisions", check_revision_update},
    {"batch", "jobs", check_job_update, check_job_status},
    {"batch", "cronjobs", nullptr, nullptr, check_cron_job_create},
    {"autoscaling", "horizontalpodautoscalers", nullptr, check_autoscaler_status},
    {"policy", "poddisruptionbudgets", nullptr, check_budget_status},
    {"networking.k8s.io", "ingresses", nullptr, check_ingress_status, check_ingress_create},
    {"networking.k8s.io", "ingressclasses", check_ingress_class_update},
    {"networking.k8s.io", "ipaddresses", check_address_update},
    {"networking.k8s.io", "servicecidrs", check_service_networks_update},
    {"scheduling.k8s.io", "priorityclasses", check_priority_class_update},
    {"node.k8s.io", "runtimeclasses", check_runtime_class_update},
    {"discovery.k8s.io", "endpointslices", check_slice_update},
    {"storage.k8s.io", "storageclasses", check_csi_update},
    {"storage.k8s.io", "csidrivers", check_csi_update},
    {"storage.k8s.io", "csinodes", check_csi_update},
    {"storage.k8s.io", "csistoragecapacities", check_csi_update},
    {"storage.k8s.io", "volumeattachments", check_csi_update, check_attachment_status},
    {"storage.k8s.io", "volumeattributesclasses", check_csi_update},
    {"flowcontrol.apiserver.k8s.io", "flowschemas", nullptr, check_flow_status},
    {"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", nullptr, check_flow_status},
    {"apiregistration.k8s.io", "apiservices", nullptr, check_api_service_status},
    {"apiextensions.k8s.io", "customresourcedefinitions", check_definition_update, check_definition_status,
     check_definition_create},
    {"resource.k8s.io", "resourceclaims", check_device_claim_update, check_device_claim_status},
    {"resource.k8s.io", "resourceclaimtemplates", check_device_claim_update},
    {"resource.k8s.io", "resourceslices", check_resource_slice_update},
    {"rbac.authorization.k8s.io", "rolebindings", check_binding_update},
    {"rbac.authorization.k8s.io", "clusterrolebindings", check_binding_update},
    {"certificates.k8s.io", "certificatesigningrequests", check_certificate_request_update, check_certificate_request_status},
};

const KindRules& rules_of(const Kind& kind) {
  static constexpr KindRules none;
  auto found = std::find_if(std::begin(kKindRules), std::end(kKindRules),
                            [&](const KindRules& rules) { return rules.group == kind.group && rules.resource == kind.resource; });
  return found == std::end(kKindRules) ? none : *found;
}

}  // namespace

std::vector<Cause> validate_create(const KindInfo& kind, const json::value& object) {
  Findings out;
  check_metadata(out, kind.stored(), object, nullptr);
  check(kind.stored().type(), object, "", out);
  if (CreateRule rule = rules_of(kind.stored().kind).create) rule(object, out);
  if (kind.kind == kNewerEvent) check_newer_event(object, out);
  return out.take();
}

std::vector<Cause> validate_update(const KindInfo& kind, const json::value& object, const json::value& old,
                                   std::string_view subresource) {
  Findings out;
  check_metadata_update(out, object, old);
  check_metadata(out, kind.stored(), object, &old);
  const KindRules& rules = rules_of(kind.stored().kind);
  if (subresource == "status") {
    if (rules.status) rules.status(object, old, out);
    return out.take();
  }
  check(kind.stored().type(), object, "", out);
  if (kind.kind == kNewerEvent) check_newer_event_update(object, old, out);
  if (rules.update) rules.update(object, old, subresource, out);
  return out.take();
}

}  // namespace coracle::schema
