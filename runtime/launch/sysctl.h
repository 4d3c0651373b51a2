// SPDX-License-Identifier: Apache-2.0
// Writing one setting of a namespace, wherever it is done: by coracle-pause for a pod, by the child for a container.
//
// Some are for the root of the user namespace alone that theirs belongs to, and the kernel asks for nothing else: no
// capability stands in for it. Who owns that user namespace from outside has to be its root for a moment.
// Source: Linux ipc/ipc_sysctl.c, ipc/mq_sysctl.c; net/sysctl_net.c asks for a capability.
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

// `sys`: /proc/sys. `owner`: who the root of the pod or container is for us; 0 = the same.
inline int write_sysctl(int sys, const char* path, const char* value, unsigned owner) noexcept {
  int rc = write_sysctl_as_we_are(sys, path, value);
  if (owner == 0 || (rc != -kEaccess && rc != -kEperm)) return rc;
  if (int moved = k_seteuid(owner); moved < 0) return moved;
  rc = write_sysctl_as_we_are(sys, path, value);
  if (k_seteuid(0) < 0) k_exit(127);  // nothing that follows would be done as who it should
  return rc;
}

}  // namespace coracle::launch
