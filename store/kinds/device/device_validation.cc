// SPDX-License-Identifier: Apache-2.0
// Validation of device requests in resource.k8s.io: device classes, claims, claim templates, and allocations. The length of CEL
// selectors is limited; their contents are not parsed. Source: Kubernetes 1.36, pkg/apis/resource/validation.
#include "store/kinds/device/device_validation.h"

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

RequestNames request_names(const json::value& devices) {
  RequestNames names;
  for (const json::value& request : get_array(devices, "requests")) {
    std::set<std::string_view>& choices = names[get_string(request, "name")];
    for (const json::value& choice : get_array(request, "firstAvailable")) choices.insert(get_string(choice, "name"));
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

void check_request_references(Findings& out, const std::string& path, const json::value& holder, const RequestNames& names) {
  std::vector<std::string_view> texts = texts_at(holder, "requests");
  if (texts.size() > kRequestsMax) return out.too_many(path, texts.size(), kRequestsMax);
  std::set<std::string_view> seen;
  for (size_t i = 0; i < texts.size(); ++i) {
    check_request_reference(out, item(path, i), texts[i], names);
    if (!seen.insert(texts[i]).second) out.duplicate(item(path, i), texts[i]);
  }
}

// Checks a list of named items. False: there are too many, and they are not checked.
bool check_named(Findings& out, const std::string& path, const json::array& items, size_t max, std::string_view key) {
  if (items.size() > max) return out.too_many(path, items.size(), max), false;
  std::set<std::string_view> seen;
  for (size_t i = 0; i < items.size(); ++i) {
    std::string_view name = get_string(items[i], key);
    if (!seen.insert(name).second) out.duplicate(item(path, i), name);
  }
  return true;
}

void check_configuration(const json::value& value, const std::string& path, Findings& out) {
  if (!has(value, "opaque")) out.required(sub(path, "opaque"));
}

void check_claim(const json::value& value, const std::string& path, Findings& out) {
  RequestNames names = request_names(value);
  check_named(out, sub(path, "requests"), get_array(value, "requests"), kRequestsMax, "name");
  const json::array& constraints = get_array(value, "constraints");
  if (constraints.size() > kConstraintsMax) out.too_many(sub(path, "constraints"), constraints.size(), kConstraintsMax);
  else
    for (size_t i = 0; i < constraints.size(); ++i) {
      std::string at = item(sub(path, "constraints"), i);
      check_request_references(out, sub(at, "requests"), constraints[i], names);
      std::string_view field = has(constraints[i], "matchAttribute") ? "matchAttribute" : "distinctAttribute";
      if (has(constraints[i], field)) check_device_name(out, sub(at, field), get_string(constraints[i], field), true);
      else
        out.required(at, "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set");
    }
  const json::array& configs = get_array(value, "config");
  if (configs.size() > kConfigMax) out.too_many(sub(path, "config"), configs.size(), kConfigMax);
  else
    for (size_t i = 0; i < configs.size(); ++i) {
      check_request_references(out, sub(item(sub(path, "config"), i), "requests"), configs[i], names);
    }
}

void check_device_request(const json::value& value, const std::string& path, Findings& out) {
  std::string_view name = get_string(value, "name");
  out.invalid_all(sub(path, "name"), name, dns_label_problems(name));
  bool exactly = has(value, "exactly");
  const json::array& choices = get_array(value, "firstAvailable");
  constexpr std::string_view kOne = "exactly one of `exactly` or `firstAvailable` is required";
  if (!exactly && choices.empty()) return out.required(path, kOne);
  if (exactly && !choices.empty()) {
    return out.add({"FieldValueInvalid", "Invalid value: null: " + std::string(kOne) + ", but multiple fields are set", path});
  }
  check_named(out, sub(path, "firstAvailable"), choices, kChoicesMax, "name");
}

void check_what_is_asked(const json::value& value, const std::string& path, Findings& out) {
  std::string_view type = get_string(value, "deviceClassName"), mode = get_string(value, "allocationMode");
  if (!type.empty()) out.invalid_all(sub(path, "deviceClassName"), type, dns_subdomain_problems(type));
  const json::array& selectors = get_array(value, "selectors");
  if (selectors.size() > kSelectorsMax) out.too_many(sub(path, "selectors"), selectors.size(), kSelectorsMax);
  int64_t count = get_int(value, "count");
  if (mode == "All" && count != 0) out.invalid(sub(path, "count"), count, "must not be specified when allocationMode is 'All'");
  if (mode == "ExactCount" && count <= 0) out.invalid(sub(path, "count"), count, "must be greater than zero");
}

void check_choice(const json::value& value, const std::string& path, Findings& out) {
  std::string_view name = get_string(value, "name");
  out.invalid_all(sub(path, "name"), name, dns_label_problems(name));
  check_what_is_asked(value, path, out);
}

void check_device_selector(const json::value& value, const std::string& path, Findings& out) {
  if (!has(value, "cel")) return out.required(sub(path, "cel"));
  if (get_string(value, "cel.expression").size() > kCelSelectorBytesMax)
    out.too_long(sub(path, "cel.expression"), kCelSelectorBytesMax);
}

void check_device_toleration(const json::value& value, const std::string& path, Findings& out) {
  std::string_view key = get_string(value, "key"), text = get_string(value, "value");
  if (!key.empty()) check_qualified(out, sub(path, "key"), key);
  bool exists = get_string(value, "operator") == "Exists";
  if (exists && !text.empty()) out.invalid(sub(path, "value"), text, "must be empty for operator `Exists`");
  if (!exists) out.invalid_all(sub(path, "value"), text, label_value_problems(text));
}

void check_raw(Findings& out, const std::string& path, const json::value* value) {
  if (!value || value->is_null()) return;  // the tables check required fields
  if (to_text(*value).size() > kOpaqueParametersBytesMax) return out.too_long(path, kOpaqueParametersBytesMax);
  if (!value->is_object()) out.invalid(path, "<value omitted>", "must be a valid JSON object");
}

void check_opaque(const json::value& value, const std::string& path, Findings& out) {
  if (std::string_view driver = get_string(value, "driver"); !driver.empty()) check_driver_name(out, sub(path, "driver"), driver);
  check_raw(out, sub(path, "parameters"), find(value, "parameters"));
}

void check_device_class_spec(const json::value& value, const std::string& path, Findings& out) {
  const json::array& selectors = get_array(value, "selectors");
  const json::array& configs = get_array(value, "config");
  if (selectors.size() > kSelectorsMax) out.too_many(sub(path, "selectors"), selectors.size(), kSelectorsMax);
  if (configs.size() > kConfigMax) out.too_many(sub(path, "config"), configs.size(), kConfigMax);
  std::string_view name = get_string(value, "extendedResourceName");
  bool native = name.find('/') == name.npos || name.find("kubernetes.io/") != name.npos || name.starts_with("requests.");
  bool good = !native && qualified_name_problems("requests." + std::string(name)).empty();
  if (has(value, "extendedResourceName") && !good)
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

std::string identity_of(const json::value& device) {
  std::string text = std::string(get_string(device, "driver")) + "/" + std::string(get_string(device, "pool")) + "/" +
                     std::string(get_string(device, "device"));
  std::string_view share = get_string(device, "shareID");
  return share.empty() ? text : text + "/" + std::string(share);
}

void check_results(Findings& out, const json::value& claim) {
  const json::value* devices = find(claim, "spec.devices");
  RequestNames names = devices ? request_names(*devices) : RequestNames();
  const json::array& results = get_array(claim, "status.allocation.devices.results");
  std::string path = "status.allocation.devices.results";
  if (results.size() > kRequestsMax) return out.too_many(path, results.size(), kRequestsMax);
  for (size_t i = 0; i < results.size(); ++i) {
    std::string at = item(path, i);
    check_request_reference(out, sub(at, "request"), get_string(results[i], "request"), names);
    check_driver_name(out, sub(at, "driver"), get_string(results[i], "driver"));
    check_pool_name(out, sub(at, "pool"), get_string(results[i], "pool"));
    std::string_view device = get_string(results[i], "device");
    out.invalid_all(sub(at, "device"), device, dns_label_problems(device));
    check_binding_conditions(out, at, results[i]);
  }
}

}  // namespace

std::span<const NamedValidationRule> device_rules() { return kDeviceChecks; }

void check_device_claim_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "spec", find(now, "spec"), find(before, "spec"));
}

