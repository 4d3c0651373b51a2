// SPDX-License-Identifier: Apache-2.0
// Validation of PersistentVolumes and PersistentVolumeClaims: exactly one source, a size, compatible access modes; the storage is
// immutable. Source: core/v1 API reference; Kubernetes "Persistent Volumes".
#include "runtime/base/text.h"
#include "store/kinds/storage/storage_kinds.h"
#include "store/object/quantity.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kVolumeSources[] = {"hostPath",
                                               "gcePersistentDisk",
                                               "awsElasticBlockStore",
                                               "glusterfs",
                                               "flocker",
                                               "nfs",
                                               "rbd",
                                               "quobyte",
                                               "cephfs",
                                               "iscsi",
                                               "cinder",
                                               "fc",
                                               "flexVolume",
                                               "azureFile",
                                               "vsphereVolume",
                                               "photonPersistentDisk",
                                               "portworxVolume",
                                               "azureDisk",
                                               "scaleIO",
                                               "local",
                                               "storageos",
                                               "csi"};
constexpr std::string_view kOldClass = "volume.beta.kubernetes.io/storage-class";
constexpr size_t kDriverBytesMax = 63;

void check_modes(const json::value& spec, const std::string& path, Findings& out) {
  bool alone = false, shared = false;
  for (const json::value& mode : get_array(spec, "accessModes")) {
    std::string_view text = mode.is_string() ? std::string_view(mode.get_string()) : std::string_view();
    bool supported = text == "ReadWriteOnce" || text == "ReadOnlyMany" || text == "ReadWriteMany" || text == "ReadWriteOncePod";
    if (!supported) {
      out.not_supported(sub(path, "accessModes"), text, {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"});
    } else {
      (text == "ReadWriteOncePod" ? alone : shared) = true;
    }
  }
  if (alone && shared) out.forbidden(sub(path, "accessModes"), "may not use ReadWriteOncePod with other access modes");
}

void check_size(const json::value& amount, const std::string& path, Findings& out) {
  auto size = Quantity::from_json(amount);
  if (size && (size->is_zero() || size->negative())) out.invalid(path, size->text(), "must be greater than zero");
}

void check_class(const json::value& spec, std::string_view field, const std::string& path, Findings& out) {
  std::string_view name = get_string(spec, field);
  if (!name.empty()) out.invalid_all(sub(path, field), name, dns_subdomain_problems(name));
}

bool is_root(std::string_view path) {
  for (std::string_view part : split(path, '/')) {
    if (!part.empty() && part != ".") return false;
  }
  return path.starts_with('/');
}

void check_volume_capacity(const json::value& spec, const std::string& path, Findings& out) {
  const json::object& capacity = get_object(spec, "capacity");
  std::string at = sub(path, "capacity");
  if (capacity.empty()) out.required(at);
  if (!capacity.contains("storage") || capacity.size() > 1) out.not_supported_json(at, json::value(capacity), {"storage"});
  for (const auto& pair : capacity) check_size(pair.value(), entry(at, pair.key()), out);
}

void check_volume_spec(const json::value& spec, const std::string& path, Findings& out) {
  if (get_array(spec, "accessModes").empty()) out.required(sub(path, "accessModes"));
  check_modes(spec, path, out);
  check_volume_capacity(spec, path, out);
  size_t sources = 0;
  for (std::string_view source : kVolumeSources) {
    if (find(spec, source) && ++sources > 1) out.forbidden(sub(path, source), "may not specify more than 1 volume type");
  }
  if (sources == 0) out.required(path, "must specify a volume type");
  if (find(spec, "local") && !find(spec, "nodeAffinity.required")) {
    out.required(sub(path, "nodeAffinity"), "Local volume requires node affinity");
  }
  if (const json::value* affinity = find(spec, "nodeAffinity"); affinity && !find(*affinity, "required")) {
    out.required(sub(path, "nodeAffinity.required"), "must specify required node constraints");
  }
  if (is_root(get_string(spec, "hostPath.path")) && get_string(spec, "persistentVolumeReclaimPolicy") == "Recycle") {
    out.forbidden(sub(path, "persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'");
  }
  check_class(spec, "storageClassName", path, out);
  const json::value* attributes = find(spec, "volumeAttributesClassName");
  if (!attributes) return;
  if (get_string(spec, "volumeAttributesClassName").empty()) {
    out.required(sub(path, "volumeAttributesClassName"), "an empty string is disallowed");
  }
  check_class(spec, "volumeAttributesClassName", path, out);
  if (!find(spec, "csi")) out.required(sub(path, "csi"), "has to be specified when using volumeAttributesClassName");
}

void check_csi(const json::value& csi, const std::string& path, Findings& out) {
  std::string_view driver = get_string(csi, "driver");
  if (driver.size() > kDriverBytesMax) out.too_long(sub(path, "driver"), kDriverBytesMax);
  if (!driver.empty()) out.invalid_all(sub(path, "driver"), driver, dns_subdomain_problems(to_lower(driver)));
  for (std::string_view name :
       {"controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"}) {
    const json::value* secret = find(csi, name);
    if (!secret) continue;
    for (std::string_view part : {"name", "namespace"}) {
      if (get_string(*secret, part).empty()) out.required(sub(sub(path, name), part));
    }
  }
}

void check_local_volume(const json::value& local, const std::string& path, Findings& out) {
  for (std::string_view part : split(get_string(local, "path"), '/')) {
    if (part == "..") return out.invalid(sub(path, "path"), get_string(local, "path"), "must not contain '..'");
  }
}

void check_data_source(const json::value& source, const std::string& path, Findings& out) {
  std::string_view group = get_string(source, "apiGroup"), kind = get_string(source, "kind"),
                   ns = get_string(source, "namespace");
  if (group.empty() && kind != "PersistentVolumeClaim") {
    out.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  }
  if (!group.empty()) out.invalid_all(sub(path, "apiGroup"), group, dns_subdomain_problems(group));
  if (!ns.empty()) out.invalid_all(sub(path, "namespace"), ns, dns_label_problems(ns));
}

void check_claim_spec(const json::value& spec, const std::string& path, Findings& out) {
  if (get_array(spec, "accessModes").empty()) out.required(sub(path, "accessModes"), "at least 1 access mode is required");
  check_modes(spec, path, out);
  std::string at = entry(sub(path, "resources"), "storage");
  if (const json::value* size = get_object(spec, "resources.requests").if_contains("storage")) check_size(*size, at, out);
  else out.required(at);
  check_class(spec, "storageClassName", path, out);
  check_class(spec, "volumeAttributesClassName", path, out);
  const json::value *source = find(spec, "dataSource"), *reference = find(spec, "dataSourceRef");
  if (source) check_data_source(*source, sub(path, "dataSource"), out);
  if (reference) check_data_source(*reference, sub(path, "dataSourceRef"), out);
  if (!source || !reference) return;
  json::value shown = json::object();  // printed as {}: the error is about two fields
  if (!get_string(*reference, "namespace").empty()) {
    return out.invalid_json(path, shown, "may not be specified when dataSourceRef.namespace is specified");
  }
  for (std::string_view name : {"apiGroup", "kind", "name"}) {
    if (get_string(*source, name) != get_string(*reference, name))
      return out.invalid_json(path, shown, "must match dataSourceRef");
  }
}

// Source: pkg/volume/validation/pv_validation.go, checkMountOption.
void check_mount_annotation(const json::value& volume, const std::string& path, Findings& out) {
  constexpr std::string_view kAnnotation = "volume.beta.kubernetes.io/mount-options";
  constexpr std::string_view kMounted[] = {"gcePersistentDisk",
                                           "awsElasticBlockStore",
                                           "glusterfs",
                                           "nfs",
                                           "rbd",
                                           "quobyte",
                                           "iscsi",
                                           "cinder",
                                           "cephfs",
                                           "azureFile",
                                           "azureDisk",
                                           "vsphereVolume",
                                           "photonPersistentDisk"};
  if (!get_object(volume, "metadata.annotations").contains(kAnnotation)) return;
  for (std::string_view source : kMounted)
    if (get_object(volume, "spec").contains(source)) return;
  out.forbidden(sub(sub(path, "metadata.annotations"), kAnnotation), "may not specify mount options for this volume type");
}

constexpr NamedValidationRule kStorageChecks[] = {
    {"io.k8s.api.core.v1.PersistentVolume", check_mount_annotation},
    {"io.k8s.api.core.v1.PersistentVolumeSpec", check_volume_spec},
    {"io.k8s.api.core.v1.CSIPersistentVolumeSource", check_csi},
    {"io.k8s.api.core.v1.LocalVolumeSource", check_local_volume},
    {"io.k8s.api.core.v1.PersistentVolumeClaimSpec", check_claim_spec},
};

std::string_view old_class(const json::value& claim) {
  const json::value* found = get_object(claim, "metadata.annotations").if_contains(kOldClass);
  return found && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

// The spec of a claim without its mutable fields.
json::value fixed_spec(const json::value& claim, bool bound, bool named, bool classed) {
  json::value out = json::object(get_object(claim, "spec"));
  json::object& spec = out.get_object();
  spec.erase("volumeAttributesClassName");
  if (!named) spec.erase("volumeName");
  if (!classed) spec.erase("storageClassName");
  if (bound && find(out, "resources.requests")) make(out, "resources.requests").get_object().erase("storage");
  return out;
}

Quantity storage_of(const json::value& object, std::string_view path) {
  const json::value* found = get_object(object, path).if_contains("storage");
  auto amount = found ? Quantity::from_json(*found) : Quantity();
  return amount ? *amount : Quantity();
}

void check_attributes_class_update(const json::value& now, const json::value& before, bool empty_is_wrong, Findings& out) {
  const json::value *left = find(now, "spec.volumeAttributesClassName"), *right = find(before, "spec.volumeAttributesClassName");
  if (!right) return;
  if (!left) out.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
  else if (empty_is_wrong && *left != *right && left->is_string() && left->get_string().empty()) {
    out.forbidden("spec.volumeAttributesClassName", "update from non-nil value to an empty string is forbidden");
  }
}

// Labels of nodes that had other names once.
constexpr std::pair<std::string_view, std::string_view> kRenamedLabels[] = {
    {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
    {"beta.kubernetes.io/os", "kubernetes.io/os"},
    {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
    {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"}};

// Gives the requirements of `old` the new names of their labels where `now` has them.
void rename_labels(json::value& old, const json::value& now) {
  constexpr std::string_view kTerms = "required.nodeSelectorTerms";
  const json::array& terms = get_array(now, kTerms);
  for (size_t i = 0; i < terms.size() && i < get_array(old, kTerms).size(); ++i) {
    json::value& term = make(old, kTerms).get_array()[i];
    const json::array& requirements = get_array(terms[i], "matchExpressions");
    for (size_t j = 0; j < requirements.size() && j < get_array(term, "matchExpressions").size(); ++j) {
      json::value& requirement = make(term, "matchExpressions").get_array()[j];
      for (auto [before, after] : kRenamedLabels)
        if (get_string(requirement, "key") == before && get_string(requirements[j], "key") == after)
          make(requirement, "key") = after;
    }
  }
}

void check_place_stays(const json::value& now, const json::value& before, Findings& out) {
  const json::value *place = find(now, "spec.nodeAffinity"), *old = find(before, "spec.nodeAffinity");
  if (!old || (place && *place == *old)) return;
  json::value renamed = *old;
  if (place) rename_labels(renamed, *place);
  if (!place || *place != renamed)
    out.invalid_json("nodeAffinity", place ? *place : json::value(),
                     "field is immutable, except for updating from beta label to GA");
}

}  // namespace

std::span<const NamedValidationRule> storage_rules() { return kStorageChecks; }

void check_volume_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  std::string changed;
  for (std::string_view source : kVolumeSources) {
    const json::value *left = find(now, sub("spec", source)), *right = find(before, sub("spec", source));
    json::value mine = left ? *left : json::value(), old = right ? *right : json::value();
    if (source == "csi" && mine.is_object() && old.is_object() && !old.get_object().contains("controllerExpandSecretRef")) {
      mine.get_object().erase("controllerExpandSecretRef");
    }
    if (mine != old) changed += "\nchanged: spec." + std::string(source);
  }
  if (!changed.empty())
    out.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation" + changed);
  check_immutable(out, "volumeMode", find(now, "spec.volumeMode"), find(before, "spec.volumeMode"));
  check_place_stays(now, before, out);
  check_attributes_class_update(now, before, false, out);
}

void check_claim_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  bool bound = get_string(now, "status.phase") == "Bound", named = !get_string(before, "spec.volumeName").empty();
  // A claim without a class may get one, but the one in its old annotation if that is set.
  const json::value *mine = find(now, "spec.storageClassName"), *old = find(before, "spec.storageClassName");
  bool gets_class = mine && mine->is_string() && !old &&
                    (old_class(before).empty() || old_class(before) == std::string_view(mine->get_string()));
  if (!gets_class && old_class(now) != old_class(before)) {
    out.invalid(entry("metadata.annotations", kOldClass), old_class(now), "field is immutable");
  }
  json::value spec = fixed_spec(now, bound, named, !gets_class), old_spec = fixed_spec(before, bound, named, !gets_class);
  if (spec != old_spec) {
    std::string changed;
    for (std::string_view field : {"accessModes", "selector", "resources", "volumeName", "storageClassName", "volumeMode",
                                   "dataSource", "dataSourceRef"}) {
      const json::value *left = find(spec, field), *right = find(old_spec, field);
      if ((left && right) ? *left != *right : left != right) changed += "\nchanged: spec." + std::string(field);
    }
    out.forbidden(
        "spec",
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims" + changed);
  }
  Quantity size = storage_of(now, "spec.resources.requests"), old_size = storage_of(before, "spec.resources.requests");
  if (size < old_size && !(storage_of(before, "status.capacity") < size)) {
    out.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
  }
  check_immutable(out, "volumeMode", find(now, "spec.volumeMode"), find(before, "spec.volumeMode"));
  check_attributes_class_update(now, before, true, out);
}

}  // namespace coracle::schema
