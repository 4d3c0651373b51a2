// SPDX-License-Identifier: Apache-2.0
// Writing a sysctl of a namespace; used by coracle-pause for a pod and by the child for a container.
//
// Some sysctls may only be written by root of the user namespace that owns their namespace. The kernel compares ids there, and no
// capability replaces that. A caller that is the owner from outside must become that root for a moment. Source: Linux
// ipc/ipc_sysctl.c, ipc/mq_sysctl.c; net/sysctl_net.c checks for a capability.
#pragma once

#include "runtime/launch/kernel.h"

namespace coracle::launch {

inline int write_sysctl_as_we_are(int sys, const char* path, const char* value) noexcept {
  int fd = k_openat2(sys, path, O_WRONLY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
  if (fd < 0) return fd;
  long rc = k_write(fd, value, length(value));
  k_close(fd);
  return rc < 0 ? int(rc) : 0;
}

// `sys`: /proc/sys. `owner`: our id for the root of the pod or container; 0: the same user.
inline int write_sysctl(int sys, const char* path, const char* value, unsigned owner) noexcept {
  int rc = write_sysctl_as_we_are(sys, path, value);
  if (owner == 0 || (rc != -kEaccess && rc != -kEperm)) return rc;
  if (int moved = k_seteuid(owner); moved < 0) return moved;
  rc = write_sysctl_as_we_are(sys, path, value);
  if (k_seteuid(0) < 0) k_exit(127);  // otherwise later steps would run as the wrong user
  return rc;
}

}  // namespace coracle::launch