void check_device_claim_status(const json::value& now, const json::value& before, Findings& out) {
  const json::array& users = get_array(now, "status.reservedFor");
  if (check_named(out, "status.reservedFor", users, kReservedMax, "uid")) {
    for (size_t i = 0; i < users.size(); ++i) {
      for (std::string_view field : {"resource", "name", "uid"}) {
        if (get_string(users[i], field).empty()) out.required(sub(item("status.reservedFor", i), field));
      }
    }
  }
  bool allocated = has(now, "status.allocation");
  if (!users.empty() && !allocated) out.forbidden("status.reservedFor", "may not be specified when `allocated` is not set");
  if (!get_string(now, "metadata.deletionTimestamp").empty() && allocated) {
    std::set<std::string_view> known;
    for (const json::value& user : get_array(before, "status.reservedFor")) known.insert(get_string(user, "uid"));
    bool added = false;
    for (const json::value& user : users) added = added || !known.count(get_string(user, "uid"));
    if (added) {
      out.forbidden("status.reservedFor",
                    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
    }
  }
  std::set<std::string> given, told;
  for (const json::value& result : get_array(now, "status.allocation.devices.results")) given.insert(identity_of(result));
  const json::array& devices = get_array(now, "status.devices");
  for (size_t i = 0; i < devices.size(); ++i) {
    std::string at = item("status.devices", i), identity = identity_of(devices[i]);
    check_driver_name(out, sub(at, "driver"), get_string(devices[i], "driver"));
    check_pool_name(out, sub(at, "pool"), get_string(devices[i], "pool"));
    if (!given.count(identity)) out.invalid(at, identity, "must be an allocated device in the claim");
    if (!told.insert(identity).second) out.duplicate(at, identity);
    size_t conditions = get_array(devices[i], "conditions").size();
    if (conditions > kDeviceConditionsMax) out.too_many(sub(at, "conditions"), conditions, kDeviceConditionsMax);
    check_raw(out, sub(at, "data"), find(devices[i], "data"));
  }
  if (allocated && has(before, "status.allocation")) {
    check_immutable(out, "status.allocation", find(now, "status.allocation"), find(before, "status.allocation"));
  } else if (allocated) {
    check_results(out, now);
  }
}

}  // namespace coracle::schema
