// SPDX-License-Identifier: Apache-2.0
// Findings: collects the causes of one validation, at most kCausesMax. Below are the rules that add them. A rule belongs to a
// type, and so applies to every kind that contains the type: the rules for a container apply to pods and pod templates. The walk
// (validate.cc) calls a rule with each value and its path. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

class Findings {
 public:
  void add(Cause cause);
  void required(const std::string& path, std::string_view detail = {});
  void invalid_json(const std::string& path, const json::value& value, std::string_view detail);
  void invalid(const std::string& path, std::string_view value, std::string_view detail);
  void invalid(const std::string& path, int64_t value, std::string_view detail);
  void invalid_without(const std::string& path, std::string_view detail);  // the message does not contain the value
  void not_supported(const std::string& path, std::string_view value, std::vector<std::string> supported);  // sorted
  void not_supported_json(const std::string& path, const json::value& value, const std::vector<std::string>& supported);
  void forbidden(const std::string& path, std::string_view detail);
  void duplicate(const std::string& path, std::string_view value);
  void duplicate_json(const std::string& path, const json::value& value);
  void not_found(const std::string& path, std::string_view value);
  void too_long(const std::string& path, size_t bytes_max);
  void too_many(const std::string& path, size_t count, size_t max);

  // Adds one cause for each of `problems`.
  void invalid_all(const std::string& path, std::string_view value, const std::vector<std::string>& problems);
  void not_negative(const std::string& path, int64_t value);
  void between(const std::string& path, int64_t value, int64_t low, int64_t high);

  bool full() const;  // further causes are dropped
  std::vector<Cause> take() { return std::move(causes_); }

 private:
  std::vector<Cause> causes_;
};

inline std::string sub(const std::string& path, std::string_view field) {
  return path.empty() ? std::string(field) : path + "." + std::string(field);
}
inline std::string item(const std::string& path, size_t index) { return path + "[" + std::to_string(index) + "]"; }
constexpr size_t kKeyShownMax = 320;  // bytes of a key in a path: more than a qualified name has; limits repetition
inline std::string entry(const std::string& path, std::string_view key) {
  return path + "[" + std::string(key.substr(0, kKeyShownMax)) + "]";
}

// The problems of a text, in Kubernetes' wording; empty: none. Source: RFC 1123, RFC 1035, RFC 6335.
std::vector<std::string> dns_label_problems(std::string_view text);
std::vector<std::string> dns_1035_problems(std::string_view text);
std::vector<std::string> dns_subdomain_problems(std::string_view text);
std::vector<std::string> dns_search_problems(std::string_view text);      // a subdomain that may contain underscores
std::vector<std::string> qualified_name_problems(std::string_view text);  // label keys, resource and finalizer names
std::vector<std::string> label_value_problems(std::string_view text);
std::vector<std::string> config_key_problems(std::string_view text);
std::vector<std::string> env_name_problems(std::string_view text);
std::vector<std::string> port_name_problems(std::string_view text);
bool is_ip(std::string_view text);

void check_port_number(Findings& out, const std::string& path, int64_t port);
void check_port_or_name(Findings& out, const std::string& path, const json::value* port);
void check_labels(Findings& out, const std::string& path, const json::object& labels);
void check_annotations(Findings& out, const std::string& path, const json::object& annotations);
void check_immutable(Findings& out, const std::string& path, const json::value* now, const json::value* before);

// `old`: nullptr on create. A name cannot change and is not checked again.
void check_metadata(Findings& out, const KindInfo& kind, const json::value& object, const json::value* old);
void check_metadata_update(Findings& out, const json::value& object, const json::value& old);

