// SPDX-License-Identifier: Apache-2.0
// Validation of storage.k8s.io: classes, drivers, CSI nodes, storage capacity, attachments. Source: Kubernetes 1.36,
// pkg/apis/storage/validation.
#include <map>
#include <set>
#include <utility>

#include "runtime/base/text.h"
#include "store/kinds/storage/storage_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/validate/texts.h"
#include "store/schema/views.h"

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
  view::StorageClass storage(value);
  check_provisioner(out, "provisioner", storage.provisioner());
  check_parameters(out, storage.parameters());
  std::string_view policy = storage.reclaim_policy();
  if (!policy.empty() && policy != "Delete" && policy != "Retain")
    out.not_supported("reclaimPolicy", policy, {"Delete", "Retain"});
  std::map<std::map<std::string_view, std::set<std::string_view>>, size_t> seen;
  view::Range<view::TopologySelectorTerm> topologies = storage.allowed_topologies();
  for (size_t i = 0; i < topologies.size(); ++i) {
    std::map<std::string_view, std::set<std::string_view>> labels;
    for (view::TopologySelectorLabelRequirement label : topologies[i].match_label_expressions())
      labels[label.key()] = {label.values().begin(), label.values().end()};
    size_t times = seen[std::move(labels)]++;
    for (size_t n = 0; n < times && !out.full(); ++n) {
      out.duplicate(sub(item("allowedTopologies", i), "matchLabelExpressions"), "");
    }
  }
}

void check_topology_term(const json::value& value, const std::string& path, Findings& out) {
  std::set<std::string_view> keys;
  view::Range<view::TopologySelectorLabelRequirement> labels = view::TopologySelectorTerm(value).match_label_expressions();
  for (size_t i = 0; i < labels.size(); ++i) {
    std::string at = item(sub(path, "matchLabelExpressions"), i);
    std::set<std::string_view> seen;
    view::Range<std::string_view> values = labels[i].values();
    for (size_t j = 0; j < values.size(); ++j) {
      if (!seen.insert(values[j]).second) out.duplicate(item(sub(at, "values"), j), values[j]);
    }
    std::string_view key = labels[i].key();
    check_qualified(out, sub(at, "key"), key);
    if (!keys.insert(key).second) out.duplicate(sub(at, "key"), key);
  }
}

void check_attributes_class(const json::value& value, const std::string&, Findings& out) {
  view::VolumeAttributesClass attributes(value);
  check_provisioner(out, "driverName", attributes.driver_name());
  check_parameters(out, attributes.parameters());
  if (attributes.parameters().empty()) out.required("parameters", "must contain at least one key/value pair");
}

void check_driver_spec(const json::value& value, const std::string& path, Findings& out) {
  view::CSIDriverSpec spec(value);
  if (!spec.has_attach_required()) out.required(sub(path, "attachedRequired"));
  if (!spec.has_pod_info_on_mount()) out.required(sub(path, "podInfoOnMount"));
  if (!spec.has_storage_capacity()) out.required(sub(path, "storageCapacity"));
  if (!spec.has_se_linux_mount()) out.required(sub(path, "seLinuxMount"));
  if (std::string_view policy = spec.fs_group_policy();
      spec.has_fs_group_policy() && policy != "ReadWriteOnceWithFSType" && policy != "File" && policy != "None") {
    out.not_supported(sub(path, "fsGroupPolicy"), policy, {"File", "None", "ReadWriteOnceWithFSType"});
  }
  for (std::string_view mode : spec.volume_lifecycle_modes()) {
    if (mode != "Persistent" && mode != "Ephemeral")
      unsupported(out, sub(path, "volumeLifecycleModes"), mode, {"Persistent", "Ephemeral"});
  }
  std::set<std::string_view> audiences;
  view::Range<view::StorageTokenRequest> tokens = spec.token_requests();
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string at = item(sub(path, "tokenRequests"), i);
    std::string_view audience = tokens[i].audience();
    if (!audiences.insert(audience).second) {
      out.duplicate(sub(at, "audience"), audience);
      continue;
    }
    if (!tokens[i].has_expiration_seconds()) continue;
    int64_t lasts = tokens[i].expiration_seconds();
    if (lasts < kTokenSecondsMin)
      out.invalid(sub(at, "expirationSeconds"), lasts, "may not specify a duration less than 10 minutes");
    if (lasts > kTokenSecondsMax)
      out.invalid(sub(at, "expirationSeconds"), lasts, "may not specify a duration larger than 2^32 seconds");
  }
  int64_t period = spec.node_allocatable_update_period_seconds_or(kAllocatablePeriodMin);
  if (period < kAllocatablePeriodMin) {
    out.invalid(sub(path, "nodeAllocatableUpdatePeriodSeconds"), period, "must be greater than or equal to 10 seconds");
  }
}

