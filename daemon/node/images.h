// SPDX-License-Identifier: Apache-2.0
// What the node must know about images beyond the runtime's store: when one has to be pulled, with which credentials, and
// who may use one that is here already. Pure. Source: Kubernetes images (imagePullPolicy, imagePullSecrets); docker
// config.json; KEP-2535.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/node/config.h"
#include "daemon/node/environment.h"
#include "runtime/runtime.h"

namespace coracle::node {

enum class PullPolicy : uint8_t { always, if_not_present, never };

// Images of the registry "localhost" (without a port) exist on this machine only: they are never asked for elsewhere.
bool is_local_image(std::string_view reference);
// `policy`: "Always", "IfNotPresent", "Never"; "" by the tag, since static pods have no defaults of the API.
PullPolicy pull_policy(std::string_view reference, std::string_view policy);
PullPolicy pull_policy(const json::value& container);
// Under which name a pod's volume holds its image in the runtime's store.
std::string image_holder(const std::string& uid, std::string_view volume);

// Whether a pod may use an image that is here without its registry being asked. `reference` as the pod writes it.
bool may_use(const ImageVerification& verification, std::string_view reference, runtime::ImageAccess access);

// The credentials in one secret of type kubernetes.io/dockerconfigjson or dockercfg; what cannot be read is left out. Their
// source is the secret: "namespace/name/uid".
std::vector<runtime::Credentials> credentials_in(const json::value& secret);
struct PullSecrets {
  std::vector<runtime::Credentials> credentials;  // of all the pod's imagePullSecrets that exist
  std::vector<std::string> missing;               // the names of the others, as the pod has them
};
PullSecrets pull_secrets(const json::value& pod, const Lookup& lookup);

// The reason that a pod shows for a failed pull: "ErrImagePull", "InvalidImageName".
std::string pull_error_reason(const Error& error);

}  // namespace coracle::node
