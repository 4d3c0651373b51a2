// SPDX-License-Identifier: Apache-2.0
// How describe shows volumes: those of pods, PersistentVolumes, claims and classes. See describe.h.
#include <algorithm>
#include <array>
#include <span>

#include "ctl/describe.h"
#include "ctl/jsonpath.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
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

std::string source_value(const json::value& source, const SourceRow& row) {
  const json::value* value = find(source, row.path);
  if (!value || value->is_null()) return row.absent;
  if (std::string_view(row.label) == "SecretRef") {
    std::string ns = text_at(*value, "namespace");
    return ns.empty() ? "&LocalObjectReference{Name:" + text_at(*value, "name") + ",}"
                      : "&SecretReference{Name:" + text_at(*value, "name") + ",Namespace:" + ns + ",}";
  }
  if (std::string_view(row.label) == "TargetWWNs") return join(get_strings(source, row.path), ", ");
  if (std::string_view(row.label) == "SizeLimit") return amount_text(value);
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

void put_csi(std::string& text, const json::value& csi, bool persistent) {
  put(text, 2, "Type", "CSI (a Container Storage Interface (CSI) volume source)");
  put(text, 2, "Driver", text_at(csi, "driver"));
  put(text, 2, "FSType", text_at(csi, "fsType"));
  if (persistent) put(text, 2, "VolumeHandle", text_at(csi, "volumeHandle"));
  put(text, 2, "ReadOnly", get_bool(csi, "readOnly") ? "true" : "false");
  put_attributes(text, get_object(csi, "volumeAttributes"));
}

void put_projected(std::string& text, const json::value& projected) {
  put(text, 2, "Type", "Projected (a volume that contains injected data from multiple sources)");
  auto put_source = [&](const json::value& source, const char* label) {
    put(text, 2, label, text_at(source, "name"));
    put(text, 2, "Optional", get_bool(source, "optional") ? "true" : "false");
  };
  for (const auto& source : get_array(projected, "sources")) {
    if (const json::value* secret = find(source, "secret")) put_source(*secret, "SecretName");
    else if (find(source, "downwardAPI")) put(text, 2, "DownwardAPI", "true");
    else if (const json::value* map = find(source, "configMap")) put_source(*map, "ConfigMapName");
    else if (const json::value* token = find(source, "serviceAccountToken"))
      put(text, 2, "TokenExpirationSeconds", text_at(*token, "expirationSeconds"));
  }
}

void put_downward(std::string& text, const json::value& downward) {
  put(text, 2, "Type", "DownwardAPI (a volume populated by information about the pod)");
  text += "    Items:\n";
  for (const auto& item : get_array(downward, "items"))
    for (const char* from : {"fieldRef.fieldPath", "resourceFieldRef.resource"})
      if (find(item, from)) text += "      " + text_at(item, from) + " -> " + text_at(item, "path") + "\n";
}

// ---- claims ----

std::string access_modes_text(const json::array& modes) {
  std::vector<std::string> parts;
  for (auto [mode, name] : {std::pair{"ReadWriteOnce", "RWO"}, std::pair{"ReadOnlyMany", "ROX"},
                            std::pair{"ReadWriteMany", "RWX"}, std::pair{"ReadWriteOncePod", "RWOP"}})
    if (std::any_of(modes.begin(), modes.end(), [&](const auto& one) { return jsonpath_text(one) == mode; }))
      parts.emplace_back(name);
  return join(parts, ",");
}

std::string class_name(const json::value& object) {
  const json::value* old = find_keys(object, {"metadata", "annotations", "volume.beta.kubernetes.io/storage-class"});
  return old ? jsonpath_text(*old) : text_at(object, "spec.storageClassName");
}

std::string phase_or_end(const json::value& object, WallTime now) {
  std::string end = text_at(object, "metadata.deletionTimestamp");
  return end.empty() ? text_at(object, "status.phase") : "Terminating (lasts " + schema::human_age(end, now) + ")";
}

// `whole`: not the template in a pod's volume, which has neither name nor status.
std::string claim_fields(const json::value& claim, bool whole, WallTime now) {
  std::string text;
  if (whole) put_name(text, claim);
  put(text, 0, "StorageClass", class_name(claim));
  if (whole) put(text, 0, "Status", phase_or_end(claim, now));
  std::string volume = text_at(claim, "spec.volumeName");
  put(text, 0, "Volume", volume);
  put_marks(text, claim);
  if (whole) put(text, 0, "Finalizers", go_value_text(json::value(get_array(claim, "metadata.finalizers"))));
  put(text, 0, "Capacity", volume.empty() ? "" : amount_text(find(claim, "status.capacity.storage")));
  put(text, 0, "Access Modes", volume.empty() ? "" : access_modes_text(get_array(claim, "status.accessModes")));
  if (find(claim, "spec.volumeMode")) put(text, 0, "VolumeMode", text_at(claim, "spec.volumeMode"));
  if (const json::value* source = find(claim, "spec.dataSource")) {
    text += "DataSource:\n";
    if (std::string group = text_at(*source, "apiGroup"); !group.empty()) put(text, 1, "APIGroup", group);
    put(text, 1, "Kind", text_at(*source, "kind"));
    put(text, 1, "Name", text_at(*source, "name"));
  }
  return text;
}

bool uses_claim(const json::value& pod, const json::value& claim) {
  for (const auto& volume : get_array(pod, "spec.volumes"))
    if (get_string(volume, "persistentVolumeClaim.claimName") == get_string(claim, "metadata.name")) return true;
  for (const auto& owner : get_array(claim, "metadata.ownerReferences"))
    if (get_string(owner, "kind") == "Pod" && get_string(owner, "uid") == get_string(pod, "metadata.uid")) return true;
  return false;
}

std::string claim_text(const json::value& claim, const Related& related, WallTime now) {
  std::string text = claim_fields(claim, true, now);
  std::vector<std::string> users;
  for (const auto& pod : related.pods.items)
    if (uses_claim(pod, claim)) users.push_back(text_at(pod, "metadata.name"));
  std::sort(users.begin(), users.end());
  if (!related.pods.error.empty()) put(text, 0, "Used By", unread_text(related.pods.error));
  else if (users.empty()) put(text, 0, "Used By", "<none>");
  for (const auto& user : users) text += (&user == users.data() ? "Used By:\t" : "\t") + user + "\n";
  put_node_conditions(text, claim, "lastProbeTime", "LastProbeTime");
  return text;
}

// ---- PersistentVolumes ----

void put_terms(std::string& text, std::string_view indent, std::string_view title, const json::array& requirements) {
  text.append(indent).append(title).append(":\t");
  if (requirements.empty()) text += "<none>\n";
  for (const auto& requirement : requirements) {
    if (&requirement != requirements.data()) text.append(indent).append("\t");
    std::vector<std::string> values = get_strings(requirement, "values");
    text += text_at(requirement, "key") + " " + or_else(to_lower(text_at(requirement, "operator")), "in") +
            (values.empty() ? "" : " [" + join(values, ", ") + "]") + "\n";
  }
}

void put_affinity(std::string& text, const json::value& volume) {
  const json::value* required = find(volume, "spec.nodeAffinity.required");
  if (!required) return put(text, 0, "Node Affinity", "<none>");
  const json::array& terms = get_array(*required, "nodeSelectorTerms");
  text += "Node Affinity:\t\n  Required Terms:\t";
  text += terms.empty() ? "<none>\n" : "\n";
  for (const auto& term : terms)
    put_terms(text, "    ", "Term " + std::to_string(&term - terms.data()), get_array(term, "matchExpressions"));
}

std::string volume_text(const json::value& volume, WallTime now) {
  std::string text;
  put(text, 0, "Name", text_at(volume, "metadata.name"));
  put_marks(text, volume);
  put(text, 0, "Finalizers", go_value_text(json::value(get_array(volume, "metadata.finalizers"))));
  put(text, 0, "StorageClass", class_name(volume));
  put(text, 0, "Status", phase_or_end(volume, now));
  bool claimed = find(volume, "spec.claimRef") != nullptr;
  put(text, 0, "Claim", claimed ? text_at(volume, "spec.claimRef.namespace") + "/" + text_at(volume, "spec.claimRef.name") : "");
  put(text, 0, "Reclaim Policy", text_at(volume, "spec.persistentVolumeReclaimPolicy"));
  put(text, 0, "Access Modes", access_modes_text(get_array(volume, "spec.accessModes")));
  if (find(volume, "spec.volumeMode")) put(text, 0, "VolumeMode", text_at(volume, "spec.volumeMode"));
  put(text, 0, "Capacity", amount_text(find(volume, "spec.capacity.storage")));
  put_affinity(text, volume);
  put(text, 0, "Message", text_at(volume, "status.message"));
  text += "Source:\n";
  if (const json::value* spec = find(volume, "spec")) put_volume_source(text, *spec, true);
  return text;
}

// ---- classes ----

std::string storage_class_text(const json::value& object) {
  std::string text;
  put(text, 0, "Name", text_at(object, "metadata.name"));
  bool is_default = false;
  for (const char* key : {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}) {
    const json::value* mark = find_keys(object, {"metadata", "annotations", key});
    is_default = is_default || (mark && jsonpath_text(*mark) == "true");
  }
  put(text, 0, "IsDefaultClass", is_default ? "Yes" : "No");
  put(text, 0, "Annotations", map_text(get_object(object, "metadata.annotations")));
  put(text, 0, "Provisioner", text_at(object, "provisioner"));
  put(text, 0, "Parameters", map_text(get_object(object, "parameters")));
  const json::value* expansion = find(object, "allowVolumeExpansion");
  put(text, 0, "AllowVolumeExpansion", !expansion ? "<unset>" : get_bool(object, "allowVolumeExpansion") ? "True" : "False");
  const json::array& options = get_array(object, "mountOptions");
  text += options.empty() ? "MountOptions:\t<none>\n" : "MountOptions:\n";
  for (const auto& option : options) text += "  " + jsonpath_text(option) + "\n";
  for (auto [field, label] : {std::pair{"reclaimPolicy", "ReclaimPolicy"}, std::pair{"volumeBindingMode", "VolumeBindingMode"}})
    if (find(object, field)) put(text, 0, label, text_at(object, field));
  if (const json::array& topologies = get_array(object, "allowedTopologies"); !topologies.empty()) {
    text += "AllowedTopologies:\t\n";
    for (const auto& term : topologies)
      put_terms(text, "  ", "Term " + std::to_string(&term - topologies.data()), get_array(term, "matchLabelExpressions"));
  }
  return text;
}

std::string attributes_class_text(const json::value& object) {
  std::string text;
  put(text, 0, "Name", text_at(object, "metadata.name"));
  put(text, 0, "Annotations", map_text(get_object(object, "metadata.annotations")));
  put(text, 0, "DriverName", text_at(object, "driverName"));
  put(text, 0, "Parameters", map_text(get_object(object, "parameters")));
  return text;
}

std::string csi_node_text(const json::value& object) {
  std::string text;
  put(text, 0, "Name", text_at(object, "metadata.name"));
  put_marks(text, object);
  put(text, 0, "CreationTimestamp", time_text(text_at(object, "metadata.creationTimestamp")));
  text += "Spec:\n";
  if (find(object, "spec.drivers")) text += "  Drivers:\n";
  for (const auto& driver : get_array(object, "spec.drivers")) {
    text += "    " + text_at(driver, "name") + ":\n";
    put(text, 3, "Node ID", text_at(driver, "nodeID"));
    if (find(driver, "allocatable.count")) {
      text += "      Allocatables:\n";
      put(text, 4, "Count", text_at(driver, "allocatable.count"));
    }
    if (const json::value* keys = find(driver, "topologyKeys"); keys && !keys->is_null())
      put(text, 3, "Topology Keys", go_value_text(*keys));
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
  if (const json::value* csi = find(holder, "csi")) return put_csi(text, *csi, persistent);
  if (const json::value* projected = find(holder, "projected")) return put_projected(text, *projected);
  if (const json::value* downward = find(holder, "downwardAPI")) return put_downward(text, *downward);
  if (const json::value* ephemeral = find(holder, "ephemeral")) {
    put(text, 2, "Type", "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)");
    const json::value* claim = find(*ephemeral, "volumeClaimTemplate");
    if (claim) put_claim_template(text, claim_fields(*claim, false, {}));
    return;
  }
  for (const SourceKind& kind : source_kinds()) {
    const json::value* source = find(holder, kind.field);
    if (!source) continue;
    put(text, 2, "Type", kind.type);
    for (const SourceRow& row : kind.rows) {
      bool plain = std::string_view(row.label) == "ISCSIInterface";  // without a colon in kubectl
      text.append("    ").append(row.label).append(plain ? "\t" : ":\t").append(source_value(*source, row)).append("\n");
      bool azure = persistent && std::string_view(kind.field) == "azureFile" && std::string_view(row.label) == "SecretName";
      if (azure) put(text, 2, "SecretNamespace", text_at(*source, "secretNamespace"));
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
