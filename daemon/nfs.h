// SPDX-License-Identifier: Apache-2.0
// NFS shares, mounted by the program of nfs-common. A server that does not answer holds up who mounts its share or looks at it,
// in the kernel: programs do both here, which can be ended.
#pragma once

#include <stop_token>
#include <string>

#include "daemon/node/config.h"
#include "runtime/base/result.h"

namespace coracle {

// As node::MountHooks::nfs.
Result<void> mount_nfs(const node::NfsShare& share, const std::string& directory, std::stop_token stop);
// What is mounted last on the directory goes, lazily, without waiting for more than some seconds until its server knows: the
// kernel waits for minutes for one that does not answer.
Result<void> unmount_nfs(const std::string& directory);
// As node::MountHooks::server_answers.
Result<void> server_answers(const std::string& directory, std::stop_token stop);

}  // namespace coracle
