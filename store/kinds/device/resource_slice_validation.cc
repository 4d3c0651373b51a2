// SPDX-License-Identifier: Apache-2.0
// Validation of device offers in resource.k8s.io: ResourceSlices, which are parts of pools of devices. Source: Kubernetes 1.36,
// pkg/apis/resource/validation.
#include <algorithm>
#include <regex>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/device/device_kinds.h"
#include "store/kinds/device/device_validation.h"
#include "store/object/quantity.h"
#include "store/schema/validate/texts.h"

namespace coracle::schema {
namespace {

constexpr size_t kIdentifierMax = 32, kPoolNameMax = 253, kBindingConditionsMax = 4, kDevicesMax = 128, kSpecialDevicesMax = 64;
constexpr size_t kCounterSetsMax = 8, kCountersMax = 32, kFeaturesMax = 32, kTaintsMax = 16, kConsumptionsMax = 2,
                 kAttributeTextMax = 64;
constexpr size_t kOptionsMax = 10;

bool is_c_identifier(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void check_c_identifier(Findings& out, const std::string& path, std::string_view text) {
  if (text.size() > kIdentifierMax) out.too_long(path, kIdentifierMax);
  if (!is_c_identifier(text)) {
    out.invalid(path, text,
                "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
                "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
                "'[A-Za-z_][A-Za-z0-9_]*')");
  }
}

void check_label_name(Findings& out, const std::string& path, std::string_view text) { check_qualified(out, path, text); }

// ---- devices ----

bool is_version(std::string_view text) {
  static const std::regex pattern(
      R"(^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$)");
  return text.size() <= kAttributeTextMax && std::regex_match(text.begin(), text.end(), pattern);
}

void check_attribute(const json::value& value, const std::string& path, Findings& out) {
  size_t given = 0;
  for (const char* field : {"bool", "int", "string", "version", "bools", "ints", "strings", "versions"})
    given += has(value, field);
  if (get_string(value, "string").size() > kAttributeTextMax) out.too_long(sub(path, "string"), kAttributeTextMax);
  std::string_view version = get_string(value, "version");
  if (has(value, "version") && !is_version(version)) {
    out.invalid(sub(path, "version"), version, "must be a string compatible with semver.org spec 2.0.0");
    if (version.size() > kAttributeTextMax) out.too_long(sub(path, "version"), kAttributeTextMax);
  }
  if (given == 0) out.invalid(path, "", "exactly one value must be specified");
  if (given > 1) out.invalid_json(path, value, "exactly one value must be specified");
}

void check_counters(const json::value& value, const std::string& path, Findings& out) {
  const json::object& counters = get_object(value, "counters");
  if (counters.size() > kCountersMax) return out.too_many(sub(path, "counters"), counters.size(), kCountersMax);
  for (const auto& pair : counters)
    out.invalid_all(entry(sub(path, "counters"), pair.key()), pair.key(), dns_label_problems(pair.key()));
}

void check_counter_set(const json::value& value, const std::string& path, Findings& out) {
  std::string_view name = get_string(value, "name");
  if (!name.empty()) out.invalid_all(sub(path, "name"), name, dns_label_problems(name));
  check_counters(value, path, out);
}

void check_consumption(const json::value& value, const std::string& path, Findings& out) {
  std::string_view name = get_string(value, "counterSet");
  if (!name.empty()) out.invalid_all(sub(path, "counterSet"), name, dns_label_problems(name));
  check_counters(value, path, out);
}

void check_taint(const json::value& value, const std::string& path, Findings& out) {
  check_label_name(out, sub(path, "key"), get_string(value, "key"));
  std::string_view text = get_string(value, "value");
  out.invalid_all(sub(path, "value"), text, label_value_problems(text));
}

struct Amounts {  // of a policy; an invalid quantity reads as 0
  const json::value& policy;
  Quantity at(std::string_view path) const { return Quantity::parse(get_string(policy, path)).value_or(Quantity()); }
};

void check_request_policy(Findings& out, const std::string& path, const json::value& capacity) {
  const json::value& policy = *find(capacity, "requestPolicy");
  const json::array& options = get_array(policy, "validValues");
  bool ranges = has(policy, "validRange");
  if (!options.empty() && ranges) {
    return out.forbidden(
        path, "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time");
  }
  std::string_view form = ranges ? "validRange" : "validValues";
  if (options.empty() && !ranges) return;
  if (!has(policy, "default")) return out.required(sub(path, "default"), "required when " + std::string(form) + " is defined");
  Quantity all = Amounts{capacity}.at("value"), chosen = Amounts{policy}.at("default");
  std::string at = sub(path, form), larger = " is larger than capacity value: " + all.text();
  if (!ranges) {
    if (options.size() > kOptionsMax) return out.too_many(at, options.size(), kOptionsMax);
    bool found = false;
    std::optional<Quantity> last;
    for (size_t i = 0; i < options.size(); ++i) {
      Quantity option = Quantity::from_json(options[i]).value_or(Quantity());
      if (last && *last > option) out.invalid(item(at, i), option.text(), "values must be sorted in ascending order");
      if (last && *last == option) out.duplicate(item(at, i), std::to_string(option.value()));
      if (option > all) out.invalid(item(at, i), option.text(), "option" + larger);
      found = found || option == chosen;
      last = option;
    }
    if (!found) out.invalid(at, chosen.text(), "default value is not valid according to the requestPolicy");
    return;
  }
  if (!has(policy, "validRange.min")) return;  // the tables report it
  Quantity min = Amounts{policy}.at("validRange.min"), max = Amounts{policy}.at("validRange.max"),
           step = Amounts{policy}.at("validRange.step");
  if (min > all) out.invalid(sub(at, "min"), min.text(), "min" + larger);
  if (chosen < min) out.invalid(sub(at, "min"), chosen.text(), "default is less than min: " + min.text());
  bool bounded = has(policy, "validRange.max");
  if (bounded && min > max) out.invalid(sub(at, "max"), min.text(), "min is larger than max: " + max.text());
  if (bounded && max > all) out.invalid(sub(at, "max"), max.text(), "max" + larger);
  if (bounded && chosen > max) out.invalid(sub(at, "max"), chosen.text(), "default is more than max: " + max.text());
  if (!has(policy, "validRange.step") || step.value() <= 0) return;
  Quantity one = min;
  one += step;
  if (one > all) out.invalid(sub(at, "step"), step.text(), "one step " + one.text() + larger);
  auto fits = [&](const Quantity& value) {
    if ((value.value() - min.value()) % step.value() == 0) return;
    out.invalid(sub(at, "step"), value.text(),
                "value is not a multiple of a given step (" + step.text() + ") from (" + min.text() + ")");
  };
  fits(chosen);
  if (bounded) fits(max);
}

void check_nodes_of_device(Findings& out, const std::string& path, const json::value& device, bool per_device) {
  std::vector<std::string> given;
  std::string_view node = get_string(device, "nodeName");
  bool any = has(device, "nodeName") || has(device, "nodeSelector") || has(device, "allNodes");
  if (!per_device) {
    if (any) {
      out.add({"FieldValueInvalid",
               "Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
               "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
               path});
    }
    return;
  }
  if (!node.empty()) {
    given.push_back("`nodeName`");
    out.invalid_all(sub(path, "nodeName"), node, dns_subdomain_problems(node));
  } else if (has(device, "nodeName")) {
    out.invalid(sub(path, "nodeName"), node, "must not be empty");
  }
  if (has(device, "nodeSelector")) given.push_back("`nodeSelector`");
  if (get_bool(device, "allNodes")) given.push_back("`allNodes`");
  else if (has(device, "allNodes"))
    out.add({"FieldValueInvalid", "Invalid value: false: must be either unset or set to true", sub(path, "allNodes")});
  constexpr std::string_view kOne =
      "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
      "set to true in the ResourceSlice spec";
  if (given.empty()) out.required(path, kOne);
  if (given.size() > 1) out.invalid(path, "{" + join(given, ", ") + "}", kOne);
}

void check_device(Findings& out, const std::string& path, const json::value& device, bool per_device) {
  std::string_view name = get_string(device, "name");
  out.invalid_all(sub(path, "name"), name, dns_label_problems(name));
  const json::object& attributes = get_object(device, "attributes");
  const json::object& capacities = get_object(device, "capacity");
  if (size_t features = attributes.size() + capacities.size(); features > kFeaturesMax) {
    out.invalid(path, int64_t(features), "the total number of attributes and capacities must not exceed 32");
  }
  for (const auto& pair : attributes) check_device_name(out, entry(sub(path, "attributes"), pair.key()), pair.key(), false);
  bool several = get_bool(device, "allowMultipleAllocations");
  for (const auto& pair : capacities) {
    std::string at = entry(sub(path, "capacity"), pair.key());
    check_device_name(out, at, pair.key(), false);
    if (!has(pair.value(), "requestPolicy")) continue;
    if (several) check_request_policy(out, sub(at, "requestPolicy"), pair.value());
    else out.forbidden(sub(at, "requestPolicy"), "allowMultipleAllocations must be true");
  }
  size_t taints = get_array(device, "taints").size();
  if (taints > kTaintsMax) out.too_many(sub(path, "taints"), taints, kTaintsMax);
  const json::array& consumed = get_array(device, "consumesCounters");
  if (consumed.size() > kConsumptionsMax) out.too_many(sub(path, "consumesCounters"), consumed.size(), kConsumptionsMax);
  std::set<std::string_view> sets;
  for (size_t i = 0; i < consumed.size(); ++i) {
    std::string_view set = get_string(consumed[i], "counterSet");
    if (!sets.insert(set).second) out.duplicate(item(sub(path, "consumesCounters"), i), set);
  }
  check_nodes_of_device(out, path, device, per_device);
  check_binding_conditions(out, path, device);
}

// ---- slices ----

void check_nodes(Findings& out, const std::string& path, const json::value& spec) {
  std::vector<std::string> given;
  std::string_view node = get_string(spec, "nodeName");
  if (!node.empty()) {
    given.push_back("`nodeName`");
    out.invalid_all(sub(path, "nodeName"), node, dns_subdomain_problems(node));
  } else if (has(spec, "nodeName")) {
    out.invalid(sub(path, "nodeName"), node, "must be either unset or set to a non-empty string");
  }
  if (has(spec, "nodeSelector")) {
    given.push_back("`nodeSelector`");
    const json::value* terms = find(spec, "nodeSelector.nodeSelectorTerms");
    static const json::value nothing;
    if (get_array(spec, "nodeSelector.nodeSelectorTerms").size() != 1) {
      out.invalid_json(sub(path, "nodeSelector.nodeSelectorTerms"), terms ? *terms : nothing,
                       "must have exactly one node selector term");
    }
  }
  for (std::string_view field : {"allNodes", "perDeviceNodeSelection"}) {
    if (get_bool(spec, field)) given.push_back("`" + std::string(field) + "`");
    else if (has(spec, field))
      out.add({"FieldValueInvalid", "Invalid value: false: must be either unset or set to true", sub(path, field)});
  }
  constexpr std::string_view kOne = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  if (given.empty()) out.required(path, kOne);
  if (given.size() > 1) out.invalid(path, "{" + join(given, ", ") + "}", std::string(kOne) + ", but multiple fields are set");
}

void check_slice_spec(const json::value& value, const std::string& path, Findings& out) {
  if (std::string_view driver = get_string(value, "driver"); !driver.empty()) check_driver_name(out, sub(path, "driver"), driver);
  if (std::string_view pool = get_string(value, "pool.name"); !pool.empty()) check_pool_name(out, sub(path, "pool.name"), pool);
  int64_t count = get_int(value, "pool.resourceSliceCount"), generation = get_int(value, "pool.generation");
  if (count <= 0) out.invalid(sub(path, "pool.resourceSliceCount"), count, "must be greater than zero");
  if (generation < 0) out.invalid(sub(path, "pool.generation"), generation, "must be greater than or equal to zero");
  check_nodes(out, path, value);
  const json::array& devices = get_array(value, "devices");
  const json::array& sets = get_array(value, "sharedCounters");
  if (has(value, "sharedCounters") && has(value, "devices")) {
    out.invalid(path, "", "only one of `sharedCounters` or `devices` is allowed");
  }
  size_t max = kDevicesMax;
  for (const json::value& device : devices) {
    bool special = !get_array(device, "taints").empty() || !get_array(device, "consumesCounters").empty();
    if (special) max = kSpecialDevicesMax;
  }
  std::string at = sub(path, "devices");
  if (devices.size() > max) return out.too_many(at, devices.size(), max);
  std::set<std::string_view> names;
  for (size_t i = 0; i < devices.size(); ++i) {
    check_device(out, item(at, i), devices[i], get_bool(value, "perDeviceNodeSelection"));
    std::string_view name = get_string(devices[i], "name");
    if (!names.insert(name).second) out.duplicate(item(at, i), name);
  }
  if (sets.size() > kCounterSetsMax) return out.too_many(sub(path, "sharedCounters"), sets.size(), kCounterSetsMax);
  std::set<std::string_view> set_names;
  for (size_t i = 0; i < sets.size(); ++i) {
    std::string_view name = get_string(sets[i], "name");
    if (!set_names.insert(name).second) out.duplicate(item(sub(path, "sharedCounters"), i), name);
  }
}

constexpr NamedValidationRule kResourceSliceChecks[] = {
    {"io.k8s.api.resource.v1.ResourceSliceSpec", check_slice_spec},
    {"io.k8s.api.resource.v1.DeviceAttribute", check_attribute},
    {"io.k8s.api.resource.v1.CounterSet", check_counter_set},
    {"io.k8s.api.resource.v1.DeviceCounterConsumption", check_consumption},
    {"io.k8s.api.resource.v1.DeviceTaint", check_taint},
};

}  // namespace

void check_device_name(Findings& out, const std::string& path, std::string_view name, bool with_domain) {
  std::vector<std::string_view> parts = split(name, '/');
  if (parts.size() == 1) check_c_identifier(out, path, parts[0]);
  if (parts.size() == 2) {
    if (parts[0].empty()) out.invalid(path, "", "the domain must not be empty");
    else check_driver_name(out, path, parts[0]);
    if (parts[1].empty()) out.invalid(path, "", "the name must not be empty");
    else check_c_identifier(out, path, parts[1]);
  }
  if (with_domain && parts.size() == 1) {
    out.invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash");
  }
}

void check_pool_name(Findings& out, const std::string& path, std::string_view name) {
  if (name.empty()) return out.required(path);
  if (name.size() > kPoolNameMax) out.too_long(path, kPoolNameMax);
  for (std::string_view part : split(name, '/')) out.invalid_all(path, part, dns_subdomain_problems(part));
}

void check_binding_conditions(Findings& out, const std::string& path, const json::value& device) {
  std::vector<std::string_view> good = texts_at(device, "bindingConditions"), bad = texts_at(device, "bindingFailureConditions");
  std::set<std::string_view> wanted(good.begin(), good.end());
  for (auto [field, texts] : {std::pair{"bindingConditions", &good}, {"bindingFailureConditions", &bad}}) {
    std::string at = sub(path, field);
    if (texts->size() > kBindingConditionsMax) out.too_many(at, texts->size(), kBindingConditionsMax);
    else
      for (size_t i = 0; i < texts->size(); ++i) check_label_name(out, item(at, i), (*texts)[i]);
    std::set<std::string_view> seen;
    for (size_t i = 0; i < texts->size(); ++i) {
      if (!seen.insert((*texts)[i]).second) out.duplicate(item(at, i), (*texts)[i]);
      if (texts == &bad && wanted.count((*texts)[i])) {
        out.invalid(item(at, i), (*texts)[i], "bindingFailureConditions must not overlap with bindingConditions");
      }
    }
  }
  static const json::value nothing;
  if (good.empty() && !bad.empty()) {
    out.invalid_json(sub(path, "bindingConditions"), nothing, "bindingConditions are required to use bindingFailureConditions");
  }
  if (bad.empty() && !good.empty()) {
    out.invalid_json(sub(path, "bindingFailureConditions"), nothing,
                     "bindingFailureConditions are required to use bindingConditions");
  }
}

std::span<const NamedValidationRule> resource_slice_rules() { return kResourceSliceChecks; }

void check_resource_slice_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  for (std::string_view path : {"spec.pool.name", "spec.driver", "spec.nodeName"}) {
    check_immutable(out, std::string(path), find(now, path), find(before, path));
  }
}

}  // namespace coracle::schema
