// SPDX-License-Identifier: Apache-2.0
// Links to the logs, named as log collectors expect them by default:
//   /var/log/containers/<pod>_<namespace>_<container>-<container id>.log → /var/log/pods/…/<n>.log
// The id is the one that the pod's status shows. Source: kubelet's legacyLogSymlink; the tail inputs of Fluent Bit, Fluentd,
// Filebeat and Promtail as their projects publish them.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "store/object/kind.h"

namespace coracle::node {

// Makes the link, which replaces one of its name. Errors: what the file system says.
Result<void> link_log(const std::string& directory, const Key& pod, std::string_view container, std::string_view container_id,
                      const std::string& log);
// Removes the links that lead beneath `logs` (a directory) to what is not there any more. `directory` "": there are none.
void remove_dead_links(const std::string& directory, const std::string& logs);

}  // namespace coracle::node