void check_csi_node_spec(const json::value& value, const std::string& path, Findings& out) {
  std::set<std::string_view> names;
  view::Range<view::CSINodeDriver> drivers = view::CSINodeSpec(value).drivers();
  for (size_t i = 0; i < drivers.size(); ++i) {
    std::string at = item(sub(path, "drivers"), i);
    std::string_view name = drivers[i].name(), id = drivers[i].node_id();
    if (!name.empty()) check_driver_name(out, sub(at, "name"), name);
    if (id.size() > kNodeIdMax) out.invalid(sub(at, "nodeID"), id, "must be 256 characters or less");
    out.not_negative(sub(at, "allocatable.count"), drivers[i].allocatable().count());
    if (!names.insert(name).second) out.duplicate(sub(at, "name"), name);
    std::set<std::string_view> keys;
    for (std::string_view key : drivers[i].topology_keys()) {
      if (key.empty()) out.required(at);
      if (!keys.insert(key).second) out.duplicate(at, key);
      check_qualified(out, at, key);
    }
  }
}

void check_storage_capacity(const json::value& value, const std::string&, Findings& out) {
  view::CSIStorageCapacity storage(value);
  std::string_view name = storage.storage_class_name();
  out.invalid_all("storageClassName", name, dns_subdomain_problems(name));
  auto capacity = storage.capacity() ? Quantity::from_json(*storage.capacity()) : Quantity();
  if (capacity && capacity->negative()) out.invalid("capacity", capacity->text(), "must be greater than or equal to 0");
}

void check_attachment_spec(const json::value& value, const std::string& path, Findings& out) {
  view::VolumeAttachmentSpec spec(value);
  if (std::string_view attacher = spec.attacher(); !attacher.empty()) check_driver_name(out, sub(path, "attacher"), attacher);
  constexpr std::string_view kOne = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  std::string source = sub(path, "source");
  bool named = spec.source().has_persistent_volume_name(), written = spec.source().has_inline_volume_spec();
  std::string_view name = spec.source().persistent_volume_name();
  if (!named && !written) out.required(source, kOne);
  else if (named && written) out.forbidden(source, kOne);
  else if (named && name.empty())
    out.required(sub(source, "persistentVolumeName"), "must specify non empty persistentVolumeName");
  if (!name.empty()) out.invalid_all(sub(source, "persistentVolumeName"), name, dns_subdomain_problems(name));
  std::string_view node = spec.node_name();
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
  bool same = left && right ? same_json(*left, *right) : left == right;
  if (!same) out.forbidden(std::string(field), "updates to " + std::string(field) + " are forbidden.");
}

}  // namespace

std::span<const NamedValidationRule> csi_rules() { return kCsiChecks; }

void check_csi_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  std::string_view kind = view::StorageClass(now).kind();
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
    auto attaches = [](view::CSIDriverSpec spec) {
      return spec.has_attach_required() ? json::value(spec.attach_required()) : json::value();
    };
    json::value left = attaches(view::CSIDriver(now).spec()), right = attaches(view::CSIDriver(before).spec());
    check_immutable(out, "spec.attachedRequired", &left, &right);
    keep(out, now, before, "spec.volumeLifecycleModes");
  } else if (kind == "CSINode") {
    std::map<std::string_view, view::CSINodeDriver> drivers;  // validation rejects duplicates
    for (view::CSINodeDriver is : view::CSINode(now).spec().drivers()) drivers.emplace(is.name(), is);
    for (view::CSINodeDriver was : view::CSINode(before).spec().drivers()) {
      if (auto is = drivers.find(was.name()); is != drivers.end()) {
        json::value left = is->second.raw(), right = was.raw();
        left.as_object().erase("allocatable");
        right.as_object().erase("allocatable");
        check_immutable(out, "spec.drivers", &left, &right);
      }
    }
  }
}

void check_attachment_status(const json::value& now, const json::value&, Findings& out) {
  view::VolumeAttachmentStatus status = view::VolumeAttachment(now).status();
  if (bytes_of(status.attachment_metadata()) > kClassParametersBytesMax)
    out.too_long("status.attachmentMetadata", kClassParametersBytesMax);
  auto check_error = [&](const std::string& path, view::VolumeError error) {
    if (error.message().size() > kErrorMessageMax) out.too_long(path + ".message", kClassParametersBytesMax);
    if (error.error_code() < 0) out.between(path + ".errorCode", error.error_code(), 0, 2147483647);
  };
  check_error("status.attachError", status.attach_error());
  check_error("status.detachError", status.detach_error());
}

}  // namespace coracle::schema
