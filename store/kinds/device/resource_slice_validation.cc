// SPDX-License-Identifier: Apache-2.0
// Validation of device offers in resource.k8s.io: ResourceSlices, which are parts of pools of devices. Source: Kubernetes 1.36,
// pkg/apis/resource/validation.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

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

enum class VersionPart { numbers, pre_release, build };  // 1.2.3-rc.1+007: of numbers, words and any digits

bool is_version_part(std::string_view dotted, VersionPart part) {
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  auto is_word_char = [&](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; };
  std::vector<std::string_view> words = split(dotted, '.');
  return std::all_of(words.begin(), words.end(), [&](std::string_view word) {
    if (word.empty()) return false;
    if (std::all_of(word.begin(), word.end(), is_digit)) return part == VersionPart::build || word.size() == 1 || word[0] != '0';
    return part != VersionPart::numbers && std::all_of(word.begin(), word.end(), is_word_char);
  });
}

// By semver.org. std::regex for this would take 60 KB of each program.
bool is_version(std::string_view text) {
  if (text.size() > kAttributeTextMax) return false;
  size_t plus = text.find('+');
  if (plus != text.npos && !is_version_part(text.substr(plus + 1), VersionPart::build)) return false;
  text = text.substr(0, plus);
  size_t minus = text.find('-');
  if (minus != text.npos && !is_version_part(text.substr(minus + 1), VersionPart::pre_release)) return false;
  text = text.substr(0, minus);
  return std::count(text.begin(), text.end(), '.') == 2 && is_version_part(text, VersionPart::numbers);
}

void check_attribute(const json::value& value, const std::string& path, Findings& out) {
  view::DeviceAttribute attribute(value);
  size_t given = 0;
  for (bool one : {attribute.has_bool_(), attribute.has_int_(), attribute.has_string(), attribute.has_version(),
                   attribute.has_bools(), attribute.has_ints(), attribute.has_strings(), attribute.has_versions()})
    given += one;
  if (attribute.string().size() > kAttributeTextMax) out.too_long(sub(path, "string"), kAttributeTextMax);
  std::string_view version = attribute.version();
  if (attribute.has_version() && !is_version(version)) {
    out.invalid(sub(path, "version"), version, "must be a string compatible with semver.org spec 2.0.0");
    if (version.size() > kAttributeTextMax) out.too_long(sub(path, "version"), kAttributeTextMax);
  }
  if (given == 0) out.invalid(path, "", "exactly one value must be specified");
  if (given > 1) out.invalid_json(path, value, "exactly one value must be specified");
}

void check_counters(const json::object& counters, const std::string& path, Findings& out) {
  if (counters.size() > kCountersMax) return out.too_many(sub(path, "counters"), counters.size(), kCountersMax);
  for (const auto& pair : counters)
    out.invalid_all(entry(sub(path, "counters"), pair.key()), pair.key(), dns_label_problems(pair.key()));
}

void check_counter_set(const json::value& value, const std::string& path, Findings& out) {
  view::CounterSet set(value);
  if (!set.name().empty()) out.invalid_all(sub(path, "name"), set.name(), dns_label_problems(set.name()));
  check_counters(set.counters(), path, out);
}

void check_consumption(const json::value& value, const std::string& path, Findings& out) {
  view::DeviceCounterConsumption consumption(value);
  std::string_view name = consumption.counter_set();
  if (!name.empty()) out.invalid_all(sub(path, "counterSet"), name, dns_label_problems(name));
  check_counters(consumption.counters(), path, out);
}

void check_taint(const json::value& value, const std::string& path, Findings& out) {
  check_label_name(out, sub(path, "key"), view::DeviceTaint(value).key());
  std::string_view text = view::DeviceTaint(value).value();
  out.invalid_all(sub(path, "value"), text, label_value_problems(text));
}

// Of a policy. An absent or invalid quantity reads as 0.
Quantity policy_amount(const json::value* amount) {
  return amount ? Quantity::from_json(*amount).value_or(Quantity()) : Quantity();
}

