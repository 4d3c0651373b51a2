// SPDX-License-Identifier: Apache-2.0
// The content of a volume that the node writes: of a ConfigMap, a Secret, the pod's own fields, tokens, or several of them
// (projected). Pure.
//   volume + ConfigMaps, Secrets, pod, token ──volume_payload──▶ Payload (atomic_writer.h)
// Source: Kubernetes core/v1 Volume, projected volumes; kubelet's volume errors (texts).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "daemon/node/environment.h"
#include "daemon/node/volume/atomic_writer.h"

namespace coracle::node {

struct PayloadSources {
  Lookup lookup;
  PodIdentity identity;
  std::function<Result<std::string>(std::string_view audience, int64_t expiration_seconds, const std::string& path)> token;
};

// Errors: not_found (with the message for the event), invalid, unsupported.
Result<Payload> volume_payload(const json::value& pod, const json::value& volume, const PayloadSources& sources);

}  // namespace coracle::node
