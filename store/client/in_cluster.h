// SPDX-License-Identifier: Apache-2.0
// The kubeconfig of a pod that has none: the API server's address from the environment, and the pod's service account.
// Source: client-go rest.InClusterConfig.
#pragma once

#include <optional>
#include <string>

#include "store/client/kubeconfig.h"

namespace coracle {

constexpr const char* kServiceAccountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

// A kubeconfig document; none outside a pod.
std::optional<json::value> in_cluster_kubeconfig(const std::string& directory = kServiceAccountDirectory);

// Access as the document says, changed by `choice`. Errors: as read_kubeconfigs.
Result<ServerAccess> read_in_cluster(const json::value& config, const KubeconfigChoice& choice);

}  // namespace coracle