void check_request_policy(Findings& out, const std::string& path, view::DeviceCapacity capacity) {
  view::CapacityRequestPolicy policy = capacity.request_policy();
  view::CapacityRequestPolicyRange range = policy.valid_range();
  view::Range<const json::value*> options = policy.valid_values();
  bool ranges = policy.has_valid_range();
  if (!options.empty() && ranges) {
    return out.forbidden(
        path, "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time");
  }
  std::string_view form = ranges ? "validRange" : "validValues";
  if (options.empty() && !ranges) return;
  if (!policy.has_default_()) return out.required(sub(path, "default"), "required when " + std::string(form) + " is defined");
  Quantity all = policy_amount(capacity.value()), chosen = policy_amount(policy.default_());
  std::string at = sub(path, form), larger = " is larger than capacity value: " + all.text();
  if (!ranges) {
    if (options.size() > kOptionsMax) return out.too_many(at, options.size(), kOptionsMax);
    bool found = false;
    std::optional<Quantity> last;
    for (size_t i = 0; i < options.size(); ++i) {
      Quantity option = policy_amount(options[i]);
      if (last && *last > option) out.invalid(item(at, i), option.text(), "values must be sorted in ascending order");
      if (last && *last == option) out.duplicate(item(at, i), std::to_string(option.value()));
      if (option > all) out.invalid(item(at, i), option.text(), "option" + larger);
      found = found || option == chosen;
      last = option;
    }
    if (!found) out.invalid(at, chosen.text(), "default value is not valid according to the requestPolicy");
    return;
  }
  if (!range.has_min()) return;  // the tables report it
  Quantity min = policy_amount(range.min()), max = policy_amount(range.max()), step = policy_amount(range.step());
  if (min > all) out.invalid(sub(at, "min"), min.text(), "min" + larger);
  if (chosen < min) out.invalid(sub(at, "min"), chosen.text(), "default is less than min: " + min.text());
  bool bounded = range.has_max();
  if (bounded && min > max) out.invalid(sub(at, "max"), min.text(), "min is larger than max: " + max.text());
  if (bounded && max > all) out.invalid(sub(at, "max"), max.text(), "max" + larger);
  if (bounded && chosen > max) out.invalid(sub(at, "max"), chosen.text(), "default is more than max: " + max.text());
  if (!range.has_step() || step.value() <= 0) return;
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

void check_nodes_of_device(Findings& out, const std::string& path, view::Device device, bool per_device) {
  std::vector<std::string> given;
  std::string_view node = device.node_name();
  bool any = device.has_node_name() || device.has_node_selector() || device.has_all_nodes();
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
  } else if (device.has_node_name()) {
    out.invalid(sub(path, "nodeName"), node, "must not be empty");
  }
  if (device.has_node_selector()) given.push_back("`nodeSelector`");
  if (device.all_nodes()) given.push_back("`allNodes`");
  else if (device.has_all_nodes())
    out.add({"FieldValueInvalid", "Invalid value: false: must be either unset or set to true", sub(path, "allNodes")});
  constexpr std::string_view kOne =
      "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
      "set to true in the ResourceSlice spec";
  if (given.empty()) out.required(path, kOne);
  if (given.size() > 1) out.invalid(path, "{" + join(given, ", ") + "}", kOne);
}

void check_device(Findings& out, const std::string& path, view::Device device, bool per_device) {
  out.invalid_all(sub(path, "name"), device.name(), dns_label_problems(device.name()));
  const json::object& attributes = device.attributes();
  const json::object& capacities = device.capacity();
  if (size_t features = attributes.size() + capacities.size(); features > kFeaturesMax) {
    out.invalid(path, int64_t(features), "the total number of attributes and capacities must not exceed 32");
  }
  for (const auto& pair : attributes) check_device_name(out, entry(sub(path, "attributes"), pair.key()), pair.key(), false);
  bool several = device.allow_multiple_allocations();
  for (const auto& pair : capacities) {
    std::string at = entry(sub(path, "capacity"), pair.key());
    check_device_name(out, at, pair.key(), false);
    view::DeviceCapacity capacity(pair.value());
    if (!capacity.has_request_policy()) continue;
    if (several) check_request_policy(out, sub(at, "requestPolicy"), capacity);
    else out.forbidden(sub(at, "requestPolicy"), "allowMultipleAllocations must be true");
  }
  size_t taints = device.taints().size();
  if (taints > kTaintsMax) out.too_many(sub(path, "taints"), taints, kTaintsMax);
  view::Range<view::DeviceCounterConsumption> consumed = device.consumes_counters();
  if (consumed.size() > kConsumptionsMax) out.too_many(sub(path, "consumesCounters"), consumed.size(), kConsumptionsMax);
  std::set<std::string_view> sets;
  for (size_t i = 0; i < consumed.size(); ++i) {
    std::string_view set = consumed[i].counter_set();
    if (!sets.insert(set).second) out.duplicate(item(sub(path, "consumesCounters"), i), set);
  }
  check_nodes_of_device(out, path, device, per_device);
  check_binding_conditions(out, path, device.binding_conditions(), device.binding_failure_conditions());
}

