// SPDX-License-Identifier: Apache-2.0
// What this kernel can do, tried rather than guessed from its version: each probe makes the thing it is named after in a
// place of its own and lets it go again. For `coraclectl doctor`. Nothing is changed for anybody else; all block for
// milliseconds. Errors: what the kernel said; forbidden mostly means that we are not root.
// Source: clone3(2), fsopen(2), seccomp(2), rtnetlink(7), adjtimex(2), kernel Documentation/filesystems/overlayfs.rst.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// A process by clone3 with a pidfd, born in `namespaces` (CLONE_NEW*) and, when given, in `cgroup`; it ends at once.
Result<void> try_clone(uint64_t namespaces, const Fd* cgroup = nullptr);
// A tmpfs as a detached mount, its attributes changed.
Result<void> try_mount_api();
// An overlay whose upper directory is a new one in `directory`; the directory is removed again.
Result<void> try_overlay(const std::string& directory);
// A user namespace, and the same over an id-mapped lower directory: what a pod with users of its own needs.
Result<void> try_own_users(const std::string& directory);
// A link of this kind ("veth", "bridge") in a network namespace of its own.
Result<void> try_link(const std::string& kind);
// A filter that may refuse calls with an errno.
Result<void> try_seccomp();
// A cgroup's device filter, loaded and attached nowhere.
Result<void> try_device_filter();

// Whether something (NTP, a GPS) says that it keeps the kernel's clock right.
Result<bool> clock_is_synchronised();

}  // namespace coracle::sys
