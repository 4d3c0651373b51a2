// SPDX-License-Identifier: Apache-2.0
// Probes of kernel features, tried and not guessed from the version: each probe creates the object that it is named after in
// isolation and removes it again. For `coraclectl doctor`. Probes do not affect anybody else; each blocks for milliseconds.
// Errors: the kernel's; forbidden mostly means that we are not root.
// Source: clone3(2), fsopen(2), seccomp(2), rtnetlink(7), adjtimex(2), kernel Documentation/filesystems/overlayfs.rst.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// A process by clone3 with a pidfd, created in `namespaces` (CLONE_NEW*) and, if given, in `cgroup`; it exits at once.
Result<void> try_clone(uint64_t namespaces, const Fd* cgroup = nullptr);
// A tmpfs as a detached mount whose attributes are changed.
Result<void> try_mount_api();
// An overlay whose upper directory is a new directory in `directory`, which is removed again.
Result<void> try_overlay(const std::string& directory);
// A user namespace, and an overlay over an id-mapped lower directory: what a pod with hostUsers: false needs.
Result<void> try_own_users(const std::string& directory);
// A link of this kind ("veth", "bridge") in a new network namespace.
Result<void> try_link(const std::string& kind);
// A seccomp filter that returns an errno.
Result<void> try_seccomp();
// A cgroup device program, loaded but not attached.
Result<void> try_device_filter();

// True if the kernel clock is marked as synchronised (by NTP or a GPS).
Result<bool> clock_is_synchronised();

}  // namespace coracle::sys
