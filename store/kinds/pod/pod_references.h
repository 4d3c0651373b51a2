// SPDX-License-Identifier: Apache-2.0
// What a pod's spec refers to by name: its Secrets and ConfigMaps; and a visit to its containers. Pure: each function calls
// `visit` in the order of the spec, before it returns. Source: Kubernetes pkg/api/v1/pod/util.go (VisitPodSecretNames,
// VisitPodConfigmapNames, VisitContainers).
#pragma once

#include <functional>
#include <string_view>

#include "store/schema/views.h"

namespace coracle {

// Visits the containers of a pod's spec. `list`: "initContainers", "containers", "ephemeralContainers", in this order; `index`:
// in that list. An ephemeral container has the fields of a container.
using VisitContainer = std::function<void(view::Container container, std::string_view list, size_t index)>;
inline void visit_containers(view::PodSpec spec, const VisitContainer& visit) {
  auto all = [&](const json::array& containers, std::string_view list) {
    for (size_t i = 0; i < containers.size(); ++i) visit(view::Container(containers[i]), list, i);
  };
  all(spec.init_containers().raw(), "initContainers");
  all(spec.containers().raw(), "containers");
  all(spec.ephemeral_containers().raw(), "ephemeralContainers");
}

using VisitName = std::function<void(std::string_view name)>;

// Visits every name of a Secret in the spec, one that is there twice twice. Volumes of kinds that this node does not have refer
// to Secrets too.
inline void visit_secrets(view::PodSpec spec, const VisitName& visit) {
  auto visit_if_named = [&](std::string_view name) {
    if (!name.empty()) visit(name);
  };
  for (view::LocalObjectReference reference : spec.image_pull_secrets()) visit_if_named(reference.name());
  visit_containers(spec, [&](view::Container container, std::string_view, size_t) {
    for (view::EnvFromSource source : container.env_from()) visit_if_named(source.secret_ref().name());
    for (view::EnvVar variable : container.env()) visit_if_named(variable.value_from().secret_key_ref().name());
  });
  for (view::Volume volume : spec.volumes()) {
    for (std::string_view name :
         {volume.secret().secret_name(), volume.azure_file().secret_name(), volume.cephfs().secret_ref().name(),
          volume.cinder().secret_ref().name(), volume.flex_volume().secret_ref().name(), volume.rbd().secret_ref().name(),
          volume.scale_io().secret_ref().name(), volume.iscsi().secret_ref().name(), volume.storageos().secret_ref().name(),
          volume.csi().node_publish_secret_ref().name()})
      visit_if_named(name);
    for (view::VolumeProjection source : volume.projected().sources()) visit_if_named(source.secret().name());
  }
}

// The same for ConfigMaps.
inline void visit_config_maps(view::PodSpec spec, const VisitName& visit) {
  auto visit_if_named = [&](std::string_view name) {
    if (!name.empty()) visit(name);
  };
  visit_containers(spec, [&](view::Container container, std::string_view, size_t) {
    for (view::EnvFromSource source : container.env_from()) visit_if_named(source.config_map_ref().name());
    for (view::EnvVar variable : container.env()) visit_if_named(variable.value_from().config_map_key_ref().name());
  });
  for (view::Volume volume : spec.volumes()) {
    visit_if_named(volume.config_map().name());
    for (view::VolumeProjection source : volume.projected().sources()) visit_if_named(source.config_map().name());
  }
}

}  // namespace coracle
