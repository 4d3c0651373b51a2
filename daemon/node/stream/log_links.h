// SPDX-License-Identifier: Apache-2.0
// Symbolic links to container logs, with the names that log collectors expect by default:
//   /var/log/containers/<pod>_<namespace>_<container>-<container id>.log → /var/log/pods/…/<n>.log
// The id is the one in the pod's status. Source: kubelet's legacyLogSymlink; the published tail inputs of Fluent Bit, Fluentd,
// Filebeat and Promtail.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "store/object/kind.h"

namespace coracle::node {

// Creates the link and replaces an existing one. Errors: errno's.
Result<void> link_log(const std::string& directory, const Key& pod, std::string_view container, std::string_view container_id,
                      const std::string& log);
// Removes the links that point to missing files below `logs` (a directory). Does nothing if `directory` is "".
void remove_dead_links(const std::string& directory, const std::string& logs);

}  // namespace coracle::node
