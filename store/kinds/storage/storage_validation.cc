// SPDX-License-Identifier: Apache-2.0
// Validation of PersistentVolumes and PersistentVolumeClaims: exactly one source, a size, compatible access modes; the storage is
// immutable. Source: core/v1 API reference; Kubernetes "Persistent Volumes".
#include <utility>

#include "runtime/base/text.h"
#include "store/kinds/storage/storage_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

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

void check_modes(view::Range<std::string_view> modes, const std::string& path, Findings& out) {
  bool alone = false, shared = false;
  for (std::string_view text : modes) {
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

void check_class(std::string_view name, std::string_view field, const std::string& path, Findings& out) {
  if (!name.empty()) out.invalid_all(sub(path, field), name, dns_subdomain_problems(name));
}

bool is_root(std::string_view path) {
  for (std::string_view part : split(path, '/')) {
    if (!part.empty() && part != ".") return false;
  }
  return path.starts_with('/');
}

void check_volume_capacity(const json::object& capacity, const std::string& path, Findings& out) {
  std::string at = sub(path, "capacity");
  if (capacity.empty()) out.required(at);
  if (!capacity.contains("storage") || capacity.size() > 1) out.not_supported_json(at, json::value(capacity), {"storage"});
  for (const auto& pair : capacity) check_size(pair.value(), entry(at, pair.key()), out);
}

void check_volume_spec(const json::value& value, const std::string& path, Findings& out) {
  view::PersistentVolumeSpec spec(value);
  if (spec.access_modes().empty()) out.required(sub(path, "accessModes"));
  check_modes(spec.access_modes(), path, out);
  check_volume_capacity(spec.capacity(), path, out);
  size_t sources = 0;
  for (std::string_view source : kVolumeSources) {
    if (spec.members().contains(source) && ++sources > 1)
      out.forbidden(sub(path, source), "may not specify more than 1 volume type");
  }
  if (sources == 0) out.required(path, "must specify a volume type");
  if (spec.has_local() && !spec.node_affinity().has_required()) {
    out.required(sub(path, "nodeAffinity"), "Local volume requires node affinity");
  }
  if (spec.has_node_affinity() && !spec.node_affinity().has_required()) {
    out.required(sub(path, "nodeAffinity.required"), "must specify required node constraints");
  }
  if (is_root(spec.host_path().path()) && spec.persistent_volume_reclaim_policy() == "Recycle") {
    out.forbidden(sub(path, "persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'");
  }
  check_class(spec.storage_class_name(), "storageClassName", path, out);
  if (!spec.has_volume_attributes_class_name()) return;
  std::string_view attributes = spec.volume_attributes_class_name();
  if (attributes.empty()) out.required(sub(path, "volumeAttributesClassName"), "an empty string is disallowed");
  check_class(attributes, "volumeAttributesClassName", path, out);
  if (!spec.has_csi()) out.required(sub(path, "csi"), "has to be specified when using volumeAttributesClassName");
}

void check_csi(const json::value& value, const std::string& path, Findings& out) {
  view::CSIPersistentVolumeSource csi(value);
  std::string_view driver = csi.driver();
  if (driver.size() > kDriverBytesMax) out.too_long(sub(path, "driver"), kDriverBytesMax);
  if (!driver.empty()) out.invalid_all(sub(path, "driver"), driver, dns_subdomain_problems(to_lower(driver)));
  auto check_secret = [&](std::string_view field, view::SecretReference secret) {
    if (!secret) return;
    if (secret.name().empty()) out.required(sub(sub(path, field), "name"));
    if (secret.namespace_().empty()) out.required(sub(sub(path, field), "namespace"));
  };
  check_secret("controllerPublishSecretRef", csi.controller_publish_secret_ref());
  check_secret("controllerExpandSecretRef", csi.controller_expand_secret_ref());
  check_secret("nodePublishSecretRef", csi.node_publish_secret_ref());
  check_secret("nodeExpandSecretRef", csi.node_expand_secret_ref());
}

void check_local_volume(const json::value& local, const std::string& path, Findings& out) {
  std::string_view text = view::LocalVolumeSource(local).path();
  for (std::string_view part : split(text, '/')) {
    if (part == "..") return out.invalid(sub(path, "path"), text, "must not contain '..'");
  }
}

void check_data_source(view::TypedObjectReference source, const std::string& path, Findings& out) {
  std::string_view group = source.api_group(), kind = source.kind(), ns = source.namespace_();
  if (group.empty() && kind != "PersistentVolumeClaim") {
    out.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  }
  if (!group.empty()) out.invalid_all(sub(path, "apiGroup"), group, dns_subdomain_problems(group));
  if (!ns.empty()) out.invalid_all(sub(path, "namespace"), ns, dns_label_problems(ns));
}

void check_claim_spec(const json::value& value, const std::string& path, Findings& out) {
  view::PersistentVolumeClaimSpec spec(value);
  if (spec.access_modes().empty()) out.required(sub(path, "accessModes"), "at least 1 access mode is required");
  check_modes(spec.access_modes(), path, out);
  std::string at = entry(sub(path, "resources"), "storage");
  if (const json::value* size = spec.resources().requests().if_contains("storage")) check_size(*size, at, out);
  else out.required(at);
  check_class(spec.storage_class_name(), "storageClassName", path, out);
  check_class(spec.volume_attributes_class_name(), "volumeAttributesClassName", path, out);
  view::TypedLocalObjectReference source = spec.data_source();
  view::TypedObjectReference reference = spec.data_source_ref();
  if (source) check_data_source(view::TypedObjectReference(source.raw()), sub(path, "dataSource"), out);
  if (reference) check_data_source(reference, sub(path, "dataSourceRef"), out);
  if (!source || !reference) return;
  json::value shown = json::object();  // printed as {}: the error is about two fields
  if (!reference.namespace_().empty()) {
    return out.invalid_json(path, shown, "may not be specified when dataSourceRef.namespace is specified");
  }
  bool same =
      source.api_group() == reference.api_group() && source.kind() == reference.kind() && source.name() == reference.name();
  if (!same) out.invalid_json(path, shown, "must match dataSourceRef");
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
  view::PersistentVolume read(volume);
  if (!read.metadata().annotations().contains(kAnnotation)) return;
  for (std::string_view source : kMounted)
    if (read.spec().members().contains(source)) return;
  out.forbidden(sub(sub(path, "metadata.annotations"), kAnnotation), "may not specify mount options for this volume type");
}

constexpr NamedValidationRule kStorageChecks[] = {
    {"io.k8s.api.core.v1.PersistentVolume", check_mount_annotation},
    {"io.k8s.api.core.v1.PersistentVolumeSpec", check_volume_spec},
    {"io.k8s.api.core.v1.CSIPersistentVolumeSource", check_csi},
    {"io.k8s.api.core.v1.LocalVolumeSource", check_local_volume},
    {"io.k8s.api.core.v1.PersistentVolumeClaimSpec", check_claim_spec},
};

std::string_view old_class(view::PersistentVolumeClaim claim) {
  const json::value* found = claim.metadata().annotations().if_contains(kOldClass);
  return found && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

// The spec of a claim without its mutable fields.
json::value fixed_spec(view::PersistentVolumeClaim claim, bool bound, bool named, bool classed) {
  json::value out = json::object(claim.spec().members());
  json::object& spec = out.get_object();
  if (bound) spec.erase("volumeAttributesClassName");
  if (!named) spec.erase("volumeName");
  if (!classed) spec.erase("storageClassName");
  if (bound && view::PersistentVolumeClaimSpec(out).resources().has_requests())
    make(out, "resources.requests").get_object().erase("storage");
  return out;
}

Quantity storage_in(const json::object& amounts) { return amount_in(amounts, "storage").value_or(Quantity()); }

// A class can be taken back from a claim until one has been applied.
void check_attributes_stay(view::PersistentVolumeClaimSpec now, view::PersistentVolumeClaim before, Findings& out) {
  constexpr const char* kField = "spec.volumeAttributesClassName";
  const bool is_named = now.has_volume_attributes_class_name();
  const bool is_same = is_named == before.spec().has_volume_attributes_class_name() &&
                       now.volume_attributes_class_name() == before.spec().volume_attributes_class_name();
  if (is_same || !before.status().has_current_volume_attributes_class_name()) return;
  constexpr const char* kWhen = " is forbidden when status.currentVolumeAttributesClassName is not nil";
  if (!is_named) out.forbidden(kField, std::string("update to nil") + kWhen);
  else if (now.volume_attributes_class_name().empty()) out.forbidden(kField, std::string("update to empty string") + kWhen);
}

// Labels of nodes that had other names once.
constexpr std::pair<std::string_view, std::string_view> kRenamedLabels[] = {
    {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
    {"beta.kubernetes.io/os", "kubernetes.io/os"},
    {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
    {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"}};

// Gives the requirements of `old` the new names of their labels where `now` has them.
void rename_labels(json::value& old, view::VolumeNodeAffinity now) {
  view::Range<view::NodeSelectorTerm> terms = now.required().node_selector_terms();
  for (size_t i = 0; i < terms.size() && i < view::VolumeNodeAffinity(old).required().node_selector_terms().size(); ++i) {
    json::value& term = make(old, "required.nodeSelectorTerms").get_array()[i];
    view::Range<view::NodeSelectorRequirement> requirements = terms[i].match_expressions();
    for (size_t j = 0; j < requirements.size() && j < view::NodeSelectorTerm(term).match_expressions().size(); ++j) {
      json::value& requirement = make(term, "matchExpressions").get_array()[j];
      for (auto [before, after] : kRenamedLabels)
        if (view::NodeSelectorRequirement(requirement).key() == before && requirements[j].key() == after)
          make(requirement, "key") = after;
    }
  }
}

void check_place_stays(view::PersistentVolumeSpec now, view::PersistentVolumeSpec before, Findings& out) {
  view::VolumeNodeAffinity place = now.node_affinity(), old = before.node_affinity();
  if (!old || same_json(place.raw(), old.raw())) return;
  json::value renamed = old.raw();
  if (place) rename_labels(renamed, place);
  if (!same_json(place.raw(), renamed))
    out.invalid_json("nodeAffinity", place.raw(), "field is immutable, except for updating from beta label to GA");
}

}  // namespace

std::span<const NamedValidationRule> storage_rules() { return kStorageChecks; }

void check_volume_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::PersistentVolumeSpec spec = view::PersistentVolume(now).spec(), old_spec = view::PersistentVolume(before).spec();
  std::string changed;
  for (std::string_view source : kVolumeSources) {
    const json::value *left = spec.members().if_contains(source), *right = old_spec.members().if_contains(source);
    json::value mine = left ? *left : json::value(), old = right ? *right : json::value();
    if (source == "csi" && mine.is_object() && old.is_object() && !old.get_object().contains("controllerExpandSecretRef")) {
      mine.get_object().erase("controllerExpandSecretRef");
    }
    if (!same_json(mine, old)) changed += "\nchanged: spec." + std::string(source);
  }
  if (!changed.empty())
    out.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation" + changed);
  check_immutable(out, "volumeMode", spec.volume_mode(), old_spec.volume_mode());
  check_place_stays(spec, old_spec, out);
  if (old_spec.has_volume_attributes_class_name() && !spec.has_volume_attributes_class_name())
    out.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
}

void check_claim_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::PersistentVolumeClaim claim(now), old_claim(before);
  bool bound = claim.status().phase() == "Bound", named = !old_claim.spec().volume_name().empty();
  // A claim without a class may get one, but the one in its old annotation if that is set.
  bool gets_class = claim.spec().has_storage_class_name() && !old_claim.spec().has_storage_class_name() &&
                    (old_class(old_claim).empty() || old_class(old_claim) == claim.spec().storage_class_name());
  if (!gets_class && old_class(claim) != old_class(old_claim)) {
    out.invalid(entry("metadata.annotations", kOldClass), old_class(claim), "field is immutable");
  }
  json::value spec = fixed_spec(claim, bound, named, !gets_class), old_spec = fixed_spec(old_claim, bound, named, !gets_class);
  if (!same_json(spec, old_spec)) {
    std::string changed;
    for (std::string_view field : {"accessModes", "selector", "resources", "volumeName", "storageClassName", "volumeMode",
                                   "dataSource", "dataSourceRef", "volumeAttributesClassName"}) {
      const json::value *left = find(spec, field), *right = find(old_spec, field);
      if ((left && right) ? !same_json(*left, *right) : left != right) changed += "\nchanged: spec." + std::string(field);
    }
    out.forbidden(
        "spec",
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims" + changed);
  }
  Quantity size = storage_in(claim.spec().resources().requests()), old_size = storage_in(old_claim.spec().resources().requests());
  if (size < old_size && !(storage_in(old_claim.status().capacity()) < size)) {
    out.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
  }
  check_immutable(out, "volumeMode", claim.spec().volume_mode(), old_claim.spec().volume_mode());
  check_attributes_stay(claim.spec(), old_claim, out);
}

}  // namespace coracle::schema