using ValidationRule = void (*)(const json::value& value, const std::string& path, Findings& out);
struct NamedValidationRule {
  std::string_view type;  // OpenAPI name
  ValidationRule rule;
  std::string_view unwalked = {};  // comma-separated fields whose contents only this rule checks
};
std::span<const NamedValidationRule> pod_rules();
std::span<const NamedValidationRule> placement_rules();  // affinity, spreading
std::span<const NamedValidationRule> container_rules();
std::span<const NamedValidationRule> volume_rules();
std::span<const NamedValidationRule> service_rules();
std::span<const NamedValidationRule> endpoints_rules();
std::span<const NamedValidationRule> workload_rules();
std::span<const NamedValidationRule> config_rules();
std::span<const NamedValidationRule> meta_rules();
std::span<const NamedValidationRule> node_rules();
std::span<const NamedValidationRule> set_rules();  // StatefulSet, DaemonSet, ControllerRevision
std::span<const NamedValidationRule> job_rules();
std::span<const NamedValidationRule> cron_job_rules();
std::span<const NamedValidationRule> autoscaler_rules();
std::span<const NamedValidationRule> network_rules();  // NetworkPolicy, IPAddress, ServiceCIDR
std::span<const NamedValidationRule> ingress_rules();
std::span<const NamedValidationRule> class_rules();    // PriorityClass, RuntimeClass, PodDisruptionBudget
std::span<const NamedValidationRule> quota_rules();    // LimitRange, ResourceQuota
std::span<const NamedValidationRule> storage_rules();  // PersistentVolume, PersistentVolumeClaim
std::span<const NamedValidationRule> rbac_rules();
std::span<const NamedValidationRule> certificate_rules();

std::span<const NamedValidationRule> csi_rules();
std::span<const NamedValidationRule> flow_rules();
std::span<const NamedValidationRule> webhook_rules();  // also admission policies
std::span<const NamedValidationRule> api_service_rules();
std::span<const NamedValidationRule> custom_resource_rules();
std::span<const NamedValidationRule> device_rules();
std::span<const NamedValidationRule> resource_slice_rules();
std::span<const NamedValidationRule> event_rules();
std::span<const NamedValidationRule> lease_rules();

// Rules for immutable fields. Kinds without a rule allow every valid change.
using UpdateRule = void (*)(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_pod_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_service_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_node_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_workload_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_config_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_slice_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_stateful_set_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_revision_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_job_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_address_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_service_networks_update(const json::value& now, const json::value& before, std::string_view subresource,
                                   Findings& out);
void check_ingress_class_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_priority_class_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_runtime_class_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_quota_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_volume_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_claim_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

// Rules for new objects only.
using CreateRule = void (*)(const json::value& object, Findings& out);
void check_pod_create(const json::value& object, Findings& out);
void check_node_create(const json::value& object, Findings& out);
void check_cron_job_create(const json::value& object, Findings& out);
void check_ingress_create(const json::value& object, Findings& out);

// Rules for writes to a status. Kinds without a rule allow every well-formed status.
using StatusRule = void (*)(const json::value& now, const json::value& before, Findings& out);
void check_pod_status(const json::value& now, const json::value& before, Findings& out);
void check_service_status(const json::value& now, const json::value& before, Findings& out);
void check_node_status(const json::value& now, const json::value& before, Findings& out);
void check_replica_set_status(const json::value& now, const json::value& before, Findings& out);
void check_deployment_status(const json::value& now, const json::value& before, Findings& out);
void check_stateful_set_status(const json::value& now, const json::value& before, Findings& out);
void check_daemon_set_status(const json::value& now, const json::value& before, Findings& out);
void check_job_status(const json::value& now, const json::value& before, Findings& out);
void check_autoscaler_status(const json::value& now, const json::value& before, Findings& out);
void check_ingress_status(const json::value& now, const json::value& before, Findings& out);
void check_budget_status(const json::value& now, const json::value& before, Findings& out);
void check_quota_status(const json::value& now, const json::value& before, Findings& out);
void check_binding_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_certificate_request_update(const json::value& now, const json::value& before, std::string_view subresource,
                                      Findings& out);
void check_certificate_request_status(const json::value& now, const json::value& before, Findings& out);

void check_csi_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_definition_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_device_claim_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_resource_slice_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

void check_attachment_status(const json::value& now, const json::value& before, Findings& out);
void check_flow_status(const json::value& now, const json::value& before, Findings& out);
void check_api_service_status(const json::value& now, const json::value& before, Findings& out);
void check_definition_status(const json::value& now, const json::value& before, Findings& out);
void check_device_claim_status(const json::value& now, const json::value& before, Findings& out);

// Additional checks of a new CustomResourceDefinition, and of an event written as events.k8s.io/v1.
void check_definition_create(const json::value& now, Findings& out);
void check_newer_event(const json::value& event, Findings& out);
void check_newer_event_update(const json::value& now, const json::value& before, Findings& out);

}  // namespace coracle::schema