// ---- slices ----

void check_nodes(Findings& out, const std::string& path, view::ResourceSliceSpec spec) {
  std::vector<std::string> given;
  std::string_view node = spec.node_name();
  if (!node.empty()) {
    given.push_back("`nodeName`");
    out.invalid_all(sub(path, "nodeName"), node, dns_subdomain_problems(node));
  } else if (spec.has_node_name()) {
    out.invalid(sub(path, "nodeName"), node, "must be either unset or set to a non-empty string");
  }
  if (view::NodeSelector selector = spec.node_selector()) {
    given.push_back("`nodeSelector`");
    view::Range<view::NodeSelectorTerm> terms = selector.node_selector_terms();
    if (terms.size() != 1) {
      out.invalid_json(sub(path, "nodeSelector.nodeSelectorTerms"),
                       selector.has_node_selector_terms() ? json::value(terms.raw()) : json::value(),
                       "must have exactly one node selector term");
    }
  }
  auto check_flag = [&](const std::string& field, bool set, bool present) {
    if (set) given.push_back("`" + field + "`");
    else if (present)
      out.add({"FieldValueInvalid", "Invalid value: false: must be either unset or set to true", sub(path, field)});
  };
  check_flag("allNodes", spec.all_nodes(), spec.has_all_nodes());
  check_flag("perDeviceNodeSelection", spec.per_device_node_selection(), spec.has_per_device_node_selection());
  constexpr std::string_view kOne = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  if (given.empty()) out.required(path, kOne);
  if (given.size() > 1) out.invalid(path, "{" + join(given, ", ") + "}", std::string(kOne) + ", but multiple fields are set");
}

void check_slice_spec(const json::value& value, const std::string& path, Findings& out) {
  view::ResourceSliceSpec spec(value);
  view::ResourcePool pool = spec.pool();
  if (!spec.driver().empty()) check_driver_name(out, sub(path, "driver"), spec.driver());
  if (!pool.name().empty()) check_pool_name(out, sub(path, "pool.name"), pool.name());
  int64_t count = pool.resource_slice_count(), generation = pool.generation();
  if (count <= 0) out.invalid(sub(path, "pool.resourceSliceCount"), count, "must be greater than zero");
  if (generation < 0) out.invalid(sub(path, "pool.generation"), generation, "must be greater than or equal to zero");
  check_nodes(out, path, spec);
  view::Range<view::Device> devices = spec.devices();
  view::Range<view::CounterSet> sets = spec.shared_counters();
  if (spec.has_shared_counters() && spec.has_devices())
    out.invalid(path, "", "only one of `sharedCounters` or `devices` is allowed");
  size_t max = kDevicesMax;
  for (view::Device device : devices)
    if (!device.taints().empty() || !device.consumes_counters().empty()) max = kSpecialDevicesMax;
  std::string at = sub(path, "devices");
  if (devices.size() > max) return out.too_many(at, devices.size(), max);
  std::set<std::string_view> names;
  for (size_t i = 0; i < devices.size(); ++i) {
    check_device(out, item(at, i), devices[i], spec.per_device_node_selection());
    std::string_view name = devices[i].name();
    if (!names.insert(name).second) out.duplicate(item(at, i), name);
  }
  if (sets.size() > kCounterSetsMax) return out.too_many(sub(path, "sharedCounters"), sets.size(), kCounterSetsMax);
  std::set<std::string_view> set_names;
  for (size_t i = 0; i < sets.size(); ++i) {
    std::string_view name = sets[i].name();
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

void check_binding_conditions(Findings& out, const std::string& path, view::Range<std::string_view> good,
                              view::Range<std::string_view> bad) {
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
