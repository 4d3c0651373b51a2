// SPDX-License-Identifier: Apache-2.0
// Loopback of the caller's network namespace: in a new namespace it is down. Source: netdevice(7).
#pragma once

#include "runtime/launch/kernel.h"

namespace coracle::launch {

// Returns the kernel's result; if it is negative, loopback is still down.
inline int bring_loopback_up() noexcept {
  struct InterfaceRequest {  // ifreq
    char name[16];
    union {
      short flags;
      char padding[24];
    };
  };
  constexpr unsigned long kSiocgifflags = 0x8913, kSiocsifflags = 0x8914;
  constexpr short kIffUp = 1;
  int fd = k_socket(kAfInet, kSockDatagram | kSockCloexec);
  if (fd < 0) return fd;
  InterfaceRequest request{};
  copy_text(request.name, "lo", sizeof request.name);
  int rc = k_ioctl(fd, kSiocgifflags, &request);
  request.flags |= kIffUp;
  if (rc >= 0) rc = k_ioctl(fd, kSiocsifflags, &request);
  k_close(fd);
  return rc;
}

}  // namespace coracle::launch
