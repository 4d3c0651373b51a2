// SPDX-License-Identifier: Apache-2.0
// Image rules of the node: when to pull an image, with which credentials, and which pods may use an image that is present. Pure.
// Source: Kubernetes images (imagePullPolicy, imagePullSecrets); docker config.json; KEP-2535.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/node/config.h"
#include "daemon/node/environment.h"
#include "runtime/runtime.h"

namespace coracle::node {

enum class PullPolicy : uint8_t { always, if_not_present, never };

// Images of the registry "localhost" (without a port) exist on this machine only and are never pulled.
bool is_local_image(std::string_view reference);
// `policy`: "Always", "IfNotPresent" or "Never". "" is decided by the tag, because static pods do not get the API's defaults.
PullPolicy pull_policy(std::string_view reference, std::string_view policy);
PullPolicy pull_policy(const json::value& container);
// The name under which a pod's volume holds a reference to its image in the runtime's image store.
std::string image_holder(const std::string& uid, std::string_view volume);

// Whether a pod may use a present image without asking its registry. `reference` is written as in the pod.
bool may_use(const ImageVerification& verification, std::string_view reference, runtime::ImageAccess access);

// The credentials in one Secret of type kubernetes.io/dockerconfigjson or dockercfg. Unreadable entries are left out. Their
// source is the secret: "namespace/name/uid".
std::vector<runtime::Credentials> credentials_in(const json::value& secret);
struct PullSecrets {
  std::vector<runtime::Credentials> credentials;  // of all existing imagePullSecrets of the pod
  std::vector<std::string> missing;               // the names of the missing ones, as in the pod
};
PullSecrets pull_secrets(const json::value& pod, const Lookup& lookup);

}  // namespace coracle::node
