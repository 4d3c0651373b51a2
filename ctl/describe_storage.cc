// SPDX-License-Identifier: Apache-2.0
// How describe shows volumes: those of pods, PersistentVolumes, claims and classes. See describe.h.
#include <algorithm>
#include <array>
#include <span>

#include "ctl/describe.h"
#include "ctl/jsonpath.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/quantity.h"
#include "store/schema/table.h"

namespace coracle::ctl {
namespace {

// ---- sources of volumes ----

struct SourceRow {
  const char* label;
  const char* path;
  const char* absent = "";  // what stands for an absent value
};

struct SourceKind {
  const char *field, *type;
  std::vector<SourceRow> rows;
};

const SourceRow kFsType{"FSType", "fsType"}, kReadOnly{"ReadOnly", "readOnly", "false"},
    kOptional{"Optional", "optional", "false"}, kSecretRef{"SecretRef", "secretRef", "nil"};

const std::vector<SourceKind>& source_kinds() {
  static const std::vector<SourceKind> kinds{
      {"hostPath", "HostPath (bare host directory volume)", {{"Path", "path"}, {"HostPathType", "type", "<none>"}}},
      {"emptyDir",
       "EmptyDir (a temporary directory that shares a pod's lifetime)",
       {{"Medium", "medium"}, {"SizeLimit", "sizeLimit", "<unset>"}}},
      {"gcePersistentDisk",
       "GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
       {{"PDName", "pdName"}, kFsType, {"Partition", "partition", "0"}, kReadOnly}},
      {"awsElasticBlockStore",
       "AWSElasticBlockStore (a Persistent Disk resource in AWS)",
       {{"VolumeID", "volumeID"}, kFsType, {"Partition", "partition", "0"}, kReadOnly}},
      {"gitRepo",
       "GitRepo (a volume that is pulled from git when the pod is created)",
       {{"Repository", "repository"}, {"Revision", "revision"}}},
      {"secret", "Secret (a volume populated by a Secret)", {{"SecretName", "secretName"}, kOptional}},
      {"configMap", "ConfigMap (a volume populated by a ConfigMap)", {{"Name", "name"}, kOptional}},
      {"nfs", "NFS (an NFS mount that lasts the lifetime of a pod)", {{"Server", "server"}, {"Path", "path"}, kReadOnly}},
      {"iscsi",
       "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)",
       {{"TargetPortal", "targetPortal"},
        {"IQN", "iqn"},
        {"Lun", "lun", "0"},
        {"ISCSIInterface", "iscsiInterface"},
        kFsType,
        kReadOnly,
        {"Portals", "portals", "[]"},
        {"DiscoveryCHAPAuth", "chapAuthDiscovery", "false"},
        {"SessionCHAPAuth", "chapAuthSession", "false"},
        kSecretRef,
        {"InitiatorName", "initiatorName", "<none>"}}},
      {"glusterfs",
       "Glusterfs (a Glusterfs mount on the host that shares a pod's lifetime)",
       {{"EndpointsName", "endpoints"}, {"Path", "path"}, kReadOnly}},
      {"persistentVolumeClaim",
       "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
       {{"ClaimName", "claimName"}, kReadOnly}},
      {"rbd",
       "RBD (a Rados Block Device mount on the host that shares a pod's lifetime)",
       {{"CephMonitors", "monitors", "[]"},
        {"RBDImage", "image"},
        kFsType,
        {"RBDPool", "pool"},
        {"RadosUser", "user"},
        {"Keyring", "keyring"},
        kSecretRef,
        kReadOnly}},
      {"quobyte",
       "Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
       {{"Registry", "registry"}, {"Volume", "volume"}, kReadOnly}},
      {"azureDisk",
       "AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)",
       {{"DiskName", "diskName"}, {"DiskURI", "diskURI"}, {"Kind", "kind"}, kFsType, {"CachingMode", "cachingMode"}, kReadOnly}},
      {"vsphereVolume",
       "vSphereVolume (a Persistent Disk resource in vSphere)",
       {{"VolumePath", "volumePath"}, kFsType, {"StoragePolicyName", "storagePolicyName"}}},
      {"cinder", "Cinder (a Persistent Disk resource in OpenStack)", {{"VolumeID", "volumeID"}, kFsType, kReadOnly, kSecretRef}},
      {"photonPersistentDisk",
       "PhotonPersistentDisk (a Persistent Disk resource in photon platform)",
       {{"PdID", "pdID"}, kFsType}},
      {"portworxVolume", "PortworxVolume (a Portworx Volume resource)", {{"VolumeID", "volumeID"}}},
      {"scaleIO",
       "ScaleIO (a persistent volume backed by a block device in ScaleIO)",
       {{"Gateway", "gateway"},
        {"System", "system"},
        {"Protection Domain", "protectionDomain"},
        {"Storage Pool", "storagePool"},
        {"Storage Mode", "storageMode"},
        {"VolumeName", "volumeName"},
        kFsType,
        kReadOnly}},
      {"local", "LocalVolume (a persistent volume backed by local storage on a node)", {{"Path", "path"}}},
      {"cephfs",
       "CephFS (a CephFS mount on the host that shares a pod's lifetime)",
       {{"Monitors", "monitors", "[]"}, {"Path", "path"}, {"User", "user"}, {"SecretFile", "secretFile"}, kSecretRef, kReadOnly}},
      {"storageos",
       "StorageOS (a StorageOS Persistent Disk resource)",
       {{"VolumeName", "volumeName"}, {"VolumeNamespace", "volumeNamespace"}, kFsType, kReadOnly}},
      {"fc", "FC (a Fibre Channel disk)", {{"TargetWWNs", "targetWWNs"}, {"LUN", "lun", "<none>"}, kFsType, kReadOnly}},
      {"azureFile",
       "AzureFile (an Azure File Service mount on the host and bind mount to the pod)",
       {{"SecretName", "secretName"}, {"ShareName", "shareName"}, kReadOnly}},
      {"flexVolume",
       "FlexVolume (a generic volume resource that is provisioned/attached using an exec based plugin)",
       {{"Driver", "driver"}, kFsType, kSecretRef, kReadOnly, {"Options", "options", "map[]"}}},
      {"flocker",
       "Flocker (a Flocker volume mounted by the Flocker agent)",
       {{"DatasetName", "datasetName"}, {"DatasetUUID", "datasetUUID"}}},
      {"image", "Image (a container image or OCI artifact)", {{"Reference", "reference"}, {"PullPolicy", "pullPolicy"}}},
  };
  return kinds;
}

std::vector<std::string> sorted_names(const json::object& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

// As Go's %v: "[a b]", "map[a:b c:d]", "&SecretReference{Name:x,}" without the type.
std::string go_value_text(const json::value& value) {
  std::vector<std::string> parts;
  if (const json::array* list = value.if_array()) {
    for (const auto& item : *list) parts.push_back(go_value_text(item));
    return "[" + join(parts, " ") + "]";
  }
  const json::object* map = value.if_object();
  if (!map) return jsonpath_text(value);
  for (const auto& name : sorted_names(*map)) parts.push_back(name + ":" + go_value_text(map->at(name)));
  return "map[" + join(parts, " ") + "]";
}

std::string source_value(const json::value& source, const SourceRow& row, bool persistent) {
  const json::value* value = find(source, row.path);
  if (!value || value->is_null()) return row.absent;
  if (std::string_view(row.label) == "SecretRef") {
    view::SecretReference secret(*value);
    std::string ns(secret.namespace_()), name(secret.name());
    return !persistent ? "&LocalObjectReference{Name:" + name + ",}"
                       : "&SecretReference{Name:" + name + ",Namespace:" + ns + ",}";
  }
  if (std::string_view(row.label) == "TargetWWNs") return join(get_strings(source, row.path), ", ");
  if (std::string_view(row.label) == "SizeLimit") {
    auto limit = Quantity::from_json(*value);
    return limit && (limit->is_zero() || limit->negative()) ? row.absent : amount_text(value);
  }
  return go_value_text(*value);
}

void put_attributes(std::string& text, const json::object& attributes) {
  constexpr size_t kAttributeMax = 140;  // characters
  text += "    VolumeAttributes:\t";
  if (attributes.empty()) text += "<none>\n";
  bool first = true;
  for (const auto& name : sorted_names(attributes)) {
    std::string line = name + "=" + jsonpath_text(attributes.at(name));
    if (line.size() > kAttributeMax) line = line.substr(0, kAttributeMax) + "...";
    text += (std::exchange(first, false) ? "    " : "        \t    ") + line + "\n";
  }
}

// What kubectl says behind a row of a PersistentVolume's source, and not of a pod's.
void put_persistent_rows(std::string& text, std::string_view field, std::string_view label, const json::value& source) {
  if (field == "azureFile" && label == "SecretName")
    put(text, 2, "SecretNamespace", view::AzureFilePersistentVolumeSource(source).secret_namespace());
  view::GlusterfsPersistentVolumeSource gluster(source);
  if (field == "glusterfs" && label == "EndpointsName")
    put(text, 2, "EndpointsNamespace", gluster.has_endpoints_namespace() ? gluster.endpoints_namespace() : "<unset>");
  view::SecretReference secret = view::ScaleIOPersistentVolumeSource(source).secret_ref();
  if (field == "scaleIO" && label == "VolumeName") {
    put(text, 2, "SecretName", secret.name());
    put(text, 2, "SecretNamespace", secret.namespace_());
  }
}

// The source in a pod's volume has the fields of that in a PersistentVolume, but for the handle.
void put_csi(std::string& text, view::CSIPersistentVolumeSource csi, bool persistent) {
  put(text, 2, "Type", "CSI (a Container Storage Interface (CSI) volume source)");
  put(text, 2, "Driver", csi.driver());
  put(text, 2, "FSType", csi.fs_type());
  if (persistent) put(text, 2, "VolumeHandle", csi.volume_handle());
  put(text, 2, "ReadOnly", csi.read_only() ? "true" : "false");
  put_attributes(text, csi.volume_attributes());
}

void put_projected(std::string& text, view::ProjectedVolumeSource projected) {
  put(text, 2, "Type", "Projected (a volume that contains injected data from multiple sources)");
  auto put_source = [&](auto source, const char* label) {
    put(text, 2, label, source.name());
    put(text, 2, "Optional", source.optional() ? "true" : "false");
  };
  for (view::VolumeProjection source : projected.sources()) {
    view::ServiceAccountTokenProjection token = source.service_account_token();
    if (source.has_secret()) put_source(source.secret(), "SecretName");
    else if (source.has_downward_api()) put(text, 2, "DownwardAPI", "true");
    else if (source.has_config_map()) put_source(source.config_map(), "ConfigMapName");
    else if (token)
      put(text, 2, "TokenExpirationSeconds", token.has_expiration_seconds() ? std::to_string(token.expiration_seconds()) : "");
  }
}

void put_downward(std::string& text, view::DownwardAPIVolumeSource downward) {
  put(text, 2, "Type", "DownwardAPI (a volume populated by information about the pod)");
  text += "    Items:\n";
  for (view::DownwardAPIVolumeFile item : downward.items())
    for (std::string_view from : {item.field_ref().field_path(), item.resource_field_ref().resource()})
      if (!from.empty()) text += "      " + std::string(from) + " -> " + std::string(item.path()) + "\n";
}

// ---- claims ----

std::string access_modes_text(view::Range<std::string_view> modes) {
  std::vector<std::string> parts;
  for (auto [mode, name] : {std::pair{"ReadWriteOnce", "RWO"}, std::pair{"ReadOnlyMany", "ROX"},
                            std::pair{"ReadWriteMany", "RWX"}, std::pair{"ReadWriteOncePod", "RWOP"}})
    if (std::find(modes.begin(), modes.end(), mode) != modes.end()) parts.emplace_back(name);
  return join(parts, ",");
}

// The class of a volume or claim; `given`: that in its spec.
std::string class_name(view::ObjectMeta metadata, std::string_view given) {
  const json::value* old = metadata.annotations().if_contains("volume.beta.kubernetes.io/storage-class");
  return old ? jsonpath_text(*old) : std::string(given);
}

std::string phase_or_end(view::ObjectMeta metadata, std::string_view phase, WallTime now) {
  std::string_view end = metadata.deletion_timestamp();
  return end.empty() ? std::string(phase) : "Terminating (lasts " + schema::human_age(end, now) + ")";
}

std::string finalizers_text(view::ObjectMeta metadata) { return "[" + join(strings(metadata.finalizers()), " ") + "]"; }

// `whole`: not the template in a pod's volume, which has neither name nor status.
std::string claim_fields(const json::value& object, bool whole, WallTime now) {
  view::PersistentVolumeClaim claim(object);
  view::PersistentVolumeClaimSpec spec = claim.spec();
  view::PersistentVolumeClaimStatus status = claim.status();
  std::string text;
  if (whole) put_name(text, object);
  put(text, 0, "StorageClass", class_name(claim.metadata(), spec.storage_class_name()));
  if (whole) put(text, 0, "Status", phase_or_end(claim.metadata(), status.phase(), now));
  bool bound = !spec.volume_name().empty();
  put(text, 0, "Volume", spec.volume_name());
  put_marks(text, object);
  if (whole) put(text, 0, "Finalizers", finalizers_text(claim.metadata()));
  put(text, 0, "Capacity", bound ? amount_text(status.capacity().if_contains("storage")) : "");
  put(text, 0, "Access Modes", bound ? access_modes_text(status.access_modes()) : "");
  if (spec.has_volume_mode()) put(text, 0, "VolumeMode", spec.volume_mode());
  if (view::TypedLocalObjectReference source = spec.data_source()) {
    text += "DataSource:\n";
    if (source.has_api_group()) put(text, 1, "APIGroup", source.api_group());
    put(text, 1, "Kind", source.kind());
    put(text, 1, "Name", source.name());
  }
  return text;
}

bool uses_claim(view::Pod pod, view::ObjectMeta claim) {
  for (view::Volume volume : pod.spec().volumes())
    if (volume.persistent_volume_claim().claim_name() == claim.name()) return true;
  for (view::OwnerReference owner : claim.owner_references())
    if (owner.kind() == "Pod" && owner.uid() == pod.metadata().uid()) return true;
  return false;
}

std::string claim_text(const json::value& claim, const Related& related, WallTime now) {
  std::string text = claim_fields(claim, true, now);
  std::vector<std::string> users;
  for (const auto& pod : related.pods.items)
    if (uses_claim(view::Pod(pod), metadata_of(claim))) users.emplace_back(metadata_of(pod).name());
  std::sort(users.begin(), users.end());
  if (!related.pods.error.empty()) put(text, 0, "Used By", unread_text(related.pods.error));
  else if (users.empty()) put(text, 0, "Used By", "<none>");
  for (const auto& user : users) text += (&user == users.data() ? "Used By:\t" : "\t") + user + "\n";
  std::vector<TimedCondition> conditions;
  for (view::PersistentVolumeClaimCondition one : view::PersistentVolumeClaim(claim).status().conditions())
    conditions.push_back({view::Condition(one.raw()), one.last_probe_time()});
  put_timed_conditions(text, "LastProbeTime", conditions);
  return text;
}

// ---- PersistentVolumes ----

// `requirements`: NodeSelectorRequirements, or such without an operator, which means "in".
void put_terms(std::string& text, std::string_view indent, size_t number, const json::array& requirements) {
  text.append(indent).append("Term " + std::to_string(number) + ":\t");
  if (requirements.empty()) text += "<none>\n";
  bool first = true;
  for (const auto& one : requirements) {
    view::NodeSelectorRequirement requirement(one);
    if (!std::exchange(first, false)) text.append(indent).append("\t");
    std::vector<std::string> values = strings(requirement.values());
    text += std::string(requirement.key()) + " " + or_else(to_lower(requirement.operator_()), "in") +
            (values.empty() ? "" : " [" + join(values, ", ") + "]") + "\n";
  }
}

void put_affinity(std::string& text, view::VolumeNodeAffinity affinity) {
  if (!affinity.has_required()) return put(text, 0, "Node Affinity", "<none>");
  view::Range<view::NodeSelectorTerm> terms = affinity.required().node_selector_terms();
  text += "Node Affinity:\t\n  Required Terms:\t";
  text += terms.empty() ? "<none>\n" : "\n";
  size_t number = 0;
  for (view::NodeSelectorTerm term : terms) put_terms(text, "    ", number++, term.match_expressions().raw());
}

std::string volume_text(const json::value& object, WallTime now) {
  view::PersistentVolume volume(object);
  view::PersistentVolumeSpec spec = volume.spec();
  std::string text;
  put(text, 0, "Name", volume.metadata().name());
  put_marks(text, object);
  put(text, 0, "Finalizers", finalizers_text(volume.metadata()));
  put(text, 0, "StorageClass", class_name(volume.metadata(), spec.storage_class_name()));
  put(text, 0, "Status", phase_or_end(volume.metadata(), volume.status().phase(), now));
  view::ObjectReference claim = spec.claim_ref();
  put(text, 0, "Claim", claim ? std::string(claim.namespace_()) + "/" + std::string(claim.name()) : "");
  put(text, 0, "Reclaim Policy", spec.persistent_volume_reclaim_policy());
  put(text, 0, "Access Modes", access_modes_text(spec.access_modes()));
  if (spec.has_volume_mode()) put(text, 0, "VolumeMode", spec.volume_mode());
  put(text, 0, "Capacity", amount_text(spec.capacity().if_contains("storage")));
  put_affinity(text, spec.node_affinity());
  put(text, 0, "Message", volume.status().message());
  text += "Source:\n";
  if (spec) put_volume_source(text, spec.raw(), true);
  return text;
}

// ---- classes ----

std::string storage_class_text(const json::value& object) {
  view::StorageClass storage(object);
  const json::object& annotations = storage.metadata().annotations();
  std::string text;
  put(text, 0, "Name", storage.metadata().name());
  bool is_default = false;
  for (const char* key : {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"})
    is_default = is_default || text_of_value(annotations.if_contains(key)) == "true";
  put(text, 0, "IsDefaultClass", is_default ? "Yes" : "No");
  put(text, 0, "Annotations", map_text(annotations));
  put(text, 0, "Provisioner", storage.provisioner());
  put(text, 0, "Parameters", map_text(storage.parameters()));
  bool may_expand = storage.allow_volume_expansion();
  put(text, 0, "AllowVolumeExpansion", !storage.has_allow_volume_expansion() ? "<unset>" : may_expand ? "True" : "False");
  text += storage.mount_options().empty() ? "MountOptions:\t<none>\n" : "MountOptions:\n";
  for (std::string_view option : storage.mount_options()) text.append("  ").append(option).append("\n");
  if (storage.has_reclaim_policy()) put(text, 0, "ReclaimPolicy", storage.reclaim_policy());
  if (storage.has_volume_binding_mode()) put(text, 0, "VolumeBindingMode", storage.volume_binding_mode());
  if (!storage.allowed_topologies().empty()) text += "AllowedTopologies:\t\n";
  size_t number = 0;
  for (view::TopologySelectorTerm term : storage.allowed_topologies())
    put_terms(text, "  ", number++, term.match_label_expressions().raw());
  return text;
}

std::string attributes_class_text(const json::value& object) {
  view::VolumeAttributesClass attributes(object);
  std::string text;
  put(text, 0, "Name", attributes.metadata().name());
  put(text, 0, "Annotations", map_text(attributes.metadata().annotations()));
  put(text, 0, "DriverName", attributes.driver_name());
  put(text, 0, "Parameters", map_text(attributes.parameters()));
  return text;
}

std::string csi_node_text(const json::value& object) {
  view::CSINodeSpec spec = view::CSINode(object).spec();
  std::string text;
  put(text, 0, "Name", metadata_of(object).name());
  put_marks(text, object);
  put(text, 0, "CreationTimestamp", time_text(metadata_of(object).creation_timestamp()));
  text += "Spec:\n";
  if (spec.has_drivers()) text += "  Drivers:\n";
  for (view::CSINodeDriver driver : spec.drivers()) {
    text += "    " + std::string(driver.name()) + ":\n";
    put(text, 3, "Node ID", driver.node_id());
    if (driver.allocatable().has_count()) {
      text += "      Allocatables:\n";
      put(text, 4, "Count", std::to_string(driver.allocatable().count()));
    }
    if (driver.has_topology_keys()) put(text, 3, "Topology Keys", "[" + join(strings(driver.topology_keys()), " ") + "]");
  }
  return text;
}

// The fields of a claim beneath a volume. kubectl indents both parts of lines with labels and annotations.
void put_claim_template(std::string& text, const std::string& fields) {
  bool marks = false;
  for (std::string_view line : split(std::string_view(fields).substr(0, fields.size() - 1), '\n')) {
    size_t tab = line.find('\t');
    if (tab > 0) marks = line.starts_with("Labels:") || line.starts_with("Annotations:");
    text.append("    ").append(line.substr(0, tab + 1)).append(marks ? "    " : "").append(line.substr(tab + 1)).append("\n");
  }
}

}  // namespace

void put_volume_source(std::string& text, const json::value& holder, bool persistent) {
  view::Volume volume(holder);  // a PersistentVolume's spec has its sources at the same place
  if (volume.has_csi()) return put_csi(text, view::CSIPersistentVolumeSource(volume.csi().raw()), persistent);
  if (volume.has_projected()) return put_projected(text, volume.projected());
  if (volume.has_downward_api()) return put_downward(text, volume.downward_api());
  if (volume.has_ephemeral()) {
    put(text, 2, "Type", "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)");
    view::PersistentVolumeClaimTemplate claim = volume.ephemeral().volume_claim_template();
    if (claim) put_claim_template(text, claim_fields(claim.raw(), false, {}));
    return;
  }
  for (const SourceKind& kind : source_kinds()) {
    const json::value* source = find(holder, kind.field);
    if (!source) continue;
    put(text, 2, "Type", kind.type);
    for (const SourceRow& row : kind.rows) {
      bool plain = std::string_view(row.label) == "ISCSIInterface";  // without a colon in kubectl
      text.append("    ")
          .append(row.label)
          .append(plain ? "\t" : ":\t")
          .append(source_value(*source, row, persistent))
          .append("\n");
      if (persistent) put_persistent_rows(text, kind.field, row.label, *source);
    }
    return;
  }
  text += "  <unknown>\n";
}

std::string storage_text(const json::value& object, const Related& related, WallTime now) {
  std::string_view kind = kind_in(object);
  if (kind == "PersistentVolume") return volume_text(object, now);
  if (kind == "PersistentVolumeClaim") return claim_text(object, related, now);
  if (kind == "StorageClass") return storage_class_text(object);
  if (kind == "VolumeAttributesClass") return attributes_class_text(object);
  if (kind == "CSINode") return csi_node_text(object);
  return {};
}

}  // namespace coracle::ctl
