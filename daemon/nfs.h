// SPDX-License-Identifier: Apache-2.0
// Mounts NFS shares with the mount helper of nfs-common. If a server does not answer, the kernel blocks processes that mount or
// access its share. So separate programs do both here, because they can be killed.
#pragma once

#include <stop_token>
#include <string>

#include "daemon/node/config.h"
#include "runtime/base/result.h"

namespace coracle {

// As node::MountHooks::nfs.
Result<void> mount_nfs(const node::NfsShare& share, const std::string& directory, std::stop_token stop);
// Detaches the topmost mount on the directory (lazily). It waits only some seconds for the server to be informed, because the
// kernel waits for minutes for a server that does not answer. Errors: unavailable, with the words of umount(8);
// the kernel's.
Result<void> unmount_nfs(const std::string& directory);
// As node::MountHooks::server_answers.
Result<void> server_answers(const std::string& directory, std::stop_token stop);

}  // namespace coracle
