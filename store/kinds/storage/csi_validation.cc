// SPDX-License-Identifier: Apache-2.0
// Validation of storage.k8s.io: classes, drivers, CSI nodes, storage capacity, attachments. Source: Kubernetes 1.36,
// pkg/apis/storage/validation.
#include <map>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/storage/storage_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/validate/texts.h"

namespace coracle::schema {
namespace {

constexpr size_t kParametersMax = 512, kClassParametersBytesMax = 256 * 1024, kErrorMessageMax = 1024, kNodeIdMax = 256;
constexpr int64_t kTokenSecondsMin = 600, kTokenSecondsMax = int64_t(1) << 32, kAllocatablePeriodMin = 10;

void check_parameters(Findings& out, const json::object& parameters) {
  if (parameters.size() > kParametersMax) return out.too_long("parameters", kParametersMax);
  if (parameters.contains("")) out.invalid("parameters", "", "field can not be empty.");
  if (bytes_of(parameters) > kClassParametersBytesMax) out.too_long("parameters", kClassParametersBytesMax);
}

void check_provisioner(Findings& out, const std::string& path, std::string_view name) {
  if (!name.empty()) check_qualified(out, path, to_lower(name));
}

void check_storage_class(const json::value& value, const std::string&, Findings& out) {
  check_provisioner(out, "provisioner", get_string(value, "provisioner"));
  check_parameters(out, get_object(value, "parameters"));
  std::string_view policy = get_string(value, "reclaimPolicy");
  if (!policy.empty() && policy != "Delete" && policy != "Retain")
    out.not_supported("reclaimPolicy", policy, {"Delete", "Retain"});
  std::map<std::map<std::string_view, std::set<std::string_view>>, size_t> seen;
  const json::array& topologies = get_array(value, "allowedTopologies");
  for (size_t i = 0; i < topologies.size(); ++i) {
    std::map<std::string_view, std::set<std::string_view>> labels;
    for (const json::value& label : get_array(topologies[i], "matchLabelExpressions")) {
      std::vector<std::string_view> values = texts_at(label, "values");
      labels[get_string(label, "key")] = {values.begin(), values.end()};
    }
    size_t times = seen[std::move(labels)]++;
    for (size_t n = 0; n < times && !out.full(); ++n) {
      out.duplicate(sub(item("allowedTopologies", i), "matchLabelExpressions"), "");
    }
  }
}

void check_topology_term(const json::value& value, const std::string& path, Findings& out) {
  std::set<std::string_view> keys;
  const json::array& labels = get_array(value, "matchLabelExpressions");
  for (size_t i = 0; i < labels.size(); ++i) {
    std::string at = item(sub(path, "matchLabelExpressions"), i);
    std::set<std::string_view> seen;
    std::vector<std::string_view> values = texts_at(labels[i], "values");
    for (size_t j = 0; j < values.size(); ++j) {
      if (!seen.insert(values[j]).second) out.duplicate(item(sub(at, "values"), j), values[j]);
    }
    std::string_view key = get_string(labels[i], "key");
    check_qualified(out, sub(at, "key"), key);
    if (!keys.insert(key).second) out.duplicate(sub(at, "key"), key);
  }
}

void check_attributes_class(const json::value& value, const std::string&, Findings& out) {
  check_provisioner(out, "driverName", get_string(value, "driverName"));
  check_parameters(out, get_object(value, "parameters"));
  if (get_object(value, "parameters").empty()) out.required("parameters", "must contain at least one key/value pair");
}

void check_driver_spec(const json::value& value, const std::string& path, Findings& out) {
  for (auto [field, called] : {std::pair{"attachRequired", "attachedRequired"},
                               {"podInfoOnMount", "podInfoOnMount"},
                               {"storageCapacity", "storageCapacity"},
                               {"seLinuxMount", "seLinuxMount"}}) {
    if (!has(value, field)) out.required(sub(path, called));
  }
  if (std::string_view policy = get_string(value, "fsGroupPolicy");
      has(value, "fsGroupPolicy") && policy != "ReadWriteOnceWithFSType" && policy != "File" && policy != "None") {
    out.not_supported(sub(path, "fsGroupPolicy"), policy, {"File", "None", "ReadWriteOnceWithFSType"});
  }
  for (std::string_view mode : texts_at(value, "volumeLifecycleModes")) {
    if (mode != "Persistent" && mode != "Ephemeral")
      unsupported(out, sub(path, "volumeLifecycleModes"), mode, {"Persistent", "Ephemeral"});
  }
  std::set<std::string_view> audiences;
  const json::array& tokens = get_array(value, "tokenRequests");
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string at = item(sub(path, "tokenRequests"), i);
    std::string_view audience = get_string(tokens[i], "audience");
    if (!audiences.insert(audience).second) {
      out.duplicate(sub(at, "audience"), audience);
      continue;
    }
    if (!has(tokens[i], "expirationSeconds")) continue;
    int64_t lasts = get_int(tokens[i], "expirationSeconds");
    if (lasts < kTokenSecondsMin)
      out.invalid(sub(at, "expirationSeconds"), lasts, "may not specify a duration less than 10 minutes");
    if (lasts > kTokenSecondsMax)
      out.invalid(sub(at, "expirationSeconds"), lasts, "may not specify a duration larger than 2^32 seconds");
  }
  int64_t period = get_int(value, "nodeAllocatableUpdatePeriodSeconds", kAllocatablePeriodMin);
  if (period < kAllocatablePeriodMin) {
    out.invalid(sub(path, "nodeAllocatableUpdatePeriodSeconds"), period, "must be greater than or equal to 10 seconds");
  }
}

void check_csi_node_spec(const json::value& value, const std::string& path, Findings& out) {
  std::set<std::string_view> names;
  const json::array& drivers = get_array(value, "drivers");
  for (size_t i = 0; i < drivers.size(); ++i) {
    std::string at = item(sub(path, "drivers"), i);
    std::string_view name = get_string(drivers[i], "name"), id = get_string(drivers[i], "nodeID");
    if (!name.empty()) check_driver_name(out, sub(at, "name"), name);
    if (id.size() > kNodeIdMax) out.invalid(sub(at, "nodeID"), id, "must be 256 characters or less");
    if (has(drivers[i], "allocatable.count"))
      out.not_negative(sub(at, "allocatable.count"), get_int(drivers[i], "allocatable.count"));
    if (!names.insert(name).second) out.duplicate(sub(at, "name"), name);
    std::set<std::string_view> keys;
    for (std::string_view key : texts_at(drivers[i], "topologyKeys")) {
      if (key.empty()) out.required(at);
      if (!keys.insert(key).second) out.duplicate(at, key);
      check_qualified(out, at, key);
    }
  }
}

void check_storage_capacity(const json::value& value, const std::string&, Findings& out) {
  std::string_view name = get_string(value, "storageClassName");
  out.invalid_all("storageClassName", name, dns_subdomain_problems(name));
  auto capacity = Quantity::parse(get_string(value, "capacity"));
  if (capacity && capacity->negative()) out.invalid("capacity", capacity->text(), "must be greater than or equal to 0");
}

void check_attachment_spec(const json::value& value, const std::string& path, Findings& out) {
  if (std::string_view attacher = get_string(value, "attacher"); !attacher.empty())
    check_driver_name(out, sub(path, "attacher"), attacher);
  constexpr std::string_view kOne = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  std::string source = sub(path, "source");
  bool named = has(value, "source.persistentVolumeName"), written = has(value, "source.inlineVolumeSpec");
  std::string_view name = get_string(value, "source.persistentVolumeName");
  if (!named && !written) out.required(source, kOne);
  else if (named && written) out.forbidden(source, kOne);
  else if (named && name.empty())
    out.required(sub(source, "persistentVolumeName"), "must specify non empty persistentVolumeName");
  if (!name.empty()) out.invalid_all(sub(source, "persistentVolumeName"), name, dns_subdomain_problems(name));
  std::string_view node = get_string(value, "nodeName");
  out.invalid_all(sub(path, "nodeName"), node, dns_subdomain_problems(node));
}

constexpr NamedValidationRule kCsiChecks[] = {
    {"io.k8s.api.storage.v1.StorageClass", check_storage_class},
    {"io.k8s.api.core.v1.TopologySelectorTerm", check_topology_term},
    {"io.k8s.api.storage.v1.VolumeAttributesClass", check_attributes_class},
    {"io.k8s.api.storage.v1.CSIDriverSpec", check_driver_spec},
    {"io.k8s.api.storage.v1.CSINodeSpec", check_csi_node_spec},
    {"io.k8s.api.storage.v1.CSIStorageCapacity", check_storage_capacity},
    {"io.k8s.api.storage.v1.VolumeAttachmentSpec", check_attachment_spec},
};

void keep(Findings& out, const json::value& now, const json::value& before, std::string_view field) {
  check_immutable(out, std::string(field), find(now, field), find(before, field));
}

void forbid_change(Findings& out, const json::value& now, const json::value& before, std::string_view field) {
  const json::value* left = find(now, field);
  const json::value* right = find(before, field);
  bool same = left && right ? *left == *right : left == right;
  if (!same) out.forbidden(std::string(field), "updates to " + std::string(field) + " are forbidden.");
}

}  // namespace

