// SPDX-License-Identifier: Apache-2.0
// Validation of device requests in resource.k8s.io: device classes, claims, claim templates, and allocations. The length of CEL
// selectors is limited; their contents are not parsed. Source: Kubernetes 1.36, pkg/apis/resource/validation.
#include "store/kinds/device/device_validation.h"

#include <functional>
#include <map>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/device/device_kinds.h"
#include "store/schema/validate/texts.h"

namespace coracle::schema {
namespace {

constexpr size_t kRequestsMax = 32, kConstraintsMax = 32, kConfigMax = 32, kSelectorsMax = 32, kChoicesMax = 8;
constexpr size_t kCelSelectorBytesMax = 10 * 1024, kOpaqueParametersBytesMax = 10 * 1024, kReservedMax = 256,
                 kDeviceConditionsMax = 8;
constexpr std::string_view kNoRequest =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

using RequestNames = std::map<std::string_view, std::set<std::string_view>>;

RequestNames request_names(view::DeviceClaim devices) {
  RequestNames names;
  for (view::DeviceRequest request : devices.requests()) {
    std::set<std::string_view>& choices = names[request.name()];
    for (view::DeviceSubRequest choice : request.first_available()) choices.insert(choice.name());
  }
  return names;
}

void check_request_reference(Findings& out, const std::string& path, std::string_view name, const RequestNames& names) {
  std::vector<std::string_view> parts = split(name, '/');
  if (parts.size() > 2) return out.invalid(path, name, kNoRequest);
  for (std::string_view part : parts) out.invalid_all(path, part, dns_label_problems(part));
  auto found = names.find(parts[0]);
  bool known = found != names.end() && (parts.size() == 1 || found->second.count(parts[1]));
  if (!known) out.invalid(path, name, kNoRequest);
}

void check_request_references(Findings& out, const std::string& path, view::Range<std::string_view> texts,
                              const RequestNames& names) {
  if (texts.size() > kRequestsMax) return out.too_many(path, texts.size(), kRequestsMax);
  std::set<std::string_view> seen;
  for (size_t i = 0; i < texts.size(); ++i) {
    check_request_reference(out, item(path, i), texts[i], names);
    if (!seen.insert(texts[i]).second) out.duplicate(item(path, i), texts[i]);
  }
}

// Checks a list of items that are known by the text that `key` reads. False: there are too many, and they are not checked.
template <typename Item>
bool check_named(Findings& out, const std::string& path, view::Range<Item> items, size_t max,
                 std::string_view (Item::*key)() const) {
  if (items.size() > max) return out.too_many(path, items.size(), max), false;
  std::set<std::string_view> seen;
  for (size_t i = 0; i < items.size(); ++i) {
    std::string_view name = std::invoke(key, items[i]);
    if (!seen.insert(name).second) out.duplicate(item(path, i), name);
  }
  return true;
}

void check_configuration(const json::value& value, const std::string& path, Findings& out) {
  if (!view::DeviceClassConfiguration(value).has_opaque()) out.required(sub(path, "opaque"));  // that of a claim has it, too
}

void check_claim(const json::value& value, const std::string& path, Findings& out) {
  view::DeviceClaim claim(value);
  RequestNames names = request_names(claim);
  check_named(out, sub(path, "requests"), claim.requests(), kRequestsMax, &view::DeviceRequest::name);
  view::Range<view::DeviceConstraint> constraints = claim.constraints();
  if (constraints.size() > kConstraintsMax) out.too_many(sub(path, "constraints"), constraints.size(), kConstraintsMax);
  else
    for (size_t i = 0; i < constraints.size(); ++i) {
      std::string at = item(sub(path, "constraints"), i);
      view::DeviceConstraint constraint = constraints[i];
      check_request_references(out, sub(at, "requests"), constraint.requests(), names);
      if (constraint.has_match_attribute()) check_device_name(out, sub(at, "matchAttribute"), constraint.match_attribute(), true);
      else if (constraint.has_distinct_attribute())
        check_device_name(out, sub(at, "distinctAttribute"), constraint.distinct_attribute(), true);
      else
        out.required(at, "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set");
    }
  view::Range<view::DeviceClaimConfiguration> configs = claim.config();
  if (configs.size() > kConfigMax) out.too_many(sub(path, "config"), configs.size(), kConfigMax);
  else
    for (size_t i = 0; i < configs.size(); ++i) {
      check_request_references(out, sub(item(sub(path, "config"), i), "requests"), configs[i].requests(), names);
    }
}

void check_device_request(const json::value& value, const std::string& path, Findings& out) {
  view::DeviceRequest request(value);
  out.invalid_all(sub(path, "name"), request.name(), dns_label_problems(request.name()));
  bool exactly = request.has_exactly();
  view::Range<view::DeviceSubRequest> choices = request.first_available();
  constexpr std::string_view kOne = "exactly one of `exactly` or `firstAvailable` is required";
  if (!exactly && choices.empty()) return out.required(path, kOne);
  if (exactly && !choices.empty()) {
    return out.add({"FieldValueInvalid", "Invalid value: null: " + std::string(kOne) + ", but multiple fields are set", path});
  }
  check_named(out, sub(path, "firstAvailable"), choices, kChoicesMax, &view::DeviceSubRequest::name);
}

void check_what_is_asked(const json::value& value, const std::string& path, Findings& out) {
  view::ExactDeviceRequest request(value);  // a DeviceSubRequest has these fields, too
  std::string_view type = request.device_class_name(), mode = request.allocation_mode();
  if (!type.empty()) out.invalid_all(sub(path, "deviceClassName"), type, dns_subdomain_problems(type));
  size_t selectors = request.selectors().size();
  if (selectors > kSelectorsMax) out.too_many(sub(path, "selectors"), selectors, kSelectorsMax);
  int64_t count = request.count();
  if (mode == "All" && count != 0) out.invalid(sub(path, "count"), count, "must not be specified when allocationMode is 'All'");
  if (mode == "ExactCount" && count <= 0) out.invalid(sub(path, "count"), count, "must be greater than zero");
}

void check_choice(const json::value& value, const std::string& path, Findings& out) {
  std::string_view name = view::DeviceSubRequest(value).name();
  out.invalid_all(sub(path, "name"), name, dns_label_problems(name));
  check_what_is_asked(value, path, out);
}

void check_device_selector(const json::value& value, const std::string& path, Findings& out) {
  view::DeviceSelector selector(value);
  if (!selector.has_cel()) return out.required(sub(path, "cel"));
  if (selector.cel().expression().size() > kCelSelectorBytesMax) out.too_long(sub(path, "cel.expression"), kCelSelectorBytesMax);
}

void check_device_toleration(const json::value& value, const std::string& path, Findings& out) {
  view::DeviceToleration toleration(value);
  std::string_view key = toleration.key(), text = toleration.value();
  if (!key.empty()) check_qualified(out, sub(path, "key"), key);
  bool exists = toleration.operator_() == "Exists";
  if (exists && !text.empty()) out.invalid(sub(path, "value"), text, "must be empty for operator `Exists`");
  if (!exists) out.invalid_all(sub(path, "value"), text, label_value_problems(text));
}

void check_raw(Findings& out, const std::string& path, const json::value* value) {
  if (!value) return;  // the tables check required fields
  if (to_text(*value).size() > kOpaqueParametersBytesMax) return out.too_long(path, kOpaqueParametersBytesMax);
  if (!value->is_object()) out.invalid(path, "<value omitted>", "must be a valid JSON object");
}

void check_opaque(const json::value& value, const std::string& path, Findings& out) {
  view::OpaqueDeviceConfiguration opaque(value);
  if (!opaque.driver().empty()) check_driver_name(out, sub(path, "driver"), opaque.driver());
  check_raw(out, sub(path, "parameters"), opaque.parameters());
}

void check_device_class_spec(const json::value& value, const std::string& path, Findings& out) {
  view::DeviceClassSpec spec(value);
  size_t selectors = spec.selectors().size(), configs = spec.config().size();
  if (selectors > kSelectorsMax) out.too_many(sub(path, "selectors"), selectors, kSelectorsMax);
  if (configs > kConfigMax) out.too_many(sub(path, "config"), configs, kConfigMax);
  std::string_view name = spec.extended_resource_name();
  bool native = name.find('/') == name.npos || name.find("kubernetes.io/") != name.npos || name.starts_with("requests.");
  bool good = !native && qualified_name_problems("requests." + std::string(name)).empty();
  if (spec.has_extended_resource_name() && !good)
    out.invalid(sub(path, "extendedResourceName"), name, "must be a valid extended resource name");
}

constexpr NamedValidationRule kDeviceChecks[] = {
    {"io.k8s.api.resource.v1.DeviceClaim", check_claim},
    {"io.k8s.api.resource.v1.DeviceRequest", check_device_request},
    {"io.k8s.api.resource.v1.ExactDeviceRequest", check_what_is_asked},
    {"io.k8s.api.resource.v1.DeviceSubRequest", check_choice},
    {"io.k8s.api.resource.v1.DeviceSelector", check_device_selector},
    {"io.k8s.api.resource.v1.DeviceToleration", check_device_toleration},
    {"io.k8s.api.resource.v1.DeviceClaimConfiguration", check_configuration},
    {"io.k8s.api.resource.v1.DeviceClassConfiguration", check_configuration},
    {"io.k8s.api.resource.v1.OpaqueDeviceConfiguration", check_opaque},
    {"io.k8s.api.resource.v1.DeviceClassSpec", check_device_class_spec},
};

// ---- allocations ----

// Of a result of an allocation, and of an allocated device's status.
template <typename Device>
std::string identity_of(Device device) {
  std::string text = std::string(device.driver()) + "/" + std::string(device.pool()) + "/" + std::string(device.device());
  return device.share_id().empty() ? text : text + "/" + std::string(device.share_id());
}

void check_results(Findings& out, view::ResourceResourceClaim claim) {
  RequestNames names = request_names(claim.spec().devices());
  view::Range<view::DeviceRequestAllocationResult> results = claim.status().allocation().devices().results();
  std::string path = "status.allocation.devices.results";
  if (results.size() > kRequestsMax) return out.too_many(path, results.size(), kRequestsMax);
  for (size_t i = 0; i < results.size(); ++i) {
    std::string at = item(path, i);
    view::DeviceRequestAllocationResult result = results[i];
    check_request_reference(out, sub(at, "request"), result.request(), names);
    check_driver_name(out, sub(at, "driver"), result.driver());
    check_pool_name(out, sub(at, "pool"), result.pool());
    out.invalid_all(sub(at, "device"), result.device(), dns_label_problems(result.device()));
    check_binding_conditions(out, at, result.binding_conditions(), result.binding_failure_conditions());
  }
}

}  // namespace

std::span<const NamedValidationRule> device_rules() { return kDeviceChecks; }

void check_device_claim_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "spec", view::ResourceResourceClaim(now).spec().pointer(),
                  view::ResourceResourceClaim(before).spec().pointer());
}

