// SPDX-License-Identifier: Apache-2.0
// Validation of volumes: exactly one source each, modes, and relative paths that stay inside. Source: core/v1 API reference,
// Volume.
#include <algorithm>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/pod/pod_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr int64_t kModeMax = 0777, kTokenSecondsMax = int64_t(1) << 32;

void check_mode(Findings& out, const std::string& path, bool given, int64_t mode) {
  if (given && (mode < 0 || mode > kModeMax)) {
    out.invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive");
  }
}

// Checks a relative path in a volume.
void check_inner_path(Findings& out, const std::string& path, std::string_view text) {
  if (text.starts_with('/')) out.invalid(path, text, "must be a relative path");
  bool leaves = false;
  for (std::string_view part : split(text, '/')) leaves = leaves || part == "..";
  if (leaves) out.invalid(path, text, "must not contain '..'");
  else if (text.starts_with("..")) out.invalid(path, text, "must not start with '..'");
}

void check_volume(const json::value& value, const std::string& path, Findings& out) {
  view::Volume volume(value);
  if (!volume.name().empty()) out.invalid_all(sub(path, "name"), volume.name(), dns_label_problems(volume.name()));
  size_t sources = 0;
  for (const auto& pair : value.get_object()) {
    if (pair.key() == "name") continue;
    if (++sources > 1) out.forbidden(sub(path, pair.key()), "may not specify more than 1 volume type");
  }
  if (sources == 0) out.required(path, "must specify a volume type");
}

void check_host_path(const json::value& value, const std::string& path, Findings& out) {
  for (std::string_view part : split(view::HostPathVolumeSource(value).path(), '/')) {
    if (part == "..") out.invalid(sub(path, "path"), view::HostPathVolumeSource(value).path(), "must not contain '..'");
  }
}

void check_empty_dir(const json::value& value, const std::string& path, Findings& out) {
  view::EmptyDirVolumeSource source(value);
  if (!source.size_limit()) return;
  auto limit = Quantity::from_json(*source.size_limit());
  if (limit && limit->negative()) out.forbidden(sub(path, "sizeLimit"), "SizeLimit field must be a valid resource quantity");
}

void check_config_map_volume(const json::value& value, const std::string& path, Findings& out) {
  view::ConfigMapVolumeSource source(value);
  if (source.name().empty()) out.required(sub(path, "name"));
  check_mode(out, sub(path, "defaultMode"), source.has_default_mode(), source.default_mode());
}

void check_secret_volume(const json::value& value, const std::string& path, Findings& out) {
  view::SecretVolumeSource source(value);
  if (source.secret_name().empty()) out.required(sub(path, "secretName"));
  check_mode(out, sub(path, "defaultMode"), source.has_default_mode(), source.default_mode());
}

void check_downward(const json::value& value, const std::string& path, Findings& out) {
  view::DownwardAPIVolumeSource source(value);
  check_mode(out, sub(path, "defaultMode"), source.has_default_mode(), source.default_mode());
}

void check_downward_file(const json::value& value, const std::string& path, Findings& out) {
  view::DownwardAPIVolumeFile file(value);
  check_inner_path(out, sub(path, "path"), file.path());
  check_mode(out, sub(path, "mode"), file.has_mode(), file.mode());
  static constexpr std::string_view kFields[] = {"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
                                                 "metadata.uid"};
  std::string_view field = file.field_ref().field_path();
  bool keyed = field.ends_with("']");  // the rule of the reference checks it
  if (!field.empty() && !keyed && std::find(std::begin(kFields), std::end(kFields), field) == std::end(kFields))
    out.not_supported(sub(path, "fieldRef.fieldPath"), field, {std::begin(kFields), std::end(kFields)});
  if (file.has_resource_field_ref() && file.resource_field_ref().container_name().empty())
    out.required(sub(path, "resourceFieldRef.containerName"));
  if (file.has_field_ref() && file.has_resource_field_ref()) {
    out.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
  }
  if (!file.has_field_ref() && !file.has_resource_field_ref()) {
    out.required(path, "one of fieldRef and resourceFieldRef is required");
  }
}

void check_key_to_path(const json::value& value, const std::string& path, Findings& out) {
  view::KeyToPath file(value);
  check_inner_path(out, sub(path, "path"), file.path());
  check_mode(out, sub(path, "mode"), file.has_mode(), file.mode());
}

