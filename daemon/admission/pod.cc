// SPDX-License-Identifier: Apache-2.0
// See pod.h.
#include "daemon/admission/pod.h"

namespace coracle::admission {
namespace {

void visit_environment(const json::value& spec, std::string_view from, std::string_view key, const VisitName& visit) {
  visit_containers(spec, [&](const json::value& container, std::string_view, size_t) {
    for (const json::value& source : get_array(container, "envFrom"))
      if (auto name = get_string(source, std::string(from) + ".name"); !name.empty()) visit(name);
    for (const json::value& variable : get_array(container, "env"))
      if (auto name = get_string(variable, "valueFrom." + std::string(key) + ".name"); !name.empty()) visit(name);
  });
}

// Volumes of unsupported kinds refer to secrets by secretRef.name, or by a field of their own.
constexpr std::string_view kSecretPaths[] = {
    "secret.secretName",         "azureFile.secretName",         "cephfs.secretRef.name",  "cinder.secretRef.name",
    "flexVolume.secretRef.name", "rbd.secretRef.name",           "scaleIO.secretRef.name", "iscsi.secretRef.name",
    "storageos.secretRef.name",  "csi.nodePublishSecretRef.name"};

}  // namespace

const json::value* pod_of(const schema::KindInfo& info, const json::value& object) {
  std::string_view path = info.traits.pod_template;
  if (path.empty()) return nullptr;
  return path == "." ? &object : find(object, path);
}

json::array& array_at(json::value& root, std::string_view dotted) {
  json::value& list = make(root, dotted);
  if (!list.is_array()) list.emplace_array();
  return list.get_array();
}

void visit_containers(const json::value& spec, const VisitContainer& visit) {
  for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const json::array& containers = get_array(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) visit(containers[i], list, i);
  }
}

void visit_secrets(const json::value& spec, const VisitName& visit) {
  for (const json::value& reference : get_array(spec, "imagePullSecrets"))
    if (auto name = get_string(reference, "name"); !name.empty()) visit(name);
  visit_environment(spec, "secretRef", "secretKeyRef", visit);
  for (const json::value& volume : get_array(spec, "volumes")) {
    for (std::string_view path : kSecretPaths)
      if (auto name = get_string(volume, path); !name.empty()) visit(name);
    for (const json::value& source : get_array(volume, "projected.sources"))
      if (auto name = get_string(source, "secret.name"); !name.empty()) visit(name);
  }
}

void visit_config_maps(const json::value& spec, const VisitName& visit) {
  visit_environment(spec, "configMapRef", "configMapKeyRef", visit);
  for (const json::value& volume : get_array(spec, "volumes")) {
    if (auto name = get_string(volume, "configMap.name"); !name.empty()) visit(name);
    for (const json::value& source : get_array(volume, "projected.sources"))
      if (auto name = get_string(source, "configMap.name"); !name.empty()) visit(name);
  }
}

}  // namespace coracle::admission
