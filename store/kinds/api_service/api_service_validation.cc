// SPDX-License-Identifier: Apache-2.0
// Validation of APIServices. Source: kube-aggregator 1.36, pkg/apis/apiregistration/validation.
#include "runtime/base/text.h"
#include "store/kinds/api_service/api_service_kinds.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/validate/texts.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr int64_t kGroupPriorityMax = 20000, kVersionPriorityMax = 1000;

void check_service(Findings& out, view::APIServiceSpec spec) {
  if (spec.service().namespace_().empty()) out.required("spec.service.namespace");
  if (spec.service().name().empty()) out.required("spec.service.name");
  int64_t port = spec.service().port();
  if (port < 1 || port > 65535)
    out.invalid("spec.service.port", port, "port is not valid: must be between 1 and 65535, inclusive");
  if (spec.insecure_skip_tls_verify() && !spec.ca_bundle().empty()) {
    out.add({"FieldValueInvalid", "Invalid value: true: may not be true if caBundle is present", "spec.insecureSkipTLSVerify"});
  }
}

void check_local_api_service(Findings& out, view::APIServiceSpec spec) {
  if (!spec.ca_bundle().empty()) {
    auto bytes = base64_decode(spec.ca_bundle());
    out.invalid("spec.caBundle", std::to_string(bytes ? bytes->size() : 0) + " bytes",
                "local APIServices may not have a caBundle");
  }
  if (spec.insecure_skip_tls_verify()) {
    out.add({"FieldValueInvalid", "Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
             "spec.insecureSkipTLSVerify"});
  }
}

void check_api_service(const json::value& value, const std::string&, Findings& out) {
  view::APIServiceSpec spec = view::APIService(value).spec();
  std::string_view name = view::APIService(value).metadata().name(), group = spec.group(), version = spec.version();
  std::string wanted = std::string(version) + "." + std::string(group);
  if (!name.empty() && path_segment_problems(name).empty() && name != wanted) {
    out.invalid("metadata.name", name, "must be `spec.version+\".\"+spec.group`: " + coracle::quoted(wanted));
  }
  if (group.empty() && version != "v1")
    out.required("spec.group", "only v1 may have an empty group and it better be legacy kube");
  if (!group.empty()) out.invalid_all("spec.group", group, dns_subdomain_problems(group));
  out.invalid_all("spec.version", version, dns_1035_problems(version));
  int64_t of_group = spec.group_priority_minimum(), of_version = spec.version_priority();
  if (of_group <= 0 || of_group > kGroupPriorityMax)
    out.invalid("spec.groupPriorityMinimum", of_group, "must be positive and less than 20000");
  if (of_version <= 0 || of_version > kVersionPriorityMax)
    out.invalid("spec.versionPriority", of_version, "must be positive and less than 1000");
  if (spec.has_service()) check_service(out, spec);
  else check_local_api_service(out, spec);
}

constexpr NamedValidationRule kApiServiceChecks[] = {
    {"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService", check_api_service}};

}  // namespace

std::span<const NamedValidationRule> api_service_rules() { return kApiServiceChecks; }

void check_api_service_status(const json::value& now, const json::value&, Findings& out) {
  view::Range<view::APIServiceCondition> conditions = view::APIService(now).status().conditions();
  for (size_t i = 0; i < conditions.size(); ++i) {
    std::string_view status = conditions[i].status();
    if (status == "True" || status == "False" || status == "Unknown") continue;
    unsupported(out, sub(item("status.conditions", i), "status"), status, {"True", "False", "Unknown"});
  }
}

}  // namespace coracle::schema
