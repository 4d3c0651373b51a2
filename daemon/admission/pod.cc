// SPDX-License-Identifier: Apache-2.0
// See pod.h.
#include "daemon/admission/pod.h"

namespace coracle::admission {
namespace {

void visit_if_named(std::string_view name, const VisitName& visit) {
  if (!name.empty()) visit(name);
}

// Volumes of unsupported kinds refer to secrets too.
void visit_secrets_of(view::Volume volume, const VisitName& visit) {
  for (std::string_view name :
       {volume.secret().secret_name(), volume.azure_file().secret_name(), volume.cephfs().secret_ref().name(),
        volume.cinder().secret_ref().name(), volume.flex_volume().secret_ref().name(), volume.rbd().secret_ref().name(),
        volume.scale_io().secret_ref().name(), volume.iscsi().secret_ref().name(), volume.storageos().secret_ref().name(),
        volume.csi().node_publish_secret_ref().name()})
    visit_if_named(name, visit);
}

}  // namespace

view::PodTemplateSpec pod_of(const schema::KindInfo& info, const json::value& object) {
  std::string_view path = info.traits.pod_template;
  if (path.empty()) return {};
  return view::PodTemplateSpec(path == "." ? &object : find(object, path));
}

json::array& array_at(json::value& root, std::string_view dotted) {
  json::value& list = make(root, dotted);
  if (!list.is_array()) list.emplace_array();
  return list.get_array();
}

void visit_containers(view::PodSpec spec, const VisitContainer& visit) {
  auto all = [&](const json::array& containers, std::string_view list) {
    for (size_t i = 0; i < containers.size(); ++i) visit(view::Container(containers[i]), list, i);
  };
  all(spec.init_containers().raw(), "initContainers");
  all(spec.containers().raw(), "containers");
  all(spec.ephemeral_containers().raw(), "ephemeralContainers");
}

void visit_secrets(view::PodSpec spec, const VisitName& visit) {
  for (view::LocalObjectReference reference : spec.image_pull_secrets()) visit_if_named(reference.name(), visit);
  visit_containers(spec, [&](view::Container container, std::string_view, size_t) {
    for (view::EnvFromSource source : container.env_from()) visit_if_named(source.secret_ref().name(), visit);
    for (view::EnvVar variable : container.env()) visit_if_named(variable.value_from().secret_key_ref().name(), visit);
  });
  for (view::Volume volume : spec.volumes()) {
    visit_secrets_of(volume, visit);
    for (view::VolumeProjection source : volume.projected().sources()) visit_if_named(source.secret().name(), visit);
  }
}

void visit_config_maps(view::PodSpec spec, const VisitName& visit) {
  visit_containers(spec, [&](view::Container container, std::string_view, size_t) {
    for (view::EnvFromSource source : container.env_from()) visit_if_named(source.config_map_ref().name(), visit);
    for (view::EnvVar variable : container.env()) visit_if_named(variable.value_from().config_map_key_ref().name(), visit);
  });
  for (view::Volume volume : spec.volumes()) {
    visit_if_named(volume.config_map().name(), visit);
    for (view::VolumeProjection source : volume.projected().sources()) visit_if_named(source.config_map().name(), visit);
  }
}

}  // namespace coracle::admission