void check_projected(const json::value& value, const std::string& path, Findings& out) {
  view::ProjectedVolumeSource source(value);
  check_mode(out, sub(path, "defaultMode"), source.has_default_mode(), source.default_mode());
  std::set<std::string_view> taken;
  auto take = [&](auto items, std::string_view name) {
    for (auto file : items) {
      std::string_view place = file.path();
      bool is_taken = !place.empty() && !taken.insert(place).second;
      if (is_taken) out.invalid(path, name.empty() ? place : name, "conflicting duplicate paths");
    }
  };
  for (view::VolumeProjection one : source.sources()) {
    take(one.secret().items(), one.secret().name());
    take(one.config_map().items(), one.config_map().name());
    take(one.downward_api().items(), "");
  }
}

// A projection without a source is valid and projects nothing.
void check_projection(const json::value& value, const std::string& path, Findings& out) {
  view::VolumeProjection projection(value);
  if (value.get_object().size() > 1) out.forbidden(path, "may not specify more than 1 volume type per source");
  if (projection.has_secret() && projection.secret().name().empty()) out.required(sub(path, "secret.name"));
  if (projection.has_config_map() && projection.config_map().name().empty()) out.required(sub(path, "configMap.name"));
}

void check_token(const json::value& value, const std::string& path, Findings& out) {
  view::ServiceAccountTokenProjection token(value);
  check_inner_path(out, sub(path, "path"), token.path());
  if (token.has_expiration_seconds() && token.expiration_seconds() < 600) {
    out.invalid(sub(path, "expirationSeconds"), token.expiration_seconds(), "may not specify a duration less than 10 minutes");
  }
  if (token.expiration_seconds() > kTokenSecondsMax)
    out.invalid(sub(path, "expirationSeconds"), token.expiration_seconds(),
                "may not specify a duration larger than 2^32 seconds");
}

void check_nfs(const json::value& value, const std::string& path, Findings& out) {
  view::NFSVolumeSource source(value);
  if (!source.path().empty() && !source.path().starts_with('/'))
    out.invalid(sub(path, "path"), source.path(), "must be an absolute path");
}

// For a pod's volume and for a PersistentVolume.
void check_iscsi(const json::value& value, const std::string& path, Findings& out) {
  view::ISCSIVolumeSource source(value);
  std::string_view name = source.iqn();
  if (!name.empty() && !name.starts_with("iqn") && !name.starts_with("eui") && !name.starts_with("naa")) {
    out.invalid(sub(path, "iqn"), name, "must be valid format starting with iqn, eui, or naa");
  }
  out.between(sub(path, "lun"), source.lun(), 0, 255);
  bool authenticates = source.chap_auth_discovery() || source.chap_auth_session();
  if (authenticates && !source.has_secret_ref()) out.required(sub(path, "secretRef"));
}

// For a pod's volume and for a PersistentVolume.
void check_flocker(const json::value& value, const std::string& path, Findings& out) {
  view::FlockerVolumeSource source(value);
  bool named = !source.dataset_name().empty(), identified = !source.dataset_uuid().empty();
  if (!named && !identified) out.required(path, "one of datasetName and datasetUUID is required");
  if (named && identified) out.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously");
  if (source.dataset_name().find('/') != std::string_view::npos)
    out.invalid(sub(path, "datasetName"), source.dataset_name(), "must not contain '/'");
}

void check_git_repository(const json::value& value, const std::string& path, Findings& out) {
  std::string_view directory = view::GitRepoVolumeSource(value).directory();
  if (directory.starts_with('/')) out.invalid(sub(path, "directory"), directory, "must be a relative path");
  for (std::string_view part : split(directory, '/'))
    if (part == "..") return out.invalid(sub(path, "directory"), directory, "must not contain '..'");
}

template <typename Source>
void check_partition(const json::value& value, const std::string& path, Findings& out) {
  int64_t partition = Source(value).partition();  // 0: the whole disk
  if (partition != 0) out.between(sub(path, "partition"), partition, 1, 255);
}

void check_fibre_channel(const json::value& value, const std::string& path, Findings& out) {
  view::FCVolumeSource source(value);
  const json::array &targets = source.target_wwns().raw(), &names = source.wwids().raw();
  if (targets.empty() && names.empty())
    out.required(sub(path, "targetWWNs"), "must specify either targetWWNs or wwids, but not both");
  if (!targets.empty() && !names.empty()) {
    out.invalid_json(sub(path, "targetWWNs"), targets, "targetWWNs and wwids can not be specified simultaneously");
  }
  if (targets.empty() || !names.empty()) return;
  if (!source.has_lun()) out.required(sub(path, "lun"), "lun is required if targetWWNs is specified");
  else out.between(sub(path, "lun"), source.lun(), 0, 255);
}

