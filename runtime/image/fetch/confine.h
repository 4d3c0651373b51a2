// SPDX-License-Identifier: Apache-2.0
// What coracle-image gives up before it reads the first foreign byte.
//
//   unpacks, exports, trees                    downloads
//     "/": an empty tmpfs, read-only, with       "/": the same, with
//       the store, but for snapshots/ (trees:     configs/ and partial/ of the store
//       nothing); the C library's locales          CA certificates, and what a name's lookup takes, read-only
//     no network                                 the machine's network
//     what making files of any owner takes       no capability
//     both: namespaces of their own for mounts, processes and IPC; the system calls of a container
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace coracle::image {

// With one thread, in namespaces of its own for mounts, processes, IPC and the network. Afterwards nothing of the machine's files
// is there but the store, no device can be opened and nothing executed; of the capabilities those are left that making files of
// any kind and owner takes; memory that is short is taken from this process first. Any error is fatal.
Result<void> confine_unpacking(const std::string& store);
// The same for what works on the descriptors that it was given, and sees nothing of the store. Any error is fatal.
Result<void> confine_to_descriptors(const std::string& store);
// The same of what speaks to registries, in the machine's network. Any error is fatal.
Result<void> confine_download(const std::string& store);

}  // namespace coracle::image