std::span<const NamedValidationRule> csi_rules() { return kCsiChecks; }

void check_csi_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  std::string_view kind = get_string(now, "kind");
  if (kind == "StorageClass") {
    for (std::string_view field : {"parameters", "provisioner", "reclaimPolicy"}) forbid_change(out, now, before, field);
    keep(out, now, before, "volumeBindingMode");
  } else if (kind == "VolumeAttributesClass") {
    for (std::string_view field : {"driverName", "parameters"}) forbid_change(out, now, before, field);
  } else if (kind == "CSIStorageCapacity") {
    for (std::string_view field : {"nodeTopology", "storageClassName"}) keep(out, now, before, field);
  } else if (kind == "VolumeAttachment") {
    keep(out, now, before, "spec");
  } else if (kind == "CSIDriver") {
    check_immutable(out, "spec.attachedRequired", find(now, "spec.attachRequired"), find(before, "spec.attachRequired"));
    keep(out, now, before, "spec.volumeLifecycleModes");
  } else if (kind == "CSINode") {
    std::map<std::string_view, const json::value*> drivers;  // validation rejects duplicates
    for (const json::value& is : get_array(now, "spec.drivers")) drivers.emplace(get_string(is, "name"), &is);
    for (const json::value& was : get_array(before, "spec.drivers")) {
      if (auto is = drivers.find(get_string(was, "name")); is != drivers.end()) {
        json::value left = *is->second, right = was;
        left.as_object().erase("allocatable");
        right.as_object().erase("allocatable");
        check_immutable(out, "spec.drivers", &left, &right);
      }
    }
  }
}

void check_attachment_status(const json::value& now, const json::value&, Findings& out) {
  if (bytes_of(get_object(now, "status.attachmentMetadata")) > kClassParametersBytesMax) {
    out.too_long("status.attachmentMetadata", kClassParametersBytesMax);
  }
  for (std::string_view field : {"attachError", "detachError"}) {
    std::string path = sub("status", field);
    if (get_string(now, path + ".message").size() > kErrorMessageMax) out.too_long(path + ".message", kClassParametersBytesMax);
    int64_t code = get_int(now, path + ".errorCode");
    if (code < 0) out.between(path + ".errorCode", code, 0, 2147483647);
  }
}

}  // namespace coracle::schema
