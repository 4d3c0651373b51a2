// SPDX-License-Identifier: Apache-2.0
// The confinement of coracle-image, before it reads untrusted data.
//
//   unpacks, exports, trees                     downloads
//     "/": an empty tmpfs, read-only, with        "/": the same, with
//       the store without snapshots/ (trees:        configs/ and partial/ of the store
//       nothing); the C library's locales           CA certificates and the files for name lookups, read-only
//     no network                                  the host's network
//     capabilities to create files of any owner   no capabilities
//     both: own mount, pid and IPC namespaces; the system calls of a container
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace coracle::image {

// Call with one thread, in new mount, pid, IPC and network namespaces. Afterwards only the store is left of the host's files, no
// device can be opened, and nothing can be executed. Only the capabilities to create files of any type and owner are left. The
// OOM killer prefers this process. Any error is fatal.
Result<void> confine_unpacking(const std::string& store);
// The same for a process that only works on the descriptors it was given and needs no store. Any error is fatal.
Result<void> confine_to_descriptors(const std::string& store);
// The same for a process that talks to registries, in the host's network. Any error is fatal.
Result<void> confine_download(const std::string& store);

}  // namespace coracle::image