void check_inline_csi(const json::value& value, const std::string& path, Findings& out) {
  view::CSIVolumeSource source(value);
  if (source.driver().size() > 63) out.too_long(sub(path, "driver"), 63);
  if (!source.driver().empty())
    out.invalid_all(sub(path, "driver"), source.driver(), dns_subdomain_problems(to_lower(source.driver())));
  if (source.has_node_publish_secret_ref() && source.node_publish_secret_ref().name().empty()) {
    out.required(sub(path, "nodePublishSecretRef.name"));
  }
}

bool is_set(const json::value& field) {
  if (const json::string* text = field.if_string()) return !text->empty();
  if (const json::object* object = field.if_object()) return !object->empty();
  if (const json::array* list = field.if_array()) return !list->empty();
  return !field.is_null() && field != json::value(0);
}

// The claim gets a name and an owner of its own.
void check_made_claim(const json::value& value, const std::string& path, Findings& out) {
  view::EphemeralVolumeSource source(value);
  if (!source.has_volume_claim_template()) return out.required(sub(path, "volumeClaimTemplate"));
  std::string at = sub(path, "volumeClaimTemplate.metadata");
  view::ObjectMeta metadata = source.volume_claim_template().metadata();
  check_annotations(out, sub(at, "annotations"), metadata.annotations());
  check_labels(out, sub(at, "labels"), metadata.labels());
  for (const auto& [field, given] : metadata.members())
    if (field != "annotations" && field != "labels" && is_set(given)) out.forbidden(sub(at, field), "cannot be set");
}

// A template may omit it, because a controller can fill it in.
void check_image_volume(const json::value& value, const std::string& path, Findings& out) {
  const bool in_pod = path.starts_with("spec.volumes[");
  if (in_pod && view::ImageVolumeSource(value).reference().empty()) out.required(sub(path, "reference"));
}

constexpr NamedValidationRule kVolumeChecks[] = {
    {"io.k8s.api.core.v1.NFSVolumeSource", check_nfs},
    {"io.k8s.api.core.v1.ISCSIVolumeSource", check_iscsi},
    {"io.k8s.api.core.v1.ISCSIPersistentVolumeSource", check_iscsi},
    {"io.k8s.api.core.v1.FCVolumeSource", check_fibre_channel},
    {"io.k8s.api.core.v1.FlockerVolumeSource", check_flocker},
    {"io.k8s.api.core.v1.GitRepoVolumeSource", check_git_repository},
    {"io.k8s.api.core.v1.GCEPersistentDiskVolumeSource", check_partition<view::GCEPersistentDiskVolumeSource>},
    {"io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource", check_partition<view::AWSElasticBlockStoreVolumeSource>},
    {"io.k8s.api.core.v1.CSIVolumeSource", check_inline_csi},
    {"io.k8s.api.core.v1.EphemeralVolumeSource", check_made_claim},
    {"io.k8s.api.core.v1.ImageVolumeSource", check_image_volume},
    {"io.k8s.api.core.v1.Volume", check_volume},
    {"io.k8s.api.core.v1.HostPathVolumeSource", check_host_path},
    {"io.k8s.api.core.v1.EmptyDirVolumeSource", check_empty_dir},
    {"io.k8s.api.core.v1.ConfigMapVolumeSource", check_config_map_volume},
    {"io.k8s.api.core.v1.SecretVolumeSource", check_secret_volume},
    {"io.k8s.api.core.v1.DownwardAPIVolumeSource", check_downward},
    {"io.k8s.api.core.v1.DownwardAPIVolumeFile", check_downward_file},
    {"io.k8s.api.core.v1.KeyToPath", check_key_to_path},
    {"io.k8s.api.core.v1.ProjectedVolumeSource", check_projected},
    {"io.k8s.api.core.v1.VolumeProjection", check_projection},
    {"io.k8s.api.core.v1.ServiceAccountTokenProjection", check_token},
};

}  // namespace

std::span<const NamedValidationRule> volume_rules() { return kVolumeChecks; }

}  // namespace coracle::schema