void check_device_claim_status(const json::value& now, const json::value& before, Findings& out) {
  using User = view::ResourceClaimConsumerReference;
  view::ResourceResourceClaim claim(now);
  view::ResourceClaimStatus status = claim.status(), old = view::ResourceResourceClaim(before).status();
  view::Range<User> users = status.reserved_for();
  if (check_named(out, "status.reservedFor", users, kReservedMax, &User::uid)) {
    for (size_t i = 0; i < users.size(); ++i) {
      std::string at = item("status.reservedFor", i);
      if (users[i].resource().empty()) out.required(sub(at, "resource"));
      if (users[i].name().empty()) out.required(sub(at, "name"));
      if (users[i].uid().empty()) out.required(sub(at, "uid"));
    }
  }
  bool allocated = status.has_allocation();
  if (!users.empty() && !allocated) out.forbidden("status.reservedFor", "may not be specified when `allocated` is not set");
  if (!claim.metadata().deletion_timestamp().empty() && allocated) {
    std::set<std::string_view> known;
    for (User user : old.reserved_for()) known.insert(user.uid());
    bool added = false;
    for (User user : users) added = added || !known.count(user.uid());
    if (added) {
      out.forbidden("status.reservedFor",
                    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
    }
  }
  std::set<std::string> given, told;
  for (view::DeviceRequestAllocationResult result : status.allocation().devices().results()) given.insert(identity_of(result));
  view::Range<view::AllocatedDeviceStatus> devices = status.devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    std::string at = item("status.devices", i), identity = identity_of(devices[i]);
    check_driver_name(out, sub(at, "driver"), devices[i].driver());
    check_pool_name(out, sub(at, "pool"), devices[i].pool());
    if (!given.count(identity)) out.invalid(at, identity, "must be an allocated device in the claim");
    if (!told.insert(identity).second) out.duplicate(at, identity);
    size_t conditions = devices[i].conditions().size();
    if (conditions > kDeviceConditionsMax) out.too_many(sub(at, "conditions"), conditions, kDeviceConditionsMax);
    check_raw(out, sub(at, "data"), devices[i].data());
  }
  if (allocated && old.has_allocation()) {
    check_immutable(out, "status.allocation", status.allocation().pointer(), old.allocation().pointer());
  } else if (allocated) {
    check_results(out, claim);
  }
}

}  // namespace coracle::schema
